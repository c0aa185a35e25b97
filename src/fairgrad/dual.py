"""The method: error estimates, multipliers, weights. Pure functions of arrays or tensors.

The problem ``min error subject to lower <= c0 + C e <= upper`` has the Lagrangian

    sum_k p_k e_k + sum_m mu_m v_m,        v = a0 + A e,

where each row m is one side of a constraint: its violation v_m is positive when the bound is
broken. A constraint with equal bounds is one row whose multiplier mu_m is signed; any other has a
row for its upper bound (the paper's lambda) and one for its lower bound (delta), both kept at or
above 0. Collecting the terms of e_k gives the weight of cell k: ``p_k w_k = p_k + (A' mu)_k``.

All functions take any leading axes, so a stack of models is the same code, and NumPy arrays as well
as PyTorch tensors: nothing here imports either but the constants' construction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NEVER = 1e6
"""Stands for an infinite bound: levels are at most a few units, so it is never reached."""

TINY = 1e-8
"""Confidence, in rows, of a remembered estimate: one row of a batch outweighs it entirely."""

BORROWED = 1e-24
"""Confidence, per row, of an error borrowed from the label: any memory outweighs it entirely."""

NO_CONFIDENCE = 1e-30
"""Confidence of the starting value, which anything outweighs; not 0, to divide by it."""

Array = Any
"""A NumPy array or a PyTorch tensor; all arguments of one call are of one kind."""


class Sides(NamedTuple):
    """The constraints as one-sided rows (the constants of the dual problem).

    Attributes:
        a0: (..., M) constants of the violations.
        A: (..., M, K) coefficients of the violations.
        floor: (..., M) the least value of each multiplier: 0, or -inf where it is signed.
        sign: (M,) +1 for rows of upper bounds, -1 for rows of lower bounds.
    """

    a0: Array
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
    """
    exact = lower == upper
    a0 = c0 - np.minimum(upper, NEVER)
    floor = np.where(exact, -np.inf, 0.0)
    if exact.all():
        return Sides(a0, C, floor, np.ones(C.shape[-2]))
    below = np.where(exact, -NEVER, np.maximum(lower, -NEVER)) - c0
    return Sides(
        np.concatenate([a0, below], axis=-1),
        np.concatenate([C, -C], axis=-2),
        np.concatenate([floor, np.zeros_like(floor)], axis=-1),
        np.repeat([1.0, -1.0], C.shape[-2]),
    )


def over_shares(A: Array, p: Array) -> Array:
    """``A_mk / p_k`` (NumPy arrays) as (..., K, M), 0 for cells without rows: their weight is 1."""
    p = p[..., None, :]
    return np.where(p > 0, A / np.where(p > 0, p, 1.0), 0.0).swapaxes(-1, -2)


def nothing_remembered(n_cells: int, n_labels: int) -> Array:
    """(2, K) what `estimate_errors` starts from (NumPy array): chance level, no confidence."""
    chance = np.array([1 / n_labels, 1 - 1 / n_labels])
    return np.repeat(chance[:, None] * NO_CONFIDENCE, n_cells, axis=1)


def pool(counts: Array, n_labels: int) -> Array:
    """Adds to each cell's counts (..., K) a vanishing share of its label's counts.

    A cell without rows of its own thereby borrows the error of its label, which pushes nobody.
    Linear: for few cells ``counts @ pool(identity, n_labels)`` is faster.

    Args:
        counts: (..., K) rows of a batch.
        n_labels: cells are (n_labels, K / n_labels); 1 if they do not depend on the label.
    """
    by_label = counts.reshape(*counts.shape[:-1], n_labels, -1)
    return (by_label + BORROWED * by_label.sum(-1)[..., None]).reshape(counts.shape)


def estimate_errors(remembered: Array, counts: Array, memory: float) -> tuple[Array, Array]:
    """Error rates of the cells after a batch, and what to remember for the next one.

    ``e = wrong / (right + wrong)``, each the batch's rows plus those remembered. Without memory
    what is remembered weighs next to nothing, so a cell in the batch has its batch error and an
    absent one keeps its last estimate for ever. Memory g keeps g of the rows.

    Args:
        remembered: (..., 2, K) rows predicted rightly and wrongly before.
        counts: (..., 2, K) those of the batch (or the sums of their sample weights), pooled.
        memory: g, from 0 (the paper) to below 1.
    """
    both = remembered + counts
    rows = both.sum(-2)
    keep = rows.clip(max=TINY) / rows
    if memory:
        keep = keep.clip(min=memory)
    return both[..., 1, :] / rows, both * keep[..., None, :]


def levels(c0: Array, C: Array, errors: Array) -> Array:
    """``F = c0 + C e``: (..., J)."""
    return c0 + _times(C, errors)


def violations(a0: Array, A: Array, errors: Array) -> Array:
    """``v = a0 + A e``: (..., M), positive where a side is broken."""
    return a0 + _times(A, errors)


def ascend(multipliers: Array, violation: Array, floor: Array, rate: Array) -> Array:
    """One step of ascent, ``mu = max(floor, mu + rate v)``."""
    return (multipliers + rate * violation).clip(min=floor)


def with_proportional(multipliers: Array, violation: Array, floor: Array, rate: Array) -> Array:
    """``mu + rate * max(v, floor)``: reacts at once to what is broken now; it damps the swings."""
    return multipliers + rate * violation.clip(min=floor)


def cell_weights(A_over_p: Array, multipliers: Array) -> Array:
    """``w_k = 1 + (A' mu)_k / p_k``: (..., K). They may be negative, and must be (Lemma 1)."""
    return 1 + _times(A_over_p, multipliers)


def net_multipliers(multipliers: Array, sign: Array) -> Array:
    """``lambda - delta``: (..., J), one multiplier per constraint."""
    signed = multipliers * sign
    n = int((sign > 0).sum())
    return signed if n == len(sign) else signed[..., :n] + signed[..., n:]


def _times(matrix: Array, vector: Array) -> Array:
    return (
        matrix @ vector
        if matrix.ndim == 2 and vector.ndim == 1
        else ((matrix @ vector[..., None])[..., 0])
    )
