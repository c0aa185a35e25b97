"""Lots that depend on the row alone: the same row always draws the same number."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from fairgrad.columns import as_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Floats

PIECE = 4096
"""Rows of a sparse matrix that are written out at a time."""


def draw_lots(X: Any, key: str) -> Floats:
    """(n,) a number from 0 to below 1 for each row: a keyed digest of its values.

    Args:
        X: an array, a sparse matrix or a data frame.
        key: hexadecimal digits. Without them nobody can compute a row's number beforehand.

    Example:
        >>> one, two = draw_lots(np.eye(2), "0f"), draw_lots(np.eye(2)[::-1], "0f")
        >>> bool((one == two[::-1]).all())
        True
    """
    secret = bytes.fromhex(key)
    if issparse(X):
        rows = X.tocsr()
        pieces = [rows[i : i + PIECE].toarray() for i in range(0, rows.shape[0], PIECE)]
        return np.concatenate([draw_lots(piece, key) for piece in pieces])
    if hasattr(X, "columns"):
        words = np.stack([_words(own) for own in as_columns(X, "X").values()], axis=1)
    else:
        array = np.asarray(X)
        words = np.stack([_words(own) for own in array.reshape(len(array), -1).T], axis=1)
    digests = b"".join(
        hashlib.blake2b(row.tobytes(), digest_size=8, key=secret).digest() for row in words
    )
    lots: Floats = (np.frombuffer(digests, dtype="<u8") >> 11) / 2.0**53
    return lots


def _words(column: Any) -> NDArray[np.uint64]:
    """(n,) a number of 64 bits for each value: equal values have equal numbers."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return (values.astype(np.float64) + 0.0).view(np.uint64)
    digest = {
        text: int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        for text in {str(value) for value in values}
    }
    return np.array([digest[str(value)] for value in values], dtype=np.uint64)
