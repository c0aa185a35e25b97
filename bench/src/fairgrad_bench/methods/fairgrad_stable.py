"""FairGrad as the estimators train it for exact fairness: one model, nothing chosen among.

The benchmark's other methods train several combinations and keep the fairest of the accurate by
the validation rows; this one looks at the training rows only.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.sklearn import FairGradClassifier
from fairgrad.usefulness import FairnessWarning
from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, nothing_to_set
from fairgrad_bench.methods.models import HIDDEN, USUAL_TREES, boosted_trees
from fairgrad_bench.methods.support import unfit_measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad_bench.methods.interface import Combination


def train_estimators(
    task: MethodTask, combinations: Sequence[Combination] = ({},), *, use_sensitive: bool = False
) -> list[Candidate]:
    """One model for every seed and combination, with the defaults of the estimator.

    Args:
        task: what to train.
        combinations: of epsilons; an empty one is exact fairness.
        use_sensitive: whether the sensitive value is a feature, which predictions then need.
    """
    candidates = []
    for (seed, split), own in product(task.splits.items(), combinations):
        settings = {
            "epsilon": 0.0,
            **own,
            "use_sensitive": use_sensitive,
            "y_desirable": np.asarray(task.y_desirable),
        }
        model = _estimator(task, seed, settings)
        X, y, s = split.train
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # the tables show what was reached
            model.fit(X, y, sensitive_features=s)
        validation, test = (
            model.predict(part.X, **({"sensitive_features": part.s} if use_sensitive else {}))
            for part in (split.validation, split.test)
        )
        candidates.append(Candidate(seed, dict(own), 0, validation, test))
    return candidates


def _estimator(task: MethodTask, seed: int, settings: Combination) -> Any:
    if task.model == "lightgbm":
        return boosted_trees(task.measure, seed, **USUAL_TREES, **settings)
    hidden = HIDDEN if task.model == "nonlinear" else ()
    return FairGradClassifier(
        task.measure,
        **{"epsilon": 0.0, **settings},
        hidden_layer_sizes=hidden,
        random_state=seed,
    )


METHOD = Method(
    name="fairgrad_stable",
    version=3,
    description="FairGrad's estimator asked for exact fairness: one model, no selection.",
    unsupported=unfit_measure,
    settings=nothing_to_set,
    train=train_estimators,
)
