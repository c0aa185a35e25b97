"""A model fitted to all rows decides for each group as those of the folds did, or is not taken."""

import re

import numpy as np
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

from fairgrad import FairnessWarning
from fairgrad.boosting import choice, faults
from fairgrad.boosting.judged import JudgedRounds, OtherDecisions, label_counts
from fairgrad.evaluate import fairness_levels
from fairgrad.groups import group_rows

from .conftest import fitted


def draw(n, seed):
    """People who differ in three yes-or-no questions: few trees give many of them one score."""
    rng = np.random.default_rng(seed)
    s = rng.choice(["a", "b", "c"], n, p=[0.5, 0.35, 0.15])
    X = (rng.random((n, 3)) < np.where(s == "b", 0.6, 0.3)[:, None]).astype(float)
    y = (X @ [1.0, 0.7, 0.4] + 0.3 * (s == "b") + rng.normal(size=n) > 1).astype(int)
    return X, y, s


def worst_level(y, predicted, s):
    return np.abs(fairness_levels(y, predicted, s, "demographic_parity").values).max()


def test_few_trees_are_as_fair_to_new_rows_as_in_the_folds(make):
    """Where all people of a group who have one score changed sides, the worst was 0.4."""
    X, y, s = draw(20_000, 99)
    worst = []
    for seed in (2, 6, 7, 11, 13):
        model, _ = fitted(make(n_estimators=5, use_sensitive=True), *draw(1200, seed))
        worst.append(worst_level(y, model.predict(X, sensitive_features=s), s))
        assert np.abs(model.levels_cross_fitted_).max() < 0.03
    assert np.mean(worst) < 0.1


@pytest.fixture
def refuse(monkeypatch):
    """Has those models refused that a function of `JudgedRounds` says."""

    def refuse_if(is_refused):
        def decided_otherwise(one, rows, scores):
            assert one.decided(scores, rows.group).shape == rows.label.shape
            return OtherDecisions("sex=F", 1, 0.5, 1.0) if is_refused(one) else None

        monkeypatch.setattr(JudgedRounds, "decided_otherwise", decided_otherwise)

    return refuse_if


TRIED = (
    "The model that was best in the folds is not kept: fitted to all rows, it gives 100 % of the "
    "group sex=F the label 1; in the folds 50 % got it."
)


def test_the_next_best_is_taken_and_said(make, hiring, refuse):
    X, y, s = hiring.X[:1500], hiring.y[:1500], hiring.sex[:1500]
    refuse(lambda one: one.is_plain)  # which is the best there
    model, said = fitted(make(use_sensitive=True), X, y, s)
    assert said[0].startswith(TRIED)
    worst = np.abs(model.levels_cross_fitted_).max()
    assert "The model is now one with weights" in said[0]
    assert (
        f"and largest |F| {worst:.3f} on rows that its trees have not learnt from. Try" in said[0]
    )
    assert np.abs(model.cell_weights_ - 1).max() > 0.01
    levels = fairness_levels(
        y, model.predict(X, sensitive_features=s), s, "demographic_parity"
    ).values
    shifted = "scores shifted by group" in said[0]  # else levels are those before the last round
    np.testing.assert_allclose(model.levels_, levels, atol=1e-12 if shifted else 0.01)
    assert worst < 0.05
    assert np.abs(levels).max() < 0.1


@pytest.mark.parametrize("aware", [False, True])
def test_the_plain_model_is_taken_at_last_and_said(make, hiring, refuse, aware):
    refuse(lambda _: True)
    X, y, s = hiring.X[:1500], hiring.y[:1500], hiring.sex[:1500]
    model, said = fitted(make(use_sensitive=aware), X, y, s)
    nor = " Nor were 2 more, for the same reason." if aware else ""
    assert said[0].startswith(f"{TRIED}{nor} The model is now a plain one: accuracy 0.")
    assert not said[1:]
    values = {"sensitive_features": s} if aware else {}
    plain, _ = fitted(make(use_sensitive=aware, n_folds=0, **choice.PLAIN), X, y, s)
    np.testing.assert_array_equal(
        model.predict_proba(X, **values), plain.predict_proba(X, **values)
    )
    np.testing.assert_array_equal(model.levels_, plain.levels_)
    assert np.abs(model.levels_cross_fitted_).max() > 0.1


@pytest.mark.parametrize(
    ("is_plain", "is_shifted", "n", "said"),
    [
        (True, True, 2, "Nor was 1 more, for the same reason. The model is now a plain one with "),
        (True, True, 1, "with scores shifted by group: accuracy 0.700 and largest |F| 0.020 on"),
        (False, True, 1, "got it. The model is now one with weights and scores shifted by group: "),
        (
            False,
            False,
            3,
            "Nor were 2 more, for the same reason. The model is now one with weights:",
        ),
    ],
)
def test_which_model_it_is_now_is_said(is_plain, is_shifted, n, said):
    shifts = np.zeros((2, 2)) if is_shifted else None
    one = JudgedRounds(5, 0, 0.7, 0.0, np.array([0.02, -0.01]), is_plain=is_plain, shifts=shifts)
    with pytest.warns(FairnessWarning, match=re.escape(said)):
        faults.warn_of_next_best(one, [OtherDecisions("sex=F", 1, 0.5, 1.0)] * n)


def test_models_with_the_same_weights_are_fitted_once(make, hiring, refuse, monkeypatch):
    """The best without weights follows the best with weights, of which there are two."""
    refuse(lambda _: True)
    library, fits = type(make()).__bases__[1], []
    fit = library.fit

    def counted(model, X, *arguments, **options):
        fits.append(len(X))
        return fit(model, X, *arguments, **options)

    monkeypatch.setattr(library, "fit", counted)
    fitted(make(n_estimators=5, use_sensitive=True), hiring.X, hiring.y, hiring.sex)
    assert fits == [2000] * 6 + [3000] * 2


def as_judged(shares, shifts=None):
    return JudgedRounds(5, 0, 0.7, 0.0, np.zeros(2), shares=np.array(shares), shifts=shifts)


def test_a_group_that_gets_other_labels_than_in_the_folds_is_found():
    s = np.repeat(["a", "b", "c"], [400, 190, 10])
    y = np.tile([0, 1], 300)
    rows = group_rows({"result": y}, {"place": s})
    half = as_judged(np.full((2, 3), 0.5))
    scores = np.where(s == "b", 1.0, 2.0 * y - 1)
    assert half.decided_otherwise(rows, scores) == ("place=b", 1, 0.5, 1.0)
    assert half._replace(shares=None).decided_otherwise(rows, scores) is None
    rng = np.random.default_rng(0)
    by_chance = np.where(s == "c", 1.0, rng.normal(size=600))  # nor do ten rows say anything
    assert half.decided_otherwise(rows, by_chance) is None
    unknown = group_rows({"result": y}, {"place": np.where(s == "b", None, s)})
    shares = np.full((2, unknown.groups.n_groups), 0.5)
    assert as_judged(shares).decided_otherwise(unknown, scores) is None


def test_shifts_are_moved_where_labels_are_not_given_as_often():
    s = np.repeat(["a", "b", "c"], 300)
    rows = group_rows(np.tile([0, 1], 450), s)
    rng = np.random.default_rng(0)
    scores = np.concatenate(
        [rng.normal(size=300), 5 + rng.normal(size=300), np.repeat([1, 2], 150)]
    )
    shares = np.array([[0.5, 0.75, 0.4], [0.5, 0.25, 0.6]])
    before = np.zeros((2, 3))
    one = as_judged(shares, before)
    moved = one.moved(rows, scores)
    assert moved.decided_otherwise(rows, scores) is None
    counts = label_counts(rows, moved.decided(scores, rows.group))
    np.testing.assert_array_equal(counts[1], [np.sum(scores[:300] > 0), 75, 150])
    assert (moved.shifts[:, 0] == 0).all()  # as often but for chance
    assert moved.shifts[1, 2] == -1.5  # all with one score or none: between the two
    assert not before.any()
    everybody = as_judged(np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]), before).moved(rows, scores)
    counts = label_counts(rows, everybody.decided(scores, rows.group))
    np.testing.assert_array_equal(counts[1], [300, 300, 0])


def test_nothing_is_moved_without_shifts_or_with_more_labels():
    rows = group_rows(np.tile([0, 1, 2], 100), np.repeat([0, 1], 150))
    scores = np.eye(3)[rows.label]
    one = as_judged(np.full((3, 2), 1 / 3), np.zeros((3, 2)))
    assert one.moved(rows, scores) is one
    two = as_judged(np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert two.moved(rows, scores[:, 0]) is two
    assert one._replace(shares=None).moved(rows, scores[:, 0]).shifts is one.shifts
