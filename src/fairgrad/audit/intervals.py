"""Proportions, exact intervals around them, and what intervals say about gaps.

Everything here takes arrays of any shape: one call serves all groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from fairgrad.groups import Floats  # noqa: TC001 - a NamedTuple's fields are read at run time


class Interval(NamedTuple):
    """Lower and upper ends, arrays of one shape."""

    low: Floats
    high: Floats


class Proportion(NamedTuple):
    """Shares ``hits / total``, with what an interval around them needs.

    Attributes:
        hits: rows (or the sum of their weights) that have the property.
        total: rows (or the sum of their weights) that could have it.
        squares: the sum of the squared weights of these; equal to `total` without weights.
    """

    hits: Floats
    total: Floats
    squares: Floats

    def row(self, index: int) -> Proportion:
        """One row of them; all for -1."""
        return self if index < 0 else Proportion(*(part[index] for part in self))

    def flat(self) -> Proportion:
        """All of them in one row."""
        return Proportion(*(np.ravel(part) for part in self))

    @property
    def value(self) -> Floats:
        """The shares, NaN where there are no rows."""
        empty = self.total <= 0
        share = np.clip(self.hits / np.where(empty, 1.0, self.total), 0.0, 1.0)
        return np.where(empty, np.nan, share)

    @property
    def trials(self) -> Floats:
        """Kish's effective number of rows, ``(sum w)^2 / sum w^2``: the rows where all w are 1."""
        return self.total**2 / np.where(self.squares > 0, self.squares, 1.0)


def clopper_pearson(value: Floats, trials: Floats, alpha: float) -> Interval:
    """Exact intervals of binomial proportions: each misses the truth at most `alpha` of the time.

    The lower end is the ``alpha / 2`` quantile of Beta(k, n - k + 1), the upper end the
    ``1 - alpha / 2`` quantile of Beta(k + 1, n - k), with k of n. Without trials nothing is known:
    the interval is [0, 1].

    Args:
        value: observed proportions, NaN where there are no trials.
        trials: rows they rest on; fractions (effective sizes) make the interval approximate.
        alpha: the error allowed to each interval, shared equally by its two sides.
    """
    known = trials > 0
    n = np.where(known, trials, 1.0)
    k = np.where(known, np.nan_to_num(value), 0.0) * n
    # The ends are 0 and 1 where no (or only) hits were seen: the quantiles are not defined there.
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-300), n - k + 1, alpha / 2), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - alpha / 2), 1.0)
    return Interval(np.where(known, low, 0.0), np.where(known, high, 1.0))


def paired_difference(up: Floats, down: Floats, trials: Floats, alpha: float) -> Interval:
    """Intervals of ``up - down``: how a rate changes when the same rows are decided anew.

    Both shares get exact intervals, [l, u] and [m, v]; MOVER (Zou and Donner, 2008) joins them:
    ``low = d - sqrt((up - l)^2 + (v - down)^2 - 2 r (up - l) (v - down))`` with ``d = up - down``
    and the correlation of two counts of one multinomial, ``r = -sqrt(up down / ((1 - up)
    (1 - down)))``; the upper end is the mirror image.

    Args:
        up: share of the rows that got what they had not.
        down: share of the rows that lost it.
        trials: rows the shares rest on; where there are none the interval is [-1, 1].
        alpha: the error allowed to each interval.
    """
    known = trials > 0
    p, q = (np.where(known, np.nan_to_num(share), 0.0) for share in (up, down))
    (least_p, most_p), (least_q, most_q) = (clopper_pearson(x, trials, alpha) for x in (p, q))
    rest = (1.0 - p) * (1.0 - q)
    r = -np.sqrt(np.clip(p * q / np.where(rest > 0, rest, 1.0), 0.0, 1.0))

    def reach(first: Floats, second: Floats) -> Floats:
        width: Floats = np.sqrt(first**2 + second**2 - 2.0 * r * first * second)
        return width

    low = np.clip(p - q - reach(p - least_p, most_q - q), -1.0, 1.0)
    high = np.clip(p - q + reach(most_p - p, q - least_q), -1.0, 1.0)
    return Interval(np.where(known, low, -1.0), np.where(known, high, 1.0))


def largest_difference(rate: Interval) -> Interval:
    """The interval of ``max_r rate_r - min_r rate_r`` over groups (one axis, at least two)."""
    low, high = rate
    least = np.maximum(low.max() - high.min(), 0.0)
    return Interval(np.asarray(least), np.asarray(np.max(high - _least_of_others(low))))


def smallest_ratio(rate: Interval) -> Interval:
    """The interval of ``min_r rate_r / max_r rate_r`` over groups (one axis, at least two)."""
    low, high = rate
    largest_of_others = -_least_of_others(-high)
    most = high.min() / low.max() if low.max() > 0 else 1.0
    least = np.min(low / largest_of_others)
    return Interval(np.asarray(least), np.asarray(np.minimum(most, 1.0)))


def _least_of_others(values: Floats) -> Floats:
    """For each group the least value among the other groups."""
    least, second = np.partition(values, 1)[:2]
    others: Floats = np.where(np.arange(len(values)) == values.argmin(), second, least)
    return others
