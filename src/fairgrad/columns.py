"""Any column of values -> integer codes and the values they stand for.

Columns come as tensors, arrays, lists or pandas objects. None of those libraries is imported
here: what a column is, is read off its methods.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNKNOWN = -1
"""The code of a missing value, and the integer that means "unknown" in sensitive columns."""


class Codes(NamedTuple):
    """A column as integers: ``values[codes[i]]`` is row i, ``UNKNOWN`` where it is missing."""

    codes: NDArray[np.int64]
    values: NDArray[Any]


def as_columns(data: Any, argument: str) -> dict[str, Any]:
    """Splits one column, a matrix, a frame or a mapping of columns into named columns.

    A single unnamed column is called after the argument; the columns of a matrix are numbered.

    Raises:
        ValueError: if the data have more than two dimensions, or no column.
    """
    if isinstance(data, Mapping):
        return {str(name): column for name, column in data.items()}
    if hasattr(data, "columns"):  # a data frame
        return {str(name): data[name] for name in data.columns}
    if _is_series(data):
        return {argument if data.name is None else str(data.name): data}
    array = as_array(data)
    if array.ndim == 1:
        return {argument: array}
    if array.ndim == 2 and array.shape[1] > 0:
        return {f"{argument}{i}": array[:, i] for i in range(array.shape[1])}
    raise ValueError(
        f"{argument}: expected one value per row, or a table with one column per attribute; "
        f"got shape {array.shape}."
    )


def sensitive_columns(
    sensitive_features: Any, n_rows: int, argument: str = "sensitive_features", other: str = "X"
) -> dict[str, Any]:
    """Named columns of sensitive values, one value per row. A single unnamed one is called "s".

    Raises:
        ValueError: if a column has another number of rows.

    Example:
        >>> sensitive_columns(["F", "M"], 2)
        {'s': array(['F', 'M'], dtype=object)}
    """
    columns = as_columns(sensitive_features, argument)
    for name, column in columns.items():
        if len(column) != n_rows:
            raise ValueError(
                f"{argument}: expected one value per row of {other} ({n_rows}), got {len(column)} "
                f"in {name!r}."
            )
    return {"s": columns[argument]} if list(columns) == [argument] else columns


def _is_series(data: Any) -> bool:
    """Whether this is a pandas series or index (its bare arrays lack `to_frame`)."""
    return hasattr(data, "factorize") and hasattr(data, "to_frame")


def as_array(data: Any) -> NDArray[Any]:
    """A tensor (on any device), list or array-like as a NumPy array."""
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    array: NDArray[Any] = np.asarray(data)
    if isinstance(data, (list, tuple)) and array.dtype.kind in "SU":
        array = np.array(data, dtype=object)  # NumPy would turn 1 among strings into "1"
    return array


def encode(column: Any, argument: str, unknown: int | None = UNKNOWN) -> Codes:
    """Codes of a column, values in sorted order, missing values unknown.

    Args:
        column: a tensor, array, list or pandas series.
        argument: what to call the column in errors.
        unknown: the integer that means "missing", if there is one.

    Example:
        >>> codes, values = encode(["b", "a", None], "s")
        >>> codes.tolist(), values.tolist()
        ([1, 0, -1], ['a', 'b'])
    """
    if _is_series(column):
        codes, values = column.factorize(sort=True)
        found = Codes(np.asarray(codes, dtype=np.int64), np.asarray(values))
        _check_one_kind(found.values, argument)
    else:
        found = _encode_array(as_array(column), argument)
    return _integer_values(found, argument, unknown)


def _encode_array(array: NDArray[Any], argument: str) -> Codes:
    if array.ndim != 1:
        raise ValueError(f"{argument}: expected one value per row; got shape {array.shape}.")
    pandas = sys.modules.get("pandas")
    if pandas is not None:  # its hashing is much faster than sorting: used wherever it is loaded
        codes, values = pandas.factorize(array.astype(object) if array.dtype.kind == "U" else array)
        _check_one_kind(values, argument)
        order = np.argsort(values, kind="stable")
        rank = np.append(np.argsort(order), UNKNOWN)
        return Codes(rank[codes], np.asarray(values)[order])
    if array.dtype.kind in "biuSU":
        missing = np.zeros(len(array), dtype=bool)
    elif array.dtype.kind == "f":
        missing = np.isnan(array)
    else:
        missing = np.fromiter((_is_missing(value) for value in array), bool, len(array))
    codes = np.full(len(array), UNKNOWN, dtype=np.int64)
    _check_one_kind(array[~missing], argument)
    values, codes[~missing] = np.unique(array[~missing], return_inverse=True)
    return Codes(codes, values)


def _check_one_kind(values: NDArray[Any], argument: str) -> None:
    """Refuses a column of, say, strings and numbers, which have no common order."""
    if values.dtype.kind != "O":
        return
    kinds = {
        "int" if isinstance(value, (int, np.integer)) else type(value).__name__ for value in values
    }
    if len(kinds) > 1:
        raise TypeError(
            f"{argument}: values of one column must be of one kind; got {', '.join(sorted(kinds))}."
        )


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA: what is not equal to itself."""
    try:
        return value is None or not bool(value == value)  # noqa: PLR0124 - the test for NaN
    except TypeError:  # pandas' NA is neither true nor false
        return True


def _integer_values(found: Codes, argument: str, unknown: int | None) -> Codes:
    """Whole numbers become integers; other floats are refused."""
    codes, values = found
    if values.dtype.kind == "f":
        fractions = values[~(np.isfinite(values) & (values == np.floor(values)))]
        if len(fractions):
            raise ValueError(
                f"{argument}: expected categories or whole numbers, got values such as "
                f"{fractions[0]}; bin a continuous column first."
            )
    is_integer = values.dtype.kind in "biuf" or (
        values.dtype.kind == "O" and all(isinstance(v, (int, np.integer)) for v in values)
    )
    if not is_integer:
        return found
    values = values.astype(np.int64)
    keep = values != unknown if unknown is not None else np.ones(len(values), dtype=bool)
    renumbered = np.where(keep, np.cumsum(keep) - 1, UNKNOWN)
    return Codes(np.append(renumbered, UNKNOWN)[codes], values[keep])
