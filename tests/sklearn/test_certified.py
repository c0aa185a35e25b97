"""Estimators that are certified to be fair on new people, or not fitted at all."""

import numpy as np
import pandas as pd
import pytest

from fairgrad.evaluate import fairness_levels
from fairgrad.persistence import load, save
from fairgrad.sklearn import FairGradClassifier
from fairgrad.usefulness import FairnessWarning


def people(n, seed, gap=1.0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    X = rng.normal(size=(n, 3)) + np.outer(sex == "M", [gap, 0.0, 0.0])
    y = np.where(X.sum(1) + rng.normal(size=n) > 0.5, "hired", "refused")
    return pd.DataFrame(X, columns=["a", "b", "c"]), y, pd.Series(sex, name="sex")


CERTIFIED = FairGradClassifier("demographic_parity", certify=0.95, tolerance=0.1, random_state=0)


@pytest.fixture(scope="module")
def model():
    X, y, sex = people(20_000, 0)
    return FairGradClassifier(**CERTIFIED.get_params()).fit(X, y, sensitive_features=sex)


def test_what_is_certified_is_fair_on_new_people(model):
    found = model.certificate_
    assert found["certified"]
    assert found["fresh_rows"] == 4000
    assert "Certified with 95 % confidence" in found["sentence"]
    X, y, sex = people(200_000, 1)
    levels = fairness_levels(y, model.predict(X), sex, "demographic_parity")
    assert np.abs(levels.values).max() <= 0.1
    assert model.epsilon == "auto"
    assert model.epsilon_ in {0.0, 0.025, 0.05, 0.075, 0.1}


def test_a_certificate_is_saved_with_its_model(model, tmp_path):
    again = load(save(model, tmp_path / "model.fairgrad"))
    assert again.certificate_ == model.certificate_


def test_too_few_rows_give_no_model():
    X, y, sex = people(400, 2)
    model = FairGradClassifier(**CERTIFIED.get_params())
    with pytest.raises(ValueError, match=r"Not certified with 95 % confidence: undecided.* more"):
        model.fit(X, y, sensitive_features=sex)
    assert not hasattr(model, "classes_")


def test_sensitive_values_may_be_columns_and_features():
    X, y, sex = people(20_000, 3)
    aware = FairGradClassifier(**CERTIFIED.get_params())
    aware.set_params(use_sensitive=True, sensitive_columns="sex")
    aware.fit(X.assign(sex=sex), y)
    assert aware.certificate_["certified"]
    assert len(aware.predict(X.assign(sex=sex))) == 20_000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"certify": 1.5}, "certify: expected"),
        ({"fairness_measure": None}, "certify: expected a fair model.* got fairness_measure=None"),
        ({"warm_start": True}, "certify: expected a fair model.* got warm_start=True"),
    ],
)
def test_what_cannot_be_certified(settings, message):
    X, y, sex = people(300, 4)
    model = FairGradClassifier(**{**CERTIFIED.get_params(), **settings})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=sex)


def test_rows_to_judge_on_are_its_own():
    X, y, sex = people(300, 5)
    model = FairGradClassifier(**CERTIFIED.get_params())
    with pytest.raises(ValueError, match="validation: not with certify"):
        model.fit(X, y, sensitive_features=sex, validation=(X, y, sex))
    with pytest.raises(ValueError, match="certify: rows that come bit by bit"):
        model.partial_fit(X, y, sensitive_features=sex)


def test_a_certificate_that_costs_much_says_so():
    """Features tell the groups apart: a blind model is fair if it tells hardly anybody apart."""
    X, y, sex = people(20_000, 4, gap=4.0)
    expected = r"Fairness costs \d+\.\d points of accuracy"
    with pytest.warns(FairnessWarning, match=expected) as caught:
        model = FairGradClassifier(**CERTIFIED.get_params()).fit(X, y, sensitive_features=sex)
    assert [one.filename for one in caught] == [__file__]  # once, where the user fits
    assert model.certificate_["certified"]
