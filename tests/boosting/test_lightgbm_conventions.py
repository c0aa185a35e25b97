"""scikit-learn's own checks: all that LightGBM's classifier passes."""

import warnings

import pytest
from lightgbm import LGBMClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from fairgrad.lightgbm import FairGradLGBMClassifier

QUICK = {"n_estimators": 10, "min_child_samples": 1, "n_jobs": 1, "verbose": -1}


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


@pytest.mark.filterwarnings("ignore")  # LightGBM's own, on tables of few rows
@pytest.mark.parametrize(("model", "check"), checks_of(FairGradLGBMClassifier(None, **QUICK)))
def test_passes_what_lightgbm_passes(model, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = passes(LGBMClassifier(**QUICK), check)
    if not theirs:
        pytest.skip("LightGBM's own classifier does not pass this check")
    check(model)
