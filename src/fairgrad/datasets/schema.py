"""The description of a data set as plain data: files, rows kept, features, label, attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A value of a raw table: text or a number.
Value = str | int | float


@dataclass(frozen=True)
class DataFile:
    """One accepted form of a data set's file, recognised by its content.

    Attributes:
        name: File name; a copy of a table that ends in ``.gz`` or ``.xz`` serves as well.
        sha256: Hash of the uncompressed content, the same whatever compressed it. Empty where
            nobody has published it: then the hash recorded when the file was fetched counts.
        note: What a reader must know about this form, shown by ``describe()``.
    """

    name: str
    sha256: str
    note: str = ""


@dataclass(frozen=True)
class Carrier:
    """A place on the network that a file can be fetched from.

    Attributes:
        kind: ``"pypi"`` (a wheel used as a data carrier), ``"publisher"`` (the publisher's own
            address) or ``"folktables"`` (the package of that name).
        address: ``"package==version"`` for a wheel, otherwise the address.
        makes: Name of the data file that results.
        convert: Name of the function in ``convert`` that makes it out of the members.
        members: Files to take out of the wheel or archive, in order; empty: the download itself.
        sha256: Hash of the download; empty where only the result's hash is known.
        options: Keyword arguments of the conversion.
        part: Which part of the data this is, where they come in several files; carriers of the
            same part serve in each other's place.
    """

    kind: str
    address: str
    makes: str
    convert: str = "unchanged"
    members: tuple[str, ...] = ()
    sha256: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    part: str = ""


@dataclass(frozen=True)
class RowRule:
    """Rows to keep: known values in ``columns``, within the limits, not among ``excluded``."""

    columns: tuple[str, ...]
    reason: str
    low: float | None = None
    high: float | None = None
    excluded: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Feature:
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
        column: Column of the raw table.
        names: Names of the values; the position of a name is its integer code.
        values: Name of each raw value.
        other: Where given, the name of every known value that ``values`` does not list.
        above: Where given, numbers above it are called ``names[1]``, the others ``names[0]``.
        meaning: What the attribute says, in a few words.
    """

    name: str
    column: str
    names: tuple[str, ...]
    values: Mapping[Value, str] = field(default_factory=dict)
    other: str = ""
    above: float | None = None
    meaning: str = ""


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
    features: tuple[Feature, ...]
    source: str
    licence: str
    citation: str
    files: tuple[DataFile, ...] = ()
    carriers: tuple[Carrier, ...] = ()
    rows: tuple[RowRule, ...] = ()
    missing: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()
    restricted: bool = False
