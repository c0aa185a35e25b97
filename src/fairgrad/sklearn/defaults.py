"""Settings that depend on the data when the user leaves them to the library."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SMALL_TABLE = 10_000
"""Below so many rows exact fairness tends to cost much accuracy, and defaults are gentle."""

TOLERATED_LOSS = 0.05
"""Accuracy a fair model may lose against the plain one before a warning."""

LARGE_TABLE_RATES = (0.05, 2.0)
"""Fairness rate and proportional rate that reach exact fairness."""

SMALL_TABLE_RATES = (
    (0.001, 0.1),
    (0.002, 0.2),
    (0.005, 0.5),
    (0.01, 0.5),
    (0.02, 1.0),
    (0.05, 2.0),
)
"""From gentle to exact; trained side by side, at little more than the cost of one."""

CLIP_NORM = 0.1
"""Of fair networks. Rows of negative weight have a loss without a lower bound: a network's
gradient grows on it, a linear model's does not. The paper clips at 0.05. On small tables there are
too few steps to diverge, and too few to get anywhere in such small ones."""

EPOCHS, LEAST_STEPS = 30, 300
"""Passes over the rows, and steps below which there are more."""


def candidate_rates(
    fairness_rate: Any, proportional_rate: Any, n_rows: int, *, one: bool
) -> list[tuple[float, float]]:
    """Pairs of fairness rate and proportional rate to train side by side.

    Args:
        fairness_rate: a number, or "auto".
        proportional_rate: a number, or "auto".
        n_rows: of the table.
        one: whether only one pair can be trained, as when training goes on from another model.
    """
    _check_auto("fairness_rate", fairness_rate)
    _check_auto("proportional_rate", proportional_rate)
    several = n_rows < SMALL_TABLE and isinstance(fairness_rate, str) and not one
    pairs = SMALL_TABLE_RATES if several else (LARGE_TABLE_RATES,)
    return [
        (
            rate if isinstance(fairness_rate, str) else fairness_rate,
            proportional if isinstance(proportional_rate, str) else proportional_rate,
        )
        for rate, proportional in pairs
    ]


def _check_auto(name: str, value: Any) -> None:
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"{name}: expected a number or 'auto', got {value!r}.")


def resolve_epochs(value: Any, n_rows: int, batch_size: int) -> Any:
    """The epochs, or the default if they are "auto": 30, and more where these are few steps."""
    if not isinstance(value, str):
        return value
    if value != "auto":
        raise ValueError(f"max_iter: expected a whole number or 'auto', got {value!r}.")
    steps = math.ceil(n_rows / batch_size)
    return max(EPOCHS, math.ceil(LEAST_STEPS / steps))


def resolve_clip(value: Any, hidden: Sequence[int], fairness_measure: Any, n_rows: int) -> Any:
    """The gradient's largest norm; "auto" clips fair networks on large tables, None is infinity."""
    if isinstance(value, str):
        _check_auto("clip_norm", value)
        may_grow = len(hidden) and fairness_measure is not None and n_rows >= SMALL_TABLE
        value = CLIP_NORM if may_grow else None
    return math.inf if value is None else value


def desirable_labels(y_desirable: Any, classes: NDArray[Any]) -> Any:
    """The labels some measures speak of: the given ones, or the second of two classes."""
    if y_desirable is not None:
        return y_desirable
    return np.asarray(classes[1:2]) if len(classes) == 2 else ()
