"""FairGradLGBMClassifier and the objective, against LightGBM itself and the definitions."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMClassifier
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score

from fairgrad.evaluate import fairness_levels
from fairgrad.lightgbm import FairGradLGBMClassifier, LightGBMObjective

QUIET = {"n_jobs": 1, "verbose": -1, "random_state": 0}
SMALL = {**QUIET, "n_estimators": 60, "num_leaves": 7}
NO_FAIRNESS = {"fairness_rate": 0.0}
MEASURES = ["accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity"]


def unfairness(model, data, measure, rows, s=None):
    s = data.sex if s is None else s
    return fairness_levels(data.y[rows], model.predict(data.X[rows]), s[rows], measure).unfairness


@pytest.mark.parametrize(
    ("measure", "epsilon", "rate"),
    [*((m, 0.0, "auto") for m in MEASURES), (MEASURES[3], 0.02, "auto"), (MEASURES[3], 0.0, 0.1)],
)
def test_models_become_fair_on_new_rows(many, measure, epsilon, rate):
    rows, new = many.train, ~many.train
    trees = {**QUIET, "n_estimators": 150, "num_leaves": 5, "min_child_samples": 50}
    model = FairGradLGBMClassifier(measure, epsilon=epsilon, fairness_rate=rate, **trees)
    model.fit(many.X[rows], many.y[rows], sensitive_features=many.sex[rows])
    plain = LGBMClassifier(**trees).fit(many.X[rows], many.y[rows])
    fair, unfair = (unfairness(m, many, measure, new) for m in (model, plain))
    assert fair < epsilon + 0.35 * unfair
    assert (model.predict(many.X[new]) == many.y[new]).mean() > 0.7


def test_without_a_rate_it_is_lightgbm(hiring):
    X, y = hiring.X, hiring.decision
    plain = LGBMClassifier(**SMALL, boost_from_average=False).fit(X, y)
    model = FairGradLGBMClassifier(**NO_FAIRNESS, **SMALL)
    model.fit(X, y, sensitive_features=hiring.sex)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-4)
    assert model.classes_.tolist() == ["hired", "refused"]
    three = LGBMClassifier(**SMALL, boost_from_average=False).fit(X, hiring.grade)
    model = FairGradLGBMClassifier(**NO_FAIRNESS, **SMALL)
    model.fit(X, hiring.grade, sensitive_features=hiring.sex)
    np.testing.assert_allclose(model.predict_proba(X), three.predict_proba(X), atol=1e-3)


def test_several_classes_become_fair(many):
    rows, new = many.train, ~many.train

    def judged(**rates):
        model = FairGradLGBMClassifier("equalized_odds", epsilon=0.0, **rates, **SMALL)
        model.fit(many.X[rows], many.grade[rows], sensitive_features=many.sex[rows])
        assert model.predict_proba(many.X[:5]).shape == (5, 3)
        assert len(model.cell_names_) == 6
        predicted = model.predict(many.X[new])
        return fairness_levels(
            many.grade[new], predicted, many.sex[new], "equalized_odds"
        ).unfairness

    fair = [judged(fairness_rate=rate) for rate in (0.1, 0.2, 0.5)]
    assert max(fair) < 0.5 * judged(**NO_FAIRNESS)


def test_several_attributes_and_unknown_values(hiring):
    frame = pd.DataFrame({"sex": hiring.sex, "race": hiring.race}).astype(object)
    frame.loc[:500, "sex"] = None
    frame.loc[400:800, "race"] = None
    model = FairGradLGBMClassifier("demographic_parity", fairness_rate=0.1, **SMALL)
    model.fit(hiring.X, hiring.y, sensitive_features=frame)
    assert len(model.levels_) == 12  # label x sex x race; who is unknown is in none
    assert "sex=?, race=?" in model.groups_.names
    known = frame.notna().all(axis=1).to_numpy()
    found = fairness_levels(
        hiring.y[known], model.predict(hiring.X[known]), frame[known], "demographic_parity"
    )
    plain = LGBMClassifier(**SMALL).fit(hiring.X, hiring.y).predict(hiring.X[known])
    unfair = fairness_levels(hiring.y[known], plain, frame[known], "demographic_parity")
    assert found.unfairness < 0.3 * unfair.unfairness


def test_levels_of_the_model_are_those_before_its_last_round(hiring):
    model = FairGradLGBMClassifier("equalized_odds", **SMALL)
    model.fit(hiring.X, hiring.decision, sensitive_features=hiring.sex)
    before = model.booster_.predict(hiring.X, num_iteration=59)
    pred = model.classes_[(before > 0.5).astype(int)]
    expected = fairness_levels(hiring.decision, pred, hiring.sex, "equalized_odds")
    np.testing.assert_allclose(model.levels_, expected.values, atol=1e-7)


def test_predictions_agree_with_each_other(hiring):
    model = FairGradLGBMClassifier(**SMALL)
    model.fit(hiring.X, hiring.decision, sensitive_features=hiring.sex)
    margin = model.predict(hiring.X, raw_score=True)
    np.testing.assert_allclose(model.predict_proba(hiring.X)[:, 1], expit(margin), atol=1e-12)
    np.testing.assert_array_equal(model.predict(hiring.X), np.where(margin > 0, "refused", "hired"))


def test_sample_weights_count_as_repeated_rows(hiring):
    weight = np.where(np.arange(3000) % 3 == 0, 2, 1)
    # no limits by rows, which weights do not repeat, and bins from the same values
    options = {**SMALL, "n_estimators": 10, "min_child_samples": 1, "subsample_for_bin": 10**6}
    options["epsilon"] = 0.0  # repeated rows would be in several
    X = np.round(hiring.X)
    weighted = FairGradLGBMClassifier("equalized_odds", **options)
    weighted.fit(X, hiring.y, weight, sensitive_features=hiring.sex)
    again = np.repeat(np.arange(3000), weight)
    repeated = FairGradLGBMClassifier("equalized_odds", **options)
    repeated.fit(X[again], hiring.y[again], sensitive_features=hiring.sex[again])
    np.testing.assert_allclose(weighted.levels_, repeated.levels_, atol=0.01)
    np.testing.assert_allclose(weighted.groups_.mass, repeated.groups_.mass)


def test_class_weights_change_the_loss_and_not_the_frequencies(hiring):
    model = FairGradLGBMClassifier(**NO_FAIRNESS, class_weight={0: 1, 1: 5}, **SMALL)
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    plain = LGBMClassifier(class_weight={0: 1, 1: 5}, boost_from_average=False, **SMALL)
    plain.fit(hiring.X, hiring.y)
    np.testing.assert_allclose(
        model.predict_proba(hiring.X), plain.predict_proba(hiring.X), atol=1e-3
    )
    assert model.groups_.mass.sum() == 3000


def test_categories_and_sparse_matrices(hiring):
    frame = pd.DataFrame(hiring.X, columns=list("abcd")).assign(race=pd.Categorical(hiring.race))
    model = FairGradLGBMClassifier(**SMALL).fit(frame, hiring.y, sensitive_features=hiring.sex)
    swapped = frame.assign(race=pd.Categorical(hiring.race, categories=["c", "b", "a"]))
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(swapped))
    assert model.feature_name_ == ["a", "b", "c", "d", "race"]
    dense = FairGradLGBMClassifier(**SMALL).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    thin = FairGradLGBMClassifier(**SMALL)
    thin.fit(sparse.csr_matrix(hiring.X), hiring.y, sensitive_features=hiring.sex)
    np.testing.assert_allclose(
        thin.predict_proba(hiring.X), dense.predict_proba(hiring.X), atol=1e-9
    )


def test_eval_sets_are_judged_by_probabilities(hiring):
    rows, new = hiring.train, ~hiring.train
    model = FairGradLGBMClassifier("demographic_parity", epsilon=0.01, **SMALL)
    model.fit(
        hiring.X[rows],
        hiring.decision[rows],
        sensitive_features=hiring.sex[rows],
        eval_set=[(hiring.X[new], hiring.decision[new])],
        eval_metric=["logloss", "binary_error", "auc"],
    )
    last = {name: values[-1] for name, values in model.evals_result_["valid_0"].items()}
    proba, pred = model.predict_proba(hiring.X[new])[:, 1], model.predict(hiring.X[new])
    assert last == pytest.approx(
        {
            "auc": roc_auc_score(hiring.decision[new] == "refused", proba),
            "error": (pred != hiring.decision[new]).mean(),
            "logloss": log_loss(hiring.decision[new], proba, labels=["hired", "refused"]),
        },
        abs=1e-6,
    )


def test_early_stopping_follows_a_metric_that_knows_the_groups(hiring):
    rows, new = hiring.train, ~hiring.train

    def fair_error(y, scores):
        predicted = (scores > 0).astype(int)
        levels = fairness_levels(y.astype(int), predicted, hiring.sex[new], "demographic_parity")
        return "fair_error", np.mean(predicted != y) + levels.unfairness, False

    model = FairGradLGBMClassifier("demographic_parity", **{**SMALL, "n_estimators": 300})
    model.fit(
        hiring.X[rows],
        hiring.y[rows],
        sensitive_features=hiring.sex[rows],
        eval_set=[(hiring.X[new], hiring.y[new])],
        eval_metric=fair_error,
        callbacks=[lightgbm.early_stopping(30, verbose=False)],
    )
    curve = model.evals_result_["valid_0"]["fair_error"]
    assert model.best_iteration_ == np.argmin(curve) + 1 < 300
    assert len(curve) == model.best_iteration_ + 30
    best = model.booster_.predict(hiring.X, num_iteration=model.best_iteration_)
    np.testing.assert_array_equal(model.predict_proba(hiring.X)[:, 1], best)


def test_training_goes_on_with_its_multipliers(hiring):
    def make(rounds):
        changed = {"n_estimators": rounds, "epsilon": 0.0}
        return FairGradLGBMClassifier("equalized_odds", **{**SMALL, **changed})

    def fit(model, **options):
        return model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex, **options)

    whole, first = fit(make(40)), fit(make(25))
    second = fit(make(15), init_model=first)
    assert second.booster_.num_trees() == 40
    np.testing.assert_allclose(second.multipliers_, whole.multipliers_, atol=1e-4)
    np.testing.assert_allclose(
        second.predict_proba(hiring.X), whole.predict_proba(hiring.X), atol=0.02
    )
    assert second.fairness_state_["rounds"] == 40
    other = FairGradLGBMClassifier("accuracy_parity", **SMALL)
    with pytest.raises(ValueError, match="state: expected multipliers of the constraints"):
        fit(other, init_model=first)


def test_objective_for_train_gives_the_classifiers_trees(hiring):
    model = FairGradLGBMClassifier("equalized_odds", epsilon=0.0, fairness_rate=0.1, **SMALL)
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    objective = LightGBMObjective(hiring.y, hiring.sex, "equalized_odds", fairness_rate=0.1)
    params = {"objective": objective, "num_leaves": 7, "num_threads": 1, "verbose": -1, "seed": 0}
    booster = lightgbm.train(params, lightgbm.Dataset(hiring.X, hiring.y), 60)
    np.testing.assert_allclose(
        expit(booster.predict(hiring.X)), model.predict_proba(hiring.X)[:, 1], atol=1e-6
    )
    assert objective.n_rounds == 60


@pytest.mark.parametrize("goes_on", [False, True])
def test_objective_for_other_rows_is_refused(hiring, goes_on):
    objective = LightGBMObjective(hiring.y[::-1], hiring.sex)
    if goes_on:
        first = LightGBMObjective(hiring.y, hiring.sex)
        first.gradients(np.zeros(3000))
        objective.load_state(first.state())
    params = {"objective": objective, "num_threads": 1, "verbose": -1}
    with pytest.raises(ValueError, match="y: expected the labels of the training data set"):
        lightgbm.train(params, lightgbm.Dataset(hiring.X, hiring.y), 2)


def test_clone_pickle_and_parameters(hiring):
    model = FairGradLGBMClassifier("demographic_parity", epsilon=0.1, num_leaves=5, max_bin=63)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.get_params()["max_bin"] == 63
    copy.set_params(epsilon=0.0, n_estimators=5, n_jobs=1, verbose=-1)
    copy.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    again = pickle.loads(pickle.dumps(copy))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.predict_proba(hiring.X), copy.predict_proba(hiring.X))
    np.testing.assert_array_equal(again.multipliers_, copy.multipliers_)


def test_cross_validation_routes_sensitive_features(hiring):
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairGradLGBMClassifier(**SMALL).set_fit_request(sensitive_features=True)
        scores = cross_val_score(
            model, hiring.X, hiring.y, cv=3, params={"sensitive_features": hiring.sex}
        )
    assert (scores > 0.6).all()


def test_a_plain_model_is_lightgbms(hiring):
    model = FairGradLGBMClassifier(None, **SMALL).fit(hiring.X, hiring.y)
    plain = LGBMClassifier(**SMALL).fit(hiring.X, hiring.y)
    np.testing.assert_array_equal(model.predict_proba(hiring.X), plain.predict_proba(hiring.X))
    assert model.levels_ is None


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({}, {"sensitive_features": None}, "sensitive_features: required"),
        ({}, {"sensitive_features": ["F"]}, "sensitive_features: expected one value per row of X"),
        ({"objective": "regression"}, {}, "objective: expected one of"),
        ({"scale_pos_weight": 3.0}, {}, "scale_pos_weight: cannot be combined"),
        ({"fairness_measure": "karma"}, {}, "fairness_measure"),
        ({}, {"eval_metric": "gini"}, "eval_metric: expected functions or names among"),
        ({}, {"y": np.zeros(3000)}, "y: expected at least two classes"),
    ],
)
def test_bad_input_is_refused_before_anything_is_fitted(hiring, settings, options, message):
    model = FairGradLGBMClassifier(**{**SMALL, **settings})
    given = {"X": hiring.X, "y": hiring.y, "sensitive_features": hiring.sex, **options}
    with pytest.raises(ValueError, match=message):
        model.fit(**given)
    assert not hasattr(model, "levels_")


def test_features_that_cannot_be_split(hiring):
    few = {**SMALL, "min_child_samples": 50}
    with pytest.raises(ValueError, match="X: no feature can be split"):
        FairGradLGBMClassifier(**few).fit(
            hiring.X[:60], hiring.y[:60], sensitive_features=hiring.sex[:60]
        )
