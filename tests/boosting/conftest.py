"""A table on which groups differ, with a third attribute to be unknown in places."""

from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="session")
def hiring():
    rng = np.random.default_rng(0)
    n = 3000
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
        train=np.arange(n) < 2000,
    )
