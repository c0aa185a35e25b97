"""The search for subgroups against all conjunctions, one by one, and its promise on fair data."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad.audit import Audit
from fairgrad.audit.subgroups import search
from fairgrad.splitting import hold_out


def every_quality(columns, hit, k, least, noise):
    """The quality of every conjunction, best first."""
    found = []
    for depth in range(1, k + 1):
        for chosen in combinations(range(len(columns)), depth):
            for values in product(*(sorted(set(columns[c].tolist()) - {-1}) for c in chosen)):
                rows = np.logical_and.reduce(
                    [columns[c] == v for c, v in zip(chosen, values, strict=True)]
                )
                if rows.sum() >= least:
                    gap = abs(hit[rows].mean() - hit.mean())
                    found.append(gap - noise / np.sqrt(rows.sum()))
    return sorted(found, reverse=True)


@settings(max_examples=80, deadline=None)
@given(
    data=st.data(),
    n_columns=st.integers(1, 4),
    k=st.integers(1, 3),
    least=st.integers(1, 6),
    noise=st.sampled_from([0.0, 0.2, 1.0]),
    most=st.integers(1, 8),
)
def test_the_best_conjunctions_are_found_exactly(data, n_columns, k, least, noise, most):
    n = data.draw(st.integers(6, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    columns = [rng.integers(-1, rng.integers(1, 4), size=n) for _ in range(n_columns)]
    hit = rng.random(n) < 0.3 + 0.5 * (columns[0] == 0)
    found = search(columns, hit, k=k, least=least, noise=noise, most=most)
    expected = every_quality(columns, hit, k, least, noise)[:most]
    np.testing.assert_allclose([one.quality for one in found], expected, atol=1e-12)
    for quality, conditions in found:
        rows = np.logical_and.reduce([columns[c] == v for c, v in conditions.items()])
        gap = abs(hit[rows].mean() - hit.mean())
        assert quality == pytest.approx(gap - noise / np.sqrt(rows.sum()))


def made(seed, effect, n=4000):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "east"], n),
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["a", "b", "c", "d"], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "job"] = None
    sex = pd.Series(rng.choice(["F", "M"], n), name="sex")
    y = rng.integers(2, size=n)
    hurt = ((sex == "F") & (frame["region"] == "south") & (frame["age"] < 30)).to_numpy()
    pred = np.where(rng.random(n) < np.where(hurt, 0.85 - effect, 0.85), y, 1 - y)
    return Audit(y, pred, sex, measures="accuracy_parity"), frame


def test_a_hidden_subgroup_is_found_and_confirmed():
    audit, frame = made(0, effect=0.5, n=6000)
    found = audit.worst_subgroups(frame)
    first = found.subgroups[0]
    conditions = dict(first.conditions)
    assert conditions.pop("age") == "18 to 30"
    assert conditions == {"sex": "F", "region": "south"}
    assert first.is_confirmed
    assert first.high < -0.2
    assert found.n_searched + found.n_confirming == 6000
    assert audit.verdict != "unfair"  # by sex alone
    assert audit.subgroups is found
    assert audit.to_dict()["subgroups"][0]["conditions"] == [list(c) for c in first.conditions]
    assert audit.to_frame("subgroups")["confirmed"][0]


def test_gaps_are_those_of_the_rows_that_were_not_searched():
    audit, frame = made(1, effect=0.5)
    one = audit.worst_subgroups(frame[["region"]], k=1, top=1).subgroups[0]
    half = hold_out(audit.rows.cell().astype(int), 0.5, 0)[1]  # as the search divides the rows
    right = (audit.predicted == audit.rows.label)[half]
    ((column, value),) = one.conditions
    frame = frame.assign(sex=np.array(["F", "M"])[audit.rows.group])
    inside = (frame[column] == value).to_numpy()
    assert one.rows == inside.sum()
    assert one.rate == pytest.approx(right[inside[half]].mean())
    assert one.overall == pytest.approx(right.mean())
    assert one.gap == pytest.approx(one.rate - one.overall)


def test_where_all_are_treated_alike_little_is_confirmed():
    wrong = sum(
        any(one.is_confirmed for one in audit.worst_subgroups(frame, k=2).subgroups)
        for audit, frame in (made(seed, effect=0.0, n=1500) for seed in range(40))
    )
    assert wrong <= 5  # at most 1 in 20 in the long run


@pytest.mark.parametrize("measure", ["demographic_parity", "equalized_odds", "four_fifths_rule"])
def test_every_measure_has_gaps(measure):
    rng = np.random.default_rng(0)
    n = 2000
    y, s, town = rng.integers(2, size=n), rng.choice(["a", "b"], n), rng.choice(["x", "y", "z"], n)
    pred = np.where((town == "z") & (rng.random(n) < 0.6), 0, y)
    audit = Audit(y, pred, s, measures=measure, sample_weight=rng.uniform(0.5, 2, n))
    first = audit.worst_subgroups({"town": town}, measure=measure).subgroups[0]
    assert (first.name, first.label) == ("town=z", 1)
    assert first.high < 0


def test_many_labels_have_subgroups():
    rng = np.random.default_rng(0)
    n = 3000
    y, s, town = rng.integers(3, size=n), rng.choice(["a", "b"], n), rng.choice(["x", "y"], n)
    pred = np.where((town == "y") & (y == 2) & (rng.random(n) < 0.5), 0, y)
    found = Audit(y, pred, s).worst_subgroups({"town": town}).subgroups
    assert "recall" not in {one.measure for one in found}
    assert ("town=x", 2) in {(one.name, one.label) for one in found}


def test_bad_searches_are_named():
    audit, frame = made(2, effect=0.0, n=200)
    with pytest.raises(ValueError, match=r"columns: expected one value per row \(200\), got 3"):
        audit.worst_subgroups({"town": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="measure: expected one of"):
        audit.worst_subgroups(frame, measure="parity")
    with pytest.raises(ValueError, match="k"):
        audit.worst_subgroups(frame, k=0)
    assert audit.subgroups is None
    few = audit.worst_subgroups(frame, min_group=150)  # no value has so many rows
    assert few.subgroups == ()
    assert len(few.frame) == 0
