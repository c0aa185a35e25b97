"""FairGrad itself, and what all methods that take any measure ask of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.groups import Groups
from fairgrad.measures import constraints_of
from fairgrad.methods.shared.stacked import SGD, train_stacked
from fairgrad.methods.shared.support import no_network, no_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.methods.interface import Candidate, Settings, Task

FAIRNESS_RATE = 0.01


def train_fair(
    task: Task, combinations: Sequence[Settings], *, negative_weights: bool = True
) -> list[Candidate]:
    """Trains the paper's algorithm; combinations may set epsilon and the fairness rate."""
    fairness: Settings = {
        "fairness_measure": task.measure,
        "fairness_rate": FAIRNESS_RATE,
        "negative_weights": negative_weights,
        "y_desirable": task.y_desirable,
    }
    return train_stacked(task, combinations, **fairness, **SGD)


def unsupported_by_networks(task: Task) -> str | None:
    """Why a method that trains networks cannot do a task for any measure, or None."""
    return no_network(task) or unsupported(task)


def unsupported(task: Task) -> str | None:
    """Why the task's measure does not fit its data, or None."""
    if task.measure is None:
        return "it needs a fairness measure"
    return no_table(task) or _unfit_measure(task)


def _unfit_measure(task: Task) -> str | None:
    part = next(iter(task.splits.values())).train
    try:
        constraints_of(task.measure, Groups.from_data(part.y, part.s), y_desirable=task.y_desirable)
    except ValueError as unfit:
        return str(unfit).rstrip(".")
    return None
