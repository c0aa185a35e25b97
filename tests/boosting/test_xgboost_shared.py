"""XGBoost on several workers: they share one set of multipliers, and grow the trees of one."""

import json

import numpy as np
import pytest
import xgboost

from fairgrad.groups import Groups
from fairgrad.xgboost import XGBoostObjective

PARAMS = {"max_depth": 3, "nthread": 1, "eta": 0.3, "tree_method": "hist", "seed": 0}


def rows(n=1200, labels=2):
    """Few different values of each feature, so that the cuts do not depend on the division."""
    rng = np.random.default_rng(0)
    s = rng.integers(3, size=n)
    X = rng.integers(0, 12, size=(n, 4)) + s[:, None] * np.array([3, 0, 0, 1])
    score = X @ [1.0, 0.6, -0.4, 0.3] + rng.normal(0, 4, n)
    y = np.digitize(score, np.quantile(score, np.arange(1, labels) / labels))
    return X.astype(np.float32), y, np.array(["a", "b", "c"])[s]


def named(labels):
    if labels == 2:
        return {**PARAMS, "objective": "binary:logistic"}
    return {**PARAMS, "objective": "multi:softprob", "num_class": labels}


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("measure", ["equalized_odds", "accuracy_parity"])
def test_one_worker_is_the_plain_objective(labels, measure):
    X, y, s = rows(labels=labels)
    own = XGBoostObjective(y, s, measure)
    plain = xgboost.train(named(labels), xgboost.DMatrix(X, y), 20, obj=own)
    shared = XGBoostObjective(Groups.from_data(y, s), None, measure)
    matrix = xgboost.DMatrix(X, y, label_lower_bound=shared.groups.group_index(s))
    found = xgboost.train(named(labels), matrix, 20, obj=shared)
    assert found.get_dump() == plain.get_dump()
    assert shared.state() == own.state()


def test_rows_without_a_group_are_refused():
    X, y, s = rows()
    objective = XGBoostObjective(Groups.from_data(y, s))
    with pytest.raises(ValueError, match="label_lower_bound: expected the group of each row"):
        xgboost.train(named(2), xgboost.DMatrix(X, y), 1, obj=objective)
    strange = xgboost.DMatrix(X, y, label_lower_bound=np.full(len(y), 3))
    with pytest.raises(ValueError, match="label_lower_bound: expected whole numbers from 0 to 2"):
        xgboost.train(named(2), strange, 1, obj=objective)


@pytest.mark.filterwarnings("ignore")  # those of dask and its servers
def test_two_dask_workers_grow_the_trees_of_one():
    distributed = pytest.importorskip("distributed")
    array = pytest.importorskip("dask.array")
    dxgb = pytest.importorskip("xgboost.dask")

    X, y, s = rows()
    objective = XGBoostObjective(Groups.from_data(y, s), None, "demographic_parity")
    group = objective.groups.group_index(s).astype(np.float32)
    whole = xgboost.DMatrix(X, y, label_lower_bound=group)
    one = xgboost.train(
        named(2), whole, 15, obj=XGBoostObjective(objective.groups, None, "demographic_parity")
    )
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        X_parts, y_parts, group_parts = (
            array.from_array(part, chunks=(400, *part.shape[1:])) for part in (X, y, group)
        )
        matrix = dxgb.DaskDMatrix(client, X_parts, y_parts, label_lower_bound=group_parts)
        two = dxgb.train(client, named(2), matrix, 15, obj=objective)["booster"]
    margins = [booster.predict(whole, output_margin=True) for booster in (one, two)]
    np.testing.assert_allclose(*margins, rtol=1e-3, atol=1e-4)
    splits = [
        [json.loads(tree)["split"] for tree in booster.get_dump(dump_format="json")]
        for booster in (one, two)
    ]
    assert splits[0] == splits[1]
