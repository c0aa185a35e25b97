"""Fits of fixed seeds come out as recorded, so that a change of results is never an accident."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.xgboost import FairGradXGBClassifier

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())
QUIET = {"FairGradLGBMClassifier": {"verbose": -1}, "FairGradXGBClassifier": {}}
CLASSES = {one.__name__: one for one in (FairGradLGBMClassifier, FairGradXGBClassifier)}


def problem(n):
    rng = np.random.default_rng(0)
    s = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + np.outer(s, [0.7, 0, 0, -0.3])
    score = X @ [1.0, 0.5, -0.5, 0.2] + rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, [0.5])), s


@pytest.mark.parametrize("name", RECORDED)
def test_a_fit_is_as_recorded(name):
    estimator, measure = name.split()
    X, y, s = problem(1500)
    model = CLASSES[estimator](
        measure,
        epsilon=0.0,
        n_estimators=30,
        random_state=0,
        n_jobs=1,
        **QUIET[estimator],
    ).fit(X, y, sensitive_features=s)
    recorded = RECORDED[name]
    assert (model.predict(X) == y).mean() == pytest.approx(recorded["accuracy"], rel=1e-6)
    np.testing.assert_allclose(model.cell_weights_, recorded["weights"], rtol=1e-6)
    np.testing.assert_allclose(model.multipliers_, recorded["multipliers"], rtol=1e-6, atol=1e-12)
