"""Where the bytes of a data set are on this machine.

Files are looked for in a folder that the user names and in the cache, and are
accepted by their SHA-256 only.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairgrad.files import cache_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairgrad_bench.datasets.schema import DataFile, Schema

#: Environment variable naming a folder with data files.
FOLDER_VARIABLE = "FAIRGRAD_DATA"

_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
}
_UNPACK_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)

_Read = TypeVar("_Read")


class DataNotFoundError(FileNotFoundError):
    """No usable copy of a data set lies on this machine; the message gives the reasons."""


class CorruptFileError(OSError):
    """A file has unexpected content."""


class FetchError(OSError):
    """A data set could not be fetched; nothing was written."""


def user_folder() -> Path | None:
    """Folder named by the environment variable ``FAIRGRAD_DATA``, if it is set."""
    named = os.environ.get(FOLDER_VARIABLE, "")
    return Path(named).expanduser() if named else None


def places() -> list[tuple[str, Path | None]]:
    """Places to look in, in order, with their readable names; None is a place not set up."""
    return [
        (f"the folder named by {FOLDER_VARIABLE}", user_folder()),
        ("the cache", cache_folder()),
    ]


def first_usable(schema: Schema, read: Callable[[Path, str], _Read]) -> _Read:
    """What ``read`` makes of the first copy that it accepts, given its path and its place.

    Raises:
        DataNotFoundError: It accepts none; the message has the reason of every place.
    """
    reasons = []
    for place, folder in places():
        if folder is None:
            reasons.append(f"{place}: not set")
            continue
        found = list(copies(folder, schema.files))
        if not found:
            names = " or ".join(dict.fromkeys(file.name for file in schema.files))
            reasons.append(f"{place}: {names} not in {folder}")
        for path in found:
            try:
                return read(path, place)
            except (CorruptFileError, PermissionError) as error:
                reasons.append(f"{place}: {error}")
    listed = "".join(f"\n  - {reason}" for reason in reasons)
    way_out = (
        f"Fetch it with `fairgrad-bench data fetch {schema.name}`, or in Python with "
        f'`fairgrad_bench.datasets.fetch("{schema.name}")`.'
        if schema.carriers
        else f"It has to be got by hand: {schema.source}"
    )
    raise DataNotFoundError(f"no usable copy of the data set {schema.name!r}:{listed}\n{way_out}")


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


def record_hash(path: Path, digest: str) -> None:
    """Note the hash of a fetched file beside it, for files without a published hash."""
    write_whole(_record(path), f"{digest}\n".encode())


def recorded_hash(path: Path) -> str:
    """Hash noted when the file was fetched; empty if there is none."""
    record = _record(path)
    return record.read_text().strip() if record.is_file() else ""


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")
