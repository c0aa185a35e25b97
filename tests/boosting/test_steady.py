"""Trees that do not swing, do not learn unfairness by heart, and may know the sensitive value."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

lightgbm = pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

# ruff: noqa: E402 - the leaves need these libraries
from fairgrad import FairnessWarning
from fairgrad import lightgbm as fair_lightgbm
from fairgrad.boosting import BoostingObjective, Rounds
from fairgrad.boosting.objective import OutOfBag
from fairgrad.boosting.rounds import MOST_WEIGHT
from fairgrad.evaluate import fairness_levels
from fairgrad.groups import group_rows
from fairgrad.measures import constraints_of

SETTINGS = {"n_folds": 0}
"""Of the models that `make` makes here."""


@pytest.fixture(scope="module")
def small_groups():
    """Five groups, four of them small, of other base rates; the features say little."""
    rng = np.random.default_rng(0)
    s = rng.choice(list("abcde"), 4000, p=[0.8, 0.08, 0.06, 0.04, 0.02])
    X = rng.normal(size=(4000, 2))
    rate = pd.Series(s).map({"a": 0.15, "b": -1.5, "c": -0.8, "d": -0.6, "e": -0.3}).to_numpy()
    y = (0.4 * X[:, 0] + rate + rng.logistic(size=4000) > 0).astype(int)
    return X, y, s


@pytest.fixture(scope="module")
def by_heart():
    """So few and so noisy rows that trees learn all of them."""
    rng = np.random.default_rng(3)
    s = rng.choice(["a", "b"], 5000)
    X = rng.normal(size=(5000, 8))
    X[:, 0] += 3 * (s == "a")
    y = (X.sum(axis=1) + 3 * rng.normal(size=5000) > 1.5).astype(int)
    return X[:1000], y[:1000], s[:1000], X[1000:], y[1000:], s[1000:]


# Swings


@pytest.mark.parametrize("measure", ["demographic_parity", "equalized_odds"])
def test_trees_that_know_small_groups_do_not_swing(make, small_groups, measure):
    X, y, s = small_groups
    model = make(measure, use_sensitive=True, n_estimators=60).fit(X, y, sensitive_features=s)
    predicted = model.predict(X, sensitive_features=s)
    assert fairness_levels(y, predicted, s, measure).unfairness < 0.1
    assert (predicted == y).mean() > max(y.mean(), 1 - y.mean()) - 0.02
    plain = make(None, use_sensitive=True, n_estimators=60).fit(X, y, sensitive_features=s)
    levels = fairness_levels(y, plain.predict(X, sensitive_features=s), s, measure)
    assert levels.unfairness > 0.2


def test_a_level_that_swings_is_calmed_and_recovers():
    y, s = np.tile([0, 1], 40), np.repeat([0, 1], 40)
    rows = group_rows(y, s)
    constraints = constraints_of("accuracy_parity", rows.groups)
    rates = {"fairness_rate": 0.1, "proportional_rate": 0.5}
    rounds = Rounds(rows.groups, constraints, **rates)
    raw = Rounds(rows.groups, constraints, steady=False, **rates)
    swings = [(s == turn % 2) & (y == 0) for turn in range(12)]
    first = rounds.step(rows.cell(by_label=False), swings[0])
    np.testing.assert_allclose(first, raw.step(rows.cell(by_label=False), swings[0]))
    for wrong in swings[1:]:
        steady, wild = (one.step(rows.cell(by_label=False), wrong) for one in (rounds, raw))
    assert np.abs(steady - 1).max() < 0.1 * np.abs(wild - 1).max()
    for _ in range(50):  # one side for long: the rates are the full ones again
        rounds.step(rows.cell(by_label=False), swings[0])
    before = rounds.net_multipliers
    rounds.step(rows.cell(by_label=False), swings[0])
    np.testing.assert_allclose(rounds.net_multipliers - before, 0.1 * rounds.levels)


def test_no_multiplier_changes_a_weight_by_more_than_the_limit():
    y, s = np.tile([0, 1], 500), np.repeat([0, 1], [20, 980])
    objective = BoostingObjective(y, s, "equalized_odds", proportional_rate=0.0, fairness_rate=5.0)
    scores = np.where(s == 0, -1.0, 1.0)  # an answer that never changes
    for _ in range(200):
        objective.gradients(scores)
    change = np.abs(objective.rounds.weights - 1).max()  # two constraints speak of every cell
    assert MOST_WEIGHT < change <= 2 * MOST_WEIGHT


# Rows learnt by heart


def test_out_of_bag_scores_are_those_of_trees_that_left_the_row_out(small_groups):
    X, y, s = (part[:600] for part in small_groups)
    objective = fair_lightgbm.LightGBMObjective(y, s, "demographic_parity", out_of_bag=3)
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    params = {"objective": objective, "verbose": -1, "num_threads": 1, "num_leaves": 4}
    booster = lightgbm.train(params, data, num_boost_round=10)
    expected = np.zeros(600)
    for tree in range(9):  # the last one is not known to the objective
        added = booster.predict(X, start_iteration=tree, num_iteration=1, raw_score=True)
        left_out = objective.bag.part == tree % 3
        expected[left_out] += 3 * added[left_out]
    np.testing.assert_allclose(objective.bag._summed, expected, atol=1e-5)  # noqa: SLF001 - the state
    label = np.where(expected > 0, 1, 0)
    levels = fairness_levels(y, label, s, "demographic_parity").values
    np.testing.assert_allclose(objective.rounds.levels, levels, atol=1e-7)


def test_trees_learn_nothing_of_the_part_they_leave_out():
    y, s = np.tile([0, 1], 50), np.repeat([0, 1], 50)
    objective = BoostingObjective(y, s, "accuracy_parity", out_of_bag=4)
    for turn in range(8):
        gradient, hessian = objective.gradients(np.zeros(100))
        left_out = objective.bag.part == turn % 4
        assert 20 < left_out.sum() < 30
        assert (gradient[left_out] == 0).all()
        assert (hessian[left_out] == 0).all()
        assert (gradient[~left_out] != 0).all()


def test_what_trees_know_by_heart_is_measured_on_rows_they_left_out(make, by_heart):
    X, y, s, X_new, y_new, s_new = by_heart
    deep = {"min_child_samples": 5} if make.library is fair_lightgbm else {"max_depth": 8}
    deep["n_estimators"] = 120
    plain = make(None, **deep).fit(X, y)
    with pytest.warns(UserWarning, match=r"by heart \(accuracy .*out_of_bag=5"):
        blind = make("equalized_odds", out_of_bag=0, **deep).fit(X, y, sensitive_features=s)
    assert np.abs(blind.levels_).max() < 0.02
    model = make("equalized_odds", **deep).fit(X, y, sensitive_features=s)  # out_of_bag is "auto"
    unfair = {
        name: fairness_levels(y_new, one.predict(X_new), s_new, "equalized_odds").unfairness
        for name, one in {"plain": plain, "by heart": blind, "auto": model}.items()
    }
    assert unfair["by heart"] > 0.8 * unfair["plain"]
    assert unfair["auto"] < 0.5 * unfair["plain"]


def test_an_easy_problem_is_left_as_it_is(make):
    rng = np.random.default_rng(0)
    s = rng.integers(2, size=1000)
    X = rng.normal(size=(1000, 2))
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FairnessWarning)  # so few trees are not exactly fair
        model = make().fit(X, y, sensitive_features=s)
        same = make(validation_fraction=0.0).fit(X, y, sensitive_features=s)
    assert model.score(X, y) > 0.99
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def test_the_fairest_round_that_is_accurate_enough_is_kept():
    y, s = np.tile([0, 1], 40), np.repeat([0, 1], 40)
    rows = group_rows(y, s)
    rounds = Rounds(rows.groups, constraints_of("accuracy_parity", rows.groups))
    for t in range(30):  # from unfair to fair, and from round 20 on of no use
        wrong = (s == 0) & (np.arange(80) < 20 - t) if t < 20 else np.ones(80, dtype=bool)
        rounds.step(rows.cell(by_label=False), wrong)
    kept = rounds.best()
    assert kept == 17  # five rounds around it are before the 20th
    weights = rounds.records[kept].weights
    rounds.go_back(kept)
    assert rounds.n_rounds == 17
    np.testing.assert_array_equal(rounds.weights, weights)
    assert rounds.records[kept].unfairness == pytest.approx(np.abs(rounds.levels).mean())


def test_trees_beyond_the_round_kept_are_gone(make, by_heart, monkeypatch):
    X, y, s, *_ = by_heart
    monkeypatch.setattr(Rounds, "best", lambda self: 7)  # noqa: ARG005 - a method
    model = make(out_of_bag=5).fit(X, y, sensitive_features=s)
    assert model.fairness_state_["rounds"] == 7
    trees = getattr(model, "n_estimators_", None) or model.get_booster().num_boosted_rounds()
    assert trees == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"out_of_bag": 1}, "expected 0, or 2 and more parts"),
        ({"out_of_bag": -1}, "whole number of at least 0"),
        ({"out_of_bag": "often"}, "a whole number or 'auto'"),
        ({"out_of_bag": 3, "validation_fraction": 0.2}, "not together with validation_fraction"),
    ],
)
def test_bad_parts(make, small_groups, arguments, message):
    X, y, s = small_groups
    with pytest.raises(ValueError, match=f"out_of_bag: .*{message}"):
        make(**arguments).fit(X, y, sensitive_features=s)


def test_boosting_that_changes_earlier_trees_has_no_out_of_bag_scores(small_groups):
    X, y, s = small_groups
    model = fair_lightgbm.FairGradLGBMClassifier(boosting_type="dart", out_of_bag=5, verbose=-1)
    with pytest.raises(ValueError, match="expected 0 with 'dart'"):
        model.fit(X, y, sensitive_features=s)
    assert OutOfBag.of(np.zeros(3, dtype=int), 0, 0) is None


# Aware trees


def test_unknown_values_are_learnt_and_never_fail(make, small_groups):
    X, y, s = small_groups
    model = make(use_sensitive=True).fit(X, y, sensitive_features=s)
    assert model.sensitive_encoder_.names[-1] == "s=?"
    nobody = np.full(4000, None)
    unknown = model.predict(X, sensitive_features=nobody)
    levels = fairness_levels(y, unknown, s, "demographic_parity")
    np.testing.assert_allclose(model.levels_unknown_, levels.values)
    with pytest.warns(UserWarning, match="none are given"):
        np.testing.assert_array_equal(model.predict(X), unknown)
    strange = s.copy()
    strange[:5] = "z"
    with pytest.warns(UserWarning, match="never seen, such as 'z'"):
        found = model.predict_proba(X, sensitive_features=strange)
    np.testing.assert_array_equal(found[:5], model.predict_proba(X, sensitive_features=nobody)[:5])


def test_blind_trees_refuse_values(make, small_groups):
    X, y, s = small_groups
    model = make(n_estimators=2).fit(X, y, sensitive_features=s)
    assert model.sensitive_encoder_ is None
    assert model.levels_unknown_ is None
    with pytest.raises(ValueError, match="does not look at them"):
        model.predict(X, sensitive_features=s)
    with pytest.raises(ValueError, match="as use_sensitive is set"):
        make(None, use_sensitive=True).fit(X, y)


def test_frames_sparse_features_and_several_attributes(make, small_groups):
    X, y, s = small_groups
    both = pd.DataFrame({"race [b]": s, "sex": np.arange(4000) % 2})
    frame = pd.DataFrame(X, columns=["one", "two"])
    settings = {"use_sensitive": True, "n_estimators": 5}
    fitted = make(**settings).fit(frame, y, sensitive_features=both)
    expected = fitted.predict_proba(frame, sensitive_features=both)
    array = make(**settings).fit(X, y, sensitive_features=both)
    found = array.predict_proba(X, sensitive_features=both[["sex", "race [b]"]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    thin = make(**settings).fit(sparse.csr_matrix(X), y, sensitive_features=both)
    assert thin.predict(sparse.csr_matrix(X), sensitive_features=both).shape == (4000,)


def test_files_pickles_and_clones_keep_the_values(make, small_groups, tmp_path):
    X, y, s = small_groups
    model = make(use_sensitive=True, n_estimators=5).fit(X, y, sensitive_features=s)
    expected = model.predict_proba(X, sensitive_features=s)
    path = make.library.save(model, tmp_path / "model.json")
    for same in (make.library.load(path), pickle.loads(pickle.dumps(model))):  # noqa: S301 - ours
        np.testing.assert_allclose(same.predict_proba(X, sensitive_features=s), expected)
        np.testing.assert_allclose(same.levels_unknown_, model.levels_unknown_)
        assert same.use_sensitive
    assert clone(model).get_params() == model.get_params()
    goes_on = {"init_model": path} if make.library is fair_lightgbm else {"xgb_model": path}
    more = make(use_sensitive=True, n_estimators=2)
    more.fit(X, y, sensitive_features=s, **{k: str(v) for k, v in goes_on.items()})
    assert more.sensitive_encoder_.names == model.sensitive_encoder_.names
    assert more.fairness_state_["rounds"] == 7


def test_eval_sets_get_the_values_too(make, small_groups):
    X, y, s = small_groups
    model = make(use_sensitive=True, n_estimators=10)
    own = {"eval_metric": ["unfairness"]} if make.library is fair_lightgbm else {}
    if not own:
        model.set_params(eval_metric=["unfairness"])
    model.fit(
        X[:3000], y[:3000], sensitive_features=s[:3000],
        eval_set=[(X[3000:], y[3000:])], eval_sensitive_features=[s[3000:]], **own,
    )  # fmt: skip
    results = model.evals_result_ if own else model.evals_result()
    recorded = next(iter(results.values()))["unfairness"][-1]
    predicted = model.predict(X[3000:], sensitive_features=s[3000:])
    levels = fairness_levels(y[3000:], predicted, s[3000:], "demographic_parity")
    assert recorded == pytest.approx(levels.unfairness, abs=1e-6)


def test_routing_hands_the_values_to_aware_trees(make, small_groups):
    X, y, s = small_groups
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FairnessWarning)  # so few trees are not exactly fair
        for use in (True, False):
            model = make(use_sensitive=use, n_estimators=5).set_fit_request(sensitive_features=True)
            scores = cross_val_score(model, X, y, cv=2, params={"sensitive_features": s})
            assert (scores > 0.5).all()
