"""Splits rows at random, with the same share of every cell in each part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.checks import check_count, check_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.groups import Ints

TEST, VALIDATION = 0.2, 0.25
"""Share of the rows held out for the test, and of the other rows for validation."""


class SplitRows(NamedTuple):
    """Row numbers of the three parts; ``train, validation, test = rows`` unpacks them."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def hold_out(
    cell: Ints,
    fraction: float,
    random_state: Any = 0,
    argument: str = "validation_fraction",
    *,
    may_be_empty: bool = False,
) -> tuple[Ints, Ints]:
    """Splits rows in two, with the same share of every cell: a stratified hold-out.

    ``round(fraction * n)`` rows of a cell of n rows are held out, but never all of them: the row of
    a cell with one row stays in training.

    Args:
        cell: (n,) the cell of each row: its label and group, as `GroupedRows.cell` gives it.
        fraction: the share to hold out, from 0 to below 1; 0 holds out nothing.
        random_state: a seed, or anything else that ``numpy.random.default_rng`` takes.
        argument: what to call the fraction in errors.
        may_be_empty: whether no row may be held out if all cells are too small.

    Returns:
        The numbers of the training rows and of the held-out rows; both in order.

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
    order, size, place = _dealt(cell, random_state)
    is_held = place < np.minimum(np.rint(fraction * size), size - 1)
    if not is_held.any() and not may_be_empty:
        raise ValueError(f"{argument}: {fraction!r} of {n} rows holds out no row.")
    return np.sort(order[~is_held]), np.sort(order[is_held])


def unpack_rows(rows: Any, argument: str) -> tuple[Any, Any, Any, Any]:
    """Features, labels, sensitive values and weights from an argument that has all of them."""
    columns = tuple(rows)
    if len(columns) not in {3, 4}:
        raise ValueError(
            f"{argument}: expected (X, y, sensitive_features) or (X, y, sensitive_features, "
            f"sample_weight), got {len(columns)} entries."
        )
    X, y, s, *weight = columns
    return X, y, s, weight[0] if weight else None


def three_parts(
    cell: Ints, random_state: Any = 0, *, test: float = TEST, may_be_empty: bool = False
) -> SplitRows:
    """Training, validation and test rows: `hold_out` twice. `test` is a share of all rows."""
    kept, in_test = hold_out(
        cell, test, random_state, "the share for the test", may_be_empty=may_be_empty
    )
    training, held = hold_out(
        cell[kept], VALIDATION, random_state, "the share for validation", may_be_empty=may_be_empty
    )
    return SplitRows(kept[training], kept[held], in_test)


def fold_of_rows(cell: Ints, n_folds: int, random_state: Any = 0) -> Ints:
    """(n,) the fold of each row; a cell's numbers of rows in two folds differ by at most 1."""
    check_count("n_folds", n_folds, least=2)
    order, _, _ = _dealt(cell, random_state)
    fold = np.empty(len(cell), dtype=np.int64)
    # Dealt through all cells in turn, so that the folds have the same size, too.
    fold[order] = np.arange(len(cell)) % n_folds
    return fold


def folds(cell: Ints, n_folds: int, random_state: Any = 0) -> Iterator[SplitRows]:
    """The parts of cross-validation: every row is a test row once.

    The row of a cell with one row is never a test row, because training needs it.
    """
    fold = fold_of_rows(cell, n_folds, random_state)
    _, index, size = np.unique(cell, return_inverse=True, return_counts=True)
    fold[size[index] == 1] = -1
    for number in range(n_folds):
        test, kept = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        training, held = hold_out(cell[kept], VALIDATION, random_state, "the share for validation")
        yield SplitRows(kept[training], kept[held], test)


def _dealt(cell: Ints, random_state: Any) -> tuple[Ints, Ints, Ints]:
    """Rows by cell, shuffled within each, with the size of the row's cell and its place there."""
    n = len(cell)
    order = np.random.default_rng(random_state).permutation(n)
    order = order[np.argsort(cell[order], kind="stable")]
    _, index, size = np.unique(cell[order], return_inverse=True, return_counts=True)
    return order, size[index], np.arange(n) - (np.cumsum(size) - size)[index]
