"""scikit-learn's own checks: all that XGBoost's classifier passes."""

import warnings

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

xgboost = pytest.importorskip("xgboost")

from fairgrad.xgboost import FairGradXGBClassifier  # noqa: E402 - needs xgboost

QUICK = {"n_estimators": 5, "n_jobs": 1}


def checks_of(estimator):
    return [
        pytest.param(model, check, id=getattr(check, "func", check).__name__ + f"-{number}")
        for number, (model, check) in enumerate(estimator_checks_generator(estimator))
    ]


def passes(estimator, check):
    try:
        check(estimator)
    except Exception:  # noqa: BLE001 - whatever a check ends in, it has not passed
        return False
    return True


@pytest.mark.filterwarnings("ignore")  # XGBoost's own, on tables of few rows
@pytest.mark.parametrize(("model", "check"), checks_of(FairGradXGBClassifier(None, **QUICK)))
def test_passes_what_xgboost_passes(model, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = passes(xgboost.XGBClassifier(**QUICK), check)
    if not theirs:
        pytest.skip("XGBoost's own classifier does not pass this check")
    check(model)
