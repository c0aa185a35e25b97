"""Fits made together: the algorithms do not notice, and fail as they would alone."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairgrad_bench.methods.models import expected_warnings
from fairgrad_bench.methods.together import StackedFits, StackedLearner

reductions = pytest.importorskip("fairlearn.reductions")


def reduced(estimator, split, bound):
    """The rates of label 1 of fairlearn's reduction on the test rows, and its fits."""
    lottery = reductions.ExponentiatedGradient(
        estimator, reductions.DemographicParity(difference_bound=bound), eps=0.02, max_iter=4
    )
    X, y, s = split.train
    lottery.fit(X, y, sensitive_features=s)
    rate = lottery._pmf_predict(split.test.X)[:, 1]  # noqa: SLF001 - the only way to the probabilities
    return rate, lottery.n_oracle_calls_


def gap(rate, part):
    """The difference between the selection rates of two groups."""
    return abs(rate[part.s == 0].mean() - rate[part.s == 1].mean())


@pytest.fixture(scope="module")
def splits(make_task):
    return make_task(seeds=(1, 2), rows=800).splits


@pytest.fixture(scope="module")
def cases(splits):
    return [(seed, bound) for seed in splits for bound in (0.01, 0.2)]


def test_the_reduction_is_that_of_fairlearn_one_by_one(splits, cases):
    place = StackedFits(hidden=False, epochs=30)

    def algorithm(seed, bound):
        return lambda: reduced(StackedLearner(place, seed), splits[seed], bound)

    with expected_warnings():
        together = place.run([algorithm(*case) for case in cases])
        for (seed, bound), (rate, n_fits) in zip(cases, together, strict=True):
            split = splits[seed]
            usual, _ = reduced(LogisticRegression(), split, bound)
            assert gap(rate, split.test) == pytest.approx(gap(usual, split.test), abs=0.05)
            errors = [np.abs(own - split.test.y).mean() for own in (rate, usual)]
            assert errors[0] == pytest.approx(errors[1], abs=0.03)
            assert n_fits <= place.fits
    gaps = {
        case: gap(rate, splits[case[0]].test)
        for case, (rate, _) in zip(cases, together, strict=True)
    }
    for seed in splits:  # the bounds have their effect
        assert gaps[seed, 0.01] + 0.04 < gaps[seed, 0.2]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_fit_does_not_depend_on_the_others(splits, hidden):
    def fitted(seeds):
        place = StackedFits(hidden=hidden, epochs=3)
        learners = [StackedLearner(place, seed) for seed in seeds]

        def algorithm(learner):
            X, y, _ = splits[learner.seed].train
            weight = np.linspace(0.5, 1.5, len(y))
            return lambda: clone(learner).fit(X, y, weight).predict(splits[learner.seed].test.X)

        return place.run([algorithm(own) for own in learners]), place.fits

    (first, second), fits = fitted([1, 2])
    (alone,), _ = fitted([1])
    assert fits == 1  # both were one stack
    assert np.mean(first == alone) > 0.995  # sums of another order
    assert np.mean(first == splits[1].test.y) > 0.6
    assert not np.array_equal(first, second)


def test_what_one_algorithm_raises_ends_all(splits):
    place = StackedFits(hidden=False, epochs=2)
    X, y, _ = splits[1].train

    def good():
        for _ in range(3):
            StackedLearner(place, 1).fit(X, y, np.ones(len(y)))

    def bad():
        StackedLearner(place, 1).fit(X, y, np.ones(len(y)))
        raise KeyError("no such row")

    with pytest.raises(KeyError, match="no such row"):
        place.run([good, bad, good])


def test_a_training_that_fails_ends_all(splits):
    place = StackedFits(hidden=False, epochs=2)
    X, y, _ = splits[1].train
    jobs = [lambda: StackedLearner(place, 1).fit(X, y, -np.ones(len(y)))] * 2
    with pytest.raises(ValueError, match="sample_weight"):
        place.run(jobs)
