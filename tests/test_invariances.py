"""What must not matter: names of groups, order of rows, units of features, weights and costs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad import Audit
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.xgboost import FairGradXGBClassifier

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
RNG = np.random.default_rng(0)
N = 1_500
SEX = RNG.choice(["F", "M", "X"], N, p=[0.5, 0.44, 0.06])
X = RNG.normal(size=(N, 3)) + np.outer(SEX == "M", [1.0, 0.5, 0.0])
Y = (X[:, 0] + X[:, 2] + RNG.normal(size=N) > 0.7).astype(int)
WEIGHT = RNG.integers(1, 4, N).astype(float)
TREES = {"n_estimators": 30, "n_jobs": 1, "random_state": 0}
REGRESSION = make_pipeline(StandardScaler(), LogisticRegression())
MODELS = {
    "gradient": FairGradClassifier(random_state=0),
    "network": FairGradClassifier(random_state=0, hidden_layer_sizes=(8,), max_iter=10),
    "decision": FairDecisionClassifier(REGRESSION, random_state=0),
    "LightGBM": FairGradLGBMClassifier(verbose=-1, **TREES),
    "XGBoost": FairGradXGBClassifier(**TREES),
}
MEASURES = ("equalized_odds", "demographic_parity")


def predictions(kind, measure, features=X, sex=SEX, **options):
    model = clone(MODELS[kind]).set_params(fairness_measure=measure)
    return model.fit(features, Y, sensitive_features=sex, **options).predict(features)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "decision"])
def test_names_of_groups(kind, measure):
    """Fair decisions draw their folds cell by cell, in the order of the groups' names."""
    renamed = np.array([{"F": "z", "M": "a", "X": "m"}[value] for value in SEX])
    both = (predictions(kind, measure, sex=sex) for sex in (SEX, renamed))
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", ["gradient", "network", "decision"])
def test_units_of_features(kind, measure):
    other = X * [1e4, 1e-4, 1e3] + [5e4, 0.0, -9.0]
    differ = predictions(kind, measure) != predictions(kind, measure, features=other)
    assert differ.mean() <= 0.002  # rounding may move a row at a border


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("kind", "unit"),
    [("gradient", 0.01), ("gradient", 1e3), ("network", 0.01), ("network", 1e3), ("LightGBM", 1e3)],
)
def test_units_of_weights(kind, measure, unit):
    """Regularized estimators and trees with a minimal sum of weights depend on them themselves."""
    both = [predictions(kind, measure, sample_weight=WEIGHT * u) for u in (1.0, unit)]
    assert np.mean(both[0] != both[1]) <= 0.002


@pytest.mark.parametrize("measure", [*MEASURES, "accuracy_parity", "four_fifths_rule"])
def test_an_audit_does_not_depend_on_the_order_of_rows_or_the_unit_of_weights(measure):
    predicted, order = np.where(RNG.random(N) < 0.8, Y, 1 - Y), RNG.permutation(N)
    first, shuffled, scaled = (
        Audit(Y[rows], predicted[rows], {"sex": SEX[rows]}, measure, sample_weight=weight[rows])
        for rows, weight in ((slice(None), WEIGHT), (order, WEIGHT), (slice(None), 1e-3 * WEIGHT))
    )
    for audit in (shuffled, scaled):
        np.testing.assert_allclose(audit.findings[0].levels, first.findings[0].levels, atol=1e-12)
        assert audit.conclusion == first.conclusion
