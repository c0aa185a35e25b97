"""Each measure's constants against its definition, computed directly from predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import definition, results

from fairgrad import Constraints, Groups, On, fairness_levels
from fairgrad.evaluate import cell_errors, is_wrong, levels_of
from fairgrad.groups import group_rows
from fairgrad.measures import ALIASES, MEASURES, constraints_of

BINARY = ["demographic_parity", "four_fifths_rule"]
MULTI = [name for name in MEASURES if name not in BINARY]


def check(measure, problem, desirable=(1,)):
    y, h, s, weight = problem
    levels = fairness_levels(y, h, s, measure, y_desirable=desirable, sample_weight=weight)
    expected = definition(measure, y, h, s, weight, desirable)
    np.testing.assert_allclose(levels.values, expected, atol=1e-12)


@pytest.mark.parametrize("measure", MULTI)
@given(problem=results())
def test_levels_equal_the_definition(measure, problem):
    check(measure, problem)


@pytest.mark.parametrize("measure", BINARY)
@given(problem=results(max_labels=2))
def test_levels_equal_the_definition_for_two_labels(measure, problem):
    check(measure, problem)


@pytest.mark.parametrize("measure", MEASURES)
@given(problem=results(max_labels=2, unknown=True, weights=True))
def test_unknown_values_and_weights(measure, problem):
    check(measure, problem)


@given(problem=results(), data=st.data())
def test_any_set_of_desirable_labels(problem, data):
    labels = np.unique(problem[0]).tolist()
    desirable = data.draw(st.sets(st.sampled_from(labels), min_size=1))
    check("equality_of_opportunity", problem, tuple(desirable))


@pytest.mark.parametrize("measure", MEASURES)
@given(problem=results(max_labels=2, n_attributes=2, unknown=True, weights=True))
def test_two_attributes_apart_are_the_definition_of_each(measure, problem):
    y, h, s, weight = problem
    combined = [On("s0", measure), On("s1", measure)]
    levels = fairness_levels(y, h, s, combined, sample_weight=weight)
    expected = [definition(measure, y, h, s[:, a], weight) for a in range(2)]
    np.testing.assert_allclose(levels.values, np.concatenate(expected), atol=1e-12)


@given(problem=results(max_labels=3, n_attributes=2, max_groups=3))
def test_two_attributes_together_are_one_attribute_of_their_combinations(problem):
    y, h, s, weight = problem
    crossed = np.unique(s, axis=0, return_inverse=True)[1].ravel()
    for measure in MULTI:
        levels = fairness_levels(y, h, s, measure, y_desirable=1)
        expected = definition(measure, y, h, crossed, weight)
        np.testing.assert_allclose(levels.values, expected, atol=1e-12)


@given(problem=results(max_labels=2))
def test_measures_combine_although_their_cells_differ(problem):
    y, h, s, weight = problem
    levels = fairness_levels(y, h, s, ["accuracy_parity", "equalized_odds"])
    expected = [definition(m, y, h, s, weight) for m in ("accuracy_parity", "equalized_odds")]
    np.testing.assert_allclose(levels.values, np.concatenate(expected), atol=1e-12)


def test_paper_constants_of_accuracy_parity():
    groups = Groups.from_counts({(0, 0): 10, (1, 0): 20, (0, 1): 30, (1, 1): 40})
    constraints = constraints_of("accuracy_parity", groups)
    np.testing.assert_allclose(constraints.C, [[0.3 - 1, 0.7], [0.3, 0.7 - 1]])
    assert (constraints.c0 == 0).all()
    assert not constraints.by_label


def test_paper_constants_of_demographic_parity():
    groups = Groups.from_counts({(0, 0): 10, (1, 0): 20, (0, 1): 30, (1, 1): 40})
    constraints = constraints_of("demographic_parity", groups)
    # (l, r) = (0, 0): P(y=0, s=0) - P(y=0 | s=0), P(y=0, s=1), ... as in appendix B
    np.testing.assert_allclose(constraints.C[0], [0.1 - 1 / 3, 0.3, 2 / 3 - 0.2, -0.4])
    np.testing.assert_allclose(constraints.c0[0], 0.6 - 2 / 3)


def test_aliases_of_0_2_0():
    groups = Groups.from_counts({(0, 0): 10, (1, 0): 20, (0, 1): 30, (1, 1): 40})
    for alias, name in ALIASES.items():
        alias_C, C = constraints_of(alias, groups).C, constraints_of(name, groups).C
        np.testing.assert_array_equal(alias_C, C)


def test_shares_are_among_known_rows():
    with_unknown = Groups.from_data([0, 1, 0, 1, 1, 1], [0, 0, 1, 1, -1, -1])
    known = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
    C = constraints_of("accuracy_parity", with_unknown).C
    np.testing.assert_array_equal(C[:, :2], constraints_of("accuracy_parity", known).C)
    np.testing.assert_array_equal(C[:, 2], 0)


@given(problem=results(max_labels=2))
def test_a_measure_of_your_own(problem):
    y, h, s, _ = problem

    def worst_group_error(groups):
        """No group's error above one half: one-sided, no comparison with others."""
        n = groups.n_groups
        return Constraints(np.zeros(n), np.eye(n), by_label=False, lower=-np.inf, upper=0.5)

    levels = fairness_levels(y, h, s, worst_group_error)
    expected = [np.mean(h[s == r] != y[s == r]) for r in np.unique(s)]
    np.testing.assert_allclose(levels.values, expected)


def test_matrices_of_your_own():
    y, h, s = [0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1]
    c0, C = [0.1], [[1, -1, 0, 0]]
    groups = Groups.from_data(y, s)
    constraints = constraints_of((c0, C), groups)
    rows = group_rows(y, s)
    errors = cell_errors(rows, is_wrong(rows, h), by_label=True)
    np.testing.assert_allclose(levels_of(constraints, errors).values, [0.1 + 0 - 1])


def test_each_measure_has_its_own_epsilon():
    groups = Groups.from_data([0, 1, 0, 1], {"sex": [0, 0, 1, 1], "race": [0, 1, 1, 0]})
    both = [On("sex", "accuracy_parity", epsilon=0.1), On("race", "accuracy_parity")]
    np.testing.assert_array_equal(constraints_of(both, groups).upper, [0.1, 0.1, 0, 0])
    np.testing.assert_array_equal(constraints_of(both, groups, epsilon=0.2).lower[2:], [-0.2] * 2)


def test_the_four_fifths_rule_is_one_sided():
    groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
    constraints = constraints_of("four_fifths_rule", groups, epsilon=0.01)
    assert (constraints.upper == np.inf).all()
    assert (constraints.lower == -0.01).all()


ONE_EMPTY_CELL = {(0, 0): 5, (1, 0): 5, (0, 1): 5, (1, 1): 0}


class TestUndefined:
    """A constraint is left out only when it is not defined."""

    @pytest.mark.parametrize("measure", ["equalized_odds", "equality_of_opportunity"])
    def test_an_empty_cell(self, measure):
        constraints = constraints_of(measure, Groups.from_counts(ONE_EMPTY_CELL))
        with pytest.warns(UserWarning, match="y=1, s=1"):
            left = constraints.drop_undefined()
        assert left.names == ("y=0, s=0", "y=0, s=1", "y=1, s=0")

    @pytest.mark.parametrize("measure", ["accuracy_parity", "demographic_parity"])
    def test_an_empty_cell_of_a_group_with_rows_is_fine(self, measure):
        constraints = constraints_of(measure, Groups.from_counts(ONE_EMPTY_CELL))
        assert constraints.drop_undefined() is constraints

    @pytest.mark.parametrize("measure", ["accuracy_parity", "demographic_parity"])
    def test_an_empty_group(self, measure):
        groups = Groups.from_counts({**ONE_EMPTY_CELL, (0, 2): 0})
        with pytest.warns(UserWarning, match="s=2"):
            left = constraints_of(measure, groups).drop_undefined()
        assert not any("s=2" in name for name in left.names)

    def test_none_remains(self):
        groups = Groups.from_data([0, 0, 1], [-1, -1, -1])
        with pytest.raises(ValueError, match="s: no row has a known value of s"):
            constraints_of("accuracy_parity", groups)
        empty = Groups.from_counts({(0, 0): 0, (1, 0): 0, (0, -1): 1, (1, -1): 3})
        with pytest.raises(ValueError, match="no constraint is defined"):
            constraints_of("accuracy_parity", empty).drop_undefined()

    def test_levels_on_an_evaluation_set_count_them(self):
        y, h, s = [0, 0, 1, 0], [0, 1, 1, 1], [0, 1, 0, 0]
        levels = fairness_levels(y, h, s, "equalized_odds")
        assert levels.n_undefined == 1
        expected = np.nanmean(np.abs(levels.values))
        assert levels.unfairness == expected


class TestBadInput:
    groups = Groups.from_data([0, 1, 2], [0, 1, 1])

    def test_unknown_measure_lists_the_names(self):
        with pytest.raises(ValueError, match="'fairness'.*equalized_odds"):
            constraints_of("fairness", self.groups)

    @pytest.mark.parametrize("measure", BINARY)
    def test_two_labels_needed(self, measure):
        with pytest.raises(ValueError, match=f"{measure} is defined for two labels, got 3"):
            constraints_of(measure, self.groups)

    @pytest.mark.parametrize("desirable", [(7,), (), (0, 7)])
    def test_desirable_labels_must_be_labels(self, desirable):
        with pytest.raises(ValueError, match="y_desirable: expected labels among"):
            constraints_of("equality_of_opportunity", self.groups, y_desirable=desirable)

    def test_matrices_must_fit_the_cells(self):
        with pytest.raises(ValueError, match=r"C: expected one column per cell \(6"):
            constraints_of(([0], [[1, 2]]), self.groups)

    def test_attributes_must_exist(self):
        with pytest.raises(ValueError, match=r"'age'; the sensitive attributes are \['s'\]"):
            constraints_of(On("age", "accuracy_parity"), self.groups)

    @pytest.mark.parametrize("epsilon", [-0.1, np.nan])
    def test_epsilon(self, epsilon):
        with pytest.raises(ValueError, match="epsilon: expected at least 0"):
            constraints_of("accuracy_parity", self.groups, epsilon=epsilon)

    def test_bounds_must_be_in_order(self):
        with pytest.raises(ValueError, match=r"lower: expected at most upper, got 1.0 > 0.0"):
            Constraints([0], [[1]], by_label=False, lower=1)

    def test_empty_list(self):
        with pytest.raises(ValueError, match="empty list"):
            constraints_of([], self.groups)

    def test_a_function_that_gives_something_else(self):
        with pytest.raises(TypeError, match="gives Constraints, got int"):
            constraints_of(lambda _: 3, self.groups)
