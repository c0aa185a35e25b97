"""A table with strings, numbers, unknown sensitive values and something to be unfair about."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def hiring():
    rng = np.random.default_rng(0)
    n = 800
    sex = pd.Series(rng.choice(["F", "M"], n), name="sex")
    X = rng.normal(size=(n, 3))
    X[:, 0] += sex == "M"
    town = rng.choice(["Åbo", "Łódź", "東京"], n)
    y = pd.Series(np.where(X.sum(1) + rng.normal(size=n) > 0.5, "hired", "refused"), name="outcome")
    race = pd.Series(rng.choice(["a", "b"], n), name="race").where(rng.random(n) > 0.1)
    return SimpleNamespace(
        X=pd.DataFrame(X, columns=["skill", "years", "grade"]),
        table=pd.DataFrame(X, columns=["skill", "years", "grade"]).assign(town=town),
        y=y,
        sex=sex,
        both=pd.DataFrame({"sex": sex, "race": race}),
    )
