"""Trees that do not swing, do not memorize unfairness, and may use the sensitive value."""

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
from fairgrad import FairnessWarning, persistence
from fairgrad import lightgbm as fair_lightgbm
from fairgrad.evaluate import fairness_levels

SETTINGS = {"epsilon": 0.0}
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


def test_memorized_rows_are_a_warning_that_names_the_remedy(make, by_heart):
    X, y, s, *_ = by_heart
    deep = {"n_estimators": 200, "num_leaves": 200, "min_child_samples": 1, "max_depth": 12}
    if "xgb" in make.library.__name__:
        deep = {"n_estimators": 200, "max_depth": 12, "learning_rate": 0.3}
    with pytest.warns(FairnessWarning, match=r"memorized.*FairDecisionClassifier"):
        make("equalized_odds", **deep).fit(X, y, sensitive_features=s)


def test_memorized_rows_of_many_labels_are_a_warning(make):
    """Fairness keeps the accuracy of such trees well below 1, although they know every row."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(900, 20)), rng.integers(3, size=900)
    X[:, 0] += s
    y = (X[:, :4] + [1, 0, 0, 0] + rng.gumbel(size=(900, 4))).argmax(axis=1)
    large = {"n_estimators": 100, "num_leaves": 31, "max_depth": 6}
    if make.library is not fair_lightgbm:
        large = {"n_estimators": 100, "max_depth": 6, "learning_rate": 0.3}
    remedy = r"memorized.*FairDecisionClassifier\((LGBM|XGB)Classifier\(\.\.\.\)"
    with pytest.warns(FairnessWarning, match=remedy):
        model = make(**large).fit(X, y, sensitive_features=s)
    assert model.score(X, y) < 0.95
    small = {"num_leaves": 5, "min_child_samples": 60, "learning_rate": 0.03}
    if make.library is not fair_lightgbm:
        small = {"max_depth": 2, "learning_rate": 0.03}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(**small).fit(X, y, sensitive_features=s)
    assert not any("memorized" in str(one.message) for one in caught)


# Aware trees


def test_unknown_values_are_learnt_and_never_fail(make, small_groups):
    X, y, s = small_groups
    model = make(use_sensitive=True).fit(X, y, sensitive_features=s)
    assert model.sensitive_encoder_.names[-1] == "s=?"
    nobody = np.full(4000, None)
    unknown = model.predict(X, sensitive_features=nobody)
    with pytest.warns(UserWarning, match="not passed"):
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
    with pytest.raises(ValueError, match="does not use them"):
        model.predict(X, sensitive_features=s)
    with pytest.raises(ValueError, match="sensitive_features: required"):
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
    loaded = persistence.load(persistence.save(model, tmp_path / "model.skops"))
    for same in (loaded, pickle.loads(pickle.dumps(model))):  # noqa: S301 - ours
        np.testing.assert_allclose(same.predict_proba(X, sensitive_features=s), expected)
        assert same.use_sensitive
    assert clone(model).get_params() == model.get_params()
    goes_on = {"init_model": model} if make.library is fair_lightgbm else {"xgb_model": model}
    more = make(use_sensitive=True, n_estimators=2)
    more.fit(X, y, sensitive_features=s, **goes_on)
    assert more.sensitive_encoder_.names == model.sensitive_encoder_.names
    assert more.fairness_state_["rounds"] == 7


def test_eval_sets_get_the_values_too(make, small_groups):
    X, y, s = small_groups
    is_lightgbm = make.library is fair_lightgbm
    model = make(use_sensitive=True, n_estimators=10)
    own = {"eval_metric": "error"} if is_lightgbm else {}
    if not own:
        model.set_params(eval_metric="error")
    new = X[3000:], y[3000:], s[3000:]
    model.fit(X[:3000], y[:3000], sensitive_features=s[:3000], eval_set=[new], **own)
    results = model.evals_result_ if own else model.evals_result()
    recorded = next(iter(results.values()))["error"][-1]
    predicted = model.predict(X[3000:], sensitive_features=s[3000:])
    assert recorded == pytest.approx(np.mean(predicted != y[3000:]), abs=1e-6)
    with pytest.raises(ValueError, match=r"eval_set: expected \(X, y\)"):
        make().fit(X, y, sensitive_features=s, eval_set=[new])


def test_routing_hands_the_values_to_aware_trees(make, small_groups):
    X, y, s = small_groups
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FairnessWarning)  # so few trees are not exactly fair
        for use in (True, False):
            model = make(use_sensitive=use, n_estimators=5).set_fit_request(sensitive_features=True)
            scores = cross_val_score(model, X, y, cv=2, params={"sensitive_features": s})
            assert (scores > 0.5).all()
