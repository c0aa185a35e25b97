"""What a table of any size holds, found by duckdb where it lies: labels, cells, features, means.

`ColumnRoles.apply` and `describe_features` find the same in a table that is held in memory. Here a
column is known by its distinct values and how many rows have them, which is all that these rules
look at; of numbers with many values by a few sums. Rows are then read as a later table is
(`tables/encoding.py` `read_features`), some thousand at a time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.groups import Groups
from fairgrad.splitting import TEST_PART, TRAINING_PART
from fairgrad.tables.encoding import (
    TrainedFeature,
    encode_rows,
    fitted_encoder,
    read_features,
    read_groups,
)
from fairgrad.tables.hints import MOST_ROWS, hints
from fairgrad.tables.reading import ReadingReport, read_counted
from fairgrad.tables.roles import IDENTIFIER, TEXTS_DIFFER, FeatureNotes, date_features
from fairgrad.tables.scan import Scan, ScanError, check_cases, connected, quoted_name, run_quietly
from fairgrad.tables.sql import ROW_HASH, CountQuery, parts_sql, quoted_text
from fairgrad.tables.values import (
    MISSING_TEXTS,
    as_categories,
    as_numbers,
    column_kind,
    counted,
    date_format,
    kind_of_texts,
    names_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.roles import ColumnRoles
    from fairgrad.tables.stored import StoredTable

PART = "fairgrad part"
FEW = 2_000
"""Columns of no more distinct numbers are known by each of them, others by sums."""

MANY_TEXTS = 100_000
"""Of columns with more distinct texts than these, the most frequent ones are known."""

MEDIAN_ROWS = 50_000
"""Of columns with many numbers the median is that of so many rows, drawn by their hashes."""

_SHOWN = 1_000
_SIMPLE = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "VARCHAR", "ENUM", "BOOLEAN", "DATE", "TIMESTAMP")
"""Words of which one stands in the type of a column that can be read."""


@dataclass(frozen=True, eq=False)
class SurveyedTable:
    """What is known of a table whose rows are read bit by bit.

    Attributes:
        columns: the role of each column.
        labels: values of the target, the desirable one last.
        target: how the target is read.
        groups: how the sensitive columns are read.
        features: how the features are read.
        cells: one row per combination of label and sensitive values; rows of each part.
        offset: (columns,) the mean of each column of the encoded training rows.
        scale: (columns,) their standard deviation; 1 for constant ones.
        notes: what the reader should know about the table.
        missing: texts that mean a missing value.
    """

    columns: ColumnRoles
    labels: list[str]
    target: TrainedFeature
    groups: list[TrainedFeature]
    features: list[TrainedFeature]
    cells: pd.DataFrame
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]
    notes: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def needed(self) -> list[str]:
        """The columns of the table that are read."""
        every = (self.target, *self.groups, *self.features)
        return list(dict.fromkeys(one.column for one in every))

    def sizes(self) -> list[int]:
        """Rows of each part."""
        return [int(self.cells[part].sum()) for part in range(3)]

    def frequencies(self, part: int) -> Groups:
        """The groups of the whole table, with the frequencies of one part."""
        names = [self.columns.target, *self.columns.sensitive]
        keys = [
            tuple(None if pd.isna(value) else str(value) for value in row)
            for row in self.cells[names].itertuples(index=False)
        ]
        index = pd.MultiIndex.from_tuples(keys, names=names)
        every = Groups.from_counts(pd.Series(self.cells[[0, 1, 2]].sum(axis=1).to_numpy(), index))
        mass = np.zeros_like(every.mass)
        label, group = self.places(every)
        np.add.at(mass, (label, group), self.cells[part].to_numpy(dtype=np.float64))
        return replace(every, mass=mass)

    def places(self, groups: Groups) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The label and the group of each row of `cells`."""
        label = groups.label_index(self.cells[self.columns.target].astype(str).to_numpy(object))
        values = {
            name: self.cells[name].astype(object).where(self.cells[name].notna(), None)
            for name in self.columns.sensitive
        }
        return label, groups.group_index(values)

    def reader(self, groups: Groups) -> CellReader:
        """Finds the cells of rows."""
        return CellReader(self, groups)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without the columns' roles."""
        cells = self.cells.astype(object).where(self.cells.notna(), None)
        return {
            "labels": self.labels,
            "target": asdict(self.target),
            "groups": [asdict(one) for one in self.groups],
            "features": [asdict(one) for one in self.features],
            "cells": {str(name): cells[name].tolist() for name in cells},
            "offset": self.offset.tolist(),
            "scale": self.scale.tolist(),
            "notes": list(self.notes),
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], columns: ColumnRoles) -> SurveyedTable:
        """The inverse of `to_dict`."""
        cells = pd.DataFrame(values["cells"])
        return cls(
            columns,
            list(values["labels"]),
            TrainedFeature.from_dict(values["target"]),
            [TrainedFeature.from_dict(one) for one in values["groups"]],
            [TrainedFeature.from_dict(one) for one in values["features"]],
            cells.rename(columns={str(part): part for part in range(3)}),
            np.array(values["offset"], dtype=np.float64),
            np.array(values["scale"], dtype=np.float64),
            tuple(values["notes"]),
            tuple(values["missing"]),
        )


class CellReader:
    """Reads which label and group the rows of a piece have.

    Args:
        table: what is known of the table.
        groups: of the whole table.
    """

    def __init__(self, table: SurveyedTable, groups: Groups) -> None:
        self.table = table
        self.label = groups.label_index(np.array(table.target.values, dtype=object))
        self._sizes = [len(self._names(one)) + 1 for one in table.groups]
        self._group = np.full(int(np.prod(self._sizes)), -1)
        cells, (_, group) = table.cells, table.places(groups)
        codes: list[Any] = []
        for one in table.groups:
            place = {name: code for code, name in enumerate(self._names(one))}
            codes.append(cells[one.name].map(lambda v, own=place: own.get(v, -1)).to_numpy())
        self._group[self._joined([own.astype(np.int64) for own in codes])] = group

    def _names(self, one: TrainedFeature) -> list[str]:
        """Of the groups of a sensitive column, in the order of `read_groups`."""
        values, _ = read_groups(
            pd.DataFrame({one.column: pd.Series([np.nan])}), [one], self.table.columns.bins
        )
        return [str(name) for name in values[one.name].cat.categories]

    def _joined(self, codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        joint = np.zeros(len(codes[0]), dtype=np.int64)
        for own, size in zip(codes, self._sizes, strict=True):
            joint = joint * size + own + 1
        return joint

    def __call__(
        self, piece: pd.DataFrame
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """(n,) which rows have a label; and the label and the group of these.

        Raises:
            ValueError: if a row is in no cell that the survey found: the files have changed.
        """
        table = self.table
        found, _ = read_features(piece, [table.target], table.missing)
        place = np.asarray(found[table.target.name].cat.codes, dtype=np.int64)
        known = (place >= 0) & (place < len(table.target.values))
        label = self.label[place[known]]
        rows = piece if known.all() else piece[known].reset_index(drop=True)
        rows.attrs |= piece.attrs
        values, _ = read_groups(rows, table.groups, table.columns.bins, table.missing)
        codes = [np.asarray(values[name].cat.codes, dtype=np.int64) for name in values]
        group = self._group[self._joined(codes)]
        if (group < 0).any():
            raise ValueError("the table has rows of groups that it did not have before")
        return known, label, group


def survey(
    stored: StoredTable,
    columns: ColumnRoles,
    options: ReadingOptions,
    run: Callable[[Any, str], Any] = run_quietly,
) -> SurveyedTable:
    """Looks at all rows once, column by column.

    Args:
        stored: the table.
        columns: the role of each column.
        options: what the user says of files.
        run: runs a query on a connection and gives all rows of its answer.

    Raises:
        ImportError: if duckdb is not installed.
        ValueError: if the table cannot be used; the message says why.
    """
    columns.check(stored.names)
    try:
        check_cases(stored.names)
        with connected(f"training on {stored.name} bit by bit") as connection:
            return _Surveyor(stored, columns, options, run, connection).survey()
    except ScanError as reason:
        raise ValueError(f"{stored.name}: {reason}") from None


@dataclass(frozen=True, eq=False)
class _CountedColumn:
    """The distinct values of a column.

    Attributes:
        frame: the column, as `read_table` would read it.
        times: (n, 3) rows of each part.
    """

    frame: pd.DataFrame
    times: NDArray[np.int64]

    @property
    def total(self) -> NDArray[np.int64]:
        """(n,) rows of all parts."""
        total: NDArray[np.int64] = self.times.sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class _Digest:
    """A feature with some values that have the mean and variance of all training rows.

    Attributes:
        feature: what is remembered of it.
        values: as the encoder takes them.
        weight: how many training rows each stands for.
    """

    feature: TrainedFeature
    values: Any
    weight: NDArray[np.float64]


class _NumberSums(NamedTuple):
    """What is known of a column of numbers with many values.

    Attributes:
        rows: how many rows there are.
        known: how many of them have a number.
        infinite: how many of these are infinite.
        least: the smallest number of all rows.
        most: the largest.
        mean: of the training rows.
        spread: their standard deviation.
        whole: whether all numbers are whole.
        low: the smallest number of training and validation rows.
        high: the largest.
        trained: training rows.
        trained_known: those of them with a number.
        median: of training and validation rows.
        gap: the text that stands in place of a number, in SQL; empty for none.
    """

    rows: int
    known: int
    infinite: int
    least: float
    most: float
    mean: float
    spread: float
    whole: bool
    low: float
    high: float
    trained: int
    trained_known: int
    median: float
    gap: str

    @classmethod
    def of(cls, sums: pd.DataFrame, median: float, gap: str) -> _NumberSums:
        """From sums of each part: rows, known, finite, least, most, mean, variance, whole."""
        rows, known, finite = (sums[n].to_numpy(np.int64) for n in ("rows", "known", "infinite"))
        least, most, mean, variance = (
            sums[n].to_numpy(np.float64, na_value=np.nan)
            for n in ("least", "most", "mean", "spread")
        )
        part = sums["part"].to_numpy(np.int64)
        has, own = finite > 0, part == TRAINING_PART
        seen = has & (part < TEST_PART)
        return cls(
            rows=int(rows.sum()),
            known=int(known.sum()),
            infinite=int((known - finite).sum()),
            least=float(least[has].min()) if has.any() else 0.0,
            most=float(most[has].max()) if has.any() else 0.0,
            mean=float(mean[own & has].sum()),
            spread=float(np.sqrt(variance[own & has].sum())),
            whole=all(bool(one) for one in sums["whole"][has]),
            low=float(least[seen].min()) if seen.any() else 0.0,
            high=float(most[seen].max()) if seen.any() else 0.0,
            trained=int(rows[own].sum()),
            trained_known=int(known[own].sum()),
            median=median,
            gap=gap,
        )


class _Surveyor:
    def __init__(
        self,
        stored: StoredTable,
        columns: ColumnRoles,
        options: ReadingOptions,
        run: Callable[[Any, str], Any],
        connection: Any,
    ) -> None:
        self.columns, self.options, self.run = columns, options, run
        listed = ", ".join(quoted_text(path) for path in stored.keys)
        files = (
            f"read_parquet([{listed}], hive_partitioning = true, hive_types_autocast = false, "
            "union_by_name = true, filename = true, file_row_number = true)"
        )
        table = parts_sql(files, stored.keys, quoted_name(PART), test=stored.test)
        kinds = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()  # noqa: S608 - names are quoted, here and below
        types = {str(name): str(kind) for name, kind, *_ in kinds}
        self.scan = Scan(
            connection, table, stored.name, types, options, stored.decimal, stored.said
        )
        report = ReadingReport(files=list(stored.said), decimal=stored.decimal)
        self.notes = FeatureNotes(report)
        self.names = [name for name in stored.names if name not in columns.drop]
        self.every = max(1, sum(group.n_rows for group in stored.groups) // MEDIAN_ROWS)
        self.kinds: dict[str, str] = {}
        self.summaries: dict[str, _NumberSums] = {}
        self.distinct: dict[str, int] = {}

    def survey(self) -> SurveyedTable:
        for name in self.names:
            kind = self.scan.types[name]
            is_list = "[" in kind or kind.startswith(("STRUCT", "MAP", "UNION"))
            if is_list or not any(word in kind for word in _SIMPLE):
                raise ValueError(
                    f"the column {name!r} holds {kind} values, which cannot be "
                    "features; name it in --drop"
                )
        target, left_out = self._target()
        cells, label, groups = self._cells(target)
        digests = self._digests()
        features = [one.feature for one in digests]
        offset, scale = _moments(digests)
        found = SurveyedTable(
            self.columns,
            [str(value) for value in label.cat.categories],
            _category(target.frame[self.columns.target], self.columns.target),
            [self._group_feature(name, groups[name], cells) for name in self.columns.sensitive],
            features,
            cells,
            offset,
            scale,
            (),
            self.options.missing,
        )
        times = cells[[0, 1, 2]].to_numpy(dtype=np.int64).sum(axis=1)
        said = [f"{counted(left_out, 'row')} left out (no {self.columns.target})."]
        notes = (
            *(said if left_out else ()),
            *self.notes.report.sentences(self.names, self.columns.prefix),
            *self.columns.told(groups, label, self.notes.report, times),
            *self.notes.sentences(),
            *self._hints(found),
        )
        return replace(found, notes=notes)

    def _target(self) -> tuple[_CountedColumn, int]:
        """The values of the target; from now on rows without one are passed over."""
        name = self.columns.target
        raw, times = self._raw(name, quoted_name(name))
        found = self._read(raw, times)
        lacking = found.frame[name].isna().to_numpy()
        texts = [str(value) for value in raw[name][lacking].dropna()]
        column = quoted_name(name)
        where = f"{column} IS NOT NULL"
        if texts:
            listed = ", ".join(quoted_text(text) for text in texts)
            where += f" AND CAST({column} AS VARCHAR) NOT IN ({listed})"
        self.scan.table = f"(SELECT * FROM {self.scan.table} WHERE {where})"  # noqa: S608 - as above
        kept = ~lacking
        left_out = int(found.total[lacking].sum())
        frame = found.frame[kept].reset_index(drop=True)
        frame.attrs |= found.frame.attrs
        return _CountedColumn(frame, found.times[kept]), left_out

    def _cells(self, target: _CountedColumn) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
        """How many rows of each part are in each cell, and the label and groups of these."""
        columns = self.columns
        label_of = columns.label(target.frame, target.total)  # refused before more is counted
        others = tuple(name for name in columns.sensitive if name not in columns.bins)
        query = CountQuery(
            (columns.target, *others, PART),
            bins={name: list(edges) for name, edges in columns.bins.items()},  # type: ignore[arg-type] # the program takes edges
        )
        answer = self.scan.count(query, self.run)
        frame, times = answer.frame, answer.times
        self._remember(ReadingReport.of(frame))
        groups = columns.groups(frame, times)
        # What the column is was found from all of its values, of which this answer has the same.
        label = columns.label(frame, times)
        assert list(label.cat.categories) == list(label_of.cat.categories)  # noqa: S101 - as above
        keys = [columns.target, *columns.sensitive]
        parted = groups.assign(**{columns.target: label})[keys].astype(object)
        parted = parted.where(parted.notna(), None)
        for part in range(3):
            parted[part] = np.where(frame[PART].to_numpy() == part, times, 0)
        cells = parted.groupby(keys, dropna=False, sort=False)[[0, 1, 2]].sum().reset_index()
        cells[keys] = cells[keys].astype(object).where(cells[keys].notna(), None)
        named = pd.DataFrame(
            {
                name: pd.Categorical(cells[name], categories=groups[name].cat.categories)
                for name in columns.sensitive
            }
        )
        own = pd.Series(
            pd.Categorical(cells[columns.target], categories=label.cat.categories),
            name=columns.target,
        )
        return cells, own, named

    def _group_feature(self, name: str, groups: pd.Series, cells: pd.DataFrame) -> TrainedFeature:
        """How a sensitive column is read: as numbers that are cut, or as names."""
        if name in self.columns.bins:
            return TrainedFeature(name, "number", has_gaps=True)
        values = tuple(str(value) for value in groups.cat.categories)
        is_number = self.scan.types[name] != "VARCHAR" or name in self._numeric
        has_gaps = bool(cells[name].isna().any())
        return TrainedFeature(name, "category", values, numbers=is_number, has_gaps=has_gaps)

    def _raw(self, name: str, value: str, limit: int = 0) -> tuple[pd.DataFrame, Any]:
        """The distinct values of a column, and how many rows of each part have them."""
        part = quoted_name(PART)
        counts = ", ".join(f"COUNT(*) FILTER (WHERE {part} = {n}) AS part_{n}" for n in range(3))
        most = f" ORDER BY COUNT(*) DESC, 1 LIMIT {limit}" if limit else ""
        sql = f"SELECT {value} AS {quoted_name(name)}, {counts} FROM {self.scan.table} GROUP BY 1"  # noqa: S608 - as above
        raw = self.scan.run(sql + most, self.run)
        times = raw[[f"part_{n}" for n in range(3)]].to_numpy(dtype=np.int64)
        return raw[[name]], times

    def _read(self, raw: pd.DataFrame, times: NDArray[np.int64]) -> _CountedColumn:
        frame = read_counted(
            raw, times.sum(axis=1), options=self.options, decimal=self.scan.decimal
        )
        self._remember(ReadingReport.of(frame))
        return _CountedColumn(frame, times)

    def _remember(self, report: ReadingReport) -> None:
        own = self.notes.report
        for name in ("gaps", "named", "spaced", "written", "forms"):
            getattr(own, name).update(getattr(report, name))

    @property
    def _numeric(self) -> set[str]:
        """Columns of texts whose values are numbers by nature."""
        return {name for name, kind in self.kinds.items() if kind == "number"}

    def _digests(self) -> list[_Digest]:
        columns = self.columns
        others = {columns.target, *columns.sensitive}
        names = [name for name in self.names if name not in others]
        for name in columns.sensitive:
            if name not in columns.bins and self.scan.types[name] == "VARCHAR":
                found = self._read(*self._raw(name, quoted_name(name)))
                self.kinds[name] = column_kind(found.frame[name])
        if not names:
            raise ValueError("no column is left as a feature")
        estimates = self.scan.run(
            f"SELECT {', '.join(f'approx_count_distinct({quoted_name(n)})' for n in names)} "  # noqa: S608 - as above
            f"FROM {self.scan.table}",
            self.run,
        )
        self.distinct = dict(zip(names, estimates.iloc[0].fillna(0).astype(int), strict=True))
        many = [name for name, n in self.distinct.items() if self._has_many_numbers(name, n)]
        if many:
            self._summarise(many)
        digests = [one for name, n in self.distinct.items() for one in self._digest(name, n)]
        if not digests:
            raise ValueError("no column is left as a feature")
        return digests

    def _digest(self, name: str, distinct: int) -> list[_Digest]:
        kind, column = self.scan.types[name], quoted_name(name)
        if kind.startswith(("DATE", "TIMESTAMP")):
            return self._of_counts(name, self._read(*self._raw(name, f"{column}::DATE")))
        if kind == "VARCHAR" and distinct > MANY_TEXTS:
            return self._of_many_texts(name)
        if self._has_many_numbers(name, distinct):
            return self._of_numbers(name)
        return self._of_counts(name, self._read(*self._raw(name, column)))

    def _has_many_numbers(self, name: str, distinct: int) -> bool:
        kind = self.scan.types[name]
        others = ("VARCHAR", "BOOLEAN", "ENUM", "DATE", "TIMESTAMP")
        is_number = not kind.startswith(others)
        return is_number and distinct > FEW and name not in self.columns.categorical

    def _of_counts(self, name: str, found: _CountedColumn) -> list[_Digest]:
        """The features of a column whose distinct values are known."""
        column, reason = self.columns.usable(found.frame, name, found.total)
        if reason:
            self.notes.left_out[name] = reason
            return []
        kind = column_kind(column)
        if kind == "date":
            taken = set(self.names)
            made = date_features(column, self.notes, taken, found.total)
            return [
                replace(one, feature=replace(one.feature, date=self.notes.dates[title]))
                for title, part in made.items()
                for one in [_of_values(part, "number", found.times)]
            ]
        missing = int(found.total[column.isna().to_numpy()].sum())
        if kind == "category":
            named = self.notes.merged(self.columns.named(column), found.total)
            self.notes.without_category |= {name: missing} if missing else {}
            original = column_kind(found.frame[name])
            return [_of_values(named, original, found.times)]
        self.notes.without_number |= {name: missing} if missing else {}
        return [_of_values(pd.Series(as_numbers(column), name=name), "number", found.times)]

    def _summarise(self, names: Sequence[str]) -> None:
        """Counts, ranges, means and medians of columns of numbers: two queries for all."""
        part = quoted_name(PART)
        inner, outer, middle, gaps = [part, ROW_HASH], [part], [], []
        for place, name in enumerate(names):
            number, gap = self.scan.as_number(name, "a feature")
            value, finite = f"number_{place}", f"finite_{place}"
            inner += [
                f"CASE WHEN NOT isnan({number}::DOUBLE) THEN {number}::DOUBLE END AS {value}",
                f"CASE WHEN isfinite({number}::DOUBLE) THEN {number}::DOUBLE END AS {finite}",
            ]
            outer += ["COUNT(*)", f"COUNT({value})", f"COUNT({finite})"]
            outer += [f"{what}({finite})" for what in ("MIN", "MAX", "AVG", "VAR_POP")]
            outer += [f"BOOL_AND({value} = ROUND({value}))"]
            middle.append(f"MEDIAN({finite})")
            gaps.append(gap)
        outer = [f"{one} AS sum_{i}" for i, one in enumerate(outer)]
        middle = [f"{one} AS sum_{i}" for i, one in enumerate(middle)]
        rows = f"(SELECT {', '.join(inner)} FROM {self.scan.table})"  # noqa: S608 - names are quoted
        found = self.scan.run(f"SELECT {', '.join(outer)} FROM {rows} GROUP BY 1", self.run)  # noqa: S608
        where = f"{part} < {TEST_PART} AND {ROW_HASH} % {self.every} = 0"
        medians = self.scan.run(f"SELECT {', '.join(middle)} FROM {rows} WHERE {where}", self.run)  # noqa: S608
        for place, (name, gap) in enumerate(zip(names, gaps, strict=True)):
            own = found.iloc[:, [0, *range(1 + 8 * place, 9 + 8 * place)]]
            own.columns = pd.Index(["part", *_NumberSums._fields[:8]])
            median = medians.iloc[:, place].to_numpy(dtype=np.float64)[0]
            self.summaries[name] = _NumberSums.of(own, 0.0 if np.isnan(median) else median, gap)

    def _of_numbers(self, name: str) -> list[_Digest]:
        """A column of numbers with many values."""
        if name not in self.summaries:
            self._summarise([name])
        own = self.summaries[name]
        if own.infinite:
            n = counted(own.infinite, "infinite number")
            raise ValueError(f"the column {name!r} holds {n}")
        if not own.known:
            self.notes.left_out[name] = "no values"
            return []
        if own.gap:
            self._check_gaps(name, own.gap)
        has_gaps = own.known < own.rows
        if name not in self.columns.keep:
            span = own.most - own.least + 1.0
            # An estimate says whether it may matter; then they are counted.
            is_id = own.whole and self.distinct[name] > 0.45 * own.known
            if is_id and names_rows(name, own.known, self._distinct(name), span):
                is_all = not has_gaps and span == own.rows
                self.notes.left_out[name] = "it numbers the rows" if is_all else IDENTIFIER
                return []
            if not has_gaps and own.least == own.most:
                self.notes.left_out[name] = "one value only"
                return []
        feature = TrainedFeature(
            name, "number", median=own.median, low=own.low, high=own.high, has_gaps=has_gaps
        )
        if has_gaps:
            self.notes.without_number[name] = own.rows - own.known
        values = np.array([own.mean - own.spread, own.mean + own.spread, np.nan])
        trained_on = own.trained_known
        weight = np.array([trained_on / 2, trained_on / 2, own.trained - trained_on])
        return [_Digest(feature, values[weight > 0], weight[weight > 0])]

    def _distinct(self, name: str) -> int:
        sql = f"SELECT COUNT(DISTINCT {quoted_name(name)}) FROM {self.scan.table}"  # noqa: S608 - as above
        return int(self.scan.run(sql, self.run).to_numpy(dtype=np.int64)[0, 0])

    def _check_gaps(self, name: str, gap: str) -> None:
        """Counts the texts that stand in place of numbers."""
        sql = f"SELECT {gap} AS gap, COUNT(*) FROM {self.scan.table} GROUP BY 1 LIMIT 1000"  # noqa: S608 - as above
        found = self.scan.run(sql, self.run)
        texts = {str(text): int(n) for text, n in found.itertuples(index=False) if text is not None}
        odd = [text for text in texts if text not in {*MISSING_TEXTS, *self.options.missing}]
        if odd:
            given = [text for text in odd if text not in self.options.missing]
            shown = ", ".join(repr(text) for text in given[:3])
            raise ValueError(
                f"the column {name!r} mixes numbers and texts such as {shown}; clean it, name it "
                "in --drop, or the text in --missing if it means a missing value"
            )
        if texts:
            self.notes.report.gaps[name] = texts

    def _of_many_texts(self, name: str) -> list[_Digest]:
        """A column with very many distinct texts: numbers, dates, names of rows, or rare values."""
        raw, _ = self._raw(name, f"trim({quoted_name(name)})", limit=_SHOWN)
        texts = [str(text) for text in raw[name].dropna() if str(text) not in MISSING_TEXTS]
        kind, _ = kind_of_texts(texts, self.scan.decimal) if texts else ("text", None)
        if kind in {"number", "percent"} and name not in self.columns.categorical:
            return self._of_numbers(name)
        if date_format(texts)[0]:
            day = self.scan.as_day(name)
            assert day is not None  # noqa: S101 - it is a column of texts
            return self._of_counts(name, self._read(*self._raw(name, day)))
        sql = (
            f"SELECT COUNT({quoted_name(name)}), COUNT(DISTINCT trim({quoted_name(name)})) "  # noqa: S608 - as above
            f"FROM {self.scan.table}"
        )
        known, distinct = self.scan.run(sql, self.run).to_numpy(dtype=np.int64)[0].tolist()
        if name not in self.columns.keep and distinct > known / 2:
            self.notes.left_out[name] = TEXTS_DIFFER
            return []
        # Those that are not among the most frequent would be merged in any case.
        found = self._read(*self._raw(name, f"trim({quoted_name(name)})", limit=_SHOWN))
        whole, times = self._whole(found, name)
        made = self._of_counts(name, _CountedColumn(whole, times))
        self.notes.many[-1:] = [
            f"{name}: {distinct:,} different values, the rarest merged into (other)."
        ]
        return made

    def _whole(self, found: _CountedColumn, name: str) -> tuple[pd.DataFrame, Any]:
        """The same with one more value that stands for all rows that are not counted."""
        part = quoted_name(PART)
        counts = ", ".join(f"COUNT(*) FILTER (WHERE {part} = {n})" for n in range(3))
        totals = self.scan.run(f"SELECT {counts} FROM {self.scan.table}", self.run)  # noqa: S608 - as above
        rest = totals.to_numpy(dtype=np.int64)[0] - found.times.sum(axis=0)
        rare = pd.Categorical([*found.frame[name].astype(object), "(rare)"])
        return pd.DataFrame({name: rare}), np.vstack([found.times, rest[None]])

    def _hints(self, table: SurveyedTable) -> list[str]:
        """Features that say too much, by a sample of rows."""
        names = ", ".join(quoted_name(name) for name in table.needed)
        every = max(1, sum(table.sizes()) // MOST_ROWS)
        rows = self.scan.run(  # the same rows in the same order, however often it is asked
            f"SELECT {names} FROM {self.scan.table} WHERE {ROW_HASH} % {every} = 0 "  # noqa: S608 - as above
            f"ORDER BY {ROW_HASH}",
            self.run,
        )
        rows.attrs["decimal"] = self.scan.decimal
        features, _ = read_features(rows, table.features, table.missing)
        label, _ = read_features(rows, [table.target], table.missing)
        groups, _ = read_groups(rows, table.groups, table.columns.bins, table.missing)
        sources = {one.name: one.column for one in table.features if one.date is not None}
        drop = f"{self.columns.prefix}drop"
        return hints(label[table.target.name], groups, features, sources, drop)


def _category(column: pd.Series, name: str) -> TrainedFeature:
    values = tuple(str(value) for value in as_categories(column).cat.categories)
    return TrainedFeature(
        name, "category", values, numbers=column_kind(column) == "number", has_gaps=True
    )


def _of_values(column: pd.Series, kind: str, times: NDArray[np.int64]) -> _Digest:
    """A feature whose distinct values are known, with how many rows of each part have them."""
    name, missing = str(column.name), column.isna().to_numpy()
    has_gaps = bool(times[missing].sum())
    training = times[:, TRAINING_PART].astype(np.float64)
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = tuple(str(value) for value in column.cat.categories)
        feature = TrainedFeature(
            name, "category", values, numbers=kind == "number", has_gaps=has_gaps
        )
        return _Digest(feature, column, training)
    numbers = column.to_numpy(dtype=np.float64)
    rest = times[:, :TEST_PART].sum(axis=1)
    known = ~missing & (rest > 0)
    low = high = median = 0.0
    if known.any():
        low, high = float(numbers[known].min()), float(numbers[known].max())
        median = _median(numbers[known], rest[known])
    feature = TrainedFeature(name, kind, median=median, low=low, high=high, has_gaps=has_gaps)
    return _Digest(feature, numbers, training)


def _median(values: NDArray[np.float64], times: NDArray[np.int64]) -> float:
    order = np.argsort(values)
    upto = np.cumsum(times[order])
    middle = [(upto[-1] - 1) // 2, upto[-1] // 2]
    return float(values[order][np.searchsorted(upto, middle, side="right")].mean())


def _moments(digests: Sequence[_Digest]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of the encoded training rows; 1 for constant columns.

    A column of the matrix belongs to one feature. So the encoding of rows that differ from a first
    one in a single feature, each as often as it occurs, has the moments of that feature's columns.
    """
    features = [one.feature for one in digests]
    encoder = fitted_encoder(features)
    base = {one.name: _base(one) for one in features}
    first = encode_rows(encoder, pd.DataFrame(base)).astype(np.float64)[0]
    mean, variance = first.copy(), np.zeros_like(first)
    for digest in digests:
        total = digest.weight.sum()
        if not total:
            continue
        n = len(digest.weight)
        rows = {name: _repeated(value, n) for name, value in base.items()}
        rows[digest.feature.name] = _as_encoded(digest)
        change = encode_rows(encoder, pd.DataFrame(rows)).astype(np.float64) - first
        share = digest.weight / total
        centre = share @ change
        mean += centre
        variance += share @ (change - centre) ** 2
    spread = np.sqrt(variance)
    smallest = 10 * np.finfo(np.float32).eps * np.maximum(np.abs(mean), 1.0)
    return mean, np.where(spread > smallest, spread, 1.0)


def _base(feature: TrainedFeature) -> Any:
    if feature.kind == "category":
        return pd.Categorical.from_codes(np.array([0]), categories=pd.Index(feature.values))
    return np.array([feature.median])


def _repeated(value: Any, n: int) -> Any:
    return value.take(np.zeros(n, dtype=np.int64))


def _as_encoded(digest: _Digest) -> Any:
    """The values, a missing one as a later table has it."""
    feature, values = digest.feature, digest.values
    if feature.kind == "category":
        return pd.Categorical(values, categories=pd.Index(feature.values))
    return values
