"""Boosted models in files of `fairgrad.persistence`, and in those of their own libraries."""

import sys

import numpy as np
import pandas as pd
import pytest

import fairgrad
from fairgrad import persistence
from fairgrad.sklearn import FairDecisionClassifier

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

import fairgrad.lightgbm as fair_lightgbm  # noqa: E402 - needs lightgbm


def start_from(model):
    return {"init_model": model} if hasattr(model, "booster_") else {"xgb_model": model}


@pytest.mark.parametrize("y", ["y", "grade"])
def test_a_saved_model_predicts_and_goes_on_as_before(make, hiring, tmp_path, y):
    rows = hiring.X, getattr(hiring, y)
    model = make("equalized_odds").fit(*rows, sensitive_features=hiring.sex)
    same = persistence.load(persistence.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict_proba(hiring.X), model.predict_proba(hiring.X))
    np.testing.assert_array_equal(same.predict(hiring.X), model.predict(hiring.X))
    np.testing.assert_array_equal(same.levels_, model.levels_)
    assert same.cell_names_ == model.cell_names_
    assert same.get_params() == pytest.approx(model.get_params(), nan_ok=True)
    first, second = (
        make("equalized_odds").fit(*rows, sensitive_features=hiring.sex, **start_from(one))
        for one in (model, same)
    )
    assert second.fairness_state_["rounds"] == 80
    np.testing.assert_array_equal(second.multipliers_, first.multipliers_)


def test_their_libraries_read_probabilities_from_the_trees_alone(make, hiring, tmp_path):
    model = make().fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    (tmp_path / "trees.ubj").write_bytes(model.tree_bytes())
    if hasattr(model, "booster_"):
        alone = lightgbm.Booster(model_file=tmp_path / "trees.ubj").predict(hiring.X)
    else:
        alone = xgboost.Booster(model_file=tmp_path / "trees.ubj").predict(
            xgboost.DMatrix(hiring.X)
        )
    np.testing.assert_allclose(alone, model.predict_proba(hiring.X)[:, 1], atol=1e-6)


def test_texts_categories_and_early_stopping_survive(hiring, tmp_path):
    frame = pd.DataFrame(hiring.X, columns=list("abcd")).assign(race=pd.Categorical(hiring.race))
    model = fair_lightgbm.FairGradLGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1)
    model.fit(
        frame[:2000],
        hiring.decision[:2000],
        sensitive_features=hiring.sex[:2000],
        eval_set=(frame[2000:], hiring.decision[2000:]),
        callbacks=[lightgbm.early_stopping(10, verbose=False)],
    )
    assert model.best_iteration_ < 200
    same = persistence.load(persistence.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(same.predict(frame), model.predict(frame))


@pytest.mark.parametrize("decides", [False, True])
def test_plain_models_alone_and_below_fair_decisions(make, hiring, tmp_path, decides):
    model = make(None)
    model = FairDecisionClassifier(model, "demographic_parity") if decides else model
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    same = persistence.load(persistence.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict_proba(hiring.X), model.predict_proba(hiring.X))


def test_a_missing_library_is_named(make, hiring, tmp_path, monkeypatch):
    model = make(None).fit(hiring.X, hiring.y)
    path = persistence.save(model, tmp_path / "model.skops")
    name = make.library.__name__.rpartition(".")[2]
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, make.library.__name__)
    monkeypatch.delattr(fairgrad, name)
    with pytest.raises(ValueError, match=rf"needs {name}: pip install 'fairgrad\[{name}\]'"):
        persistence.load(path)
