"""Grids of hyper-parameters."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.methods.interface import Method, Settings, Task


def crossed(**choices: Sequence[Any]) -> list[Settings]:
    """All combinations of some choices.

    Example:
        >>> crossed(batch_size=(64, 512), weight_decay=(0.0,))
        [{'batch_size': 64, 'weight_decay': 0.0}, {'batch_size': 512, 'weight_decay': 0.0}]
    """
    return [dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]


def batch_and_decay(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - one for all models
    """The paper's six combinations of batch size and weight decay, or two of them.

    Both batch sizes are needed: small ones on small data, where large ones make too few steps.
    """
    if grid == "quick":
        return crossed(batch_size=(64, 512), weight_decay=(0.0,))
    return crossed(batch_size=(64, 512), weight_decay=(0.0, 0.001, 0.01))


def size_of_trees(grid: str) -> list[Settings]:
    """Six sizes of boosted trees, or one of them."""
    if grid == "quick":
        return crossed(num_leaves=(15,), min_child_samples=(50,))
    return crossed(num_leaves=(15, 31), min_child_samples=(20, 50, 100))


def usual(model: str, grid: str) -> list[Settings]:
    """Batch size and weight decay of networks, the size of trees."""
    return size_of_trees(grid) if model == "lightgbm" else batch_and_decay(model, grid)


def combinations(method: Method, task: Task) -> list[Settings]:
    """Those the task asks for, or else those of its grid."""
    if task.combinations is not None:
        return list(task.combinations)
    return method.settings(task.model, task.grid)
