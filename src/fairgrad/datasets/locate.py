"""Find a data set's file on this machine: package, named folder, cache; verified by SHA-256."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from typing import TYPE_CHECKING

from fairgrad.datasets.errors import CorruptFileError
from fairgrad.datasets.places import FOLDER_VARIABLE, cache_folder, package_folder, user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fairgrad.datasets.schema import TableFile

_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
}
_UNPACK_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)


def places() -> list[tuple[str, Path | None]]:
    """Places to look in, in order, with their readable names; None is a place not set up."""
    return [
        ("the package", package_folder()),
        (f"the folder named by {FOLDER_VARIABLE}", user_folder()),
        ("the cache", cache_folder()),
    ]


def copies(folder: Path, files: Sequence[TableFile]) -> Iterator[Path]:
    """Files in the folder that by their name may be one of the accepted ones."""
    for name in dict.fromkeys(file.name for file in files):
        for suffix in _UNPACK:
            path = folder / f"{name}{suffix}"
            if path.is_file():
                yield path


def verified(path: Path, packed: bytes, files: Sequence[TableFile]) -> tuple[TableFile, bytes]:
    """The accepted form that a file is, and its uncompressed content.

    Raises:
        CorruptFileError: The content is none of the accepted ones.
    """
    content = _unpacked(path, packed)
    digest = hashlib.sha256(content).hexdigest()
    for file in files:
        if file.sha256 == digest:
            return file, content
    raise CorruptFileError(f"{path} has the SHA-256 {digest}, which is not the expected content")


def _unpacked(path: Path, packed: bytes) -> bytes:
    unpack = _UNPACK.get(path.suffix, bytes)
    try:
        return unpack(packed)
    except _UNPACK_ERRORS as error:
        raise CorruptFileError(f"{path} cannot be unpacked ({error})") from error
