"""The plug-in rule against direct optima where the probabilities are true."""

import numpy as np
import pytest

from fairgrad.groups import Groups
from fairgrad.measures import constraints_of
from fairgrad_bench.methods import methods
from fairgrad_bench.methods.plug_in import PlugInRule

MEASURES = ("accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity")


@pytest.fixture(scope="module")
def world():
    """True probabilities of 4,000 rows, and labels and groups drawn by them."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([0.6, 0.4, 0.5, 1.0], 4000).reshape(-1, 2, 2)
    flat = probabilities.reshape(-1, 4).cumsum(axis=1)
    cell = (rng.random((4000, 1)) > flat).sum(axis=1)
    return probabilities, cell // 2, cell % 2


def levels(constraints, probabilities, predicted):
    """The levels if the probabilities are true, by the definition of the errors."""
    mass = probabilities.reshape(len(predicted), 4)
    wrong = np.stack([predicted != label for label in (0, 0, 1, 1)], axis=1)
    totals, errors = mass.sum(axis=0), (mass * wrong).sum(axis=0)
    if not constraints.by_label:
        totals, errors = totals.reshape(2, 2).sum(axis=0), errors.reshape(2, 2).sum(axis=0)
    return constraints.levels(errors / totals)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_levels_are_within_epsilon_if_the_probabilities_are_true(world, measure, epsilon):
    probabilities, y, s = world
    constraints = constraints_of(measure, Groups.from_data(y, s), y_desirable=(1,))
    predicted = PlugInRule(probabilities, constraints, epsilon)(probabilities)
    # The program's own shares differ from those of the labels by sampling noise, and some rows tie.
    assert np.abs(levels(constraints, probabilities, predicted)).max() < epsilon + 0.01


@pytest.mark.parametrize("measure", MEASURES)
def test_a_large_epsilon_is_the_plain_rule(world, measure):
    probabilities, y, s = world
    constraints = constraints_of(measure, Groups.from_data(y, s), y_desirable=(1,))
    predicted = PlugInRule(probabilities, constraints, 1.0)(probabilities)
    by_label = probabilities.sum(axis=2)
    assert np.array_equal(predicted, by_label[:, 1] > by_label[:, 0])


def test_demographic_parity_with_groups_that_are_known_is_one_rate_for_both():
    """Then the best fair rule takes the same share of the likeliest rows of each group."""
    rng = np.random.default_rng(1)
    n = 2000
    s = np.repeat([0, 1], n // 2)
    positive = np.where(s == 0, rng.beta(2, 3, n), rng.beta(4, 2, n))
    probabilities = np.zeros((n, 2, 2))
    probabilities[np.arange(n), 1, s], probabilities[np.arange(n), 0, s] = positive, 1 - positive
    y = np.zeros(n, dtype=int)  # as many of label 1 in each group as the probabilities say
    for group in (0, 1):
        y[np.flatnonzero(s == group)[: round(positive[s == group].sum())]] = 1
    constraints = constraints_of("demographic_parity", Groups.from_data(y, s))
    predicted = PlugInRule(probabilities, constraints, 0.0)(probabilities)

    def right(chosen):
        return np.where(chosen, positive, 1 - positive).mean()

    def top(share):
        rank = np.concatenate([(-positive[s == g]).argsort().argsort() for g in (0, 1)])
        return rank < share * n / 2

    best = max(right(top(share)) for share in np.linspace(0, 1, 401))
    assert right(predicted == 1) == pytest.approx(best, abs=2e-3)
    assert abs(predicted[s == 0].mean() - predicted[s == 1].mean()) < 5e-3


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_it_is_fairer_than_the_plain_model(measure, make_task, judge, plain):
    task = make_task(measure, seeds=(1, 2), rows=2000, combinations=({"epsilon": 0.0},))
    accuracy, unfairness = judge(task, methods()["plug_in"].train(task), measure)
    assert unfairness < plain[measure][1] / 2
    assert accuracy > 0.6
