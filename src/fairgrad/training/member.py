"""What one member of a stack is trained on, for what, and how fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fairgrad.groups import Groups, Ints
    from fairgrad.training.table import TrainingTable


@dataclass(frozen=True, eq=False, kw_only=True)
class Member:
    """One model of a stack. Members share the table, the network's shape and the batch size.

    Members with equal rows and seed see the same batches, which makes a sweep over the other
    settings cheapest: their features are gathered once and multiplied in one product.

    Attributes:
        rows: indices of its training rows; None for all rows of the table.
        validation: indices of the rows its epochs are judged on; None for its training rows.
        seed: of its initial weights, its shuffling and its dropout.
        learning_rate: step size of the weights.
        weight_decay: added to the gradient times the weights, as PyTorch's optimisers do.
        clip_norm: the gradient's largest Euclidean norm; infinity for none.
        fairness_measure: as in `fairgrad.torch.FairLoss`; None trains the plain model.
        epsilon: slack of the constraints.
        y_desirable: labels that some measures ask for.
        fairness_rate: step size of the multipliers; 0 trains a plain model whose levels of
            `fairness_measure` are recorded.
        proportional_rate: adds this times the current violation to the multipliers in use.
        error_memory: share of earlier batches kept in the error estimates.
        negative_weights: False clips the cells' weights at 0, for ablation only.
        frequencies: groups with the frequencies to use in place of those of the training rows, as
            when rows come bit by bit.

    Raises:
        ValueError: if a rate, the decay, the memory or the norm is out of its range.

    Example:
        >>> Member(fairness_measure="equalized_odds", epsilon=0.02).epsilon
        0.02
        >>> Member(learning_rate=-1.0)
        Traceback (most recent call last):
            ...
        ValueError: learning_rate: expected a finite number of at least 0, got -1.0.
    """

    rows: Ints | None = None
    validation: Ints | None = None
    seed: int = 0
    learning_rate: float = 0.1
    weight_decay: float = 0.0
    clip_norm: float = math.inf
    fairness_measure: Any = None
    epsilon: Any = 0.0
    y_desirable: Any = (1,)
    fairness_rate: float = 0.01
    proportional_rate: float = 0.0
    error_memory: float = 0.0
    negative_weights: bool = True
    frequencies: Groups | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "weight_decay", "fairness_rate", "proportional_rate"):
            check_number(name, getattr(self, name))
        check_number("error_memory", self.error_memory, below=1.0)
        if not (_is_number(self.clip_norm) and self.clip_norm > 0):
            raise ValueError(f"clip_norm: expected a number above 0, got {self.clip_norm!r}.")

    def indices(self, table: TrainingTable, part: str) -> Ints:
        """The checked row numbers of a part, "rows" or "validation".

        Raises:
            ValueError: if they are not numbers of rows of the table.
        """
        chosen = getattr(self, part)
        if chosen is None:
            return self.indices(table, "rows") if part == "validation" else np.arange(len(table))
        index: Ints = np.asarray(chosen)
        fits = index.ndim == 1 and len(index) and index.dtype.kind in "iu"
        if not fits or index.min() < 0 or index.max() >= len(table):
            raise ValueError(
                f"{part}: expected at least one row number from 0 to {len(table) - 1}, got {index}."
            )
        return index.astype(np.int64)


def check_number(name: str, value: Any, below: float = math.inf, least: float = 0.0) -> None:
    """Refuses what is not a finite number in [least, below).

    Raises:
        ValueError: naming the argument.
    """
    if not (_is_number(value) and least <= value < below):
        bound = "" if below == math.inf else f" and below {below:g}"
        raise ValueError(
            f"{name}: expected a finite number of at least {least:g}{bound}, got {value!r}."
        )


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuses what is not a whole number of at least `least`.

    Raises:
        ValueError: naming the argument.
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
