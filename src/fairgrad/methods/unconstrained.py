"""Unconstrained: plain training, blind to groups."""

from __future__ import annotations

from fairgrad.methods.interface import Candidate, Method, Task
from fairgrad.methods.shared.grids import batch_and_decay, combinations
from fairgrad.methods.shared.stacked import SGD, train_stacked
from fairgrad.methods.shared.support import no_table


def _train(task: Task) -> list[Candidate]:
    return train_stacked(task, combinations(METHOD, task), **SGD)


METHOD = Method(
    name="unconstrained",
    description="Trains for accuracy alone.",
    uses_measure=False,
    needs_s_to_predict=False,
    unsupported=no_table,
    settings=batch_and_decay,
    train=_train,
)
