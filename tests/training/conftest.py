"""Small tables on which groups differ."""

import numpy as np
import pytest
import torch

from fairgrad.training import TrainingTable

torch.set_num_threads(1)


def _make_data(n=300, n_labels=2, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    X = rng.normal(size=(n, n_features)) + 0.7 * s[:, None]
    score = X.sum(1) + rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_labels + 1)[1:-1]))
    return X.astype(np.float32), y, s


@pytest.fixture(scope="session")
def make_data():
    return _make_data


@pytest.fixture(scope="session")
def data():
    return _make_data()


@pytest.fixture(scope="session")
def exact_table():
    """In double precision, so that the order of sums does not show."""
    return TrainingTable.from_data(*_make_data(240), dtype=torch.float64)


@pytest.fixture(scope="session")
def table(data):
    return TrainingTable.from_data(*data)
