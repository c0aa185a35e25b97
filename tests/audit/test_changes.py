"""Who changes sides, against counting with pandas; paired intervals, against their promise."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad.audit import Audit
from fairgrad.audit.intervals import paired_difference
from fairgrad.audit.sections import sides


def people(seed, n=900, labels=3):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(labels, size=(n, 3)), columns=["y", "before", "after"])
    return frame.assign(
        sex=rng.choice(["F", "M"], n), race=rng.choice(["x", "y", "z"], n), w=rng.random(n)
    )


def compared(frame, **options):
    s = frame[["sex", "race"]]
    return Audit(frame["y"], frame["after"], s, baseline=frame["before"], y_desirable=1, **options)


INDICATORS = {
    "accuracy": lambda f, h, _: (f[h] == f["y"], slice(None)),
    "selection_rate": lambda f, h, to: (f[h] == to, slice(None)),
    "true_positive_rate": lambda f, h, to: (f[h] == to, f["y"] == to),
    "false_positive_rate": lambda f, h, to: (f[h] == to, f["y"] != to),
}


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_up_and_down_are_counted_by_their_definition(labels, weighted):
    frame = people(0, labels=labels)
    audit = compared(frame, sample_weight=frame["w"] if weighted else None)
    found = audit.to_frame("changes").set_index(["group", "rate", "label"])
    for name, part in [("sex=F", frame["sex"] == "F"), ("overall", frame["sex"] != "")]:
        own = frame[part]
        for rate, indicator in INDICATORS.items():
            for label in [None] if rate == "accuracy" else audit.labels[-1:]:
                (was, among), (now, _) = (indicator(own, h, label) for h in ("before", "after"))
                row = found.loc[[(name, rate, label)]].iloc[0]
                assert row["up"] == (~was & now)[among].sum()
                assert row["down"] == (was & ~now)[among].sum()
                weight = own["w"] if weighted else pd.Series(1.0, index=own.index)
                change = np.average((now * 1 - was * 1)[among], weights=weight[among])
                assert row["change"] == pytest.approx(change)
                assert row["low"] <= row["change"] <= row["high"]


@pytest.mark.parametrize(
    ("n", "up", "down"), [(20, 0.1, 0.05), (60, 0.3, 0.3), (340, 0.02, 0.02), (340, 0.5, 0.0)]
)
def test_paired_intervals_keep_their_promise(n, up, down):
    counts = np.random.default_rng(1).multinomial(n, [up, down, 1 - up - down], size=20_000)
    trials = np.full(len(counts), float(n))
    low, high = paired_difference(counts[:, 0] / n, counts[:, 1] / n, trials, 0.05)
    covered = ((low <= up - down) & (up - down <= high)).mean()
    assert 0.95 <= covered <= 0.995


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_paired_intervals_mirror_each_other_and_hold_the_difference(up, down, rest):
    n = np.array([float(max(up + down + rest, 1))])
    p, q = np.array([up]) / n, np.array([down]) / n
    low, high = paired_difference(p, q, n, 0.05)
    other_low, other_high = paired_difference(q, p, n, 0.05)
    np.testing.assert_allclose([low, high], [-other_high, -other_low])
    assert low <= p - q <= high
    assert paired_difference(p, q, 0 * n, 0.05) == (-1.0, 1.0)


def test_one_person_in_340_neither_gains_nor_loses():
    y = np.tile([0, 1], 340)
    s = np.repeat(["a", "b"], 340)
    before, worse = y.copy(), y.copy()
    before[:2], worse[0] = 1 - y[:2], 1 - y[0]
    (change,) = Audit(y, worse, s, "accuracy_parity", baseline=before).changes
    assert not change.direction.any()
    assert not change.is_levelling_down
    before[:40] = 1 - y[:40]
    (change,) = Audit(y, worse, s, "accuracy_parity", baseline=before).changes
    assert change.direction.tolist() == [1, 0]


def test_levelling_down_is_one_paragraph():
    n = 2000
    frame = pd.DataFrame({"y": np.tile([0, 1], n), "sex": np.repeat(["F", "M"], n)})
    frame["race"] = np.tile(np.repeat(["p", "q"], 2), n // 1)[: 2 * n]
    step = np.arange(2 * n) % n
    before = np.where((frame["sex"] == "F") & (step < 600), 1 - frame["y"], frame["y"])
    after = np.where(step < 600, 1 - frame["y"], frame["y"])
    audit = Audit(frame["y"], after, frame[["sex", "race"]], baseline=before)
    said = [notice.message for notice in audit.warnings if notice.kind == "levelling_down"]
    assert len(said) == 1
    assert said[0].startswith("Levelling down: ")
    assert "accuracy parity (by sex and sex x race)" in said[0]
    assert "_" not in said[0]
    assert "worse. People (M, y 0); people (M, y 1); " in said[0]


def test_losses_are_told_in_people():
    frame = pd.DataFrame({"y": ["no", "yes"] * 400, "race": ["Black"] * 400 + ["White"] * 400})
    after = frame["y"].copy()
    after[np.flatnonzero(frame["y"] == "yes")[:37]] = "no"
    y = frame["y"].rename("qualified")
    audit = Audit(
        y, after, frame["race"], "equality_of_opportunity", baseline=y, baseline_name="old"
    )
    said = "37 fewer Black people with qualified yes are predicted correctly"
    assert said in audit.summary(200)
    assert said in audit.to_markdown()
    parity = Audit(y, after, frame["race"], "four_fifths_rule", baseline=y)
    assert "37 fewer Black people are predicted yes" in parity.summary(200)


def test_rows_that_change_sides_are_counted():
    frame = people(2)
    changed = frame[frame["before"] != frame["after"]]
    audit = Audit(frame["y"], frame["after"], frame[["sex", "race"]], baseline=frame["before"])
    sides = audit.to_frame("sides").set_index(["group", "true", "from", "to"])["rows"]
    truth = changed.groupby(["sex", "race", "y", "before", "after"]).size()
    assert sides.sum() == len(changed)
    for (sex, race, y, before, after), n in truth.items():
        assert sides[f"sex={sex}, race={race}", y, before, after] == n


def test_rows_that_change_sides_are_named_as_in_all_tables_and_unknown_ones_as_unknown():
    y, s = [0, 1, 1, 0] * 100, ["Female", "Male", None, "Female"] * 100
    audit = Audit(y, y, {"sex": s}, baseline=[1 - one for one in y])
    counted = {row[0]: row[-1] for row in sides(audit).rows}
    assert counted == {"women": "200", "men": "100", "sex unknown": "100"}
    codes = Audit(y, y, {"sex": [0, 1, None, 0] * 100}, baseline=[1 - one for one in y])
    assert {row[0] for row in sides(codes).rows} == {"sex 0", "sex 1", "sex unknown"}


def test_many_groups_and_labels_count_right():
    """Row numbers are kept as small integers: products of them must not overflow."""
    rng = np.random.default_rng(4)
    y, before, after = rng.integers(40, size=(3, 9000))
    s = rng.integers(150, size=9000)
    audit = Audit(y, after, s, "accuracy_parity", baseline=before)
    assert audit.accuracy == pytest.approx((y == after).mean())
    assert audit.to_frame("sides")["rows"].sum() == (before != after).sum()


def test_a_comparison_warns_about_systems_that_are_no_better_than_one_label():
    y = np.repeat([0, 1], [60, 140])
    s = np.tile(["a", "b"], 100)
    comparison = Audit(y, y, s).compare(np.ones(200, int), names=("old", "new"))
    warning = "Warning about new. The model is useless: every row is predicted 1."
    assert warning in comparison.conclusion
    assert comparison.brief.sentences[0] == warning
    assert "Warning about" not in Audit(y, y, s).compare(y).conclusion
