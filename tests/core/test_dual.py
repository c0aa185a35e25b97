"""The method's one step against hand-computed examples, dense matrices and both array libraries."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import results

from fairgrad import AtMost, Constraints, On, dual, fairness_levels
from fairgrad.constraints import Coefficients, split_by_label
from fairgrad.groups import Groups, group_rows
from fairgrad.measures import MEASURES, constraints_of

# Two groups of equal size, accuracy parity: F = (e1 - e0)/2, -(e1 - e0)/2.
C0, C = np.zeros(2), np.array([[-0.5, 0.5], [0.5, -0.5]])
EQUAL = Groups.from_counts({(0, 0): 50, (0, 1): 50})


def problem(lower=0.0, upper=0.0, groups=EQUAL, **rates):
    constraints = Constraints(C0, C, by_label=False, lower=lower, upper=upper)
    return dual.make_constants(constraints, groups, **{"fairness_rate": 0.01, **rates})


def batch(errors):
    """Counts of a batch in which each cell has these errors."""
    errors = np.asarray(errors, dtype=float)
    return 1e4 * np.stack([1 - errors, errors])


def run(constants, errors, state=None, n=1):
    state = dual.start(constants, n_labels=2) if state is None else state
    for _ in range(n):
        state, weights = dual.step(constants, state, batch(errors))
    return state, weights


def test_exact_update_by_hand():
    constants = problem(fairness_rate=0.5)
    unfair = [0.1, 0.3]  # F = (0.1, -0.1): group 0 is better off
    state, _ = run(constants, unfair)
    np.testing.assert_allclose(state.multipliers, [[0.05, -0.05]])
    state, weights = run(constants, unfair, state)
    np.testing.assert_allclose(state.multipliers, [[0.1, -0.1]])
    # C' lam = (-0.5*0.1 + 0.5*-0.1, 0.5*0.1 - 0.5*-0.1) = (-0.1, 0.1); over p: (-0.2, 0.2)
    np.testing.assert_allclose(weights, [0.8, 1.2])
    # and it comes back when the other group is better off: multipliers are signed
    state, _ = run(constants, unfair[::-1], state, n=4)
    np.testing.assert_allclose(state.multipliers, [[-0.1, 0.1]])


def test_epsilon_update_by_hand():
    constants = problem(-0.04, 0.04, fairness_rate=0.5)
    state, weights = run(constants, [0.1, 0.3])  # F = (0.1, -0.1)
    # lambda = 0.5 * (0.1 - 0.04, -0.1 - 0.04 -> 0), delta = 0.5 * (-0.1 - 0.04 -> 0, 0.1 - 0.04)
    np.testing.assert_allclose(state.multipliers, [[0.03, 0], [0, 0.03]])
    net = dual.net_multipliers(constants, state.multipliers)
    np.testing.assert_allclose(net, [0.03, -0.03])
    np.testing.assert_allclose(weights, [0.94, 1.06])
    # within the bounds the multipliers decay, and stop at 0
    state, _ = run(constants, [0.2, 0.2], state)
    np.testing.assert_allclose(state.multipliers, [[0.01, 0], [0, 0.01]])
    state, _ = run(constants, [0.2, 0.2], state)
    np.testing.assert_allclose(state.multipliers, 0)


def test_exact_and_epsilon_constraints_in_one_problem():
    constants = problem([0, -0.04], [0, 0.04], fairness_rate=1.0)
    state, _ = run(constants, [0.3, 0.1])  # F = (-0.1, 0.1)
    np.testing.assert_allclose(state.multipliers, [[-0.1, 0.06], [0, 0]], atol=1e-12)


def test_infinite_bounds_never_push_not_even_at_rate_zero():
    for rate in (0.0, 1.0):
        constants = problem([-np.inf, 0], [0, np.inf], fairness_rate=rate)
        state, _ = run(constants, [0.3, 0.1])  # F = (-0.1, 0.1)
        np.testing.assert_array_equal(state.multipliers, 0)
    state, _ = run(constants, [0.1, 0.3])  # F = (0.1, -0.1)
    net = dual.net_multipliers(constants, state.multipliers)
    np.testing.assert_allclose(net, [0.1, -0.1])


@pytest.mark.parametrize(("epsilon", "used"), [(0.04, 0.12), (0.0, 0.2)])
def test_proportional_term_counts_what_is_beyond_the_bounds(epsilon, used):
    constants = problem(-epsilon, epsilon, fairness_rate=0.0, proportional_rate=2.0)
    state, weights = run(constants, [0.1, 0.3])
    np.testing.assert_array_equal(state.multipliers, 0)
    np.testing.assert_allclose(weights, [1 - 2 * used, 1 + 2 * used])
    np.testing.assert_array_equal(weights, dual.current_weights(constants, state))


def test_a_cell_without_rows_has_weight_one():
    groups = Groups.from_counts({(0, 0): 10, (0, 1): 0})
    _, weights = run(problem(groups=groups, fairness_rate=3.0), [0.1, 0.3])
    assert weights[1] == 1


def test_weights_are_clipped_only_when_asked():
    assert run(problem(fairness_rate=10.0), [0.1, 0.3])[1].min() < 0
    clipped = problem(fairness_rate=10.0, negative_weights=False)
    np.testing.assert_allclose(run(clipped, [0.1, 0.3])[1], [0, 3])


class TestErrors:
    """Estimates of the cells' errors: 2 labels x 2 groups."""

    @staticmethod
    def run(batches, memory=0.0, dtype=np.float64):
        """The estimates after batches of (right, wrong) counts."""
        groups = Groups.from_counts({(y, s): 10 for y in (0, 1) for s in (0, 1)})
        constraints = constraints_of("equalized_odds", groups)
        constants = dual.make_constants(
            constraints, groups, fairness_rate=0.01, error_memory=memory
        )
        state = dual.State(*(part.astype(dtype) for part in dual.start(constants, 2)))
        for counts in batches:
            rows, errors = dual.estimate_errors(constants, state, np.array(counts, dtype=dtype))
            state = state._replace(rows=rows, errors=errors)
        assert errors.dtype == dtype
        return errors

    def test_a_batch_replaces_the_estimate(self):
        first, second = ([3, 1, 2, 4], [1, 1, 0, 4]), ([0, 1, 1, 1], [1, 0, 1, 0])
        np.testing.assert_allclose(self.run([first]), [0.25, 0.5, 0, 0.5], atol=1e-7)
        np.testing.assert_allclose(self.run([first, second]), [1, 0, 0.5, 0], atol=1e-7)

    @pytest.mark.parametrize("memory", [0.0, 0.9])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_an_absent_cell_keeps_its_estimate_for_ever(self, memory, dtype):
        batches = [([3, 1, 2, 4], [1, 1, 0, 4]), *[([0, 8, 0, 9], [0, 0, 0, 9])] * 20_000]
        errors = self.run(batches, memory, dtype)
        np.testing.assert_allclose(errors, [0.25, 0, 0, 0.5], atol=2e-3)

    def test_a_cell_never_seen_borrows_its_labels_error(self):
        first, second = ([6, 0, 0, 1], [2, 0, 0, 3]), ([0, 1, 0, 0], [0, 0, 0, 0])
        np.testing.assert_allclose(self.run([first]), [0.25, 0.25, 0.75, 0.75], atol=1e-6)
        np.testing.assert_allclose(self.run([first, second]), [0.25, 0, 0.75, 0.75], atol=1e-6)

    def test_a_label_never_seen_keeps_the_neutral_start(self):
        errors = self.run([([6, 1, 0, 0], [2, 1, 0, 0])])
        np.testing.assert_allclose(errors, [0.25, 0.5, 0.5, 0.5], atol=1e-7)

    @given(st.lists(st.integers(0, 2**16), min_size=1, max_size=8), st.floats(0.1, 0.95))
    def test_memory_keeps_a_share_of_earlier_batches(self, seeds, memory):
        batches = [np.random.default_rng(s).integers(1, 20, (2, 4)).astype(float) for s in seeds]
        kept = np.zeros((2, 4))
        for counts in batches:
            kept = memory * kept + counts
        np.testing.assert_allclose(self.run(batches, memory), kept[1] / kept.sum(0), rtol=1e-6)


def random_measure(rng, n_labels):
    names = [name for name in MEASURES if n_labels == 2 or name == "accuracy_parity"]
    parts = [On(a, rng.choice(names), float(rng.choice([0.0, 0.1]))) for a in ("s0", "s1")]
    return [parts, parts[0], (rng.choice(names))][rng.integers(3)]


def settings(rng):
    return {
        "fairness_rate": rng.random(),
        "proportional_rate": rng.choice([0.0, 2.0]),
        "error_memory": rng.choice([0.0, 0.7]),
        "negative_weights": bool(rng.random() < 0.8),
    }


def random_problem(rows, rng):
    groups = rows.groups
    constraints = constraints_of(
        random_measure(rng, len(groups.labels)), groups, epsilon=float(rng.choice([0.0, 0.05]))
    )
    constraints = split_by_label(constraints.select(constraints.is_defined), groups)
    return groups, constraints, dual.make_constants(constraints, groups, **settings(rng))


@given(
    data=results(max_labels=3, max_groups=4, n_attributes=2, unknown=True, weights=True),
    seed=st.integers(0, 999),
)
def test_a_step_is_algorithm_1_written_with_matrices(data, seed):
    """Levels, multipliers and weights of many steps against dense matrices and plain loops."""
    rng = np.random.default_rng(seed)
    y, _, s, weight = data
    groups, constraints, constants = random_problem(group_rows(y, s, weight), rng)
    mass = groups.cell_mass(constraints.by_label)
    p, K = mass / mass.sum(), len(mass)
    lower, upper, dense = constraints.lower, constraints.upper, constraints.C
    lam, dlt = np.zeros(len(lower)), np.zeros(len(lower))
    state = dual.start(constants, len(groups.labels))
    for _ in range(4):
        counts = rng.integers(1, 9, (2, K)).astype(float)  # every cell is seen
        state, weights = dual.step(constants, state, counts)
        F = constraints.c0 + dense @ state.errors
        above, below = F - upper, np.where(lower == upper, -np.inf, lower - F)
        signed = lower == upper
        rate = constants.fairness_rate
        lam = np.where(signed, lam + rate * above, np.maximum(lam + rate * above, 0))
        dlt = np.maximum(dlt + rate * below, 0)
        used = lam - dlt
        if constants.proportional_rate:
            now = np.where(signed, above, np.maximum(above, 0)) - np.maximum(below, 0)
            used = used + constants.proportional_rate * now
        expected = 1 + np.where(p > 0, dense.T @ used / np.where(p > 0, p, 1), 0)
        if np.ravel(constants.least_weight)[0] == 0:  # otherwise weights may be negative
            expected = np.maximum(expected, 0)
        np.testing.assert_allclose(dual.levels(constants, state.errors), F, atol=1e-10)
        np.testing.assert_allclose(
            dual.net_multipliers(constants, state.multipliers), lam - dlt, atol=1e-9
        )
        np.testing.assert_allclose(weights, expected, atol=1e-7)


@given(
    data=results(max_labels=2, n_attributes=2, unknown=True),
    n_problems=st.integers(1, 3),
    seed=st.integers(0, 999),
)
def test_problems_side_by_side_and_tensors_equal_each_alone(data, n_problems, seed):
    rng = np.random.default_rng(seed)
    y, _, s, weight = data
    rows = [group_rows(y, s, weight * rng.random(len(y))) for _ in range(n_problems)]
    problems = [random_problem(part, rng)[2] for part in rows]
    joint = dual.side_by_side(problems)
    tensors = joint.convert(torch.from_numpy)
    states = [dual.start(part, 2) for part in problems]
    whole = dual.start(joint, 2)
    tensor = dual.State(*map(torch.from_numpy, whole))
    for _ in range(3):
        counts = [rng.integers(0, 9, (2, len(part.per_share))).astype(float) for part in problems]
        found = [dual.step(*args) for args in zip(problems, states, counts, strict=True)]
        states = [state for state, _ in found]
        together = np.concatenate(counts, axis=1)
        whole, weights = dual.step(joint, whole, together)
        tensor, tensor_weights = dual.step(tensors, tensor, torch.from_numpy(together))
        np.testing.assert_allclose(weights, np.concatenate([own for _, own in found]), rtol=1e-9)
        np.testing.assert_allclose(tensor_weights, weights, rtol=1e-9, atol=1e-12)
        for part in ("rows", "errors"):
            alone = np.concatenate([getattr(state, part) for state in states])
            # Cells that were seen borrow only where another one was not: 1e-16 per row.
            np.testing.assert_allclose(getattr(whole, part), alone, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(getattr(tensor, part), alone, rtol=1e-9, atol=1e-12)


@given(
    data=results(max_labels=3, max_groups=4, n_attributes=2, unknown=True, weights=True),
    seed=st.integers(0, 999),
    of_outcomes=st.booleans(),
)
def test_arrays_and_tensors_give_the_same_steps(data, seed, of_outcomes):
    rng = np.random.default_rng(seed)
    y, _, s, weight = data
    if of_outcomes:
        measure = str(rng.choice(list(OUTCOMES)))
        constants, *_ = outcome_problem(seed, 3, int(rng.integers(2, 5)), measure)
    else:
        constants = random_problem(group_rows(y, s, weight), rng)[2]
    if seed % 2:
        constants = dual.with_auto_rate(replace(constants, error_memory=0.0), dual.AutoRate())
    forms = [constants, constants.convert(torch.from_numpy)]
    states = [dual.start(constants, 3)]
    states.append(dual.State(*(torch.from_numpy(part.copy()) for part in states[0])))
    for _ in range(3):
        shape = (1 + constants.n_outcomes, len(constants.per_share))
        counts = rng.integers(0, 9, shape).astype(float)  # some cells are absent
        batches = [counts, torch.from_numpy(counts)]
        found = [dual.step(*own) for own in zip(forms, states, batches, strict=True)]
        states = [state for state, _ in found]
        for own, (state, weights) in zip(forms, found, strict=True):
            np.testing.assert_allclose(weights, found[0][1], rtol=1e-9, atol=1e-9)
            for part, first in zip(state, states[0], strict=True):
                np.testing.assert_allclose(part, first, rtol=1e-9, atol=1e-11)
            again = dual.current_weights(own, state)
            np.testing.assert_allclose(again, weights, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_net_multipliers_are_those_of_now(epsilon):
    """They are kept as a history, while the state changes in its own memory."""
    constants = problem(lower=-epsilon, upper=epsilon, fairness_rate=0.5)
    state, _ = run(constants, [0.1, 0.5])
    net = dual.net_multipliers(constants, state.multipliers)
    kept = net.copy()
    state.multipliers[:] = 7.0
    np.testing.assert_array_equal(net, kept)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_many_cells_are_those_of_the_matrix(epsilon):
    groups = Groups.from_counts({(y, s): 3 + y + s % 5 for y in (0, 1) for s in range(100)})
    constraints = constraints_of("equalized_odds", groups, epsilon=epsilon)
    constants = dual.make_constants(constraints, groups, fairness_rate=0.01)
    errors = np.random.default_rng(0).random(200)
    np.testing.assert_allclose(dual.levels(constants, errors), constraints.C @ errors, atol=1e-12)


OUTCOMES = {
    "parity": "demographic_parity",
    "odds": "equalized_odds_all",
    "mixed": ["accuracy_parity", "demographic_parity", AtMost("selection_rate", 0.3)],
}


def outcome_problem(seed, n_labels, n_groups, measure, **settings):
    """Constants of a measure of what is predicted, counts of predictions, and what they are of."""
    rng = np.random.default_rng(seed)
    n = n_labels * n_groups
    y = np.concatenate([np.repeat(np.arange(n_labels), n_groups), rng.integers(0, n_labels, 40)])
    s = np.concatenate([np.tile(np.arange(n_groups), n_labels), rng.integers(0, n_groups, 40)])
    h = rng.integers(0, n_labels, n + 40)
    rows = group_rows(y, s)
    constraints = constraints_of(OUTCOMES[measure], rows.groups, y_desirable=1)
    constants = dual.make_constants(constraints, rows.groups, fairness_rate=0.5, **settings)
    counts = np.zeros((1 + n_labels, n))
    np.add.at(counts, (1 + h, rows.cell()), 1.0)
    return constants, counts, constraints, (y, h, s)


@pytest.mark.parametrize("measure", OUTCOMES)
@given(seed=st.integers(0, 999), n_labels=st.integers(3, 4), n_groups=st.integers(2, 4))
def test_levels_may_speak_of_predicted_labels(measure, seed, n_labels, n_groups):
    cost = np.random.default_rng(seed).random((n_labels, n_labels)) * (1 - np.eye(n_labels))
    constants, counts, constraints, (y, h, s) = outcome_problem(
        seed, n_labels, n_groups, measure, cost_matrix=cost
    )
    state, weights = dual.step(constants, dual.start(constants, n_labels), counts)
    expected = fairness_levels(y, h, s, OUTCOMES[measure], y_desirable=1).values
    np.testing.assert_allclose(dual.levels(constants, state.errors), expected, atol=1e-7)
    cost /= cost.max(1).mean()  # the unit of costs changes nothing
    # The Lagrangian, sum_k p_k sum_l q[k, l] cost[y_k, l] + lambda' F, by q[k, l], over p_k.
    net = dual.net_multipliers(constants, state.multipliers)
    K = n_labels * n_groups
    p = counts.sum(0) / counts.sum()
    a = cost[np.arange(K) // n_groups].T + (constraints.C.T @ net).reshape(-1, K) / p
    np.testing.assert_allclose(weights.reshape(-1, K), a.max(0) - a, atol=1e-9)
    tensors = constants.convert(torch.from_numpy)
    start = dual.State(*map(torch.from_numpy, dual.start(constants, n_labels)))
    _, same = dual.step(tensors, start, torch.from_numpy(counts))
    np.testing.assert_allclose(same, weights, rtol=1e-9, atol=1e-12)


def test_problems_of_predicted_labels_side_by_side():
    problems = [outcome_problem(seed, 3, 2, "odds") for seed in range(3)]
    whole = dual.side_by_side([constants for constants, *_ in problems])
    counts = np.concatenate([own for _, own, *_ in problems], axis=1)
    _, weights = dual.step(whole, dual.start(whole, 3), counts)
    found = [dual.step(own, dual.start(own, 3), part)[1] for own, part, *_ in problems]
    alone = np.concatenate([own.reshape(3, -1) for own in found], axis=1)
    np.testing.assert_allclose(weights.reshape(3, -1), alone, rtol=1e-9)


def test_with_multipliers_of_zero_only_the_own_label_weighs():
    constants, *_ = outcome_problem(0, 3, 2, "parity")
    weights = dual.cell_weights(constants, np.zeros(constants.bound.shape))
    np.testing.assert_array_equal(weights.reshape(3, 3, 2), np.eye(3)[:, :, None].repeat(2, 2))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1], [1, 0]], "a row per true label"),
        ([[0, 1, 1], [1, 0, np.nan], [1, 1, 0]], "expected finite numbers"),
        ([[0, 1, 1], [1, 0, -2], [1, 1, 0]], "cost at least as much as the correct"),
        (np.zeros((3, 3)), "and some error more"),
        ("many", "expected numbers"),
    ],
)
def test_costs_that_are_none(costs, message):
    with pytest.raises((ValueError, TypeError), match=f"cost_matrix: .*{message}"):
        outcome_problem(0, 3, 2, "parity", cost_matrix=costs)


def test_nothing_to_clip():
    with pytest.raises(ValueError, match="negative_weights: has no effect"):
        outcome_problem(0, 3, 2, "parity", negative_weights=False)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_the_weights_are_the_gradient_of_the_lagrangian(epsilon):
    """p_k w_k is the derivative of error + sum mu v by e_k, whatever the multipliers."""
    rng = np.random.default_rng(0)
    groups = Groups.from_counts({(0, g): int(n) for g, n in enumerate(rng.integers(1, 50, 4))})
    constraints = Constraints(
        rng.normal(size=3), rng.normal(size=(3, 4)), by_label=False, lower=-epsilon, upper=epsilon
    )
    constants = dual.make_constants(constraints, groups, fairness_rate=0.01)
    multipliers = rng.random(constants.bound.shape)
    p = groups.mass[0] / groups.mass.sum()
    errors = torch.rand(4, dtype=torch.float64, requires_grad=True)
    tensors = constants.convert(torch.from_numpy)
    violation = tensors.sign * dual.levels(tensors, errors) - tensors.bound
    (torch.from_numpy(p) @ errors + (torch.from_numpy(multipliers) * violation).sum()).backward()
    weights = dual.cell_weights(constants, multipliers)
    np.testing.assert_allclose(p * weights, errors.grad.numpy())


def test_with_a_constraint_on_nothing_all_weights_stay_1():
    groups = Groups.from_counts({(0, "a"): 3, (1, "a"): 2, (0, "b"): 4, (1, "b"): 1})
    none = Constraints(np.zeros(1), Coefficients.from_dense(np.zeros((1, 4))), by_label=True)
    constants = dual.make_constants(none, groups, fairness_rate=0.5)
    state = dual.start(constants, 2)
    for _ in range(2):  # in the second step all cells were seen
        state, weights = dual.step(constants, state, np.array([[1.0, 2, 3, 0], [2, 0, 1, 1]]))
        np.testing.assert_array_equal(weights, np.ones(4))
    np.testing.assert_allclose(state.errors, [2 / 3, 0.0, 1 / 4, 1.0], atol=1e-12)


def automatic_multiplier(n_train, *sizes):
    """The first group's multiplier after batches of these sizes, in each of which F is 0.1."""
    constants = problem(fairness_rate="auto", n_rows=n_train)
    state = dual.start(constants, n_labels=2)
    for size in sizes:
        counts = size / 2 * np.array([[0.9, 0.7], [0.1, 0.3]])
        state, _ = dual.step(constants, state, counts)
    return state.multipliers[0, 0]


def test_the_automatic_rate_is_per_row_but_a_step_moves_only_so_far():
    one = automatic_multiplier(None, 256)
    np.testing.assert_allclose(automatic_multiplier(None, *[32] * 8), one, rtol=0.01)
    np.testing.assert_allclose(automatic_multiplier(None, 512), 2 * one, rtol=0.01)
    np.testing.assert_allclose(automatic_multiplier(None, 1024), 2 * one, rtol=0.01)


def test_the_automatic_rate_decays_with_the_rows_that_move_a_multiplier():
    many = automatic_multiplier(None, *[512] * 300)
    np.testing.assert_allclose(automatic_multiplier(None, *[16_384] * 300), many, rtol=0.01)


def test_an_epoch_of_a_small_training_set_moves_a_multiplier_by_the_violation():
    for n_train in (1_000, 2_000, 8_000):
        epoch = automatic_multiplier(n_train, *[20] * (n_train // 20))
        np.testing.assert_allclose(epoch, 0.1, rtol=0.1)
    assert dual.AutoRate.fitting(10) == dual.AutoRate.fitting(1_000)
    assert dual.AutoRate.fitting(10**9) == dual.AutoRate.fitting(None)
