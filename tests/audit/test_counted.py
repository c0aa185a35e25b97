"""Audits of counts are the audits of the rows, to the last digit, and audits of parts add up."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad.audit import Audit

N = 400


def people(seed, *, labels=("no", "yes"), missing=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], N),
            "age": rng.choice(["young", "middle", "old"], N, p=[0.6, 0.3, 0.1]),
            "y": rng.choice(labels, N),
        }
    ).astype(object)
    copied = rng.random(N) < 0.7
    frame["h"] = np.where(copied, frame["y"], rng.choice(labels, N))
    frame["b"] = np.where(rng.random(N) < 0.8, frame["h"], rng.choice(labels, N))
    # Quarters: their sums are exact in any order.
    frame["w"] = rng.integers(0, 9, N) / 4
    if missing:
        frame.loc[rng.random(N) < 0.1, "sex"] = None
        frame.loc[rng.random(N) < 0.1, "age"] = None
    return frame


def counted(frame):
    """One row per combination, as a database would count."""
    keys = ["sex", "age", "y", "h", "b"]
    grouped = frame.assign(w2=frame["w"] ** 2).groupby(keys, dropna=False)
    counts = grouped.agg(count=("w", "size"), w=("w", "sum"), w2=("w2", "sum")).reset_index()
    return counts.sample(frac=1.0, random_state=0)


def both(frame, *, weights=False, baseline=False, known=True, attributes=("sex", "age"), **options):
    rows = Audit(
        frame["y"] if known else None,
        frame["h"],
        frame[list(attributes)],
        sample_weight=frame["w"] if weights else None,
        baseline=frame["b"] if baseline else None,
        **options,
    )
    own = {"weight": "w", "squared_weight": "w2"} if weights else {}
    counts = Audit.from_counts(
        counted(frame),
        "y" if known else None,
        "h",
        list(attributes),
        baseline="b" if baseline else None,
        **own,
        **options,
    )
    return rows, counts


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    labels=st.sampled_from([("no", "yes"), (0, 1), ("a", "b", "c")]),
    weights=st.booleans(),
    baseline=st.booleans(),
    missing=st.booleans(),
    known=st.booleans(),
)
def test_counts_are_audited_as_their_rows_to_the_last_digit(
    seed, labels, weights, baseline, missing, known
):
    frame = people(seed, labels=labels, missing=missing)
    options = {"min_group": 10, "y_desirable": labels[1]}
    rows, counts = both(frame, weights=weights, baseline=baseline, known=known, **options)
    assert counts.to_dict() == rows.to_dict()
    assert counts.summary() == rows.summary()


@pytest.mark.parametrize("weights", [False, True])
def test_counts_of_parts_add_up(weights):
    frame = people(1, missing=True)
    whole, _ = both(frame, weights=weights, baseline=True)
    parts = [
        both(frame.iloc[start::3], weights=weights, baseline=True)[0].to_counts()
        for start in range(3)
    ]
    named = {"weight": "weight", "squared_weight": "squared_weight"} if weights else {}
    added = Audit.from_counts(
        pd.concat(parts), "y", "prediction", ["sex", "age"], baseline="baseline", **named
    )
    assert added.to_dict() == whole.to_dict()


def test_counts_without_labels():
    whole = both(people(9), baseline=True, known=False)[0]
    assert list(whole.to_counts()) == ["sex", "age", "h", "baseline", "count"]


def test_counts_go_out_and_come_back():
    frame = people(3, missing=True)
    rows, _ = both(frame, weights=True, baseline=True)
    counts = rows.to_counts()
    assert counts["count"].sum() == N
    again = Audit.from_counts(
        counts,
        "y",
        "prediction",
        ["sex", "age"],
        baseline="baseline",
        weight="weight",
        squared_weight="squared_weight",
    )
    assert again.to_dict() == rows.to_dict()


def test_names_of_columns_may_be_taken():
    frame = people(5).rename(columns={"sex": "count", "y": "prediction"})
    audit = Audit(frame["prediction"], frame["h"], frame[["count", "age"]])
    assert list(audit.to_counts()) == ["count", "age", "prediction", "prediction_", "count_"]


def test_a_billion_rows():
    counts = counted(people(6))
    counts["count"] *= 10**9
    audit = Audit.from_counts(counts, "y", "h", "sex")
    assert audit.table.n_rows == N * 10**9
    assert audit.verdict != "undecided"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "z"}, "target: got 'z', which is not a column of counts; the columns are"),
        ({"sensitive_features": []}, "sensitive_features: expected at least one column"),
        ({"count": "w"}, "count: expected whole numbers of rows, got"),
        ({"weight": "w"}, "squared_weight: expected a column"),
        ({"squared_weight": "w2"}, "weight: expected a column"),
        ({"count": "y"}, "count: expected numbers of at least 0, got '(no|yes)' in 'y'"),
        ({"y_score": [0.5]}, "y_score: expected None"),
    ],
)
def test_wrong_counts_are_refused(change, message):
    given = {"target": "y", "prediction": "h", "sensitive_features": "sex"} | change
    with pytest.raises(ValueError, match=message):
        Audit.from_counts(counted(people(7)), **given)


def test_no_rows_and_no_frame_are_refused():
    none = counted(people(7)).assign(count=0)
    with pytest.raises(ValueError, match="count: expected some rows, got none"):
        Audit.from_counts(none, "y", "h", "sex")
    with pytest.raises(TypeError, match="counts: expected a frame .* got a dict"):
        Audit.from_counts({}, "y", "h", "sex")
