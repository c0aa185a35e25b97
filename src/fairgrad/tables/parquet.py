"""Parquet files, and folders of them, read some thousand rows at a time."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.tables.reading import (
    PIECE,
    check_distinct,
    import_library,
    known_columns,
    one_line,
    plain_frame,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd


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
