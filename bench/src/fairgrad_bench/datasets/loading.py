"""Load a data set by its name; the names are the files of the catalogue."""

from __future__ import annotations

import importlib
import io
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad import datasets as bundled
from fairgrad_bench.datasets import catalogue, places
from fairgrad_bench.datasets.dataset import PaperDataset
from fairgrad_bench.datasets.schema import attribute_column, feature_column, kept_rows

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from fairgrad_bench.datasets.schema import DataFile, Schema


def names() -> tuple[str, ...]:
    """Names of all data sets, those that come with fairgrad included.

    Examples:
        >>> "adult" in names()
        True
    """
    found = (module.name for module in pkgutil.iter_modules(catalogue.__path__))
    return tuple(sorted([*found, *bundled.names()]))


def load(name: str, **options: Any) -> PaperDataset:
    """Load a data set of the paper.

    Args:
        name: One of ``names()``.
        options: What this data set offers beyond the paper's form, such as the income threshold
            of ``"folktables"``; see its file in the catalogue.

    Raises:
        ValueError: No data set has this name.
        DataNotFoundError: The data are not on this machine; the message says how to get them.

    Examples:
        >>> adult = load("adult")
        >>> adult
        <Dataset adult: 45,222 rows, 12 features, label 'income', sensitive ['sex']>
    """
    if name in bundled.names() and not options:
        return PaperDataset(**vars(bundled.load(name)), title=name)
    module = catalogue_module(name)
    if hasattr(module, "load"):
        loaded: PaperDataset = module.load(**options)
        return loaded
    if options:
        raise TypeError(f"load({name!r}) takes no options; got {sorted(options)}")
    schema = find_schema(name)
    return from_schema(schema, read_raw(schema))


def find_schema(name: str) -> Schema:
    """The description of a data set."""
    schema: Schema = catalogue_module(name).SCHEMA
    return schema


def catalogue_module(name: str) -> ModuleType:
    """The catalogue's file about a data set."""
    if name in bundled.names():
        raise TypeError(f"{name} comes with fairgrad: it takes no options, and is not fetched")
    if name not in names():
        raise ValueError(f"name is {name!r}; the data sets are {', '.join(names())}")
    return importlib.import_module(f"{catalogue.__name__}.{name}")


def from_schema(schema: Schema, raw: RawTable) -> PaperDataset:
    """Apply a schema to its raw table."""
    table, left_out = kept_rows(raw.frame, schema.rows)
    features = {f.name: feature_column(table[f.name], f) for f in schema.features}
    sensitive = {a.name: attribute_column(table[a.column], a) for a in schema.sensitive}
    label = attribute_column(table[schema.label.column], schema.label)
    return PaperDataset(
        name=schema.name,
        title=schema.title,
        frame=pd.DataFrame(features),
        label=label.rename(schema.label.name),
        sensitive=pd.DataFrame(sensitive),
        meanings=schema.meanings,
        left_out=left_out,
        source=schema.source,
        licence=schema.licence,
        citation=schema.citation,
        notes=schema.notes + ((raw.file.note,) if raw.file.note else ()),
    )


@dataclass(frozen=True)
class RawTable:
    """A parsed table, with the form and the place it came from."""

    frame: pd.DataFrame
    file: DataFile
    place: str


def read_raw(schema: Schema) -> RawTable:
    """The columns of the raw table that the schema names.

    Raises:
        DataNotFoundError: No place has a copy with the expected content.
    """
    return places.first_usable(schema, lambda path, place: _read(path, place, schema))


def _read(path: Path, place: str, schema: Schema) -> RawTable:
    file, content = places.verified(path, path.read_bytes(), schema.files)
    return RawTable(parse(content, schema.columns, schema.missing), file, place)


def parse(content: bytes, columns: list[str], missing: tuple[str, ...]) -> pd.DataFrame:
    """The named columns of a CSV file; texts become categories, so each is stored once."""
    frame = pd.read_csv(
        io.BytesIO(content), usecols=columns, na_values=list(missing), keep_default_na=False
    )[columns]
    texts = [name for name in columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    return frame.astype(dict.fromkeys(texts, "category"))


@dataclass(frozen=True)
class Overview:
    """One line about a data set.

    Attributes:
        name: Short name, as given to ``load``.
        title: Readable name, or the source.
        licence: Terms of its use.
        place: Where a copy lies on this machine; empty if it has to be fetched.
        fetchable: Whether ``fetch`` knows an address.
    """

    name: str
    title: str
    licence: str
    place: str
    fetchable: bool


def overview() -> list[Overview]:
    """All data sets, by name; files are looked for, not read."""
    entries = []
    for name in names():
        if name in bundled.names():
            data = bundled.load(name)
            entries.append(Overview(name, data.source, data.licence, "fairgrad", fetchable=False))
            continue
        schema = find_schema(name)
        found = (
            place
            for place, folder in places.places()
            if folder is not None and any(places.copies(folder, schema.files))
        )
        place = next(found, "") if schema.files else "generated"
        entries.append(
            Overview(name, schema.title, schema.licence, place, fetchable=bool(schema.carriers))
        )
    return entries


def describe(name: str) -> str:
    """A data set in words; without its data, what it is and how to get it.

    Examples:
        >>> print(describe("german").splitlines()[0])
        german
    """
    try:
        return load(name).describe()
    except places.DataNotFoundError as error:
        schema = find_schema(name)
        return (
            f"{schema.title}\n{error}\nSource: {schema.source}\nLicence: {schema.licence}\n"
            f"Cite: {schema.citation}"
        )
