"""Warnings point to the line of the user who called the library, not to a line of ours."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.torch import CrossEntropyLoss
from fairgrad.training import Member, TrainingPlan, TrainingTable, train

Y = np.array([0, 1] * 199 + [0, 0])
S = np.array([0] * 200 + [1] * 199 + [2])  # nobody of the group 2 has the label 1
X = np.random.default_rng(0).normal(size=(400, 3)) + np.stack([2 * Y + S, 0 * S, 0 * S], 1)
ESTIMATOR = {"min_group": 0, "max_iter": 2, "random_state": 0, "verbose": False}


def predict_without_values(**values):
    model = FairGradClassifier("accuracy_parity", use_sensitive=True, **ESTIMATOR)
    return model.fit(X[:-1], Y[:-1], sensitive_features=S[:-1]).predict(X, **values)


CALLS = {
    "loss": lambda: CrossEntropyLoss(Y, S, "equalized_odds"),
    "estimator": lambda: FairGradClassifier(**ESTIMATOR).fit(X, Y, sensitive_features=S),
    "pipeline": lambda: make_pipeline(StandardScaler(), FairGradClassifier(**ESTIMATOR)).fit(
        X, Y, fairgradclassifier__sensitive_features=S
    ),
    "decisions": lambda: FairDecisionClassifier(LogisticRegression(), min_group=0).fit(
        X, Y, sensitive_features=S
    ),
    "frontier": lambda: Frontier(FairGradClassifier(**ESTIMATOR), epsilons=2, random_state=0).fit(
        X, Y, sensitive_features=S
    ),
    "small groups": lambda: FairGradClassifier(**{**ESTIMATOR, "min_group": 30}).fit(
        X, Y, sensitive_features=S
    ),
    "values never seen": lambda: predict_without_values(sensitive_features=S),
    "no values": predict_without_values,
    "divergence": lambda: train(
        TrainingTable.from_data(X, Y, S, dtype=torch.float64),
        [Member(learning_rate=1e200)],
        TrainingPlan(hidden=(4,), epochs=2, fairness_measure="accuracy_parity"),
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_they_point_to_the_caller(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_those_of_boosted_trees(library):
    module = pytest.importorskip(f"fairgrad.{library}")
    kind = {"lightgbm": "FairGradLGBMClassifier", "xgboost": "FairGradXGBClassifier"}[library]
    options = {"verbose": -1} if library == "lightgbm" else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = getattr(module, kind)(min_group=0, n_estimators=3, n_jobs=1, **options)
        model.fit(X, Y, sensitive_features=S)
    assert {warning.filename for warning in caught} == {__file__}
