"""Records are what the predictions say."""

import numpy as np
import pytest

from fairgrad import fairness_levels
from fairgrad.training import Member, TrainingPlan, train
from fairgrad.training.stack import network_outputs


@pytest.mark.parametrize(
    "measure", ["accuracy_parity", "equalized_odds", "demographic_parity", "four_fifths_rule"]
)
def test_records_are_the_levels_of_the_predictions(data, table, measure):
    X, y, s = data
    rows, judged = np.arange(200), np.arange(200, 300)
    plan = TrainingPlan(epochs=3, fairness_measure=measure)
    training = train(table, [Member(learning_rate=0.3)], plan, rows=rows, validation=judged)
    score = network_outputs((4, 1), training.state(0), X[judged])[:, 0]
    expected = fairness_levels(y[judged], (score > 0).astype(int), s[judged], measure)
    np.testing.assert_allclose(training.history.levels[-1, 0], expected.values, atol=1e-9)
    assert training.history.unfairness[-1, 0] == pytest.approx(expected.unfairness)
    assert training.history.accuracy[-1, 0] == np.mean((score > 0) == y[judged])
    loss = np.logaddexp(0, np.where(y[judged] == 1, -score, score)).mean()
    assert training.history.loss[-1, 0] == pytest.approx(loss, rel=1e-5)
