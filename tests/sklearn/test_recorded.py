"""Fixed seeds give the figures that were recorded before the estimator was rebuilt."""

import json
from pathlib import Path

import numpy as np
import pytest

from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairGradClassifier

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())
SETTINGS = {
    "rate": {"fairness_rate": 0.05, "epsilon": 0.02, "max_iter": 20},
    "hidden": {"hidden_layer_sizes": (8,), "epsilon": 0.0, "max_iter": 5, "fairness_rate": 0.05},
}
pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")


def make_problem(n_labels=2):
    rng = np.random.default_rng(0)
    s = rng.integers(0, 3, 1500)
    X = rng.normal(size=(1500, 4)) + np.outer(s, [0.7, 0, 0, -0.3])
    score = X @ [1.0, 0.5, -0.5, 0.2] + rng.normal(size=1500)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_labels) / n_labels))
    return X, y, s


def assert_recorded(model, X, y, expected):
    assert model.score(X, y) == pytest.approx(expected["accuracy"], abs=1e-9)
    np.testing.assert_allclose(model.levels_, expected["levels"], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(model.cell_weights_, expected["weights"], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    "name", [n for n in RECORDED["estimator"] if "," not in n and "default" not in n]
)
def test_estimator(name):
    measure, settings = name.split()
    X, y, s = make_problem()
    model = FairGradClassifier(measure, random_state=0, **SETTINGS[settings])
    model.fit(X, y, sensitive_features=s)
    expected = RECORDED["estimator"][name]
    assert_recorded(model, X, y, expected)
    np.testing.assert_allclose(model.multipliers_, expected["multipliers"], rtol=1e-5, atol=1e-9)
    assert model.fairness_rate_ == expected["rate"]


def test_estimator_of_three_labels_and_two_attributes():
    X, y, s = make_problem(n_labels=3)
    model = FairGradClassifier(
        "equalized_odds", epsilon=0.0, random_state=0, fairness_rate=0.05, max_iter=10
    )
    model.fit(X, y, sensitive_features={"a": s, "b": (X[:, 1] > 0).astype(int)})
    assert_recorded(model, X, y, RECORDED["estimator"]["three labels, two attributes"])


def test_frontier():
    X, y, s = make_problem()
    frontier = Frontier(fairness_measure="demographic_parity", random_state=0, epsilons=4)
    held_out = (X[1000:], y[1000:], s[1000:])
    frontier.fit(X[:1000], y[:1000], sensitive_features=s[:1000], validation=held_out)
    for name, values in RECORDED["frontier"].items():
        np.testing.assert_allclose(frontier.points_[name], values, rtol=1e-5, atol=1e-9)
