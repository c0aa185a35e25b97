"""Users' files piece by piece: no more of a file is in memory than its own table needs.

Texts become categories while they are read, so that a value that stands in a million rows is kept
once. A column has one kind for the whole file: numbers if all its values are numbers, else texts.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.datasets.userfile import CSV_ENDINGS, PARQUET_ENDINGS, TSV_ENDINGS, UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

PIECE = 50_000
"""Rows read at a time."""


def read_table(path: str | Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The whole file: numbers as numbers, everything else as categories.

    Args:
        path: a CSV, TSV or Parquet file.
        columns: read these alone; names the file lacks are passed over.

    Raises:
        ValueError: if the file cannot be read, or holds no rows.
        FileNotFoundError: if there is no such file.
    """
    found = _collect(path, columns, texts=())
    mixed = [name for name, column in found.items() if len(column.kinds) > 1]
    if mixed:  # what looked like numbers in one piece was none in another: all of it is text
        found |= _collect(path, mixed, texts=mixed)
    if not found or not len(next(iter(found.values()))):
        raise ValueError(f"{Path(path).name} has no rows")
    return pd.DataFrame({name: found[name].join() for name in list(found)}, copy=False)


def pieces(
    path: str | Path,
    columns: Sequence[str] | None = None,
    texts: Sequence[str] | bool = (),
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
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        yield from _parquet(path, columns, rows)
    elif name.endswith(CSV_ENDINGS + TSV_ENDINGS):
        yield from _csv(path, columns, texts, rows)
    else:
        allowed = ", ".join(CSV_ENDINGS + TSV_ENDINGS + PARQUET_ENDINGS)
        raise ValueError(f"{path.name} is of no known kind; files ending in {allowed} can be read")


def column_names(path: str | Path) -> list[str]:
    """The names of a file's columns."""
    for piece in pieces(path, rows=1):
        return [str(name) for name in piece.columns]
    raise ValueError(f"{Path(path).name} has no rows")


def _csv(
    path: Path, columns: Sequence[str] | None, texts: Sequence[str] | bool, rows: int
) -> Iterator[pd.DataFrame]:
    separator = "\t" if path.name.lower().endswith(TSV_ENDINGS) else ","
    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig", "low_memory": False}
    if texts is True:
        options |= {"dtype": str, "keep_default_na": False}
    elif texts:
        options |= {"dtype": dict.fromkeys(texts, str)}
    try:
        _check_header(path, separator)
        with pd.read_csv(path, chunksize=rows, **options) as reader:
            for piece in reader:  # chosen here: pandas' usecols would pass over faulty rows
                yield piece if columns is None else piece[_known(columns, piece.columns)]
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty") from None
    except UNREADABLE as error:
        raise ValueError(f"{path.name} cannot be read as a table ({_one_line(error)})") from error


def _check_header(path: Path, separator: str) -> None:
    """Refuses what pandas would silently mend: a name that stands twice, rows without a name."""
    # Two rows, so that a second one longer than the header is an error here.
    header = pd.read_csv(
        path, sep=separator, encoding="utf-8-sig", header=None, nrows=2, dtype=str
    ).iloc[0]
    known = header.dropna()
    if known.duplicated().any():
        raise ValueError(
            f"{path.name} has two columns called {known[known.duplicated()].iloc[0]!r}"
        )


def _parquet(path: Path, columns: Sequence[str] | None, rows: int) -> Iterator[pd.DataFrame]:
    try:
        arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    except ImportError:
        raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(path) as file:
            wanted = None if columns is None else _known(columns, file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=rows, columns=wanted):
                yield batch.to_pandas()
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(
            f"{path.name} cannot be read as a Parquet file ({_one_line(error)})"
        ) from error


class _Column:
    """The parts of one column: numbers, dates, codes of texts, or how many values are missing."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.parts: list[NDArray[Any] | int] = []
        self.names: dict[str, int] = {}

    def add(self, part: pd.Series) -> None:
        kind = _kind(part)
        if kind == "empty":
            self.parts.append(len(part))
            return
        self.kinds.add(kind)
        self.parts.append(_READ[kind](part) if kind in _READ else self._codes(part))

    def join(self) -> Any:
        """The whole column; the parts are given up on the way."""
        parts, self.parts = self.parts, []
        blank = _BLANK[next(iter(self.kinds), "number")]
        joined = np.concatenate([np.full(p, blank) if isinstance(p, int) else p for p in parts])
        if not self.kinds or self.kinds <= set(_READ):
            return joined
        categories = pd.Index(list(self.names), dtype=object)
        return pd.Categorical.from_codes(joined, categories=categories)

    def _codes(self, part: pd.Series) -> NDArray[np.int32]:
        codes, values = pd.factorize(part)
        own = [self.names.setdefault(str(value), len(self.names)) for value in values]
        # The extra last entry is where the code -1 of a missing value points.
        return np.array([*own, -1], dtype=np.int32)[codes]

    def __len__(self) -> int:
        return sum(part if isinstance(part, int) else len(part) for part in self.parts)


def _numbers(part: pd.Series) -> NDArray[Any]:
    if isinstance(part.dtype, np.dtype):
        return np.asarray(part)
    return part.to_numpy(dtype=np.float64, na_value=np.nan)


def _dates(part: pd.Series) -> NDArray[Any]:
    return part.to_numpy(dtype="datetime64[ns]")


_READ = {"number": _numbers, "date": _dates}
_BLANK: dict[str, Any] = {
    "number": np.nan,
    "date": np.datetime64("NaT", "ns"),
    "text": np.int32(-1),
    "truth": np.int32(-1),
}


def _kind(part: pd.Series) -> str:
    kinds = pd.api.types
    if part.isna().all():
        return "empty"
    if kinds.is_bool_dtype(part.dtype):
        return "truth"
    if kinds.is_numeric_dtype(part.dtype):
        return "number"
    if kinds.is_datetime64_any_dtype(part.dtype):
        return "date"
    # Truths with gaps come as Python's own.
    is_truth = part.dtype == object and {type(v) for v in part.dropna().unique()} <= {bool}
    return "truth" if is_truth else "text"


def _collect(
    path: str | Path, columns: Sequence[str] | None, texts: Sequence[str]
) -> dict[str, _Column]:
    found: dict[str, _Column] = defaultdict(_Column)
    for piece in pieces(path, columns, texts):
        for name in piece.columns:
            found[str(name)].add(piece[name])
    return dict(found)


def _known(columns: Sequence[str], names: Iterable[Any]) -> list[str]:
    wanted = set(columns)
    return [str(name) for name in names if name in wanted]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
