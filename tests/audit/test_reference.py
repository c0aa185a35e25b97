"""Comparisons with one group, rows of unknown group, and outcomes of one cell."""

import numpy as np
import pytest

from fairgrad import Constraints
from fairgrad.audit import FAIR, UNFAIR, Audit, ImpactTable


def decisions(rates, n=400):
    s = np.repeat(list(rates), n)
    pred = np.concatenate([np.arange(n) < rate * n for rate in rates.values()]) * 1
    return pred, s


def audit_of(rates, **options):
    pred, s = decisions(rates)
    options = {"measures": "demographic_parity", "y_desirable": 1, **options}
    return Audit(y_pred=pred, sensitive_features={"s": s}, **options)


def test_levels_are_differences_from_the_reference():
    (finding,) = audit_of({"a": 0.5, "b": 0.4, "c": 0.7}, reference="a").findings
    np.testing.assert_allclose(finding.levels[3:], [0.0, -0.1, 0.2])
    low, high = finding.level_intervals
    x, n = np.array([0.5, 0.4, 0.7]), 400
    reach = 1.96 * np.sqrt(x * (1 - x) / n + 0.25 / n)
    np.testing.assert_allclose(high[4:] - low[4:], 2 * reach[1:], rtol=0.06)
    assert low[3] == high[3] == 0
    assert finding.comparison.tested.sum() == 2


def test_ratios_are_to_the_reference():
    audit = audit_of({"a": 0.5, "b": 0.4, "c": 0.7}, reference={"s": "a"}, tolerance="80%")
    assert audit.findings[0].judgement.value == pytest.approx(0.8)
    by_best = audit_of({"a": 0.5, "b": 0.4, "c": 0.7}, tolerance="80%")
    assert by_best.findings[0].judgement.value == pytest.approx(0.4 / 0.7)
    rule = audit_of({"a": 0.5, "b": 0.4}, measures="four_fifths_rule", reference="a")
    assert rule.findings[0].comparison.names == ("s=b against s=a",)
    table = ImpactTable.from_audit(audit).frame.set_index("category")
    np.testing.assert_allclose(table["impact_ratio"], [1.0, 0.8, 1.4])
    assert (table["ratio_low"].dropna() < table["impact_ratio"][["b", "c"]]).all()
    assert "the rate of a" in audit_of({"a": 0.5, "b": 0.2}, reference="a").conclusion


def test_references_that_are_none():
    for reference, message in [
        ("z", "not a value of s"),
        ({"t": "a"}, "got the attribute 't'"),
    ]:
        with pytest.raises(ValueError, match=message):
            audit_of({"a": 0.5, "b": 0.4}, reference=reference)
    pred, s = decisions({"a": 0.5, "b": 0.4})
    with pytest.raises(ValueError, match="expected a mapping"):
        Audit(y_pred=pred, sensitive_features={"s": s, "t": s}, reference="a")


def test_three_columns_keep_the_table_of_two():
    rng = np.random.default_rng(0)
    pred, sex, race, age = rng.integers(2, size=(4, 900))
    table = ImpactTable.from_decisions(pred, {"sex": sex, "race": race, "age": age}).frame
    two = ImpactTable.from_decisions(pred, {"sex": sex, "race": race}).frame
    own = table[table["attribute"] == "sex x race"]["impact_ratio"]
    np.testing.assert_allclose(own, two[two["attribute"] == "sex x race"]["impact_ratio"])


def test_rows_of_unknown_group_may_change_the_verdict():
    pred, s = decisions({"a": 0.5, "b": 0.5}, n=3000)
    pred = np.append(pred, np.zeros(2000, dtype=int))
    s = np.append(s.astype(object), [None] * 2000)
    audit = Audit(y_pred=pred, sensitive_features={"s": s}, measures="demographic_parity")
    assert audit.verdict == FAIR
    assert audit.if_unknown(audit.findings[0]) == (UNFAIR, UNFAIR)
    (row,) = audit.to_dict()["verdicts"]
    assert row["unknown_worst_off"] == row["unknown_best_off"] == UNFAIR
    assert "If all of them were in the worst-off group" in audit.warnings[0].message
    assert audit_of({"a": 0.5, "b": 0.5}).to_dict()["verdicts"][0]["unknown_worst_off"] is None


def test_outcomes_of_one_cell_vary_together():
    """The gap of two labels among the same rows: its variance is that of a multinomial."""

    def gap(groups):
        C = np.zeros((1, 3 * 3 * groups.n_groups))
        first = [label * 3 * groups.n_groups for label in (1, 2)]  # true label 0, first group
        C[0, first] = 1.0, -1.0
        return Constraints(np.zeros(1), C, by_label=True, names=("gap",), n_outcomes=3)

    rng, n, held = np.random.default_rng(0), 120, []
    chance = [0.2, 0.4, 0.4]
    for _ in range(300):
        y = np.append(np.zeros(n, dtype=int), rng.integers(3, size=60))
        s = np.append(np.zeros(n, dtype=int), np.ones(60, dtype=int))
        pred = rng.choice(3, size=len(y), p=chance)
        (finding,) = Audit(y, pred, s, measures=[gap]).findings
        low, high = finding.level_intervals
        held.append(low[0] <= 0 <= high[0])
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


def test_few_large_groups_are_said():
    audit = Audit(y_pred=[0, 1] * 20, sensitive_features=["a"] * 35 + ["b"] * 5)
    said = " ".join(notice.message for notice in audit.warnings)
    assert "fewer than two groups have 30 rows, so all are judged" in said
