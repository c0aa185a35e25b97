"""A small problem that all scripts of this folder train on."""

import torch
from torch import nn

from fairgrad.torch import CrossEntropyLoss

N = 200
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
Y = (X[:, 0] > 0).long()
S = (X[:, 1] > 0.3).long()


def make(**settings):
    settings = {"fairness_rate": 0.3, **settings}
    return CrossEntropyLoss(Y, S, settings.pop("measure", "equalized_odds"), **settings)


def linear(**kwargs):
    torch.manual_seed(0)
    return nn.Linear(5, 2, **kwargs)


def state_of(criterion):
    return {name: value.clone() for name, value in criterion.state_dict().items()}


def is_same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def train(model, criterion, steps=10, size=16, seed=0):
    """A plain loop; gives the losses."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(seed + step)
        rows = torch.randperm(N, generator=generator)[:size]
        weight = next(model.parameters())
        optimizer.zero_grad()
        loss = criterion(model(X[rows].to(weight)), Y[rows], S[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().float())
    return torch.stack(losses)
