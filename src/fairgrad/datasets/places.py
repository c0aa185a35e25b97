"""Where the bytes of a data set lie on this machine: found, verified, and kept once parsed.

Files are looked for in the package, in a folder that the user names, and in the cache, and are
accepted by their SHA-256 only. A parsed table is kept in the cache as an ``.npz`` file named after
the hash of the file it was parsed from and of how it was parsed, so that the second load is quick:
a changed file or schema simply has another name. It holds plain arrays and never pickles, so
reading one runs no code.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from fairgrad.files import cache_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairgrad.datasets.schema import DataFile, Schema

#: Environment variable naming a folder with data files.
FOLDER_VARIABLE = "FAIRGRAD_DATA"

_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
}
_UNPACK_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)

_LAYOUT = "1"
"""Of cached tables."""

_Read = TypeVar("_Read")


class DataNotFoundError(FileNotFoundError):
    """No usable copy of a data set lies on this machine; the message gives the reasons."""


class CorruptFileError(OSError):
    """A file's content is not the expected one."""


class FetchError(OSError):
    """A data set could not be fetched; nothing was written."""


def package_folder() -> Path:
    """Folder of the files that are part of the package."""
    return Path(__file__).with_name("files")


def user_folder() -> Path | None:
    """Folder named by the environment variable ``FAIRGRAD_DATA``, if it is set."""
    named = os.environ.get(FOLDER_VARIABLE, "")
    return Path(named).expanduser() if named else None


def places() -> list[tuple[str, Path | None]]:
    """Places to look in, in order, with their readable names; None is a place not set up."""
    return [
        ("the package", package_folder()),
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
        f"Fetch it with `fairgrad data fetch {schema.name}`, or in Python with "
        f'`fairgrad.datasets.fetch("{schema.name}")`.'
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
    """Note the hash of a fetched file beside it, for files whose hash nobody has published."""
    write_whole(_record(path), f"{digest}\n".encode())


def recorded_hash(path: Path) -> str:
    """Hash noted when the file was fetched; empty if there is none."""
    record = _record(path)
    return record.read_text().strip() if record.is_file() else ""


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def cached_path(packed: bytes, parsed_how: str) -> Path:
    """Path of the entry for a file's bytes and the way they are parsed."""
    key = hashlib.sha256(packed)
    key.update(f"{_LAYOUT}|{parsed_how}".encode())
    return cache_folder() / "tables" / f"{key.hexdigest()[:40]}.npz"


def store_table(path: Path, table: pd.DataFrame, origin: str) -> None:
    """Write a table of numbers and categories, and the hash of the content it came from.

    A cache that cannot be written is no reason to fail: the table is then parsed again next time.
    """
    arrays: dict[str, Any] = {
        "origin": np.array(origin),
        "columns": np.array(list(table.columns), dtype=str),
    }
    for position, name in enumerate(table.columns):
        arrays |= _stored_column(position, table[name])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    try:
        write_whole(path, buffer.getvalue(), private=True)
    except OSError:
        return


def restore_table(path: Path) -> tuple[pd.DataFrame, str] | None:
    """The stored table and the hash of its origin; None if there is no readable entry."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = [str(name) for name in arrays["columns"]]
            columns = {name: _restored_column(arrays, place) for place, name in enumerate(names)}
            return pd.DataFrame(columns), str(arrays["origin"])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def _stored_column(position: int, column: pd.Series) -> dict[str, np.ndarray]:
    """Arrays of one column; numbers in the smallest type that holds them, with the true one."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = np.array(list(column.cat.categories), dtype=str)
        return {f"{position}.codes": column.cat.codes.to_numpy(), f"{position}.names": categories}
    values = column.to_numpy()
    small = values.astype(_small_type(values))
    return {f"{position}.values": small, f"{position}.type": np.array(values.dtype.str)}


def _restored_column(arrays: np.lib.npyio.NpzFile, position: int) -> Any:
    if f"{position}.codes" in arrays:
        names = [str(name) for name in arrays[f"{position}.names"]]
        return pd.Categorical.from_codes(arrays[f"{position}.codes"], categories=pd.Index(names))
    values: np.ndarray = arrays[f"{position}.values"]
    return values.astype(str(arrays[f"{position}.type"]))


def _small_type(values: np.ndarray) -> np.dtype:
    if values.dtype.kind != "i" or not len(values):
        return values.dtype
    return np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
