"""Rounds are chosen, and fairness is tried, on rows that the trees have not learnt from."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

lightgbm = pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

# ruff: noqa: E402 - the leaves need these libraries
from fairgrad import FairnessWarning
from fairgrad import lightgbm as fair_lightgbm
from fairgrad import xgboost as fair_xgboost
from fairgrad.boosting import choice, estimator
from fairgrad.boosting.choice import JudgedRounds
from fairgrad.evaluate import fairness_levels
from fairgrad.groups import group_rows
from fairgrad.splitting import fold_of_rows

LIBRARIES = {
    "lightgbm": (fair_lightgbm, fair_lightgbm.FairGradLGBMClassifier, {"verbose": -1}),
    "xgboost": (fair_xgboost, fair_xgboost.FairGradXGBClassifier, {"max_depth": 4}),
}


@pytest.fixture(params=LIBRARIES)
def make(request):
    _, kind, quiet = LIBRARIES[request.param]

    def made(measure="demographic_parity", **changed):
        settings = {"n_estimators": 40, "n_jobs": 1, "random_state": 0, **quiet, **changed}
        return kind(measure, **settings)

    made.library = LIBRARIES[request.param][0]
    return made


def n_rounds(model):
    if hasattr(model, "booster_"):
        return model.booster_.current_iteration()
    return model.get_booster().num_boosted_rounds()


def first_rounds(model, n):
    is_light = hasattr(model, "booster_")
    return {"num_iteration": n} if is_light else {"iteration_range": (0, n)}


@pytest.mark.parametrize("aware", [False, True])
def test_levels_are_those_of_models_that_have_not_seen_the_rows(make, hiring, aware):
    X, y, s = hiring.X[:1500], hiring.y[:1500], hiring.sex[:1500]
    model = make(use_sensitive=aware).fit(X, y, sensitive_features=s)
    fold, kept = fold_of_rows(group_rows(y, s).cell(), 3, 0), n_rounds(model)
    predicted = np.zeros_like(y)
    for i in range(3):
        rows, held = fold != i, fold == i
        own = make(use_sensitive=aware, n_folds=0).fit(X[rows], y[rows], sensitive_features=s[rows])
        values = {"sensitive_features": s[held]} if aware else {}
        predicted[held] = own.predict(X[held], **values, **first_rounds(own, kept))
    levels = fairness_levels(y, predicted, s, "demographic_parity").values
    np.testing.assert_allclose(model.levels_cross_fitted_, levels, atol=1e-12)
    assert model.fairness_state_["rounds"] == kept
    whole = make(use_sensitive=aware, n_folds=0).fit(X, y, sensitive_features=s)
    values = {"sensitive_features": s} if aware else {}
    expected = whole.predict_proba(X, **values, **first_rounds(whole, kept))
    np.testing.assert_allclose(model.predict_proba(X, **values), expected, atol=1e-6)


def test_of_equally_fair_rounds_the_most_accurate_is_kept():
    rows = group_rows([0, 1] * 50, [0, 0, 1, 1] * 25)

    def rounds(n, accuracy, violation):
        return JudgedRounds(n, 0, accuracy, violation, np.zeros(2))

    found = [
        rounds(5, 0.501, 0.0),  # one label for nearly everybody
        rounds(10, 0.8, 0.06),
        rounds(20, 0.78, 0.013),
        rounds(40, 0.77, 0.01),
        rounds(80, 0.75, 0.02),
    ]
    assert choice._fairest(found, rows).n_rounds == 20  # noqa: SLF001 - the rule itself


@pytest.fixture
def judged(monkeypatch):
    """Sets the figures of the folds' rows, of the fair and of the plain model."""

    def set_to(fair, plain, learnt=0.9):
        def judge(trial, parts, **changed):
            accuracy, violation = plain if changed else fair
            levels = np.resize([0.02, -0.02], len(trial.constraints.c0))
            return [JudgedRounds(40, parts, accuracy, violation, levels)], learnt

        monkeypatch.setattr(choice._Trial, "judge", judge)  # noqa: SLF001 - what decides

    return set_to


def test_a_plain_model_that_is_no_worse_is_kept_and_said(make, hiring, judged):
    judged(fair=(0.7, 0.02), plain=(0.8, 0.02))
    with pytest.warns(UserWarning, match=r"so the model is a plain one: accuracy 0.800 and"):
        model = make().fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    np.testing.assert_array_equal(model.cell_weights_, 1.0)
    without = make(fairness_rate=0.0, proportional_rate=0.0, n_folds=0)
    without.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    np.testing.assert_array_equal(model.predict_proba(hiring.X), without.predict_proba(hiring.X))
    assert n_rounds(model) == 40
    judged(fair=(0.7, 0.01), plain=(0.8, 0.02))  # fairer: the weights stay
    model = make().fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    assert np.abs(model.cell_weights_ - 1).max() > 0.01


def test_rows_known_by_heart_are_said(make, judged):
    rng = np.random.default_rng(3)
    s, X = rng.choice(["a", "b"], 400), rng.normal(size=(400, 8))
    y = (X.sum(axis=1) + 3 * rng.normal(size=400) > 1).astype(int)
    deep = {"min_child_samples": 2} if make.library is fair_lightgbm else {"max_depth": 9}
    model = make("equalized_odds", n_estimators=80, learning_rate=0.3, **deep)
    judged(fair=(0.7, 0.02), plain=(0.7, 0.05))
    with pytest.warns(UserWarning, match=r"by heart \(accuracy .*the accuracy is 0.7000 and"):
        model.fit(X, y, sensitive_features=s)


def test_weights_missing_values_texts_and_frames(make, hiring):
    rng = np.random.default_rng(0)
    n = 900
    sex = pd.Series(hiring.sex[:n]).where(rng.random(n) > 0.1, None)
    both = pd.DataFrame({"sex": sex, "race": hiring.race[:n]})
    frame = pd.DataFrame(hiring.X[:n], columns=list("abcd"))
    weight = rng.uniform(0.5, 2, n)
    options = {"sample_weight": weight, "sensitive_features": both}
    y = hiring.grade[:n]  # three labels
    model = make("equalized_odds", n_estimators=20, use_sensitive=True).fit(frame, y, **options)
    assert np.isfinite(model.levels_cross_fitted_).all()
    assert len(model.levels_cross_fitted_) == len(model.levels_)


def test_files_keep_the_levels(make, hiring, tmp_path):
    model = make(n_estimators=10).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    path = make.library.save(model, tmp_path / "model.json")
    loaded = make.library.load(path)
    np.testing.assert_array_equal(loaded.levels_cross_fitted_, model.levels_cross_fitted_)
    beside = estimator.fairness_file(path)
    assert "levels_cross_fitted" in json.loads(beside.read_text())


def test_no_folds_where_something_else_decides(make, hiring):
    X, y, s = hiring.X, hiring.y, hiring.sex

    def fit(model, **options):
        return model.fit(X[:2000], y[:2000], sensitive_features=s[:2000], **options)

    watched = {"eval_set": [(X[2000:], y[2000:])], "eval_sensitive_features": [s[2000:]]}
    small = {"n_estimators": 3}
    models = [
        fit(make(**small), **watched),
        fit(make(validation_fraction=0.2, **small)),
        fit(make(out_of_bag=3, **small)),
        fit(make(epsilon=np.inf, **small)),
        fit(make(n_folds=0, **small)),
    ]
    assert all(model.levels_cross_fitted_ is None for model in models)
    few = np.r_[np.zeros(2000), np.ones(3)]  # no fold could have three of them
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FairnessWarning)  # three of 2,003: all get the other label
        model = make(**small).fit(X[:2003], few.astype(int), sensitive_features=s[:2003])
    assert model.levels_cross_fitted_ is None


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (1, "expected 0, or 2 and more folds"),
        ("many", "a whole number or 'auto'"),
        (-2, "whole number of at least 0"),
        (2000, "at least 4000 rows of every label"),
    ],
)
def test_bad_folds(make, hiring, asked, message):
    with pytest.raises(ValueError, match=f"n_folds: .*{message}"):
        make(n_folds=asked).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)


def test_folds_are_refused_where_they_would_have_no_effect(make, hiring):
    watched = {"eval_set": [(hiring.X, hiring.y)]}
    with pytest.raises(ValueError, match="n_folds: not together with eval sets"):
        make(n_folds=3).fit(hiring.X, hiring.y, sensitive_features=hiring.sex, **watched)
