"""Read a data set's raw table from the first place that has a verified copy of it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.datasets import tablecache
from fairgrad.datasets.errors import CorruptFileError, DataNotFoundError
from fairgrad.datasets.locate import copies, places, verified

if TYPE_CHECKING:
    from pathlib import Path

    from fairgrad.datasets.schema import Schema, TableFile


@dataclass(frozen=True)
class RawTable:
    """A parsed table, with the form and the place it came from."""

    frame: pd.DataFrame
    file: TableFile
    place: str


def read_table(schema: Schema) -> RawTable:
    """The columns of the raw table that the schema names.

    Raises:
        DataNotFoundError: No place has a copy with the expected content.
    """
    reasons = []
    for place, folder in places():
        if folder is None:
            reasons.append(f"{place}: not set")
            continue
        paths = list(copies(folder, schema.files))
        if not paths:
            reasons.append(f"{place}: {_names(schema)} not in {folder}")
        for path in paths:
            parsed = _parsed_or_reason(path, schema)
            if not isinstance(parsed, str):
                return RawTable(*parsed, place)
            reasons.append(f"{place}: {parsed}")
    raise not_found(schema, reasons)


def not_found(schema: Schema, reasons: list[str]) -> DataNotFoundError:
    """The error that lists why each place had no usable copy, and what to do."""
    listed = "".join(f"\n  - {reason}" for reason in reasons)
    way_out = (
        f"Fetch it with `fairgrad data fetch {schema.name}`."
        if schema.carriers
        else f"It has to be got by hand: {schema.source}"
    )
    return DataNotFoundError(f"no usable copy of the data set {schema.name!r}:{listed}\n{way_out}")


def needed_columns(schema: Schema) -> list[str]:
    """Columns of the raw table that the schema uses, in the order it names them."""
    names = [feature.name for feature in schema.features]
    names += [attribute.column for attribute in (schema.label, *schema.sensitive)]
    names += [column for rule in schema.rows for column in rule.columns]
    return list(dict.fromkeys(names))


def _names(schema: Schema) -> str:
    return " or ".join(dict.fromkeys(file.name for file in schema.files))


def _parsed_or_reason(path: Path, schema: Schema) -> tuple[pd.DataFrame, TableFile] | str:
    try:
        return _parsed(path, schema)
    except (CorruptFileError, PermissionError) as error:
        return str(error)


def _parsed(path: Path, schema: Schema) -> tuple[pd.DataFrame, TableFile]:
    packed = path.read_bytes()
    columns = needed_columns(schema)
    entry = tablecache.entry_path(packed, f"{columns}|{schema.missing}")
    stored = tablecache.restore(entry)
    by_hash = {file.sha256: file for file in schema.files}
    if stored is not None and stored[1] in by_hash:
        return stored[0], by_hash[stored[1]]
    file, content = verified(path, packed, schema.files)
    frame = parse(content, columns, schema.missing)
    tablecache.store(entry, frame, file.sha256)
    return frame, file


def parse(content: bytes, columns: list[str], missing: tuple[str, ...]) -> pd.DataFrame:
    """The named columns of a CSV file; texts become categories, so each is stored once."""
    frame = pd.read_csv(
        io.BytesIO(content), usecols=columns, na_values=list(missing), keep_default_na=False
    )[columns]
    texts = [name for name in columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    return frame.astype(dict.fromkeys(texts, "category"))
