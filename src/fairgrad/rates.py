"""Rates of groups as linear functions of the cells' errors or outcomes, and gaps between them.

A rate is ``r = r0 + R e``, e the error rates of the cells: accuracy, recall, and with two labels
the selection rate. With more labels a selection rate is linear in the *outcomes*
``q[k, l] = P(h = l | cell k)``, one rate for each cell and predicted label. Precision is linear in
neither: its denominator is a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.constraints import Coefficients, Constraints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.groups import Floats, Groups, Ints

MOST_COMPARED = 1000
"""The most groups that can be compared pair by pair: a million pairs."""


@dataclass(frozen=True, eq=False)
class Rates:
    """J rates ``r = r0 + R e``, one per group (or per label and group), by the entries of R.

    Attributes:
        r0: (J,) constants.
        cell: (J, W) the cells each rate depends on; of outcomes, ``predicted label * K + cell``.
        value: (J, W) their coefficients.
        mass: (J,) the rows in each rate's denominator, which are its weight in the mean.
        n_cells: how many error rates (or outcomes) there are; by default up to the last one used.
        n_outcomes: 1 for error rates, the number of labels for outcomes.

    Example:
        >>> rates = Rates(  # the accuracies 1 - e of two groups, of 30 and 70 rows
        ...     r0=np.ones(2),
        ...     cell=np.array([[0], [1]]),
        ...     value=np.array([[-1.0], [-1.0]]),
        ...     mass=np.array([30.0, 70.0]),
        ... )
        >>> rates.r0 + rates.value[:, 0] * np.array([0.1, 0.3])  # where e is 10 % and 30 %
        array([0.9, 0.7])
    """

    r0: Floats
    cell: Ints
    value: Floats
    mass: Floats
    n_cells: int | None = None
    n_outcomes: int = 1

    @staticmethod
    def concatenate(parts: Sequence[Rates]) -> Rates:
        """Joins several sets of rates of the same cells."""
        arrays = ("r0", "cell", "value", "mass")
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in parts]) for name in arrays
        }
        return replace(parts[0], **joined)


def gaps_to_mean(
    rates: Rates,
    *,
    by_label: bool,
    names: Sequence[str],
    block: Ints | None = None,
    ratio: float = 1.0,
    lower: float = 0.0,
    upper: float = 0.0,
) -> Constraints:
    """Constraints on ``F_j = r_j - ratio * (mean of r over the block of j)``.

    The mean is weighted by the rates' rows. A rate of no rows is not defined: its c0 is NaN.

    Args:
        rates: of the groups.
        by_label: whether their cells are (label, group) pairs or groups.
        names: (J,) the name of each level.
        block: (J,) levels with the same number share a mean; by default all do.
        ratio: the share of the mean that is subtracted; 0 bounds the rates themselves.
        lower: the lower bound of all levels.
        upper: the upper bound of all levels.

    Example:
        >>> rates = Rates(np.zeros(2), np.array([[0], [1]]), -np.ones((2, 1)), np.array([30, 70]))
        >>> gaps_to_mean(rates, by_label=False, names=["a", "b"]).C
        array([[-0.7,  0.7],
               [ 0.3, -0.3]])
    """
    n = len(rates.r0)
    block = np.zeros(n, dtype=np.int64) if block is None else block
    total = np.bincount(block, rates.mass)[block]
    share = ratio * rates.mass / np.where(total > 0, total, 1.0)
    mean = np.bincount(block, share * rates.r0)[block]
    c0 = np.where(rates.mass > 0, rates.r0 - mean, np.nan)
    row = np.repeat(np.arange(n), rates.cell.shape[1])
    n_cells = int(rates.cell.max()) + 1 if rates.n_cells is None else rates.n_cells
    return Constraints(
        c0=c0,
        C=Coefficients(row, rates.cell.ravel(), rates.value.ravel(), block, share, n_cells),
        by_label=by_label,
        names=names,
        lower=lower,
        upper=upper,
        n_outcomes=rates.n_outcomes,
    )


def gaps_of_pairs(rates: Rates, names: Sequence[str], ratio: float) -> Constraints:
    """Constraints ``F_(r,r') = r_r - ratio * r_r' >= 0`` for each ordered pair of groups.

    A pair is not defined if one of its groups has no rows.

    Raises:
        ValueError: if there are too many groups to be compared pair by pair.
    """
    n = len(rates.r0)
    if n > MOST_COMPARED:
        raise ValueError(
            f"s: the rule compares every group with every other, at most {MOST_COMPARED} of them; "
            f"got {n}. Use demographic_parity, which compares with the mean, and an epsilon."
        )
    first, other = np.nonzero(~np.eye(n, dtype=bool)) if n > 1 else (np.zeros(1, int),) * 2
    pairs = replace(
        rates,
        r0=rates.r0[first] - ratio * rates.r0[other],
        cell=np.concatenate([rates.cell[first], rates.cell[other]], axis=1),
        value=np.concatenate([rates.value[first], -ratio * rates.value[other]], axis=1),
        mass=np.minimum(rates.mass[first], rates.mass[other]),
    )
    pair_names = [f"{names[i]} against {names[j]}" for i, j in zip(first, other, strict=True)]
    return gaps_to_mean(pairs, by_label=True, names=pair_names, ratio=0.0, upper=np.inf)


def label_of(groups: Groups) -> Ints:
    """(K,) the label index of each (label, group) cell."""
    return np.repeat(np.arange(len(groups.labels)), groups.n_groups)


def accuracies(mass: Floats) -> Rates:
    """``-e_k``: the accuracy minus 1. The constant cancels in gaps, so c0 is exactly 0."""
    n = len(mass)
    return Rates(np.zeros(n), np.arange(n)[:, None], -np.ones((n, 1)), mass)


def selection_rates(groups: Groups, labels: Sequence[int]) -> Rates:
    """``P(h in labels | s = r)``, (G,): from error rates for two labels, else from outcomes.

    ``P(h = l | r) = P(y = l | r) (1 - e_(l,r)) + P(y = l' | r) e_(l',r)``, and with more
    labels ``P(h = l | r) = sum_y P(y | r) q[(y,r), l]``.
    """
    total = groups.mass.sum(axis=0)
    share = groups.mass / np.where(total > 0, total, 1.0)
    n_labels, n_groups = groups.mass.shape
    group = np.arange(n_groups)
    if n_labels == 2 and len(labels) == 1:
        label = labels[0]
        cell = np.stack([label * n_groups + group, (1 - label) * n_groups + group], 1)
        return Rates(share[label], cell, np.stack([-share[label], share[1 - label]], 1), total)
    return _outcome_rates(groups, labels, share, total)


def recalls(groups: Groups, labels: Sequence[int]) -> Rates:
    """``P(h = l | y = l, s = r)``, (len(labels) * G,), label by label."""
    cell = (np.asarray(labels)[:, None] * groups.n_groups + np.arange(groups.n_groups)).ravel()
    n = len(cell)
    mass = groups.mass.ravel()
    return Rates(np.ones(n), cell[:, None], -np.ones((n, 1)), mass[cell], len(mass))


def false_alarm_rates(groups: Groups, labels: Sequence[int]) -> Rates:
    """``P(h in labels | y not in labels, s = r)``, (G,)."""
    others = ~np.isin(np.arange(len(groups.labels)), labels)
    mass = groups.mass * others[:, None]
    total = mass.sum(axis=0)
    if len(groups.labels) == 2:
        cell = int(np.flatnonzero(others)[0]) * groups.n_groups + np.arange(groups.n_groups)
        n = groups.n_groups
        return Rates(np.zeros(n), cell[:, None], np.ones((n, 1)), total, groups.mass.size)
    return _outcome_rates(groups, labels, mass / np.where(total > 0, total, 1.0), total)


def prediction_rates(groups: Groups) -> Rates:
    """``q[k, l] = P(h = l | cell k)``, (L * K,), predicted label by predicted label."""
    n_labels, n_cells = len(groups.labels), groups.mass.size
    n = n_labels * n_cells
    mass = np.tile(groups.mass.ravel(), n_labels)
    return Rates(np.zeros(n), np.arange(n)[:, None], np.ones((n, 1)), mass, n, n_labels)


def _outcome_rates(groups: Groups, labels: Sequence[int], share: Floats, total: Floats) -> Rates:
    """``sum over these predicted labels and all y of share_(y,r) q[(y,r), l]``, (G,)."""
    n_labels, n_groups = groups.mass.shape
    cell = np.arange(groups.mass.size).reshape(n_labels, n_groups).T  # (G, L) of each group
    places = np.concatenate([cell + label * groups.mass.size for label in labels], axis=1)
    return Rates(
        r0=np.zeros(n_groups),
        cell=places,
        value=np.tile(share.T, (1, len(labels))),
        mass=total,
        n_cells=n_labels * groups.mass.size,
        n_outcomes=n_labels,
    )
