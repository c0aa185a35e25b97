"""The method: error estimates, multipliers, weights. Pure functions of arrays or tensors.

The problem ``min error subject to lower <= c0 + C e <= upper`` has the Lagrangian

    sum_k p_k e_k + sum_m mu_m v_m,        v = a0 + A e,

where each row m is one side of a constraint: its violation v_m is positive when the bound is
broken. A constraint with equal bounds is one row whose multiplier mu_m is signed; any other has a
row for its upper bound (the paper's lambda) and one for its lower bound (delta), both kept at or
above 0. Collecting the terms of e_k gives the weight of cell k: ``p_k w_k = p_k + (A' mu)_k``.

The constants a0 are the last column of A: they belong to a *constant cell* after the K real ones,
whose error is always 1, so that ``v = A e`` is one product.

All functions take any leading axes, so a stack of models is the same code, and NumPy arrays as well
as PyTorch tensors. Those that only prepare constants take NumPy arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NEVER = 1e6
"""Stands for an infinite bound: levels are at most a few units, so it is never reached."""

TINY = 1e-8
"""Rows that a remembered estimate weighs: one row of a batch outweighs it entirely."""

BORROWED = 1e-24
"""Rows that an error borrowed from the label weighs, per row: any memory outweighs it entirely."""

NOTHING = 1e-30
"""Rows that the starting value weighs, which anything outweighs; not 0, to divide by it."""

Array = Any
"""A NumPy array or a PyTorch tensor; all arguments of one call are of one kind."""


class Sides(NamedTuple):
    """The constraints as one-sided rows.

    Attributes:
        A: (..., M, K + 1) coefficients of the violations, those of the constant cell last.
        floor: (..., M) the least value of each multiplier: 0, or -inf where it is signed.
        sign: (M,) +1 for rows of upper bounds, -1 for rows of lower bounds.

    Example:
        >>> found = sides(np.zeros(1), np.array([[1.0, -1.0]]), np.zeros(1), np.zeros(1))
        >>> found.A, found.floor, found.sign
        (array([[ 1., -1.,  0.]]), array([-inf]), array([1.]))
    """

    A: Array
    floor: Array
    sign: Array


def sides(c0: Array, C: Array, lower: Array, upper: Array) -> Sides:
    """Splits constraints (NumPy arrays) into their sides: J rows if all are exact, else 2 J.

    Rows 0..J-1 hold ``v = F - upper``, rows J..2J-1 ``v = lower - F``. Where the bounds are equal
    the upper row is signed and the lower row is switched off.

    Args:
        c0: (..., J) constants of the levels.
        C: (..., J, K) coefficients of the levels.
        lower: (..., J) lower bounds.
        upper: (..., J) upper bounds.

    Example:
        >>> c0, C = np.zeros(1), np.array([[1.0, -1.0]])
        >>> sides(c0, C, np.array([-0.1]), np.array([0.1])).A
        array([[ 1. , -1. , -0.1],
               [-1. ,  1. , -0.1]])
    """
    exact = lower == upper
    above = np.concatenate([C, (c0 - np.minimum(upper, NEVER))[..., None]], axis=-1)
    floor = np.where(exact, -np.inf, 0.0)
    if exact.all():
        return Sides(above, floor, np.ones(C.shape[-2]))
    switched = np.where(exact, -NEVER, np.maximum(lower, -NEVER)) - c0
    below = np.concatenate([-C, switched[..., None]], axis=-1)
    return Sides(
        np.concatenate([above, below], axis=-2),
        np.concatenate([floor, np.zeros_like(floor)], axis=-1),
        np.repeat([1.0, -1.0], C.shape[-2]),
    )


def influence(A: Array, p: Array) -> Array:
    """``A_mk / p_k`` as (..., K, M): what multiplier m does to the weight of cell k.

    NumPy arrays; 0 for cells without rows, whose weight stays 1.

    Example:
        >>> influence(np.array([[1.0, -1.0, 0.0]]), np.array([0.25, 0.75])).round(4)
        array([[ 4.    ],
               [-1.3333]])
    """
    A, p = A[..., :-1].swapaxes(-1, -2), p[..., None]
    return np.where(p > 0, A / np.where(p > 0, p, 1.0), 0.0)


class Memory(NamedTuple):
    """What is known of the cells' errors.

    Attributes:
        rows: (..., K + 1) rows that each estimate rests on.
        errors: (..., K + 1) the share of them that was predicted wrongly.

    Example:
        >>> Memory(rows=np.array([10.0]), errors=np.array([0.2])).errors
        array([0.2])
    """

    rows: Array
    errors: Array


class Pooling(NamedTuple):
    """Two matrices (K + 1, 2 K) from the counts of a batch to its rows and its wrong rows.

    Example:
        >>> pooling(n_cells=2, n_labels=1).wrong.round(4)
        array([[0., 0., 1., 0.],
               [0., 0., 0., 1.],
               [0., 0., 0., 0.]])
    """

    rows: Array
    wrong: Array


def nothing_remembered(n_cells: int, n_labels: int) -> Memory:
    """The memory at the start (NumPy arrays): chance level, weighing nothing.

    The constant cell remembers, for ever, that it was wrong.

    Example:
        >>> memory = nothing_remembered(n_cells=2, n_labels=2)
        >>> memory.errors
        array([0.5, 0.5, 1. ])
    """
    rows = np.append(np.full(n_cells, NOTHING), TINY)
    return Memory(rows, np.append(np.full(n_cells, 1 - 1 / n_labels), 1.0))


def pooling(n_cells: int, n_labels: int) -> Pooling:
    """The matrices that add the counts of a batch to what is remembered.

    Counts are (..., 2 K): rows predicted rightly in each cell, then those predicted wrongly. Each
    cell also gets a vanishing share of its label's rows: a cell that was never seen thereby
    borrows the error of its label, which pushes nobody.

    Args:
        n_cells: K.
        n_labels: cells are (n_labels, K / n_labels); 1 if they do not depend on the label.

    Example:
        >>> pooling(n_cells=2, n_labels=1).rows.round(4)
        array([[1., 0., 1., 0.],
               [0., 1., 0., 1.],
               [0., 0., 0., 0.]])
    """
    nothing = np.zeros((2 * n_cells, n_cells + 1))
    added = _add_counts(nothing, nothing, np.eye(2 * n_cells), n_labels)
    return Pooling(added.rows.T, added.wrong.T)


def _add_counts(rows: Array, wrong: Array, counts: Array, n_labels: int) -> Pooling:
    """What the matrices of `pooling` do, without them: linear in K, but many operations."""
    shape = (*counts.shape[:-1], 2, counts.shape[-1] // 2)
    by_label = counts.reshape(*shape[:-1], n_labels, -1)
    pooled = (by_label + BORROWED * by_label.sum(-1)[..., None]).reshape(shape)
    rows, wrong = rows + 0, wrong + 0
    rows[..., :-1] += pooled.sum(-2)
    wrong[..., :-1] += pooled[..., 1, :]
    return Pooling(rows, wrong)


def estimate_errors(
    memory: tuple[Array, Array], pooling: tuple[Array, Array] | int, counts: Array, keep: Array
) -> tuple[Array, Memory]:
    """Error rates of the cells after a batch, and what to remember for the next one.

    ``e = wrong rows / rows``, each the batch's plus those remembered. If nothing is to be kept,
    what is remembered weighs next to nothing: a cell in the batch has its batch error, an absent
    one keeps its last estimate for ever. Otherwise so much of all rows is kept.

    Args:
        memory: before the batch, a `Memory`.
        pooling: the matrices of `pooling`; for many cells the number of labels is faster.
        counts: (..., 2 K) rows predicted rightly, then wrongly, or the sums of their weights.
        keep: share of the rows to keep, from 0 (the paper) to below 1; one number, or a column
            (..., 1) for the members of a stack.

    Returns:
        (..., K + 1) errors, 1 for the constant cell; and the memory after the batch.

    Example:
        >>> memory = nothing_remembered(2, 2)
        >>> right, wrong = [8.0, 3.0], [2.0, 1.0]
        >>> errors, memory = estimate_errors(memory, 1, np.array(right + wrong), keep=0.0)
        >>> errors
        array([0.2 , 0.25, 1.  ])
        >>> errors, _ = estimate_errors(memory, 1, np.array([5.0, 0.0, 5.0, 0.0]), keep=0.0)
        >>> errors.round(4)
        array([0.5 , 0.25, 1.  ])
    """
    kept_rows, last = memory
    if isinstance(pooling, int):
        rows, wrong = _add_counts(kept_rows, kept_rows * last, counts, pooling)
    else:
        rows = _plus_times(kept_rows, pooling[0], counts)
        wrong = _plus_times(kept_rows * last, pooling[1], counts)
    errors = wrong / rows
    kept_rows = rows.clip(max=TINY)
    if not isinstance(keep, float) or keep > 0:
        kept_rows = (keep * rows).clip(min=kept_rows)
    return errors, Memory(kept_rows, errors)


def settled_errors(last: Array, rows: Array, pooling: tuple[Array, Array], counts: Array) -> Array:
    """`estimate_errors` where nothing is kept and all cells weigh the same: fewer operations.

    Args:
        last: (..., K + 1) the errors before the batch.
        rows: (..., K + 1) what they weigh: `TINY` rows each, now and for ever.
        pooling: the matrices of `pooling`.
        counts: (..., 2 K) as for `estimate_errors`.

    Example:
        >>> counts = np.array([8.0, 0.0, 2.0, 0.0])  # cell 0: 8 right, 2 wrong; cell 1 is absent
        >>> last, rows = np.array([0.5, 0.3, 1.0]), np.full(3, TINY)
        >>> settled_errors(last, rows, pooling(2, 1), counts).round(4)
        array([0.2, 0.3, 1. ])
    """
    wrong = _plus_times(last, pooling[1], counts, 1.0, TINY)
    return wrong / _plus_times(rows, pooling[0], counts)


def levels(c0: Array, C: Array, errors: Array) -> Array:
    """``F = c0 + C e``: (..., J), e without the constant cell.

    Example:
        >>> levels(np.zeros(1), np.array([[1.0, -1.0]]), np.array([0.3, 0.1])).round(4)
        array([0.2])
    """
    return c0 + _times(C, errors)


def violations(A: Array, errors: Array) -> Array:
    """``v = A e``: (..., M), positive where a side is broken.

    Example:
        >>> violations(np.array([[1.0, -1.0, -0.05]]), np.array([0.3, 0.1, 1.0])).round(4)
        array([0.15])
    """
    return _times(A, errors)


def ascend(multipliers: Array, A: Array, errors: Array, floor: Array | None, rate: Array) -> Array:
    """One step of ascent, ``mu = max(floor, mu + rate v)``; no floor if all are signed.

    Example:
        >>> A, errors = np.array([[1.0, -1.0, 0.0]]), np.array([0.3, 0.1, 1.0])
        >>> ascend(np.zeros(1), A, errors, floor=None, rate=0.5).round(4)
        array([0.1])
    """
    moved = _plus_times(multipliers, A, errors, rate)
    return moved if floor is None else moved.clip(min=floor)


def with_proportional(
    multipliers: Array, A: Array, errors: Array, floor: Array | None, rate: Array
) -> Array:
    """``mu + rate * max(v, floor)``: reacts at once to what is broken now; it damps the swings.

    Example:
        >>> A, errors = np.array([[1.0, -1.0, 0.0]]), np.array([0.3, 0.1, 1.0])
        >>> with_proportional(np.array([0.1]), A, errors, floor=None, rate=2.0).round(4)
        array([0.5])
    """
    violation = violations(A, errors)
    return multipliers + rate * (violation if floor is None else violation.clip(min=floor))


def cell_weights(ones: Array, influence: Array, multipliers: Array, scale: float = 1.0) -> Array:
    """``w_k = 1 + (A' mu)_k / p_k``, times a scale: (..., K).

    Weights may be negative, and must be: without negative ones some problems have no fair
    solution (the paper's Lemma 1).

    Example:
        >>> C, p = np.array([[-0.5, 0.5, 0.0]]), np.array([0.5, 0.5])
        >>> cell_weights(np.ones(2), influence(C, p), np.array([1.5]))
        array([-0.5,  2.5])
    """
    return _plus_times(ones, influence, multipliers, scale, scale)


def net_multipliers(multipliers: Array, sign: Array) -> Array:
    """``lambda - delta``: (..., J), one multiplier per constraint.

    Example:
        >>> net_multipliers(np.array([0.3, 0.1]), np.array([1.0, -1.0])).round(4)
        array([0.2])
    """
    signed = multipliers * sign
    n = int((sign > 0).sum())
    return signed if n == len(sign) else signed[..., :n] + signed[..., n:]


def _times(matrix: Array, vector: Array) -> Array:
    if matrix.ndim == 2 and vector.ndim == 1:
        return matrix @ vector
    return (matrix @ vector[..., None])[..., 0]


def _plus_times(
    base: Array, matrix: Array, vector: Array, scale: Array = 1.0, base_scale: float = 1.0
) -> Array:
    """``base_scale * base + scale * matrix @ vector``: a single operation on tensors."""
    is_tensor = type(base) is not np.ndarray
    if is_tensor and vector.ndim == 1:  # the hot path of the losses
        return base.addmv(matrix, vector, beta=base_scale, alpha=scale)
    if not is_tensor or vector.ndim > 2 or not isinstance(scale, float):
        return base_scale * base + scale * _times(matrix, vector)
    if matrix.ndim == 2:  # a stack whose members share the matrix
        return base.addmm(vector, matrix.T, beta=base_scale, alpha=scale)
    column = base[..., None].baddbmm(matrix, vector[..., None], beta=base_scale, alpha=scale)
    return column[..., 0]
