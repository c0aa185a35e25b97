"""Reduction and threshold post-processing, which wrap fairlearn."""

import numpy as np
import pytest

from fairgrad_bench.methods import methods
from fairgrad_bench.methods.models import drawn

pytest.importorskip("fairlearn")


def _rates(part, positive_rate):
    """P(h=1 | y, s) expected, (label, group)."""
    return np.array(
        [[positive_rate[(part.y == y) & (part.s == s)].mean() for s in (0, 1)] for y in (0, 1)]
    )


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_reduction_is_fairer_than_the_plain_model(measure, make_task, judge, plain):
    task = make_task(measure, seeds=(1, 2), rows=2000)
    accuracy, unfairness = judge(task, methods()["reduction"].train(task), measure)
    assert unfairness < plain[measure][1] / 2
    assert accuracy > 0.6


def test_threshold_equalises_the_rates_of_the_training_rows(make_task):
    task = make_task("equalized_odds", rows=2000)
    split = task.splits[1]
    on_train = make_task("equalized_odds", rows=2000)
    on_train.splits[1] = type(split)(split.train, split.train, split.train)
    (candidate,) = methods()["threshold"].train(on_train)
    rates = _rates(split.train, candidate.test_positive_rate)
    assert np.abs(rates[:, 0] - rates[:, 1]).max() < 1e-3
    assert rates[1, 0] > rates[0, 0] + 0.2


@pytest.mark.parametrize("measure", ["equality_of_opportunity", "demographic_parity"])
def test_threshold_is_fairer_than_the_plain_model(measure, make_task, judge, plain):
    task = make_task(measure, seeds=(1, 2), rows=2000)
    accuracy, unfairness = judge(task, methods()["threshold"].train(task), measure)
    assert unfairness < plain[measure][1] / 2
    assert accuracy > 0.6


def test_threshold_says_that_it_needs_the_sensitive_value():
    needing = {name for name, method in methods().items() if method.needs_s_to_predict}
    assert {"threshold", "decision_aware", "fairgrad_aware"} <= needing
    assert not {"fairgrad", "reduction", "decision"} & needing


def test_drawn_labels_have_the_expected_rates():
    rates = np.repeat([0.2, 0.5, 0.9], 20_000)
    found = drawn(rates, seed=3).reshape(3, -1).mean(axis=1)
    assert found == pytest.approx([0.2, 0.5, 0.9], abs=0.015)
