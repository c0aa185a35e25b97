"""What the two boosted classifiers share: rows held out, metrics and arguments."""

import inspect

import numpy as np
import pytest

from fairgrad.boosting.estimator import FAIRNESS_PARAMETERS
from fairgrad.evaluate import fairness_levels

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: E402 - needs lightgbm
from fairgrad.xgboost import FairGradXGBClassifier  # noqa: E402 - needs xgboost

SMALL = {"n_estimators": 20, "n_jobs": 1}
NO_FAIRNESS = {"fairness_rate": 0.0}


def fair(library, *arguments, **settings):
    if library == "lightgbm":
        return FairGradLGBMClassifier(*arguments, **{**SMALL, "verbose": -1, **settings})
    return FairGradXGBClassifier(*arguments, **{**SMALL, **settings})


def plain(library, **settings):
    """As the fair classifiers start: from a score of 0."""
    if library == "lightgbm":
        return lightgbm.LGBMClassifier(**SMALL, verbose=-1, boost_from_average=False, **settings)
    return xgboost.XGBClassifier(**SMALL, base_score=0.5, **settings)


def predict_before_last_round(library, model, X):
    rounds = {"num_iteration": 19} if library == "lightgbm" else {"iteration_range": (0, 19)}
    return model.predict(X, **rounds)


both = pytest.mark.parametrize("library", ["lightgbm", "xgboost"])


@both
@pytest.mark.parametrize("measure", ["four_fifths_rule", "equality_of_opportunity"])
def test_the_unfairness_of_an_eval_set_is_that_of_its_predictions(hiring, library, measure):
    rows, new = hiring.train, ~hiring.train
    metric = {} if library == "lightgbm" else {"eval_metric": "unfairness"}
    model = fair(library, measure, **NO_FAIRNESS, **metric)
    options = {"eval_metric": "unfairness"} if library == "lightgbm" else {}
    model.fit(
        hiring.X[rows],
        hiring.y[rows],
        sensitive_features=hiring.sex[rows],
        eval_set=[(hiring.X[new], hiring.y[new])],
        eval_sensitive_features=[hiring.sex[new]],
        **options,
    )
    results = model.evals_result_ if library == "lightgbm" else model.evals_result()
    (curves,) = results.values()
    levels = fairness_levels(hiring.y[new], model.predict(hiring.X[new]), hiring.sex[new], measure)
    assert curves["unfairness"][-1] == pytest.approx(levels.unfairness, abs=1e-6)


@both
def test_both_fairness_metrics_weigh_the_rows_of_an_eval_set(hiring, library):
    rows, new = hiring.train, ~hiring.train
    weight = np.random.default_rng(0).integers(0, 4, new.sum()).astype(float)
    weight[hiring.sex[new] == "F"] *= 3
    metric = {"eval_metric": ["unfairness", "fair_error"]}
    weighted = library == "lightgbm"
    model = fair(
        library, "demographic_parity", epsilon=0.0, **NO_FAIRNESS, **({} if weighted else metric)
    )
    model.fit(
        hiring.X[rows],
        hiring.y[rows],
        sensitive_features=hiring.sex[rows],
        eval_set=[(hiring.X[new], hiring.y[new])],
        eval_sensitive_features=[hiring.sex[new]],
        **({"eval_sample_weight": [weight], **metric} if weighted else {}),
        **({} if weighted else {"sample_weight_eval_set": [weight]}),
    )
    (curves,) = (model.evals_result_ if weighted else model.evals_result()).values()
    predicted = model.predict(hiring.X[new])
    judged = hiring.y[new], predicted, hiring.sex[new], "demographic_parity"
    levels = fairness_levels(*judged, sample_weight=weight)
    assert abs(levels.unfairness - fairness_levels(*judged).unfairness) > 1e-3
    assert curves["unfairness"][-1] == pytest.approx(levels.unfairness, abs=1e-6)
    expected = np.average(predicted != hiring.y[new], weights=weight) + levels.unfairness
    assert curves["fair_error"][-1] == pytest.approx(expected, abs=1e-6)


@both
def test_an_eval_set_with_an_unknown_label(hiring, library):
    with pytest.raises(ValueError, match="eval_set: y: got '7', which was never seen"):
        fair(library).fit(
            hiring.X,
            hiring.y,
            sensitive_features=hiring.sex,
            eval_set=[(hiring.X[:2], np.array([0, 7]))],
        )


@both
def test_a_single_group_is_refused_by_the_name_of_the_argument(hiring, library):
    with pytest.raises(ValueError, match="^sensitive_features: fairness compares at least two"):
        fair(library).fit(hiring.X, hiring.y, sensitive_features=np.full(3000, "F"))


@both
def test_every_argument_is_explained(library):
    words = inspect.getdoc(type(fair(library)))
    assert "{" not in words.partition("Example:")[0]
    for name in (*FAIRNESS_PARAMETERS, "levels_", "cell_names_"):
        assert f"\n    {name}: " in words
