"""Threshold post-processing (Hardt et al., 2016): other thresholds for each group.

A plain model is trained as it is; each group then gets the (partly random) thresholds that make
the rates equal at the least loss of accuracy on the training rows. Predictions need the sensitive
value: where that may not be used, this method may not either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, nothing_to_set
from fairgrad_bench.methods.models import expected_warnings, learner, randomised

if TYPE_CHECKING:
    from fairgrad.datasets import Encoded, Split
    from fairgrad.groups import Floats

CONSTRAINTS = {
    "equalized_odds": "equalized_odds",
    "equality_of_opportunity": "true_positive_rate_parity",
    "demographic_parity": "demographic_parity",
}
"""What fairlearn calls our measures; it has none for accuracy parity."""


def _unsupported(task: MethodTask) -> str | None:
    return (
        support.no_table(task)
        or support.other_measure(task, [*CONSTRAINTS])
        or support.more_labels(task)
        or support.other_desirable(task)
        or support.unknown_groups(task)
        or support.one_label_in_a_group(task)
    )


def _train(task: MethodTask) -> list[Candidate]:
    return [_candidate(task, seed, split) for seed, split in task.splits.items()]


def _candidate(task: MethodTask, seed: int, split: Split) -> Candidate:
    optimizer = _fit(task, seed, split)

    def rate(part: Encoded) -> Floats:
        X = part.X.astype(np.float64)
        rates: Floats = optimizer._pmf_predict(X, sensitive_features=part.s)  # noqa: SLF001 - the only way to the probabilities
        return np.asarray(rates)[:, 1]

    return randomised(seed, split, {}, rate)


def _fit(task: MethodTask, seed: int, split: Split) -> Any:
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415 - slow to import

    optimizer = ThresholdOptimizer(
        estimator=learner(task.model, seed, task.epochs),
        constraints=CONSTRAINTS[task.measure or ""],
        predict_method="predict_proba",
    )
    X, y, s = split.train
    with expected_warnings():
        return optimizer.fit(X.astype(np.float64), y, sensitive_features=s)


METHOD = Method(
    name="threshold",
    version=1,
    description="Other thresholds for each group on a plain model's scores; needs s to predict.",
    unsupported=_unsupported,
    settings=nothing_to_set,
    train=_train,
    needs_s_to_predict=True,
)
