"""The rows of a table that is never held as a whole: row groups of Parquet files.

Row groups are what readers share: each is read by one process, in pieces, and the pieces of several
are mixed. Which part a row is in (training, validation, test) follows from its place alone
(`fairgrad.splitting.hashed_parts`), so nobody needs to know the rows of others.
"""

from __future__ import annotations

import importlib
import json
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.files import whole_folder
from fairgrad.splitting import TEST, hashed_parts, row_key
from fairgrad.tables.reading import (
    as_parquet,
    check_distinct,
    is_parquet,
    pieces,
    plain_frame,
    refuse_columns,
    table_files,
    table_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.reading import TableSource

PIECE = 16_384
"""Rows read at a time."""

MIXED = 8
"""Row groups that are open at a time: neighbours in a file should not be neighbours in training."""

GROUP_ROWS, FILE_ROWS = 131_072, 2_097_152
"""Rows of a row group, and of a file, where text is stored as Parquet."""

DIALECT = "_dialect.json"


@dataclass(frozen=True, eq=False)
class StoredGroup:
    """A row group.

    Attributes:
        fragment: as Arrow has it.
        key: of its file, for hashes.
        first: the number of its first row in the file.
        n_rows: how many rows it has.
    """

    fragment: Any
    key: int
    first: int
    n_rows: int


@dataclass(frozen=True, eq=False)
class StoredTable:
    """A table as row groups.

    Attributes:
        name: what to call the table in sentences.
        keys: the key of each file, by its path.
        schema: of all files.
        groups: the row groups.
        test: share of the test rows.
        decimal: the mark before decimals in texts.
        said: how files of text were read.
    """

    name: str
    keys: dict[str, int]
    schema: Any
    groups: tuple[StoredGroup, ...]
    test: float = TEST
    decimal: str = "."
    said: tuple[str, ...] = field(default=())

    @classmethod
    def open(cls, source: TableSource, seed: int, *, test: float = TEST) -> StoredTable:
        """The table of Parquet files; no row is read.

        Raises:
            FileNotFoundError: if there is no such file.
            ImportError: if pyarrow is not installed.
            ValueError: if a file cannot be read, or its columns differ from those of others.
        """
        try:
            arrow, dataset = (importlib.import_module(n) for n in ("pyarrow", "pyarrow.dataset"))
        except ImportError:
            raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from None
        found: list[tuple[str, Any]] = []
        schema = None
        for path in table_files(source):
            with as_parquet(path, arrow):
                part = dataset.dataset(path, format="parquet", partitioning="hive")
            check_distinct(part.schema.names, path.name)
            for fragment in part.get_fragments():
                file = Path(fragment.path)
                with as_parquet(file, arrow):
                    inside = set(fragment.physical_schema.names)
                keys = dataset.get_partition_keys(fragment.partition_expression)
                names = [n for n in part.schema.names if n in inside or n in keys]
                names += [name for name in fragment.physical_schema.names if name not in names]
                own = _schema_of(fragment, part.schema, names)
                schema = own if schema is None else _common(schema, own, file, arrow)
                relative = file.relative_to(path).as_posix() if path.is_dir() else file.name
                found.append((relative, fragment))
        assert schema is not None  # noqa: S101 - `table_files` gives at least one
        groups, keys_by_path = [], {}
        for relative, fragment in found:
            key = keys_by_path[fragment.path] = row_key(relative, seed)
            first = 0
            with as_parquet(Path(fragment.path), arrow):
                for group in fragment.split_by_row_group():
                    n_rows = int(group.row_groups[0].num_rows)
                    groups.append(StoredGroup(group, key, first, n_rows))
                    first += n_rows
        if not sum(group.n_rows for group in groups):
            raise ValueError(f"{table_name(source)} has no rows")
        return cls(table_name(source), keys_by_path, schema, tuple(groups), test)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [str(name) for name in self.schema.names]

    def parts(self, group: StoredGroup) -> NDArray[np.int8]:
        """(n,) the part of each row of a row group."""
        return hashed_parts(group.key, group.first, group.n_rows, test=self.test)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(row groups, 3) rows of each part."""
        found = [np.bincount(self.parts(group), minlength=3) for group in self.groups]
        return np.array(found, dtype=np.int64).reshape(-1, 3)

    def read(
        self, groups: Sequence[StoredGroup], columns: Sequence[str]
    ) -> Iterator[tuple[pd.DataFrame, NDArray[np.int8]]]:
        """Pieces of some row groups, several in turn, and the part of each row."""
        waiting = iter(groups)
        in_turn = deque(self._pieces(group, columns) for group in islice(waiting, MIXED))
        while in_turn:
            own = in_turn.popleft()
            piece = next(own, None)
            if piece is not None:
                in_turn.append(own)
                yield piece
                continue
            following = next(waiting, None)
            if following is not None:
                in_turn.append(self._pieces(following, columns))

    def _pieces(
        self, group: StoredGroup, columns: Sequence[str]
    ) -> Iterator[tuple[pd.DataFrame, NDArray[np.int8]]]:
        arrow, parts, start = importlib.import_module("pyarrow"), self.parts(group), 0
        how = {"batch_size": PIECE, "batch_readahead": 0, "fragment_readahead": 0}
        with as_parquet(Path(group.fragment.path), arrow):
            batches = group.fragment.to_batches(
                schema=self.schema, columns=list(columns), use_threads=False, **how
            )
            for batch in batches:
                frame = plain_frame(batch.to_pandas())
                frame.attrs["decimal"] = self.decimal
                yield frame, parts[start : start + len(frame)]
                start += len(frame)


def _schema_of(fragment: Any, whole: Any, names: Sequence[str]) -> Any:
    arrow = importlib.import_module("pyarrow")
    own = fragment.physical_schema
    return arrow.schema([own.field(n) if n in own.names else whole.field(n) for n in names])


def _common(first: Any, own: Any, file: Path, arrow: Any) -> Any:
    """One schema of a file and those before it."""
    if set(first.names) != set(own.names):
        refuse_columns(file, own.names, first.names)
    fields = []
    for field_ in first:
        theirs = own.field(field_.name)
        try:
            (joined,) = arrow.unify_schemas(
                [arrow.schema([_plain(field_, arrow)]), arrow.schema([_plain(theirs, arrow)])],
                promote_options="permissive",
            )
        except arrow.ArrowException:
            raise ValueError(
                f"{file.name} holds {theirs.type} in the column {field_.name!r}, where files "
                f"before it hold {field_.type}"
            ) from None
        fields.append(field_ if field_.type == theirs.type else joined)
    return arrow.schema(fields)


def _plain(field_: Any, arrow: Any) -> Any:
    """A field without its metadata; of a dictionary the values."""
    kind = field_.type
    return arrow.field(field_.name, kind.value_type if arrow.types.is_dictionary(kind) else kind)


def stored_table(
    source: TableSource, folder: Path, options: ReadingOptions, seed: int, *, test: float = TEST
) -> StoredTable:
    """A table of any files: what is not Parquet is written as such into a folder first, as texts.

    If the folder is there already, it is taken as it is.
    """
    files = table_files(source)
    if all(is_parquet(path) for path in files):
        return StoredTable.open(source, seed, test=test)
    if any(is_parquet(path) for path in files):
        raise ValueError(f"{table_name(source)}: there are Parquet and other files; name one kind")
    if not folder.is_dir():
        store_texts(source, folder, options)
    known = json.loads((folder / DIALECT).read_text(encoding="utf-8"))
    own = StoredTable.open(folder, seed, test=test)
    return StoredTable(
        table_name(source),
        own.keys,
        own.schema,
        own.groups,
        own.test,
        known["decimal"],
        tuple(known["said"]),
    )


def store_texts(source: TableSource, folder: Path, options: ReadingOptions) -> None:
    """Writes files of text as Parquet files of texts, in the order of their rows."""
    arrow, parquet = (importlib.import_module(n) for n in ("pyarrow", "pyarrow.parquet"))
    decimals: dict[str, None] = {}
    said: dict[str, None] = {}
    writer, n_files, n_rows = None, 0, 0
    with whole_folder(folder) as beside:
        try:
            for piece in pieces(source, texts=True, rows=GROUP_ROWS, options=options):
                decimals[str(piece.attrs.get("decimal", "."))] = None
                said |= {piece.attrs["said"]: None} if piece.attrs.get("said") else {}
                texts = piece.astype(str) if len(piece) else piece.astype("str")
                found = arrow.Table.from_pandas(texts, preserve_index=False)
                found = found.cast(arrow.schema([(n, arrow.string()) for n in found.column_names]))
                found = found.replace_schema_metadata()
                if writer is None or n_rows >= FILE_ROWS:
                    if writer is not None:
                        writer.close()
                    writer = parquet.ParquetWriter(
                        beside / f"rows-{n_files:06}.parquet", found.schema
                    )
                    n_files, n_rows = n_files + 1, 0
                writer.write_table(found)
                n_rows += len(piece)
        finally:
            if writer is not None:
                writer.close()
        if len(decimals) > 1:
            raise ValueError(
                f"{table_name(source)}: its files have different decimal marks; give --decimal"
            )
        known = {"decimal": next(iter(decimals), "."), "said": list(said)}
        (beside / DIALECT).write_text(json.dumps(known), encoding="utf-8")
