"""Proportions, exact intervals around them, and intervals of what is made of several of them.

Sums, differences and ratios of independent rates get their intervals by MOVER, the method of
variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008; for ratios Donner and
Zou, Statistical Methods in Medical Research 21, 2012): how far the exact interval of each rate
reaches to one side stands for its standard error on that side,

    low(sum c_k x_k) = sum c_k x_k - sqrt(sum (c_k (x_k - l_k))^2 + sum (c_k (u_k - x_k))^2),

the first sum over positive c_k, the second over negative ones; the upper end is the mirror image.
Arrays have any shape: one call serves all groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from fairgrad.groups import Floats, Ints  # noqa: TC001 - a NamedTuple's fields are read at run time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


class Interval(NamedTuple):
    """Lower and upper ends, arrays of one shape."""

    low: Floats
    high: Floats


class Proportion(NamedTuple):
    """Shares ``hits / total``, with what an interval around them needs.

    The variance of a share x is that of a ratio of sums over independent units c (rows, or clusters
    of rows): ``V = sum_c (A_c - x B_c)^2 / total^2``, where ``A_c`` is the unit's weight that has
    the property and ``B_c`` its weight that could have it.

    Attributes:
        hits: rows (or the sum of their weights) that have the property.
        total: rows (or the sum of their weights) that could have it.
        squares: ``sum_c B_c^2``; equal to `total` without weights and clusters.
        hit_squares: ``sum_c A_c^2``; equal to `hits` without weights and clusters.
        products: ``sum_c A_c B_c``; equal to `hit_squares` without clusters.
        below: if groups are known for only some rows: by how much each share may be less if those
            of unknown group differ. Rates of groups are not independent then.
        above: the same for more; both None if all groups are known.
    """

    hits: Floats
    total: Floats
    squares: Floats
    hit_squares: Floats
    products: Floats
    below: Floats | None = None
    above: Floats | None = None

    def pick(self, index: Any) -> Proportion:
        """Those at an index of every part."""
        return Proportion(*(None if counts is None else counts[index] for counts in self))  # type: ignore[arg-type]  # None for parts that are not there

    def row(self, index: int) -> Proportion:
        """One row of them; all for -1."""
        return self if index < 0 else self.pick(index)

    def exact_interval(self, alpha: float) -> Interval:
        """The interval of each share by itself, wrong at most `alpha` of the time."""
        low, high = self._drifted(clopper_pearson(self.value, self.trials, alpha))
        return Interval(np.maximum(low, 0.0), np.minimum(high, 1.0))

    def _drifted(self, ends: Interval) -> Interval:
        """The ends if rows of unknown group differ."""
        if self.below is None or self.above is None:
            return ends
        return Interval(ends.low - self.below, ends.high + self.above)

    def ends_in_sums(self, error: float) -> Interval:
        """Limits for MOVER: such that sums of rates miss the truth at most `error` of the time.

        Exact limits near 0 and 1 reach much farther to one side. Sums of several rates are less
        skew, and would miss the truth too often on the short side: there the limits reach at least
        as far as ``z sqrt(x (1 - x) / n)``, and may lie outside [0, 1].
        """
        x = np.where(self.total > 0, np.nan_to_num(self.value), 0.5)
        low, high = clopper_pearson(self.value, self.trials, 2 * error)
        n = np.where(self.total > 0, self.trials, 1.0)
        reach = -ndtri(error) * np.sqrt(x * (1 - x) / n)
        return self._drifted(Interval(np.minimum(low, x - reach), np.maximum(high, x + reach)))

    @property
    def value(self) -> Floats:
        """The shares, NaN where there are no rows."""
        empty = self.total <= 0
        share = np.clip(self.hits / np.where(empty, 1.0, self.total), 0.0, 1.0)
        return np.where(empty, np.nan, share)

    @property
    def trials(self) -> Floats:
        """The effective number of rows: that of a binomial share of the same variance.

        ``x (1 - x) / V``, and where x is 0 or 1 Kish's ``(sum w)^2 / sum w^2``. It is the number of
        rows where these are independent and have no weights.
        """
        x, kish = self.value, self.total**2 / np.where(self.squares > 0, self.squares, 1.0)
        spread = self.hit_squares - 2 * x * self.products + x**2 * self.squares
        is_plain = (self.squares == self.total) & (self.hit_squares == self.hits)
        usable = (x > 0) & (x < 1) & (spread > 0) & ~is_plain
        effective = x * (1 - x) * self.total**2 / np.where(usable, spread, 1.0)
        return np.where(usable, effective, np.where(is_plain, self.total, kish))


def in_a_row(pieces: Sequence[Any]) -> Any:
    """Arrays one after the other; of tuples of arrays, such as proportions, part by part."""
    first = pieces[0]
    if isinstance(first, tuple):
        return type(first)(*map(in_a_row, zip(*pieces, strict=True)))
    return None if first is None else np.concatenate(pieces)


def least_holding(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number, within 0.001, from which on a condition holds; infinite beyond `high`."""
    if not holds(high):
        return np.inf
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def clopper_pearson(value: Floats, trials: Floats, alpha: float) -> Interval:
    """Exact intervals of binomial proportions: each misses the truth at most `alpha` of the time.

    The lower end is the ``alpha / 2`` quantile of Beta(k, n - k + 1), the upper end the
    ``1 - alpha / 2`` quantile of Beta(k + 1, n - k), with k of n. Effective numbers of trials make
    it approximate. Without trials the interval is [0, 1].
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

    MOVER joins the exact intervals of both shares, with the correlation of two counts of one
    multinomial, ``-sqrt(up down / ((1 - up) (1 - down)))``.

    Args:
        up: share of the rows that got what they had not.
        down: share of the rows that lost it.
        trials: rows the shares rest on; where there are none the interval is [-1, 1].
        alpha: the error allowed to each interval.
    """
    known = trials > 0
    p, q = (np.where(known, np.nan_to_num(share), 0.0) for share in (up, down))
    (least_p, most_p), (least_q, most_q) = (clopper_pearson(x, trials, alpha) for x in (p, q))
    room = (1.0 - p) * (1.0 - q)
    r = -np.sqrt(np.clip(p * q / np.where(room > 0, room, 1.0), 0.0, 1.0))

    def reach(a: Any, b: Any) -> Any:
        return np.sqrt(a**2 + b**2 - 2.0 * r * a * b)

    low = np.clip(p - q - reach(p - least_p, most_q - q), -1.0, 1.0)
    high = np.clip(p - q + reach(most_p - p, q - least_q), -1.0, 1.0)
    return Interval(np.where(known, low, -1.0), np.where(known, high, 1.0))


def narrowed(
    base: Interval, near: Interval, reject: Interval, far: Interval, fair: Interval
) -> Interval:
    """Intervals of figures that a verdict looks at: wrong as rarely as `base`, sharper at a bound.

    An interval with equal tails spends half of its error on each side. Close to a bound only one
    side matters: a limit that is wrong nearly as often as the whole interval may be decides
    whether a figure is fair (`near`) or beyond (`reject`). In return, such an interval ends at the
    bound unless the limit that is hardly ever wrong (`far`) lies on the same side. So for every
    truth the errors of both sides sum to at most that of `base` (the confidence interval of an
    equivalence test: Hsu, Hwang, Liu and Ruberg, Biometrika 81, 1994, with equal tails away from
    the bound).

    Args:
        base: limits with equal tails.
        near: limits of which a single one is nearly as often wrong as both of `base`.
        reject: the same for "beyond the bound"; wider if the error is shared with other figures.
        far: limits that are wrong for the rest of that error.
        fair: the least and the greatest fair figure.
    """
    low = np.where(far.low >= fair.low, base.low, np.minimum(base.low, fair.low))
    low = np.where((near.low >= fair.low) & (far.low < fair.low), fair.low, low)
    high = np.where(far.high <= fair.high, base.high, np.maximum(base.high, fair.high))
    high = np.where((near.high <= fair.high) & (far.high > fair.high), fair.high, high)
    # The bound itself is fair, so the interval of an unfair figure is open there.
    above = np.where(far.low > fair.high, base.low, np.nextafter(fair.high, np.inf))
    below = np.where(far.high < fair.low, base.high, np.nextafter(fair.low, -np.inf))
    low = np.where(reject.low > fair.high, above, np.minimum(low, fair.high))
    high = np.where(reject.high < fair.low, below, np.maximum(high, fair.low))
    return Interval(low, high)


def n_pairs(rates: Sequence[Proportion]) -> int:
    """In how many ways two groups can be compared by one of these rates."""
    seen = [int((rate.total > 0).sum()) for rate in rates]
    return sum(n * (n - 1) // 2 for n in seen)


def largest_difference(rates: Sequence[Proportion], error: float) -> Interval:
    """Limits of the largest ``rate_r - rate_q`` over all pairs of groups, by one or several rates.

    The largest difference is that of some pair, so it exceeds the largest of all upper limits only
    if that pair's own fails: no correction. A lower limit may fail for any pair, so each gets
    ``error / number of pairs``.
    """
    low, high = [], []
    for rate in rates:
        seen, together = rate.pick(rate.total > 0), np.hypot if rate.below is None else np.add
        x, (least, most) = seen.value, limited(seen, error / n_pairs(rates))
        r, q = _pairs((x, -(x - least)), (-x, -(most - x)))
        low.append((x[r] - x[q] - together(x[r] - least[r], most[q] - x[q])).max())
        least, most = limited(seen, error)
        r, q = _pairs((x, most - x), (-x, x - least))
        high.append((x[r] - x[q] + together(most[r] - x[r], x[q] - least[q])).max())
    return Interval(np.asarray(max(*low, 0.0)), np.asarray(max(high)))


def impact_ratios(
    rate: Floats, compared: NDArray[np.bool_] | None = None, reference: int = -1
) -> Floats:
    """Each rate divided by the largest one, or by that of a reference group: the impact ratios.

    NaN for groups without rows, for those not compared, and everywhere if the divisor is 0 or only
    one group is compared.
    """
    used = ~np.isnan(rate) if compared is None else ~np.isnan(rate) & compared
    divisor = rate[used].max(initial=0.0) if reference < 0 else np.nan_to_num(rate[reference])
    if used.sum() < 2 or divisor <= 0:
        return np.full(len(rate), np.nan)
    return np.where(used, rate / divisor, np.nan)


def smallest_ratio(rates: Sequence[Proportion], error: float, reference: int = -1) -> Interval:
    """Limits of the smallest ``rate_r / rate_q`` over all pairs of groups, by one or several rates.

    The limits of a ratio are those numbers t for which the limit of ``rate_r - t rate_q`` is 0.
    Corrections as in `largest_difference`, with the sides exchanged. With a reference group, q is
    that one alone.
    """
    low, high, most = [], [], 1.0 if reference < 0 else np.inf
    for rate in rates:
        if reference >= 0:
            r = np.flatnonzero((rate.total > 0) & (np.arange(len(rate.total)) != reference))
            wide, shared = (limited(rate, error / n) for n in (1, max(len(r), 1)))
            x, q, near, far = rate.value, np.full(len(r), reference), r, r
            q_far = q
        else:
            seen = rate.pick(rate.total > 0)
            x, wide = seen.value, limited(seen, error)
            shared = limited(seen, error / n_pairs(rates))
            near, q = _pairs((-x, x - wide.low), (x, wide.high - x))
            far, q_far = _pairs((-x, -(shared.high - x)), (x, -(x - shared.low)))
        if rate.below is not None:  # whatever their correlation
            low.append(_quotient(wide.low[near], wide.high[q]).min())
            high.append(_quotient(shared.high[far], shared.low[q_far]).min())
            continue
        low.append(ratio_low(x[near], wide.low[near], x[q], wide.high[q]).min())
        high.append(ratio_high(x[far], shared.high[far], x[q_far], shared.low[q_far]).min())
    return Interval(np.asarray(min(low)), np.asarray(min(*high, most)))


def ratio_low(top: Floats, top_low: Floats, bottom: Floats, bottom_high: Floats) -> Floats:
    """The lower MOVER limit of ``top / bottom``; 0 where nothing keeps the ratio above it."""
    # t^2 a - 2 t b + c = 0, written so that nothing cancels and a may have any sign.
    a, b = bottom_high * (2 * bottom - bottom_high), top * bottom
    c = top_low * (2 * top - top_low)
    divisor = b + np.sqrt(np.maximum(b**2 - a * c, 0.0))
    low: Floats = np.where(divisor > 0, c / np.where(divisor > 0, divisor, 1.0), 0.0)
    return low


def ratio_high(top: Floats, top_high: Floats, bottom: Floats, bottom_low: Floats) -> Floats:
    """The upper MOVER limit of ``top / bottom``; infinite where `bottom` may be 0."""
    a, b = bottom_low * (2 * bottom - bottom_low), top * bottom
    root = b + np.sqrt(np.maximum(b**2 - a * top_high * (2 * top - top_high), 0.0))
    high: Floats = np.where(a > 0, root / np.where(a > 0, a, 1.0), np.inf)
    return high


def _quotient(top: Floats, bottom: Floats) -> Floats:
    """Ratios, infinite where the bottom may be 0."""
    return np.divide(top, bottom, out=np.full_like(top, np.inf), where=bottom > 0)


def limited(rate: Proportion, error: float) -> Interval:
    """The limits of rates within 0 and 1."""
    low, high = rate.ends_in_sums(error)
    return Interval(np.maximum(low, 0.0), np.minimum(high, 1.0))


def _pairs(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Ints, Ints]:
    """Pairs of different groups that include the most extreme pair.

    The quantity to maximise (for a ratio, to minimise) grows with both scores of its first group
    and both scores of its second group. So a group counts only if at most one other group has both
    scores larger (that group may be the other of the pair). Few of thousands of groups remain.
    """
    r, q = (_nearly_undominated(*scores) for scores in (first, second))
    pairs = np.array([(a, b) for a in r.tolist() for b in q.tolist() if a != b], dtype=np.int64)
    return pairs[:, 0], pairs[:, 1]


def _nearly_undominated(score: Floats, other: Floats) -> Ints:
    """The groups with at most one other group whose two scores are both at least as large."""
    kept: list[int] = []
    largest = second = -np.inf
    order = np.lexsort((-other, -score))
    for g in order.tolist():
        if other[g] > second or len(kept) < 2:
            kept.append(g)
        largest, second = sorted((largest, second, float(other[g])), reverse=True)[:2]
    return np.asarray(kept, dtype=np.int64)
