"""A weighted sample of a table that is too large to be trained on as a whole.

duckdb counts the rows of every cell (label and group). All rows of rare cells are drawn, and a
share of the others. A row is drawn by a hash of its key, or of its place in the files, so that the
same sample can be drawn again, by `SampleQuery` also in a database. The rows are then read into
memory as any table is, with weights that make up for the sampling. Rows with the lowest hashes are
held out for the audit, which counts all of them.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import counted
from fairgrad.tables.reading import (
    PIECE,
    all_files,
    is_parquet,
    plain_frame,
    read_pieces,
    row_limit,
    table_files,
)
from fairgrad.tables.roles import check_named
from fairgrad.tables.scan import (
    Scan,
    column_types,
    connected,
    open_scan,
    parquet_table,
    scan_errors,
)
from fairgrad.tables.sql import CountQuery, SampleQuery, quoted_name, quoted_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.reading import TableSource
    from fairgrad.tables.roles import ColumnRoles
    from fairgrad.tables.scan import CountedAnswer

JUDGED_SHARE = 0.25
"""Rows held out that are also read, as a share of the rows to train on: some figures need rows."""

RARE_SHARE = 0.25
"""Share of the rows that is divided equally among all cells; the rest follows their sizes."""

PART, CELL = "fairgrad_part", "fairgrad_cell"
HELD_OUT, REST = "held out", "rest"


def sample_rates(sizes: NDArray[Any], wanted: int) -> tuple[NDArray[np.float64], float]:
    """The share of each cell's rows to draw, and the share of cells that are not rare.

    Every cell gets the same share of its rows, but at least half of ``wanted / 4 K`` rows of K
    cells, or all it has. Shares above the common one are powers of 1/2, so that there are few.
    """
    total = int(sizes.sum())
    if total <= wanted:
        return np.ones(len(sizes)), 1.0
    least = RARE_SHARE * wanted / len(sizes)
    rates = np.minimum(1.0, 2.0 ** np.floor(np.log2(least / np.maximum(sizes, 1))))
    rates[sizes <= least] = 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = float((sizes * np.maximum(rates, middle)).sum()) <= wanted
        low, high = (middle, high) if fits else (low, middle)
    return np.maximum(rates, low), low


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A table of Parquet files whose rows have hashes.

    Attributes:
        source: the table as it was opened; that connection is closed.
        files: the name that is hashed for each file, by its path.
        key: columns that identify a row; empty to hash the row's place.
        seed: of the hashes.
        test: share of the rows that are held out.
    """

    source: Scan
    files: Mapping[Path, str]
    key: tuple[str, ...] = ()
    seed: int = 0
    test: float = 0.0

    @property
    def hashes(self) -> dict[str, Any]:
        """What decides which rows are held out, as plain values."""
        return {"seed": self.seed, "test": self.test, "key": list(self.key)}

    @contextmanager
    def scan(self) -> Iterator[Scan]:
        """The table for duckdb."""
        table = parquet_table(list(self.files), "filename = true, file_row_number = true")
        with connected(self.source.name) as connection:
            connection.execute("SET preserve_insertion_order = true")  # the same rows, in order
            types = column_types(connection, table)
            for added in ("filename", "file_row_number"):
                types.pop(added, None)
            yield replace(self.source, connection=connection, table=table, types=types)

    def query(self, cell: CountQuery) -> SampleQuery:
        """The query that draws rows, before anything is known of the cells."""
        named = ", ".join(
            f"{quoted_text(str(path))}: {quoted_text(name)}" for path, name in self.files.items()
        )
        place = f"MAP {{{named}}}[filename] || '/' || CAST(file_row_number AS VARCHAR)"
        return SampleQuery(cell, self.key, self.seed, self.test, place="" if self.key else place)

    def pieces(self, scan: Scan, sql: str) -> Iterator[pd.DataFrame]:
        """The answer to a query, some thousand rows at a time."""
        arrow = importlib.import_module("pyarrow")
        with scan_errors():
            batches = arrow.RecordBatchReader.from_stream(scan.connection.sql(sql))
        for batch in batches:
            for start in range(0, batch.num_rows, PIECE):
                piece = plain_frame(batch.slice(start, PIECE).to_pandas())
                piece.attrs |= {"decimal": scan.decimal, "note": " ".join(scan.notes)}
                yield piece

    def held_out(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows that are held out, some thousand at a time."""
        with self.scan() as scan:
            query = self.query(CountQuery(()))
            chosen = ", ".join(quoted_name(name) for name in columns)
            sql = f"SELECT {chosen} FROM {scan.table} WHERE {query.is_held_out()}"  # noqa: S608 - names are quoted
            n_rows = scan.run(f"SELECT count(*) AS n FROM {scan.table}")["n"].item()  # noqa: S608
            n_read, expected = 0, max(1.0, self.test * n_rows)
            for piece in self.pieces(scan, sql):
                n_read += len(piece)
                piece.attrs["done"] = min(1.0, n_read / expected)
                yield piece


@dataclass(frozen=True, eq=False)
class TableSample:
    """Rows that stand for a whole table.

    Attributes:
        table: the table.
        query: the query that drew them.
        is_judged: which rows that were read are some of those held out, and not of the sample.
        n_rows: rows of the table.
        cells: rows that are not held out, by the cell's label and sensitive values.
        n_held_out: rows that are held out and have a label.
        n_unlabelled: rows without a label.
        n_rare: rows of cells that are drawn as a whole.
    """

    table: LargeTable
    query: SampleQuery
    is_judged: NDArray[np.bool_]
    n_rows: int
    cells: pd.Series
    n_held_out: int
    n_unlabelled: int
    n_rare: int

    def weights(self, label: pd.Series, sensitive: pd.DataFrame) -> NDArray[np.float64]:
        """(n,) weights of rows: as many rows as each stands for, divided by their mean."""
        keys = _cell_keys([label, *(sensitive[name] for name in sensitive)])
        drawn = keys.map(keys.value_counts())
        whole = keys.map(self.cells).fillna(drawn)
        weight: NDArray[np.float64] = (whole / drawn).to_numpy(dtype=np.float64)
        return np.asarray(weight / weight.mean())

    @property
    def sentences(self) -> list[str]:
        """What the reader should know."""
        drawn = int((~self.is_judged).sum())
        rare = f" (including all {counted(self.n_rare, 'row')} of rare groups)"
        sentences = [
            f"Trained on {drawn:,} of {counted(self.n_rows, 'row')}{rare if self.n_rare else ''}."
        ]
        if self.n_unlabelled:
            sentences.append(
                f"{counted(self.n_unlabelled, 'row')} left out (no {self.query.cell.keys[0]})."
            )
        return sentences


def _cell_keys(columns: Sequence[pd.Series], between: str = "\x1f") -> pd.Series:
    """One text per row that names its values."""
    texts = [column.astype(object).where(column.notna(), "").astype(str) for column in columns]
    return texts[0].str.cat(pd.concat(texts[1:], axis=1), sep=between)


def cell_query(columns: ColumnRoles) -> CountQuery:
    """What the cells of a table are: its label and sensitive values."""
    keys = [columns.target, *(name for name in columns.sensitive if name not in columns.bins)]
    return CountQuery(tuple(dict.fromkeys(keys)), bins=columns.bins)


def needs_sample(source: TableSource, options: ReadingOptions, wanted: int, test: float) -> bool:
    """Whether a table has more rows than are to be trained on.

    Raises:
        ImportError: if duckdb is not installed.
        ScanError: if duckdb cannot read the table.
    """
    with open_scan(source, options) as scan:
        answer = scan.run(f"SELECT COUNT(*) AS n FROM {scan.table}")  # noqa: S608 - names are quoted
        limit = row_limit(wanted, len(scan.names))
        return bool((1 - test) * int(answer["n"].iloc[0]) > limit)


def large_table(
    source: TableSource, options: ReadingOptions, folder: Path, **asked: Any
) -> LargeTable:
    """A table whose rows can be drawn; files of text are first stored in a folder.

    Raises:
        ScanError: if duckdb cannot read the table.
        ValueError: if the table lacks a column of the key.
    """
    with open_scan(source, options) as scan:
        check_named(asked.get("key", ()), scan.names, "--key")
        files = table_files(source)
        if all(is_parquet(path) for path in files):
            named = all_files(files)
        else:
            path = folder / "rows.parquet"
            scan.connection.execute("SET preserve_insertion_order = true")
            target = f"{quoted_text(str(path))} (FORMAT parquet)"
            scan.run(f"COPY (SELECT * FROM {scan.table}) TO {target}")  # noqa: S608 - names are quoted
            named = {path: "rows"}
        return LargeTable(scan, named, **asked)


def planned(
    query: SampleQuery, answer: CountedAnswer, columns: ColumnRoles, wanted: int
) -> tuple[SampleQuery, dict[str, Any]]:
    """The query with the share of each cell to draw, and the counts of `TableSample`."""
    frame, times, raw = answer.frame, answer.times, answer.raw
    if PART not in raw:  # counted by a database: a share of each cell is held out
        names = _cell_keys([raw[name] for name in query.cell.columns], "|")
        raw = raw.assign(fairgrad_cell=names, fairgrad_part=REST)
        times = np.ceil(times * (1 - query.test)).astype(np.int64)
    known = frame[columns.target].notna().to_numpy()
    known_times = times[known]
    labelled = columns.merged(frame[known].reset_index(drop=True), known_times)
    label, groups = columns.label(labelled, known_times), columns.groups(labelled, known_times)
    is_held_out = raw[PART][known].to_numpy(dtype=object) == HELD_OUT
    kept = np.where(is_held_out, 0, known_times)
    n_rows = pd.Series(kept).groupby(label.to_numpy(dtype=object)).sum()
    lacking = [name for name, n in n_rows.items() if not n]
    if lacking:
        raise ValueError(
            f"all rows with {label.name} = {lacking[0]!r} are held out for the test, as there are "
            "few of them; remove these rows, or use another --seed"
        )
    keys = _cell_keys([label, *(groups[name] for name in groups)])
    cells = pd.Series(kept).groupby(keys.to_numpy(dtype=object), sort=True).sum()
    sizes = cells.to_numpy(dtype=np.int64)
    rates, base = sample_rates(sizes, wanted)
    # Rows without a label are not drawn.
    rate = np.zeros(len(raw))
    rate[known] = rates[cells.index.get_indexer(pd.Index(keys))]
    by_rate: dict[float, dict[str, None]] = {}
    for name, share in zip(raw[CELL].astype(str), rate.tolist(), strict=True):
        if share != base:
            by_rate.setdefault(share, {})[name] = None
    counts = {
        "cells": cells,
        "n_held_out": int(known_times[is_held_out].sum()),
        "n_unlabelled": int(times[~known].sum()),
        "n_rare": int(sizes[rates >= 1].sum()) if base < 1 else 0,
    }
    shares = {share: list(by_rate[share]) for share in sorted(by_rate, reverse=True)}
    return replace(query, rates=shares, base=base), counts


def draw_sample(
    table: LargeTable, columns: ColumnRoles, wanted: int
) -> tuple[pd.DataFrame, TableSample]:
    """Counts the cells of a table, and reads rows of each.

    Returns:
        The rows, as `read_table` reads them, and what is known of the sample.

    Raises:
        ValueError: if the table cannot be used; the message says why.
        ScanError: if duckdb cannot read the table.
    """
    with table.scan() as scan:
        columns.check(scan.names)
        kept = [name for name in scan.names if name not in columns.drop]
        query = table.query(scan.prepared(cell_query(columns)))
        part = f"CASE WHEN {query.is_held_out()} THEN '{HELD_OUT}' ELSE '{REST}' END"
        more = {**query.cell.more, PART: part, CELL: query.cell_name()}
        answer = scan.count(replace(query.cell, more=more))
        query, counts = planned(query, answer, columns, row_limit(wanted, len(kept)))
        judged = query.is_judged(min(1.0, JUDGED_SHARE * wanted / max(1, counts["n_held_out"])))
        where = f"{scan.table} WHERE ({query.is_drawn()}) OR {judged}"

        def pieces(chosen: Sequence[str] | None, _: Any) -> Iterator[pd.DataFrame]:
            selected = ", ".join(quoted_name(name) for name in (kept if chosen is None else chosen))
            return table.pieces(scan, f"SELECT {selected}, {part} AS {PART} FROM {where}")  # noqa: S608 - as above

        frame = read_pieces(pieces, scan.name, missing=scan.options.missing)
    is_judged = (frame.pop(PART) == HELD_OUT).to_numpy()
    return frame, TableSample(table, query, is_judged, int(answer.times.sum()), **counts)
