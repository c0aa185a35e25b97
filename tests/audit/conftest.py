from dataclasses import dataclass

import numpy as np
import pytest


@dataclass
class Drawn:
    y: np.ndarray
    pred: np.ndarray
    s: np.ndarray
    weight: np.ndarray


@pytest.fixture
def draw():
    """Random labels, predictions, groups; every (label, group) cell has rows."""

    def make(seed, n=400, n_labels=2, n_groups=3):
        rng = np.random.default_rng(seed)
        cells = np.arange(n_labels * n_groups)
        y = np.concatenate([cells % n_labels, rng.integers(n_labels, size=n)])
        s = np.concatenate([cells // n_labels, rng.integers(n_groups, size=n)])
        noise = rng.random(len(y)) < 0.2 + 0.1 * s
        pred = np.where(noise, rng.integers(n_labels, size=len(y)), y)
        pred[:n_labels] = np.arange(n_labels)
        return Drawn(y, pred, s, rng.uniform(0.5, 2, len(y)))

    return make
