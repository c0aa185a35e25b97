"""The objective for XGBoost, against XGBoost's own log loss and the definitions."""

import json

import numpy as np
import pytest

from fairgrad.evaluate import fairness_levels
from fairgrad.xgboost import XGBoostObjective

xgboost = pytest.importorskip("xgboost")

PARAMS = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.1, "nthread": 1, "seed": 0}
MEASURES = ["accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity"]


def test_without_a_rate_it_is_xgboost(hiring):
    data = xgboost.DMatrix(hiring.X, hiring.y, weight=1 + hiring.y)
    objective = XGBoostObjective(hiring.y, hiring.sex, fairness_rate=0.0)
    params = {**PARAMS, "base_score": 0.5}  # where XGBoost starts when it is given gradients
    ours = xgboost.train(params, data, 20, obj=objective)
    theirs = xgboost.train(params, data, 20)
    np.testing.assert_allclose(ours.predict(data), theirs.predict(data), atol=1e-4)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("measure", MEASURES)
def test_models_become_fair_on_new_rows(many, measure, rate):
    rows, new = many.train, ~many.train
    params = {**PARAMS, "max_depth": 2, "min_child_weight": 5}
    data, judged = (xgboost.DMatrix(many.X[part], many.y[part]) for part in (rows, new))
    objective = XGBoostObjective(many.y[rows], many.sex[rows], measure, fairness_rate=rate)
    fair, plain = (
        fairness_levels(
            many.y[new], (booster.predict(judged) > 0.5).astype(int), many.sex[new], measure
        ).unfairness
        for booster in (
            xgboost.train(params, data, 150, obj=objective),
            xgboost.train(params, data, 150),
        )
    )
    assert fair < 0.35 * plain


def test_levels_are_those_of_the_model_before_the_last_round(hiring):
    data = xgboost.DMatrix(hiring.X, hiring.grade)
    objective = XGBoostObjective(hiring.grade, hiring.sex, "equalized_odds")
    params = {**PARAMS, "objective": "multi:softprob", "num_class": 3}
    booster = xgboost.train(params, data, 20, obj=objective)
    before = booster.predict(data, iteration_range=(0, 19))
    assert before.shape == (3000, 3)
    expected = fairness_levels(hiring.grade, before.argmax(1), hiring.sex, "equalized_odds")
    np.testing.assert_allclose(objective.levels, expected.values, atol=1e-7)


def test_training_goes_on_from_a_saved_model(hiring, tmp_path):
    data = xgboost.DMatrix(hiring.X, hiring.y)

    def make():
        return XGBoostObjective(hiring.y, hiring.sex, "equalized_odds")

    whole = make()
    expected = xgboost.train(PARAMS, data, 30, obj=whole).predict(data)
    first, second = make(), make()
    xgboost.train(PARAMS, data, 18, obj=first).save_model(tmp_path / "model.ubj")
    second.load_state(json.loads(json.dumps(first.state())))
    booster = xgboost.train(
        PARAMS, data, 12, obj=second, xgb_model=xgboost.Booster(model_file=tmp_path / "model.ubj")
    )
    np.testing.assert_allclose(booster.predict(data), expected, atol=1e-5)
    np.testing.assert_allclose(second.net_multipliers, whole.net_multipliers, atol=1e-9)


def test_another_matrix_is_refused(hiring):
    objective = XGBoostObjective(hiring.y, hiring.sex)
    data = xgboost.DMatrix(hiring.X, 1 - hiring.y)
    with pytest.raises(ValueError, match="y: expected the labels of the training data set"):
        xgboost.train(PARAMS, data, 2, obj=objective)
