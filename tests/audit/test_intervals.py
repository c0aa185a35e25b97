import numpy as np
import pytest
from scipy.stats import binomtest

from fairgrad.audit import Audit
from fairgrad.audit.intervals import (
    Interval,
    Proportion,
    clopper_pearson,
    largest_difference,
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


def test_kish_effective_size_of_equal_weights_is_the_number_of_rows():
    weights = np.full(12, 2.5)
    rate = Proportion(np.array(5.0), weights.sum(), (weights**2).sum())
    assert rate.trials == pytest.approx(12)


def test_kish_effective_size_shrinks_with_unequal_weights():
    weights = np.array([10.0, *([1.0] * 10)])
    rate = Proportion(np.array(5.0), weights.sum(), (weights**2).sum())
    assert rate.trials == pytest.approx(400 / 110)


def test_intervals_of_gaps_hold_what_they_enclose():
    rng = np.random.default_rng(0)
    ends = np.sort(rng.random((2, 5)), axis=0)
    ends[1, 2], ends[0, 2] = 0.99, 0.01  # one group is both the highest and the lowest possible
    interval = Interval(*ends)
    rates = ends[0] + rng.random((20_000, 5)) * (ends[1] - ends[0])
    rates[:32] = np.where(np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T, ends[1], ends[0])
    spread = rates.max(axis=1) - rates.min(axis=1)
    ratio = rates.min(axis=1) / rates.max(axis=1)
    low, high = largest_difference(interval)
    assert low <= spread.min()
    assert high == pytest.approx(spread.max())
    low, high = smallest_ratio(interval)
    assert low == pytest.approx(ratio.min())
    assert high >= ratio.max()


def test_gaps_when_levels_lie_in_intervals():
    """The least and the most of |F|, or of what a rule with one bound is broken by."""
    y, s = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    level = Interval(np.array([-3.0, -2.0]), np.array([-1.0, 4.0]))
    parity = Audit(y, y, s, measures=["accuracy_parity"]).findings[0].comparison.gaps(level)
    np.testing.assert_array_equal(parity, [[1.0, 0.0], [3.0, 4.0]])
    rule = Audit(y, y, s, measures=["four_fifths_rule"]).findings[0].comparison.gaps(level)
    np.testing.assert_array_equal(rule, [[1.0, 0.0], [3.0, 2.0]])  # levels above 0 break nothing
