"""What the two boosted classifiers share: eval sets and arguments."""

import inspect

import numpy as np
import pytest

from fairgrad.boosting.estimator import FAIRNESS_PARAMETERS

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: E402 - needs lightgbm
from fairgrad.xgboost import FairGradXGBClassifier  # noqa: E402 - needs xgboost

SMALL = {"n_estimators": 20, "n_jobs": 1}


def fair(library, *arguments, **settings):
    if library == "lightgbm":
        return FairGradLGBMClassifier(*arguments, **{**SMALL, "verbose": -1, **settings})
    return FairGradXGBClassifier(*arguments, **{**SMALL, **settings})


both = pytest.mark.parametrize("library", ["lightgbm", "xgboost"])


@both
def test_an_eval_set_with_an_unknown_label(hiring, library):
    with pytest.raises(ValueError, match="previously unseen labels"):
        fair(library).fit(
            hiring.X,
            hiring.y,
            sensitive_features=hiring.sex,
            eval_set=[(hiring.X[:2], np.array([0, 7]))],
        )


@both
def test_a_single_group_is_refused_by_the_name_of_the_argument(hiring, library):
    with pytest.raises(ValueError, match="^sensitive_features: fairness compares at least two"):
        fair(library).fit(hiring.X, hiring.y, sensitive_features=np.full(3000, "F"))


@both
def test_every_argument_is_explained(library):
    words = inspect.getdoc(type(fair(library)))
    assert "{" not in words.partition("Example:")[0]
    for name in (*FAIRNESS_PARAMETERS, "levels_", "cell_names_"):
        assert f"\n    {name}: " in words


@both
def test_a_plain_model_shows_itself_in_a_notebook(hiring, library):
    model = fair(library, None).fit(hiring.X, hiring.y)
    assert "Level of each group" not in model._repr_mimebundle_()["text/html"]
    assert (
        "Level of each group"
        in (
            fair(library)
            .fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
            ._repr_mimebundle_()["text/html"]
        )
    )
