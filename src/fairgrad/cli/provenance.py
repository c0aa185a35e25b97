"""What a result rests on: which data, which command, when, and which versions."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from fairgrad.audit.record import made_at, used_versions
from fairgrad.tables.reading import table_files
from fairgrad.tables.scan import database_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fairgrad.audit import Audit, Certificate
    from fairgrad.tables.reading import TableSource

MUCH = 1 << 30
"""Bytes of data from which on files are named by their size, and not hashed."""

MOST_NAMED = 20
_BLOCK = 1 << 20


@dataclass(frozen=True)
class TableFile:
    """A file that was read.

    Attributes:
        name: without its folder.
        bytes: its size.
        sha256: its hash, as ``sha256sum`` prints it; empty where there is much data, of which a
            query needs a few columns only.
    """

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> TableFile:
        """Reads the file once."""
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return cls(path.name, path.stat().st_size, digest.hexdigest())


@dataclass(frozen=True)
class Provenance:
    """What a result rests on.

    Attributes:
        data: the files of the table.
        test: the files of the table of --test.
        command: as it was typed.
        date: of the result, in UTC; that of SOURCE_DATE_EPOCH if it is set.
        versions: of Python and the packages.
    """

    data: tuple[TableFile, ...]
    test: tuple[TableFile, ...]
    command: str
    date: str
    versions: Mapping[str, str]

    @classmethod
    def of(cls, table: TableSource, test: str | None = None) -> Provenance:
        """That of a result of the running command."""
        data, judged = (_hashed(source) for source in (table, test or ()))
        return cls(data, judged, _command(), made_at(), used_versions())

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        known = asdict(self)
        return {**known, "data": [*known["data"]], "test": [*known["test"]]}

    def in_words(self) -> dict[str, str]:
        """For people."""
        files = {"Data": self.data, "Test data": self.test}
        said = {name: _in_words(found) for name, found in files.items() if found}
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return {**said, "Date": self.date, "Versions": packages, "Command": self.command}


def _in_words(files: Sequence[TableFile]) -> str:
    said = [
        f"{one.name}, SHA-256 {one.sha256}" if one.sha256 else f"{one.name}, {one.bytes:,} bytes"
        for one in files[:MOST_NAMED]
    ]
    more = len(files) - MOST_NAMED
    return "; ".join([*said, *([f"and {more:,} more files"] if more > 0 else ())])


def audit_values(audit: Audit, source: Provenance) -> dict[str, Any]:
    """An audit, with what it rests on, as plain values."""
    return {**audit.to_dict(), "provenance": source.to_dict()}


def audit_json(audit: Audit, source: Provenance, certificate: Certificate | None = None) -> str:
    """The same as JSON, with the certificate that rests on it, if there is one."""
    found = audit_values(audit, source)
    if certificate is not None:
        found["certificate"] = certificate.to_dict()
    return json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def same_data(table: TableSource, known: Mapping[str, Any]) -> bool:
    """Whether a file of the table is one that a model was trained on.

    Args:
        table: what is read now.
        known: a provenance as plain values; empty for models of older versions.
    """
    files = known.get("data", ())
    hashes = {one["sha256"] for one in files} - {""}
    # Much data is not hashed: there a name and a size stand for a file.
    names = {(one["name"], one["bytes"]) for one in files if not one["sha256"]}
    if not hashes and not names:
        return False
    return any(one.sha256 in hashes or (one.name, one.bytes) in names for one in _hashed(table))


def _hashed(table: TableSource) -> tuple[TableFile, ...]:
    database = database_table(table) if table else None
    if database is not None:
        path, name = database
        size = path.stat().st_size if path.is_file() else 0
        return (TableFile("::".join(part for part in (path.name, name) if part), size, ""),)
    found = []
    for path in table_files(table):
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in inside if file.is_file()]
    sizes = [file.stat().st_size for file in found]
    if sum(sizes) > MUCH:
        return tuple(TableFile(f.name, size, "") for f, size in zip(found, sizes, strict=True))
    return tuple(TableFile.of(file) for file in found)


def _command() -> str:
    context = click.get_current_context(silent=True)
    arguments = context.find_root().obj if context else None
    return shlex.join(["fairgrad", *(arguments or ())]) if context else ""
