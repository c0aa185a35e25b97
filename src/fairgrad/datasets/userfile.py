"""A user's own file or frame -> a DataFrame with distinct, named columns and at least one row."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import Path

import pandas as pd

CSV_ENDINGS = (".csv", ".csv.gz", ".csv.xz", ".csv.zip", ".csv.bz2")
TSV_ENDINGS = (".tsv", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
UNREADABLE = (
    pd.errors.ParserError,
    UnicodeDecodeError,
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)


def as_frame(table: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The table and a name for it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file cannot be read, or has no rows or no distinct column names.
        TypeError: Neither a path nor a DataFrame.
    """
    if isinstance(table, pd.DataFrame):
        frame, name = table, "table"
    elif isinstance(table, str | Path):
        frame, name = _read(Path(table).expanduser()), Path(table).name
    else:
        raise TypeError(f"table is a {type(table).__name__}; a path or a DataFrame is needed")
    _check(frame, name)
    return frame.reset_index(drop=True), name


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(f"table is {str(path)!r}, and there is no such file")
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return _read_parquet(path)
    if name.endswith(CSV_ENDINGS + TSV_ENDINGS):
        return _read_csv(path, "\t" if name.endswith(TSV_ENDINGS) else ",")
    allowed = ", ".join(CSV_ENDINGS + TSV_ENDINGS + PARQUET_ENDINGS)
    raise ValueError(f"table is {path.name!r}; files ending in {allowed} can be read")


def _read_csv(path: Path, separator: str) -> pd.DataFrame:
    try:
        # One pass over the whole file, so that a column has one type and not one per chunk.
        return pd.read_csv(path, sep=separator, low_memory=False, encoding="utf-8-sig")
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty") from None
    except UNREADABLE as error:
        raise ValueError(f"{path.name} cannot be read as a table ({error})") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError:
        raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read as a Parquet file ({error})") from error


def _check(frame: pd.DataFrame, name: str) -> None:
    if not len(frame):
        raise ValueError(f"{name} has no rows")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{name} has two columns called {twice[0]!r}")
    unnamed = [column for column in frame.columns if not isinstance(column, str)]
    if unnamed:
        raise ValueError(f"{name} has a column named {unnamed[0]!r}; names must be text")
