"""Intervals that hold, verdicts that are right, advice that works."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from fairgrad import Constraints, On
from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, Audit
from fairgrad.audit.comparisons import compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.forecast import RowsNeeded
from fairgrad.audit.verdicts import (
    Finding,
    VerdictRule,
    holm_shares,
    level_limits,
)
from fairgrad.audit.words import advice
from fairgrad.groups import Groups

MEASURES = ["accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity"]
TRUTH = np.array([[60, 25], [200, 90], [35, 50]])  # rows per (group, label)
CHANCE = np.array([[0.15, 0.7], [0.1, 0.85], [0.4, 0.6]])  # of predicting 1


def table_of(counts):
    groups = Groups.from_data([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2])
    return CountTable(groups, counts, counts, counts)


def drawn_tables(n, seed):
    ones = np.random.default_rng(seed).binomial(TRUTH, CHANCE, size=(n, *TRUTH.shape))
    return np.stack([TRUTH - ones, ones], axis=-1).astype(float)


def expected_table():
    """The table whose rates are the true ones."""
    return np.stack([TRUTH * (1 - CHANCE), TRUTH * CHANCE], axis=-1)


def finding_of(measure, counts, rule, alpha):
    table = table_of(counts)
    return Finding(measure, "s", table, compare(measure, table, [1]), rule, alpha)


def judged_by(comparison, rule, share=1.0):
    """A finding whose verdict may be wrong in 20 % of draws."""
    return Finding("measure", "s", None, comparison, rule, 0.2, unfair_share=share)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_each_interval_holds_as_often_as_promised_and_not_much_more_often(measure, confidence):
    """Of every level, of the largest |F| and of the mean |F|; 0.07 is close to some levels."""
    true = compare(measure, table_of(expected_table()), [1])
    levels = true.map.levels(true.cells.value)
    rule, held = VerdictRule("level", 0.07), []
    for counts in drawn_tables(200, seed=1):
        found = finding_of(measure, counts, rule, 1 - confidence)
        low, high = (
            np.append(end, own)
            for end, own in zip(found.level_intervals, found.unfairness_interval, strict=True)
        )
        low, high = np.append(low, found.judgement.low), np.append(high, found.judgement.high)
        truth = np.append(levels, [np.abs(levels).mean(), np.abs(levels).max()])
        held.append((low <= truth + 1e-12) & (truth - 1e-12 <= high))
    share = np.mean(held, axis=0)
    noise = 3 * np.sqrt(confidence * (1 - confidence) / 200)
    assert share.min() >= confidence - noise
    free = true.map.share.ravel() < 0.9
    applies = true.map.applies
    assert share[:-2][free & applies].min() <= (0.97 if confidence == 0.95 else 0.86) + noise


@pytest.mark.parametrize("measure", [*MEASURES, "four_fifths_rule"])
def test_wrong_verdicts_are_rarer_than_the_error_allowed(measure):
    """The hardest case: the truth lies exactly at the tolerance, on either side of it."""
    ratio = measure == "four_fifths_rule"
    true = compare(measure, table_of(expected_table()), [1])
    kind = "ratio" if ratio else "level"
    at = judged_by(true, VerdictRule(kind, 0.5)).judgement.value
    beyond, within = VerdictRule(kind, at - 1e-9), VerdictRule(kind, at + 1e-9)
    beyond, within = (within, beyond) if ratio else (beyond, within)
    wrong = []
    for counts in drawn_tables(200, seed=2):
        found = compare(measure, table_of(counts), [1])
        wrong.append(
            (
                judged_by(found, beyond).verdict == FAIR,
                judged_by(found, within).verdict == UNFAIR,
            )
        )
    assert np.mean(wrong, axis=0).max() <= 0.2


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_verdicts_follow_from_the_intervals_shown(data):
    """Fair if and only if every level's interval lies within; unfair only if one lies beyond."""
    n_groups = data.draw(st.integers(2, 5))
    size = data.draw(st.lists(st.integers(1, 3000), min_size=n_groups, max_size=n_groups))
    ones = [data.draw(st.integers(0, n)) for n in size]
    pred = np.concatenate([np.arange(n) < k for n, k in zip(size, ones, strict=True)]).astype(int)
    y = np.arange(len(pred)) % 2
    s = np.repeat(np.arange(n_groups), size)
    assume(len(pred) > 1)
    tolerance = data.draw(st.sampled_from([0.01, 0.05, 0.2]))
    for finding in Audit(y, pred, s, tolerance=tolerance, min_group=0).findings:
        low, high = finding.level_intervals
        levels, judgement = finding.levels, finding.judgement
        ok = ~np.isnan(levels)
        assert np.all((low <= levels + 1e-12)[ok] & (levels - 1e-12 <= high)[ok])
        assert judgement.low - 1e-12 <= judgement.value <= judgement.high + 1e-12
        within = bool(((low >= -tolerance) & (high <= tolerance))[ok].all())
        beyond = bool(((low > tolerance) | (high < -tolerance))[ok].any())
        assert (finding.verdict == FAIR) == (within and judgement.high <= tolerance)
        assert (finding.verdict == FAIR) == within
        if finding.verdict == UNFAIR:
            assert beyond
            assert judgement.low > tolerance
        assert (finding.verdict == UNFAIR) == finding.beyond.any()


def test_the_error_of_unfair_is_shared_by_all_findings():
    """Four attributes, each exactly at the tolerance: some is called unfair as often as allowed."""
    rng, n, wrong = np.random.default_rng(4), np.array([300, 300]), []
    groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
    rule = VerdictRule("level", 0.05)
    for _ in range(120):
        found = []
        for ones in rng.binomial(n, [0.35, 0.45], size=(4, 2)):
            counts = np.stack([n - ones, ones], axis=1)[:, None].repeat(2, axis=1) / 2
            table = CountTable(groups, *[counts.astype(float)] * 3)
            found.append(compare("demographic_parity", table, [1]))
        p = [judged_by(one, rule).p_values[1] for one in found]
        shares = holm_shares(p, 0.2)
        verdicts = [
            judged_by(one, rule, share).verdict for one, share in zip(found, shares, strict=True)
        ]
        expected = [UNFAIR if one <= 0.2 * s else None for one, s in zip(p, shares, strict=True)]
        assert [v if v == UNFAIR else None for v in verdicts] == expected
        wrong.append(UNFAIR in verdicts)
    assert np.mean(wrong) <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 120)


def test_holms_shares():
    """By hand: 0.01 <= 0.05 / 3, 0.02 <= 0.05 / 2, and the last is tested at 0.05."""
    assert holm_shares([0.02, 0.04, 0.01], 0.05) == [1 / 2, 1, 1 / 3]
    assert holm_shares([0.2, 0.03, 0.04], 0.05) == [1 / 3, 1 / 3, 1 / 3]
    assert holm_shares([], 0.05) == []


def test_levels_of_two_groups_are_multiples_of_scipys_difference():
    """F = (1 - share) (p - q): MOVER from exact limits, computed here with scipy.stats."""
    (n, m), (k, j) = (400, 100), (150, 20)
    s, pred = np.repeat([0, 1], (n, m)), np.r_[np.arange(n) < k, np.arange(m) < j] * 1
    audit = Audit(np.arange(n + m) % 2, pred, s, measures="demographic_parity", tolerance=0.9)
    (low, high), p, q = audit.findings[0].level_intervals, k / n, j / m
    ends = [binomtest(a, b).proportion_ci(0.95, "exact") for a, b in ((k, n), (j, m))]
    reach = [
        np.maximum([x - end.low, end.high - x], 1.959964 * np.sqrt(x * (1 - x) / b))
        for x, end, b in zip((p, q), ends, (n, m), strict=True)
    ]
    # The share 0.8 of the first group is an estimate, too: its variance is 0.8 * 0.2 / (n + m).
    shares = 1.959964 * np.sqrt(0.8 * 0.2 / (n + m)) * (p - q)
    down, up = np.hypot(reach[0][0], reach[1][1]), np.hypot(reach[0][1], reach[1][0])
    for place, scale in ((2, 0.2), (3, -0.8)):
        ends = [np.hypot(scale * way, shares) for way in (down, up)][:: int(np.sign(scale))]
        expected = scale * (p - q) - ends[0], scale * (p - q) + ends[1]
        np.testing.assert_allclose([low[place], high[place]], expected, atol=1e-7)


def test_holm_finds_more_levels_once_the_first_are_found():
    """Groups far beyond leave the error to the one that is just beyond."""
    rates, rows = np.array([0.2, 0.2, 0.8, 0.8, 0.594]), 1500
    (finding,) = Audit(*selected(rates, rows), measures="demographic_parity").findings
    group = finding.comparison.group
    one_by_one = level_limits(finding.comparison, 0.025)
    corrected = level_limits(finding.comparison, 0.025 / 5)
    last = (group == 4) & (finding.comparison.label == 1)
    assert one_by_one.low[last] > 0.05 > corrected.low[last]
    assert finding.beyond.all()


def repeated(times, gap, groups=("a", "b"), rows=50):
    """Accuracy 0.8 in the first group and 0.8 - gap in the second."""
    y = np.tile([0, 1], rows * len(groups) // 2)
    s = np.repeat(groups, rows)
    right = np.concatenate([np.arange(rows) < rows * (0.8 - gap * i) for i in range(len(groups))])
    pred = np.where(right, y, 1 - y)
    return tuple(np.tile(column, times) for column in (y, pred, s))


def test_more_rows_settle_a_verdict():
    few, many = ([*repeated(times, gap=0.5), "accuracy_parity", 0.05] for times in (1, 20))
    assert Audit(*few[:3], measures=few[3], tolerance=0.25).verdict == UNDECIDED
    assert Audit(*many[:3], measures=many[3], tolerance=0.15).verdict == UNFAIR
    assert Audit(*many[:3], measures=many[3], tolerance=0.35).verdict == FAIR


@pytest.mark.parametrize(("rates", "tolerance"), [([0.4] * 5, 0.05), ([0.4] * 5, "80%")])
def test_the_advised_rows_settle_it_about_four_times_out_of_five(rates, tolerance):
    """The typical advice of many tables is followed, with the true rates."""
    rng, n = np.random.default_rng(3), 200

    def drawn(rows):
        ones = rng.binomial(rows, rates)
        counts = pd.DataFrame({"s": np.arange(len(rates)), "p": 1, "count": ones})
        counts = pd.concat([counts, counts.assign(p=0, count=rows - ones)])
        options = {"measures": "demographic_parity", "tolerance": tolerance}
        return Audit.from_counts(counts, None, "p", "s", **options).findings[0]

    found = [one.rows_needed for one in (drawn(n) for _ in range(40)) if one.verdict == UNDECIDED]
    advised = [sum(one.more.values()) for one in found if one is not None]
    assert all(one.high is None or one.low <= one.high for one in found if one is not None)
    enough = n + int(np.median(advised) / len(rates))
    settled = np.mean([drawn(enough).verdict != UNDECIDED for _ in range(100)])
    assert 0.5 <= settled <= 0.99


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (5000, 5000, ""),
        (4900, 5300, ""),
        (490, 2500, " The likely total is 490 to 2,500 more rows."),
        (490, None, " The likely total is 490 more rows to over a million per group."),
    ],
)
def test_the_advice_has_a_range_only_if_it_is_one(monkeypatch, low, high, said):
    finding = Audit(*repeated(1, 0.5), measures="accuracy_parity", tolerance=0.25).findings[0]
    needed = RowsNeeded(dict(zip(finding.table.groups.names, (3600, 1), strict=True)), low, high)
    monkeypatch.setitem(vars(finding), "rows_needed", needed)
    about = "About 3,600 more people (a) and 1 more person (b) would settle it with a chance of "
    assert advice(finding) == f"{about}80 %.{said}"


def test_of_many_groups_no_single_row_is_advised():
    """Of 100 groups some are beyond in most fresh draws; a draw without needs more than a row."""
    rng, n = np.random.default_rng(0), 20_000
    group = rng.choice(100, size=n, p=rng.dirichlet(np.ones(100)))
    score = 1 / (1 + np.exp(-rng.normal(0.5 * (group % 2), 1, n)))
    y = (rng.random(n) < score) * 1
    measures = ["equalized_odds", "equality_of_opportunity"]
    for finding in Audit(y, (score >= 0.5) * 1, group, measures=measures).findings:
        assert finding.verdict == UNDECIDED
        assert len(finding.rows_needed.more) > 5
        assert sum(finding.rows_needed.more.values()) > 100


def test_a_level_far_beyond_the_tolerance_takes_a_moderate_number_of_rows():
    """Recalls of 13 % of 38 and 37 % of 19 people; the groups have 409 and 68 rows."""
    cells = {("a", 0, 0): 367, ("a", 0, 1): 4, ("a", 1, 0): 33, ("a", 1, 1): 5}
    cells |= {("b", 0, 0): 48, ("b", 0, 1): 1, ("b", 1, 0): 12, ("b", 1, 1): 7}
    counts = pd.DataFrame([(*cell, n) for cell, n in cells.items()], columns=[*"syp", "count"])
    (finding,) = Audit.from_counts(counts, "y", "p", "s", measures="equalized_odds").findings
    assert finding.verdict == UNDECIDED
    more = finding.rows_needed.more
    advised = counts.assign(count=counts["count"] * (1 + max(more.values()) // 68))
    (settled,) = Audit.from_counts(advised, "y", "p", "s", measures="equalized_odds").findings
    assert settled.verdict != UNDECIDED
    assert sum(more.values()) < 20_000


def test_no_million_is_advised_for_one_estimate_close_to_the_tolerance():
    """The second group is 11 points below; its likeliest difference is about the tolerance."""
    size, ones = np.array([1500, 70, 100, 200, 100, 50]), np.array([1219, 44, 80, 168, 80, 37])
    counts = pd.DataFrame({"s": [*range(6)] * 2, "p": [1] * 6 + [0] * 6})
    counts["count"] = [*ones, *(size - ones)]
    options = {"measures": "demographic_parity"}
    needed = Audit.from_counts(counts, None, "p", "s", **options).findings[0].rows_needed
    assert needed.low < sum(needed.more.values()) < 10_000
    assert needed.high > 1_000_000


def test_a_figure_at_the_tolerance_takes_very_many_rows():
    y, pred, s = repeated(1, gap=0.4)
    (finding,) = Audit(y, pred, s, measures="accuracy_parity", tolerance=0.2).findings
    assert finding.judgement.value == pytest.approx(0.2)
    assert sum(finding.rows_needed.more.values()) > 100 * len(y)
    assert finding.rows_needed.high is None


def selected(rates, rows=2000):
    s = np.repeat(np.arange(len(rates)), rows)
    pred = np.concatenate([np.arange(rows) < rate * rows for rate in rates]).astype(int)
    return np.tile([0, 1], len(s) // 2), pred, s


@pytest.mark.parametrize(
    ("rates", "verdict"), [((0.5, 0.45), FAIR), ((0.5, 0.2), UNFAIR), ((0.5, 0.4), UNDECIDED)]
)
def test_the_four_fifths_rule_looks_at_its_ratio(rates, verdict):
    by_measure = Audit(*selected(rates), measures="four_fifths_rule", tolerance=0.001)
    by_tolerance = Audit(*selected(rates), measures="demographic_parity", tolerance="80%")
    assert by_measure.verdict == by_tolerance.verdict == verdict
    assert by_measure.findings[0].judgement.value == pytest.approx(rates[1] / rates[0])


def test_each_measure_may_have_its_own_tolerance():
    audit = Audit(
        *selected((0.5, 0.2)),
        measures=["demographic_parity", "four_fifths_rule"],
        tolerance={"demographic_parity": 0.3, "four_fifths_rule": 0.3},
    )
    assert [finding.verdict for finding in audit.findings] == [FAIR, FAIR]


def test_own_bounds_and_own_slack_are_kept():
    y, pred, s = repeated(20, gap=0.4)
    at_least = Constraints(c0=[0.0], C=[[-1.0, 1.0]], by_label=False, lower=0.2, upper=np.inf)
    more = Constraints(c0=[0.0], C=[[-1.0, 1.0]], by_label=False, lower=0.6, upper=np.inf)
    on = On("sensitive_features", "accuracy_parity", 0.3)
    verdicts = [Audit(y, pred, s, measures=[m]).verdict for m in (at_least, more, on)]
    assert verdicts == [FAIR, UNFAIR, FAIR]


def test_the_gravest_verdict_stands_for_all():
    y, pred, s = selected((0.5, 0.2))
    audit = Audit(y, pred, s, measures=["demographic_parity", "accuracy_parity"])
    assert {finding.verdict for finding in audit.findings} >= {UNFAIR, FAIR}
    assert audit.verdict == UNFAIR
