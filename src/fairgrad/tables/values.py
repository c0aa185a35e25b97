"""What a column holds: numbers, dates or categories, and the names of its values."""

from __future__ import annotations

import numpy as np
import pandas as pd

MISSING_TEXTS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
"""Texts of a file that mean a missing value (those of pandas)."""

MOST_VALUES = 50
"""More classes, or more groups of one attribute, are taken for a mistake."""

OTHER = "(other)"
"""Name of the values merged because they are rare."""

_IDENTIFYING_SHARE = 0.5
"""A text column with more distinct values than this share of its rows identifies rows."""

_MOST_CODES = 20
"""More distinct whole numbers than this look like a quantity, not like codes."""

_MOST_SHOWN = 3


def column_kind(column: pd.Series) -> str:
    """``"number"``, ``"date"`` or ``"category"``; True and False are categories."""
    kinds = pd.api.types
    if kinds.is_datetime64_any_dtype(column.dtype):
        return "date"
    is_number = kinds.is_numeric_dtype(column.dtype) and not kinds.is_bool_dtype(column.dtype)
    return "number" if is_number else "category"


def plain_values(column: pd.Series) -> pd.Series:
    """Python's own decimals as numbers and its dates as dates; other columns as they are."""
    if column.dtype != object:
        return column
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "decimal":
        return column.astype("float64")
    return pd.to_datetime(column) if kind in {"date", "datetime"} else column


def as_numbers(column: pd.Series) -> np.ndarray:
    """A column of numbers as floats; NaN where a value is missing.

    Raises:
        ValueError: if a number is infinite.
    """
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        raise ValueError(f"the column {column.name!r} holds {infinite:,} infinite numbers")
    return numbers


def as_days(column: pd.Series) -> np.ndarray:
    """Dates, or texts of dates, as days since 1970 in UTC; NaN where a value is missing."""
    since = pd.to_datetime(column, utc=True) - pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray(since / pd.Timedelta(days=1), dtype=np.float64)


def is_quantity(column: pd.Series) -> bool:
    """Whether the column holds a quantity: fractions, or many different whole numbers."""
    if column_kind(column) != "number":
        return False
    known = column.dropna().to_numpy(dtype=np.float64)
    fractions = bool((known != np.round(known)).any())
    return len(np.unique(known)) > (2 if fractions else _MOST_CODES)


def identifies_rows(column: pd.Series) -> bool:
    """Whether a text column has a different value in most rows, as names and numbers do."""
    known = column.dropna()
    return len(known) > _MOST_CODES and known.nunique() > _IDENTIFYING_SHARE * len(known)


def numbers_rows(column: pd.Series) -> bool:
    """Whether the column counts the rows: 1, 2, 3, ..., or from any other whole number."""
    if len(column) <= _MOST_CODES or column_kind(column) != "number" or column.isna().any():
        return False
    return bool((np.diff(column.to_numpy(dtype=np.float64)) == 1).all())


def texts_among_numbers(column: pd.Series) -> str:
    """Some texts of a column that mixes texts and numbers, to be shown; empty if it does not.

    Mixed columns are nearly always faulty: "unknown" or "> 90" in a column of numbers.
    """
    if column_kind(column) != "category":
        return ""
    is_named = isinstance(column.dtype, pd.CategoricalDtype)
    distinct = pd.Series(column.cat.categories if is_named else column.dropna().unique())
    if distinct.empty:
        return ""
    numeric = pd.to_numeric(distinct.astype(str), errors="coerce").notna()
    python_types = {type(value) for value in distinct}
    if numeric.all() and len(python_types) == 1:
        return ""
    if numeric.mean() >= 0.5 or (len(python_types) > 1 and not numeric.all()):
        shown = ", ".join(repr(value) for value in distinct[~numeric].head(_MOST_SHOWN))
        return shown or "numbers in quotes"
    return ""


def value_name(value: object) -> str:
    """The value as text, without spaces around it; whole numbers without a decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def as_categories(column: pd.Series) -> pd.Series:
    """The column as named categories, in natural order; what is missing stays missing."""
    codes, values = pd.factorize(column)
    names = dict.fromkeys(value_name(value) for value in sorted(values, key=_natural))
    place = {name: code for code, name in enumerate(names)}
    # The extra last entry is where the code -1 of a missing value points.
    lookup = np.array([*(place[value_name(value)] for value in values), -1])
    named = pd.Categorical.from_codes(lookup[codes], categories=pd.Index(list(place), dtype=object))
    return pd.Series(named, index=column.index, name=column.name)


def merge_rare(column: pd.Series) -> pd.Series:
    """A categorical column with the rarest values merged, so that ``MOST_VALUES`` remain."""
    frequent = set(column.value_counts().index[: MOST_VALUES - 1])
    kept = [name for name in column.cat.categories if name in frequent]
    merged = column.cat.add_categories(OTHER).where(column.isin(kept) | column.isna(), OTHER)
    return merged.cat.set_categories([*kept, OTHER])


def _natural(value: object) -> tuple[int, float, str]:
    """Numbers by size, then texts by alphabet."""
    if isinstance(value, int | float | np.number | np.bool_):
        return (0, float(value), "")
    return (1, 0.0, str(value))
