"""The label and the sensitive columns of a user's own table, as named categories."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fairgrad.datasets.columns import (
    MOST_VALUES,
    as_categories,
    check_not_mixed,
    identifies_rows,
    is_date,
    is_number,
    is_quantity,
    value_name,
)

#: How to cut a numeric column: edges between the groups, or a number of groups.
Bins = Sequence[float] | int


def label_column(column: pd.Series, positive: object = None) -> pd.Series:
    """The target as named categories, with the positive value last."""
    check_not_mixed(column)
    distinct = column.nunique()
    if distinct < 2:
        raise ValueError(
            f"the target {column.name!r} has {distinct} class in {len(column):,} rows; "
            "two or more are needed"
        )
    if is_quantity(column) or is_date(column) or distinct > MOST_VALUES or identifies_rows(column):
        raise ValueError(
            f"the target {column.name!r} has {distinct:,} different values and looks continuous; "
            f"turn it into classes first, for example table[{column.name!r}] > threshold"
        )
    label = as_categories(column)
    return label if positive is None else _positive_last(label, positive)


def sensitive_column(column: pd.Series, bins: Bins | None = None) -> pd.Series:
    """A sensitive column as named categories; missing values stay missing."""
    known = column.dropna()
    if known.empty:
        raise ValueError(f"the sensitive column {column.name!r} has no values")
    if bins is not None:
        return binned(column, bins)
    check_not_mixed(column)
    distinct = known.nunique()
    if is_quantity(column):
        raise ValueError(
            f"the sensitive column {column.name!r} has {distinct:,} different numbers; say how "
            f"to group them, for example bins={{{column.name!r}: [{_middle(known)}]}}"
        )
    if distinct == len(known) or identifies_rows(column) or distinct > MOST_VALUES:
        raise ValueError(
            f"the sensitive column {column.name!r} has {distinct:,} different values in "
            f"{len(known):,} rows; a group needs many rows, so merge values or name another column"
        )
    if distinct < 2:
        raise ValueError(
            f"the sensitive column {column.name!r} has one value only, {known.iloc[0]!r}: "
            "there are no groups to compare"
        )
    return as_categories(column)


def binned(column: pd.Series, bins: Bins) -> pd.Series:
    """A numeric column cut into groups.

    Examples:
        >>> binned(pd.Series([20, 25, 70, None], name="age"), [25, 60]).tolist()
        ['under 25', '25 to under 60', '60 and over', nan]
    """
    if not is_number(column):
        raise ValueError(f"bins names {column.name!r}, whose values are not numbers")
    edges = _edges(column, bins)
    middle = [f"{low} to under {high}" for low, high in itertools.pairwise(edges)]
    names = [f"under {edges[0]}", *middle, f"{edges[-1]} and over"]
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    codes = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))
    if len(np.unique(codes[codes >= 0])) < 2:
        raise ValueError(f"bins puts all values of {column.name!r} into one group")
    grouped = pd.Categorical.from_codes(codes, categories=pd.Index(names))
    return pd.Series(grouped, index=column.index, name=column.name)


def _edges(column: pd.Series, bins: Bins) -> list[float]:
    if isinstance(bins, int):
        if bins < 2:
            raise ValueError(f"bins asks for {bins} groups of {column.name!r}; two are the least")
        quantiles = column.dropna().quantile(np.arange(1, bins) / bins)
        return list(dict.fromkeys(_short(edge) for edge in quantiles))
    edges = [_short(edge) for edge in bins]
    if not edges or edges != sorted(set(edges)):
        raise ValueError(f"bins of {column.name!r} is {list(bins)}; rising edges are needed")
    return edges


def _short(edge: float) -> float:
    """A whole number without its decimal point, so that names read well."""
    return int(edge) if float(edge).is_integer() else float(edge)


def _middle(known: pd.Series) -> float:
    return _short(round(float(known.median())))


def _positive_last(label: pd.Series, positive: object) -> pd.Series:
    names, last = list(label.cat.categories), value_name(positive)
    if last not in names:
        raise ValueError(
            f"positive is {positive!r}; the values of {label.name!r} are {', '.join(names)}"
        )
    return label.cat.reorder_categories([*(name for name in names if name != last), last])
