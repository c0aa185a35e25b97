"""One answer to: which label is desirable, how unfair is this, which rows are held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import results

from fairgrad import fairness_levels
from fairgrad.columns import sensitive_columns
from fairgrad.evaluate import unfairness
from fairgrad.groups import Groups, count_rows, group_rows
from fairgrad.measures import MEASURES, constraints_of, desirable_labels
from fairgrad.splitting import hold_out


class TestDesirableLabel:
    @pytest.mark.parametrize("labels", [[0, 1], [1, 2], ["no", "yes"], [-1, 1], [False, True]])
    def test_it_is_the_second_of_two(self, labels):
        assert desirable_labels(labels) == (1,)

    def test_of_more_labels_none_until_it_is_given(self):
        assert desirable_labels([0, 1, 2]) == ()
        assert desirable_labels([0, 1, 2], [2, 0]) == (0, 2)

    @pytest.mark.parametrize("measure", ["equality_of_opportunity", "four_fifths_rule"])
    @pytest.mark.parametrize("labels", [(1, 2), ("no", "yes")])
    def test_measures_take_the_second_of_two(self, measure, labels):
        rng = np.random.default_rng(0)
        y, h, s = rng.integers(0, 2, 50), rng.integers(0, 2, 50), rng.integers(0, 2, 50)
        named = np.array(labels)
        levels = fairness_levels(named[y], named[h], s, measure)
        np.testing.assert_array_equal(levels.values, fairness_levels(y, h, s, measure).values)
        assert levels.desirable == (labels[1],)

    def test_measures_that_need_it_ask_for_it(self):
        groups = Groups.from_data([0, 1, 2], [0, 1, 1])
        with pytest.raises(ValueError, match="y_desirable: equality_of_opportunity needs"):
            constraints_of("equality_of_opportunity", groups)

    def test_what_a_measure_does_not_look_at_is_not_said(self):
        assert fairness_levels([0, 1], [0, 1], [0, 1], "accuracy_parity").desirable == ()


class TestUnfairness:
    def test_parity_breaks_no_rule_of_four_fifths(self):
        y = h = np.tile([0, 1], 20)
        s = np.repeat([0, 1], 20)
        levels = fairness_levels(y, h, s, "four_fifths_rule")
        np.testing.assert_allclose(levels.values, 0.1)  # 0.5 - 0.8 * 0.5: room to spare
        assert levels.unfairness == 0

    def test_one_sided_measures_count_what_is_broken(self):
        y = np.zeros(40, dtype=int)
        y[0] = 1
        h = np.concatenate([np.ones(20, int), np.zeros(16, int), np.ones(4, int)])
        levels = fairness_levels(y, h, np.repeat([0, 1], 20), "four_fifths_rule")
        np.testing.assert_allclose(levels.values, [1 - 0.8 * 0.2, 0.2 - 0.8])
        assert levels.unfairness == pytest.approx((0.8 - 0.2) / 2)

    @given(problem=results(max_labels=2))
    def test_slack_changes_what_is_asked_not_what_is_measured(self, problem):
        y, h, s, _ = problem
        rows = group_rows(y, s)
        for measure in MEASURES:
            exact = constraints_of(measure, rows.groups)
            F = fairness_levels(y, h, s, measure).values
            for epsilon in (0.1, np.inf):  # infinite slack is the plain model
                slack = constraints_of(measure, rows.groups, epsilon=epsilon)
                np.testing.assert_allclose(exact.gaps(F), slack.gaps(F), atol=1e-12)

    def test_undefined_levels_do_not_count(self):
        gaps = np.array([[0.1, np.nan, 0.3], [np.nan] * 3])
        np.testing.assert_array_equal(unfairness(gaps), [0.2, np.nan])
        np.testing.assert_array_equal(unfairness(gaps, "max"), [0.3, np.nan])


class TestHeldOutRows:
    @given(
        seed=st.integers(0, 99),
        fraction=st.floats(0.05, 0.9),
        sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    )
    def test_every_cell_gives_its_share_but_never_all(self, seed, fraction, sizes):
        cell = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
        quota = np.minimum(np.rint(fraction * np.array(sizes)), np.array(sizes) - 1)
        if not quota.any():
            with pytest.raises(ValueError, match="validation_fraction: .* holds out no row"):
                hold_out(cell, fraction, seed)
            return
        training, held = hold_out(cell, fraction, seed)
        np.testing.assert_array_equal(np.bincount(cell[held], minlength=len(sizes)), quota)
        np.testing.assert_array_equal(np.union1d(training, held), np.arange(len(cell)))
        np.testing.assert_array_equal(held, hold_out(cell, fraction, seed)[1])

    def test_nothing_is_held_out_when_nothing_is_asked(self):
        training, held = hold_out(np.zeros(3, dtype=int), 0.0)
        assert (training.tolist(), held.tolist()) == ([0, 1, 2], [])

    @pytest.mark.parametrize("bad", [-0.1, 1.0, "half", None, float("nan")])
    def test_bad_fractions(self, bad):
        with pytest.raises(ValueError, match="validation_fraction: expected a finite number"):
            hold_out(np.zeros(3, dtype=int), bad)


class TestReadingRows:
    @given(problem=results(n_attributes=2, unknown=True, weights=True))
    def test_rows_are_where_the_groups_say(self, problem):
        y, _, s, weight = problem
        rows = group_rows(y, s, weight)
        groups = rows.groups
        np.testing.assert_array_equal(rows.group, groups.group_index(s))
        np.testing.assert_array_equal(rows.label, groups.label_index(y))
        sums = count_rows(rows.cell(), groups.mass.size, rows.weight)
        np.testing.assert_allclose(groups.mass.ravel(), sums)
        again = groups.place(y, s, weight)
        np.testing.assert_array_equal(again.cell(), rows.cell())
        half = rows.take(np.arange(0, len(y), 2))
        np.testing.assert_allclose(half.groups.mass.sum(), weight[::2].sum())

    def test_labels_without_rows_have_cells(self):
        assert group_rows(["a", "c"], [0, 1], labels=["a", "b", "c"]).groups.mass.shape == (3, 2)
        with pytest.raises(ValueError, match="y: got 'z', which was never seen"):
            group_rows(["z"], [0], labels=["a", "b"])

    def test_sensitive_columns_are_named_and_checked(self):
        assert list(sensitive_columns([1, 2], 2)) == ["s"]
        assert list(sensitive_columns({"sex": [1, 2]}, 2)) == ["sex"]
        with pytest.raises(ValueError, match="sensitive_features: expected one value per row of X"):
            sensitive_columns([1, 2], 3)
