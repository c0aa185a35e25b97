"""Any column of values -> integer codes and the values they stand for.

Columns come as tensors, arrays, lists, or frames and series of any library. None of those
libraries is imported here: a column's kind is recognized by its methods. narwhals converts the
frames of libraries other than pandas, and is imported on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.checks import warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNKNOWN = -1
"""The code of a missing value, and the integer that means "unknown" in sensitive columns."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Spreadsheets take texts that begin with one of these for formulas."""

OURS = frozenset({"builtins", "numpy", "torch", "pandas", "scipy"})
"""Libraries whose types need no conversion."""


class Codes(NamedTuple):
    """A column as integers: ``values[codes[i]]`` is row i, ``UNKNOWN`` where it is missing."""

    codes: NDArray[np.int64]
    values: NDArray[Any]


def as_pandas(data: Any) -> Any:
    """Converts a frame or column of polars, Arrow or another library to pandas.

    Anything else is returned unchanged. All functions that take tables use this one, so that a
    table means the same in every library. Lazy frames are computed. Missing values become NaN
    among numbers and None among texts. Categories stay categories.
    """
    homes = {cls.__module__.partition(".")[0] for cls in type(data).__mro__[:-1]}
    if homes & OURS:
        return data
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, arrow.RecordBatch):  # narwhals takes tables only
        data = arrow.Table.from_batches([data])
    elif arrow is not None and isinstance(data, arrow.Array):
        data = arrow.chunked_array([data])
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - most users never need it

    table = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if isinstance(table, nw.DataFrame):
        columns = {column.name: _pandas_column(column, nw) for column in table.iter_columns()}
        return nw.from_dict(columns, backend="pandas").to_native()
    return _pandas_column(table, nw) if isinstance(table, nw.Series) else data


def as_column(data: Any) -> Any:
    """Like `as_pandas` for one column; a table that has only one column becomes that column."""
    column = as_pandas(data)
    return column.iloc[:, 0] if column is not data and column.shape[1:] == (1,) else column


def _pandas_column(column: Any, nw: Any) -> Any:
    """The same values as a series of pandas."""
    kind = column.dtype
    is_category = isinstance(kind, (nw.Categorical, nw.Enum))
    # As texts: pyarrow 26 reads a missing category as the last one when asked for an array.
    values = (column.cast(nw.String) if is_category else column).to_numpy()
    made = nw.new_series(column.name or None, values, backend="pandas")
    # An Enum's values have no order that a model should learn from.
    return made.cast(kind).to_native().cat.as_unordered() if is_category else made.to_native()


def counted(n: int, noun: str) -> str:
    """A number of things in words: 1 row, 2,000 rows."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def without_formulas(frame: Any) -> Any:
    """Marks texts of a pandas frame that a spreadsheet would compute if it read them from a CSV.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break and is not a number
    gets an apostrophe in front. Spreadsheets read it as "text" and do not show it. Names of columns
    are marked, too. `with_formulas` removes the marks.
    """
    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"])
    marked = {name: texts[name].map(_marked) for name in texts}
    return frame.assign(**marked).rename(columns=_marked)


def with_formulas(values: Any) -> Any:
    """Removes the marks of `without_formulas` from a column of pandas."""
    return values.map(
        lambda text: text[1:] if text[:1] == "'" and _marked(text[1:]) == text else text
    )


def _marked(text: Any) -> Any:
    if not isinstance(text, str) or not text.startswith(FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def as_columns(data: Any, argument: str) -> dict[str, Any]:
    """Splits one column, a matrix, a frame or a mapping of columns into named columns.

    A single unnamed column is called after the argument; the columns of a matrix are numbered.
    """
    if isinstance(data, Mapping):
        return {str(name): as_pandas(column) for name, column in data.items()}
    data = as_pandas(data)
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
    """Named columns of sensitive values, one value per row. A single unnamed one is called "s"."""
    columns = as_columns(sensitive_features, argument)
    for name, column in columns.items():
        shape = tuple(column.shape if hasattr(column, "shape") else as_array(column).shape)
        if shape != (n_rows,):
            got = f"shape {shape}" if shape[1:] else shape[0] if shape else repr(column)
            raise ValueError(
                f"{argument}: expected one value per row of {other} ({n_rows}), got {got} "
                f"in {name!r}."
            )
    return {"s": columns[argument]} if list(columns) == [argument] else columns


def _is_series(data: Any) -> bool:
    """Whether this is a pandas series or index (its bare arrays lack `to_frame`)."""
    return hasattr(data, "factorize") and hasattr(data, "to_frame")


def as_array(data: Any) -> NDArray[Any]:
    """A tensor (on any device), list, frame or array-like as a NumPy array."""
    data = as_pandas(data)
    if hasattr(data, "detach"):
        data = data.detach().cpu()
    array: NDArray[Any] = np.asarray(data)
    if isinstance(data, (list, tuple)) and array.dtype.kind in "SU":
        array = np.array(data, dtype=object)  # NumPy would turn 1 among strings into "1"
    return array


def encode(column: Any, argument: str, unknown: int | None = UNKNOWN) -> Codes:
    """Codes of a column, values in sorted order, missing values unknown.

    Whole numbers become integers.

    Args:
        column: a tensor, array, list, or a series of any library.
        argument: what to call the column in errors.
        unknown: the integer that means "missing"; None if no integer does.

    Raises:
        TypeError: if the values are of several kinds, which have no common order.
        ValueError: if there is not one value per row, or they are fractions or too large.
    """
    column = as_pandas(column)
    if _is_series(column) and column.dtype != object:  # objects may have no common order
        codes, values = map(np.asarray, column.factorize(sort=True))
        if values.dtype == object:
            _check_one_kind(values, argument)
    else:
        codes, values = _encode_array(as_array(column), argument)
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
        return Codes(codes.astype(np.int64, copy=False), values)
    if len(values) and not -(2**63) <= int(values.min()) <= int(values.max()) < 2**63:
        raise ValueError(
            f"{argument}: expected whole numbers of 64 bits, got {values.min()} to {values.max()}; "
            "pass such long numbers as texts."
        )
    values = values.astype(np.int64)
    keep = values != unknown if unknown is not None else np.ones(len(values), dtype=bool)
    renumbered = np.where(keep, np.cumsum(keep) - 1, UNKNOWN)
    return Codes(np.append(renumbered, UNKNOWN)[codes], values[keep])


def codes_among(
    column: Codes, values: NDArray[Any], argument: str, name: str = ""
) -> NDArray[np.int64]:
    """(n,) the position of each value of an encoded column in `values`; -1 if it is missing.

    Args:
        column: a result of `encode`.
        values: the known values.
        argument: what to call the column, or its table, in messages.
        name: the column's name. With it, a value that is not known counts as missing, with a
            warning; without it, such a value is an error.

    Raises:
        ValueError: if a value was never seen, and `name` is empty.
    """
    place = {value: index for index, value in enumerate(values.tolist())}
    present = column.values.tolist()
    table = np.array([*(place.get(value, UNKNOWN) for value in present), UNKNOWN], dtype=np.int64)
    codes: NDArray[np.int64] = table[column.codes]
    unseen = column.codes[(codes == UNKNOWN) & (column.codes != UNKNOWN)]
    if len(unseen) and not name:
        raise ValueError(
            f"{argument}: got {str(present[unseen[0]])!r}, which was never seen; the known values "
            f"are {values.tolist()}."
        )
    if len(unseen):
        warn(
            f"{argument}: {name} has values that were never seen, such as "
            f"{str(present[unseen[0]])!r}; they are taken as unknown. The known ones are "
            f"{values.tolist()}."
        )
    return codes


def _encode_array(array: NDArray[Any], argument: str) -> Codes:
    if array.ndim != 1:
        raise ValueError(f"{argument}: expected one value per row; got shape {array.shape}.")
    if array.dtype.kind in "bi":
        values, codes = distinct(array.astype(np.int64))
        return Codes(codes, values)
    if array.dtype.kind not in "OU":
        missing = array != array  # noqa: PLR0124 - NaN and NaT
        codes = np.full(len(array), UNKNOWN, dtype=np.int64)
        values, codes[~missing] = np.unique(array[~missing], return_inverse=True)
        return Codes(codes, values)
    items = array.tolist()
    known = [value for value in dict.fromkeys(items) if not _is_missing(value)]
    _check_one_kind(known, argument)
    known.sort()
    place = {value: code for code, value in enumerate(known)}
    values = np.empty(len(known), dtype=object)
    values[:] = known
    return Codes(np.array([place.get(item, UNKNOWN) for item in items], dtype=np.int64), values)


def distinct(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Like `np.unique` with the inverse; if the numbers span a small range, it counts them."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if high - low > max(len(numbers), 1 << 16):
        return np.unique(numbers, return_inverse=True)
    seen = np.bincount(numbers - low) > 0
    return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[numbers - low]


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA: what is not equal to itself."""
    try:
        return value is None or not bool(value == value)  # noqa: PLR0124 - the test for NaN
    except TypeError:  # pandas' NA is neither true nor false
        return True


def _check_one_kind(values: Any, argument: str) -> None:
    """Refuses a column of, say, strings and numbers, which have no common order."""
    kinds = {
        "int" if isinstance(value, (int, np.integer)) else type(value).__name__ for value in values
    }
    if len(kinds) > 1:
        raise TypeError(
            f"{argument}: values of one column must be of one kind; got {', '.join(sorted(kinds))}."
        )
