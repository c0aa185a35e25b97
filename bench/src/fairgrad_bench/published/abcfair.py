"""ABCFair (Defrance et al., NeurIPS 2024): ACSIncome of the United States by sex.

As the authors' code has it: the features COW (categories), SCHL, OCCP and WKHP (standardized), 64 %
training, 16 % validation and 20 % test rows, three hidden layers with dropout 0.2, AdamW. The gap
is the largest relative difference of a group's rate from the overall rate. Differences: 40 % of the
rows are at hand (665,800 of 1,664,500), and networks train for `EPOCHS` instead of 40 epochs,
because one core is at hand. Epsilon limits differences, not ratios: at a selection rate of .37, a
ratio within .01 needs an epsilon below .004.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from torch import nn

from fairgrad.torch import BCEWithLogitsLoss
from fairgrad_bench.published.ours import our_methods
from fairgrad_bench.published.source import (
    AWARE,
    BASELINE,
    Method,
    Rows,
    Source,
    Split,
    rates,
    read_table,
)

EPOCHS, BATCH = 8, 512


@lru_cache(maxsize=1)
def table() -> Rows:
    """All people at hand."""
    people = read_table("acs_income_us_2018_subset.parquet")
    numbers = people[["SCHL", "OCCP", "WKHP"]].astype(np.float64)
    numbers = (numbers - numbers.mean()) / numbers.std()
    X = np.column_stack([numbers, pd.get_dummies(people["COW"])]).astype(np.float32)
    label = people["PINCP_gt_50000"].to_numpy().astype(np.int64)
    return Rows(X, label, people["SEX"].to_numpy().astype(np.int64) - 1)


def split(_: str, seed: int) -> Split:
    """64 %, 16 % and 20 %."""
    rows = table()
    rest, test = train_test_split(np.arange(len(rows.y)), test_size=0.2, random_state=seed)
    train, validation = train_test_split(rest, test_size=0.2, random_state=seed)
    return Split(rows.take(train), rows.take(validation), rows.take(test))


def gaps(test: Rows, predicted: Any) -> dict[str, float]:
    """How far the rate of a group is from the overall rate, relative to it."""
    is_positive = test.y == 1
    return {
        "demographic_parity": _violation(predicted, test.s),
        "equality_of_opportunity": _violation(predicted[is_positive], test.s[is_positive]),
    }


def _violation(selected: Any, s: Any) -> float:
    overall = selected.mean()
    return float(np.abs(rates(selected, s) / overall - 1).max()) if overall > 0 else 0.0


def train_network(loss_of: str, split: Split, measure: str, seed: int) -> Any:
    """The authors' loop with the plain loss or ours."""
    torch.manual_seed(seed)
    X, y, s = (torch.as_tensor(part) for part in split.train)
    layers: list[nn.Module] = []
    width = X.shape[1]
    for hidden in (512, 256, 64):
        layers += [nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(0.2)]
        width = hidden
    model = nn.Sequential(*layers, nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    plain = nn.BCEWithLogitsLoss()
    fair = BCEWithLogitsLoss(y, s, measure) if loss_of == "ours" else None
    for _ in range(EPOCHS):
        order = torch.randperm(len(y))
        for start in range(0, len(y), BATCH):
            rows = order[start : start + BATCH]
            optimizer.zero_grad()
            score = model(X[rows]).squeeze(1)
            loss = (
                plain(score, y[rows].float())
                if fair is None
                else fair(score, y[rows].float(), s[rows])
            )
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        found = model(torch.as_tensor(split.test.X)).squeeze(1) > 0
    return found.numpy().astype(np.int64)


SOURCE = Source(
    name="abcfair",
    title="ABCFair, ACSIncome of the United States by sex",
    cells=("ACSIncome, sex",),
    measures=("demographic_parity", "equality_of_opportunity"),
    seeds=5,
    split=split,
    gaps=gaps,
    methods={
        **our_methods(epsilons=(None, 0.0)),
        **{f"{name}, aware": method for name, method in our_methods(AWARE, (0.0,)).items()},
        "network": Method(partial(train_network, "theirs"), BASELINE, uses_measure=False),
        "network, our loss": Method(partial(train_network, "ours"), is_default=True),
    },
)
