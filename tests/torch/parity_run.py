"""Trains a linear model on fixed data with whichever fairgrad is on the path; prints JSON.

Run in a separate process: fairgrad 0.2.0 and this package have the same import name.
"""

import json
import sys

import numpy as np
import torch
from torch import nn

from fairgrad.torch import CrossEntropyLoss

STEPS = 50


def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 4, generator=generator)
    s = (x[:, 0] + 0.5 * torch.randn(300, generator=generator) > 0.3).long()
    y = (x[:, 1] + x[:, 0] * s + 0.5 * torch.randn(300, generator=generator) > 0).long()
    return x, y, s


def run(measure, epsilon):
    x, y, s = data()
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    criterion = CrossEntropyLoss(
        y_train=y, s_train=s, fairness_measure=measure, epsilon=epsilon, fairness_rate=0.3
    )
    losses, weights = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = criterion(model(x), y, s, mode="train")
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        weights.append(cell_weights_times_shares(criterion, measure, y))
    return {"losses": losses, "weights": weights}


def cell_weights_times_shares(criterion, measure, y):
    if hasattr(criterion, "step_groupwise_weights"):  # 0.2.0
        weights = np.asarray(criterion.step_groupwise_weights[-1])
        return (weights[:1] if measure == "accuracy_parity" else weights).ravel().tolist()
    share = criterion.groups.cell_mass(criterion.constraints.by_label) / len(y)
    return (criterion.cell_weights.numpy() * share).tolist()


if __name__ == "__main__":
    measures = ["accuracy_parity", "equal_odds", "equal_opportunity", "demographic_parity"]
    print(json.dumps({measure: run(measure, float(sys.argv[1])) for measure in measures}))  # noqa: T201
