"""One verdict on the requested measures, in one sentence everywhere; who is not judged."""

import re

import numpy as np
import pandas as pd
import pytest

from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, Audit
from fairgrad.audit.sections import conclusion
from fairgrad.audit.words import doubtful_desirable

N = 4000
GROUP = np.repeat(["a", "b"], N // 2)
TRUTH = pd.Series(np.tile(["no", "yes"], N // 2), name="hired")


def flipped(share_a, share_b):
    """Predictions that are wrong for these shares of both groups, for either label alike."""
    place = np.tile(np.repeat(np.arange(N // 4), 2), 2) / (N // 4)
    wrong = place < np.where(GROUP == "a", share_a, share_b)
    return np.where(wrong, np.where(TRUTH == "yes", "no", "yes"), TRUTH)


@pytest.fixture(scope="module")
def two_faced():
    """Fair by demographic parity, unfair by accuracy parity."""
    return flipped(0.1, 0.3)


def test_the_verdict_is_about_what_was_asked(two_faced):
    s = pd.Series(GROUP, name="group")
    fair = Audit(TRUTH, two_faced, s, "demographic_parity", others="accuracy_parity")
    assert fair.verdict == FAIR
    assert [finding.verdict for finding in fair.findings[1:]] == [UNFAIR]
    assert [row["asked"] for row in fair.to_dict()["verdicts"]] == [True, False]
    unfair = Audit(TRUTH, two_faced, s, "accuracy_parity", others=["demographic_parity"])
    assert unfair.verdict == UNFAIR
    both = Audit(TRUTH, two_faced, s, ["accuracy_parity", "demographic_parity"])
    assert both.verdict == UNFAIR
    assert both.asked == both.findings


def test_a_measure_asked_for_is_not_repeated_beside(two_faced):
    s = pd.Series(GROUP, name="group")
    usual = ["demographic_parity", "accuracy_parity"]
    audit = Audit(TRUTH, two_faced, s, "accuracy_parity", others=usual)
    assert [finding.measure for finding in audit.findings] == [
        "accuracy_parity", "demographic_parity",
    ]  # fmt: skip


def test_the_conclusion_has_the_rates_the_verdict_and_the_price_everywhere(two_faced):
    audit = Audit(
        TRUTH,
        two_faced,
        pd.Series(GROUP, name="group"),
        "accuracy_parity",
        baseline=flipped(0.1, 0.1),
        baseline_name="plain model",
    )
    said = audit.conclusion
    for part in ("90.0 %", "70.0 %", "10 points", "80.0 %", "5 points", "unfair", "95 %", "4,000"):
        assert part in said
    assert "plain model has 90.0 %" in said
    assert "|F|" not in said
    lines = [line for line in audit.summary(1000).splitlines() if line]
    assert lines[0] == f"✗ {said}"
    assert sum(said in line for line in lines) == 1  # the verdict appears once
    assert audit.to_dict()["conclusion"] == said
    assert audit.to_dict()["accuracy"] == pytest.approx(0.8)
    assert audit.to_dict()["baseline_accuracy"] == pytest.approx(0.9)
    assert said.replace("(", "\\(").replace(")", "\\)") in audit.to_markdown()


def test_every_verdict_and_measure_has_its_words(two_faced):
    s = pd.Series(GROUP, name="group")
    fair = Audit(TRUTH, two_faced, s, "demographic_parity")
    assert fair.conclusion.startswith("In every group by group, 50 % of people are predicted yes.")
    assert "Both are within 5 points" in fair.conclusion
    recall = Audit(TRUTH, two_faced, s, "equality_of_opportunity").conclusion
    assert "Among people with hired yes, a and b are predicted correctly" in recall
    near = Audit(TRUTH, flipped(0.1, 0.195), s, "accuracy_parity")
    assert near.verdict == UNDECIDED
    assert "do not settle" in near.conclusion
    of_three = Audit(TRUTH, two_faced, np.tile(["x", "y", "z", "x"], N // 4), "demographic_parity")
    assert "from" in of_three.conclusion


def test_small_rates_within_the_tolerance_are_told_as_different():
    """Callback rates of 6.4 % and 9.7 %, ratio 0.67: within 5 points, and not equal."""
    called = np.concatenate([np.arange(5000) < 320, np.arange(5000) < 485])
    s = np.repeat(["Black", "White"], 5000)
    audit = Audit(y_pred=called, sensitive_features=s, measures="demographic_parity")
    assert audit.verdict == FAIR
    assert "at different rates" in audit.conclusion
    assert "a ratio of 0.66. This is tolerated: both are within 5 points" in audit.conclusion
    (said,) = [n.message for n in audit.warnings if n.kind == "tolerance"]
    assert "6.4 %" in said
    by_ratio = Audit(
        y_pred=called, sensitive_features=s, measures="demographic_parity", tolerance="80%"
    )
    assert by_ratio.verdict == UNFAIR
    assert not [n for n in by_ratio.warnings if n.kind == "tolerance"]


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("selection_rate>=0.3", "keep the bound of 30.0 %"),
        ("false_positive_rate<=0.5", "keep the bound of 50.0 %"),
    ],
)
def test_bounds_are_told_as_bounds(two_faced, measure, words):
    assert words in Audit(TRUTH, two_faced, GROUP, measure).conclusion


def test_the_conclusion_names_the_comparisons_that_decide(two_faced):
    audit = Audit(TRUTH, two_faced, pd.Series(GROUP, name="group"))
    assert "3 of 4 comparisons are unfair: equalized odds, " in audit.conclusion


def test_a_ratio_is_told_as_a_ratio():
    biased = np.where(GROUP == "a", TRUTH, "no")
    audit = Audit(TRUTH, biased, GROUP, "four_fifths_rule", baseline=TRUTH)
    assert "0.00 times the highest. At least 0.8 is required" in audit.conclusion
    assert "1.000 ✓" in audit.summary(explain=True)  # the ratio before


@pytest.fixture(scope="module")
def with_seven():
    """The same rows, and seven people of a third group."""
    y = pd.Series([*TRUTH, *["yes"] * 7], name="hired")
    return y, np.append(flipped(0.1, 0.1), ["yes"] * 7), pd.Series([*GROUP, *["c"] * 7], name="g")


def test_seven_people_are_shown_and_not_judged(with_seven):
    audit = Audit(*with_seven)
    known = with_seven[2] != "c"
    without = Audit(*(part[known] for part in with_seven))
    assert audit.verdict == without.verdict == FAIR
    assert "Not judged: 7 people in groups by g with fewer than 30 rows" in audit.conclusion
    assert "Not judged" not in without.conclusion
    levels = audit.to_frame("levels").set_index(["measure", "name"])["level"]
    y, pred, s = with_seven
    expected = ((y == pred)[s == "a"]).mean() - (y == pred).mean()  # of all rows, also these seven
    assert levels["accuracy_parity", "g=a"] == pytest.approx(expected)
    figures = audit.to_frame("figures").set_index("figure")
    own = without.to_frame("figures").set_index("figure")
    pd.testing.assert_series_equal(figures["judged"], own["value"], check_names=False)
    rate = [(pred == "yes")[s == g].mean() for g in "abc"]
    difference = figures.loc["demographic_parity_difference", "value"]
    assert difference == pytest.approx(max(rate) - min(rate))  # as fairlearn has it
    groups = audit.to_frame("groups").set_index("group")
    assert groups.loc["g=c", "rows"] == 7
    assert groups["judged"].to_dict() == {"g=a": True, "g=b": True, "g=c": False}
    rates = audit.to_frame("rates").set_index(["group", "rate"])["value"]
    assert rates["g=c", "selection_rate"] == 1.0
    (said,) = [notice.message for notice in audit.warnings if notice.kind == "not_judged"]
    assert "Not judged: 7 people in 1 group by g with fewer than 30 rows: c (7)" in said
    assert " c †" in audit.summary()
    for explain in (False, True):
        assert audit.summary(explain=explain).count("Not judged") == 1


def test_min_group_0_judges_all(with_seven):
    audit = Audit(*with_seven, min_group=0)
    assert audit.verdict == UNDECIDED
    assert "Not judged" not in audit.conclusion
    assert len(audit.to_frame("levels").query("measure == 'accuracy_parity'")) == 3
    assert Audit(*with_seven, min_group=0.001).verdict == UNDECIDED  # 5 of 4,007 rows


def test_one_large_group_is_compared_with_the_small_ones():
    y = [0, 1] * 55
    audit = Audit(y, y, ["a"] * 100 + ["b"] * 10)
    assert audit.verdict == UNDECIDED
    assert audit.to_frame("groups")["judged"].all()
    with pytest.raises(ValueError, match="min_group: expected a finite number of at least 0"):
        Audit(y, y, ["a"] * 100 + ["b"] * 10, min_group=-1)


def test_remarks_stand_with_the_warnings(with_seven):
    audit = Audit(*with_seven, remarks=["3 rows are left out: no prediction."])
    assert audit.warnings[0] == ("remark", "3 rows are left out: no prediction.")
    assert "3 rows are left out" in audit.summary()
    assert "3 rows are left out" in audit.to_markdown()
    assert audit.to_dict()["warnings"][0]["message"].startswith("3 rows")


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("deny", ["no", "yes"]),
        ("decision", ["approved", "rejected"]),
        ("default.payment.next.month", [0, 1]),
        ("two_year_recid", [0, 1]),
        ("isFraud", [0, 1]),
        ("exam", ["0_passed", "Failed"]),
        ("outcome", ["1: good", "2: bad"]),
    ],
)
def test_bad_news_taken_as_desirable_is_told(target, labels):
    y = pd.Series(np.tile(np.array(labels, dtype=object), 60), name=target)
    s = np.repeat(["a", "b"], 60)
    said = [n.message for n in Audit(y, y, s).warnings if n.kind == "desirable"]
    assert len(said) == 1
    assert f"{target}={labels[1]} was taken as desirable" in said[0]
    assert f"If {target}={labels[0]} is desirable, audit again with it" in said[0]
    assert "--" not in said[0]  # readers of a report may not use the program
    for named in labels:  # a user who names it has thought about it
        audit = Audit(y, y, s, y_desirable=named)
        assert not [n for n in audit.warnings if n.kind == "desirable"]


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("hired", [0, 1]),
        ("default", ["default", "no default"]),
        ("status", ["denied", "granted"]),
        ("income", ["<=50K", ">50K"]),
        ("outcome", ["failed", "not failed"]),
        ("billing", ["late", "on time"]),
    ],
)
def test_good_news_is_not_doubted(target, labels):
    assert doubtful_desirable(labels[1:], target, labels) == ""


@pytest.mark.parametrize(
    ("predicted", "said"),
    [
        (["no"] * 10, "The model is useless: every row is predicted no."),
        (
            ["no"] * 4 + ["yes"] * 6,
            "By accuracy the model is no better than a constant: it is right in 0.0 %, ",
        ),
        (["yes"] * 4 + ["no"] * 6, ""),
    ],
)
def test_conclusion_starts_with_it_if_one_label_for_everybody_would_do_as_well(predicted, said):
    truth, sex = ["yes"] * 4 + ["no"] * 6, list("FM" * 5)
    audit = Audit(truth, predicted, {"sex": sex}, measures=["accuracy_parity"], y_desirable="yes")
    first = audit.sections[0]
    assert audit.conclusion.startswith(said)
    assert first.title.startswith("\N{BALLOT X} No better than a constant") == bool(said)
    assert ("constant" in first.title) == bool(said)


def test_rows_of_unknown_group_are_not_counted_as_judged():
    s = ["F", "M", None, "F", "M"] * 100
    audit = Audit(y_pred=[0, 1, 1, 1, 0] * 100, sensitive_features={"sex": s})
    assert "the 400 of 500 rows whose sex is known" in audit.conclusion
    known = Audit(y_pred=[0, 1] * 250, sensitive_features={"sex": ["F", "M"] * 250})
    assert "500 rows" in known.conclusion
    assert "is known" not in known.conclusion
    both = pd.DataFrame({"sex": s, "race": ["p", "q"] * 250})
    crossed = Audit(y_pred=[0, 1, 1, 1, 0] * 100, sensitive_features=both, min_group=0)
    assert "rows whose sex and race are known" in crossed.conclusion


def test_the_accuracy_says_that_it_is_of_all_rows_if_the_table_is_not():
    y, s = [0, 1, 1, 1, 0] * 100, ["F", "M", None, "F", "M"] * 100
    assert "Accuracy on all 500 rows is 100.0 %." in Audit(y, y, {"sex": s}).conclusion
    known = Audit(y, y, {"sex": ["F", "M"] * 250})
    assert "Accuracy is 100.0 %." in known.conclusion


def test_a_fair_model_that_costs_accuracy_for_nothing_is_told():
    plain, fair = flipped(0.1, 0.1), flipped(0.2, 0.2)
    s, named = pd.Series(GROUP, name="g"), {"baseline_name": "the plain model"}
    audit = Audit(TRUTH, fair, s, "accuracy_parity", baseline=plain, **named)
    assert audit.conclusion.endswith(
        "Accuracy is 80.0 %; without the fairness constraint it would be 90.0 %, and that model "
        "would be judged fair as well."
    )
    unfair = flipped(0.0, 0.2)
    for now, before in ((fair, unfair), (plain, fair), (fair, fair)):
        told = Audit(TRUTH, now, s, "accuracy_parity", baseline=before, **named).conclusion
        assert "that model" not in told


def test_the_ratio_is_judged_once():
    options = {"y_pred": [0, 1, 1, 1] * 100, "sensitive_features": ["a", "b"] * 200}
    assert [f.measure for f in Audit(**options).asked] == ["demographic_parity", "four_fifths_rule"]
    by_ratio = dict.fromkeys(["demographic_parity", "four_fifths_rule"], "80%")
    for tolerance in ("80%", by_ratio):
        asked = Audit(**options, tolerance=tolerance).asked
        assert [finding.measure for finding in asked] == ["demographic_parity"]
    beside = Audit(**options, measures="four_fifths_rule", others=list(by_ratio), tolerance="80%")
    assert [finding.measure for finding in beside.findings] == ["four_fifths_rule"]
    assert beside.asked == beside.findings


@pytest.mark.parametrize("n_rows", [200, 20_000])
def test_verdicts_that_are_not_fair_state_the_tolerance_that_would_do(n_rows):
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, n_rows)
    y_pred = (rng.random(n_rows) < 0.4 + 0.14 * s).astype(int)
    y = rng.integers(0, 2, n_rows)
    audit = Audit(y, y_pred, s, "demographic_parity")
    assert audit.verdict != FAIR
    (stated,) = re.findall(r"fair at a tolerance of ([\d.]+) points", " ".join(conclusion(audit)))
    wider = Audit(y, y_pred, s, "demographic_parity", tolerance=float(stated) / 100)
    assert wider.verdict == FAIR
    assert "would be judged fair" not in " ".join(conclusion(wider))
    with_ratio = Audit(None, y_pred, s, ["demographic_parity", "four_fifths_rule"], tolerance=0.01)
    assert f"By demographic parity it would be judged fair at a tolerance of {stated} points" in (
        " ".join(conclusion(with_ratio))
    )


def test_a_tolerance_that_nobody_would_call_fair_is_no_advice():
    rng = np.random.default_rng(0)
    s = np.repeat([0, 1], 60)
    y_pred = (rng.random(120) < 0.1 + 0.8 * s).astype(int)
    audit = Audit(None, y_pred, s, "demographic_parity")
    assert "only at a tolerance of" in " ".join(conclusion(audit))
    assert "for a claim of fairness" in " ".join(conclusion(audit))


def test_with_weights_the_price_is_counted_in_rows():
    """Rows stand for several people each, so that rows and points are not the same share."""
    y, s = np.tile([0, 1], 400), np.repeat(["a", "b"], 400)
    better, weight = y.copy(), np.ones(800)
    better[:40] ^= 1
    weight[:40] = 5.0
    weighted = Audit(y, y, s, baseline=better, sample_weight=weight).summary()
    assert "40 more rows are predicted correctly" in " ".join(weighted.split())
    plain = Audit(y, y, s, baseline=better).summary()
    assert "40 more people are predicted correctly" in " ".join(plain.split())


def test_a_star_is_explained_where_there_is_one():
    y, s = np.tile([0, 1], 400), np.repeat(["a", "b"], 400)
    better = np.where(s == "a", 1 - y, y)
    assert "A star marks" in Audit(y, y, s, baseline=better).summary()
    assert "A star marks" not in Audit(y, y, s, baseline=y).summary()


def test_groups_that_are_not_judged_and_sure_changes_have_different_marks():
    s = np.repeat(["large", "small", "tiny"], [600, 600, 9])
    before, now = np.zeros(1209, dtype=int), (s == "small").astype(int)
    text = Audit(None, now, s, "demographic_parity", baseline=before).summary()
    assert "tiny †" in text
    assert "† not judged" in text
    assert re.search(r"0\.0→100\.0\*", text)


@pytest.fixture(scope="module")
def open_verdict():
    """Women have 1,455 rows of the label no, 3 points off, and 45 of yes, which are all right."""
    place, s = np.arange(7500), np.repeat(["Male", "Female"], [6000, 1500])
    y = np.where(place % 100 < 3, "yes", "no")
    wrong = (y == "no") & (place % 97 < np.where(s == "Male", 12, 8))
    return pd.Series(y, name="hired"), np.where(wrong, "yes", y), pd.DataFrame({"sex": s})


def test_the_interval_beside_a_rate_is_that_of_this_rate(open_verdict):
    audit = Audit(*open_verdict, "equalized_odds")
    assert audit.verdict == UNDECIDED
    said = re.search(
        r"The rate of women is ([\d.]+) points \(interval (-?[\d.]+) to ([\d.]+)\) (below|above)",
        audit.conclusion,
    )
    assert said is not None
    levels = audit.to_frame("levels").set_index(["group", "label"]).loc[("sex=Female", "no")]
    ends = sorted(abs(100 * levels["level"]) / levels["level"] * levels[["low", "high"]])
    assert [float(end) for end in said.groups()[1:3]] == pytest.approx(ends, abs=0.051)
    assert float(said[1]) == pytest.approx(abs(100 * levels["level"]), abs=0.051)
    assert said[4] == ("above" if levels["level"] > 0 else "below")


def test_an_open_verdict_and_the_tolerance_that_would_do_state_the_same_figure(open_verdict):
    audit = Audit(*open_verdict, ["equalized_odds", "demographic_parity"])
    assert audit.verdict == UNDECIDED
    (largest,) = re.findall(r"gap of any group could be up to ([\d.]+) points\.", audit.conclusion)
    (passing,) = re.findall(r"at a tolerance of ([\d.]+) points", audit.conclusion)
    assert largest == passing


def test_no_rate_has_an_interval_beyond_the_largest_gap():
    y = np.array(["no", "yes"] * 300)
    s = np.repeat(["a", "b"], [540, 60])
    pred = np.where((s == "b") & (np.arange(600) % 10 < 2), "no", y)
    audit = Audit(y, pred, s, "accuracy_parity")
    assert audit.verdict == UNDECIDED
    assert "interval" not in audit.conclusion
    assert "largest gap of any group could be up to" in audit.conclusion


def test_equal_rates_of_few_people_are_told_as_equal():
    y = pd.Series(["no", "yes"] * 60, name="hired")
    audit = Audit(y, y, pd.Series(np.repeat(["a", "b", "c"], 40), name="land"), "equalized_odds")
    assert audit.verdict == UNDECIDED
    said = "In every group by land, 100 % of people with hired no are predicted correctly. "
    assert audit.conclusion.startswith(f"{said}All groups have the same rate. The largest gap of")


def test_rows_of_unknown_group_that_change_no_verdict_are_told_once():
    y, s = [0, 1] * 100, ["a", "b", "b", "a", "a"] * 40
    s[:4] = [None] * 4
    (said,) = [n.message for n in Audit(y, y, {"s": s}).warnings if n.kind == "unknown"]
    assert said.endswith("the best-off group, the verdict would still be undecided.")
