"""FairGrad with slack: every level of fairness may lie within epsilon of 0.

Over a grid of epsilon, so that the selection rule, or a figure, chooses among them: the settings of
a candidate say which epsilon it had.
"""

from __future__ import annotations

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared.fair import train_fair, unsupported_by_networks
from fairgrad.methods.shared.grids import batch_and_decay, combinations, crossed

EPSILONS = {"paper": (0.005, 0.01, 0.02, 0.05, 0.1), "quick": (0.01, 0.05)}


def _settings(model: str, grid: str) -> list[Settings]:
    slacks = crossed(epsilon=EPSILONS[grid])
    return [own | slack for own in batch_and_decay(model, grid) for slack in slacks]


def _train(task: Task) -> list[Candidate]:
    return train_fair(task, combinations(METHOD, task))


METHOD = Method(
    name="fairgrad_epsilon",
    description="FairGrad with a slack of epsilon for every level of fairness.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=unsupported_by_networks,
    settings=_settings,
    train=_train,
)
