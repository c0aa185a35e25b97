"""FairGrad with slack: every level of fairness may lie within epsilon of 0.

Over a grid of epsilon, so that the selection rule, or a figure, chooses among them: the settings of
a candidate say which epsilon it had.
"""

from __future__ import annotations

from fairgrad_bench.methods.interface import (
    Candidate,
    Combination,
    Method,
    MethodTask,
    batch_and_decay,
    crossed,
)
from fairgrad_bench.methods.models import train_fair
from fairgrad_bench.methods.support import no_network_or_unfit_measure

EPSILONS = {"paper": (0.005, 0.01, 0.02, 0.05, 0.1), "quick": (0.01, 0.05)}


def _settings(model: str, grid: str) -> list[Combination]:
    slacks = crossed(epsilon=EPSILONS[grid])
    return [own | slack for own in batch_and_decay(model, grid) for slack in slacks]


def _train(task: MethodTask) -> list[Candidate]:
    return train_fair(task, METHOD.combinations(task))


METHOD = Method(
    name="fairgrad_epsilon",
    version=1,
    description="FairGrad with a slack of epsilon for every level of fairness.",
    unsupported=no_network_or_unfit_measure,
    settings=_settings,
    train=_train,
)
