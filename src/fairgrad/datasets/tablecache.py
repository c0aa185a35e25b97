"""Parsed tables kept as binary files, so that the second load of a data set is quick.

An entry is an ``.npz`` file named after the hash of the file it was parsed from, which was
verified before, and of how it was parsed: a changed file or schema simply has another name.
Entries hold plain arrays and never pickles, so reading one runs no code.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.datasets.places import cache_folder, write_whole

if TYPE_CHECKING:
    from pathlib import Path

_LAYOUT = "1"


def entry_path(packed: bytes, parsed_how: str) -> Path:
    """Path of the entry for a file's bytes and the way they are parsed."""
    key = hashlib.sha256(packed)
    key.update(f"{_LAYOUT}|{parsed_how}".encode())
    return cache_folder() / "tables" / f"{key.hexdigest()[:40]}.npz"


def store(path: Path, table: pd.DataFrame, origin: str) -> None:
    """Write a table of numbers and categories, and the hash of the content it came from.

    A cache that cannot be written is no reason to fail: the table is then parsed again next time.
    """
    arrays: dict[str, Any] = {
        "origin": np.array(origin),
        "columns": np.array(list(table.columns), dtype=str),
    }
    for position, name in enumerate(table.columns):
        arrays |= _packed(position, table[name])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    try:
        write_whole(path, buffer.getvalue())
    except OSError:
        return


def restore(path: Path) -> tuple[pd.DataFrame, str] | None:
    """The stored table and the hash of its origin; None if there is no readable entry."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = [str(name) for name in arrays["columns"]]
            columns = {name: _unpacked(arrays, place) for place, name in enumerate(names)}
            return pd.DataFrame(columns), str(arrays["origin"])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def _packed(position: int, column: pd.Series) -> dict[str, np.ndarray]:
    """Arrays of one column; numbers in the smallest type that holds them, with the true one."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = np.array(list(column.cat.categories), dtype=str)
        return {f"{position}.codes": column.cat.codes.to_numpy(), f"{position}.names": categories}
    values = column.to_numpy()
    small = values.astype(_small_type(values))
    return {f"{position}.values": small, f"{position}.type": np.array(values.dtype.str)}


def _unpacked(arrays: np.lib.npyio.NpzFile, position: int) -> Any:
    if f"{position}.codes" in arrays:
        names = [str(name) for name in arrays[f"{position}.names"]]
        return pd.Categorical.from_codes(arrays[f"{position}.codes"], categories=pd.Index(names))
    values: np.ndarray = arrays[f"{position}.values"]
    return values.astype(str(arrays[f"{position}.type"]))


def _small_type(values: np.ndarray) -> np.dtype:
    if values.dtype.kind != "i" or not len(values):
        return values.dtype
    return np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
