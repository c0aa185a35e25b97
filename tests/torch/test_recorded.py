"""Training with fixed seeds gives the figures it gave before the method became one function."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fairgrad.torch import CrossEntropyLoss

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("case", RECORDED)
def test_two_hundred_steps(case, compiled):
    measure, *numbers = case.split()
    epsilon, proportional_rate, error_memory = map(float, numbers)
    rng = np.random.default_rng(0)
    s = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 4)) + np.outer(s, [0.7, 0, 0, -0.3])
    score = X @ [1.0, 0.5, -0.5, 0.2] + rng.normal(size=600)
    y = np.digitize(score, np.quantile(score, [0.5]))
    x, y, s = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y), torch.as_tensor(s)
    torch.manual_seed(0)
    network = torch.nn.Linear(4, 2)
    criterion = CrossEntropyLoss(
        y,
        s,
        measure,
        fairness_rate=0.05,
        epsilon=epsilon,
        proportional_rate=proportional_rate,
        error_memory=error_memory,
    )
    criterion.state.is_compiled &= compiled
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        rows = torch.randint(0, 600, (64,), generator=generator)
        optimizer.zero_grad()
        loss = criterion(network(x[rows]), y[rows], s[rows])
        loss.backward()
        optimizer.step()
    found = {
        "loss": loss.item(),
        "multipliers": criterion.multipliers,
        "weights": criterion.cell_weights,
        "levels": criterion.levels,
        "bias": network.bias.detach(),
    }
    for name, expected in RECORDED[case].items():
        np.testing.assert_allclose(found[name], expected, rtol=2e-4, atol=2e-5, err_msg=name)
