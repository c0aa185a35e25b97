"""Constant: one label for everybody, the floor of accuracy and, for most measures, fair."""

from __future__ import annotations

import numpy as np

from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, nothing_to_set


def _train(task: MethodTask) -> list[Candidate]:
    candidates = []
    for seed, split in task.splits.items():
        majority = int(np.bincount(split.train.y).argmax())
        parts = (split.validation, split.test)
        candidates.append(Candidate(seed, {}, 0, *(np.full(len(part), majority) for part in parts)))
    return candidates


METHOD = Method(
    name="constant",
    version=1,
    description="Predicts the most frequent label of the training rows for everybody.",
    unsupported=lambda _: None,
    settings=nothing_to_set,
    train=_train,
    uses_measure=False,
)
