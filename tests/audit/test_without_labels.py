"""Decisions without true labels: who is selected, and nothing that would need to know more."""

import numpy as np
import pytest

from fairgrad.audit import Audit
from fairgrad.report import Report


def decisions(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.choice(["a", "b", "c"], n)
    return np.where(rng.random(n) < np.where(s == "a", 0.5, 0.35), "yes", "no"), s


def test_the_figures_are_those_of_an_audit_with_labels():
    pred, s = decisions()
    y = np.random.default_rng(1).permutation(pred)
    measures = ["demographic_parity", "four_fifths_rule"]
    known = Audit(y, pred, s, measures=measures)
    unknown = Audit(y_pred=pred, sensitive_features=s)
    assert unknown.verdict == known.verdict
    for mine, theirs in zip(unknown.findings, known.findings, strict=True):
        assert mine.judgement == theirs.judgement
        np.testing.assert_array_equal(mine.level_intervals, theirs.level_intervals)
    own = known.to_frame("rates").query("rate == 'selection_rate'").reset_index(drop=True)
    assert unknown.to_frame("rates").equals(own)
    assert set(unknown.to_frame("figures")["figure"]) == {
        "demographic_parity_difference",
        "demographic_parity_ratio",
    }


def test_nothing_is_said_of_true_labels():
    pred, s = decisions()
    audit = Audit(y_pred=pred, sensitive_features=s, baseline=np.roll(pred, 1))
    found = audit.to_dict()
    assert found["has_labels"] is False
    assert found["accuracy"] is None
    said = audit.summary() + audit.to_markdown() + Report(audit).html()
    for word in ("ccuracy is", "true positive", "recall", "predicted correctly", "Confusion"):
        assert word not in said.split("Method and definitions")[0]
    assert "ccuracy" not in audit.conclusion


@pytest.mark.parametrize("measure", ["equalized_odds", "accuracy_parity", "equal_opportunity"])
def test_measures_that_need_labels_say_so(measure):
    pred, s = decisions()
    with pytest.raises(ValueError, match=r"compares predictions with true labels.*demographic"):
        Audit(y_pred=pred, sensitive_features=s, measures=measure)


def test_what_is_missing_is_named():
    pred, s = decisions()
    with pytest.raises(ValueError, match="^y_pred: expected one value per row, got None"):
        Audit(sensitive_features=s)
    with pytest.raises(
        ValueError, match="^sensitive_features: expected one value per row, got None"
    ):
        Audit(y_pred=pred)
    with pytest.raises(ValueError, match=r"^y_pred: expected at least two labels, got \['yes'\]"):
        Audit(y_pred=["yes"] * 4, sensitive_features=[0, 0, 1, 1])


def test_two_systems_are_compared_without_labels():
    pred, s = decisions()
    other = np.where(np.arange(len(pred)) < 40, "yes", pred)
    audit = Audit(y_pred=other, sensitive_features=s, baseline=pred)
    assert audit.to_frame("sides")["rows"].sum() == (pred != other).sum()
    assert "accuracy" not in audit.conclusion
    assert audit.to_dict()["baseline_accuracy"] is None
    assert set(audit.to_frame("changes")["rate"]) == {"selection_rate"}


def test_many_labels_without_a_desirable_one():
    rng = np.random.default_rng(0)
    audit = Audit(y_pred=rng.integers(0, 4, 400), sensitive_features=rng.integers(0, 2, 400))
    assert [finding.measure for finding in audit.findings] == ["demographic_parity"]
    assert "Four-fifths rule" in audit.warnings[0].message
    assert audit.summary().count("selected") >= 4
