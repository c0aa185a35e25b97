"""Each measure's constants against its definition, computed directly from predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import bounded, definition, results
from scipy.stats import norm

from fairgrad import AtLeast, AtMost, Constraints, Groups, On, fairness_levels
from fairgrad.evaluate import levels_of, predicted_index
from fairgrad.groups import group_rows
from fairgrad.measures import ALIASES, BOUNDED_RATES, MEASURES, constraints_of

MULTI = list(MEASURES)


def check(measure, problem, desirable=(1,)):
    y, h, s, weight = problem
    levels = fairness_levels(y, h, s, measure, y_desirable=desirable, sample_weight=weight)
    expected = definition(measure, y, h, s, weight, desirable)
    np.testing.assert_allclose(levels.values, expected, atol=1e-12)


@pytest.mark.parametrize("measure", MULTI)
@given(problem=results())
def test_levels_equal_the_definition(measure, problem):
    check(measure, problem)


@pytest.mark.parametrize("measure", MEASURES)
@given(problem=results(max_labels=3, unknown=True, weights=True))
def test_unknown_values_and_weights(measure, problem):
    check(measure, problem)


@given(problem=results(), data=st.data())
def test_any_set_of_desirable_labels(problem, data):
    labels = np.unique(problem[0]).tolist()
    desirable = data.draw(st.sets(st.sampled_from(labels), min_size=1))
    check("equality_of_opportunity", problem, tuple(desirable))
    if len(desirable) < len(labels):
        check("four_fifths_rule", problem, tuple(desirable))


@pytest.mark.parametrize("measure", MEASURES)
@given(problem=results(max_labels=3, n_attributes=2, unknown=True, weights=True))
def test_two_attributes_apart_are_the_definition_of_each(measure, problem):
    y, h, s, weight = problem
    combined = [On("s0", measure), On("s1", measure)]
    levels = fairness_levels(y, h, s, combined, y_desirable=1, sample_weight=weight)
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


@given(problem=results())
def test_measures_combine_although_their_cells_differ(problem):
    y, h, s, weight = problem
    for second in ("equalized_odds", "demographic_parity"):
        both = ["accuracy_parity", second]
        levels = fairness_levels(y, h, s, both)
        expected = [definition(m, y, h, s, weight) for m in both]
        np.testing.assert_allclose(levels.values, np.concatenate(expected), atol=1e-12)


@pytest.mark.parametrize("kind", [AtLeast, AtMost])
@pytest.mark.parametrize("rate", BOUNDED_RATES)
@given(problem=results(weights=True, unknown=True), data=st.data())
def test_bounds_on_rates(kind, rate, problem, data):
    y, h, s, weight = problem
    labels = sorted(data.draw(st.sets(st.sampled_from(np.unique(y)[1:].tolist()), min_size=1)))
    levels = fairness_levels(y, h, s, kind(rate, 0.7, labels), sample_weight=weight)
    expected = bounded(rate, y, h, s, weight, labels) - 0.7
    np.testing.assert_allclose(levels.values, expected, atol=1e-12)
    broken = np.maximum(-expected if kind is AtLeast else expected, 0)
    np.testing.assert_allclose(levels.gaps, broken, atol=1e-12)
    same = fairness_levels(y, h, s, kind(rate, 0.7), y_desirable=labels, sample_weight=weight)
    np.testing.assert_array_equal(same.values, levels.values)


@pytest.mark.parametrize("measure", MEASURES)
@given(problem=results(max_labels=3, max_groups=3, n_attributes=2, unknown=True, weights=True))
def test_within_strata_it_is_the_definition_in_each_of_them(measure, problem):
    y, h, s, weight = problem
    within = On("s0", measure, within="s1")
    levels = fairness_levels(y, h, s, within, y_desirable=1, sample_weight=weight)
    places = dict(zip(levels.names, levels.values, strict=True))
    seen = 0
    for stratum in np.unique(s[s[:, 1] != -1, 1]):
        inside = s[:, 1] == stratum
        groups = np.unique(s[inside & (s[:, 0] != -1), 0])
        own = {n: v for n, v in places.items() if n.endswith(f" in s1={stratum}")}
        if len(groups) < 2:
            assert np.isnan(list(own.values())).all()
        else:
            part = [column[inside] for column in (y, h, s[:, 0], weight)]
            labels = np.unique(y)
            expected = definition(measure, *part, labels=labels)
            np.testing.assert_allclose(list(own.values()), expected, atol=1e-12)
        seen += len(own)
    assert seen == len(places)


def test_strata_of_one_group_are_counted_in_a_warning():
    rows = {(0, "F", "a"): 5, (1, "F", "a"): 5, (0, "M", "a"): 5, (1, "M", "a"): 5}
    rows |= {(0, "F", "b"): 5, (1, "F", "b"): 9, (0, "M", "c"): 1, (1, "M", None): 7}
    groups = Groups.from_counts(rows)
    constraints = constraints_of(On("s0", "demographic_parity", within="s1"), groups)
    with pytest.warns(UserWarning, match="^2 strata left out .* rows there: s1=b; s1=c.$"):
        left = constraints.slacken(0.1).drop_undefined()
    assert left.names == (
        "y=0, s0=F in s1=a", "y=0, s0=M in s1=a", "y=1, s0=F in s1=a", "y=1, s0=M in s1=a",
    )  # fmt: skip
    unknown = [name == "s0=M, s1=?" for name in groups.names]
    assert not left.C.reshape(4, 2, -1)[:, :, unknown].any()
    alone = Groups.from_counts({(0, "F", "b"): 5, (1, "M", "c"): 9})
    with pytest.raises(ValueError, match="have no rows of two groups to compare"):
        constraints_of(On("s0", "accuracy_parity", within="s1"), alone).drop_undefined()


def test_berkeley_within_departments_the_sign_flips():
    """Bickel, Hammel and O'Connell (1975): admitted and rejected of the six largest departments."""
    table = {
        "A": (512, 313, 89, 19), "B": (353, 207, 17, 8), "C": (120, 205, 202, 391),
        "D": (138, 279, 131, 244), "E": (53, 138, 94, 299), "F": (22, 351, 24, 317),
    }  # fmt: skip
    rows = {}
    for department, (men_in, men_out, women_in, women_out) in table.items():
        rows |= {("in", "M", department): men_in, ("out", "M", department): men_out}
        rows |= {("in", "F", department): women_in, ("out", "F", department): women_out}
    groups = Groups.from_counts(rows)
    truth = np.zeros(groups.mass.size)  # the decisions themselves are the predictions
    level = dict(zip(*_named("demographic_parity", groups, truth, "in"), strict=True))
    assert level["y=in, s0=F"] == pytest.approx(557 / 1835 - 1755 / 4526)
    within = On("s0", "demographic_parity", within="s1")
    level = dict(zip(*_named(within, groups, truth, "in"), strict=True))
    assert level["y=in, s0=F in s1=A"] == pytest.approx(89 / 108 - 601 / 933)
    assert sum(level[f"y=in, s0=F in s1={d}"] > 0 for d in table) == 4


def _named(measure, groups, errors, desirable):
    # cells in the order of labels: "in", "out"
    constraints = constraints_of(On("s0", measure) if isinstance(measure, str) else measure, groups)
    assert groups.labels[0] == desirable
    return constraints.names, constraints.levels(errors)


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
    levels = levels_of(constraints, rows, predicted_index(rows, h))
    np.testing.assert_allclose(levels, [0.1 + 0 - 1])


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

    def test_selection_needs_labels_of_both_kinds(self):
        for measure in ("four_fifths_rule", AtMost("selection_rate", 0.3)):
            with pytest.raises(ValueError, match="y_desirable: .* needs"):
                constraints_of(measure, self.groups)
            with pytest.raises(ValueError, match="at least one label that is not desirable"):
                constraints_of(measure, self.groups, y_desirable=[0, 1, 2])

    def test_parity_needs_two_labels(self):
        with pytest.raises(ValueError, match="demographic_parity needs at least two labels"):
            constraints_of("demographic_parity", Groups.from_data([0, 0], [0, 1]))

    def test_predictive_rates_are_refused_with_the_reason(self):
        with pytest.raises(ValueError, match="rate: expected one of .* cannot be constrained"):
            AtLeast("precision", 0.8)
        with pytest.raises(ValueError, match="bound: expected a rate from 0 to 1, got 80"):
            AtLeast("recall", 80)

    def test_strata_are_not_what_is_compared(self):
        with pytest.raises(ValueError, match="within: 's' is also the attribute"):
            constraints_of(On("s", "accuracy_parity", within="s"), self.groups)

    def test_too_many_pairs(self):
        many = Groups.from_data([0, 1] * 1001, np.repeat(np.arange(1001), 2))
        with pytest.raises(ValueError, match="at most 1000 of them; got 1001"):
            constraints_of("four_fifths_rule", many)

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

    @pytest.mark.parametrize("epsilon", [-0.1, np.nan, 2, -np.inf, [0.1, 5.0]])
    def test_epsilon(self, epsilon):
        with pytest.raises(ValueError, match="epsilon: expected at least 0 and at most 1"):
            constraints_of("accuracy_parity", self.groups, epsilon=epsilon)

    @pytest.mark.parametrize("epsilon", ["0.1", None, "large"])
    def test_epsilon_is_a_number(self, epsilon):
        with pytest.raises(TypeError, match=f"epsilon: expected numbers, got {epsilon!r}"):
            constraints_of("accuracy_parity", self.groups, epsilon=epsilon)

    def test_own_levels_in_percent_keep_their_standard_errors(self):
        own = Constraints([0.0, 0.0], [[100.0, -100.0, 0.0], [-100.0, 100.0, 0.0]], by_label=False)
        rows = group_rows([0, 1, 0, 1, 0], [0, 0, 1, 1, 2])
        assert own.slacken_for(rows, 0.5).slack.tolist() == [1.0, 1.0]

    def test_bounds_must_be_in_order(self):
        with pytest.raises(ValueError, match=r"lower: expected at most upper, got 1.0 > 0.0"):
            Constraints([0], [[1]], by_label=False, lower=1)

    def test_empty_list(self):
        with pytest.raises(ValueError, match="empty list"):
            constraints_of([], self.groups)

    def test_a_function_that_gives_something_else(self):
        with pytest.raises(TypeError, match="gives Constraints, got int"):
            constraints_of(lambda _: 3, self.groups)


@pytest.mark.parametrize("name", sorted(MEASURES))
@pytest.mark.parametrize("weighted", [False, True])
def test_slack_is_at_least_what_sampling_error_explains(name, weighted):
    """By the definition: the variance of a weighted sum of independent rates of one half each.

    Of more than four levels, as many are expected beyond it by chance as of four.
    """
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 600), rng.choice(["a", "b", "c"], 600, p=[0.7, 0.25, 0.05])
    weight = rng.uniform(0.1, 3.0, 600) if weighted else None
    rows = group_rows(y, s, weight)
    constraints = constraints_of(name, rows.groups)
    w = np.ones(600) if weight is None else weight
    cell = rows.cell(constraints.by_label)
    share = np.array([np.sum(w[cell == k] ** 2) / w[cell == k].sum() ** 2
                      for k in range(constraints.n_cells)])  # fmt: skip
    error = np.sqrt(constraints.C**2 @ np.tile(share, constraints.n_outcomes)) / 2
    n_levels = max(4, int((constraints.C != 0).any(axis=1).sum()))
    error *= norm.isf(4 * norm.sf(1.0) / n_levels)
    for epsilon in (0.03, 0.2):
        slack = constraints.slacken_for(rows, epsilon).slack
        np.testing.assert_allclose(slack, np.maximum(error, epsilon), rtol=1e-9)
    assert (constraints.slacken_for(rows, 0.0).slack == 0).all()
    np.testing.assert_allclose(
        constraints.slacken_for(group_rows(y, s, 1e-6 * w), 0.03).slack,
        constraints.slacken_for(group_rows(y, s, w), 0.03).slack,
    )
