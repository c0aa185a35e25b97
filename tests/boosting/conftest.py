"""Tables on which groups differ, with a third attribute to be unknown in places."""

import importlib
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from fairgrad import FairnessWarning


def draw(n, seed=0):
    """Rows of people who apply; those of one sex are judged with more noise."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    race = rng.choice(["a", "b", "c"], n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.5 * (sex == "M")
    X[:, 1] += 0.7 * (race == "a")
    noise = rng.normal(size=n) * np.where(sex == "M", 0.5, 2.0)
    score = X @ [1.0, 1.0, 1.0, 0.0] + noise
    return SimpleNamespace(
        X=X,
        y=(score > np.median(score)).astype(int),
        grade=np.digitize(score, np.quantile(score, [0.4, 0.7])),
        decision=np.where(score > np.median(score), "hired", "refused"),
        sex=sex,
        race=race,
        train=np.arange(n) < 2 * n // 3,
    )


def fitted(model, X, y, s):
    """The model, and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=s)
    assert all(one.filename == __file__ for one in caught)
    return model, [str(one.message) for one in caught if one.category is FairnessWarning]


CLASSIFIERS = {
    "lightgbm": ("FairGradLGBMClassifier", {"verbose": -1}),
    "xgboost": ("FairGradXGBClassifier", {"max_depth": 4}),
}


@pytest.fixture(params=CLASSIFIERS)
def make(request):
    """Makes classifiers of both libraries, with the ``SETTINGS`` of the module that asks."""
    pytest.importorskip(request.param)
    library = importlib.import_module(f"fairgrad.{request.param}")
    name, quiet = CLASSIFIERS[request.param]
    shared = {"n_estimators": 40, "n_jobs": 1, "random_state": 0, **quiet}
    shared |= getattr(request.module, "SETTINGS", {})

    def made(measure="demographic_parity", **changed):
        return getattr(library, name)(measure, **{**shared, **changed})

    made.library = library
    return made


@pytest.fixture(scope="session")
def hiring():
    return draw(3000)


@pytest.fixture(scope="session")
def many():
    """So many rows that what is fair on them is fair, not lucky: a third to learn from."""
    people = draw(30_000, seed=1)
    people.train = np.arange(30_000) < 6_000
    return people
