import numpy as np
import pandas as pd
import pytest

from fairgrad.audit import Audit


def kinds(audit):
    return [notice.kind for notice in audit.warnings]


def message(audit, kind):
    return next(notice.message for notice in audit.warnings if notice.kind == kind)


Y = np.tile([0, 1], 200)
S = np.repeat(["a", "b"], 200)


def with_accuracy(first, second):
    right = np.concatenate([np.arange(200) < 200 * share for share in (first, second)])
    return np.where(right, Y, 1 - Y)


def test_constant_predictions():
    assert "every row is predicted 0" in Audit(Y, 0 * Y, S).conclusion
    one_group = np.where(S == "a", 1, Y)
    assert "in: a (1)" in message(Audit(Y, one_group, S), "constant")
    assert "constant" not in kinds(Audit(Y, with_accuracy(0.9, 0.8), S))


def test_levelling_down():
    before, worse = with_accuracy(0.9, 0.7), with_accuracy(0.7, 0.7)
    audit = Audit(Y, worse, S, measures="accuracy_parity", baseline=before)
    said = message(audit, "levelling_down")
    assert said.endswith("People (a) are predicted correctly less often. No group clearly gained.")
    lifted = Audit(Y, with_accuracy(0.9, 0.85), S, measures="accuracy_parity", baseline=before)
    assert "levelling_down" not in kinds(lifted)
    less_fair = Audit(Y, with_accuracy(0.9, 0.5), S, measures="accuracy_parity", baseline=before)
    assert "levelling_down" not in kinds(less_fair)


def test_levelling_down_names_the_label_and_counts_every_gain_that_the_table_marks():
    """One label's recall rises by 1 point: a star in the table, not sure among four rates."""
    truth = pd.Series(np.tile(["No", "Yes"], 1000), name="released")
    sex = pd.DataFrame({"sex": np.repeat(["Female", "Male"], 1000)})
    yes, men = truth == "Yes", sex["sex"] == "Male"
    plain, fair = truth.copy(), truth.copy()
    plain[~men & ~yes & (np.arange(2000) < 300)] = "Yes"
    fair[~yes & (np.arange(2000) % 1000 < 300)] = "Yes"
    audit = Audit(truth, fair, sex, "equalized_odds", baseline=plain)
    said = message(audit, "levelling_down")
    assert "Men with released No are predicted correctly less often." in said
    plain[men & yes & (np.arange(2000) > 1986)] = "No"
    gained = Audit(truth, fair, sex, "equalized_odds", baseline=plain)
    assert (gained.changes[0].direction <= 0).all()
    marked = gained.to_frame("changes").query("low > 0 and rate == 'true_positive_rate'")
    assert "sex=Male" in marked["group"].tolist()
    assert "levelling_down" not in kinds(gained)


def test_who_gained_and_who_lost():
    audit = Audit(
        Y, with_accuracy(0.8, 0.8), S, measures="accuracy_parity", baseline=with_accuracy(0.9, 0.6)
    )
    (change,) = audit.changes
    assert change.direction.tolist() == [-1, 1]
    frame = audit.to_frame("changes").set_index(["group", "rate"])["change"]
    assert frame["sensitive_features=a", "accuracy"] == pytest.approx(-0.1)
    assert frame["sensitive_features=b", "accuracy"] == pytest.approx(0.2)


def test_another_threshold_than_the_trained_one():
    score = np.linspace(0, 1, 400)
    assert "threshold" not in kinds(Audit(Y, (score > 0.5) * 1, S, y_score=score))
    moved = Audit(Y, (score > 0.7) * 1, S, y_score=score)
    assert "switch at a score of about 0.7" in message(moved, "threshold")
    assert "threshold" not in kinds(Audit(Y, (score > 0.7) * 1, S, y_score=score, threshold=0.7))
    both = np.stack([1 - score, score], axis=1)
    assert "threshold" in kinds(Audit(Y, (score > 0.7) * 1, S, y_score=both))
    by_group = (score > np.where(np.arange(400) % 2, 0.4, 0.6)) * 1
    assert "single threshold" in message(Audit(Y, by_group, S, y_score=score), "threshold")


def test_a_threshold_that_everybody_passes_is_told_too():
    score = np.linspace(0.2, 1, 400)
    everybody = Audit(Y, np.ones(400, dtype=int), S, y_score=score)
    assert "switch at a score of about 0.2, not at 0.5" in message(everybody, "threshold")
    nobody = Audit(Y, np.zeros(400, dtype=int), S, y_score=score)
    assert "switch at a score of about 1, not at 0.5" in message(nobody, "threshold")


def test_a_system_of_unknown_threshold_is_told_nothing_of_training():
    score = np.linspace(0, 1, 400)
    moved = Audit(Y, (score > 0.7) * 1, S, y_score=score, threshold=None)
    assert "threshold" not in kinds(moved)
    by_group = (score > np.where(np.arange(400) % 2, 0.4, 0.6)) * 1
    audit = Audit(Y, by_group, S, y_score=score, threshold=None)
    assert "single threshold" in message(audit, "threshold")


def test_scores_of_many_labels():
    rng = np.random.default_rng(0)
    score, y = rng.random((400, 3)), np.arange(400) % 3
    assert "threshold" not in kinds(Audit(y, score.argmax(axis=1), S, y_score=score))
    assert "largest score" in message(
        Audit(y, (score * [1, 1, 2]).argmax(axis=1), S, y_score=score), "threshold"
    )


def test_unknown_values_are_counted_and_set_aside():
    s = np.where(np.arange(400) % 10 == 0, None, S)
    audit = Audit(Y, with_accuracy(0.9, 0.8), s)
    assert "40 of 400 rows have no known sensitive_features" in message(audit, "unknown")
    assert audit.to_frame("groups")["rows"].sum() == 360
    known = np.array([value is not None for value in s])
    only = Audit(Y[known], with_accuracy(0.9, 0.8)[known], S[known])
    pd.testing.assert_frame_equal(audit.to_frame("levels"), only.to_frame("levels"))


def test_groups_that_are_not_judged_are_named():
    s = np.concatenate([S, ["c"] * 5])
    y = np.concatenate([Y, [0] * 5])
    assert "rows: c (5)" in message(Audit(y, y, s), "not_judged")
    assert "not_judged" not in kinds(Audit(y, y, s, min_group=0))


def test_tables_of_small_groups_alone_are_told_once():
    y, sex, race = [0, 1] * 30, ["F", "M"] * 30, ["a", "b", "c"] * 20
    (told,) = (
        one.message
        for one in Audit(y, y, {"sex": sex, "race": race}, min_group=40).warnings
        if one.kind == "remark"
    )
    assert told == (
        "By sex, race and sex x race fewer than two groups have 40 rows, so all are judged, "
        "whatever their size."
    )


def test_declared_but_absent_groups_are_named():
    column = pd.Series(pd.Categorical(S, categories=["a", "b", "zz"]), name="race")
    assert "race=zz" in message(Audit(Y, Y, column), "empty")


def test_weights_make_intervals_approximate():
    audit = Audit(Y, Y, S, sample_weight=np.linspace(1, 2, 400))
    assert "approximate" in message(audit, "weights")
