"""Fair decisions on the probabilities of a plain model: the method's best response.

A plain learner is fitted to the (label, group) cells; its predictions are weighted so that they are
fair on the training rows, with every slack of the grid at the cost of one fit.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.sklearn import FairDecisionClassifier, fit_decisions
from fairgrad_bench.methods.interface import Candidate, Combination, Method, MethodTask, crossed
from fairgrad_bench.methods.models import expected_warnings, learner
from fairgrad_bench.methods.support import unfit_measure

if TYPE_CHECKING:
    from fairgrad.datasets import Encoded

EPSILONS = {"paper": (0.0, 0.005, 0.01, 0.02, 0.05, 0.1), "quick": (0.0, 0.02)}


def _settings(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - one for all models
    return crossed(epsilon=EPSILONS[grid])


def train_decisions(
    task: MethodTask, combinations: list[Combination], *, use_sensitive: bool
) -> list[Candidate]:
    """One model for every seed and epsilon; what comes before the decisions is fitted once a seed.

    Args:
        task: what to train.
        combinations: of epsilons.
        use_sensitive: whether predictions look at the sensitive value.
    """
    candidates = []
    for seed, split in task.splits.items():
        models = [
            FairDecisionClassifier(
                learner(task.model, seed, task.epochs),
                task.measure,
                own["epsilon"],
                use_sensitive=use_sensitive,
                y_desirable=np.asarray(task.y_desirable),
                random_state=seed,
            )
            for own in combinations
        ]
        X, y, s = split.train
        with expected_warnings():
            warnings.filterwarnings(
                "ignore", message="The bounds are not kept|Every row is predicted"
            )
            fit_decisions(models, X, y, sensitive_features=s)
        for model, own in zip(models, combinations, strict=True):
            validation, test = (
                model.predict(part.X, **_given(part, use_sensitive))
                for part in (split.validation, split.test)
            )
            candidates.append(Candidate(seed, dict(own), 0, validation, test))
    return candidates


def _given(part: Encoded, use_sensitive: bool) -> dict[str, Any]:
    return {"sensitive_features": part.s} if use_sensitive else {}


def _train(task: MethodTask) -> list[Candidate]:
    return train_decisions(task, METHOD.combinations(task), use_sensitive=False)


METHOD = Method(
    name="decision",
    version=1,
    description="Fair decisions on the probabilities of a plain model of the cells.",
    unsupported=unfit_measure,
    settings=_settings,
    train=_train,
)
