"""Reports of fitted models: their frontier and their training history, as they come."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad.audit import Audit
from fairgrad.frontier import Frontier
from fairgrad.report import Report, frontier_figures, history_figures
from fairgrad.report.charts import as_history
from fairgrad.sklearn import FairGradClassifier

KINDS = ["level", "multiplier"]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 1200)
    X = rng.normal(size=(1200, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
    y = np.where(X.sum(1) + rng.normal(size=1200) > 0.5, "yes", "no")
    return X, y, sex


@pytest.fixture(scope="module")
def fair(people):
    X, y, sex = people
    model = FairGradClassifier("demographic_parity", random_state=0, max_iter=70)
    return model.fit(X, y, sensitive_features=sex)


def audit_of(model, people):
    X, y, sex = people
    return Audit(y, model.predict(X), sex)


def test_a_fitted_classifier_is_a_history(people, fair):
    report = Report(audit_of(fair, people), history=fair)
    history = as_history(fair)
    assert list(dict.fromkeys(history["quantity"])) == KINDS
    assert history["epoch"].min() == 1
    assert history["epoch"].max() == len(fair.history_["accuracy"])
    last = history[history["epoch"] == history["epoch"].max()].set_index(["quantity", "name"])
    for j, name in enumerate(fair.constraint_names_):
        assert last["value"]["level", name] == fair.history_["levels"][-1, j]
        assert last["value"]["multiplier", name] == fair.history_["multipliers"][-1, j]
    assert "How training went" in report.html()


def test_a_pipeline_is_known_by_its_last_step(people, fair):
    X, y, sex = people
    pipeline = make_pipeline(StandardScaler(), FairGradClassifier("accuracy_parity", max_iter=5))
    pipeline.fit(X, y, fairgradclassifier__sensitive_features=sex)
    assert len(history_figures(pipeline)) == len(history_figures(fair)) == 2


def test_models_without_a_history_have_no_such_section(people):
    X, y, sex = people
    plain = FairGradClassifier(None, max_iter=5).fit(X, y)
    trees = pytest.importorskip("fairgrad.lightgbm").FairGradLGBMClassifier(
        "demographic_parity", n_estimators=20, n_jobs=1, verbose=-1
    )
    trees.fit(X, y, sensitive_features=sex)
    for model in (plain, trees, LogisticRegression().fit(X, y)):
        report = Report(audit_of(model, people), history=model)
        assert report.history is None
        assert "How training went" not in report.html()


def test_what_has_no_history_to_show_is_named(people, fair):
    audit = audit_of(fair, people)
    with pytest.raises(ValueError, match="history: this FairGradClassifier is not fitted yet"):
        Report(audit, history=FairGradClassifier())
    with pytest.raises(TypeError, match="history: expected a fitted model, got dict"):
        Report(audit, history={"level": [1]})


def test_a_fitted_frontier_is_shown_with_the_model_chosen(people):
    X, y, sex = people
    epsilons = [0.0, 0.05, 0.1, 0.4]
    frontier = Frontier(fairness_measure="demographic_parity", epsilons=epsilons, random_state=0)
    frontier.fit(X, y, sensitive_features=sex)
    chosen = frontier.choose(max_unfairness=0.2)
    model = frontier.estimators_[chosen]
    report = Report(audit_of(model, people), frontier=frontier, chosen=chosen, history=model)
    assert report.frontier.chosen == chosen
    assert report.frontier.on == "validation rows"
    pd.testing.assert_series_equal(
        report.frontier.points["unfairness"],
        frontier.points_["validation_unfairness"],
        check_names=False,
    )
    html = report.html()
    assert "Accuracy against unfairness" in html
    assert "(chosen)" in html
    assert "How training went" in html
    assert [figure.id for figure in frontier_figures(frontier)] == ["frontier", "frontier-rates"]
    frontier.fit(X, y, sensitive_features=sex, test=(X[:300], y[:300], sex[:300]))
    assert Report(report.audit, frontier=frontier).frontier.on == "test rows"
