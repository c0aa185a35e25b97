"""A frontier of boosted trees: one fit per epsilon, side by side, judged and audited."""

import numpy as np
import pytest
from joblib import parallel_config
from lightgbm import LGBMClassifier

from fairgrad import fairness_levels
from fairgrad.audit import Audit
from fairgrad.frontier import Frontier
from fairgrad.lightgbm import FairGradLGBMClassifier

TREES = {"n_estimators": 40, "num_leaves": 5, "n_jobs": 1, "verbose": -1, "random_state": 0}


@pytest.fixture(scope="module")
def trees(hiring):
    frontier = Frontier(
        FairGradLGBMClassifier("demographic_parity", **TREES), epsilons=5, n_jobs=2, random_state=0
    )
    with parallel_config(backend="threading"):  # processes would take longer to start than to fit
        return frontier.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)


def test_from_exact_fairness_to_the_plain_model(trees, hiring):
    points = trees.points_
    assert points["epsilon"].tolist()[0] == 0.0
    assert np.isinf(points["epsilon"].iloc[-1])
    assert points["validation_unfairness"].iloc[0] < 0.5 * points["validation_unfairness"].iloc[-1]
    plain = trees.estimators_[-1]
    np.testing.assert_allclose(plain.cell_weights_, 1.0)
    assert [model.epsilon for model in trees.estimators_] == points["epsilon"].tolist()
    assert trees.select(max_unfairness=1.0).predict(hiring.X[:3]).shape == (3,)


def test_each_model_is_the_one_that_a_fit_by_itself_gives(hiring):
    held = np.arange(len(hiring.y)) % 4 == 0
    rows = (hiring.X[held], hiring.y[held], hiring.sex[held])
    template = FairGradLGBMClassifier("equalized_odds", **TREES)
    frontier = Frontier(template, epsilons=[0.0, 0.05, np.inf], random_state=3)
    frontier.fit(
        hiring.X[~held], hiring.y[~held], sensitive_features=hiring.sex[~held], validation=rows
    )
    for model, point in zip(frontier.estimators_, frontier.points_.to_dict("records"), strict=True):
        alone = FairGradLGBMClassifier(
            "equalized_odds",
            epsilon=point["epsilon"],
            **{**TREES, "random_state": frontier.seed_},
        )
        alone.fit(hiring.X[~held], hiring.y[~held], sensitive_features=hiring.sex[~held])
        np.testing.assert_array_equal(model.predict(rows[0]), alone.predict(rows[0]))
        levels = fairness_levels(rows[1], alone.predict(rows[0]), rows[2], "equalized_odds")
        assert point["validation_unfairness"] == pytest.approx(levels.unfairness)
    plain = LGBMClassifier(boost_from_average=False, **{**TREES, "random_state": frontier.seed_})
    plain.fit(hiring.X[~held], hiring.y[~held])
    assert (frontier.estimators_[-1].predict(rows[0]) == plain.predict(rows[0])).mean() > 0.99


def test_the_audit_takes_boosted_models(trees, hiring):
    model = trees.estimators_[0]
    audit = Audit(hiring.y, model.predict(hiring.X), hiring.sex, y_desirable="hired")
    levels = fairness_levels(hiring.y, model.predict(hiring.X), hiring.sex, "demographic_parity")
    found = {row["measure"]: row for row in audit.to_dict()["verdicts"]}
    assert found["demographic_parity"]["unfairness"] == pytest.approx(levels.unfairness)


@pytest.mark.filterwarnings("ignore")  # those of dask and its servers
def test_the_models_of_a_frontier_are_fitted_by_dask_workers():
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    s = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3)) + np.outer(s, [1.0, 0.0, 0.0])
    y = (X.sum(axis=1) + rng.normal(size=400) > 0.5).astype(int)
    trees = FairGradLGBMClassifier("demographic_parity", **{**TREES, "n_estimators": 5})

    def points():
        frontier = Frontier(trees, epsilons=[0.0, 0.3], n_jobs=2, random_state=0)
        frontier.fit(X, y, sensitive_features=s)
        return [model.predict_proba(X) for model in frontier.estimators_]

    alone = points()
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask"),
    ):
        shared = points()
        has_fitted = client.run(lambda: "fairgrad.lightgbm" in __import__("sys").modules)
        assert any(has_fitted.values())
    np.testing.assert_array_equal(alone, shared)
