"""What MLflow keeps of a training and of an audit."""

import json

import mlflow
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fairgrad.audit import Audit
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.mlflow import log_audit, log_fairness
from fairgrad.sklearn import FairGradClassifier
from fairgrad.torch import CrossEntropyLoss


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/runs")
    with mlflow.start_run() as run:
        yield lambda: mlflow.get_run(run.info.run_id)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    s = rng.choice(["F", "M"], 400)
    X = rng.normal(size=(400, 3)) + np.outer(s == "M", [1.0, 0, 0])
    return X, (X[:, 0] + rng.normal(size=400) > 0.5).astype(int), {"sex": s}


def curve(run, name):
    history = mlflow.tracking.MlflowClient().get_metric_history(run().info.run_id, name)
    return [metric.value for metric in history]


def test_a_loss_step_by_step(run):
    y, s = torch.tensor([0, 1] * 20), torch.tensor([0, 0, 1, 1] * 10)
    criterion = CrossEntropyLoss(y, {"sex": s}, "equalized_odds", fairness_rate=0.5)
    expected = []
    for step in range(3):
        criterion(torch.randn(40, 2), y, s)
        log_fairness(criterion, step)
        expected.append(float(criterion.levels[criterion.constraint_names.index("y=1, sex=0")]))
    np.testing.assert_allclose(curve(run, "fairness/level/y-1 sex-0"), expected, rtol=1e-6)
    assert len(run().data.metrics) == 3 * 4 + 1


def test_an_estimator_with_its_history(run, rows):
    X, y, s = rows
    model = FairGradClassifier("accuracy_parity", epsilon=0.1, fairness_rate=0.05, max_iter=4).fit(
        X, y, sensitive_features=s
    )
    found = log_fairness(model)
    data = run().data
    assert data.params["fairness_measure"] == "accuracy_parity"
    assert data.params["epsilon"] == "0.1"
    levels = [found[f"fairness/level/sex-{value}"] for value in "FM"]
    np.testing.assert_array_equal(levels, model.levels_)
    assert curve(run, "fairness/unfairness") == model.history_["unfairness"].tolist()
    for kind in ("level", "multiplier"):
        np.testing.assert_array_equal(
            curve(run, f"fairness/{kind}/sex-F")[:4], model.history_[f"{kind}s"][:, 0]
        )


def test_boosted_trees(run, rows):
    X, y, s = rows
    model = FairGradLGBMClassifier(n_estimators=5, verbosity=-1)
    model.fit(X, y, sensitive_features=s)
    found = log_fairness(model, prefix="trees")
    assert found["trees/level/y-0 sex-F"] == model.levels_[0]
    assert run().data.metrics == found


def test_an_audit_with_its_report(run, rows, tmp_path):
    X, y, s = rows
    audit = Audit(y, X[:, 0] > 0, s, measures=["equalized_odds", "accuracy_parity"])
    log_audit(audit, title="Loans")
    data = run().data
    assert data.tags["fairness.verdict"] == audit.verdict
    assert data.metrics["accuracy"] == np.mean(y == (X[:, 0] > 0))
    assert {name for name in data.metrics if name.startswith("unfairness")} == {
        "unfairness/equalized_odds/sex", "unfairness/accuracy_parity/sex",
    }  # fmt: skip
    (page,) = tmp_path.rglob("fairness/report.html")
    assert "Loans" in page.read_text(encoding="utf-8")
    (kept,) = tmp_path.rglob("fairness/audit.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == audit.to_dict()


def test_an_audit_without_labels(run, rows):
    X, _, s = rows
    log_audit(Audit(y_pred=X[:, 0] > 0, sensitive_features=s))
    assert set(run().data.metrics) == {
        "unfairness/demographic_parity/sex",
        "unfairness/four_fifths_rule/sex",
    }


@pytest.mark.usefixtures("run")
def test_names_stay_apart(rows):
    X, y, _ = rows
    s = {"a,b": np.where(X[:, 1] > 0, "<", ">")}  # both lose what tells them apart
    model = FairGradClassifier("accuracy_parity", fairness_rate=0.05, max_iter=1).fit(
        X, y, sensitive_features=s
    )
    found = log_fairness(model)
    assert found["fairness/level/ab-"] == model.levels_[0]
    assert found["fairness/level/ab- 2"] == model.levels_[1]


def test_what_cannot_be_logged(run, rows):
    X, y, _ = rows
    with pytest.raises(TypeError, match="model: expected a loss.*LogisticRegression"):
        log_fairness(LogisticRegression())
    with pytest.raises(TypeError, match="audit: expected a fairgrad.audit.Audit, got dict"):
        log_audit({})
    plain = FairGradClassifier(None, max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="plain model"):
        log_fairness(plain)
    assert not run().data.metrics
