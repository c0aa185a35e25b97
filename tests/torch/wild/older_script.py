"""A script for fairgrad 0.2.0; run with it and with this package, it prints the same.

It uses every public name of 0.2.0, and arguments without names as they were in order there.
"""

import json

import numpy as np
import torch
from torch import nn

import fairgrad
from fairgrad.fairness_functions import (
    NAMES,
    AccuracyParity,
    DemographicParity,
    EqualityOpportunity,
    EqualizedOdds,
    FairnessMeasure,
    instantiate_fairness,
)
from fairgrad.torch import CrossEntropyLoss
from fairgrad.torch.cross_entropy import CrossEntropyLoss as FromItsModule
from fairgrad.torch.fairness_loss import FairnessLoss

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4)).astype(np.float32)
Y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
S = rng.integers(0, 3, size=400)
MANY = rng.integers(0, 5, size=400)


def error_of(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001 - which one is what is printed
        return type(error).__name__
    return "no error"


def measures():
    """The measures' tables, and the levels of predictions."""
    found = {}
    predicted = rng.integers(0, 5, size=400)
    for kind in (EqualizedOdds, AccuracyParity, EqualityOpportunity, DemographicParity):
        is_binary = kind is DemographicParity
        y = Y if is_binary else MANY
        desirable = np.array([0, 1] if is_binary else [0, 2, 3])
        measure = instantiate_fairness(kind, y, S, desirable)
        levels = measure.groupwise(predicted % (2 if is_binary else 5), y, S)
        found[kind.__name__] = [
            np.asarray(part, dtype=float).tolist()
            for part in (measure.C, measure.C0, measure.P, measure.y_unique, measure.s_unique)
        ]
        found[kind.__name__].append(levels.tolist())
        assert isinstance(measure, FairnessMeasure)
        assert instantiate_fairness(measure) is measure
    for name in NAMES:
        measure = instantiate_fairness(name, Y, S, [1])
        found[name] = measure.groupwise(X[:, :2], Y, S).tolist()  # of scores
    found["errors"] = [
        error_of(lambda: instantiate_fairness("dummy_parity", Y, S)),
        error_of(lambda: instantiate_fairness(22, Y, S)),
        error_of(lambda: instantiate_fairness(EqualizedOdds, None, S)),
        error_of(lambda: instantiate_fairness(EqualizedOdds, Y, None)),
        error_of(lambda: instantiate_fairness(EqualityOpportunity, Y, S, [0, 5])),
    ]
    return found


def losses():
    """Three steps on all rows with each way to make a loss, and the levels at the end."""
    made = [
        CrossEntropyLoss("mean", "equal_odds", Y, S, [1], 0.01, 0.2),
        FromItsModule("sum", "accuracy_parity", torch.tensor(Y), torch.tensor(S), [1], 0.01, 0.2),
        FairnessLoss(nn.CrossEntropyLoss, "mean", EqualizedOdds, Y, S, [1], 0.01, 0.2),
        FairnessLoss(nn.CrossEntropyLoss, "none", "equal_opportunity", Y, S, [1], 0.01),
        FairnessLoss(
            nn.CrossEntropyLoss,
            fairness_measure=instantiate_fairness("demographic_parity", Y, S),
            epsilon=0.01,
            fairness_rate=0.1,
            label_smoothing=0.1,
        ),
    ]
    found = []
    x, y, s = torch.tensor(X), torch.tensor(Y), torch.tensor(S)
    for criterion in made:
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(3):
            model.train()
            optimizer.zero_grad()
            loss = criterion(model(x), y, s, "train")
            loss.mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            found.append(loss.mean().item())
        model.eval()
        with torch.no_grad():
            output = model(x)
        found.append(criterion(output, y, s, mode="eval").mean().item())
        levels = criterion.fairness_function.groupwise(output.detach().numpy(), Y, S)
        found.append(float(np.mean(np.abs(levels))))
    return found


if __name__ == "__main__":
    assert isinstance(fairgrad.__version__, str)
    print(json.dumps({"measures": measures(), "losses": losses()}))  # noqa: T201 - for the test
