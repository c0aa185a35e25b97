"""Unconstrained: plain training, blind to groups."""

from __future__ import annotations

from dataclasses import replace

from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, usual
from fairgrad_bench.methods.models import SGD, train_stacked, train_trees
from fairgrad_bench.methods.support import no_table


def _train(task: MethodTask) -> list[Candidate]:
    if task.model == "lightgbm":
        return train_trees(replace(task, measure=None), METHOD.combinations(task))
    return train_stacked(task, METHOD.combinations(task), **SGD)


METHOD = Method(
    name="unconstrained",
    version=1,
    description="Trains for accuracy alone.",
    unsupported=no_table,
    settings=usual,
    train=_train,
    uses_measure=False,
)
