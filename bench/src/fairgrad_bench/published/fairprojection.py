"""FairProjection (Alghamdi et al., NeurIPS 2022): COMPAS by race, which models may use.

As the authors' code has it: 5,278 African-American and Caucasian defendants, seven columns, 30 %
test rows, the splits 0 to 9. The gap of equalized odds is the mean of the two absolute differences.
Not stated and assumed here: fair models of ours get race as the sensitive value, not as a feature.
The authors' boosting is scikit-learn's, so that fair decisions are also made on this base model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fairgrad_bench.published.ours import OTHER_BASE, our_methods
from fairgrad_bench.published.source import (
    AWARE,
    BASELINE,
    Method,
    Rows,
    Source,
    Split,
    label_gaps,
    largest_gap,
    logistic,
    propublica,
    split_test_first,
)


def table() -> Rows:
    """African-American and Caucasian defendants; race is the group, not a feature."""
    people = propublica()
    people = people[people["race"].isin(["African-American", "Caucasian"])]
    jail = pd.to_datetime(people["c_jail_out"]) - pd.to_datetime(people["c_jail_in"])
    features = {
        "age": people["age"],
        "c_charge_degree": np.where(people["c_charge_degree"] == "F", 1, -1),
        "gender": people["sex"] == "Male",
        "priors_count": people["priors_count"],
        "length_of_stay": jail.dt.days,
    }
    is_caucasian = (people["race"] == "Caucasian").to_numpy().astype(np.int64)
    X = np.column_stack(list(features.values())).astype(np.float64)
    return Rows(X, people["is_recid"].to_numpy(), is_caucasian)


def split(_: str, seed: int) -> Split:
    """The authors' split number `seed`."""
    return split_test_first(table(), seed, 0.3, 0)


def gaps(test: Rows, predicted: Any) -> dict[str, float]:
    """Demographic parity, and the mean gap of the two rates of equalized odds."""
    return {
        "equalized_odds": float(np.mean(label_gaps(test, predicted))),
        "demographic_parity": largest_gap(predicted, test.s),
    }


SOURCE = Source(
    name="fairprojection",
    cells=("COMPAS, race",),
    measures=("equalized_odds", "demographic_parity"),
    seeds=10,
    split=split,
    gaps=gaps,
    methods={
        "logistic regression": Method(logistic, BASELINE, AWARE, uses_measure=False),
        **our_methods(AWARE),
        **our_methods(AWARE, kinds=OTHER_BASE),
    },
)
