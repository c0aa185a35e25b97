"""The frontier of the library's own models."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairgrad import FairnessWarning, On, fairness_levels
from fairgrad.audit import Audit
from fairgrad.frontier import Frontier, non_dominated
from fairgrad.report import FrontierData, Report
from fairgrad.sklearn import FairGradClassifier

EPSILONS = [0.0, 0.02, 0.05, 0.2, np.inf]
QUICK = FairGradClassifier(max_iter=8, batch_size=128)


@pytest.fixture(scope="module")
def frontier(hiring, new_people):
    return Frontier(QUICK, "demographic_parity", EPSILONS, random_state=0).fit(
        hiring.X,
        hiring.y,
        sensitive_features=hiring.sex,
        test=(new_people.X, new_people.y, new_people.sex),
    )


def test_each_point_is_the_model_that_its_parameters_give(hiring, new_people):
    own = Frontier(QUICK, "demographic_parity", EPSILONS, random_state=0)
    held_out = (new_people.X, new_people.y, new_people.sex)
    own.fit(hiring.X, hiring.y, sensitive_features=hiring.sex, validation=held_out)
    assert len(own.points_) == 5
    for model in own.estimators_:
        alone = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # eight epochs end where they end
            alone.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
        np.testing.assert_allclose(
            model.decision_function(new_people.X), alone.decision_function(new_people.X), atol=1e-4
        )
        np.testing.assert_allclose(model.multipliers_, alone.multipliers_, atol=1e-4)
        assert model.cell_names_ == alone.cell_names_
        assert set(vars(model)) == set(vars(alone))


def test_infinite_epsilon_is_the_plain_model(frontier, new_people):
    plain = frontier.estimators_[-1]
    np.testing.assert_array_equal(plain.multipliers_, 0.0)
    np.testing.assert_array_equal(plain.cell_weights_, 1.0)
    assert frontier.points_["test_accuracy"].iloc[-1] == plain.score(new_people.X, new_people.y)


def test_figures_by_definition(frontier, new_people):
    for model, (_, point) in zip(frontier.estimators_, frontier.points_.iterrows(), strict=True):
        predicted = model.predict(new_people.X)
        levels = fairness_levels(new_people.y, predicted, new_people.sex, "demographic_parity")
        assert point["test_accuracy"] == pytest.approx(np.mean(predicted == new_people.y))
        assert point["test_unfairness"] == pytest.approx(levels.unfairness)


def test_intervals_are_the_audits(frontier, new_people):
    model, point = frontier.estimators_[0], frontier.points_.iloc[0]
    audit = Audit(
        new_people.y,
        model.predict(new_people.X),
        new_people.sex,
        measures="demographic_parity",
        y_desirable="refused",
    )
    low, high = audit.findings[0].unfairness_interval
    assert point["test_unfairness_low"] == pytest.approx(float(low))
    assert point["test_unfairness_high"] == pytest.approx(float(high))
    overall = audit.to_frame("rates").query("group == 'overall' and rate == 'accuracy'").iloc[0]
    assert point["test_accuracy_low"] == pytest.approx(overall["low"])
    assert point["test_accuracy_high"] == pytest.approx(overall["high"])


@pytest.mark.parametrize(
    "measure",
    ["equalized_odds", [On("sex", "demographic_parity"), "accuracy_parity"], "four_fifths_rule"],
)
def test_figures_of_all_models_at_once_are_those_of_each_audit(hiring, measure):
    s = pd.DataFrame({"sex": hiring.sex, "race": hiring.race.where(hiring.X["skill"] < 1.5)})
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(s))
    own = Frontier(QUICK, measure, [0.0, 0.1, np.inf], random_state=0)
    own.fit(hiring.X, hiring.y, sensitive_features=s, sample_weight=weight)
    audits = own.audits_["validation"]
    assert len(audits) == len(audits[:]) == 3
    assert audits[-1] is audits[2]
    for audit, (_, point) in zip(audits, own.points_.iterrows(), strict=True):
        n = [finding.n_defined for finding in audit.findings]
        unfair = [(f.unfairness, *f.unfairness_interval) for f in audit.findings]
        names = [f"validation_unfairness{end}" for end in ("", "_low", "_high")]
        np.testing.assert_allclose(point[names].astype(float), np.average(unfair, 0, n))
        assert point["validation_accuracy"] == pytest.approx(audit.accuracy)


def test_slack_buys_accuracy(frontier):
    points = frontier.points_
    assert points["validation_unfairness"].iloc[0] < 0.05 < points["validation_unfairness"].iloc[-1]
    assert points["validation_accuracy"].iloc[-1] > points["validation_accuracy"].iloc[0]


def test_select_gives_a_fitted_classifier(frontier, new_people):
    bound = float(frontier.points_["validation_unfairness"].median())
    position = frontier.choose(max_unfairness=bound)
    model = frontier.select(max_unfairness=bound)
    point = frontier.points_.iloc[position]
    assert isinstance(model, FairGradClassifier)
    assert model.epsilon == point["epsilon"]
    assert model.score(new_people.X, new_people.y) == pytest.approx(point["test_accuracy"])
    assert point["validation_unfairness"] <= bound
    with pytest.raises(ValueError, match="the best is epsilon"):
        frontier.select(min_accuracy=1.0)


def test_held_out_rows_are_not_trained_on(hiring):
    own = Frontier(QUICK, "demographic_parity", [0.0, 0.1], random_state=0)
    own.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    rows = int(own.audits_["validation"][0].table.size.sum())
    assert rows == pytest.approx(0.2 * len(hiring.y), abs=4)
    assert own.estimators_[0].groups_.mass.sum() == len(hiring.y) - rows


def test_the_same_share_of_every_cell_is_held_out(hiring):
    rare = hiring.race.where(np.arange(3000) % 60 != 0, "c")
    own = Frontier(QUICK, "demographic_parity", [0.0, 0.1], random_state=0)
    own.fit(hiring.X, hiring.y, sensitive_features=rare)
    rows = pd.crosstab(hiring.y, rare)
    np.testing.assert_array_equal(own.estimators_[0].groups_.mass, rows - np.rint(rows / 5))


@pytest.mark.parametrize("bad", [0, 1, 1.5, -0.1])
def test_bad_validation_fraction(hiring, bad):
    own = Frontier(QUICK, validation_fraction=bad)
    with pytest.raises(ValueError, match="validation_fraction: expected a finite number above 0"):
        own.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)


def test_same_seed_same_frontier(hiring, frontier, new_people):
    again = clone(frontier).fit(
        hiring.X,
        hiring.y,
        sensitive_features=hiring.sex,
        test=(new_people.X, new_people.y, new_people.sex),
    )
    pd.testing.assert_frame_equal(again.points_, frontier.points_)


def test_plot_and_report(frontier):
    chosen = frontier.choose(max_unfairness=0.1)
    chart = frontier.plot(on="test", chosen=chosen)
    text = chart.to_json()
    for accuracy in frontier.points_["test_accuracy"]:
        assert f"{100 * accuracy:.1f} %" in text
    shown = frontier.report_data(on="test").points
    own = non_dominated(shown["accuracy"], shown["unfairness"])
    np.testing.assert_array_equal(shown["on_frontier"], own)
    np.testing.assert_array_equal(shown["accuracy_low"].notna(), own)
    data = frontier.report_data(chosen=chosen)
    assert isinstance(data, FrontierData)
    assert set(data.rates["group"]) == {"F", "M"}
    assert "demographic parity" in data.measure
    page = Report(frontier.audits_["test"][chosen], frontier=data).html()
    assert "Accuracy against unfairness" in page
    with pytest.raises(ValueError, match="on: expected one of"):
        frontier.plot(on="train")


def test_pipeline_fits_its_preprocessing_once(hiring, new_people):
    frames = [part.X.assign(race=part.race) for part in (hiring, new_people)]
    steps = make_column_transformer(
        (OneHotEncoder(), ["race"]), (StandardScaler(), ["skill", "years", "grade", "noise"])
    )
    own = Frontier(make_pipeline(steps, QUICK), "demographic_parity", [0.0, 0.1], random_state=0)
    own.fit(frames[0], hiring.y, sensitive_features=hiring.sex)
    model = own.select(max_unfairness=1.0)
    assert isinstance(model, Pipeline)
    assert model.score(frames[1], new_people.y) > 0.6
    assert own.estimators_[0][0] is own.estimators_[1][0]
    reordered = frames[1][frames[1].columns[::-1]]
    np.testing.assert_array_equal(model.predict(frames[1]), model.predict(reordered))


def test_several_attributes_unknown_values_and_weights(hiring):
    s = pd.DataFrame({"sex": hiring.sex.where(hiring.sex.index % 50 > 0), "race": hiring.race})
    weight = np.where(hiring.race == "a", 2.0, 1.0)
    measure = [On("sex", "demographic_parity"), On("race", "equalized_odds")]
    own = Frontier(QUICK, measure, [0.0, 0.1], random_state=0)
    held_out = (hiring.X, hiring.y, s, weight)
    own.fit(hiring.X, hiring.y, sensitive_features=s, sample_weight=weight, validation=held_out)
    for model, (_, point) in zip(own.estimators_, own.points_.iterrows(), strict=True):
        predicted = model.predict(hiring.X)
        levels = fairness_levels(hiring.y, predicted, s, measure, sample_weight=weight)
        assert point["validation_unfairness"] == pytest.approx(levels.unfairness)
        right = np.average(predicted == hiring.y, weights=weight)
        assert point["validation_accuracy"] == pytest.approx(right)


def test_one_sided_measures_count_what_is_broken(unequal):
    estimator = clone(QUICK).set_params(y_desirable="hired")
    own = Frontier(estimator, "four_fifths_rule", [0.0, np.inf], random_state=0)
    everyone = (unequal.X, unequal.y, unequal.sex)
    own.fit(unequal.X, unequal.y, sensitive_features=unequal.sex, validation=everyone)
    assert own.desirable_ == own.estimators_[-1].desirable_ == ("hired",)
    predicted = own.estimators_[-1].predict(unequal.X) == "hired"
    rates = [predicted[unequal.sex == sex].mean() for sex in "FM"]
    broken = [max(0.0, 0.8 * a - b) for a, b in (rates, rates[::-1])]
    assert own.points_["validation_unfairness"].iloc[-1] == pytest.approx(np.mean(broken))
    assert np.mean(broken) > 0.01
    assert own.points_["validation_unfairness"].iloc[0] < np.mean(broken)


def test_three_labels_and_hidden_layers(hiring):
    y = pd.Series(np.where(hiring.race == "a", hiring.y, "interview"))
    estimator = clone(QUICK).set_params(hidden_layer_sizes=(8,))
    own = Frontier(estimator, "equalized_odds", [0.0, np.inf], random_state=0)
    own.fit(hiring.X, y, sensitive_features=hiring.sex)
    assert own.estimators_[0].predict_proba(hiring.X).shape == (len(y), 3)
    rates = own.report_data().rates
    assert "true_positive_rate of interview" in set(rates["rate"])


def test_an_epoch_is_chosen_if_the_estimator_says_so(hiring):
    estimator = clone(QUICK).set_params(validation_fraction=0.2)
    own = Frontier(estimator, "demographic_parity", [0.0, np.inf], random_state=0)
    own.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    history = own.estimators_[1].history_["accuracy"]
    levels = own.estimators_[1].history_["levels"]
    best = len(history) - 5 + int(np.argmax(history[-5:]))
    np.testing.assert_array_equal(own.estimators_[1].levels_, levels[best])


def test_bad_arguments(hiring):
    X, y, sex = hiring.X, hiring.y, hiring.sex
    with pytest.raises(ValueError, match="sensitive_features: required"):
        Frontier(QUICK).fit(X, y)
    with pytest.raises(ValueError, match="fairness_measure: the estimator has none"):
        Frontier(FairGradClassifier(None)).fit(X, y, sensitive_features=sex)
    with pytest.raises(ValueError, match="test: expected"):
        Frontier(QUICK).fit(X, y, sensitive_features=sex, test=(X, y))
    with pytest.raises(ValueError, match="parameter 'epsilon'"):
        Frontier(LogisticRegression()).fit(X, y, sensitive_features=sex)
    with pytest.raises(
        ValueError, match="estimator: expected a classifier .* got 'equalized_odds'"
    ):
        Frontier("equalized_odds").fit(X, y, sensitive_features=sex)
    with pytest.raises(ValueError, match="fairness_rate"):
        Frontier(FairGradClassifier(fairness_rate="fast")).fit(X, y, sensitive_features=sex)
    with pytest.raises(ValueError, match="sensitive_features"):
        Frontier(QUICK).fit(X, y, sensitive_features=sex[:10])


def test_charts_are_loaded_where_one_is_drawn():
    program = "import sys, fairgrad.frontier; sys.exit('altair' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_one_label_for_everybody_is_not_chosen_if_there_is_another():
    """At the smallest epsilon only a constant is possible; the next is a model."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 2000)
    X = np.column_stack([rng.normal(size=2000) + 2 * s, rng.normal(size=2000)])
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=2000) > 1.8).astype(int)

    class Either(ClassifierMixin, BaseEstimator):
        """A constant if epsilon is 0, else a threshold."""

        def __init__(self, epsilon=0.0):
            self.epsilon = epsilon

        def fit(self, X, y, sensitive_features=None):  # noqa: ARG002 - as others are called
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return (X[:, 0] > 1.0).astype(int) if self.epsilon else np.ones(len(X), dtype=int)

    frontier = Frontier(Either(), "demographic_parity", [0.0, 0.1], random_state=0)
    frontier.fit(X, y, sensitive_features=s)
    assert frontier.useful_.tolist() == [False, True]
    points = frontier.points_
    assert points["validation_unfairness"][0] == 0
    assert frontier.choose(min_accuracy=0.4) == 1  # the constant is fairer, and of no use
    with pytest.warns(FairnessWarning, match="no better than a constant"):
        assert frontier.choose(max_unfairness=0.01) == 0  # nothing else is so fair


def test_small_groups_are_not_judged():
    rng = np.random.default_rng(0)
    s = rng.choice(["a", "b"], 1500).astype(object)
    s[:20] = "few"
    X = rng.normal(size=(1500, 3)) + np.outer(s == "a", [1.0, 0.0, 0.0])
    y = (X.sum(1) + rng.normal(size=1500) > 0.5).astype(int)
    y[:20] = 0  # of whom the model knows nothing
    frontier = Frontier(clone(QUICK), "demographic_parity", [0.0, 0.2], random_state=0)
    with pytest.warns(UserWarning, match="training rows are in groups too small"):
        frontier.fit(X, y, sensitive_features=s)
    audit = frontier.audits_["validation"][0]
    assert frontier.points_["validation_unfairness"][0] == pytest.approx(audit.asked[0].unfairness)
    rows, names = audit.rows, np.array(audit.rows.groups.names)
    everyone = fairness_levels(rows.label, audit.predicted, names[rows.group], "demographic_parity")
    large = ["few" not in name for name in everyone.names]
    assert audit.asked[0].unfairness == pytest.approx(everyone.gaps[large].mean())
