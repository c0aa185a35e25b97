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
from fairgrad.boosting import BoostingObjective, choice, estimator
from fairgrad.boosting.judged import JudgedRounds
from fairgrad.evaluate import fairness_levels
from fairgrad.groups import group_rows
from fairgrad.splitting import fold_of_rows


def n_rounds(model):
    if hasattr(model, "booster_"):
        return model.booster_.current_iteration()
    return model.get_booster().num_boosted_rounds()


def first_rounds(model, n):
    is_light = hasattr(model, "booster_")
    return {"num_iteration": n} if is_light else {"iteration_range": (0, n)}


def margins(model, X, **options):
    return (
        model.predict(X, raw_score=True, **options)
        if hasattr(model, "booster_")
        else model.predict(X, output_margin=True, **options)
    )


@pytest.mark.parametrize("aware", [False, True])
def test_levels_are_those_of_models_that_have_not_seen_the_rows(make, hiring, aware):
    """Found again fold by fold; an aware model also shifts the scores of each sex."""
    X, y, s = hiring.X[:1500], hiring.y[:1500], hiring.sex[:1500]
    model = make(use_sensitive=aware).fit(X, y, sensitive_features=s)
    kept = model.fairness_state_["rounds"]
    weights = choice.PLAIN if (model.cell_weights_ == 1).all() else {}

    def bare(rows):
        own = make(use_sensitive=aware, n_folds=0, **weights)
        return own.fit(X[rows], y[rows], sensitive_features=s[rows])

    def values(rows):
        return {"sensitive_features": s[rows]} if aware else {}

    everyone = np.arange(len(y))
    whole = bare(everyone)
    before = margins(whole, X, **values(everyone), **first_rounds(whole, kept))
    change = margins(model, X, **values(everyone)) - before
    shift = {sex: np.median(change[s == sex]) for sex in ("F", "M")}
    np.testing.assert_allclose(change, np.where(s == "F", shift["F"], shift["M"]), atol=1e-3)
    assert aware == (n_rounds(model) > kept) == (abs(shift["F"] - shift["M"]) > 0.1)
    fold = fold_of_rows(group_rows(y, s).cell(), 3, 0)
    predicted = np.zeros_like(y)
    for i in range(3):
        own, held = bare(fold != i), np.flatnonzero(fold == i)
        found = margins(own, X[held], **values(held), **first_rounds(own, kept))
        predicted[held] = found + np.where(s[held] == "F", shift["F"], shift["M"]) > 0
    levels = fairness_levels(y, predicted, s, "demographic_parity").values
    np.testing.assert_allclose(model.levels_cross_fitted_, levels, atol=0.002)  # a row or two
    if aware:
        assert np.abs(levels).max() < 0.005  # exact fairness was asked for
        predicted = model.predict(X, sensitive_features=s)
        levels = fairness_levels(y, predicted, s, "demographic_parity").values
        np.testing.assert_allclose(model.levels_, levels, atol=1e-12)


def test_shifts_of_several_attributes_labels_and_unknown_values(make, hiring, tmp_path):
    n = 1500
    race = pd.Series(hiring.race[:n]).where(np.arange(n) % 10 > 0, None)
    both = pd.DataFrame({"sex": hiring.sex[:n], "race": race})
    frame = pd.DataFrame(hiring.X[:n], columns=list("abcd"))
    model = make("equalized_odds", epsilon=0.05, use_sensitive=True, n_estimators=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        model.fit(frame, hiring.grade[:n], sensitive_features=both)
    assert n_rounds(model) > model.fairness_state_["rounds"]
    loaded = make.library.load(make.library.save(model, tmp_path / "model"))
    known, unknown = {"sensitive_features": both}, {"sensitive_features": both.assign(race=None)}
    for values in (known, unknown):
        np.testing.assert_allclose(
            loaded.predict_proba(frame, **values), model.predict_proba(frame, **values), atol=1e-6
        )
    assert (model.predict(frame, **known) != model.predict(frame, **unknown)).any()


@pytest.mark.parametrize(("n", "worth"), [(80, False), (20_000, True)])
def test_fairness_within_chance_is_not_bought_with_accuracy(n, worth):
    """The same shares of rows, of few and of many: only of many they say that it is fairer."""
    y, s = np.tile([0, 1, 0, 1], n // 4), np.tile([0, 0, 1, 1], n // 4)
    objective = BoostingObjective(y, s, "demographic_parity")
    trial = choice._Trial(None, None, objective, np.zeros(n))  # noqa: SLF001 - the rule itself
    plain, fair = y.copy(), y.copy()
    plain[: n // 10] = np.where(s[: n // 10] == 0, 1, y[: n // 10])
    fair[: n // 8] = np.where(s[: n // 8] == 0, 1, y[: n // 8])
    fair[-n // 10 :] = np.where(s[-n // 10 :] == 1, 1, y[-n // 10 :])
    one, other = (trial._judged(10, 0, 2.0 * own - 1) for own in (fair, plain))  # noqa: SLF001
    assert one.accuracy < other.accuracy
    assert one.violation < other.violation
    assert trial.is_worth_it(one, other, 0) == worth
    assert trial.is_worth_it(one, one._replace(accuracy=0.5), 0)
    assert not trial.is_worth_it(one, one, 0)


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
        monkeypatch.setattr(choice._Trial, "shares", lambda *_: None)  # noqa: SLF001 - of no trees

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
