"""Unconstrained: plain training, blind to groups."""

from __future__ import annotations

from dataclasses import replace

from fairgrad.methods.interface import Candidate, Method, Task
from fairgrad.methods.shared.grids import combinations, usual
from fairgrad.methods.shared.stacked import SGD, train_stacked
from fairgrad.methods.shared.support import no_table
from fairgrad.methods.shared.trees import train_trees


def _train(task: Task) -> list[Candidate]:
    if task.model == "lightgbm":
        return train_trees(replace(task, measure=None), combinations(METHOD, task))
    return train_stacked(task, combinations(METHOD, task), **SGD)


METHOD = Method(
    name="unconstrained",
    description="Trains for accuracy alone.",
    uses_measure=False,
    needs_s_to_predict=False,
    unsupported=no_table,
    settings=usual,
    train=_train,
)
