"""Which rows to set aside for the multipliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Ints


def held_out_rows(cell: Ints, share: float, seed: Any) -> NDArray[np.bool_]:
    """(n,) a random share of the rows of each cell, rounded; never all of a cell.

    Example:
        >>> chosen = held_out_rows(np.repeat([0, 1, 2], [10, 20, 1]), 0.5, seed=0)
        >>> [int(part.sum()) for part in (chosen[:10], chosen[10:30], chosen[30:])]
        [5, 10, 0]
    """
    n = len(cell)
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(cell[order], kind="stable")]  # shuffled within each cell
    size = np.bincount(cell)
    rank = np.arange(n) - np.repeat(np.cumsum(size) - size, size)
    quota = np.minimum(np.rint(share * size), np.maximum(size - 1, 0))
    chosen = np.zeros(n, dtype=bool)
    chosen[order] = rank < quota[cell[order]]
    return chosen
