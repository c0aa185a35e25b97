"""How rows are set aside: at random, with the same share of every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.checks import check_count, check_number

if TYPE_CHECKING:
    from fairgrad.groups import Ints


def hold_out(
    cell: Ints,
    fraction: float,
    random_state: Any = 0,
    argument: str = "validation_fraction",
    *,
    may_be_empty: bool = False,
) -> tuple[Ints, Ints]:
    """Splits rows in two, with the same share of every cell: a stratified hold-out.

    Of a cell of n rows ``round(fraction * n)`` are held out, but never all of them, so that a cell
    of one row stays in training.

    Args:
        cell: (n,) the cell of each row: its label and group, as `GroupedRows.cell` gives it.
        fraction: the share to hold out, from 0 to below 1; 0 holds out nothing.
        random_state: a seed, or what else ``numpy.random.default_rng`` takes.
        argument: what to call the fraction in errors.
        may_be_empty: whether it is fine that no row is held out, as all cells are so small.

    Returns:
        The numbers of the rows to train on, and of those held out; both in order.

    Raises:
        ValueError: if the fraction is out of its range, or so small that no row is held out.

    Example:
        >>> train, held = hold_out(np.repeat([0, 1, 2], [10, 20, 1]), 0.5)
        >>> np.bincount(np.repeat([0, 1, 2], [10, 20, 1])[held], minlength=3)
        array([ 5, 10,  0])
    """
    check_number(argument, fraction, below=1.0)
    n = len(cell)
    if fraction == 0:
        return np.arange(n), np.arange(0)
    order, place, size = _shuffled_cells(cell, random_state)
    quota = np.minimum(np.rint(fraction * size), size - 1)
    is_held = place < quota
    if not is_held.any() and not may_be_empty:
        raise ValueError(f"{argument}: {fraction!r} of {n} rows holds out none.")
    return np.sort(order[~is_held]), np.sort(order[is_held])


def folds(cell: Ints, n_folds: int, random_state: Any = 0) -> Ints:
    """(n,) the fold of each row: equally many rows of every cell in each fold, up to one.

    Args:
        cell: (n,) the cell of each row: its label and group, as `GroupedRows.cell` gives it.
        n_folds: how many folds there are, at least 2.
        random_state: a seed, or what else ``numpy.random.default_rng`` takes.

    Raises:
        ValueError: if the number of folds is not allowed.

    Example:
        >>> fold = folds(np.repeat([0, 1], [4, 6]), 2)
        >>> np.bincount(fold[:4]), np.bincount(fold[4:])
        (array([2, 2]), array([3, 3]))
    """
    check_count("n_folds", n_folds, least=2)
    order, place, _ = _shuffled_cells(cell, random_state)
    fold = np.empty(len(cell), dtype=np.int64)
    fold[order] = place % n_folds
    return fold


def _shuffled_cells(cell: Ints, random_state: Any) -> tuple[Ints, Ints, Ints]:
    """Rows by cell, shuffled within each; the place of each in its cell; and the cell's size."""
    n = len(cell)
    order = np.random.default_rng(random_state).permutation(n)
    order = order[np.argsort(cell[order], kind="stable")]
    _, index, size = np.unique(cell[order], return_inverse=True, return_counts=True)
    return order, np.arange(n) - (np.cumsum(size) - size)[index], size[index]
