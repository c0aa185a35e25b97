"""Boosted trees as a model class of the benchmark, against LightGBM itself."""

from dataclasses import replace

import numpy as np
import pytest

from fairgrad_bench.methods import methods
from fairgrad_bench.methods.models import TREES
from fairgrad_bench.methods.weighted_erm import group_weights

lightgbm = pytest.importorskip("lightgbm")

SIZE = {"num_leaves": 7, "min_child_samples": 50}


@pytest.mark.parametrize("name", ["unconstrained", "weighted_erm"])
def test_plain_methods_are_lightgbms_own(name, make_task):
    task = make_task(model="lightgbm", seeds=(1, 2), combinations=(SIZE,))
    for candidate in methods()[name].train(task):
        train, validation, test = task.splits[candidate.seed]
        weight = group_weights(train.s) if name == "weighted_erm" else None
        model = lightgbm.LGBMClassifier(random_state=candidate.seed, **TREES, **SIZE)
        model.fit(train.X, train.y, weight)
        np.testing.assert_array_equal(candidate.test, model.predict(test.X))
        np.testing.assert_array_equal(candidate.validation, model.predict(validation.X))
        assert candidate.settings == SIZE


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("fairgrad", "equalized_odds"),
        ("fairgrad", "demographic_parity"),
        ("fairgrad_aware", "demographic_parity"),
    ],
)
def test_fair_trees_are_fairer_than_plain_ones(name, measure, make_task, judge):
    task = make_task(measure, model="lightgbm", seeds=(1, 2), rows=3000, combinations=(SIZE,))
    accuracy, unfairness = judge(task, methods()[name].train(task), measure)
    plain = methods()["unconstrained"].train(replace(task, measure=None))
    assert unfairness < judge(task, plain, measure)[1] / 2
    assert accuracy > 0.6


def test_trees_under_fairlearns_methods(make_task, judge):
    pytest.importorskip("fairlearn")
    few = ({"bound": 0.01, "rounds": 4},)
    task = make_task("demographic_parity", model="lightgbm", rows=1000, combinations=few)
    plain = methods()["unconstrained"].train(replace(task, measure=None, combinations=None))
    _, unfair = judge(task, plain, "demographic_parity")
    for name in ("reduction", "threshold"):
        accuracy, unfairness = judge(task, methods()[name].train(task), "demographic_parity")
        assert unfairness < unfair / 2
        assert accuracy > 0.6


def test_a_grid_of_sizes():
    method = methods()["fairgrad"]
    assert len(method.settings("lightgbm", "paper")) == 6
    assert method.settings("lightgbm", "quick")[0] in method.settings("lightgbm", "paper")
    assert {*method.settings("linear", "paper")[0]} == {"batch_size", "weight_decay"}
