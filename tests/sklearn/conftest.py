"""A table on which groups differ, as a data frame with string labels and sensitive values."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def hiring():
    rng = np.random.default_rng(0)
    n = 1500
    sex = rng.choice(["F", "M"], n)
    race = rng.choice(["a", "b", "c"], n)
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0]
    X[:, 0] += sex == "M"
    score = X @ [1.0, 0.1, 10.0, 0.0] + rng.normal(size=n)
    y = np.where(score > np.median(score), "hired", "refused")
    frame = pd.DataFrame(X, columns=["skill", "years", "grade", "noise"])
    return SimpleNamespace(
        X=frame,
        y=pd.Series(y, name="decision"),
        sex=pd.Series(sex, name="sex"),
        race=pd.Series(race, name="race"),
    )
