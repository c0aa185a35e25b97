"""Where the sensitive values of rows come from: an argument, or columns of X."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.columns import as_columns
from fairgrad.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Ints


def split_columns(X: Any, columns: Any, n_features: int | None = None) -> tuple[Any, Any]:
    """Takes sensitive columns out of X.

    Args:
        X: a data frame (columns by name) or an array (columns by position).
        columns: one name or position, or several; None for none.
        n_features: how many features a fitted model has. Then the sensitive columns may be missing
            from X already: predictions never need them.

    Returns:
        The features, and the sensitive columns (None if there are none).

    Raises:
        ValueError: if a column is not there.
    """
    if columns is None:
        return X, None
    names = list(columns) if isinstance(columns, (list, tuple, np.ndarray)) else [columns]
    if hasattr(X, "columns"):
        return _split_frame(X, names, fitted=n_features is not None)
    width = np.shape(X)[1] if np.ndim(X) == 2 or hasattr(X, "tocsr") else 0
    if n_features is not None and width == n_features:
        return X, None
    if not all(isinstance(name, (int, np.integer)) and -width <= name < width for name in names):
        raise ValueError(
            f"sensitive_columns: expected positions of columns from 0 to {width - 1}, as X is not "
            f"a data frame; got {names}."
        )
    places = [int(name) % width for name in names]
    rest = [place for place in range(width) if place not in places]
    if hasattr(X, "tocsr"):
        return X.tocsr()[:, rest], np.asarray(X.tocsr()[:, places].toarray())
    array = np.asarray(X)
    return array[:, rest], {f"column {place}": array[:, place] for place in places}


def _split_frame(X: Any, names: Sequence[Any], *, fitted: bool) -> tuple[Any, Any]:
    missing = [name for name in names if name not in X.columns]
    if missing and not fitted:
        raise ValueError(
            f"sensitive_columns: expected columns of X, got {missing}; X has {list(X.columns)}."
        )
    present = [name for name in names if name in X.columns]
    return X.drop(columns=present), None if missing else X[present]


def choose(sensitive_features: Any, from_columns: Any, measure: Any) -> Any:
    """The sensitive values to use; None for a plain model.

    Raises:
        ValueError: if they are missing, or given twice.
    """
    if measure is None:
        return None
    if sensitive_features is not None and from_columns is not None:
        raise ValueError(
            "sensitive_features: given although sensitive_columns names columns of X; give one."
        )
    found = from_columns if sensitive_features is None else sensitive_features
    if found is None:
        raise ValueError(
            "sensitive_features: required, one value per row, as fairness_measure is "
            f"{measure!r}; pass fit(X, y, sensitive_features=...), or sensitive_columns= to name "
            "columns of X, or fairness_measure=None for a plain model."
        )
    return found


def check_rows(sensitive_features: Any, n_rows: int) -> Any:
    """Named columns of sensitive values.

    Raises:
        ValueError: if there is not one value per row of X.
    """
    columns = as_columns(sensitive_features, "sensitive_features")
    for name, column in columns.items():
        if len(column) != n_rows:
            raise ValueError(
                f"sensitive_features: expected one value per row of X ({n_rows}), got "
                f"{len(column)} in {name!r}."
            )
    if list(columns) == ["sensitive_features"]:
        return {"s": columns["sensitive_features"]}
    return columns


def group_rows(label: Ints, classes: NDArray[Any], s: Any, weight: Any, label_name: str) -> Groups:
    """Groups of a training set whose labels are the indices of `classes`."""
    found = Groups.from_data(label, s, weight)
    mass = np.zeros((len(classes), found.n_groups))
    mass[found.labels] = found.mass
    return replace(found, labels=classes, mass=mass, label_name=label_name)


def add_rows(groups: Groups, label: Ints, s: Any, weight: Any) -> tuple[Groups, Ints]:
    """Known groups with more rows, and the group of each of these.

    Raises:
        ValueError: if a row's group was never seen.
    """
    group = groups.group_index(s)
    more = np.zeros_like(groups.mass)
    np.add.at(more, (label, group), 1.0 if weight is None else weight)
    return replace(groups, mass=groups.mass + more), group


def without_rows(groups: Groups) -> Groups:
    """The same groups, nobody in them."""
    return replace(groups, mass=np.zeros_like(groups.mass))


def one_group(label: Ints, classes: NDArray[Any], weight: Any) -> Groups:
    """All rows in one group, for plain models."""
    return group_rows(label, classes, np.zeros(len(label), dtype=np.int64), weight, "y")
