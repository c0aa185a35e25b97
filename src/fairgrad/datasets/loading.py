"""Load a data set by its name; the names are the files of the catalogue."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.datasets import catalogue
from fairgrad.datasets.dataset import Dataset
from fairgrad.datasets.prepare import attribute_column, feature_column, kept_rows
from fairgrad.datasets.read import RawTable, read_table

if TYPE_CHECKING:
    from types import ModuleType

    from fairgrad.datasets.schema import Schema


def names() -> tuple[str, ...]:
    """Names of all data sets.

    Examples:
        >>> "adult" in names()
        True
    """
    found = (module.name for module in pkgutil.iter_modules(catalogue.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(name: str, **options: Any) -> Dataset:
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
    module = catalogue_module(name)
    if hasattr(module, "load"):
        loaded: Dataset = module.load(**options)
        return loaded
    if options:
        raise TypeError(f"load({name!r}) takes no options; got {sorted(options)}")
    schema = schema_of(name)
    return from_schema(schema, read_table(schema))


def schema_of(name: str) -> Schema:
    """The description of a data set."""
    schema: Schema = catalogue_module(name).SCHEMA
    return schema


def catalogue_module(name: str) -> ModuleType:
    """The catalogue's file about a data set."""
    if name not in names():
        raise ValueError(f"name is {name!r}; the data sets are {', '.join(names())}")
    return importlib.import_module(f"{catalogue.__name__}.{name}")


def from_schema(schema: Schema, raw: RawTable) -> Dataset:
    """Apply a schema to its raw table."""
    table, left_out = kept_rows(raw.frame, schema.rows)
    features = {f.name: feature_column(table[f.name], f) for f in schema.features}
    sensitive = {a.name: attribute_column(table[a.column], a) for a in schema.sensitive}
    label = attribute_column(table[schema.label.column], schema.label)
    return Dataset(
        name=schema.name,
        title=schema.title,
        frame=pd.DataFrame(features),
        label=label.rename(schema.label.name),
        sensitive=pd.DataFrame(sensitive),
        meanings=_meanings(schema),
        left_out=left_out,
        source=schema.source,
        licence=schema.licence,
        citation=schema.citation,
        notes=schema.notes + ((raw.file.note,) if raw.file.note else ()),
    )


def _meanings(schema: Schema) -> dict[str, str]:
    attributes = {a.name: a.meaning for a in (*schema.sensitive, schema.label)}
    return {feature.name: feature.meaning for feature in schema.features} | attributes
