"""Apply a schema to a raw table: rows kept, values merged and named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.datasets.schema import Attribute, Feature, RowRule


def kept_rows(table: pd.DataFrame, rules: Sequence[RowRule]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Rows that satisfy every rule, and how many each rule left out (reason -> count)."""
    left_out: dict[str, int] = {}
    for rule in rules:
        keep = _satisfied(table, rule)
        if not keep.all():
            left_out[rule.reason] = int((~keep).sum())
            table = table[keep]
    return table.reset_index(drop=True), left_out


def _satisfied(table: pd.DataFrame, rule: RowRule) -> np.ndarray:
    keep = table[list(rule.columns)].notna().all(axis=1)
    for column in rule.columns:
        if rule.low is not None:
            keep &= table[column] >= rule.low
        if rule.high is not None:
            keep &= table[column] <= rule.high
        if rule.excluded:
            keep &= ~table[column].isin(rule.excluded)
    return keep.to_numpy(dtype=bool)


def feature_column(column: pd.Series, feature: Feature) -> pd.Series:
    """A feature with its values merged; categories in the schema's order, numbers untouched."""
    if not feature.categories:
        return column
    new_names: dict[Any, str] = {name: name for name in feature.categories}
    new_names.update(feature.merge)
    return _renamed(column, new_names, feature.categories, feature.other)


def attribute_column(column: pd.Series, attribute: Attribute) -> pd.Series:
    """A label or sensitive attribute as named categories; what is unknown stays missing."""
    if attribute.above is None:
        return _renamed(column, attribute.values, attribute.names, attribute.other)
    codes = np.where(column.isna(), -1, (column > attribute.above).astype(int))
    return _categories(codes, attribute.names, column.index)


def _renamed(
    column: pd.Series, new_names: Mapping[Any, str], names: Sequence[str], other: str
) -> pd.Series:
    """Map the distinct values only: a table has few of them and many rows."""
    codes, distinct = pd.factorize(column)
    position = {name: place for place, name in enumerate(names)}
    lookup = [_new_code(value, new_names, position, other, column.name) for value in distinct]
    # The extra last entry is where the code -1 of a missing value points.
    return _categories(np.array([*lookup, -1])[codes], names, column.index)


def _new_code(
    value: object,
    new_names: Mapping[Any, str],
    position: dict[str, int],
    other: str,
    column: object,
) -> int:
    name = new_names.get(value, new_names.get(str(value), other))
    if name not in position:
        raise ValueError(f"column {column!r} holds {value!r}, which its schema does not know")
    return position[name]


def _categories(codes: np.ndarray, names: Sequence[str], index: pd.Index) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(names)), index=index)
