"""Users' files: CSV, TSV, Parquet, Excel, Stata, SPSS and SAS, one or many, piece by piece.

Texts become categories while they are read, so that a value that stands in a million rows is kept
once. What a column holds is decided from all its values (`tables/column.py`).
"""

from __future__ import annotations

import atexit
import itertools
import lzma
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from fairgrad.tables.column import (
    READING,
    ColumnReader,
    ReadingReport,
    column_kind,
    parse_numbers,
    value_name,
)
from fairgrad.tables.dialect import (
    ReadingOptions,
    find_dialect,
    find_footer,
    find_header,
    layout_sentences,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fairgrad.tables.column import Times

    PieceReader = Callable[[Sequence[str] | None, Sequence[str]], Iterator[pd.DataFrame]]
    """Gives the pieces of a table: some columns, or all; and some columns as texts."""

PACKED_TEXTS = (".csv.gz", ".csv.xz", ".csv.bz2", ".tsv.gz")
TEXT_ENDINGS = (".csv", ".txt", ".data", ".tsv", ".tab", *PACKED_TEXTS)
PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xlsm")


def _read_sas(path: Path) -> pd.DataFrame:
    """A SAS file; a transport file does not record the encoding of its texts."""
    if path.suffix.lower() != ".xpt":
        return pd.read_sas(path, encoding="infer")
    try:
        return pd.read_sas(path, encoding="utf-8")
    except UnicodeDecodeError:
        return pd.read_sas(path, encoding="cp1252")


STATISTICS: dict[str, tuple[str, Callable[[Path], pd.DataFrame]]] = {
    ".dta": ("a Stata", pd.read_stata),
    ".sav": ("an SPSS", pd.read_spss),
    ".zsav": ("an SPSS", pd.read_spss),
    ".sas7bdat": ("a SAS", _read_sas),
    ".xpt": ("a SAS", _read_sas),
}
"""Files of statistics programs: the program, and how pandas reads them."""

WHOLE_ENDINGS = (*EXCEL_ENDINGS, *STATISTICS)
"""Files that are read as a whole."""

PACKED_ENDINGS = (".zip", ".zst")
"""Files that are unpacked before they are read."""

ENDINGS = TEXT_ENDINGS + PARQUET_ENDINGS + WHOLE_ENDINGS + PACKED_ENDINGS

PIECE = 50_000
"""Rows read at a time."""

DATABASE_ENDINGS = (".duckdb", ".ddb")
LARGE = 64 << 20
"""Bytes of text files from which on they are counted where they lie."""

INSTALL = "'fairgrad[scale]'"
"""The extra that installs duckdb, which counts them."""

MOST_PACKED = 20
"""How many times its size a packed file of text may hold."""

VALUE_BYTES = 64
"""Memory that a value needs at most while a table is read, encoded and trained on."""

MEMORY_SHARE = 0.5
"""Share of the free memory that the rows may take."""

STDIN = "-"

#: One file or several, a folder of files, a pattern such as ``"2024-*.csv"``, or ``"-"``.
TableSource = str | Path | Sequence[str | Path]

_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)
_MARKS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"(\xb5/\xfd": ".csv.zst",
}
"""What the files begin with that come through a pipe."""

_COMPRESSIONS: dict[str, Any] = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}


def table_files(table: TableSource) -> list[Path]:
    """The files of a table; a folder of Parquet files stands for itself.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a folder or a pattern has no tables.
    """
    if not isinstance(table, str | Path):
        return [file for place in table for file in table_files(place)]
    path = Path(table).expanduser()
    if database_table(table) is not None:
        raise ValueError(f"{table} is in a database; export it to a Parquet file first")
    if str(table) == STDIN or path.is_fifo():
        return [_spooled(str(table))]
    if path.is_dir():
        return _folder(path)
    if not path.exists() and any(mark in str(table) for mark in "*?["):
        files = sorted(Path(name) for name in glob(str(path)))  # noqa: PTH207 - a pattern of any depth
        if not files:
            raise FileNotFoundError(f"cannot read {str(table)!r}: no file matches this pattern")
        return files
    if not path.is_file():
        raise FileNotFoundError(f"cannot read {str(path)!r}: there is no such file")
    if not path.name.lower().endswith(ENDINGS):
        raise ValueError(
            f"cannot read {path.name!r}; expected a file ending in {', '.join(ENDINGS)}"
        )
    if path.name.lower().endswith(PACKED_ENDINGS):
        return table_files(_unpacked(path, path.stat().st_mtime_ns))
    return [path]


def has_duckdb() -> bool:
    """Whether duckdb is installed."""
    return find_spec("duckdb") is not None


def database_table(source: TableSource) -> tuple[Path, str] | None:
    """The file and the name of a table of a database, as in ``people.duckdb::loans``."""
    if not isinstance(source, str | Path):
        return database_table(source[0]) if len(source) == 1 else None
    file, _, name = str(source).partition("::")
    is_database = file.lower().endswith(DATABASE_ENDINGS)
    return (Path(file).expanduser(), name) if is_database else None


def is_scanned(source: TableSource) -> bool:
    """Whether a table is counted by duckdb: a database, Parquet files, or much text."""
    if database_table(source) is not None:
        return True
    if not has_duckdb():
        return False
    files = table_files(source)
    if any(path.name.lower().endswith(WHOLE_ENDINGS) for path in files):
        return False
    return all(is_parquet(path) for path in files) or table_bytes(source) >= LARGE


def row_limit(wanted: int, n_columns: int) -> int:
    """How many rows may be held: as many as wanted, but no more than the free memory allows."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return wanted
    return max(1, min(wanted, int(MEMORY_SHARE * free / (VALUE_BYTES * max(1, n_columns)))))


def may_exceed(source: TableSource, n_columns: int, wanted: int, test: float) -> bool:
    """Whether a table may have more rows to train on than are wanted, by the size of its files."""
    files = table_files(source)
    if any(path.name.lower().endswith(WHOLE_ENDINGS) for path in files):
        return False
    if all(map(is_parquet, files)):
        n_rows: float = parquet_size(files)[0]
    else:  # a field and what separates it take two bytes at least
        is_packed = any(path.name.lower().endswith(PACKED_TEXTS) for path in files)
        size = table_bytes(source) * (MOST_PACKED if is_packed else 1)
        n_rows = size / (2 * n_columns) if has_duckdb() or size >= 16 * LARGE else 0
    return bool((1 - test) * n_rows > row_limit(wanted, n_columns))


def all_files(paths: Sequence[Path]) -> dict[Path, str]:
    """The files, with those of folders of Parquet files, and what to call each.

    Hidden files are passed over.
    """
    files = {}
    for path in paths:
        if not path.is_dir():
            files[path] = path.name
            continue
        for file in sorted(path.rglob("*")):
            inside = file.relative_to(path)
            hidden = any(piece.startswith((".", "_")) for piece in inside.parts)
            if not hidden and file.name.lower().endswith(PARQUET_ENDINGS):
                files[file] = inside.as_posix()
    return files


def table_bytes(source: TableSource) -> int:
    """The size of all files of a table."""
    return sum(path.stat().st_size for path in all_files(table_files(source)))


def is_parquet(path: Path) -> bool:
    """Whether one of `table_files` is a Parquet file, or a folder of them."""
    return path.is_dir() or path.name.lower().endswith(PARQUET_ENDINGS)


def _folder(path: Path) -> list[Path]:
    if (path / "fairgrad.json").is_file():
        raise ValueError(f"{path} is a folder that fairgrad has written; give a table")
    files = [file for file in sorted(path.rglob("*")) if file.name.lower().endswith(ENDINGS)]
    files = [file for file in files if not file.name.startswith((".", "_"))]
    parquet = [file for file in files if file.name.lower().endswith(PARQUET_ENDINGS)]
    if not files:
        raise ValueError(
            f"{path} is a folder without tables; give a CSV, TSV, Parquet or Excel file, or a "
            "folder of them"
        )
    if parquet and len(parquet) < len(files):
        raise ValueError(f"{path} is a folder of Parquet and other tables; name the files")
    return [path] if parquet else files


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fairgrad-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@lru_cache(maxsize=8)
def _spooled(source: str) -> Path:
    """A pipe or the standard input as a file, which is read more than once."""
    with nullcontext(sys.stdin.buffer) if source == STDIN else Path(source).open("rb") as stream:
        start = stream.read(4)
        ending = next((end for mark, end in _MARKS.items() if start.startswith(mark)), "")
        path = _temporary_folder() / f"{table_name(source)}{ending}"
        with path.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(stream, file)
    return _unpacked(path, 0) if ending.endswith(PACKED_ENDINGS) else path


@lru_cache(maxsize=64)
def _unpacked(path: Path, _time: int) -> Path:
    """The one file of a zip archive, or what a Zstandard file holds."""
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                names = [member.filename for member in archive.infolist() if not member.is_dir()]
                names = [member for member in names if not member.startswith("__MACOSX/")]
                if len(names) != 1:
                    raise ValueError(f"{path.name} contains {len(names)} files; expected one table")
                target = _temporary_folder() / Path(names[0]).name
                with archive.open(names[0]) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
            return target
        target = _temporary_folder() / path.stem
        arrow = import_library("pyarrow", "reading Zstandard files")
        with arrow.input_stream(str(path), compression="zstd") as packed, target.open("wb") as file:
            shutil.copyfileobj(packed, file)
    except (OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name} cannot be unpacked ({one_line(error)})") from error
    return target


def import_library(module: str, use: str, install: str = "") -> Any:
    """A library that not everyone has; `use` is what needs it.

    Raises:
        ImportError: if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"{use} needs {package}: pip install {install or package}") from None


def table_name(table: TableSource) -> str:
    """What to call a table in sentences."""
    if not isinstance(table, str | Path):
        first, *others = table
        more = f" and {len(others)} more" if others else ""
        return f"{table_name(first)}{more}"
    if str(table) == STDIN:
        return "standard input"
    return "the pipe" if Path(table).is_fifo() else Path(table).name


def read_table(
    table: TableSource,
    columns: Sequence[str] | None = None,
    *,
    options: ReadingOptions | None = None,
    texts: Sequence[str] = (),
    done: Callable[[float], object] | None = None,
) -> pd.DataFrame:
    """The whole table: numbers as numbers, dates as dates, everything else as categories.

    `done` is called with the share of the table that has been read.

    Raises:
        ValueError: if a file cannot be read, or the table holds no rows.
        FileNotFoundError: if there is no such file.
    """
    options = options or ReadingOptions()
    read = partial(pieces, table, options=options)
    how: dict[str, Any] = {"missing": options.missing, "texts": texts, "done": done}
    return read_pieces(read, table_name(table), columns, **how)


def read_pieces(
    read: PieceReader,
    name: str,
    columns: Sequence[str] | None = None,
    *,
    missing: tuple[str, ...] = (),
    texts: Sequence[str] = (),
    done: Callable[[float], object] | None = None,
) -> pd.DataFrame:
    """A whole table from pieces of it, as `read_table` reads one; `read` may be called twice.

    Raises:
        ValueError: if the table holds no rows.
    """
    report = ReadingReport(missing=missing)
    gathered = _gathered(read(columns, texts), report, done)
    mixed = [
        label for label, rows in gathered.items() if len({_dtype_kind(r) for r in rows} - {""}) > 1
    ]
    if mixed:  # what looked like numbers in one piece was none in another
        gathered |= _gathered(read(mixed, mixed), report, done)
    if not any(len(rows) for rows in next(iter(gathered.values()), ())):
        raise ValueError(f"{name} has no rows")
    # Given up one by one, so that the table is not in memory twice.
    columns_read = ((label, _joined(gathered.pop(label))) for label in list(gathered))
    return typed_table(columns_read, report, texts=texts)


def _gathered(
    read: Iterable[pd.DataFrame], report: ReadingReport, done: Callable[[float], object] | None
) -> dict[str, list[pd.Series]]:
    """The pieces of each column; texts are categories, so that each is kept once."""
    gathered: dict[str, list[pd.Series]] = {}
    for piece in read:
        report.note_piece(piece)
        if done is not None:
            done(piece.attrs.get("done", 0.0))
        for label in map(str, piece.columns):
            rows = piece[label]
            is_text = _dtype_kind(rows) == "text"
            gathered.setdefault(label, []).append(rows.astype("category") if is_text else rows)
    return gathered


def _dtype_kind(rows: pd.Series) -> str:
    """What pandas has read: numbers, dates, booleans or texts; empty if all values are missing."""
    if rows.isna().all():
        return ""
    if isinstance(rows.dtype, pd.CategoricalDtype):
        return "text"
    # Integers of more than 64 bits are objects.
    kinds = {"boolean": "truth", "integer": "number"}
    kind = kinds.get(pd.api.types.infer_dtype(rows, skipna=True))
    return kind or column_kind(rows).replace("category", "text")


def _joined(pieces_read: Sequence[pd.Series]) -> pd.Series:
    if len(pieces_read) == 1:
        return pieces_read[0]
    kinds = {_dtype_kind(rows) for rows in pieces_read} - {""}
    if kinds == {"text"}:
        text = next(rows for rows in pieces_read if rows.notna().any())
        empty = pd.CategoricalDtype(text.cat.categories[:0])
        filled = [rows.astype(empty) if rows.isna().all() else rows for rows in pieces_read]
        return pd.Series(union_categoricals(filled))
    if kinds == {"date"}:
        pieces_read = [pd.to_datetime(rows, utc=True) for rows in pieces_read]
    return pd.concat(pieces_read, ignore_index=True)


def typed_table(
    columns: Iterable[tuple[Any, pd.Series]],
    report: ReadingReport,
    *,
    texts: Sequence[str] = (),
    times: Times = None,
) -> pd.DataFrame:
    """A table whose columns are read for what their values are.

    What a column holds is found from its distinct values, so it is the same for all rows of a table
    and for a query's answer, which has one row per combination of values.

    Args:
        columns: names and values.
        report: the notes on the files, and their decimal mark; gets the notes on the columns.
        texts: columns to leave as texts.
        times: (n,) how many rows of the table each row stands for; None for one.
    """
    data = {}
    for label, column in columns:
        name = str(label)
        reader = ColumnReader(name, report, as_text=name in texts, times=times)
        data[name] = reader.read(column)
    frame = pd.DataFrame(data, copy=False)
    frame.attrs[READING] = report
    return frame


def pieces(
    table: TableSource,
    columns: Sequence[str] | None = None,
    texts: Sequence[str] | Literal[True] = (),
    rows: int = PIECE,
    options: ReadingOptions | None = None,
) -> Iterator[pd.DataFrame]:
    """Consecutive rows of a table, some thousands at a time; one piece of a table without rows.

    `texts` are columns of CSV files to leave as the texts they are. True means all columns, and
    that also empty fields are texts.
    """
    options = options or ReadingOptions()
    first: list[str] | None = None
    frames: Iterable[pd.DataFrame]
    paths = table_files(table)
    for place, path in enumerate(paths):
        name = path.name.lower()
        if is_parquet(path):
            frames = parquet_frames(path, columns, rows)
        elif name.endswith(WHOLE_ENDINGS):
            frames = _whole(path, columns, rows, options)
        else:
            frames = _csv(path, columns, texts, rows, options)
        for piece in frames:
            names = list(piece.columns)
            first = names if first is None else first
            if set(names) != set(first):
                refuse_columns(path, names, first)
            chosen = piece[first]
            chosen.attrs["done"] = (place + piece.attrs.get("done", 0.0)) / len(paths)
            yield chosen


def refuse_columns(path: Path, names: Sequence[str], first: Sequence[str]) -> None:
    """Refuses a file that has other columns than the first one."""
    lacks = [name for name in first if name not in names]
    what = f"lacks the column {lacks[0]!r}" if lacks else ""
    if not lacks:
        what = f"has a column {next(name for name in names if name not in first)!r}"
    raise ValueError(f"{path.name} {what}, unlike the files before it")


def column_names(table: TableSource, options: ReadingOptions | None = None) -> list[str]:
    """The names of a table's columns."""
    first = table_files(table)[0]
    if is_parquet(first):  # no row is read
        files = parquet_files(first)
        return [str(name) for name in next(files).schema.names]
    piece = next(pieces(table, rows=1, options=options))
    return [str(name) for name in piece.columns]


def _csv(
    path: Path,
    columns: Sequence[str] | None,
    texts: Sequence[str] | Literal[True],
    rows: int,
    options: ReadingOptions,
) -> Iterator[pd.DataFrame]:
    how: dict[str, Any] = {"keep_default_na": False, "low_memory": False}
    if texts is True:
        how |= {"dtype": str}
    else:
        how |= {"na_values": [""], "dtype": dict.fromkeys(texts, str)}
    try:
        dialect = find_dialect(path, options)
        note = dialect.sentence(path)
        how |= {
            "encoding": dialect.encoding,
            "quotechar": dialect.quotechar,
            "escapechar": dialect.escapechar,
            "skipinitialspace": dialect.skipinitialspace,
            "sep": dialect.sep,
            "decimal": dialect.decimal,
            "header": None,
            "names": all_named(dialect.names, path.name),
            "skiprows": dialect.above,
            "chunksize": rows,
            "compression": _COMPRESSIONS.get(path.suffix.lower()),
        }
        with path.open("rb") as file, pd.read_csv(file, **how) as reader:
            for piece in _without_last(reader, len(dialect.footer)):
                # Chosen here: pandas' usecols would pass over faulty rows.
                chosen = piece if columns is None else piece[known_columns(columns, piece.columns)]
                done = file.tell() / path.stat().st_size
                chosen.attrs |= {"decimal": dialect.decimal, "note": note, "done": done}
                yield chosen
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty") from None
    except (pd.errors.ParserError, UnicodeDecodeError, *_BROKEN) as error:
        raise ValueError(f"{path.name} cannot be read as a table ({one_line(error)})") from error


def _without_last(pieces: Iterable[pd.DataFrame], n: int) -> Iterator[pd.DataFrame]:
    """The pieces without the last n rows of all."""
    held: pd.DataFrame | None = None
    for piece in pieces:
        rows = piece if held is None else pd.concat([held, piece])
        yield rows.iloc[: max(0, len(rows) - n)]
        held = rows.iloc[max(0, len(rows) - n) :] if n else None


@dataclass(frozen=True, eq=False)
class ParquetFile:
    """One file of a folder of Parquet files.

    Attributes:
        path: its place.
        keys: columns whose value stands in the names of its folders.
        schema: of its batches.
        batches: its rows as Arrow's record batches; at least one, which may be empty.
    """

    path: Path
    keys: tuple[str, ...]
    schema: Any
    batches: Iterator[Any]


def parquet_files(
    path: Path, columns: Sequence[str] | None = None, rows: int = PIECE
) -> Iterator[ParquetFile]:
    """The files of a Parquet folder, or the file, to be read one after the other.

    Raises:
        ImportError: if pyarrow is not installed.
        ValueError: if a file cannot be read.
    """
    with as_parquet(path) as arrow:
        files = _dataset(path)
        check_distinct(files.schema.names, path.name)
        wanted = (
            files.schema.names if columns is None else known_columns(columns, files.schema.names)
        )
        schema = arrow.schema([files.schema.field(name) for name in wanted])
        fragments = list(files.get_fragments())
    # Without reading ahead there is one row group in memory at a time.
    how = {"schema": files.schema, "columns": wanted, "batch_size": rows}
    how |= {"batch_readahead": 1, "fragment_readahead": 1}

    def batches(fragment: Any, *, is_first: bool) -> Iterator[Any]:
        is_empty = is_first  # of a table without rows there is one batch
        with as_parquet(path):
            for batch in fragment.to_batches(**how):
                if batch.num_rows:
                    is_empty = False
                    yield batch
        if is_empty:
            yield arrow.RecordBatch.from_pylist([], schema=schema)

    for place, fragment in enumerate(fragments):
        partition = import_library("pyarrow.dataset", "reading Parquet files").get_partition_keys
        keys = tuple(partition(fragment.partition_expression))
        yield ParquetFile(Path(fragment.path), keys, schema, batches(fragment, is_first=not place))


def parquet_frames(path: Path, columns: Sequence[str] | None, rows: int) -> Iterator[pd.DataFrame]:
    """The same as frames, which keep the share of the rows that were read so far."""
    n_rows, n_read = max(1, parquet_size([path])[0]), 0
    for file in parquet_files(path, columns, rows):
        for batch in file.batches:
            frame = plain_frame(batch.to_pandas())
            n_read += len(frame)
            frame.attrs["done"] = n_read / n_rows
            yield frame


def _dataset(path: Path) -> Any:
    """Folders named key=value hold one value of a column each, as Spark and others write them."""
    dataset = import_library("pyarrow.dataset", "reading Parquet files")
    return dataset.dataset(path, format="parquet", partitioning="hive")


def parquet_size(paths: Sequence[Path]) -> tuple[int, int]:
    """How many rows Parquet files hold, and how many values; no row is read."""
    n_rows = n_values = 0
    for path in paths:
        with as_parquet(path):
            files = _dataset(path)
            total = files.count_rows()
            n_rows, n_values = n_rows + total, n_values + total * len(files.schema.names)
    return n_rows, n_values


@contextmanager
def as_parquet(path: Path) -> Iterator[Any]:
    """Gives pyarrow; what it cannot read is an error that names the file."""
    arrow = import_library("pyarrow", "reading Parquet files")
    try:
        yield arrow
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(
            f"{path.name} cannot be read as a Parquet file ({one_line(error)})"
        ) from error


def all_named(header: Iterable[Any], table: str) -> list[str]:
    """Names of columns, each once; those without a name are called as pandas does."""
    names = [str(name).strip() for name in header]
    check_distinct([name for name in names if name], table)
    for place, name in enumerate(names):
        if not name:
            free = (f"Unnamed: {n}" for n in itertools.count(place))
            names[place] = next(name for name in free if name not in names)
    return names


def check_distinct(names: Iterable[Any], table: str) -> None:
    """Refuses two columns of one name."""
    seen = pd.Series(list(names), dtype=object)
    if seen.duplicated().any():
        twice = str(seen[seen.duplicated()].iloc[0])
        is_number = not np.isnan(parse_numbers([twice])[0])
        hint = "; its first row must hold the names of the columns" if is_number else ""
        raise ValueError(f"{table} has two columns called {twice!r}{hint}")


def _whole(
    path: Path, columns: Sequence[str] | None, rows: int, options: ReadingOptions
) -> Iterator[pd.DataFrame]:
    """An Excel, Stata, SPSS or SAS file, which is read as a whole and given in pieces."""
    ending = path.suffix.lower()
    program, read = STATISTICS.get(ending, ("an Excel", None))
    try:
        frame, note = _excel(path, options) if read is None else (read(path), "")
    except ImportError as error:
        raise ImportError(f"reading {program} file: {one_line(error)}") from None
    except Exception as error:  # every reader has different exceptions
        raise ValueError(
            f"{path.name} cannot be read as {program} file ({one_line(error)})"
        ) from error
    frame.columns = pd.Index(all_named(frame.columns, path.name))
    labelled = frame.select_dtypes("category").columns
    frame = plain_frame(frame.astype(dict.fromkeys(labelled, object)).infer_objects())
    wanted = list(frame.columns) if columns is None else known_columns(columns, frame.columns)
    for start in range(0, max(1, len(frame)), rows):
        piece = frame[wanted].iloc[start : start + rows].reset_index(drop=True)
        piece.attrs["note"] = note
        yield piece


def _excel(path: Path, options: ReadingOptions) -> tuple[pd.DataFrame, str]:
    """A sheet without titles, footers, and empty rows and columns; and a note on it."""
    import_library("openpyxl", "reading Excel files", "'fairgrad[excel]'")
    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        if options.sheet not in {None, *sheets}:
            raise ValueError(f"--sheet is {options.sheet!r}; it has {', '.join(sheets)}")
        how: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "header": None}
        for sheet in sheets if options.sheet is None else [options.sheet]:
            frame = pd.read_excel(book, sheet_name=sheet, **how).iloc[options.skip_rows or 0 :]
            frame = frame.dropna(how="all").dropna(axis=1, how="all")
            if frame.shape[1] > 1:  # others are covers, or empty
                break
    if not len(frame):
        raise ValueError(f"the sheet {sheet!r} is empty")

    def texts(rows: pd.DataFrame) -> list[list[str]]:
        return [["" if pd.isna(v) else value_name(v) for v in row] for row in rows.to_numpy(object)]

    is_named = options.skip_rows is not None
    names, n_titles, n_above = find_header(texts(frame.head(200)), is_named=is_named)
    footer = find_footer(texts(frame.iloc[n_above:].tail(20)), frame.shape[1])
    titles = int(frame.index[n_titles]) if n_titles or options.skip_rows else 0
    notes = layout_sentences(path.name, titles, footer)
    if len(sheets) > 1 and options.sheet is None:
        notes.append(f"{path.name}: the sheet {sheet!r} is read; it has {', '.join(sheets)}.")
    frame = frame.iloc[n_above : len(frame) - len(footer)].reset_index(drop=True)
    frame.columns = pd.Index(names)
    return frame, " ".join(notes)


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Converts Python's decimals to numbers and its dates to dates."""
    plain: dict[str, Any] = {}
    for name in (name for name in frame.columns if frame[name].dtype == object):
        kind = pd.api.types.infer_dtype(frame[name], skipna=True)
        if kind == "decimal":
            plain[name] = frame[name].astype("float64")
        elif kind in {"date", "datetime"}:
            plain[name] = pd.to_datetime(frame[name])
    return frame.assign(**plain)


def known_columns(columns: Sequence[str], names: Iterable[Any]) -> list[str]:
    """The names that are among the columns."""
    wanted = set(columns)
    return [str(name) for name in names if str(name) in wanted]


def one_line(error: BaseException) -> str:
    """What an error says, in one line."""
    message = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
    return re.sub(
        r"EOF inside string starting at row (\d+)",
        r"a quote opened in row \1 is never closed",
        message,
    )
