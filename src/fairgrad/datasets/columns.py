"""What kind of column is this? Guesses for users' own tables, and errors where none is safe."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A text column with more distinct values than this share of its rows identifies rows.
IDENTIFYING_SHARE = 0.5
#: More classes, or more groups of one attribute, are taken for a mistake.
MOST_VALUES = 50
#: Name of the values merged for being rare.
OTHER = "(other)"
#: More distinct whole numbers than this look like a quantity, not like codes.
_MOST_CODES = 20
_MOST_SHOWN = 3


def check_named(names: Iterable[str], frame: pd.DataFrame, argument: str) -> None:
    """Every named column exists; otherwise near matches are suggested."""
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{argument} names the column {name!r}, which the table lacks; "
                f"{_suggestion(name, list(frame.columns))}"
            )


def is_number(column: pd.Series) -> bool:
    """Whether the column holds numbers, whole or not; True and False count as categories."""
    kinds = pd.api.types
    return bool(kinds.is_numeric_dtype(column.dtype) and not kinds.is_bool_dtype(column.dtype))


def is_quantity(column: pd.Series) -> bool:
    """Whether the column holds a quantity: fractions, or many different whole numbers."""
    if not is_number(column):
        return False
    known = column.dropna().to_numpy(dtype=np.float64)
    fractions = bool((known != np.round(known)).any())
    return len(np.unique(known)) > (2 if fractions else _MOST_CODES)


def is_date(column: pd.Series) -> bool:
    """Whether the column holds points in time."""
    return bool(pd.api.types.is_datetime64_any_dtype(column.dtype))


def identifies_rows(column: pd.Series) -> bool:
    """Whether a text column has a different value in most rows, as names and numbers do."""
    known = column.dropna()
    return len(known) > _MOST_CODES and known.nunique() > IDENTIFYING_SHARE * len(known)


def check_not_mixed(column: pd.Series) -> None:
    """A column holds numbers or texts, not both: mixed ones are nearly always faulty."""
    known = column.dropna()
    if is_number(known) or is_date(known) or isinstance(known.dtype, pd.CategoricalDtype):
        return
    distinct = pd.Series(known.unique())
    numeric = pd.to_numeric(distinct.astype(str), errors="coerce").notna()
    python_types = {type(value) for value in distinct}
    if numeric.all() and len(python_types) == 1:
        return
    if numeric.mean() >= 0.5 or (len(python_types) > 1 and not numeric.all()):
        texts = ", ".join(repr(value) for value in distinct[~numeric].head(_MOST_SHOWN))
        texts = texts or "numbers in quotes"
        raise ValueError(
            f"the column {column.name!r} mixes numbers and texts such as {texts}; "
            "clean it, name it in drop, or in categorical if its values are mere names"
        )


def check_finite(column: pd.Series) -> None:
    """A column of numbers holds no infinity."""
    infinite = int(np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan)).sum())
    if infinite:
        raise ValueError(f"the column {column.name!r} holds {infinite:,} infinite numbers")


def as_categories(column: pd.Series) -> pd.Series:
    """The column as named categories, in natural order; what is missing stays missing."""
    known = column.dropna()
    distinct = sorted(known.unique(), key=_natural)
    names = list(dict.fromkeys(value_name(value) for value in distinct))
    texts = known.map({value: value_name(value) for value in distinct})
    values = pd.Categorical(texts.reindex(column.index), categories=pd.Index(names, dtype=object))
    return pd.Series(values, index=column.index, name=column.name)


def merge_rare(column: pd.Series, most: int = MOST_VALUES) -> pd.Series:
    """A categorical column with the rarest values merged into one, so that ``most`` remain."""
    frequent = column.value_counts().index[: most - 1]
    kept = [name for name in column.cat.categories if name in set(frequent)]
    merged = column.cat.add_categories(OTHER).where(column.isin(kept) | column.isna(), OTHER)
    return merged.cat.set_categories([*kept, OTHER])


def _natural(value: object) -> tuple[int, float, str]:
    """Numbers by size, then texts by alphabet."""
    if isinstance(value, int | float | np.number | np.bool_):
        return (0, float(value), "")
    return (1, 0.0, str(value))


def value_name(value: object) -> str:
    """The value as text; whole numbers without a decimal point.

    Examples:
        >>> value_name(1.0), value_name("yes"), value_name(True)
        ('1', 'yes', 'True')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _suggestion(name: str, columns: list[str]) -> str:
    lower = {column.lower(): column for column in columns}
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
    if near:
        return "did you mean " + " or ".join(repr(column) for column in near) + "?"
    shown = ", ".join(columns[:10]) + (", ..." if len(columns) > 10 else "")
    return f"its columns are {shown}"
