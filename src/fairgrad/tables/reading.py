"""Users' files: CSV, TSV and Parquet, read once and piece by piece.

Texts become categories while they are read, so that a value that stands in a million rows is kept
once. A column has one kind for the whole file: numbers if all its values are numbers, else texts.
"""

from __future__ import annotations

import importlib
import lzma
import zipfile
import zlib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from fairgrad.tables.values import MISSING_TEXTS, as_categories, column_kind, plain_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.xz", ".csv.zip", ".csv.bz2")
TSV_ENDINGS = (".tsv", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")

PIECE = 50_000
"""Rows read at a time."""

_UNREADABLE = (
    pd.errors.ParserError,
    UnicodeDecodeError,
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)
_SNIFFED_ROWS = 100


def named_frame(table: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """A user's file or frame as a frame with distinct, named columns and some rows; and its name.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file cannot be read, or has no rows or no distinct column names.
        TypeError: Neither a path nor a DataFrame.
    """
    if isinstance(table, str | Path):
        return read_table(table), Path(table).name
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table is a {type(table).__name__}; a path or a DataFrame is needed")
    if not len(table):
        raise ValueError("the table has no rows")
    unnamed = [column for column in table.columns if not isinstance(column, str)]
    if unnamed:
        raise ValueError(f"the table has a column named {unnamed[0]!r}; names must be text")
    _check_distinct(table.columns, "the table")
    return _plain(table.reset_index(drop=True)), "table"


def read_table(path: str | Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The whole file: numbers as numbers, dates as dates, everything else as categories.

    Args:
        path: a CSV, TSV or Parquet file.
        columns: read these alone; names the file lacks are passed over.

    Raises:
        ValueError: if the file cannot be read, or holds no rows.
        FileNotFoundError: if there is no such file.
    """
    found, attributes = _collect(path, columns, texts=())
    mixed = [name for name, parts in found.items() if len(_kinds(parts)) > 1]
    if mixed:  # what looked like numbers in one piece was none in another: all of it is text
        found |= _collect(path, mixed, texts=mixed)[0]
    if not any(len(part) for parts in found.values() for _, part in parts):
        raise ValueError(f"{Path(path).name} has no rows")
    # Parts are given up one by one, so that the table is not in memory twice.
    table = pd.DataFrame({name: _joined(found.pop(name)) for name in list(found)}, copy=False)
    table.attrs.update(attributes)
    return table


def pieces(
    path: str | Path,
    columns: Sequence[str] | None = None,
    texts: Sequence[str] | Literal[True] = (),
    rows: int = PIECE,
) -> Iterator[pd.DataFrame]:
    """Consecutive rows of a file, some thousands at a time.

    Args:
        path: a CSV, TSV or Parquet file.
        columns: read these alone; names the file lacks are passed over.
        texts: columns of a CSV file to leave as the texts they are; True for all of them, where
            also an empty field stays the text it is.
        rows: of one piece.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        raise ValueError(f"{path} is a folder; a CSV, TSV or Parquet file is needed")
    if not path.is_file():
        raise FileNotFoundError(f"cannot read {str(path)!r}: there is no such file")
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        yield from _parquet(path, columns, rows)
    elif name.endswith(CSV_ENDINGS + TSV_ENDINGS):
        yield from _csv(path, columns, texts, rows)
    else:
        allowed = ", ".join(CSV_ENDINGS + TSV_ENDINGS + PARQUET_ENDINGS)
        raise ValueError(f"cannot read {path.name!r}; files ending in {allowed} can be read")


def column_names(path: str | Path) -> list[str]:
    """The names of a file's columns."""
    for piece in pieces(path, rows=1):
        return [str(name) for name in piece.columns]
    raise ValueError(f"{Path(path).name} has no rows")


def _csv(
    path: Path, columns: Sequence[str] | None, texts: Sequence[str] | Literal[True], rows: int
) -> Iterator[pd.DataFrame]:
    options: dict[str, Any] = {"keep_default_na": False, "low_memory": False}
    if texts is True:
        options |= {"dtype": str}
    else:
        options |= {"na_values": sorted(MISSING_TEXTS), "dtype": dict.fromkeys(texts, str)}
    try:
        dialect = _dialect(path)
        with pd.read_csv(path, chunksize=rows, **dialect, **options) as reader:
            for piece in reader:  # chosen here: pandas' usecols would pass over faulty rows
                chosen = piece if columns is None else piece[_known(columns, piece.columns)]
                chosen.attrs["decimal"] = dialect["decimal"]
                yield chosen
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty") from None
    except _UNREADABLE as error:
        way_out = "; save it as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
        raise ValueError(
            f"{path.name} cannot be read as a table ({_one_line(error)}){way_out}"
        ) from error


def _dialect(path: Path) -> dict[str, Any]:
    """How a CSV file is written: commas between its fields, or semicolons and decimal commas.

    Refuses what pandas would silently mend: a name that stands twice, rows longer than the header.
    """
    separator = "\t" if path.name.lower().endswith(TSV_ENDINGS) else ","
    options: dict[str, Any] = {"encoding": "utf-8-sig", "header": None, "dtype": str}
    header = pd.read_csv(path, sep=separator, nrows=1, **options).iloc[0]
    if len(header) == 1:  # no table to learn from, unless other separators are in this one name
        only = str(header.iloc[0])
        separator = max(separator + ";\t|", key=only.count) if only.strip() else separator
    # A second row longer than the header is an error here, and would be an index in read_csv.
    start = pd.read_csv(path, sep=separator, nrows=_SNIFFED_ROWS, **options)
    _check_distinct(start.iloc[0].dropna(), path.name)
    values = pd.Series(start.iloc[1:].to_numpy().ravel(), dtype=str)
    commas, points = (values.str.fullmatch(rf"[+-]?\d+{mark}\d+").sum() for mark in (",", r"\."))
    decimal = "," if separator != "," and commas > points else "."
    return {"sep": separator, "decimal": decimal, "encoding": "utf-8-sig"}


def _check_distinct(names: Iterable[Any], table: str) -> None:
    seen = pd.Series(list(names), dtype=object)
    if seen.duplicated().any():
        raise ValueError(f"{table} has two columns called {seen[seen.duplicated()].iloc[0]!r}")


def _parquet(path: Path, columns: Sequence[str] | None, rows: int) -> Iterator[pd.DataFrame]:
    try:
        arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    except ImportError:
        raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path) as file:
            _check_distinct(file.schema_arrow.names, path.name)
            wanted = None if columns is None else _known(columns, file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=rows, columns=wanted):
                yield _plain(batch.to_pandas())
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(
            f"{path.name} cannot be read as a Parquet file ({_one_line(error)})"
        ) from error


def _collect(
    path: str | Path, columns: Sequence[str] | None, texts: Sequence[str]
) -> tuple[dict[str, list[tuple[str, pd.Series]]], dict[Any, Any]]:
    """The parts of every column, each with its kind, texts as categories; how it is written."""
    found: dict[str, list[tuple[str, pd.Series]]] = defaultdict(list)
    attributes: dict[Any, Any] = {}
    for piece in pieces(path, columns, texts):
        attributes = piece.attrs
        for name in piece.columns:
            kind = _kind(piece[name])
            part = piece[name]
            if kind in {"text", "truth"}:
                part = as_categories(part)
                blank = [text for text in part.cat.categories if not text]  # of spaces alone
                part = part.cat.remove_categories(blank)
            found[str(name)].append((kind, part))
    return dict(found), attributes


def _kind(part: pd.Series) -> str:
    kind = "empty" if part.isna().all() else column_kind(part)
    if kind != "category":
        return kind
    # True and False with gaps come as Python's own.
    values = set() if part.dtype != object else {type(value) for value in part.dropna().unique()}
    return "truth" if pd.api.types.is_bool_dtype(part.dtype) or values == {bool} else "text"


def _kinds(parts: list[tuple[str, pd.Series]]) -> set[str]:
    return {kind for kind, _ in parts} - {"empty"}


def _joined(parts: list[tuple[str, pd.Series]]) -> Any:
    """One column of all its parts."""
    kind = next(iter(_kinds(parts)), "number")
    columns = [part for _, part in parts]
    if kind in {"text", "truth"}:
        named = [as_categories(part).array if own == "empty" else part.array for own, part in parts]
        return union_categoricals(named)
    if kind == "date":
        dates = [pd.to_datetime(part, utc=True) for part in columns]
        return np.concatenate([part.to_numpy(dtype="datetime64[ns]") for part in dates])
    plain = all(isinstance(part.dtype, np.dtype) and part.dtype != object for part in columns)
    numbers = (part if plain else part.astype("float64") for part in columns)
    return np.concatenate([np.asarray(part) for part in numbers])


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    objects = [name for name in frame.columns if frame[name].dtype == object]
    return frame.assign(**{name: plain_values(frame[name]) for name in objects})


def _known(columns: Sequence[str], names: Iterable[Any]) -> list[str]:
    wanted = set(columns)
    return [str(name) for name in names if name in wanted]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
