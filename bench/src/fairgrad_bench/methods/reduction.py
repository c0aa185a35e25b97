"""Reduction (Agarwal et al., 2018): fairness by a sequence of cost-sensitive problems.

Multipliers of the constraints are moved by the exponentiated gradient; for each of them a plain
learner is fitted to reweighted rows. The answer is a lottery over the learners, so predictions are
random: they are drawn with the seed, and the expected rates are given beside them.

The algorithm is fairlearn's.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import Candidate, Combination, Method, MethodTask, crossed
from fairgrad_bench.methods.models import expected_warnings, learner, randomised
from fairgrad_bench.methods.weighted_learner import WeightedLearner

if TYPE_CHECKING:
    from fairgrad.datasets import Encoded, Split
    from fairgrad.groups import Floats

MOMENTS = {
    "accuracy_parity": "ErrorRateParity",
    "equalized_odds": "EqualizedOdds",
    "equality_of_opportunity": "TruePositiveRateParity",
    "demographic_parity": "DemographicParity",
}
"""What fairlearn calls our measures."""


def _unsupported(task: MethodTask) -> str | None:
    return (
        support.no_table(task)
        or support.other_measure(task, [*MOMENTS])
        or support.more_labels(task)
        or support.other_desirable(task)
        or support.unknown_groups(task)
    )


def _settings(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - one for all models
    if grid == "quick":
        return crossed(bound=(0.01,), rounds=(10,))
    return crossed(bound=(0.001, 0.01, 0.05), rounds=(50,))


def _train(task: MethodTask) -> list[Candidate]:
    def own(seed: int) -> Any:
        if task.model == "nonlinear":
            return WeightedLearner(hidden=True, epochs=task.epochs, seed=seed)
        return learner(task.model, seed, task.epochs)

    pairs = product(task.splits.items(), METHOD.combinations(task))
    with expected_warnings():
        return [
            _candidate(task, own(seed), seed, split, settings) for (seed, split), settings in pairs
        ]


def _candidate(
    task: MethodTask, own: Any, seed: int, split: Split, settings: Combination
) -> Candidate:
    lottery = _fit(task, own, split, settings)

    def rate(part: Encoded) -> Floats:
        rates: Floats = lottery._pmf_predict(part.X.astype(np.float64))[:, 1]  # noqa: SLF001 - the only way to the probabilities
        return rates

    return randomised(seed, split, settings, rate)


def _fit(task: MethodTask, own: Any, split: Split, settings: Combination) -> Any:
    from fairlearn import reductions  # noqa: PLC0415 - slow to import

    moment = getattr(reductions, MOMENTS[task.measure or ""])
    lottery = reductions.ExponentiatedGradient(
        own,
        moment(difference_bound=settings["bound"]),
        eps=settings["bound"],
        max_iter=settings["rounds"],
    )
    X, y, s = split.train
    return lottery.fit(X.astype(np.float64), y, sensitive_features=s)


METHOD = Method(
    name="reduction",
    version=2,
    description="Exponentiated gradient over cost-sensitive learners; predictions are random.",
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
