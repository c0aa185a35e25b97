"""Records are what the predictions say; selection rules do what they are defined to do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad import fairness_levels
from fairgrad.training import Member, TrainingPlan, train
from fairgrad.training.evaluation import (
    as_rule,
    fairest,
    fairest_of_accurate,
    most_accurate,
    most_accurate_within,
)

candidates = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12, unique_by=lambda c: c[1]
).map(lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True)))


@given(candidates, st.floats(0, 0.5))
def test_papers_rule(pair, slack):
    accuracy, unfairness = pair
    best = fairest_of_accurate(accuracy, unfairness, slack)
    accurate = [i for i in range(len(accuracy)) if accuracy[i] >= accuracy.max() - slack]
    assert best == min(accurate, key=lambda i: unfairness[i])


@given(candidates)
def test_extremes(pair):
    accuracy, unfairness = pair
    assert accuracy[most_accurate(accuracy, unfairness)] == accuracy.max()
    assert unfairness[fairest(accuracy, unfairness)] == unfairness.min()


@given(candidates, st.floats(0, 1))
def test_most_accurate_of_the_fair_ones(pair, bound):
    accuracy, unfairness = pair
    fair = [i for i in range(len(accuracy)) if unfairness[i] <= bound]
    if not fair:
        with pytest.raises(ValueError, match="bound: no candidate"):
            most_accurate_within(accuracy, unfairness, bound)
        return
    best = most_accurate_within(accuracy, unfairness, bound)
    assert best in fair
    assert accuracy[best] == max(accuracy[i] for i in fair)


def test_unknown_rule_names_the_known_ones():
    with pytest.raises(ValueError, match="rule: expected one of .*fairest.*got 'best'"):
        as_rule("best")


def test_candidates_are_the_kept_epochs_of_the_chosen_members(table):
    members = [
        Member(seed=seed, fairness_measure="equalized_odds", learning_rate=0.3) for seed in (0, 1)
    ]
    training = train(table, members, TrainingPlan(epochs=7, keep=3))
    assert list(training.kept) == [4, 5, 6]
    accuracy = training.history.accuracy[4:, 1]
    choice = training.select(most_accurate, members=[1])
    assert choice.member == 1
    assert choice.epoch == 4 + int(accuracy.argmax())
    assert choice.accuracy == accuracy.max()


@pytest.mark.parametrize(
    "measure", ["accuracy_parity", "equalized_odds", "demographic_parity", "four_fifths_rule"]
)
def test_records_are_the_levels_of_the_predictions(data, table, measure):
    X, y, s = data
    rows, judged = np.arange(200), np.arange(200, 300)
    member = Member(rows=rows, validation=judged, fairness_measure=measure, learning_rate=0.3)
    training = train(table, [member], TrainingPlan(epochs=3))
    score = training.scores(training.select("last"), X[judged])[:, 0]
    expected = fairness_levels(y[judged], (score > 0).astype(int), s[judged], measure)
    np.testing.assert_allclose(training.history.levels[-1, 0], expected.values, atol=1e-9)
    assert training.history.unfairness[-1, 0] == pytest.approx(expected.unfairness)
    assert training.history.accuracy[-1, 0] == np.mean((score > 0) == y[judged])
    loss = np.logaddexp(0, np.where(y[judged] == 1, -score, score)).mean()
    assert training.history.loss[-1, 0] == pytest.approx(loss, rel=1e-5)
