import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import binom, binomtest

from fairgrad.audit import Audit
from fairgrad.audit.intervals import (
    Interval,
    Proportion,
    clopper_pearson,
    largest_difference,
    narrowed,
    ratio_high,
    ratio_low,
    smallest_ratio,
)


@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_clopper_pearson_equals_scipy(n, alpha):
    hits = np.unique(np.linspace(0, n, 9).astype(int))
    low, high = clopper_pearson(hits / n, np.full(len(hits), float(n)), alpha)
    for k, a, b in zip(hits, low, high, strict=True):
        exact = binomtest(int(k), n).proportion_ci(1 - alpha, method="exact")
        np.testing.assert_allclose((a, b), exact, atol=1e-9)


def test_without_trials_nothing_is_known():
    low, high = clopper_pearson(np.array([np.nan]), np.array([0.0]), 0.05)
    assert (low[0], high[0]) == (0.0, 1.0)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), min_size=2, max_size=9),
    st.sampled_from([0.025, 0.001]),
)
@settings(max_examples=80, deadline=None)
def test_the_extreme_pair_is_found_without_looking_at_all(groups, error):
    """Against all pairs, each by the formula for its difference and ratio."""
    total = np.array([float(n) for n, _ in groups])
    hits = np.round(total * [share for _, share in groups])
    rate = Proportion(hits, total, total, hits, hits)
    n_pairs = len(groups) * (len(groups) - 1) / 2
    x, full, shared = rate.value, rate.ends_in_sums(error), rate.ends_in_sums(error / n_pairs)
    pairs = [(r, q) for r in range(len(x)) for q in range(len(x)) if r != q]

    def end(r, q, ends, sign):
        up = np.minimum(ends.high, 1) - x
        down = x - np.maximum(ends.low, 0)
        own, other = (up[r], down[q]) if sign > 0 else (down[r], up[q])
        return x[r] - x[q] + sign * np.hypot(own, other)

    low, high = largest_difference([rate], error)
    assert high == pytest.approx(max(end(r, q, full, 1) for r, q in pairs))
    assert low == pytest.approx(max(0, *(end(r, q, shared, -1) for r, q in pairs)))
    low, high = smallest_ratio([rate], error)
    ends = [np.clip(end, 0, 1) for end in (*full, *shared)]
    assert low == pytest.approx(
        min(ratio_low(x[r], ends[0][r], x[q], ends[1][q]) for r, q in pairs)
    )
    tops = [ratio_high(x[r], ends[3][r], x[q], ends[2][q]) for r, q in pairs]
    assert high == pytest.approx(min(1.0, *tops))


def test_the_limits_of_a_ratio_are_where_the_difference_is_zero():
    """The definition of Donner and Zou: the limit of ``top - t bottom`` is 0 at the limit t."""
    top, bottom = (0.3, 0.25, 0.36), (0.5, 0.42, 0.57)
    low = ratio_low(*map(np.asarray, (top[0], top[1], bottom[0], bottom[2])))
    high = ratio_high(*map(np.asarray, (top[0], top[2], bottom[0], bottom[1])))
    gap = top[0] - low * bottom[0]
    assert gap == pytest.approx(np.hypot(top[0] - top[1], low * (bottom[2] - bottom[0])))
    gap = high * bottom[0] - top[0]
    assert gap == pytest.approx(np.hypot(top[2] - top[0], high * (bottom[0] - bottom[1])))


@pytest.mark.parametrize("sizes", [(3, 3), (4, 30), (30, 30), (25, 90)])
@pytest.mark.parametrize("error", [0.025, 0.049])
def test_limits_of_differences_are_wrong_no_more_often_than_promised(sizes, error):
    """Exactly, by summing over all tables, also for rates close to 0 and 1."""
    ends = []
    for n in sizes:
        k, total = np.arange(n + 1.0), np.full(n + 1, float(n))
        ends.append((k / n, Proportion(k, total, total, k, k).ends_in_sums(error)))
    (x, first), (y, second) = ends
    low = x[:, None] - y - np.hypot((x - first.low)[:, None], second.high - y)
    rates = [0.01, 0.1, 0.3, 0.5, 0.9, 0.98, 0.99]
    for p, q in itertools.product(rates, rates):
        chance = np.outer(
            *(binom.pmf(np.arange(n + 1), n, r) for n, r in zip(sizes, (p, q), strict=True))
        )
        assert chance[low > p - q + 1e-12].sum() <= error


def test_an_interval_near_its_bound_holds_for_every_truth():
    """Normal figures, so that coverage is known: 0.95 wherever the truth lies."""
    truth = np.r_[np.linspace(-1.5, 6, 301), 2 + 1e-9, 2 - 1e-9][:, None]
    drawn = truth + ndtri((np.arange(4000) + 0.5) / 4000)

    def limits(error):
        return Interval(drawn + ndtri(error), drawn - ndtri(error))

    fair = Interval(np.asarray(-2.0), np.asarray(2.0))
    for shared in (0.049, 0.049 / 4):  # of the verdict "unfair"
        low, high = narrowed(limits(0.025), limits(0.049), limits(shared), limits(0.001), fair)
        held = ((low <= truth) & (truth <= high)).mean(axis=1)
        assert held.min() >= 0.95 - 1e-3
        assert np.median(held) <= 0.951
        assert ((high <= 2) == (drawn - ndtri(0.049) <= 2)).all()  # as sharp as one-sided limits
        assert ((low > 2) == (drawn + ndtri(shared) > 2)).all()


def test_gaps_when_levels_lie_in_intervals():
    """The least and the most of |F|, or of what a rule with one bound is broken by."""
    y, s = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    level = Interval(np.array([-3.0, -2.0]), np.array([-1.0, 4.0]))
    parity = Audit(y, y, s, measures=["accuracy_parity"]).findings[0].comparison.gaps(level)
    np.testing.assert_array_equal(parity, [[1.0, 0.0], [3.0, 4.0]])
    rule = Audit(y, y, s, measures=["four_fifths_rule"]).findings[0].comparison.gaps(level)
    np.testing.assert_array_equal(rule, [[1.0, 0.0], [3.0, 2.0]])  # levels above 0 break nothing
