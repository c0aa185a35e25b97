"""Reasons why a method cannot do a task, to be asked one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairgrad.groups import Groups
from fairgrad.measures import constraints_of
from fairgrad_bench.methods.interface import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.datasets import Encoded
    from fairgrad_bench.methods.interface import MethodTask


def no_table(task: MethodTask) -> str | None:
    """For every method: features must be a matrix of numbers."""
    for split in task.splits.values():
        X = split.train.X
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            return "its models take rows of numbers, not images"
    return None


def no_network(task: MethodTask) -> str | None:
    """For methods that train networks in batches: neither images nor boosted trees."""
    if task.model not in NETWORKS:
        return f"it trains networks in batches of rows, not {task.model}"
    return no_table(task)


def unfit_measure(task: MethodTask) -> str | None:
    """For methods that take any measure: it must fit the data, which must be a table."""
    if task.measure is None:
        return "it needs a fairness measure"
    return no_table(task) or _refused_measure(task)


def no_network_or_unfit_measure(task: MethodTask) -> str | None:
    """For methods that train networks and take any measure."""
    return no_network(task) or unfit_measure(task)


def measure_of_predictions(task: MethodTask) -> str | None:
    """For methods that know constraints on error rates only."""
    part = next(iter(task.splits.values())).train
    groups = Groups.from_data(part.y, part.s)
    found = constraints_of(task.measure, groups, y_desirable=task.y_desirable)
    if found.n_outcomes == 1:
        return None
    return f"{task.measure} of more than two labels is no constraint on errors"


def more_labels(task: MethodTask) -> str | None:
    """For methods that know two labels only."""
    found = n_labels(task)
    return None if found <= 2 else f"it knows two labels only; these data have {found}"


def more_groups(task: MethodTask) -> str | None:
    """For methods that know two groups only."""
    found = n_groups(task)
    return None if found <= 2 else f"it knows two groups only; these data have {found}"


def unknown_groups(task: MethodTask) -> str | None:
    """For methods that need every row's sensitive value."""
    if any((part.s < 0).any() for split in task.splits.values() for part in split):
        return "it needs the sensitive value of every row; some are unknown"
    return None


def one_label_in_a_group(task: MethodTask) -> str | None:
    """For methods that need rows of every label in every group of the training rows."""
    for split in task.splits.values():
        _, y, s = split.train
        cells = len(np.unique(np.stack([y, s]), axis=1).T)
        if cells < len(np.unique(y)) * len(np.unique(s)):
            return "it needs training rows of every label in every group"
    return None


def other_measure(task: MethodTask, allowed: Sequence[str]) -> str | None:
    """For methods that serve some measures only."""
    return None if task.measure in allowed else f"it does not serve {task.measure}"


def other_desirable(task: MethodTask) -> str | None:
    """For methods whose desirable label can only be 1."""
    if task.measure != "equality_of_opportunity" or tuple(task.y_desirable) == (1,):
        return None
    return f"its desirable label is 1, not {', '.join(map(str, task.y_desirable))}"


def n_labels(task: MethodTask) -> int:
    """How many labels the rows for training and validation have."""
    return len(np.unique(np.concatenate([part.y for part in _seen(task)])))


def n_groups(task: MethodTask) -> int:
    """How many groups the rows for training and validation have, unknown ones left out."""
    found = np.unique(np.concatenate([part.s for part in _seen(task)]))
    return int((found >= 0).sum())


def _seen(task: MethodTask) -> list[Encoded]:
    return [part for split in task.splits.values() for part in (split.train, split.validation)]


def _refused_measure(task: MethodTask) -> str | None:
    part = next(iter(task.splits.values())).train
    try:
        constraints_of(task.measure, Groups.from_data(part.y, part.s), y_desirable=task.y_desirable)
    except ValueError as unfit:
        return str(unfit).rstrip(".")
    return None
