"""Constant: one label for everybody, the floor of accuracy and, for most measures, fair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairgrad.methods.interface import Candidate, Method, Settings, Task

if TYPE_CHECKING:
    from fairgrad.datasets import Split


def _train(task: Task) -> list[Candidate]:
    return [_candidate(seed, split) for seed, split in task.splits.items()]


def _candidate(seed: int, split: Split) -> Candidate:
    majority = int(np.bincount(split.train.y).argmax())
    return Candidate(
        seed=seed,
        settings={},
        epoch=0,
        validation=np.full(len(split.validation), majority),
        test=np.full(len(split.test), majority),
    )


def _unsupported(task: Task) -> str | None:  # noqa: ARG001 - it can do everything
    return None


def _settings(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - nothing to set
    return [{}]


METHOD = Method(
    name="constant",
    description="Predicts the most frequent label of the training rows for everybody.",
    uses_measure=False,
    needs_s_to_predict=False,
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
