"""Weighted ERM: each group weighs the same, once for all.

``weight_i = n / (G n_s)`` for a row of group s, of which there are n_s among the n rows of the G
groups that are known: the inverse of the group's share, scaled to a mean of 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, usual
from fairgrad_bench.methods.models import SGD, train_stacked, train_trees
from fairgrad_bench.methods.support import no_table

if TYPE_CHECKING:
    from fairgrad.datasets import Split
    from fairgrad.groups import Floats


def group_weights(s: np.ndarray) -> Floats:
    """(n,) the weight of each row; 1 where the group is unknown."""
    known = s >= 0
    groups, index, sizes = np.unique(s[known], return_inverse=True, return_counts=True)
    weights = np.ones(len(s))
    weights[known] = known.sum() / (len(groups) * sizes[index])
    return weights


def _train(task: MethodTask) -> list[Candidate]:
    def weight_of(split: Split) -> Floats:
        return group_weights(split.train.s)

    own = METHOD.combinations(task)
    if task.model == "lightgbm":
        return train_trees(replace(task, measure=None), own, weight_of=weight_of)
    return train_stacked(task, own, weight_of=weight_of, **SGD)


METHOD = Method(
    name="weighted_erm",
    version=1,
    description="Weighs every row by the inverse share of its group, once for all.",
    unsupported=no_table,
    settings=usual,
    train=_train,
    uses_measure=False,
)
