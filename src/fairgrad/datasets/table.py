"""The user's own table as a data set: ``from_table``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.datasets.attributes import Bins, label_column, sensitive_column
from fairgrad.datasets.columns import (
    MOST_VALUES,
    OTHER,
    as_categories,
    check_finite,
    check_named,
    check_not_mixed,
    identifies_rows,
    is_date,
    is_number,
    merge_rare,
)
from fairgrad.datasets.dataset import Dataset
from fairgrad.datasets.userfile import as_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def from_table(
    table: str | Path | pd.DataFrame,
    *,
    target: str,
    sensitive: str | Sequence[str],
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    bins: Mapping[str, Bins] | None = None,
    positive: object = None,
    unknown_sensitive: str = "keep",
) -> Dataset:
    """Make a data set of the user's own CSV or Parquet file, or DataFrame.

    Columns of numbers become numeric features, others categories; texts that differ in most rows
    (names, numbers of records) are left out. ``print(data.describe())`` says what was done.

    Args:
        table: Path of a CSV, TSV or Parquet file, or a DataFrame.
        target: Column to predict: two or more classes. Rows where it is missing are left out.
        sensitive: Column or columns whose groups are to be treated alike; they are not features.
        drop: Columns not to use.
        categorical: Columns of numbers that are mere codes, to be treated as categories.
        bins: How to cut a numeric sensitive column into groups: ``{"age": [25, 60]}`` gives
            "under 25", "25 to under 60" and "60 and over"; ``{"age": 4}`` gives four groups of
            about equal size.
        positive: The target's value that should get the code 1 (the last code, with more than
            two classes); by default the last in natural order.
        unknown_sensitive: What a missing sensitive value means: ``"keep"`` the row, its group
            unknown (code -1), or ``"error"``.

    Returns:
        The data set.

    Raises:
        ValueError: The file or one of its columns cannot be used; the message says why.

    Examples:
        >>> people = pd.DataFrame({"age": [31, 45, 22, 67, 38, 51], "sex": list("fmfmfm"),
        ...                        "hired": ["no", "yes", "no", "no", "yes", "yes"]})
        >>> data = from_table(people, target="hired", sensitive="sex")
        >>> data.label_names, data.group_names
        (('no', 'yes'), ('sex=f', 'sex=m'))
        >>> data.y.tolist(), data.s.tolist()
        ([0, 1, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1])
    """
    frame, name = as_frame(table)
    attributes = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    _check_arguments(frame, target, attributes, drop, categorical, bins or {}, unknown_sensitive)
    labelled = frame[frame[target].notna()].reset_index(drop=True)
    left_out = len(frame) - len(labelled)
    label = label_column(labelled[target], positive)
    groups = {a: sensitive_column(labelled[a], (bins or {}).get(a)) for a in attributes}
    notes = _unknown_notes(groups, unknown_sensitive)
    others = labelled.drop(columns=[target, *attributes, *drop])
    features, feature_notes = feature_columns(others, categorical)
    return Dataset(
        name=name,
        title=name,
        frame=features,
        label=label,
        sensitive=pd.DataFrame(groups),
        left_out={f"no {target}": left_out} if left_out else {},
        notes=(*notes, *feature_notes),
    )


def _check_arguments(
    frame: pd.DataFrame,
    target: str,
    sensitive: list[str],
    drop: Sequence[str],
    categorical: Sequence[str],
    bins: Mapping[str, Bins],
    unknown_sensitive: str,
) -> None:
    if not sensitive:
        raise ValueError("sensitive is empty; name at least one column")
    named = {"target": [target], "sensitive": sensitive, "drop": drop, "categorical": categorical}
    for argument, names in named.items():
        if isinstance(names, str):
            raise TypeError(f"{argument} is the text {names!r}; a list of columns is needed")
        check_named(names, frame, argument)
    if target in sensitive or target in drop or set(sensitive) & set(drop):
        raise ValueError("target, sensitive and drop must name different columns")
    strangers = [name for name in bins if name not in sensitive]
    if strangers:
        raise ValueError(f"bins names {strangers[0]!r}, which is not among sensitive {sensitive}")
    if unknown_sensitive not in {"keep", "error"}:
        raise ValueError(
            f"unknown_sensitive is {unknown_sensitive!r}; allowed are 'keep' and 'error'"
        )


def _unknown_notes(groups: Mapping[str, pd.Series], unknown_sensitive: str) -> list[str]:
    notes = []
    for name, column in groups.items():
        count = int(column.isna().sum())
        if count and unknown_sensitive == "error":
            raise ValueError(
                f"the sensitive column {name!r} has {count:,} missing values; fill them in, or "
                'pass unknown_sensitive="keep" to keep these rows without a group'
            )
        if count:
            notes.append(f"{name} is unknown in {count:,} rows; they are kept, in no group.")
    return notes


def feature_columns(
    frame: pd.DataFrame, categorical: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Columns as features, those of no use left out, and what the reader should know of them."""
    features, notes = {}, []
    for name in frame:
        column, note = _feature(frame[name], str(name) in categorical)
        if column is not None:
            features[str(name)] = column
        if note:
            notes.append(note)
    if not features:
        raise ValueError("no column is left as a feature")
    return pd.DataFrame(features), notes


def _feature(column: pd.Series, categorical: bool) -> tuple[pd.Series | None, str]:
    """The column as a feature (None: not usable), and what the reader should know about it."""
    name, missing = column.name, int(column.isna().sum())
    if missing == len(column):
        return None, f"{name} is left out: it has no values."
    if is_date(column):
        column, categorical = _days(column), False
    if not categorical:
        check_not_mixed(column)
    if is_number(column) and not categorical:
        check_finite(column)
        note = f"{name}: {missing:,} missing numbers, encoded as the median and marked."
        return column.astype("float64") if missing else column, note if missing else ""
    if identifies_rows(column):
        return None, f"{name} is left out: its texts differ in most rows."
    return _categorical_feature(as_categories(column), missing)


def _categorical_feature(column: pd.Series, missing: int) -> tuple[pd.Series, str]:
    notes = []
    values = len(column.cat.categories)
    if values > MOST_VALUES:
        column = merge_rare(column)
        notes.append(f"{values:,} different values, the rarest merged into {OTHER}")
    if missing:
        notes.append(f"{missing:,} missing values, encoded as a category of their own")
    return column, f"{column.name}: {'; '.join(notes)}." if notes else ""


def _days(column: pd.Series) -> pd.Series:
    """Points in time as days since 1970."""
    since = column - pd.Timestamp("1970-01-01", tz=column.dt.tz)
    return pd.Series(since / pd.Timedelta(days=1), name=column.name)
