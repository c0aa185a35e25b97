"""The rows a frontier is trained on and judged on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing, check_consistent_length

from fairgrad.columns import as_array, encode
from fairgrad.groups import Groups
from fairgrad.sklearn.sensitive import check_rows

if TYPE_CHECKING:
    from fairgrad.groups import Ints


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows.

    Attributes:
        X: features as the user gives them.
        y: (n,) labels.
        s: named sensitive columns.
        weight: (n,) sample weights, or None.
    """

    X: Any
    y: Any
    s: dict[str, Any]
    weight: Any = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Ints) -> Part:
        """Some of the rows."""
        return Part(
            _safe_indexing(self.X, rows),
            _safe_indexing(self.y, rows),
            {name: _safe_indexing(column, rows) for name, column in self.s.items()},
            None if self.weight is None else as_array(self.weight)[rows],
        )

    @property
    def sensitive_features(self) -> Any:
        """One column as it is, several as a data frame."""
        if len(self.s) == 1:
            return next(iter(self.s.values()))
        return pd.DataFrame({name: np.asarray(column) for name, column in self.s.items()})

    @property
    def group(self) -> Ints:
        """(n,) numbers of the groups; those with unknown values are groups, too."""
        return Groups.from_data(self.y, self.s).group_index(self.s)


def read_part(X: Any, y: Any, sensitive_features: Any, weight: Any = None) -> Part:
    """Checks the lengths of the columns and names the sensitive ones.

    Raises:
        ValueError: if sensitive values are missing or lengths differ.
    """
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features: required, one value per row, to know how fair the models are."
        )
    check_consistent_length(X, y, weight)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    y = y if hasattr(y, "iloc") else as_array(y)
    return Part(X, y, check_rows(sensitive_features, n), weight)


def as_columns_of(given: Any, argument: str) -> tuple[Any, ...]:
    """Features, labels, sensitive values and weights of an argument that holds them all.

    Raises:
        ValueError: if there are not three or four of them.
    """
    columns = tuple(given)
    if len(columns) not in {3, 4}:
        raise ValueError(
            f"{argument}: expected (X, y, sensitive_features) or (X, y, sensitive_features, "
            f"sample_weight), got {len(columns)} entries."
        )
    return columns if len(columns) == 4 else (*columns, None)


def hold_out(part: Part, fraction: float, seed: int) -> tuple[Ints, Ints]:
    """Splits the rows at random, every label of every group in the same proportion.

    Of a cell of n rows, ``floor(fraction n)`` are held out: tiny cells stay in training.

    Returns:
        The rows to train on, and those held out.

    Raises:
        ValueError: if the fraction is not between 0 and 1, or no row would be held out.
    """
    if not 0 < fraction < 1:
        raise ValueError(
            f"validation_fraction: expected a share between 0 and 1, got {fraction!r}."
        )
    label = encode(part.y, "y", unknown=None).codes
    cell = label * (part.group.max() + 1) + part.group
    order = np.random.default_rng(seed).permutation(len(cell))
    order = order[np.argsort(cell[order], kind="stable")]  # by cell, at random within
    _, first, index, n = np.unique(
        cell[order], return_index=True, return_inverse=True, return_counts=True
    )
    place = np.arange(len(order)) - first[index]
    is_held = place < np.floor(fraction * n)[index]
    if not is_held.any():
        raise ValueError(
            f"validation_fraction: {fraction!r} of {len(cell)} rows leaves none to judge on."
        )
    return np.sort(order[~is_held]), np.sort(order[is_held])
