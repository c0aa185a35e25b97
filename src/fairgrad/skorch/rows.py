"""Training rows that carry their sensitive values, after skorch has split the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from skorch.utils import data_from_dataset, to_numpy
from torch.utils.data import Subset

from fairgrad.columns import as_columns

if TYPE_CHECKING:
    from fairgrad.groups import Ints


class WithSensitive(NamedTuple):
    """Features and sensitive values, of a row or of a batch: data loaders keep the type."""

    features: Any
    s: Any


class SensitiveRows(Subset[Any]):
    """A data set whose features are joined by sensitive values.

    It is a `Subset` of all rows because skorch looks through those: what scores predictions on
    the training rows finds the features and labels there.

    Args:
        rows: a data set of (features, label).
        s: the sensitive value of each row, as integers.
    """

    def __init__(self, rows: Any, s: Ints) -> None:
        super().__init__(rows, list(range(len(s))))
        self.s = s

    def __getitem__(self, i: Any) -> tuple[WithSensitive, Any]:
        features, label = self.dataset[i]
        return WithSensitive(features, self.s[i]), label

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[i] for i in indices]


def check_sensitive(sensitive_features: Any, n_rows: int) -> dict[str, Any]:
    """Named sensitive columns.

    Raises:
        ValueError: if they are missing or not one per row.
    """
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features: required to fit; call fit(X, y, sensitive_features=...)."
        )
    columns = as_columns(sensitive_features, "s")
    for column in columns.values():
        if len(column) != n_rows:
            raise ValueError(
                f"sensitive_features: expected one value for each of {n_rows} rows, "
                f"got {len(column)}."
            )
    return columns


def take(columns: dict[str, Any], index: Ints) -> dict[str, Any]:
    """The columns of some rows."""
    return {name: _safe_indexing(column, index) for name, column in columns.items()}


def index_of(part: Any, whole: Any) -> Ints:
    """Which rows of a data set a part of it has.

    Raises:
        ValueError: if the part is not made of the rows of the whole.
    """
    if part is whole:
        return np.arange(len(whole))
    if isinstance(part, Subset):
        inner = index_of(part.dataset, whole)
        return inner[np.asarray(part.indices, dtype=np.int64)]
    raise ValueError(
        "train_split: expected the training part to be the data set or a torch Subset of it, so "
        f"that sensitive values follow their rows; got {type(part).__name__}."
    )


def labels_of(X: Any, y: Any) -> Any:
    """(n,) labels, given or inside a skorch data set.

    Raises:
        ValueError: if they are in a data set that does not show them.
    """
    if y is None:
        try:
            _, y = data_from_dataset(X)
        except AttributeError:
            y = None
    if y is None:
        raise ValueError(
            f"y: required, as {type(X).__name__} does not show its labels; pass them beside it."
        )
    return to_numpy(y)
