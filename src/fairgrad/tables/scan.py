"""Tables of any size, counted by duckdb where they lie: memory does not grow with the rows.

Folders of Parquet files, also partitioned ones, CSV files and tables of a duckdb database. Only the
distinct combinations of values come back (`tables/sql.py`), and are read as the rows would be
(`tables/reading.py` `typed_table`). What duckdb would read otherwise than `read_table` does, is
left to that: `open_scan` and `Scan.count` raise `ScanError`.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import counted
from fairgrad.tables.column import MISSING_TEXTS, ReadingReport, cut_names, parse_numbers
from fairgrad.tables.dialect import Dialect, ReadingOptions, find_dialect
from fairgrad.tables.reading import (
    INSTALL,
    all_files,
    all_named,
    database_table,
    import_library,
    is_parquet,
    one_line,
    plain_frame,
    table_files,
    table_name,
    typed_table,
)
from fairgrad.tables.sql import (
    INFINITE,
    LEAST,
    N_ROWS,
    SQUARES,
    CountQuery,
    quoted_name,
    quoted_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from fairgrad.tables.reading import TableSource

MEMORY = 640
"""Megabytes that duckdb may use; what needs more goes to the disk for a while."""

MOST_COMBINATIONS = 2_000_000

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?"
_NUMERIC = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "REAL")
_DATES = ("DATE", "TIMESTAMP")


class ScanError(Exception):
    """The table is to be read row by row, and why."""


@dataclass(frozen=True, eq=False)
class CountedAnswer:
    """The distinct rows of a table.

    Attributes:
        frame: as `read_table` reads them; numbers that were cut are groups, scores are 1 or 0,
            dates the first days of periods, weights sums of weights.
        times: (n,) how many rows each stands for.
        raw: the rows as they were counted.
        squares: (n,) sums of squared weights; None without weights.
    """

    frame: pd.DataFrame
    times: NDArray[np.int64]
    raw: pd.DataFrame
    squares: NDArray[np.float64] | None = None


@dataclass(eq=False)
class Scan:
    """A table that duckdb can count.

    Attributes:
        connection: of duckdb.
        table: what stands behind FROM.
        name: what to call the table in sentences.
        types: of its columns, by name.
        options: what the user says of the files.
        decimal: the mark before decimals in texts.
        notes: how files of text were read.
        tell: gets the percentage of a query that is done.
    """

    connection: Any
    table: str
    name: str
    types: dict[str, str]
    options: ReadingOptions = field(default_factory=ReadingOptions)
    decimal: str = "."
    notes: tuple[str, ...] = ()
    tell: Callable[[float], None] = lambda _: None

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.types)

    def prepared(self, query: CountQuery) -> CountQuery:
        """The query for these columns: texts are read as numbers or dates.

        Raises:
            ValueError: if numbers or dates are needed, and a column has none.
        """
        written, more = dict(query.written), dict(query.more)
        for name, option in query.numeric.items():
            written[name], gap = self.as_number(name, option)
            more |= {_gap_name(name): gap} if gap else {}
        keys, over = query.keys, query.over
        if over is not None and not self.types[over[0]].startswith(_DATES):
            name = over[0]
            if self.types[name] != "VARCHAR":
                raise ValueError(f"--time names {name!r}, whose values are not dates")
            text = f"trim({quoted_name(name)})"
            day = f"CASE WHEN regexp_full_match({text}, '{_ISO}') THEN left({text}, 10)"
            # The format of other texts is found later.
            written[name], keys, over = f"{day} ELSE {text} END", (*keys, name), None
        return replace(query, keys=keys, written=written, more=more, over=over)

    def count(self, query: CountQuery) -> CountedAnswer:
        """The distinct rows.

        Raises:
            ValueError: if the table has no rows, or far too many different values.
            ScanError: if it has to be read row by row.
        """
        asked, query = query.columns, self.prepared(query)
        raw = self.run(f"{query.sql(self.table)}LIMIT {MOST_COMBINATIONS + 1}")
        if not len(raw):
            raise ValueError(f"{self.name} has no rows")
        if len(raw) > MOST_COMBINATIONS:
            raise ValueError(
                f"{self.name} has more than {MOST_COMBINATIONS:,} combinations of the values of "
                f"{', '.join(asked)}; a group needs many rows, so name other columns, or "
                "give --bins"
            )
        times = raw[N_ROWS].to_numpy(dtype=np.int64)
        keys = [name for name in query.keys if name not in query.bins]
        report = ReadingReport(
            files=list(self.notes), decimal=self.decimal, missing=self.options.missing
        )
        frame = typed_table(raw[keys].items(), report, times=times)
        self._check_texts(query, raw, times, report)
        for name, edges in query.bins.items():
            self._refuse_infinite(raw[name] == INFINITE, times, name)
            frame[name] = pd.Categorical(raw[name], categories=pd.Index(cut_names(edges)))
        if query.score is not None:
            self._refuse_infinite(raw[query.score[0]] == 2, times, query.score[0])
            frame[query.score[0]] = raw[query.score[0]].to_numpy(np.float64, na_value=np.nan)
        if query.over is not None:
            frame[query.over[0]] = pd.to_datetime(raw[query.over[0]])
        if query.weight is None:
            return CountedAnswer(frame, times, raw)
        least = raw[LEAST].min()
        if least < 0:
            raise ValueError(
                "sample_weight: expected finite weights of at least 0 that do not sum to zero; got "
                f"a minimum of {least} in {query.weight!r}."
            )
        frame[query.weight] = raw[query.weight].to_numpy(np.float64, na_value=np.nan)
        squares = raw[SQUARES].to_numpy(np.float64, na_value=np.nan)
        return CountedAnswer(frame, times, raw, squares)

    def run(self, sql: str) -> pd.DataFrame:
        """The answer to a query as a frame, which Ctrl-C stops.

        The query runs in a separate thread, because only the main thread receives signals.

        Raises:
            ScanError: if duckdb cannot answer it.
        """
        with scan_errors(), ThreadPoolExecutor(1) as pool:
            answer = pool.submit(lambda: self.connection.execute(sql).fetchall())
            try:
                while not wait([answer], 0.1).done:
                    self.tell(float(self.connection.query_progress()))
            except BaseException:
                self.connection.interrupt()
                raise
            rows = answer.result()
        names = [column[0] for column in self.connection.description]
        return plain_frame(pd.DataFrame(rows, columns=pd.Index(names)))

    def _check_texts(
        self, query: CountQuery, raw: pd.DataFrame, times: NDArray[np.int64], report: ReadingReport
    ) -> None:
        """Notes texts among numbers that mean a missing value; others are for `read_table`."""
        missing = {*MISSING_TEXTS, *self.options.missing}
        for name in query.numeric:
            if _gap_name(name) not in query.more:
                continue
            counts = pd.Series(times).groupby(raw[_gap_name(name)].to_numpy(dtype=object)).sum()
            odd = [str(text) for text in counts.index if text not in missing]
            if odd:
                raise ScanError(f"{name!r} has texts such as {odd[0]!r} among its numbers")
            if len(counts) and raw[name].isna().all():  # then they may be plain texts
                raise ScanError(f"{name!r} has no numbers")
            report.gaps[name] = {str(text): int(n) for text, n in counts.items() if n}

    def _refuse_infinite(self, is_infinite: pd.Series, times: NDArray[np.int64], name: str) -> None:
        n = int(times[is_infinite.fillna(value=False).to_numpy(dtype=bool)].sum())
        if n:
            raise ValueError(f"the column {name!r} holds {counted(n, 'infinite number')}")

    def as_number(self, name: str, option: str) -> tuple[str, str]:
        """The number of a column in SQL, and the text that stands in its place; empty for none."""
        kind, column = self.types[name], quoted_name(name)
        is_text = kind == "VARCHAR"
        if not is_text and not kind.startswith(_NUMERIC) and "INT" not in kind:
            raise ValueError(f"{option} names {name!r}, whose values are not numbers")
        text = f"trim({column})" if is_text else f"CAST({column} AS VARCHAR)"
        number = column
        if is_text:
            plain = text if self.decimal == "." else f"replace({text}, ',', '.')"
            fits = f"regexp_full_match({plain}, '{_NUMBER}')"
            fits += "" if self.decimal == "." else f" AND NOT contains({text}, '.')"
            number = f"(CASE WHEN {fits} THEN CAST({plain} AS DOUBLE) END)"
        gaps = parse_numbers(self.options.missing, self.decimal)
        gaps = gaps[~np.isnan(gaps)].tolist()
        if gaps:
            listed = ", ".join(map(repr, gaps))
            number = f"(CASE WHEN {number} NOT IN ({listed}) THEN {number} END)"
        if not is_text and not gaps:
            return column, ""
        return number, f"CASE WHEN {number} IS NULL THEN {text} END"


@contextmanager
def scan_errors() -> Iterator[None]:
    """Errors of duckdb become `ScanError`."""
    import duckdb  # noqa: PLC0415 - an extra

    try:
        yield
    except duckdb.Error as error:
        raise ScanError(one_line(error)) from error


@contextmanager
def open_scan(source: TableSource, options: ReadingOptions) -> Iterator[Scan]:
    """A table for duckdb; closed, and its temporary files removed, at the end.

    Raises:
        ImportError: if duckdb is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if a database has no such table.
        ScanError: if the table is to be read row by row.
    """
    database, name = database_table(source), table_name(source)
    notes: tuple[str, ...] = ()
    decimal = "."
    with connected(name, None if database is None else database[0]) as connection:
        if database is not None:
            table = _table_of(connection, *database)
        else:
            files = list(all_files(table_files(source)))
            parquet = [is_parquet(path) for path in files]
            if all(parquet):
                table = parquet_table(files)
                schema = f"SELECT DISTINCT name FROM parquet_schema({quoted_text(str(files[0]))})"  # noqa: S608 - names are quoted
                with scan_errors():
                    check_cases([column for (column,) in connection.execute(schema).fetchall()])
            elif any(parquet):
                raise ScanError("there are Parquet and other files")
            else:
                table, decimal, notes = _csv_files(files, options)
        types = column_types(connection, table)
        yield Scan(connection, table, name, types, options, decimal, notes)


@contextmanager
def connected(name: str, database: Path | None = None) -> Iterator[Any]:
    """A connection of duckdb with little memory, to a database or to none.

    Raises:
        ImportError: if duckdb is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if the database cannot be opened.
    """
    duckdb = import_library("duckdb", name, INSTALL)
    if database is not None and not database.is_file():
        raise FileNotFoundError(f"cannot read {str(database)!r}: there is no such file")
    with tempfile.TemporaryDirectory(prefix="fairgrad-", ignore_cleanup_errors=True) as folder:
        try:
            connection = (
                duckdb.connect(str(database), read_only=True) if database else duckdb.connect()
            )
        except duckdb.Error as error:
            raise ValueError(f"{name} cannot be opened ({one_line(error)})") from None
        with connection:
            ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
            for setting in (
                f"memory_limit = '{max(MEMORY, 64 * threads)}MB'",
                f"temp_directory = '{folder}'",
                "preserve_insertion_order = false",
                "TimeZone = 'UTC'",
            ):
                connection.execute(f"SET {setting}")
            yield connection


def parquet_table(files: Sequence[Path], *more: str) -> str:
    """Parquet files in SQL, behind FROM, with further options."""
    listed = ", ".join(quoted_text(str(path)) for path in files)
    how = ", ".join(["hive_partitioning = true", "hive_types_autocast = false", *more])
    return f"read_parquet([{listed}], {how})"


def column_types(connection: Any, table: str) -> dict[str, str]:
    """The types of a table's columns, by name."""
    with scan_errors():
        described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()  # noqa: S608 - names are quoted
    return {str(name): str(kind) for name, kind, *_ in described}


def _table_of(connection: Any, path: Path, name: str) -> str:
    known = connection.execute(
        "SELECT schema_name, name FROM ("
        "SELECT schema_name, table_name AS name FROM duckdb_tables() UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal) ORDER BY 1, 2"
    ).fetchall()
    names = [table if schema == "main" else f"{schema}.{table}" for schema, table in known]
    if not name and len(names) == 1:
        name = names[0]
    if name not in names:
        listed = ", ".join(names) or "none"
        asked = f"has no table {name!r}" if name else "has several tables"
        raise ValueError(
            f"{path.name} {asked if names else 'has no tables'}; name one of its tables as "
            f"{path.name}::TABLE: {listed}"
        )
    schema, table = known[names.index(name)]
    return f"{quoted_name(schema)}.{quoted_name(table)}"


def _csv_files(files: Sequence[Path], options: ReadingOptions) -> tuple[str, str, tuple[str, ...]]:
    """Files of text in SQL, their decimal mark, and notes on how they were read.

    Files that duckdb cannot read, or would read differently, are refused.
    """
    alike: dict[tuple[Dialect, tuple[str, ...]], list[Path]] = {}
    notes = []
    for path in files:
        dialect = find_dialect(path, options)
        if (
            dialect.encoding not in {"utf-8", "utf-8-sig"}
            or dialect.skipinitialspace
            or "" in dialect.names
            or (dialect.above, dialect.footer) != (1, ())
            or path.name.lower().endswith((".xz", ".bz2"))
        ):
            raise ScanError(f"duckdb cannot read the format of {path.name}")
        names = tuple(all_named(dialect.names, path.name))
        check_cases(names)
        alike.setdefault((dialect, names), []).append(path)
        notes.append(dialect.sentence(path))
    if len({frozenset(names) for _, names in alike}) > 1:
        raise ScanError("the files have different columns")
    if len({dialect.decimal for dialect, _ in alike}) > 1:
        raise ScanError("the files have different decimal marks")
    selects = [f"SELECT * FROM {_csv_table(*how, paths)}" for how, paths in alike.items()]  # noqa: S608 - names are quoted
    first = next(iter(alike))[0]
    joined = " UNION ALL BY NAME ".join(selects)
    return f"({joined})", first.decimal, tuple(dict.fromkeys(note for note in notes if note))


def check_cases(names: Sequence[str]) -> None:
    """Refuses names that are one name for duckdb."""
    if len({name.lower() for name in names}) < len(set(names)):
        raise ScanError("column names differ only in case")


def _csv_table(dialect: Dialect, names: Sequence[str], paths: Sequence[Path]) -> str:
    listed = ", ".join(quoted_text(str(path)) for path in paths)
    columns = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in names)
    escape = dialect.escapechar or dialect.quotechar
    return (
        f"read_csv([{listed}], auto_detect = false, header = true, "
        f"delim = {quoted_text(dialect.sep)}, quote = {quoted_text(dialect.quotechar)}, "
        f"escape = {quoted_text(escape)}, "
        f"columns = {{{columns}}})"
    )


def _gap_name(name: str) -> str:
    return f"{name} (text)"
