"""Small networks and data in which the groups differ."""

import numpy as np
import pytest
import torch
from torch import nn


class Counting(nn.Module):
    """A network that counts how often it is run."""

    def __init__(self, n_inputs=6, n_hidden=8, n_outputs=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_inputs, n_hidden), nn.ReLU(), nn.Dropout(0.5))
        self.classifier = nn.Linear(n_hidden, n_outputs)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.classifier(self.body(x))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Counting()


@pytest.fixture
def make_network():
    def make(**sizes):
        torch.manual_seed(0)
        return Counting(**sizes)

    return make


@pytest.fixture
def rows():
    """Features, labels and groups: the second group has more positive labels."""
    return biased_rows(1200, seed=0)


@pytest.fixture
def make_rows():
    return biased_rows


def biased_rows(n, seed, n_labels=2):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    X[:, 0] += 1.2 * s
    score = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, n_labels + 1)[1:-1])
    return X, np.searchsorted(edges, score), s
