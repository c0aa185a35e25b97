"""Read a data set's raw table from the first place that has a verified copy of it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.datasets import tablecache
from fairgrad.datasets.locate import Found, first_usable, verified

if TYPE_CHECKING:
    from fairgrad.datasets.schema import DataFile, Schema


@dataclass(frozen=True)
class RawTable:
    """A parsed table, with the form and the place it came from."""

    frame: pd.DataFrame
    file: DataFile
    place: str


def read_table(schema: Schema) -> RawTable:
    """The columns of the raw table that the schema names.

    Raises:
        DataNotFoundError: No place has a copy with the expected content.
    """
    return first_usable(schema, lambda copy: _read(copy, schema))


def needed_columns(schema: Schema) -> list[str]:
    """Columns of the raw table that the schema uses, in the order it names them."""
    names = [feature.name for feature in schema.features]
    names += [attribute.column for attribute in (schema.label, *schema.sensitive)]
    names += [column for rule in schema.rows for column in rule.columns]
    return list(dict.fromkeys(names))


def _read(copy: Found, schema: Schema) -> RawTable:
    packed = copy.path.read_bytes()
    columns = needed_columns(schema)
    entry = tablecache.entry_path(packed, f"{columns}|{schema.missing}")
    stored = tablecache.restore(entry)
    by_hash = {file.sha256: file for file in schema.files}
    if stored is not None and stored[1] in by_hash:
        return RawTable(stored[0], by_hash[stored[1]], copy.place)
    file, content = verified(copy.path, packed, schema.files)
    frame = parse(content, columns, schema.missing)
    tablecache.store(entry, frame, file.sha256)
    return RawTable(frame, file, copy.place)


def parse(content: bytes, columns: list[str], missing: tuple[str, ...]) -> pd.DataFrame:
    """The named columns of a CSV file; texts become categories, so each is stored once."""
    frame = pd.read_csv(
        io.BytesIO(content), usecols=columns, na_values=list(missing), keep_default_na=False
    )[columns]
    texts = [name for name in columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    return frame.astype(dict.fromkeys(texts, "category"))
