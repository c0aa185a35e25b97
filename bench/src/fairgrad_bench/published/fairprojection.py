"""FairProjection (Alghamdi et al., NeurIPS 2022): COMPAS by race, which models may use.

As the authors' code has it: 5,278 African-American and Caucasian defendants, seven columns, 30 %
test rows, the splits 0 to 9. The gap of equalized odds is the mean of the two absolute differences.
Not stated and assumed here: fair models of ours get race as the sensitive value, not as a feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from fairgrad_bench.published.ours import our_methods
from fairgrad_bench.published.source import (
    AWARE,
    BASELINE,
    Method,
    Rows,
    Source,
    Split,
    largest_gap,
    read_table,
)


def table() -> Any:
    """The authors' table: label first, race second, then the features."""
    people = read_table("compas-scores-two-years.csv.gz", index_col=0).copy()
    people = people[
        people["days_b_screening_arrest"].between(-30, 30)
        & (people["is_recid"] != -1)
        & (people["c_charge_degree"] != "O")
    ]
    jail = pd.to_datetime(people["c_jail_out"]) - pd.to_datetime(people["c_jail_in"])
    found = pd.DataFrame(
        {
            "is_recid": people["is_recid"],
            "race": (people["race"] == "Caucasian").astype(int),
            "age": people["age"],
            "c_charge_degree": np.where(people["c_charge_degree"] == "F", 1, -1),
            "gender": (people["sex"] == "Male").astype(int),
            "priors_count": people["priors_count"],
            "length_of_stay": jail.dt.days,
        }
    )
    is_kept = people["race"].isin(["African-American", "Caucasian"])
    return found.loc[is_kept.to_numpy()]


def split(_: str, seed: int) -> Split:
    """The authors' split number `seed`."""
    parts = train_test_split(table(), test_size=0.3, random_state=seed)
    rows = [
        Rows(
            part.iloc[:, 2:].to_numpy(np.float64),
            part["is_recid"].to_numpy(),
            part["race"].to_numpy(),
        )
        for part in parts
    ]
    return Split(rows[0], None, rows[1])


def gaps(test: Rows, predicted: Any) -> dict[str, float]:
    """Demographic parity, and the mean gap of the two rates of equalized odds."""
    of_label = [largest_gap(predicted[test.y == y], test.s[test.y == y]) for y in (0, 1)]
    return {
        "equalized_odds": float(np.mean(of_label)),
        "demographic_parity": largest_gap(predicted, test.s),
    }


def logistic(split: Split, _: str, __: int) -> Any:
    """The authors' unconstrained model, with race among the features."""
    model = LogisticRegression(random_state=42, max_iter=10000)
    model.fit(np.column_stack([split.train.X, split.train.s]), split.train.y)
    return model.predict(np.column_stack([split.test.X, split.test.s]))


SOURCE = Source(
    name="fairprojection",
    title="FairProjection, COMPAS by race",
    cells=("COMPAS, race",),
    measures=("equalized_odds", "demographic_parity"),
    seeds=10,
    split=split,
    gaps=gaps,
    methods={
        "logistic regression": Method(logistic, BASELINE, AWARE, uses_measure=False),
        **our_methods(AWARE),
    },
)
