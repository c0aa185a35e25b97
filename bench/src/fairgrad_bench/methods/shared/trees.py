"""Trains all seeds and combinations of a task as boosted trees, one after the other."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.methods.interface import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairgrad.datasets import Split
    from fairgrad.groups import Floats
    from fairgrad.methods.interface import Settings, Task

TREES: Settings = {"n_estimators": 300, "colsample_bytree": 0.3, "n_jobs": 1, "verbose": -1}
"""What all boosted models share; no tree sees most of the columns, which fits less noise."""

USUAL: Settings = {"num_leaves": 15, "min_child_samples": 50}
"""The trees of methods that have other settings to choose among."""


def classifier(measure: str | None, seed: int, **settings: Any) -> Any:
    """An unfitted boosted classifier; without a measure it is LightGBM's own.

    Raises:
        ImportError: naming LightGBM and the extra that installs it.
    """
    try:
        from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: PLC0415 - optional
    except ImportError as missing:
        raise ImportError(
            "lightgbm: models of this kind need it; pip install 'fairgrad[lightgbm]'."
        ) from missing
    return FairGradLGBMClassifier(measure, random_state=seed, **{**TREES, **settings})


def train_trees(
    task: Task,
    combinations: Sequence[Settings],
    *,
    weight_of: Callable[[Split], Floats] | None = None,
) -> list[Candidate]:
    """One model for every seed and combination, fair if the task has a measure.

    Args:
        task: what to train.
        combinations: LightGBM's parameters.
        weight_of: sample weights of a split's training rows.
    """
    pairs = product(task.splits.items(), combinations)
    return [_candidate(task, seed, split, own, weight_of) for (seed, split), own in pairs]


def _candidate(
    task: Task,
    seed: int,
    split: Split,
    settings: Settings,
    weight_of: Callable[[Split], Floats] | None,
) -> Candidate:
    model = classifier(task.measure, seed, y_desirable=np.asarray(task.y_desirable), **settings)
    X, y, s = split.train
    model.fit(X, y, None if weight_of is None else weight_of(split), sensitive_features=s)
    validation, test = (model.predict(part.X) for part in (split.validation, split.test))
    return Candidate(seed, dict(settings), 0, validation, test)
