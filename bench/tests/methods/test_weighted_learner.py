"""The learner that the reduction fits to weighted rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairgrad_bench.methods.models import expected_warnings
from fairgrad_bench.methods.weighted_learner import WeightedLearner

reductions = pytest.importorskip("fairlearn.reductions")


def reduced(estimator, split, bound):
    """The rates of label 1 of fairlearn's reduction on the test rows."""
    lottery = reductions.ExponentiatedGradient(
        estimator, reductions.DemographicParity(difference_bound=bound), eps=0.02, max_iter=4
    )
    X, y, s = split.train
    lottery.fit(X, y, sensitive_features=s)
    return lottery._pmf_predict(split.test.X)[:, 1]  # noqa: SLF001 - the only way to the probabilities


def gap(rate, part):
    """The difference between the selection rates of two groups."""
    return abs(rate[part.s == 0].mean() - rate[part.s == 1].mean())


@pytest.fixture(scope="module")
def splits(make_task):
    return make_task(seeds=(1, 2), rows=800).splits


def test_the_reduction_is_that_of_logistic_regression(splits):
    gaps = {}
    for seed, split in splits.items():
        for bound in (0.01, 0.2):
            own = WeightedLearner(hidden=False, epochs=30, seed=seed)
            with expected_warnings():
                rate, usual = (reduced(one, split, bound) for one in (own, LogisticRegression()))
            gaps[seed, bound] = gap(rate, split.test)
            assert gaps[seed, bound] == pytest.approx(gap(usual, split.test), abs=0.05)
            errors = [np.abs(one - split.test.y).mean() for one in (rate, usual)]
            assert errors[0] == pytest.approx(errors[1], abs=0.03)
    for seed in splits:  # the bounds have their effect
        assert gaps[seed, 0.01] + 0.04 < gaps[seed, 0.2]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_clone_learns_the_same(splits, hidden):
    X, y, _ = splits[1].train
    own = WeightedLearner(hidden=hidden, epochs=3, seed=1)
    first, again = (
        clone(own).fit(X, y, np.linspace(0.5, 1.5, len(y))).predict(splits[1].test.X)
        for _ in range(2)
    )
    assert np.array_equal(first, again)
    assert np.mean(first == splits[1].test.y) > 0.6
