"""Blind and aware models beside each other."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad.evaluate import fairness_levels
from fairgrad.frontier import Frontier, non_dominated
from fairgrad.report import Report
from fairgrad.sklearn import FairGradClassifier


@pytest.fixture(scope="module")
def both(unequal):
    frontier = Frontier(
        FairGradClassifier("equalized_odds", max_iter=15), epsilons=4, use_sensitive="both",
        random_state=0,
    )  # fmt: skip
    return frontier.fit(unequal.X, unequal.y, sensitive_features=unequal.sex)


def test_both_kinds_are_trained_for_every_epsilon(both, unequal):
    points = both.points_
    assert points["use_sensitive"].tolist() == [False] * 4 + [True] * 4
    assert points["epsilon"].tolist()[:4] == points["epsilon"].tolist()[4:]
    for model, use in zip(both.estimators_, points["use_sensitive"], strict=True):
        assert model.use_sensitive == use
    alone = Frontier(
        FairGradClassifier("equalized_odds", max_iter=15, use_sensitive=True), epsilons=4,
        random_state=0,
    ).fit(unequal.X, unequal.y, sensitive_features=unequal.sex)  # fmt: skip
    columns = ["use_sensitive", "validation_accuracy", "validation_unfairness"]
    np.testing.assert_allclose(
        points[columns][4:].astype(float), alone.points_[columns].astype(float)
    )


def test_figures_of_aware_models_are_those_with_the_values(unequal):
    rows = (unequal.X[2000:], unequal.y[2000:], unequal.sex[2000:])
    frontier = Frontier(epsilons=2, use_sensitive=True, random_state=0)
    frontier.fit(unequal.X[:2000], unequal.y[:2000], sensitive_features=unequal.sex[:2000],
                 validation=rows)  # fmt: skip
    predicted = frontier.estimators_[0].predict(rows[0], sensitive_features=rows[2])
    levels = fairness_levels(rows[1], predicted, rows[2], "equalized_odds")
    assert frontier.points_["validation_unfairness"][0] == pytest.approx(levels.unfairness)


def test_each_kind_has_its_own_frontier(both):
    for _, own in both.points_.groupby("use_sensitive"):
        best = non_dominated(own["validation_accuracy"], own["validation_unfairness"])
        np.testing.assert_array_equal(own["on_frontier"], best)


def test_a_blind_model_is_taken_unless_an_aware_one_is_asked_for(both):
    assert not both.select(max_unfairness=0.5).use_sensitive
    aware = both.select(max_unfairness=0.5, use_sensitive=True)
    assert aware.use_sensitive
    assert both.choose(max_unfairness=0.5, use_sensitive=True) >= 4


def test_chart_and_report_name_both(both):
    data = both.report_data(chosen=1)
    assert set(data.points["series"]) == {"blind", "aware: needs the sensitive value to predict"}
    assert "the price of not using it" in data.note
    report = Report(both.audits_["validation"][0], frontier=data)
    charts = [str(figure.standalone().to_dict()) for figure in report.figures]
    assert any("aware: needs the sensitive value" in chart for chart in charts)


def test_pipelines(unequal):
    line = make_pipeline(StandardScaler(), FairGradClassifier("equalized_odds", max_iter=5))
    frontier = Frontier(line, epsilons=2, use_sensitive="both")
    frontier.fit(unequal.X, unequal.y, sensitive_features=unequal.sex)
    assert len(frontier.estimators_) == 4
    assert frontier.estimators_[3][-1].use_sensitive
    series = frontier.report_data().points["series"]
    assert len(set(series)) == 2


def test_boosted_trees(unequal):
    lightgbm = pytest.importorskip("fairgrad.lightgbm")
    trees = lightgbm.FairGradLGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    frontier = Frontier(trees, epsilons=2, use_sensitive="both", random_state=0)
    frontier.fit(unequal.X, unequal.y, sensitive_features=unequal.sex)
    assert [one.use_sensitive for one in frontier.estimators_] == [False, False, True, True]


class WithEpsilon(LogisticRegression):
    """Has an epsilon, and nothing else of ours."""

    def __init__(self, epsilon=0.0):
        super().__init__()
        self.epsilon = epsilon


def test_bad_use(unequal):
    with pytest.raises(ValueError, match=r"use_sensitive: expected True, False, 'both' or None"):
        Frontier(use_sensitive="all").fit(unequal.X, unequal.y, sensitive_features=unequal.sex)
    other = Frontier(WithEpsilon(), "equalized_odds", [1.0], use_sensitive="both")
    with pytest.raises(ValueError, match="WithEpsilon has no such parameter"):
        other.fit(unequal.X, unequal.y, sensitive_features=unequal.sex)
