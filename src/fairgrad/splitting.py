"""How rows are set aside: at random, with the same share of every cell."""

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
    order, size, place = _dealt(cell, random_state)
    is_held = place < np.minimum(np.rint(fraction * size), size - 1)
    if not is_held.any() and not may_be_empty:
        raise ValueError(f"{argument}: {fraction!r} of {n} rows holds out none.")
    return np.sort(order[~is_held]), np.sort(order[is_held])


def unpack_rows(rows: Any, argument: str) -> tuple[Any, Any, Any, Any]:
    """Features, labels, sensitive values and weights of an argument that holds them all."""
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
    rest, in_test = hold_out(
        cell, test, random_state, "the share for the test", may_be_empty=may_be_empty
    )
    training, held = hold_out(
        cell[rest], VALIDATION, random_state, "the share for validation", may_be_empty=may_be_empty
    )
    return SplitRows(rest[training], rest[held], in_test)


def fold_of_rows(cell: Ints, n_folds: int, random_state: Any = 0) -> Ints:
    """(n,) the fold of each row: equally many rows of every cell in each fold, up to one."""
    check_count("n_folds", n_folds, least=2)
    order, _, _ = _dealt(cell, random_state)
    fold = np.empty(len(cell), dtype=np.int64)
    # Dealt one by one through all cells: neither a fold nor a cell's share of it gets too small.
    fold[order] = np.arange(len(cell)) % n_folds
    return fold


def folds(cell: Ints, n_folds: int, random_state: Any = 0) -> Iterator[SplitRows]:
    """The parts of cross-validation: every row is a test row once.

    A cell of one row is never tested, as no other row could stand for it in training.
    """
    fold = fold_of_rows(cell, n_folds, random_state)
    _, index, size = np.unique(cell, return_inverse=True, return_counts=True)
    fold[size[index] == 1] = -1
    for number in range(n_folds):
        test, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        training, held = hold_out(cell[rest], VALIDATION, random_state, "the share for validation")
        yield SplitRows(rest[training], rest[held], test)


def _dealt(cell: Ints, random_state: Any) -> tuple[Ints, Ints, Ints]:
    """Rows by cell, shuffled within each; the size of each one's cell, and its place there."""
    n = len(cell)
    order = np.random.default_rng(random_state).permutation(n)
    order = order[np.argsort(cell[order], kind="stable")]
    _, index, size = np.unique(cell[order], return_inverse=True, return_counts=True)
    return order, size[index], np.arange(n) - (np.cumsum(size) - size)[index]
