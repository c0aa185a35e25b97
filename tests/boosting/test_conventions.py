"""scikit-learn's own checks: all that the classifiers of LightGBM and XGBoost pass."""

import warnings

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: E402 - needs lightgbm
from fairgrad.xgboost import FairGradXGBClassifier  # noqa: E402 - needs xgboost

LGBM = {"n_estimators": 10, "min_child_samples": 1, "n_jobs": 1, "verbose": -1}
XGB = {"n_estimators": 5, "n_jobs": 1}
PAIRS = [
    (FairGradLGBMClassifier(None, **LGBM), lightgbm.LGBMClassifier(**LGBM)),
    (FairGradXGBClassifier(None, **XGB), xgboost.XGBClassifier(**XGB)),
]
CHECKS = [
    pytest.param(
        model,
        theirs,
        check,
        id=f"{type(theirs).__name__}-{getattr(check, 'func', check).__name__}-{n}",
    )
    for ours, theirs in PAIRS
    for n, (model, check) in enumerate(estimator_checks_generator(ours))
]


def passes(estimator, check):
    try:
        check(estimator)
    except Exception:  # noqa: BLE001 - whatever a check ends in, it has not passed
        return False
    return True


@pytest.mark.filterwarnings("ignore")  # the libraries' own, on tables of few rows
@pytest.mark.parametrize(("model", "theirs", "check"), CHECKS)
def test_passes_what_the_library_s_own_classifier_passes(model, theirs, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not passes(clone(theirs), check):
            pytest.skip("the library's own classifier does not pass this check")
    check(model)
