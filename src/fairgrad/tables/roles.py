"""Which column of a table plays which part: target, sensitive columns, features."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.measures import desirable_labels
from fairgrad.splitting import hold_out
from fairgrad.tables.values import (
    MOST_VALUES,
    OTHER,
    as_categories,
    as_days,
    as_numbers,
    column_kind,
    identifies_rows,
    is_quantity,
    merge_rare,
    numbers_rows,
    texts_among_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

#: How to cut a numeric column: edges between the groups, or a number of groups.
Bins = Sequence[float] | int

TEST, VALIDATION = 0.2, 0.25
"""Share of the rows held out for the test, and of the other rows for validation."""

_NO_NAME = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """The rows of a table, ready to be split and encoded.

    Attributes:
        label: what is to be predicted, as named categories, the desirable one last.
        sensitive: one column of named categories per attribute; missing is unknown.
        features: columns of numbers and of named categories.
        left_out: rows left out, by reason.
        notes: what the reader should know about the columns.
    """

    label: pd.Series
    sensitive: pd.DataFrame
    features: pd.DataFrame
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What the reader should know about rows and columns."""
        left_out = [f"{n:,} rows are left out ({reason})." for reason, n in self.left_out.items()]
        return (*left_out, *self.notes)

    @property
    def values(self) -> list[str]:
        """The values of the label, the desirable one last."""
        return [str(value) for value in self.label.cat.categories]

    def labels(self, rows: NDArray[Any]) -> pd.Series:
        """The labels of some rows as texts."""
        texts = np.asarray(self.label.iloc[rows], dtype=object)
        return pd.Series(texts, name=self.label.name, dtype=object)

    def groups(self, rows: NDArray[Any]) -> pd.DataFrame:
        """The sensitive values of some rows."""
        return self.sensitive.iloc[rows].reset_index(drop=True)

    def split(self, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Row numbers of 60 % for training, 20 % for validation and 20 % for the test.

        Every label of every group has its share in each; a cell of one row is for training.
        """
        cell: Any = self.label.cat.codes.to_numpy(dtype=np.int64)
        for name in self.sensitive:
            codes = self.sensitive[name].cat
            cell = cell * (len(codes.categories) + 1) + codes.codes.to_numpy(dtype=np.int64) + 1
        rest, test = hold_out(cell, TEST, seed, "the share for the test")
        train, validation = hold_out(cell[rest], VALIDATION, seed, "the share for validation")
        return rest[train], rest[validation], test


@dataclass(frozen=True)
class ColumnRoles:
    """Which column plays which part.

    Attributes:
        target: what is to be predicted.
        sensitive: whose groups are to be treated alike.
        drop: not to be used.
        categorical: columns of numbers that are mere codes.
        bins: how to cut sensitive columns of numbers into groups.
        y_desirable: the desirable value of the target; None for that of `desirable_labels`.
        use_sensitive: whether the sensitive columns are features as well.
        prefix: of the arguments' names in errors; ``"--"`` in the program.
    """

    target: str
    sensitive: tuple[str, ...]
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    bins: Mapping[str, Bins] = field(default_factory=dict)
    y_desirable: str | None = None
    use_sensitive: bool = False
    prefix: str = ""

    def check(self, names: Sequence[str]) -> None:
        """Refuses columns that the table lacks, and one column in two parts."""
        p = self.prefix
        if not self.sensitive:
            raise ValueError(f"{p}sensitive is empty; name at least one column")
        check_named([self.target], names, f"{p}target")
        for argument in ("sensitive", "drop", "categorical", "bins"):
            check_named(getattr(self, argument), names, f"{p}{argument}")
        if self.target in self.sensitive:
            raise ValueError(
                f"{p}target and {p}sensitive both name {self.target!r}; name different columns"
            )
        needed = [name for name in self.drop if name in {self.target, *self.sensitive}]
        if needed:
            raise ValueError(
                f"{p}drop names {needed[0]!r}, which {p}target or {p}sensitive needs: name "
                "different columns. The target is never a feature, and sensitive columns are "
                "features only on request"
            )
        strangers = [name for name in self.bins if name not in self.sensitive]
        if strangers:
            raise ValueError(f"{p}bins names {strangers[0]!r}, which is not among {p}sensitive")

    def without_drop(self) -> ColumnRoles:
        """The same for a table whose dropped columns were not even read."""
        kept = tuple(name for name in self.categorical if name not in self.drop)
        return replace(self, drop=(), categorical=kept)

    def apply(self, frame: pd.DataFrame) -> LabelledTable:
        """Label, groups and features of a table; rows without a label are left out.

        Args:
            frame: columns of numbers, dates, texts or categories.

        Raises:
            ValueError: if a column cannot play its part; the message says why.
        """
        self.check([str(name) for name in frame.columns])
        labelled = frame[frame[self.target].notna()].reset_index(drop=True)
        n_left_out = len(frame) - len(labelled)
        label, groups = self.label(labelled), self.groups(labelled)
        unknown = {name: int(groups[name].isna().sum()) for name in groups}
        notes = [
            f"{name} is unknown in {n:,} rows; they are kept, in no group."
            for name, n in unknown.items()
            if n
        ]
        features, more = self._features(labelled)
        left_out = {f"no {self.target}": n_left_out} if n_left_out else {}
        return LabelledTable(label, groups, features, left_out, (*notes, *more))

    def label(self, frame: pd.DataFrame) -> pd.Series:
        """The target as named categories, the desirable one last.

        Raises:
            ValueError: if it has one value only, looks continuous, or lacks the desirable value.
        """
        column = self._column(frame, self.target)
        distinct = column.nunique()
        if distinct < 2:
            raise ValueError(
                f"the target {column.name!r} has {distinct} class in {len(column):,} rows; "
                "two or more are needed"
            )
        is_date = column_kind(column) == "date"
        if is_quantity(column) or is_date or distinct > MOST_VALUES or identifies_rows(column):
            raise ValueError(
                f"the target {column.name!r} has {distinct:,} different values and looks "
                "continuous; turn it into classes first, for example "
                f"table[{column.name!r}] > threshold"
            )
        label = self._named(column)
        names = list(label.cat.categories)
        if self.y_desirable not in {None, *names}:
            argument = f"{self.prefix}desirable" if self.prefix else "y_desirable"
            raise ValueError(
                f"{argument} is {self.y_desirable!r}; the values of {column.name!r} are "
                f"{', '.join(names)}"
            )
        desirable = self.desirable(names)
        return label.cat.reorder_categories(sorted(names, key=lambda name: name == desirable))

    def desirable(self, labels: Sequence[str]) -> str | None:
        """The desirable one of the labels; None if there are several and none was named."""
        found = desirable_labels(labels, self.y_desirable)
        return labels[found[0]] if found else None

    def groups(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The sensitive columns as named categories; missing values stay missing."""
        return pd.DataFrame({name: self._group_column(frame, name) for name in self.sensitive})

    def _group_column(self, frame: pd.DataFrame, name: str) -> pd.Series:
        column = frame[name]
        known = column.dropna()
        if known.empty:
            raise ValueError(f"the sensitive column {name!r} has no values")
        if name in self.bins:
            return _binned(column, self.bins[name], f"{self.prefix}bins")
        column = self._column(frame, name)
        distinct = known.nunique()
        if is_quantity(column):
            edge = _short(round(float(known.median()), 2 if known.abs().max() < 10 else 0))
            example = f'--bins "{name}={edge}"' if self.prefix else f"bins={{{name!r}: [{edge}]}}"
            raise ValueError(
                f"the sensitive column {name!r} has {distinct:,} different numbers; say how to "
                f"group them, for example {example}"
            )
        if distinct == len(known) or identifies_rows(column) or distinct > MOST_VALUES:
            raise ValueError(
                f"the sensitive column {name!r} has {distinct:,} different values in "
                f"{len(known):,} rows; a group needs many rows, so merge values or name another "
                "column"
            )
        if distinct < 2:
            raise ValueError(
                f"the sensitive column {name!r} has one value only, {known.iloc[0]!r}: "
                "there are no groups to compare"
            )
        return self._named(column)

    def _features(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
        """The features, columns of no use left out, and what the reader should know of them."""
        others = {self.target, *self.drop, *(() if self.use_sensitive else self.sensitive)}
        features, notes = {}, []
        for name in frame.columns:
            if name in others:
                continue
            column, note = self._feature(frame, str(name))
            if column is not None:
                features[str(name)] = column
            if note:
                notes.append(note)
        if not features:
            raise ValueError("no column is left as a feature")
        return pd.DataFrame(features), notes

    def _feature(self, frame: pd.DataFrame, name: str) -> tuple[pd.Series | None, str]:
        """The column as a feature (None: not usable), and what the reader should know about it."""
        column, reason = self._usable(frame, name)
        if reason:
            return None, f"{name} is left out: {reason}."
        missing = int(column.isna().sum())
        if column_kind(column) == "category":
            return _merged(self._named(column), missing)
        if column_kind(column) == "date":
            column = pd.Series(as_days(column), name=name)
        numbers = as_numbers(column)
        if not missing:
            return column, ""
        note = f"{name}: {missing:,} missing numbers, encoded as the median and marked."
        return pd.Series(numbers, name=name), note

    def _usable(self, frame: pd.DataFrame, name: str) -> tuple[pd.Series, str]:
        """The column, and why it is of no use as a feature; empty if it is."""
        if frame[name].isna().all():
            return frame[name], "it has no values"
        if _NO_NAME.fullmatch(name):
            return frame[name], "it has no name in the file"
        column, reason = self._column(frame, name), ""
        if column_kind(column) == "category" and identifies_rows(column):
            reason = "its texts differ in most rows"
        elif numbers_rows(column):
            reason = "it numbers the rows"
        return column, reason

    def _named(self, column: pd.Series) -> pd.Series:
        """A column that `_column` gave as named categories."""
        return column if column.name in self.categorical else as_categories(column)

    def _column(self, frame: pd.DataFrame, name: str) -> pd.Series:
        """The column, as categories where the user says so; refused if it mixes kinds."""
        if name in self.categorical:
            return as_categories(frame[name])
        texts = texts_among_numbers(frame[name])
        if texts:
            p = self.prefix
            raise ValueError(
                f"the column {name!r} mixes numbers and texts such as {texts}; clean it, name it "
                f"in {p}drop, or in {p}categorical if its values are mere names"
            )
        return frame[name]


def check_named(wanted: Iterable[str], names: Sequence[str], argument: str) -> None:
    """Refuses a column that the table lacks; names near it are suggested."""
    for name in wanted:
        if name not in names:
            raise ValueError(
                f"{argument} names the column {name!r}, which the table lacks; "
                f"{_suggestion(name, names)}"
            )


def number_column(frame: pd.DataFrame, name: str, argument: str) -> NDArray[np.float64]:
    """A column of numbers, such as scores or weights."""
    if column_kind(frame[name]) != "number":
        raise ValueError(f"{argument} names {name!r}, whose values are not numbers")
    return as_numbers(frame[name])


def _suggestion(name: str, names: Sequence[str]) -> str:
    lower = {known.lower(): known for known in names}
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
    if near:
        return "did you mean " + " or ".join(repr(known) for known in near) + "?"
    return f"its columns are {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"


def _merged(column: pd.Series, missing: int) -> tuple[pd.Series, str]:
    """A feature of categories, the rarest merged if there are many, and a note."""
    notes = []
    values = len(column.cat.categories)
    if values > MOST_VALUES:
        column = merge_rare(column)
        notes.append(f"{values:,} different values, the rarest merged into {OTHER}")
    if missing:
        notes.append(f"{missing:,} missing values, encoded as a category of their own")
    return column, f"{column.name}: {'; '.join(notes)}." if notes else ""


def _binned(column: pd.Series, bins: Bins, argument: str) -> pd.Series:
    """A numeric column cut into named groups: under 25, 25 to under 60, 60 and over."""
    values = number_column(column.to_frame(), str(column.name), argument)
    edges = _edges(column, bins, argument)
    middle = [f"{low} to under {high}" for low, high in itertools.pairwise(edges)]
    names = [f"under {edges[0]}", *middle, f"{edges[-1]} and over"]
    codes = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))
    if len(np.unique(codes[codes >= 0])) < 2:
        raise ValueError(f"{argument} puts all values of {column.name!r} into one group")
    grouped = pd.Categorical.from_codes(codes, categories=pd.Index(names))
    return pd.Series(grouped, index=column.index, name=column.name)


def _edges(column: pd.Series, bins: Bins, argument: str) -> list[float]:
    if isinstance(bins, int):
        if bins < 2:
            raise ValueError(
                f"{argument} asks for {bins} groups of {column.name!r}; two are the least"
            )
        quantiles = column.dropna().quantile(np.arange(1, bins) / bins)
        return list(dict.fromkeys(_short(edge) for edge in quantiles))
    edges = [_short(edge) for edge in bins]
    if not edges or edges != sorted(set(edges)):
        raise ValueError(f"{argument} of {column.name!r} is {list(bins)}; rising edges are needed")
    return edges


def _short(edge: float) -> float:
    """A whole number without its decimal point, so that names read well."""
    return int(edge) if float(edge).is_integer() else float(edge)
