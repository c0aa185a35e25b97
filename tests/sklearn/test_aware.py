"""Aware models: the sensitive value as a feature, in fit and to predict."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairgrad.aware import SMALLEST_GROUP, SensitiveEncoder, hide_some
from fairgrad.evaluate import fairness_levels
from fairgrad.groups import Groups, group_rows
from fairgrad.persistence import load, save
from fairgrad.sklearn import FairGradClassifier, fit_variants, make_fairness_scorer
from fairgrad.usefulness import FairnessWarning

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
QUICK = {"epsilon": 0.0, "max_iter": 40, "random_state": 0, "fairness_rate": 0.05}


def aware(measure="demographic_parity", **changed):
    return FairGradClassifier(measure, use_sensitive=True, **{**QUICK, **changed})


@pytest.fixture(scope="module")
def table():
    """Groups differ in their base rate only, so that a blind model can do little about it."""
    rng = np.random.default_rng(1)
    s = rng.choice(["a", "b", "c"], 3000, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(3000, 3))
    shift = pd.Series(s).map({"a": 1.0, "b": 0.0, "c": -1.0}).to_numpy()
    y = (X.sum(axis=1) + shift + rng.normal(size=3000) > 0).astype(int)
    return X, y, s


# The encoder


@given(
    st.lists(st.sampled_from(["x", "y", "z", None]), min_size=4, max_size=30),
    st.lists(st.sampled_from(["x", "y", "z", None]), min_size=1, max_size=10),
)
def test_columns_are_those_of_a_one_hot_encoder(fitted, asked):
    known = sorted({value for value in fitted if value is not None})
    if not known:
        return
    asked = [value for value in asked if value in {*known, None}] or [known[0]]
    groups = Groups.from_data(np.zeros(len(fitted)), np.array(fitted, dtype=object))
    found = SensitiveEncoder.of(groups).encode(np.array(asked, dtype=object), len(asked))
    values = [*known, *(["?"] if None in fitted else [])]
    theirs = OneHotEncoder(categories=[values], sparse_output=False, handle_unknown="ignore")
    expected = theirs.fit([[v] for v in values]).transform([[v or "?"] for v in asked])
    if None not in fitted:
        shares = [fitted.count(value) / len(fitted) for value in values]
        expected[[value is None for value in asked]] = shares
    np.testing.assert_allclose(found, expected)


def test_an_unknown_part_leaves_the_combinations_that_are_possible():
    sex = np.repeat(["F", "F", "M", "M"], [30, 50, 40, 80])
    race = np.repeat(["b", "w", "b", "w"], [30, 50, 40, 80])
    encoder = SensitiveEncoder.of(Groups.from_data(np.zeros(200), {"sex": sex, "race": race}))
    assert encoder.names[4:] == (
        "sex=F, race=b",
        "sex=F, race=w",
        "sex=M, race=b",
        "sex=M, race=w",
    )
    found = encoder.encode({"sex": ["M", "F", None], "race": ["b", None, None]}, 3)
    np.testing.assert_allclose(found[0], [0, 1, 1, 0, 0, 0, 1, 0])
    np.testing.assert_allclose(found[1], [1, 0, 0.35, 0.65, 30 / 80, 50 / 80, 0, 0])
    np.testing.assert_allclose(found[2], [0.4, 0.6, 0.35, 0.65, 0.15, 0.25, 0.2, 0.4])


def test_small_combinations_have_no_column_of_their_own():
    n = SMALLEST_GROUP
    s = {"a": np.repeat([0, 0, 1], [n, n - 1, n]), "b": np.repeat([0, 1, 1], [n, n - 1, n])}
    encoder = SensitiveEncoder.of(Groups.from_data(np.zeros(3 * n - 1), s))
    assert encoder.names == ("a=0", "a=1", "b=0", "b=1", "a=0, b=0", "a=1, b=1")
    found = encoder.encode({"a": [0, 1], "b": [1, 0]}, 2)  # small; never together
    np.testing.assert_array_equal(found[:, :4], [[1, 0, 0, 1], [0, 1, 1, 0]])
    assert (found[0, 4:] == 0).all()


def test_attributes_are_found_by_their_names():
    s = pd.DataFrame({"sex": ["F", "M"] * 30, "age": [0, 1, 2] * 20})
    encoder = SensitiveEncoder.of(Groups.from_data(np.zeros(60), s))
    np.testing.assert_array_equal(encoder.encode(s, 60), encoder.encode(s[["age", "sex"]], 60))
    with pytest.raises(ValueError, match=r"expected the attributes \['sex', 'age'\]"):
        encoder.encode(s["sex"], 60)


def test_hiding_hides_a_share_and_nothing_else():
    s = {"sex": np.array(["F", "M"] * 2000), "code": np.arange(4000) % 3}
    rows = group_rows(np.zeros(4000), s)
    hidden = hide_some(rows)
    is_hidden = np.array([value is None for value in hidden["sex"]])
    assert 0.03 < is_hidden.mean() < 0.07
    assert (hidden["sex"][~is_hidden] == s["sex"][~is_hidden]).all()
    assert 0.03 < (hidden["code"] == -1).mean() < 0.07
    unknown = group_rows(np.zeros(4000), np.where(np.arange(4000) < 400, None, s["sex"]))
    assert sum(value is None for value in hide_some(unknown)["s"]) == 400


# The classifier


def test_the_plain_model_is_that_of_a_one_hot_encoder(table):
    X, y, s = table
    ours = aware(None, max_iter=300).fit(X, y, sensitive_features=s)
    columns = OneHotEncoder(sparse_output=False).fit_transform(s[:, None])
    theirs = LogisticRegression(C=1e6).fit(np.hstack([X, columns]), y)
    p = theirs.predict_proba(np.hstack([X, columns]))
    np.testing.assert_allclose(ours.predict_proba(X, sensitive_features=s), p, atol=0.01)
    assert ours.levels_unknown_ is None
    assert ours.sensitive_encoder_.names == ("s=a", "s=b", "s=c")


def test_awareness_buys_accuracy_at_the_same_fairness(table):
    X, y, s = table
    unfair, accuracy = {}, {}
    for use in (False, True):
        model = FairGradClassifier("equalized_odds", use_sensitive=use, **QUICK)
        model.fit(X, y, sensitive_features=s)
        given_s = s if use else None
        predicted = model.predict(X, sensitive_features=given_s)
        unfair[use] = fairness_levels(y, predicted, s, "equalized_odds").unfairness
        accuracy[use] = model.score(X, y, sensitive_features=given_s)
    plain = LogisticRegression().fit(X, y).predict(X)
    assert unfair[True] < 0.02 < fairness_levels(y, plain, s, "equalized_odds").unfairness
    assert unfair[True] <= unfair[False] + 0.005
    assert accuracy[True] > accuracy[False] - 0.01


def test_unknown_is_the_mean_of_the_groups_in_a_linear_model(table):
    X, y, s = table
    model = aware().fit(X, y, sensitive_features=s)
    margins = [model.decision_function(X, sensitive_features=np.full(3000, v)) for v in "abc"]
    shares = [np.mean(s == v) for v in "abc"]
    unknown = model.decision_function(X, sensitive_features=[None] * 3000)
    np.testing.assert_allclose(unknown, np.average(margins, axis=0, weights=shares), atol=1e-8)
    predicted = model.classes_[(unknown > 0).astype(int)]
    levels = fairness_levels(y, predicted, s, "demographic_parity")
    np.testing.assert_allclose(model.levels_unknown_, levels.values)


def test_levels_without_values_are_of_the_validation_rows_if_there_are_any(table):
    X, y, s = table
    model = aware().fit(X[:2000], y[:2000], sensitive_features=s[:2000],
                        validation=(X[2000:], y[2000:], s[2000:]))  # fmt: skip
    predicted = model.predict(X[2000:], sensitive_features=[None] * 1000)
    levels = fairness_levels(y[2000:], predicted, s[2000:], "demographic_parity")
    np.testing.assert_allclose(model.levels_unknown_, levels.values)
    predicted = model.predict(X[2000:], sensitive_features=s[2000:])
    levels = fairness_levels(y[2000:], predicted, s[2000:], "demographic_parity")
    np.testing.assert_allclose(model.levels_, levels.values, atol=1e-6)


def test_unknown_values_in_fit_are_a_category(table):
    X, y, s = table
    some = np.where(np.arange(3000) % 3 == 0, None, s)
    model = aware().fit(X, y, sensitive_features=some)
    assert model.sensitive_encoder_.names == ("s=a", "s=b", "s=c", "s=?")
    assert model.coef_.shape == (1, 7)
    assert model.predict(X, sensitive_features=some).shape == (3000,)


def test_a_value_never_seen_is_unknown_with_a_warning(table):
    X, y, s = table
    model = aware().fit(X, y, sensitive_features=s)
    with pytest.warns(UserWarning, match=r"s has values that were never seen, such as 'd'"):
        strange = model.predict_proba(X[:2], sensitive_features=["d", "a"])
    expected = model.predict_proba(X[:2], sensitive_features=[None, "a"])
    np.testing.assert_array_equal(strange, expected)


def test_without_values_all_are_unknown_with_a_warning(table):
    X, y, s = table
    model = aware().fit(X, y, sensitive_features=s)
    with pytest.warns(UserWarning, match=r"sensitive_features: not passed"):
        found = model.predict_proba(X)
    np.testing.assert_array_equal(found, model.predict_proba(X, sensitive_features=[None] * 3000))


def test_bad_use_is_refused(table):
    X, y, s = table
    blind = FairGradClassifier(**QUICK).fit(X, y, sensitive_features=s)
    for name in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match="does not use them"):
            getattr(blind, name)(X, sensitive_features=s)
    with pytest.raises(ValueError, match="use_sensitive is set"):
        aware(None).fit(X, y)
    model = aware().fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match=r"one value per row of X \(3000\), got 2"):
        model.predict(X, sensitive_features=s[:2])


def test_several_attributes_codes_and_sparse_features(hiring):
    s = pd.DataFrame({"sex": (hiring.sex == "M").astype(int), "race": hiring.race})
    settings = {"standardize": False, "max_iter": 3}  # rounding, of another kind in each, grows
    dense = aware(**settings).fit(hiring.X.to_numpy(), hiring.y, sensitive_features=s)
    X = sparse.csr_matrix(hiring.X.to_numpy())
    thin = aware(**settings).fit(X, hiring.y, sensitive_features=s)
    assert len(dense.sensitive_encoder_.names) == 2 + 3 + 6
    np.testing.assert_allclose(
        thin.predict_proba(X, sensitive_features=s),
        dense.predict_proba(hiring.X.to_numpy(), sensitive_features=s),
        atol=1e-6,
    )
    partly = s.assign(race=None)
    assert thin.predict(X, sensitive_features=partly).shape == (1500,)


@parametrize_with_checks([FairGradClassifier(fairness_measure=None, use_sensitive=False)])
def test_estimator_checks_of_the_metadata(estimator, check):
    if "metadata" in str(check) or "signature" in str(check):
        check(estimator)


def test_copies_pickles_and_files_predict_the_same(table, tmp_path):
    X, y, s = table
    model = aware(hidden_layer_sizes=(4,), max_iter=3).fit(X, y, sensitive_features=s)
    expected = model.predict_proba(X, sensitive_features=s)
    same = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),  # noqa: S301 - our own
        load(save(model, tmp_path / "model.skops")),
    ]
    for one in same:
        np.testing.assert_array_equal(one.predict_proba(X, sensitive_features=s), expected)
        np.testing.assert_array_equal(one.levels_unknown_, model.levels_unknown_)
    assert clone(model).use_sensitive


def test_variants_are_aware_too(table):
    X, y, s = table
    models = fit_variants([aware(epsilon=e) for e in (0.0, 0.2)], X, y, sensitive_features=s)
    alone = aware(epsilon=0.2).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(
        models[1].predict_proba(X, sensitive_features=s),
        alone.predict_proba(X, sensitive_features=s),
        atol=1e-6,
    )


def test_routing_asks_for_the_values_exactly_if_they_are_used(table):
    X, y, s = table
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FairnessWarning)
        for use in (False, True):
            model = FairGradClassifier("demographic_parity", use_sensitive=use, **QUICK)
            model.set_fit_request(sensitive_features=True)
            line = make_pipeline(StandardScaler(), model)
            scores = cross_val_score(line, X, y, cv=2, params={"sensitive_features": s})
            assert (scores > 0.5).all()
            scores = cross_val_score(
                line, X, y, cv=2, params={"sensitive_features": s},
                scoring=make_fairness_scorer("demographic_parity", max_unfairness=1.0),
            )  # fmt: skip
            assert (scores > 0.5).all()
        line.fit(X, y, sensitive_features=s)
        found = line.predict_proba(X, sensitive_features=s)
        np.testing.assert_array_equal(found.argmax(axis=1), line.predict(X, sensitive_features=s))
