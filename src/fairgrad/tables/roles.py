"""The role of each column of a table, and which of its values mean the same."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import counted
from fairgrad.measures import desirable_labels
from fairgrad.splitting import TEST, SplitRows, folds, three_parts
from fairgrad.tables.column import (
    MOST_VALUES,
    ReadingReport,
    as_categories,
    as_numbers,
    checked_column,
    column_kind,
    cut_names,
    cut_numbers,
    identifies_rows,
    is_quantity,
    other_decimal,
    texts_among_numbers,
    value_name,
    why_left_out,
)
from fairgrad.tables.hints import find_copies, hints, repeated_identifiers, sentinel_hints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.tables.column import Times
    from fairgrad.tables.encoder import TableEncoder


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """The rows of a table, ready to be split and encoded.

    Attributes:
        label: what is to be predicted, as named categories, the desirable one last.
        sensitive: one column of named categories per attribute; missing is unknown.
        features: columns of numbers and of named categories.
        encoder: turns them, and later tables, into numbers.
        notes: what the reader should know about rows and columns.
        rows: (n,) the number of each row in the table it comes from.
        copies: (n,) the first row that is identical to each row; None if copies are people of
            their own.
    """

    label: pd.Series
    sensitive: pd.DataFrame
    features: pd.DataFrame
    encoder: TableEncoder
    notes: tuple[str, ...]
    rows: NDArray[Any]
    copies: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def values(self) -> list[str]:
        """The values of the label, the desirable one last."""
        return [str(value) for value in self.label.cat.categories]

    @property
    def cell(self) -> NDArray[Any]:
        """(n,) a number for each row's label and group."""
        cell: Any = self.label.cat.codes.to_numpy(dtype=np.int64)
        for name in self.sensitive:
            codes = self.sensitive[name].cat
            cell = cell * (len(codes.categories) + 1) + codes.codes.to_numpy(dtype=np.int64) + 1
        return np.asarray(cell)

    def split(self, seed: int, test: float = TEST) -> SplitRows:
        """Row numbers: `test` of the rows for the test, a quarter of the others for validation.

        Every label of every group has its share in each; a cell of one row is for training.
        """
        return self._with_copies(three_parts(self.cell, seed, test=test))

    def folds(self, seed: int, n_folds: int) -> list[SplitRows]:
        """The same for cross-validation: every row is a test row once, but for cells of one row."""
        return [self._with_copies(rows) for rows in folds(self.cell, n_folds, seed)]

    def _with_copies(self, split: SplitRows) -> SplitRows:
        """The same split, with each copy of a row on the side of that row."""
        if self.copies is None:
            return split
        side = np.empty(len(self), dtype=np.int64)
        for number, rows in enumerate(split):
            side[rows] = number
        side = side[self.copies]
        return SplitRows(*(np.flatnonzero(side == number) for number in range(len(split))))


@dataclass(frozen=True)
class ColumnRoles:
    """The role of each column.

    Attributes:
        target: what is to be predicted; predictions or scores if true values are not known.
        sensitive: whose groups are to be treated alike.
        drop: not to be used.
        categorical: columns of numbers that are codes of categories.
        bins: how to cut sensitive columns of numbers into groups.
        y_desirable: the desirable value of the target; None for that of `desirable_labels`.
        use_sensitive: whether the model may look at the groups to predict (an aware model). Columns
            that are cut into groups are then features as well, as the numbers they are.
        keep: features even if they look like identifiers or have a single value.
        value_map: values of target and sensitive columns that mean another one of their values.
        ignore_case: whether values that differ in case, spaces or accents are one value.
        is_part: whether the table is a part of all rows, such as a day, that may lack values.
        option: the option that names the target.
    """

    target: str
    sensitive: tuple[str, ...]
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    bins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    y_desirable: str | None = None
    use_sensitive: bool = False
    keep: tuple[str, ...] = ()
    value_map: Mapping[str, str] = field(default_factory=dict)
    ignore_case: bool = False
    is_part: bool = False
    option: str = "--target"

    def check(self, names: Sequence[str], further: Mapping[str, str] | None = None) -> None:
        """Refuses columns that the table lacks, and one column in two roles.

        `further` are other columns that are needed, by the option that names each.
        """
        if not self.sensitive:
            raise ValueError("--sensitive is empty; name at least one column")
        check_named([self.target], names, self.option)
        for argument in ("sensitive", "drop", "categorical", "keep", "bins"):
            check_named(getattr(self, argument), names, f"--{argument}")
        if self.target in self.sensitive:
            raise ValueError(
                f"--target and --sensitive both name {self.target!r}; name different columns"
            )
        needed = [name for name in self.drop if name in {self.target, *self.sensitive}]
        if needed:
            raise ValueError(
                f"--drop names {needed[0]!r}, which --target or --sensitive needs: name "
                "different columns. The target is never a feature, and sensitive columns are "
                "features only on request"
            )
        unknown = [name for name in self.bins if name not in self.sensitive]
        if unknown:
            raise ValueError(f"--bins names {unknown[0]!r}, which is not among --sensitive")
        for argument in ("keep", "categorical"):
            both = [name for name in getattr(self, argument) if name in self.drop]
            if both:
                raise ValueError(f"--drop and --{argument} both name {both[0]!r}; use only one")
        for option, column in (further or {}).items():
            check_named([column], names, f"--{option}")

    def apply(self, frame: pd.DataFrame, *, is_only: bool = True) -> LabelledTable:
        """Label, groups and features of a table; rows without a label are left out.

        `is_only`: whether there is no other table, such as one to judge the model on.

        Raises:
            ValueError: if a column cannot be used; the message says why.
        """
        self.check([str(name) for name in frame.columns])
        rows = np.flatnonzero(frame[self.target].notna().to_numpy())
        labelled = frame.iloc[rows].reset_index(drop=True)
        known = {
            value_name(v) for n in (self.target, *self.sensitive) for v in labelled[n].unique()
        }
        unused = [value for value in self.value_map if value not in known]
        if unused:
            raise ValueError(
                f"--map names {unused[0]!r}, which is not a value of "
                f"{', '.join((self.target, *self.sensitive))}"
            )
        report = ReadingReport.of(frame)
        for column in (frame[name] for name in self.categorical):
            is_mixed = texts_among_numbers(column) or other_decimal(column, report.decimal)
            if column_kind(column) == "category" and not is_mixed:
                raise ValueError(
                    f"--categorical has no effect: {column.name!r} holds texts; leave it out"
                )
        for name in self.keep:
            if not why_left_out(frame[name]) and not frame[name].isna().all():
                raise ValueError(f"--keep has no effect: {name!r} is used anyway; leave it out")
        labelled = self.merged(labelled, is_only=is_only)
        label, groups = self.label(labelled), self.groups(labelled)
        from fairgrad.tables.encoder import TableEncoder  # noqa: PLC0415 - audits need none

        encoder = TableEncoder(
            categorical=self.categorical, keep=self.keep, missing=tuple(report.missing)
        )
        cut = set(self.bins) if self.use_sensitive else set()
        others = {self.target, *self.drop, *self.sensitive} - cut
        usable = labelled[[name for name in labelled if name not in others]]
        features = encoder.fit_features(usable, "--")
        n_left_out = len(frame) - len(rows)
        sources = {feature.name: feature.column for feature in encoder.features_}
        copies, copies_hint = find_copies(labelled)
        why = report.gap_words(self.target)
        left_out = f"{counted(n_left_out, 'row')} left out (no {self.target}{why})."
        unknown = {str(name): int(groups[name].isna().sum()) for name in groups}
        told = (
            *([left_out] if n_left_out else ()),
            *report.sentences(map(str, frame.columns)),
            *(
                f"{name} is unknown in {counted(n, 'row')}{report.gap_words(name)}; they are kept."
                for name, n in unknown.items()
                if n
            ),
            *encoder.notes_,
            *hints(label, groups, features, sources),
            *(sentinel_hints(label.to_frame()) if label.nunique() > 2 else ()),
            *sentinel_hints(labelled.drop(columns=[self.target, *encoder.left_out_])),
            *repeated_identifiers(usable),
            *copies_hint,
        )
        return LabelledTable(label, groups, features, encoder, told, rows, copies)

    def merged(
        self, frame: pd.DataFrame, times: Times = None, *, is_only: bool = True
    ) -> pd.DataFrame:
        """The table with one spelling of each value of the target and the sensitive columns.

        `times` says how many rows each row stands for, if it is a table of counts.

        Raises:
            ValueError: if values differ only in spelling, unless an option merges them; or if there
                are no such values, although an option merges them and this is the only table.
        """
        merged = {}
        for name in (self.target, *self.sensitive):
            is_text = name in frame and column_kind(frame[name]) == "category"
            if not is_text or name in self.bins:
                continue
            named = as_categories(frame[name])
            spelling = self._spellings(named, times)
            if any(value != meant for value, meant in spelling.items()):
                merged[name] = as_categories(named.astype(object).map(spelling))
        if self.ignore_case and is_only and not merged and not self.is_part:
            raise ValueError(
                "--ignore-case has no effect: no values of "
                f"{', '.join((self.target, *self.sensitive))} differ in case, spaces or accents "
                "only; leave it out"
            )
        return frame.assign(**merged)

    def _spellings(self, named: pd.Series, times: Times) -> dict[str, str]:
        """The value that each value of a column stands for."""
        values = [str(value) for value in named.cat.categories]
        meant = [self.value_map.get(value, "") for value in values]
        merged = {
            value: name
            for value, name in zip(values, meant, strict=True)
            if name and (name in values or meant.count(name) > 1)
        }
        weights = np.ones(len(named)) if times is None else times
        rows = pd.Series(weights).groupby(named.to_numpy(dtype=object)).sum().astype(int)
        alike: dict[str, list[str]] = {}
        for value in sorted(set(values) - set(merged), key=lambda v: (-rows.get(v, 0), v)):
            # Yes and y, or 1 and 1.0, are likely to mean the same.
            plain = re.sub(r"(\d+)\.0+", r"\1", _plain(value))
            alike.setdefault({"y": "yes", "n": "no"}.get(plain, plain), []).append(value)
        unclear = []
        for alias in (alias for alias in alike.values() if len(alias) > 1):
            same = [value for value in alias if _plain(value) == _plain(alias[0])]
            if self.ignore_case:
                merged |= dict.fromkeys(same, alias[0])
            if not self.ignore_case or same != alias:
                unclear.append((alias, same == alias))
        if unclear:
            listed = [value for alias, _ in unclear for value in alias]
            shown = ", ".join(f"{value!r} ({counted(rows[value], 'row')})" for value in listed)
            pairs = ",".join(f"{value}={alias[0]}" for alias, _ in unclear for value in alias[1:])
            is_case = all(is_same for _, is_same in unclear)
            raise ValueError(
                f"the column {named.name!r} has values that differ in spelling alone: {shown}. "
                f'Use --map "{pairs}"{" or --ignore-case" if is_case else ""} to merge them'
            )
        return {value: merged.get(value, value) for value in values}

    def label(self, frame: pd.DataFrame, times: Times = None) -> pd.Series:
        """The target as named categories, the desirable one last.

        `times` says how many rows each row stands for, if it is a table of counts.

        Raises:
            ValueError: if it has one value only, looks continuous, or lacks the desirable value.
        """
        column = checked_column(frame, self.target, self.categorical, "--")
        distinct, n_rows = column.nunique(), _n_known(column, times)
        if distinct < 2 and not self.is_part:
            classes = "1 class" if distinct == 1 else "no classes"
            raise ValueError(
                f"{self.option} names {column.name!r}, which has {classes} in "
                f"{counted(n_rows, 'row')}; two or more are needed"
            )
        is_date = column_kind(column) == "date"
        names_rows = identifies_rows(column, n_rows) and not self.is_part
        if is_quantity(column) or is_date or distinct > MOST_VALUES or names_rows:
            raise ValueError(
                f"the target {column.name!r} has {distinct:,} different values and looks "
                "continuous; turn it into classes first, for example "
                f"table[{column.name!r}] > threshold"
            )
        label = self._named(column)
        names = list(label.cat.categories)
        if self.y_desirable not in {None, *names} and not self.is_part:
            raise ValueError(
                f"--desirable is {self.y_desirable!r}; the values of {column.name!r} are "
                f"{', '.join(names)}"
            )
        desirable = self.desirable(names)
        return label.cat.reorder_categories(sorted(names, key=lambda name: name == desirable))

    def test_rows(
        self, frame: pd.DataFrame, labels: Sequence[str]
    ) -> tuple[pd.Series, pd.DataFrame, NDArray[Any]]:
        """Labels and groups of a table to judge a model on, and which rows have a label.

        Raises:
            ValueError: if no row has a label, or one has a label the training table lacks.
        """
        rows = np.flatnonzero(frame[self.target].notna().to_numpy())
        if not len(rows):
            raise ValueError(f"the test table has no row with a value of {self.target!r}")
        labelled = self.merged(frame.iloc[rows].reset_index(drop=True), is_only=False)
        label = self._named(checked_column(labelled, self.target, self.categorical, "--"))
        if self.ignore_case:
            known = {_plain(name): name for name in labels}
            spelling = {name: known.get(_plain(name), name) for name in label.cat.categories}
            label = label.cat.rename_categories(spelling)
        unknown = [name for name in label.cat.categories if name not in labels]
        if unknown:
            raise ValueError(
                f"the test table has {unknown[0]!r} as a value of {self.target!r}, which "
                f"the training table lacks; it has {', '.join(labels)}"
            )
        texts = pd.Series(np.asarray(label, dtype=object), name=self.target, dtype=object)
        return texts, self.groups(labelled), rows

    def desirable(self, labels: Sequence[str]) -> str | None:
        """The desirable one of the labels; None if there are several and none was named."""
        if self.is_part and self.y_desirable is not None:  # the label may be missing today
            return self.y_desirable
        indices = desirable_labels(labels, self.y_desirable)
        return labels[indices[0]] if indices else None

    def groups(self, frame: pd.DataFrame, times: Times = None) -> pd.DataFrame:
        """The sensitive columns as named categories; missing values stay missing."""
        groups = {}
        for name in self.sensitive:
            known = frame[name].dropna()
            if known.empty and not self.is_part:
                raise ValueError(f"the sensitive column {name!r} has no values")
            if name in self.bins:
                groups[name] = _binned(frame[name], self.bins[name], is_part=self.is_part)
                continue
            column = checked_column(frame, name, self.categorical, "--")
            distinct, n_rows = known.nunique(), _n_known(column, times)
            if is_quantity(column):
                digits = 2 if known.abs().max() < 10 else 0
                edge = value_name(round(float(known.median()), digits))
                raise ValueError(
                    f"the sensitive column {name!r} has {distinct:,} different numbers; "
                    f'group them, for example with --bins "{name}={edge}"'
                )
            names_rows = distinct == n_rows or identifies_rows(column, n_rows)
            if (names_rows and not self.is_part) or distinct > MOST_VALUES:
                raise ValueError(
                    f"the sensitive column {name!r} has {distinct:,} different values in "
                    f"{n_rows:,} rows; a group needs many rows, so merge values or name another "
                    "column"
                )
            if distinct < 2 and not self.is_part:
                raise ValueError(
                    f"the sensitive column {name!r} has one value only, {known.tolist()[0]!r}: "
                    "there are no groups to compare"
                )
            groups[name] = self._named(column)
        return pd.DataFrame(groups)

    def _named(self, column: pd.Series) -> pd.Series:
        return column if column.name in self.categorical else as_categories(column)


def _n_known(column: pd.Series, times: Times) -> int:
    """How many rows have a value."""
    known = column.notna().to_numpy()
    return int(known.sum() if times is None else times[known].sum())


def check_named(wanted: Iterable[str], names: Sequence[str], argument: str) -> None:
    """Refuses a column that the table lacks; names near it are suggested."""
    for name in wanted:
        if name in names:
            continue
        listed = [column.strip() for column in name.split(",")]
        lower = {known.lower(): known for known in names}
        near = [lower[match] for match in get_close_matches(name.lower(), lower)]
        near = near[: 1 if name.lower() in lower else 2]
        hint = f"its columns are {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
        if set(listed) <= set(names):
            hint = f"use {' '.join(f'{argument} {column}' for column in listed)}"
        elif near:
            hint = "did you mean " + " or ".join(repr(known) for known in near) + "?"
        raise ValueError(f"{argument} names the column {name!r}, which the table lacks; {hint}")


def number_column(frame: pd.DataFrame, name: str, argument: str) -> NDArray[np.float64]:
    """A column of numbers, such as scores or weights."""
    if column_kind(frame[name]) != "number":
        raise ValueError(f"{argument} names {name!r}, whose values are not numbers")
    return as_numbers(frame[name])


def _plain(value: str) -> str:
    """The value without capitals, accents and extra spaces."""
    letters = unicodedata.normalize("NFKD", value.casefold())
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).split())


def _binned(column: pd.Series, bins: Sequence[float], *, is_part: bool) -> pd.Series:
    """A numeric column cut into named groups: under 25, 25 to under 60, 60 and over.

    A column that a query has cut already (`tables/sql.py`) holds their names.
    """
    if not bins or list(bins) != sorted(set(bins)):
        raise ValueError(f"--bins of {column.name!r} is {list(bins)}; the numbers must increase")
    names, is_text = cut_names(bins), column_kind(column) == "category"
    if is_text and set(map(str, column.dropna().unique())) <= set(names):
        grouped = pd.Categorical(column, categories=pd.Index(names))
    else:
        values = number_column(column.to_frame(), str(column.name), "--bins")
        grouped = cut_numbers(values, bins)
    if len(np.unique(grouped.codes[grouped.codes >= 0])) < 2 and not is_part:
        raise ValueError(f"--bins puts all values of {column.name!r} into one group")
    return pd.Series(grouped, index=column.index, name=column.name)
