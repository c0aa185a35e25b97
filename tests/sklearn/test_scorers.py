"""Fairness scorers by definition, and inside scikit-learn's searches."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairgrad import fairness_levels
from fairgrad.measures import MEASURES
from fairgrad.sklearn import FairGradClassifier, make_fairness_scorer

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
QUICK = {"fairness_rate": 0.05, "max_iter": 6, "random_state": 0}


@pytest.fixture
def plain(hiring):
    return LogisticRegression(max_iter=1000).fit(hiring.X, hiring.y)


@pytest.mark.parametrize("measure", sorted(set(MEASURES) - {"four_fifths_rule"}))
def test_score_is_the_unfairness(hiring, plain, measure):
    weight = np.random.default_rng(0).random(len(hiring.y))
    s = pd.DataFrame({"sex": hiring.sex, "race": hiring.race})
    levels = fairness_levels(
        hiring.y,
        plain.predict(hiring.X),
        s,
        measure,
        y_desirable=["refused"],
        sample_weight=weight,
    )
    given = {"sensitive_features": s, "sample_weight": weight}
    mean = make_fairness_scorer(measure)(plain, hiring.X, hiring.y, **given)
    worst = make_fairness_scorer(measure, summary="max")(plain, hiring.X, hiring.y, **given)
    assert mean == pytest.approx(-levels.unfairness)
    assert worst == pytest.approx(-np.nanmax(np.abs(levels.values)))


def test_a_bound_puts_the_fair_first_and_ranks_the_others(hiring, plain):
    arguments = {"sensitive_features": hiring.sex}
    unfairness = -make_fairness_scorer("demographic_parity")(plain, hiring.X, hiring.y, **arguments)
    loose = make_fairness_scorer("demographic_parity", max_unfairness=unfairness + 1e-9)
    strict = make_fairness_scorer("demographic_parity", max_unfairness=unfairness / 2)
    constant = DummyClassifier().fit(hiring.X, hiring.y)
    assert loose(plain, hiring.X, hiring.y, **arguments) == plain.score(hiring.X, hiring.y)
    assert strict(plain, hiring.X, hiring.y, **arguments) == pytest.approx(-unfairness / 2)
    fair = strict(constant, hiring.X, hiring.y, **arguments)
    assert fair == constant.score(hiring.X, hiring.y)


def test_one_sided_measures_count_what_is_broken(hiring, plain):
    scorer = make_fairness_scorer("four_fifths_rule", y_desirable=["hired"])
    predicted = plain.predict(hiring.X) == "hired"
    rate = {sex: predicted[hiring.sex == sex].mean() for sex in "FM"}
    expected = [max(0.0, 0.8 * rate[b] - rate[a]) for a, b in ("FM", "MF")]
    score = scorer(plain, hiring.X, hiring.y, sensitive_features=hiring.sex)
    assert score == pytest.approx(-np.mean(expected))


def test_grid_search_over_a_pipeline(hiring):
    frame = hiring.X.assign(race=hiring.race)
    weight = np.where(hiring.race == "a", 2.0, 1.0)
    folds = StratifiedKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairGradClassifier("demographic_parity", **QUICK)
        model.set_fit_request(sensitive_features=True, sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        columns = make_column_transformer(
            (OneHotEncoder(), ["race"]), (scaler, list(hiring.X.columns))
        )
        pipeline = Pipeline([("columns", columns), ("model", model)])
        search = GridSearchCV(
            pipeline,
            {"model__epsilon": [0.0, 1.0]},
            scoring={
                "accuracy": get_scorer("accuracy").set_score_request(sample_weight=True),
                "fairness": make_fairness_scorer("demographic_parity"),
                "both": make_fairness_scorer("demographic_parity", max_unfairness=0.08),
            },
            refit="both",
            cv=folds,
        )
        search.fit(frame, hiring.y, sensitive_features=hiring.sex, sample_weight=weight)
    assert search.best_params_ == {"model__epsilon": 0.0}
    results = search.cv_results_
    assert results["mean_test_fairness"][0] > results["mean_test_fairness"][1]
    # The first fold by hand: rows, sensitive values and weights reach fit and scorer.
    train, test = next(iter(folds.split(frame, hiring.y)))
    with sklearn.config_context(enable_metadata_routing=True):
        own = sklearn.clone(pipeline).set_params(model__epsilon=0.0)
        own.fit(
            frame.iloc[train],
            hiring.y.iloc[train],
            sensitive_features=hiring.sex.iloc[train],
            sample_weight=weight[train],
        )
    levels = fairness_levels(
        hiring.y.iloc[test],
        own.predict(frame.iloc[test]),
        hiring.sex.iloc[test],
        "demographic_parity",
        sample_weight=weight[test],
    )
    assert results["split0_test_fairness"][0] == pytest.approx(-levels.unfairness)


def test_cross_validate(hiring):
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairGradClassifier("demographic_parity", **QUICK)
        model.set_fit_request(sensitive_features=True, sample_weight=False)
        found = cross_validate(
            model,
            hiring.X,
            hiring.y,
            scoring=make_fairness_scorer("demographic_parity"),
            params={"sensitive_features": hiring.sex},
            cv=3,
        )
    assert (found["test_score"] < 0).all()


def test_metadata_under_another_name(hiring):
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairGradClassifier("demographic_parity", **QUICK)
        model.set_fit_request(sensitive_features="sex", sample_weight=False)
        scorer = make_fairness_scorer("accuracy_parity").set_score_request(
            sensitive_features="race"
        )
        found = cross_validate(
            model,
            hiring.X,
            hiring.y,
            scoring=scorer,
            params={"sex": hiring.sex, "race": hiring.race},
            cv=[(np.arange(750), np.arange(750, 1500))],
            return_estimator=True,
        )
    predicted = found["estimator"][0].predict(hiring.X[750:])
    levels = fairness_levels(hiring.y[750:], predicted, hiring.race[750:], "accuracy_parity")
    assert found["test_score"][0] == pytest.approx(-levels.unfairness)


def test_forgotten_sensitive_features_are_an_error(hiring, plain):
    scorer = make_fairness_scorer("demographic_parity")
    with pytest.raises(ValueError, match="metadata routing"):
        scorer(plain, hiring.X, hiring.y)
    search = GridSearchCV(plain, {"C": [1.0]}, scoring=scorer, error_score="raise", cv=2)
    with pytest.raises(ValueError, match="metadata routing"):
        search.fit(hiring.X, hiring.y)


@pytest.mark.parametrize("bad", [{"summary": "median"}, {"max_unfairness": -1}])
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        make_fairness_scorer(**bad)
