"""FairGrad whose weights may not be negative, which Lemma 1 of the paper says they must be."""

from __future__ import annotations

from fairgrad.methods.interface import Candidate, Method, Task
from fairgrad.methods.shared.fair import train_fair, unsupported_by_networks
from fairgrad.methods.shared.grids import batch_and_decay, combinations


def _train(task: Task) -> list[Candidate]:
    return train_fair(task, combinations(METHOD, task), negative_weights=False)


METHOD = Method(
    name="fairgrad_clipped",
    description="FairGrad with the cells' weights clipped at 0: what negative weights are worth.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=unsupported_by_networks,
    settings=batch_and_decay,
    train=_train,
)
