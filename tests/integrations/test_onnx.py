"""Exported graphs give, in another runtime, what the model gives."""

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler

import fairgrad.sklearn
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.onnx import to_onnx
from fairgrad.sklearn import FairGradClassifier
from fairgrad.xgboost import FairGradXGBClassifier

LABELS = {
    "numbers": np.array([0, 1]),
    "words": np.array(["accepted", "refused é"], dtype=object),
    "truth": np.array([False, True]),
    "three": np.array(["a", "b", "c"], dtype=object),
}
NETWORKS = {
    "linear": {},
    "not scaled": {"standardize": False},
    "perceptron": {"hidden_layer_sizes": (8, 4)},
    "hidden": {"hidden_layer_sizes": (8,), "dropout": 0.2},
    "plain": {"fairness_measure": None},
}


@pytest.fixture(scope="module")
def rows():
    """Features of different sizes, a score, and groups."""
    rng = np.random.default_rng(0)
    s = rng.choice(["F", "M"], 500)
    X = rng.normal(size=(500, 4)) * [1, 100, 0.01, 1] + [0, 1000, 0, 5]
    score = X[:, 0] + (X[:, 1] - 1000) / 100 + (s == "M") + rng.normal(size=500)
    return X, np.digitize(score, [0.5, 2.0]), s


def labels_of(score, kind):
    classes = LABELS[kind]
    return classes[np.minimum(score, len(classes) - 1)]


def run(model, X):
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    return session.run(["label", "probabilities"], {"X": X})


def check_equal(model, X, atol):
    label, probabilities = run(model, X)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=atol)
    assert expected.std(axis=0).min() > 1e-3  # a constant would be no test


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("settings", NETWORKS.values(), ids=list(NETWORKS))
def test_networks(rows, settings, kind, dtype):
    X, score, s = rows
    if not settings.get("standardize", True):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, y = X.astype(dtype), labels_of(score, kind)
    model = FairGradClassifier(
        **{"fairness_measure": "accuracy_parity", **settings},
        fairness_rate=0.05, max_iter=2, random_state=0,
    ).fit(X, y, sensitive_features=s)  # fmt: skip
    check_equal(model, X, 1e-12 if dtype is np.float64 else 1e-5)


NETWORK = FairGradClassifier("accuracy_parity", fairness_rate=0.05, max_iter=2, random_state=0)
TREES = {
    "LightGBM": (FairGradLGBMClassifier(n_estimators=20, verbosity=-1, random_state=0), 1e-12),
    "XGBoost": (FairGradXGBClassifier(n_estimators=20, random_state=0), 1e-6),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("measure", ["accuracy_parity", None])
def test_trees_with_missing_values(rows, name, n_classes, measure):
    model, atol = clone(TREES[name][0]), TREES[name][1]  # fitting a plain one changes it
    X, score, s = rows
    X = X.astype(np.float32).astype(np.float64)  # XGBoost's precision; LightGBM's is twice that
    X[::5, 1] = np.nan
    y = np.minimum(score, n_classes - 1)
    model.set_params(fairness_measure=measure).fit(X, y, sensitive_features=s)
    new = X.copy()
    new[::3, 0], new[1::3, 2] = np.nan, 0.0  # missing where training had no missing value
    dtype = np.float32 if name == "XGBoost" else np.float64
    check_equal(model, new.astype(dtype), atol)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler()]
)
@pytest.mark.parametrize("name", ["network", "float32", *TREES])
def test_pipelines_that_scale(rows, scaler, name):
    X, score, s = rows
    X = X.astype(np.float32 if name == "float32" else np.float64)
    model, atol = TREES.get(name, (NETWORK, 1e-5 if name == "float32" else 1e-12))
    pipeline = make_pipeline(scaler, clone(model))
    last = pipeline.steps[-1][0]
    pipeline.fit(X, np.minimum(score, 1), **{f"{last}__sensitive_features": s})
    check_equal(pipeline, X, atol)


def test_trees_use_the_best_round(rows):
    X, score, s = rows
    X, y = X.astype(np.float32), np.minimum(score, 1)
    model = FairGradXGBClassifier(n_estimators=60, early_stopping_rounds=2, learning_rate=1.0)
    model.fit(X, y, sensitive_features=s, eval_set=[(X[:50], 1 - y[:50])])
    assert model.best_iteration < 50
    check_equal(model, X, 1e-6)


def test_a_tree_of_one_leaf(rows):
    X, score, s = rows
    y = np.minimum(score, 1)
    model = FairGradXGBClassifier(n_estimators=3, gamma=1e9).fit(X, y, sensitive_features=s)
    label, probabilities = run(model, X.astype(np.float32))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6)


def test_it_says_what_it_is(rows):
    X, score, s = rows
    model = FairGradClassifier("demographic_parity", max_iter=1)
    model.set_params(fairness_rate=0.05).fit(X, np.minimum(score, 1), sensitive_features=s)
    made = to_onnx(model)
    said = {entry.key: entry.value for entry in made.metadata_props}
    assert said == {"fairness_measure": "demographic_parity", "epsilon": "0.05"}
    assert made.producer_name == "fairgrad"
    onnx.checker.check_model(made, full_check=True)


def test_what_cannot_be_exported_is_said(rows):
    X, score, s = rows
    y = np.minimum(score, 1)
    with pytest.raises(TypeError, match=r"model: expected one of FairGradClassifier.*Logistic"):
        to_onnx(LogisticRegression().fit(X[:, :1], y))
    other = make_pipeline(PowerTransformer(), clone(NETWORK))
    other.fit(X, y, fairgradclassifier__sensitive_features=s)
    with pytest.raises(TypeError, match="StandardScaler, .*got PowerTransformer"):
        to_onnx(other)
    with pytest.raises(NotFittedError):
        to_onnx(FairGradClassifier())
    codes = np.c_[X[:, :1], np.arange(500) % 7]
    options = {"categorical_feature": [1]}
    trees = FairGradLGBMClassifier(n_estimators=20, verbosity=-1, min_data_per_group=1)
    trees.fit(codes, np.arange(500) % 7 % 2, sensitive_features=s, **options)
    with pytest.raises(ValueError, match="categories"):
        to_onnx(trees)


@pytest.mark.skipif(not hasattr(fairgrad.sklearn, "FairDecisionClassifier"), reason="not there")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(max_iter=500),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        FairGradClassifier(None, max_iter=20, random_state=0),
        FairGradLGBMClassifier(None, n_estimators=5, verbosity=-1, random_state=0),
        FairGradXGBClassifier(None, n_estimators=5, random_state=0),
    ],
    ids=["regression", "pipeline", "network", "LightGBM", "XGBoost"],
)
@pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
def test_fair_decisions(rows, inner, n_classes):
    X, score, s = rows
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = X.astype(np.float32).astype(np.float64)
    y = np.minimum(score, n_classes - 1)
    region = np.where(np.arange(len(X)) % 3, "N", None)  # mostly one group, the others unknown
    model = fairgrad.sklearn.FairDecisionClassifier(
        inner, "equalized_odds", 0.0, random_state=1
    ).fit(X, y, sensitive_features={"sex": s, "region": np.where(s == "F", region, "S")})
    assert np.ptp(model.cell_weights_) > 0
    check_equal(model, X, 1e-6 if "XGB" in type(inner).__name__ else 1e-12)


@pytest.mark.skipif(not hasattr(fairgrad.sklearn, "FairDecisionClassifier"), reason="not there")
def test_fair_decisions_that_look_at_sensitive_values_are_refused(rows):
    X, score, s = rows
    model = fairgrad.sklearn.FairDecisionClassifier(use_sensitive=True, epsilon=0.05)
    model.fit(X, np.minimum(score, 1), sensitive_features=s)
    with pytest.raises(ValueError, match="sensitive values"):
        to_onnx(model)
