"""Every figure against its definition or another library, on random data."""

import fairlearn.metrics as fl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from fairgrad import AtLeast, AtMost, Groups, On, fairness_levels
from fairgrad.audit import Audit
from fairgrad.audit.comparisons import GapToReference, MatrixMap
from fairgrad.audit.intervals import Interval
from fairgrad.measures import BOUNDED_RATES, MEASURES, constraints_of, measure_name

NAMED = [
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
]
BINARY = [
    "demographic_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "accuracy_parity",
    "four_fifths_rule",
]


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_differences_and_ratios_equal_fairlearn(draw, name, weighted, seed):
    d = draw(seed, n_groups=2 + seed)
    weight = d.weight if weighted else None
    figures = Audit(d.y, d.pred, d.s, sample_weight=weight).to_frame("figures")
    expected = getattr(fl, name)(d.y, d.pred, sensitive_features=d.s, sample_weight=weight)
    assert figures.set_index("figure")["value"][name] == pytest.approx(expected)


def test_accuracy_difference_equals_fairlearn(draw):
    d = draw(0)
    frame = fl.MetricFrame(
        metrics=sk.accuracy_score, y_true=d.y, y_pred=d.pred, sensitive_features=d.s
    )
    figures = Audit(d.y, d.pred, d.s).to_frame("figures").set_index("figure")["value"]
    assert figures["accuracy_difference"] == pytest.approx(frame.difference())
    assert figures["accuracy_ratio"] == pytest.approx(frame.ratio())


@pytest.mark.parametrize("measure", BINARY)
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_levels_equal_the_core(measure, weighted, data):
    n = data.draw(st.integers(8, 60))
    column = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    y, pred = (np.array([0, 1, *data.draw(column)]) for _ in range(2))
    s = np.array([0, 1, *data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))])
    weight = np.linspace(0.5, 2, n + 2) if weighted else None
    (finding,) = Audit(y, pred, s, measures=measure, sample_weight=weight).findings
    core = fairness_levels(y, pred, s, measure, sample_weight=weight)
    np.testing.assert_allclose(finding.levels, core.values, atol=1e-12)
    assert finding.comparison.names == tuple(
        name.replace("s=", "sensitive_features=") for name in core.names
    )
    assert finding.unfairness == pytest.approx(core.unfairness)
    desirable = core.values[len(core.values) // 2 :]  # those of label 1, where labels differ
    told = desirable if measure == "demographic_parity" else core.values
    worst, best = finding.extremes
    assert finding.levels[best] == pytest.approx(np.nanmax(told))
    assert finding.levels[worst] == pytest.approx(np.nanmin(told))
    assert finding.n_undefined == core.n_undefined


def most_false_alarms(groups):
    """A measure of a user's own, on what is predicted: who gets label 1 by mistake."""
    return AtMost("false_positive_rate", 0.2, labels=1)(groups)


OF_MANY = [
    *MEASURES,
    *(kind(rate, 0.6) for kind in (AtLeast, AtMost) for rate in BOUNDED_RATES),
    most_false_alarms,
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("measure", OF_MANY, ids=measure_name)
def test_levels_of_any_labels_equal_the_core(draw, measure, n_labels, weighted):
    d = draw(1, n_labels=n_labels)
    weight = d.weight if weighted else None
    wanted = {"y_desirable": [1, 3][: n_labels // 2], "sample_weight": weight}
    (finding,) = Audit(d.y, d.pred, d.s, measures=measure, **wanted).findings
    core = fairness_levels(d.y, d.pred, d.s, measure, **wanted)
    np.testing.assert_allclose(finding.levels, core.values, atol=1e-12)
    assert finding.unfairness == pytest.approx(core.unfairness)
    named = tuple(name.replace("s=", "sensitive_features=") for name in core.names)
    assert finding.comparison.names == named
    low, high = finding.level_intervals
    assert ((low <= finding.levels + 1e-12) & (finding.levels <= high + 1e-12)).all()
    assert finding.verdict in {"fair within tolerance", "unfair", "undecided"}


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("measure", OF_MANY, ids=measure_name)
def test_levels_within_strata_equal_the_core(draw, measure, n_labels):
    d = draw(4, n=3000, n_labels=n_labels)
    s = pd.DataFrame({"sex": np.where(d.s == 0, "F", "M"), "place": np.arange(len(d.y)) % 3})
    s.loc[:200, "place"] = 9  # where there is one sex only
    s.loc[:200, "sex"] = "F"
    within = On("sex", measure, within="place")
    (finding,) = Audit(d.y, d.pred, s, measures=within, y_desirable=[1]).findings
    core = fairness_levels(d.y, d.pred, s, within, y_desirable=[1])
    defined = [not name.endswith("place=9") for name in core.names]
    np.testing.assert_allclose(finding.levels, core.values[defined], atol=1e-12)
    names = tuple(name for name in core.names if not name.endswith("place=9"))
    assert finding.comparison.names == names
    assert finding.attribute == "sex given place"


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("given", [(), "place"])
@pytest.mark.parametrize("measure", OF_MANY, ids=measure_name)
def test_changes_of_rates_are_their_differences(draw, measure, given, n_labels):
    d, other = (draw(seed, n=900, n_labels=n_labels) for seed in (5, 6))
    s = pd.DataFrame({"sex": np.where(d.s == 0, "F", "M"), "place": np.arange(len(d.y)) % 2})
    audit = Audit(
        d.y, d.pred, s, On("sex", measure, within=given), baseline=other.pred, y_desirable=[1]
    )
    (change,) = audit.changes
    moved = change.moved()
    before, after = change.before.comparison.cells, change.after.comparison.cells
    np.testing.assert_allclose(moved[0] - moved[1], after.hits - before.hits, atol=1e-9)
    assert audit.summary()


def test_demographic_parity_of_many_labels_follows_its_definition(draw):
    d = draw(2, n_labels=3, n_groups=4)
    (finding,) = Audit(d.y, d.pred, d.s, measures="demographic_parity").findings
    expected = [
        (d.pred[d.s == r] == label).mean() - (d.pred == label).mean()
        for label in range(3)
        for r in range(4)
    ]
    np.testing.assert_allclose(finding.levels, expected, atol=1e-12)


def test_rates_equal_scikit_learn(draw):
    d = draw(3)
    audit = Audit(d.y, d.pred, pd.Series(d.s, name="g"), sample_weight=d.weight)
    found = audit.to_frame().set_index(["group", "rate"])["value"]
    for g in range(3):
        mine = d.s == g
        y, pred, w = d.y[mine], d.pred[mine], d.weight[mine]
        expected = {
            "accuracy": sk.accuracy_score(y, pred, sample_weight=w),
            "true_positive_rate": sk.recall_score(y, pred, sample_weight=w),
            "false_positive_rate": 1 - sk.recall_score(y, pred, pos_label=0, sample_weight=w),
            "precision": sk.precision_score(y, pred, sample_weight=w),
            "selection_rate": np.average(pred, weights=w),
            "base_rate": np.average(y, weights=w),
        }
        for rate, value in expected.items():
            assert found[f"g={g}", rate] == pytest.approx(value)
    assert found["overall", "accuracy"] == pytest.approx(
        sk.accuracy_score(d.y, d.pred, sample_weight=d.weight)
    )


def test_per_label_rates_of_many_labels_equal_scikit_learn(draw):
    d = draw(4, n_labels=4)
    found = Audit(d.y, d.pred, d.s).to_frame().set_index(["group", "rate", "label"])["value"]
    recall = sk.recall_score(d.y[d.s == 1], d.pred[d.s == 1], average=None)
    precision = sk.precision_score(d.y[d.s == 1], d.pred[d.s == 1], average=None)
    for label in range(4):
        group = "sensitive_features=1"
        assert found[group, "true_positive_rate", label] == pytest.approx(recall[label])
        assert found[group, "precision", label] == pytest.approx(precision[label])


def test_weights_of_two_are_rows_twice_except_for_the_intervals(draw):
    d = draw(5)
    weighted = Audit(d.y, d.pred, d.s, sample_weight=np.full(len(d.y), 2.0)).to_frame()
    once = Audit(d.y, d.pred, d.s).to_frame()
    for column in ("value", "low", "high"):  # the effective size stays the number of rows
        np.testing.assert_allclose(weighted[column], once[column])


@pytest.mark.parametrize(
    "measure", ["accuracy_parity", "equalized_odds", "equality_of_opportunity"]
)
def test_gap_to_mean_is_the_cores_matrix(draw, measure):
    """The structured map and ``c0 + C e`` give the same levels and the same intervals."""
    d = draw(6, n_groups=4)
    (finding,) = Audit(d.y, d.pred, d.s, measures=measure).findings
    asked = constraints_of(measure, Groups.from_data(d.y, d.s))
    own, matrix = finding.comparison.map, MatrixMap.of_matrix(asked.c0, asked.C)
    assert isinstance(own, GapToReference)
    rate = finding.comparison.cells.value
    np.testing.assert_allclose(own.levels(rate), matrix.levels(1 - rate), atol=1e-12)
    low, high = rate - 0.03, rate + 0.05
    errors = Interval(1 - high, 1 - low)
    pairs = [
        (
            own.combine(rate, Interval(low, high), 0.0),
            matrix.combine(1 - rate, errors, 0.0),
        ),
        (own.range, Interval(matrix.range.low + 0, matrix.range.high + 0)),
    ]
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_a_measure_of_ones_own_is_judged_by_its_bounds(draw):
    d = draw(7, n_groups=2)
    gap = (np.array([0.0]), np.array([[1.0, -1.0, 0.0, 0.0]]))  # errors on label 0, group 0 less 1
    (finding,) = Audit(d.y, d.pred, d.s, measures=[gap]).findings
    wrong = d.pred != d.y
    errors = [wrong[(d.y == 0) & (d.s == r)].mean() for r in (0, 1)]
    assert finding.levels[0] == pytest.approx(errors[0] - errors[1])
    assert finding.judgement.low <= abs(finding.levels[0]) <= finding.judgement.high


def test_the_four_fifths_rule_is_unfair_only_where_it_is_broken(draw):
    s = np.repeat([0, 1, 2], 100)
    y = np.tile([0, 1], 150)
    (equal,) = Audit(y, y, s, measures="four_fifths_rule").findings
    assert equal.unfairness == 0
    assert equal.unfairness_interval.low == 0
    pred = (np.arange(300) % 100 < np.repeat([60, 60, 10], 100)) * 1
    (broken,) = Audit(y, pred, s, measures="four_fifths_rule").findings
    assert broken.unfairness == pytest.approx(2 * (0.8 * 0.6 - 0.1) / 6)  # of six pairs two
    low, high = broken.unfairness_interval
    assert 0 < low < broken.unfairness < high
    d = draw(8)
    (two_sided,) = Audit(d.y, d.pred, d.s, measures="equalized_odds").findings
    assert two_sided.unfairness == pytest.approx(np.abs(two_sided.levels).mean())


def test_pairs_of_many_groups_store_two_entries_each():
    s = np.arange(3000) % 100
    (finding,) = Audit(y_pred=s % 2, sensitive_features=s, measures="four_fifths_rule").findings
    assert len(finding.levels) == 100 * 99
    assert len(finding.comparison.map.value) == 2 * 100 * 99
