"""Models saved in LightGBM's format with the fairness state beside."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from fairgrad.boosting.estimator import fairness_file
from fairgrad.lightgbm import FairGradLGBMClassifier, load, save

SMALL = {"n_jobs": 1, "verbose": -1, "random_state": 0, "n_estimators": 20, "num_leaves": 7}


def fit(hiring, y="decision", measure="equalized_odds", **options):
    model = FairGradLGBMClassifier(measure, epsilon=0.0, **SMALL)
    return model.fit(hiring.X, getattr(hiring, y), sensitive_features=hiring.sex, **options)


@pytest.mark.parametrize("y", ["decision", "y", "grade"])
def test_a_saved_model_predicts_the_same(hiring, tmp_path, y):
    model = fit(hiring, y)
    same = load(save(model, tmp_path / "model.txt"))
    np.testing.assert_array_equal(same.predict_proba(hiring.X), model.predict_proba(hiring.X))
    np.testing.assert_array_equal(same.predict(hiring.X), model.predict(hiring.X))
    np.testing.assert_array_equal(same.multipliers_, model.multipliers_)
    np.testing.assert_array_equal(same.levels_, model.levels_)
    assert same.cell_names_ == model.cell_names_
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model.txt",
        "model.txt.fairness.json",
    ]


def test_lightgbm_reads_probabilities_from_its_file_alone(hiring, tmp_path):
    model = fit(hiring)
    save(model, tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_array_equal(booster.predict(hiring.X), model.predict_proba(hiring.X)[:, 1])


def test_training_goes_on_from_files(hiring, tmp_path):
    first = fit(hiring)
    path = save(first, tmp_path / "model.txt")
    goes_on = [fit(hiring, init_model=start) for start in (first, load(path), path, str(path))]
    for model in goes_on:
        assert model.fairness_state_["rounds"] == 40
        np.testing.assert_array_equal(model.multipliers_, goes_on[0].multipliers_)


def test_categories_and_early_stopping_survive(hiring, tmp_path):
    frame = pd.DataFrame(hiring.X, columns=list("abcd")).assign(race=pd.Categorical(hiring.race))
    model = FairGradLGBMClassifier("demographic_parity", **{**SMALL, "n_estimators": 200})
    model.fit(
        frame[:2000],
        hiring.y[:2000],
        sensitive_features=hiring.sex[:2000],
        eval_X=frame[2000:],
        eval_y=hiring.y[2000:],
        eval_sensitive_features=hiring.sex[2000:],
        callbacks=[lightgbm.early_stopping(10, verbose=False)],
    )
    assert model.best_iteration_ < 200
    same = load(save(model, tmp_path / "model.txt"))
    np.testing.assert_array_equal(same.predict_proba(frame), model.predict_proba(frame))


def test_a_plain_model_is_saved_as_well(hiring, tmp_path):
    model = FairGradLGBMClassifier(None, **SMALL).fit(hiring.X, hiring.decision)
    same = load(save(model, tmp_path / "model.txt"))
    np.testing.assert_array_equal(same.predict(hiring.X), model.predict(hiring.X))
    assert same.fairness_state_ is None


def test_files_that_do_not_belong_together(hiring, tmp_path):
    save(fit(hiring), tmp_path / "two.txt")
    save(fit(hiring, "grade"), tmp_path / "three.txt")
    fairness_file(tmp_path / "two.txt").replace(fairness_file(tmp_path / "three.txt"))
    with pytest.raises(ValueError, match="the files are not of one model"):
        load(tmp_path / "three.txt")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "two.txt")


def test_a_file_that_has_changed_is_not_read(hiring, tmp_path):
    path = save(fit(hiring), tmp_path / "model.txt")
    for file in (path, fairness_file(path)):
        whole = file.read_bytes()
        for place in np.linspace(0, len(whole) - 1, 100).astype(int).tolist():
            content = bytearray(whole)
            content[place] = content[place] % 9 + 48  # another letter, or another digit
            if content != whole:
                file.write_bytes(content)
                with pytest.raises(ValueError, match=str(file)):
                    load(path)
        file.write_bytes(whole)
    load(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "other"}', "\x00"])
def test_a_damaged_state_is_refused(hiring, tmp_path, text):
    path = save(fit(hiring), tmp_path / "model.txt")
    fairness_file(path).write_text(text)
    with pytest.raises(ValueError, match="expected the fairness state of a saved model"):
        load(path)


def test_a_newer_format_is_refused(hiring, tmp_path):
    path = save(fit(hiring), tmp_path / "model.txt")
    fairness_file(path).write_text('{"format": "fairgrad.lightgbm", "version": 3}')
    with pytest.raises(ValueError, match="written in version 3 of the format"):
        load(path)


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save(FairGradLGBMClassifier(), tmp_path / "model.txt")
    assert not list(tmp_path.iterdir())
