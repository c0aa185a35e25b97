"""Intervals that hold, verdicts that are right, advice that works."""

import numpy as np
import pytest

from fairgrad import Constraints, On
from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, Audit
from fairgrad.audit.comparisons import compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.verdicts import VerdictRule, judge, rate_intervals
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


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_of_levels_hold_at_once_as_often_as_promised(measure, confidence):
    true = compare(measure, table_of(expected_table()), [1])
    levels = true.map.levels(true.cells.value)
    held = []
    for counts in drawn_tables(1500, seed=1):
        found = compare(measure, table_of(counts), [1])
        low, high = found.map.enclose(rate_intervals(found, 1 - confidence))
        held.append(np.all((low <= levels + 1e-12) & (levels - 1e-12 <= high)))
    assert np.mean(held) >= confidence


@pytest.mark.parametrize("measure", [*MEASURES, "four_fifths_rule"])
def test_wrong_verdicts_are_rarer_than_the_error_allowed(measure):
    """The hardest case: the truth lies exactly at the tolerance, on either side of it."""
    ratio = measure == "four_fifths_rule"
    true = compare(measure, table_of(expected_table()), [1])
    kind = "ratio" if ratio else "level"
    at = judge(true, VerdictRule(kind, 0.5), 0.2).value
    beyond, within = VerdictRule(kind, at - 1e-9), VerdictRule(kind, at + 1e-9)
    beyond, within = (within, beyond) if ratio else (beyond, within)
    wrong = []
    for counts in drawn_tables(800, seed=2):
        found = compare(measure, table_of(counts), [1])
        wrong.append(
            judge(found, beyond, 0.2).verdict == FAIR or judge(found, within, 0.2).verdict == UNFAIR
        )
    assert np.mean(wrong) <= 0.2


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


@pytest.mark.parametrize("tolerance", [0.18, 0.3])
def test_the_advised_rows_settle_it_and_clearly_fewer_do_not(tolerance):
    y, pred, s = repeated(1, gap=0.3, rows=100)
    y, pred, s = (np.concatenate([c, np.tile(c[:100], 4)]) for c in (y, pred, s))  # a is larger
    (finding,) = Audit(y, pred, s, measures="accuracy_parity", tolerance=tolerance).findings
    assert finding.verdict == UNDECIDED
    more = finding.more_rows
    assert more["sensitive_features=b"] > 0
    grown = {name: np.array(more.get(f"sensitive_features={name}", 0)) for name in "ab"}
    size = np.array([500.0, 100.0])
    extra = np.array([grown["a"], grown["b"]], dtype=float)
    comparison = finding.comparison
    settled, short = (
        judge(comparison, finding.tolerance, finding.alpha, 1 + part * extra / size).verdict
        for part in (1.0, 0.8)
    )
    assert settled != UNDECIDED
    assert short == UNDECIDED


def test_no_number_of_rows_settles_a_figure_at_the_tolerance():
    y, pred, s = repeated(1, gap=0.4)
    (finding,) = Audit(y, pred, s, measures="accuracy_parity", tolerance=0.2).findings
    assert finding.judgement.value == pytest.approx(0.2)
    assert finding.more_rows is None


def selected(rates, rows=2000):
    s = np.repeat(np.arange(len(rates)), rows)
    pred = np.concatenate([np.arange(rows) < rate * rows for rate in rates]).astype(int)
    return np.tile([0, 1], len(s) // 2), pred, s


@pytest.mark.parametrize(
    ("rates", "verdict"), [((0.5, 0.45), FAIR), ((0.5, 0.2), UNFAIR), ((0.5, 0.4), UNDECIDED)]
)
def test_the_four_fifths_rule_looks_at_its_ratio(rates, verdict):
    by_measure = Audit(*selected(rates), measures="four_fifths_rule", tolerance=0.001)
    by_tolerance = Audit(*selected(rates), measures="demographic_parity", tolerance="four_fifths")
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
