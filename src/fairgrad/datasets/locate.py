"""Find a data set's file on this machine: package, named folder, cache; verified by SHA-256."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fairgrad.datasets.errors import CorruptFileError, DataNotFoundError
from fairgrad.datasets.places import (
    FOLDER_VARIABLE,
    cache_folder,
    package_folder,
    recorded_hash,
    user_folder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fairgrad.datasets.schema import DataFile, Schema

_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
}
_UNPACK_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Found:
    """A file that may be a copy of the data, by its name; ``verified`` says whether it is."""

    path: Path
    place: str


def places() -> list[tuple[str, Path | None]]:
    """Places to look in, in order, with their readable names; None is a place not set up."""
    return [
        ("the package", package_folder()),
        (f"the folder named by {FOLDER_VARIABLE}", user_folder()),
        ("the cache", cache_folder()),
    ]


def first_usable(schema: Schema, read: Callable[[Found], _Read]) -> _Read:
    """What ``read`` makes of the first copy that it accepts.

    Raises:
        DataNotFoundError: It accepts none; the message has the reason of every place.
    """
    reasons = []
    for place, folder in places():
        if folder is None:
            reasons.append(f"{place}: not set")
            continue
        found = [Found(path, place) for path in copies(folder, schema.files)]
        if not found:
            reasons.append(f"{place}: {_file_names(schema)} not in {folder}")
        for copy in found:
            outcome, reason = _attempt(read, copy)
            if outcome is not None:
                return outcome
            reasons.append(f"{place}: {reason}")
    raise _not_found(schema, reasons)


def verified(path: Path, packed: bytes, files: Sequence[DataFile]) -> tuple[DataFile, bytes]:
    """The accepted form that a file is, and its uncompressed content.

    Raises:
        CorruptFileError: The content is none of the accepted ones.
    """
    content = _unpacked(path, packed)
    digest = hashlib.sha256(content).hexdigest()
    for file in files:
        if digest == (file.sha256 or recorded_hash(path)):
            return file, content
    raise CorruptFileError(f"{path} has the SHA-256 {digest}, which is not the expected one")


def _attempt(read: Callable[[Found], _Read], copy: Found) -> tuple[_Read | None, str]:
    try:
        return read(copy), ""
    except (CorruptFileError, PermissionError) as error:
        return None, str(error)


def copies(folder: Path, files: Sequence[DataFile]) -> Iterator[Path]:
    """Files in the folder that by their name may be one of the accepted ones."""
    for name in dict.fromkeys(file.name for file in files):
        for suffix in _UNPACK:
            path = folder / f"{name}{suffix}"
            if path.is_file():
                yield path


def _unpacked(path: Path, packed: bytes) -> bytes:
    unpack = _UNPACK.get(path.suffix, bytes)
    try:
        return unpack(packed)
    except _UNPACK_ERRORS as error:
        raise CorruptFileError(f"{path} cannot be unpacked ({error})") from error


def _file_names(schema: Schema) -> str:
    return " or ".join(dict.fromkeys(file.name for file in schema.files))


def _not_found(schema: Schema, reasons: list[str]) -> DataNotFoundError:
    listed = "".join(f"\n  - {reason}" for reason in reasons)
    way_out = (
        f"Fetch it with `fairgrad data fetch {schema.name}`, or in Python with "
        f'`fairgrad.datasets.fetch("{schema.name}")`.'
        if schema.carriers
        else f"It has to be got by hand: {schema.source}"
    )
    return DataNotFoundError(f"no usable copy of the data set {schema.name!r}:{listed}\n{way_out}")
