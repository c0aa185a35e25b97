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

from fairgrad_bench.published.loops import Loop, epochs, loop_methods, network
from fairgrad_bench.published.ours import our_methods
from fairgrad_bench.published.source import (
    AWARE,
    Rows,
    Source,
    Split,
    rates,
    read_table,
    split_test_first,
)

EPOCHS = 8


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
    return split_test_first(table(), seed, 0.2, 0.2)


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


LOOP = Loop(
    partial(network, dropout=0.2),
    partial(torch.optim.AdamW, lr=1e-4, weight_decay=0.01),
    partial(epochs, size=512, count=EPOCHS),
)

SOURCE = Source(
    name="abcfair",
    cells=("ACSIncome, sex",),
    measures=("demographic_parity", "equality_of_opportunity"),
    seeds=5,
    split=split,
    gaps=gaps,
    methods={
        **our_methods(epsilons=(None, 0.0)),
        **{f"{name}, aware": method for name, method in our_methods(AWARE, (0.0,)).items()},
        **loop_methods(LOOP),
    },
)
