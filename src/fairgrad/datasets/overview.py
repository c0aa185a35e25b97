"""What data sets there are, what they are about, and where their files lie."""

from __future__ import annotations

from dataclasses import dataclass

from fairgrad.datasets.errors import DataNotFoundError
from fairgrad.datasets.loading import load, names, schema_of
from fairgrad.datasets.locate import copies, places


@dataclass(frozen=True)
class Overview:
    """One line about a data set.

    Attributes:
        name: Short name, as given to ``load``.
        title: Readable name.
        licence: Terms of its use.
        place: Where a copy lies on this machine; empty if it has to be fetched.
        fetchable: Whether ``fetch`` knows an address.

    Example:
        >>> [entry.title for entry in overview() if entry.name == "german"]
        ['German credit']
    """

    name: str
    title: str
    licence: str
    place: str
    fetchable: bool


def overview() -> list[Overview]:
    """All data sets, by name; files are looked for, not read.

    Examples:
        >>> [entry.place for entry in overview() if entry.name == "adult"]
        ['the package']
    """
    return [_entry(name) for name in names()]


def describe(name: str) -> str:
    """A data set in words; without its data, what it is and how to get it.

    Examples:
        >>> print(describe("german").splitlines()[0])
        German credit
    """
    try:
        return load(name).describe()
    except DataNotFoundError as error:
        schema = schema_of(name)
        return (
            f"{schema.title}\n{error}\nSource: {schema.source}\nLicence: {schema.licence}\n"
            f"Cite: {schema.citation}"
        )


def _entry(name: str) -> Overview:
    schema = schema_of(name)
    generated = not schema.files
    return Overview(
        name=name,
        title=schema.title,
        licence=schema.licence,
        place="generated" if generated else _place(name),
        fetchable=bool(schema.carriers),
    )


def _place(name: str) -> str:
    files = schema_of(name).files
    for place, folder in places():
        if folder is not None and any(copies(folder, files)):
            return place
    return ""
