"""FairGrad as in the paper: exact fairness, no memory, no proportional term."""

from __future__ import annotations

from fairgrad.methods.interface import Candidate, Method, Task
from fairgrad.methods.shared.fair import train_fair, unsupported
from fairgrad.methods.shared.grids import batch_and_decay, combinations


def _train(task: Task) -> list[Candidate]:
    return train_fair(task, combinations(METHOD, task))


METHOD = Method(
    name="fairgrad",
    description="Weighs cells by multipliers that ascend with their unfairness in every batch.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=unsupported,
    settings=batch_and_decay,
    train=_train,
)
