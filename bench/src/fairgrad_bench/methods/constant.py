"""Constant: one label for everybody, the floor of accuracy and, for most measures, fair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, nothing_to_set

if TYPE_CHECKING:
    from fairgrad.datasets import Split


def _train(task: MethodTask) -> list[Candidate]:
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


METHOD = Method(
    name="constant",
    version=1,
    description="Predicts the most frequent label of the training rows for everybody.",
    uses_measure=False,
    needs_s_to_predict=False,
    unsupported=support.nothing,
    settings=nothing_to_set,
    train=_train,
)
