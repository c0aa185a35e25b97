"""LinearPost (Xian and Zhao): many labels; Communities and Crime, five crime rates by four races.

As the authors have it: five bins of the crime rate as labels, the largest minority of a community
as its group ("white" above 95 %), columns with missing values left out, 30 % test rows, and a tenth
of the rest for post-processing. Our estimators learn from all rows but the test's. The gap is the
largest difference of two groups' shares of one label. Assumed: seeds that count from 33 as in the
authors' notebooks, standardized features, and that a blind model sees neither the group nor the
three columns that define it. ACSIncome with five classes and BiasBios are left out: income and
biographies are not at hand.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from fairgrad_bench.published.ours import our_methods
from fairgrad_bench.published.source import (
    BASELINE,
    Method,
    Rows,
    Source,
    Split,
    largest_gap,
    logistic,
    read_table,
    split_test_first,
)

FIRST_SEED = 33
GROUPS = ("racePctHisp", "racePctAsian", "racepctblack")


def table() -> Rows:
    """All communities."""
    communities = read_table("communities_crime.csv.gz", na_values="?")
    communities = communities.drop(columns=["communityname", "state", "county"]).dropna(axis=1)
    crime = pd.cut(communities["ViolentCrimesPerPop"], 5).cat.codes.to_numpy()
    group = communities[list(GROUPS)].to_numpy().argmax(axis=1)
    group[communities["racePctWhite"] > 0.95] = len(GROUPS)
    X = communities.drop(columns=["ViolentCrimesPerPop", "fold", *GROUPS])
    return Rows(StandardScaler().fit_transform(X), crime.astype(np.int64), group)


def split(_: str, seed: int) -> Split:
    """70 % to learn from, a tenth of it for post-processing, and 30 % test rows."""
    return split_test_first(table(), FIRST_SEED + seed, 0.3, 0.1)


def gaps(test: Rows, predicted: Any) -> dict[str, float]:
    """The largest gap of any label."""
    return {
        "demographic_parity": max(largest_gap(predicted == y, test.s) for y in np.unique(test.y))
    }


def one_label(split: Split, _: str, __: int) -> Any:
    """The most frequent label for everybody, which is fair."""
    return np.full(len(split.test.y), np.bincount(split.train.y).argmax())


SOURCE = Source(
    name="linearpost",
    cells=("Communities, race",),
    measures=("demographic_parity",),
    seeds=5,
    split=split,
    gaps=gaps,
    methods={
        "logistic regression": Method(
            partial(logistic, features=attrgetter("X")), BASELINE, uses_measure=False
        ),
        "one label for everybody": Method(one_label, BASELINE, uses_measure=False),
        **our_methods(),
    },
)
