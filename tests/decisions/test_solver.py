"""Decisions against independent truth: brute force and linear programs over all rules."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fairgrad import AtMost, fairness_levels
from fairgrad.constraints import on_outcomes
from fairgrad.decisions import (
    DecisionProblem,
    added_scores,
    best_on_line,
    judged_apart,
    solve,
)
from fairgrad.evaluate import levels_of
from fairgrad.groups import GroupedRows, group_rows
from fairgrad.measures import MEASURES, On, constraints_of, measure_name

COSTS = np.array([[0.0, 0.5, 1.5], [0.25, 0.0, 0.5], [1.0, 0.5, 0.0]])  # in relative units
OF_THREE = [
    "equalized_odds",
    "accuracy_parity",
    "demographic_parity",
    "equalized_odds_all",
    "four_fifths_rule",
    AtMost("selection_rate", 0.4),
    ["accuracy_parity", "demographic_parity"],
]


def table(seed, n=400, n_labels=2, n_groups=2, weights=False):
    """Rows, and probabilities of their cells that are roughly right."""
    rng = np.random.default_rng(seed)
    label = np.concatenate([np.arange(n_labels), rng.integers(0, n_labels, n - n_labels)])
    group = np.tile(np.arange(n_groups), n)[:n]
    rng.shuffle(group)
    cell = label * n_groups + group
    logits = rng.normal(size=(n, n_labels * n_groups)) + 2.0 * np.eye(n_labels * n_groups)[cell]
    probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    weight = rng.random(n) + 0.1 if weights else None
    rows = group_rows(label, group, weight)
    return rows, probability.T.reshape(n_labels, n_groups, n)


def problem_of(rows, probability, measure, epsilon=0.0, y_desirable=(1,), costs=None):
    measured = [
        (constraints_of(one, rows.groups, epsilon=epsilon, y_desirable=y_desirable), rows)
        for one in (measure if isinstance(measure, list) else [measure])
    ]
    return DecisionProblem(measured, [probability] * len(measured), costs)


def scores_of(problem, net):
    return added_scores(problem.base, problem.probabilities, problem.pulls(net))


def all_levels(problem, rows, predicted):
    """Of all parts, from predicted labels."""
    found = [constraints for constraints, _ in problem.measured]
    return np.concatenate([levels_of(c, rows, predicted) for c in found])


def discrete(seed, n_points, n_labels, n_groups):
    """All cells at a few points: rows with weights, and their exact probabilities."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(n_points * n_labels * n_groups))
    joint = joint.reshape(n_points, n_labels, n_groups)
    at, label, group = (axis.ravel() for axis in np.indices(joint.shape))
    rows = group_rows(label, group, joint.ravel())
    given_x = joint / joint.sum((1, 2), keepdims=True)
    return joint, at, rows, given_x[at].transpose(1, 2, 0)


class TestBestResponse:
    @pytest.mark.parametrize("measure", OF_THREE, ids=measure_name)
    @pytest.mark.parametrize("costs", [None, COSTS], ids=["errors", "costs"])
    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=5, deadline=None)
    def test_the_argmax_minimises_the_lagrangian_over_all_rules(self, measure, costs, seed):
        joint, at, rows, probability = discrete(seed, 4, 3, 2)
        problem = problem_of(rows, probability, measure, costs=costs)
        net = np.random.default_rng(seed).normal(size=len(problem.lower))
        price = 1.0 - np.eye(3) if costs is None else costs

        def lagrangian(rule):
            predicted = np.asarray(rule)[at]
            levels = all_levels(problem, rows, predicted)
            return rows.weight @ price[rows.label, predicted] + net @ levels

        best = min(lagrangian(rule) for rule in product(range(3), repeat=len(joint)))
        chosen = scores_of(problem, net).argmax(0)
        rule = [chosen[at == point][0] for point in range(len(joint))]
        assert lagrangian(rule) == pytest.approx(best, abs=1e-12)

    def test_weights_of_attributes_apart_add_up(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 300)
        s = {"sex": rng.integers(0, 2, 300), "race": rng.integers(0, 3, 300)}
        rows = group_rows(y, s)
        both = [On("sex", "equalized_odds"), On("race", "accuracy_parity", 0.15)]
        parts = judged_apart(both, rows, epsilon=0.2)  # more than what noise explains
        whole = constraints_of(both, rows.groups, epsilon=0.2)
        assert tuple(n for constraints, _ in parts for n in constraints.names) == whole.names
        for name in ("lower", "upper"):
            own = np.concatenate([getattr(constraints, name) for constraints, _ in parts])
            np.testing.assert_allclose(own, getattr(whole, name))


def cheapest_rule(problem, joint, rows, costs):
    """The least cost of all randomised rules that keep the bounds, by a linear program."""
    n_points, n_labels, _ = joint.shape
    price = 1.0 - np.eye(n_labels) if costs is None else costs
    rules = np.eye(n_points * n_labels).reshape(-1, n_points, n_labels)  # each decision alone
    cost = np.einsum("dxl,xyg,yl->d", rules, joint, price)
    outcome = np.einsum("dxl,xyg->dlyg", rules, joint) / joint.sum(0)  # q[k, l] of each
    effects, constants = [], []
    for constraints, _ in problem.measured:
        c = on_outcomes(constraints, rows.groups)  # of a rule that is the sum of decisions
        effects.append(c.levels(outcome.reshape(len(rules), -1)) - c.c0)
        constants.append(c.c0)
    effect, c0 = np.hstack(effects), np.concatenate(constants)
    bounds = np.concatenate([problem.upper - c0, c0 - problem.lower])
    keeps = np.isfinite(bounds)
    return linprog(
        cost,
        A_ub=np.concatenate([effect.T, -effect.T])[keeps],
        b_ub=bounds[keeps],
        A_eq=np.kron(np.eye(n_points), np.ones(n_labels)),
        b_eq=np.ones(n_points),
    )


class TestLottery:
    @pytest.mark.parametrize("measure", OF_THREE, ids=measure_name)
    @pytest.mark.parametrize(("epsilon", "costs"), [(0.0, None), (0.05, None), (0.05, COSTS)])
    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=3, deadline=None)
    def test_it_is_the_linear_program_over_all_rules(self, measure, epsilon, costs, seed):
        joint, _, rows, probability = discrete(seed, 8, 3, 2)
        problem = problem_of(rows, probability, measure, epsilon, costs=costs)
        truth = cheapest_rule(problem, joint, rows, costs)
        found = solve(problem, lottery=True)
        if truth.success:
            assert found.beyond <= 1e-3
            assert found.error >= truth.fun - 1e-9 - 100 * found.beyond
            assert found.error <= truth.fun + 0.01
        else:
            assert found.beyond > 0

    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=10, deadline=None)
    def test_no_single_rule_is_better(self, seed):
        joint, at, rows, probability = discrete(seed, 6, 2, 2)
        problem = problem_of(rows, probability, "equalized_odds", 0.05)
        found = solve(problem, lottery=True)
        assert found.beyond <= 1e-9
        for rule in product(range(2), repeat=len(joint)):
            predicted = np.asarray(rule)[at]
            levels = all_levels(problem, rows, predicted)
            if np.abs(levels).max() <= 0.05:
                assert found.error <= rows.weight @ (predicted != rows.label) + 0.01

    def test_shares_and_levels_are_those_of_its_decisions(self):
        rows, probability = table(9, n=1000, n_groups=8)
        problem = problem_of(rows, probability, "equalized_odds")
        found = solve(problem, lottery=True)
        assert len(found.lottery) > 1
        assert sum(share for share, _ in found.lottery) == pytest.approx(1.0)
        levels, error = 0.0, 0.0
        for share, (pull,) in found.lottery:
            predicted = added_scores(problem.base, [probability], [pull]).argmax(0)
            levels = levels + share * all_levels(problem, rows, predicted)
            error += share * (predicted != rows.label).mean()
        np.testing.assert_allclose(found.levels, levels, atol=1e-12)
        assert found.error == pytest.approx(error)
        assert found.beyond <= 1e-9


class TestLines:
    @given(
        seed=st.integers(0, 2**32 - 1),
        n_labels=st.integers(2, 4),
        n_groups=st.integers(2, 3),
        weights=st.booleans(),
    )
    @settings(max_examples=15, deadline=None)
    def test_a_line_knows_the_figures_of_all_its_decisions(self, seed, n_labels, n_groups, weights):
        rows, probability = table(seed, 60, n_labels, n_groups, weights)
        measure = ["equalized_odds", "demographic_parity"][seed % 2]
        costs = None if seed % 3 else np.abs(np.subtract.outer(*2 * [np.arange(n_labels)])) * 1.0
        problem = problem_of(rows, probability, measure, costs=costs)
        rng = np.random.default_rng(seed)
        net, direction = rng.normal(size=(2, len(problem.lower)))
        scores = scores_of(problem, net)
        slopes = added_scores(0.0, problem.probabilities, problem.pulls(direction))
        window = (-1e4, 1e4)
        line = best_on_line(problem, scores, slopes, 2.0, most_error=np.inf, window=window)
        (_, fairest), (_, cheapest) = line
        worst, penalised = [], []
        for t in np.concatenate([np.linspace(-20, 20, 81), np.linspace(-1, 1, 80)]):
            found = problem.decide(net + t * direction)
            worst.append((found.beyond, found.error))
            counts, _ = problem.judged(scores_of(problem, net + t * direction).argmax(0))
            penalised.append(problem.figures(problem.levels(counts), found.error).penalised(2.0))
        assert fairest.worst <= min(worst)[0] + 1e-9
        assert cheapest.penalised(2.0) <= min(penalised) + 1e-9
        for t, figures in line:
            there = problem.decide(net + t * direction)
            assert there.error == pytest.approx(float(figures.error))
            assert there.beyond == pytest.approx(float(figures.worst))


def nearly_revealed(seed, n_groups, n=4000):
    """Groups that differ so much that features nearly tell them."""
    rng = np.random.default_rng(seed)
    group, mean = rng.choice(n_groups, n), 1.5 * rng.normal(size=(n_groups, 2))
    X = rng.normal(size=(n, 2)) + mean[group]
    near = np.exp(-0.5 * ((X[:, None] - mean) ** 2).sum(-1))
    logit = (X @ [1.0, -0.5])[:, None] + 0.8 * (np.arange(n_groups) % 2) - 0.5
    positive = 1 / (1 + np.exp(-logit))
    label = (rng.random(n) < positive[np.arange(n), group]).astype(int)
    given_x = near / near.sum(1, keepdims=True) * np.stack([1 - positive, positive])
    return problem_of(group_rows(label, group), given_x.transpose(0, 2, 1), "equalized_odds")


class TestSolve:
    @pytest.mark.parametrize("measure", sorted(MEASURES))
    @pytest.mark.parametrize("n_groups", [2, 3])
    def test_it_keeps_the_bounds(self, measure, n_groups):
        rows, probability = table(1, n=2000, n_groups=n_groups)
        problem = problem_of(rows, probability, measure, epsilon=0.01)
        found = solve(problem)
        assert found.beyond == 0
        predicted = scores_of(problem, found.multipliers).argmax(0)
        levels = fairness_levels(rows.label, predicted, rows.group, measure, y_desirable=[1])
        np.testing.assert_allclose(levels.values, found.levels, atol=1e-12)
        assert levels.gaps.max() <= 0.01 + 1e-9
        assert found.error == pytest.approx((predicted != rows.label).mean())

    def test_exact_fairness_of_groups_that_features_nearly_reveal(self):
        problem = nearly_revealed(6, n_groups=4)
        found = solve(problem)
        assert found.beyond < 0.015
        assert found.constant is None
        assert solve(problem, lottery=True).beyond <= 1e-9

    def test_a_search_that_comes_to_one_label_for_everybody(self):
        found = solve(nearly_revealed(0, n_groups=8))
        assert found.beyond < 0.01

    def test_of_two_groups_and_one_rate_nothing_is_better(self):
        rows, probability = table(2, n=300)
        problem = problem_of(rows, probability, "demographic_parity", epsilon=0.005)
        found = solve(problem)
        assert found.beyond == 0
        assert found.multipliers.any()
        for t in np.linspace(-1, 1, 1001):
            other = problem.decide(t * np.array([1.0, -1.0, -1.0, 1.0]))
            assert other.beyond > 1e-12 or other.error >= found.error - 1e-9

    def test_many_labels(self):
        rows, probability = table(3, n=4000, n_labels=4, n_groups=3)
        problem = problem_of(rows, probability, "equalized_odds", epsilon=0.02)
        found = solve(problem)
        assert found.beyond == 0
        assert found.error < 0.5

    @pytest.mark.parametrize("measure", OF_THREE, ids=measure_name)
    def test_of_three_labels(self, measure):
        rows, probability = table(3, n=2000, n_labels=3)
        problem = problem_of(rows, probability, measure, epsilon=0.01)
        plain = problem.decide(np.zeros(len(problem.lower)))
        found = solve(problem)
        assert found.beyond == 0
        assert found.error < plain.error + 0.01
        predicted = scores_of(problem, found.multipliers).argmax(0)
        np.testing.assert_allclose(found.levels, all_levels(problem, rows, predicted), atol=1e-12)

    @pytest.mark.parametrize("measure", ["accuracy_parity", "demographic_parity"])
    def test_costs_are_what_is_least(self, measure):
        _, _, rows, probability = discrete(0, 100, 3, 2)
        found = {}
        for name, costs in (("errors", None), ("costs", COSTS)):
            problem = problem_of(rows, probability, measure, 0.02, costs=costs)
            decision = solve(problem)
            predicted = scores_of(problem, decision.multipliers).argmax(0)
            found[name] = problem.weight @ COSTS[rows.label, predicted]
            assert decision.beyond == 0
        assert decision.error == pytest.approx(found["costs"])
        assert found["costs"] < found["errors"] - 0.01

    @pytest.mark.parametrize("costs", [None, COSTS], ids=["errors", "costs"])
    @pytest.mark.parametrize("measure", ["accuracy_parity", "demographic_parity"])
    def test_one_label_for_all_can_be_written_as_multipliers(self, measure, costs):
        rows, probability = table(3, n=300, n_labels=3)
        problem = problem_of(rows, probability, measure, costs=costs)
        for label in range(3):
            constant = problem.decide(np.zeros(len(problem.lower)), label)
            scores = added_scores(problem.base, [probability], constant.pulls)
            assert (scores.argmax(0) == label).all()

    @pytest.mark.parametrize("epsilon", [1.0, np.inf])
    def test_with_room_enough_it_is_the_plain_argmax(self, epsilon):
        rows, probability = table(4, n_labels=3)
        found = solve(problem_of(rows, probability, "equalized_odds", epsilon))
        np.testing.assert_array_equal(found.multipliers, 0.0)

    def test_levels_without_bounds_have_no_multipliers(self):
        rows, probability = table(4, n=600, n_groups=3)
        epsilon = [0.0] * 3 + [np.inf] * 3
        found = solve(problem_of(rows, probability, "equalized_odds", epsilon))
        assert found.multipliers[:3].any()
        np.testing.assert_array_equal(found.multipliers[3:], 0.0)

    def test_the_same_every_time(self):
        rows, probability = table(5, n=500, n_groups=3)
        one, two = (
            solve(problem_of(rows, probability, "equalized_odds")).multipliers for _ in range(2)
        )
        np.testing.assert_array_equal(one, two)

    def test_the_order_of_the_rows_does_not_matter(self):
        rows, probability = table(6, n=800)
        order = np.random.default_rng(0).permutation(len(rows))
        one = solve(problem_of(rows, probability, "equalized_odds"))
        two = solve(problem_of(rows.take(order), probability[:, :, order], "equalized_odds"))
        assert one.error == pytest.approx(two.error)
        np.testing.assert_allclose(one.levels, two.levels, atol=1e-12)

    def test_sample_weights_are_repeated_rows(self):
        rows, probability = table(7, n=300)
        times = np.random.default_rng(0).integers(1, 4, len(rows))
        repeated = np.repeat(np.arange(len(rows)), times)
        weighted = GroupedRows(rows.groups, rows.label, rows.group, times.astype(np.float64)).take(
            np.arange(len(rows))
        )
        one = problem_of(weighted, probability, "equalized_odds", 0.05)
        two = problem_of(rows.take(repeated), probability[:, :, repeated], "equalized_odds", 0.05)
        a, b = solve(one), solve(two)
        assert a.error == pytest.approx(b.error)
        np.testing.assert_allclose(a.levels, b.levels, atol=1e-12)

    def test_one_that_is_far_less_accurate_is_not_the_answer(self):
        rows, probability = table(9, n=3000, n_groups=8)
        found = solve(problem_of(rows, probability, "equalized_odds"))
        assert found.constant is None
        assert found.error < 0.4

    def test_it_is_never_dominated_by_a_constant(self):
        rows, _ = table(8, n=200, n_groups=3)
        noise = np.random.default_rng(0).dirichlet(np.ones(6), 200).T.reshape(2, 3, 200)
        problem = problem_of(rows, noise, "equalized_odds")
        found = solve(problem)
        for label in (0, 1):
            assert found.beyond == 0 or found.error < (rows.label != label).mean()
        constant = problem.decide(np.zeros(len(problem.lower)), 1)
        scores = added_scores(problem.base, [noise], constant.pulls)
        assert (scores.argmax(0) == 1).all()
        assert constant.beyond == 0
        assert constant.error == pytest.approx((rows.label != 1).mean())

    def test_what_it_cannot_keep_it_says(self):
        s = np.repeat([0, 1], 200)  # all of group 0 have label 1; of group 1 nothing is known
        y = np.where(s == 0, 1, np.tile([0, 1], 200))
        rows = group_rows(y, s)
        probability = np.zeros((2, 2, 400))
        probability[1, 0], probability[:, 1] = s == 0, 0.5 * (s == 1)
        found = solve(problem_of(rows, probability, "accuracy_parity"))
        plain = problem_of(rows, probability, "accuracy_parity").decide(np.zeros(2))
        assert 0 < found.beyond <= plain.beyond
