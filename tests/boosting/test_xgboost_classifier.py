"""FairGradXGBClassifier against XGBoost itself and the definitions, and its files."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from fairgrad.evaluate import fairness_levels

xgboost = pytest.importorskip("xgboost")

from fairgrad.xgboost import FairGradXGBClassifier, XGBoostObjective  # noqa: E402 - needs xgboost

SMALL = {"n_jobs": 1, "random_state": 0, "n_estimators": 40, "max_depth": 3, "learning_rate": 0.1}
NO_FAIRNESS = {"fairness_rate": 0.0}


def fit(hiring, measure="equalized_odds", y="y", settings=SMALL, **options):
    model = FairGradXGBClassifier(measure, epsilon=0.0, **settings)
    return model.fit(hiring.X, getattr(hiring, y), sensitive_features=hiring.sex, **options)


@pytest.mark.parametrize("y", ["y", "grade"])
def test_without_a_rate_it_is_xgboost(hiring, y):
    label = getattr(hiring, y)
    model = FairGradXGBClassifier(**NO_FAIRNESS, **SMALL)
    model.fit(hiring.X, label, sensitive_features=hiring.sex, sample_weight=1 + hiring.y)
    plain = xgboost.XGBClassifier(**SMALL, base_score=0.5)
    plain.fit(hiring.X, label, sample_weight=1 + hiring.y)
    found, expected = (one.predict_proba(hiring.X) for one in (model, plain))
    if y == "y":
        np.testing.assert_allclose(found, expected, atol=1e-4)
    else:  # XGBoost's hessians of three classes have the factor 2, LightGBM's and ours 3 / 2
        assert np.abs(found - expected).mean() < 0.03
        assert (found.argmax(1) == expected.argmax(1)).mean() > 0.95


def test_it_trains_as_the_objective_does(hiring):
    model = fit(hiring)
    objective = XGBoostObjective(hiring.y, hiring.sex, "equalized_odds")
    params = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.1, "nthread": 1, "seed": 0}
    data = xgboost.QuantileDMatrix(hiring.X, hiring.y)
    booster = xgboost.train(params, data, 40, obj=objective)
    np.testing.assert_allclose(
        model.predict_proba(hiring.X)[:, 1], booster.predict(data), atol=1e-6
    )
    np.testing.assert_allclose(model.multipliers_, objective.net_multipliers)


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_models_become_fair_on_new_rows(many, measure):
    rows, new = many.train, ~many.train
    settings = {**SMALL, "n_estimators": 150, "max_depth": 2, "epsilon": 0.0}
    models = [
        FairGradXGBClassifier(name, **settings).fit(
            many.X[rows], many.y[rows], sensitive_features=many.sex[rows]
        )
        for name in (measure, None)
    ]
    fair, plain = (
        fairness_levels(many.y[new], model.predict(many.X[new]), many.sex[new], measure).unfairness
        for model in models
    )
    assert fair < 0.35 * plain
    assert models[0].objective == models[1].objective == "binary:logistic"


def test_levels_are_those_before_the_last_round(hiring):
    model = fit(hiring, y="grade")
    before = model.predict(hiring.X, iteration_range=(0, 39))
    expected = fairness_levels(hiring.grade, before, hiring.sex, "equalized_odds")
    np.testing.assert_allclose(model.levels_, expected.values, atol=1e-7)
    assert len(model.cell_names_) == len(model.cell_weights_) == 6


def test_several_attributes_and_unknown_values(hiring):
    frame = pd.DataFrame({"sex": hiring.sex, "race": hiring.race}).astype(object)
    frame.loc[:500, "sex"] = None
    model = FairGradXGBClassifier("demographic_parity", **SMALL)
    model.fit(hiring.X, hiring.y, sensitive_features=frame)
    assert len(model.levels_) == 12
    assert "sex=?, race=?" not in model.groups_.names
    known = frame.notna().all(axis=1).to_numpy()
    found, unfair = (
        fairness_levels(
            hiring.y[known], one.predict(hiring.X[known]), frame[known], "demographic_parity"
        ).unfairness
        for one in (model, xgboost.XGBClassifier(**SMALL).fit(hiring.X, hiring.y))
    )
    assert found < 0.5 * unfair


def test_xgboosts_metrics_read_probabilities(hiring):
    rows, new = hiring.train, ~hiring.train
    metrics = ["logloss", "error"]
    model = FairGradXGBClassifier("equalized_odds", eval_metric=metrics, **SMALL)
    model.fit(
        hiring.X[rows],
        hiring.y[rows],
        sensitive_features=hiring.sex[rows],
        eval_set=[(hiring.X[new], hiring.y[new])],
    )
    last = {name: values[-1] for name, values in model.evals_result()["validation_0"].items()}
    proba, predicted = model.predict_proba(hiring.X[new]), model.predict(hiring.X[new])
    assert last == pytest.approx(
        {
            "logloss": log_loss(hiring.y[new], proba),
            "error": np.mean(predicted != hiring.y[new]),
        },
        abs=1e-5,
    )
    assert model.eval_metric == metrics


def test_training_goes_on_with_its_multipliers(hiring):
    def part(rounds, **options):
        return fit(hiring, settings={**SMALL, "n_estimators": rounds}, **options)

    whole, first = part(40), part(25)
    second = part(15, xgb_model=first)
    assert second.fairness_state_["rounds"] == 40
    np.testing.assert_allclose(second.multipliers_, whole.multipliers_, atol=1e-6)
    np.testing.assert_allclose(
        second.predict_proba(hiring.X), whole.predict_proba(hiring.X), atol=1e-4
    )
    with pytest.raises(ValueError, match="state: expected multipliers of the constraints"):
        fit(hiring, "accuracy_parity", xgb_model=first)


@pytest.mark.parametrize("measure", ["accuracy_parity", None])
@pytest.mark.parametrize("names", [["no", "yes"], [1, 2]])
def test_other_labels_than_those_of_xgboost_are_refused(hiring, measure, names):
    model = FairGradXGBClassifier(measure, **SMALL)
    with pytest.raises(ValueError, match=rf"^y: expected the classes 0, 1.* got \[{names[0]!r}"):
        model.fit(hiring.X, np.array(names)[hiring.y], sensitive_features=hiring.sex)
    assert not hasattr(model, "classes_") or len(model.classes_) == 0


def test_a_plain_model_is_xgboosts(hiring):
    model = FairGradXGBClassifier(None, **SMALL).fit(hiring.X, hiring.y)
    plain = xgboost.XGBClassifier(**SMALL).fit(hiring.X, hiring.y)
    np.testing.assert_array_equal(model.predict_proba(hiring.X), plain.predict_proba(hiring.X))
    assert model.levels_ is model.fairness_state_ is None


def test_clone_pickle_and_parameters(hiring):
    model = FairGradXGBClassifier("demographic_parity", epsilon=0.1, max_depth=2, max_bin=63)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert {"fairness_measure", "epsilon"}.isdisjoint(copy.get_xgb_params())
    copy.set_params(epsilon=0.0, n_estimators=5, n_jobs=1)
    copy.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    again = pickle.loads(pickle.dumps(copy))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.predict_proba(hiring.X), copy.predict_proba(hiring.X))
    np.testing.assert_array_equal(again.multipliers_, copy.multipliers_)


def test_cross_validation_routes_sensitive_features(hiring):
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairGradXGBClassifier(**SMALL).set_fit_request(sensitive_features=True)
        scores = cross_val_score(
            model, hiring.X, hiring.y, cv=3, params={"sensitive_features": hiring.sex}
        )
    assert (scores > 0.6).all()


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({}, {"sensitive_features": None}, "sensitive_features: required"),
        ({}, {"sensitive_features": ["F"]}, "sensitive_features: expected one value per row of X"),
        ({"objective": "reg:squarederror"}, {}, "objective: expected one of"),
        ({"scale_pos_weight": 3.0}, {}, "scale_pos_weight: cannot be combined"),
        ({"fairness_measure": "karma"}, {}, "fairness_measure"),
        ({}, {"y": np.zeros(3000, dtype=int)}, "y: expected at least two classes"),
    ],
)
def test_bad_input_is_refused_before_anything_is_fitted(hiring, settings, options, message):
    model = FairGradXGBClassifier(**{**SMALL, **settings})
    given = {"X": hiring.X, "y": hiring.y, "sensitive_features": hiring.sex, **options}
    before = model.get_params()
    with pytest.raises(ValueError, match=message):
        model.fit(**given)
    assert not hasattr(model, "levels_")
    assert model.get_params() == before
