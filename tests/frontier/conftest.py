"""Tables on which groups differ: quick to train on, and fair only at a price."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

torch.set_num_threads(1)


def make_hiring(n, seed, gap=1.0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += gap * (sex == "M")
    y = np.where(X.sum(1) + rng.normal(size=n) > 0.5, "hired", "refused")
    return SimpleNamespace(
        X=pd.DataFrame(X, columns=["skill", "years", "grade", "noise"]),
        y=pd.Series(y, name="decision"),
        sex=pd.Series(sex, name="sex"),
        race=pd.Series(rng.choice(["a", "b"], n), name="race"),
    )


@pytest.fixture(scope="session")
def hiring():
    return make_hiring(3000, seed=0)


@pytest.fixture(scope="session")
def unequal():
    return make_hiring(3000, seed=2, gap=3.0)


@pytest.fixture(scope="session")
def new_people():
    return make_hiring(2000, seed=1)
