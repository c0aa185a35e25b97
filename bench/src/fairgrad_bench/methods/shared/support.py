"""Reasons why a method cannot do a task, to be asked one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairgrad.methods.interface import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.datasets import Encoded, Split
    from fairgrad.methods.interface import Task


def n_labels(task: Task) -> int:
    """How many labels the rows for training and validation have."""
    return len(np.unique(np.concatenate([part.y for part in _seen(task)])))


def n_groups(task: Task) -> int:
    """How many groups the rows for training and validation have, unknown ones left out."""
    found = np.unique(np.concatenate([part.s for part in _seen(task)]))
    return int((found >= 0).sum())


def no_table(task: Task) -> str | None:
    """For every method: features must be a matrix of numbers."""
    for split in _splits(task):
        X = split.train.X
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            return "its models take rows of numbers, not images"
    return None


def no_network(task: Task) -> str | None:
    """For methods that train networks in batches: neither images nor boosted trees."""
    if task.model not in NETWORKS:
        return f"it trains networks in batches of rows, not {task.model}"
    return no_table(task)


def more_labels(task: Task) -> str | None:
    """For methods that know two labels only."""
    found = n_labels(task)
    return None if found <= 2 else f"it knows two labels only; these data have {found}"


def more_groups(task: Task) -> str | None:
    """For methods that know two groups only."""
    found = n_groups(task)
    return None if found <= 2 else f"it knows two groups only; these data have {found}"


def unknown_groups(task: Task) -> str | None:
    """For methods that need every row's sensitive value."""
    if any((part.s < 0).any() for split in _splits(task) for part in split):
        return "it needs the sensitive value of every row; some are unknown"
    return None


def one_label_in_a_group(task: Task) -> str | None:
    """For methods that need rows of every label in every group of the training rows."""
    for split in _splits(task):
        _, y, s = split.train
        cells = len(np.unique(np.stack([y, s]), axis=1).T)
        if cells < len(np.unique(y)) * len(np.unique(s)):
            return "it needs training rows of every label in every group"
    return None


def other_measure(task: Task, allowed: Sequence[str]) -> str | None:
    """For methods that serve some measures only."""
    return None if task.measure in allowed else f"it does not serve {task.measure}"


def other_desirable(task: Task) -> str | None:
    """For methods whose desirable label can only be 1."""
    if task.measure != "equality_of_opportunity" or tuple(task.y_desirable) == (1,):
        return None
    return f"its desirable label is 1, not {', '.join(map(str, task.y_desirable))}"


def _seen(task: Task) -> list[Encoded]:
    return [part for split in _splits(task) for part in (split.train, split.validation)]


def _splits(task: Task) -> list[Split]:
    return list(task.splits.values())
