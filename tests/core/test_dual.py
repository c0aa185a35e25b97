"""The method's functions against hand-computed examples, loops and both array libraries."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairgrad import dual

# Two groups of equal size, accuracy parity: F = (e1 - e0)/2, -(e1 - e0)/2.
C0, C = np.zeros(2), np.array([[-0.5, 0.5], [0.5, -0.5]])
P = np.array([0.5, 0.5])


def step(sides, multipliers, errors, rate):
    return dual.ascend(multipliers, sides.A, with_constant_cell(errors), sides.floor, rate)


def with_constant_cell(errors):
    return np.append(errors, 1.0)


def weights_of(A, p, multipliers):
    return dual.cell_weights(np.ones(len(p)), dual.influence(A, p), multipliers)


def test_exact_update_by_hand():
    sides = dual.sides(C0, C, np.zeros(2), np.zeros(2))
    errors = np.array([0.1, 0.3])  # F = (0.1, -0.1): group 0 is better off
    multipliers = step(sides, np.zeros(2), errors, rate=0.5)
    np.testing.assert_allclose(multipliers, [0.05, -0.05])
    multipliers = step(sides, multipliers, errors, rate=0.5)
    np.testing.assert_allclose(multipliers, [0.1, -0.1])
    # C' lam = (-0.5*0.1 + 0.5*-0.1, 0.5*0.1 - 0.5*-0.1) = (-0.1, 0.1); over p: (-0.2, 0.2)
    weights = weights_of(sides.A, P, multipliers)
    np.testing.assert_allclose(weights, [0.8, 1.2])
    # and it comes back when the other group is better off: multipliers are signed
    for _ in range(4):
        multipliers = step(sides, multipliers, errors[::-1], rate=0.5)
    np.testing.assert_allclose(multipliers, [-0.1, 0.1])


def test_epsilon_update_by_hand():
    epsilon = np.full(2, 0.04)
    sides = dual.sides(C0, C, -epsilon, epsilon)
    errors = np.array([0.1, 0.3])  # F = (0.1, -0.1)
    multipliers = step(sides, np.zeros(4), errors, rate=0.5)
    # lambda = 0.5 * (0.1 - 0.04, -0.1 - 0.04 -> 0), delta = 0.5 * (-0.1 - 0.04 -> 0, 0.1 - 0.04)
    np.testing.assert_allclose(multipliers, [0.03, 0, 0, 0.03])
    np.testing.assert_allclose(dual.net_multipliers(multipliers, sides.sign), [0.03, -0.03])
    weights = weights_of(sides.A, P, multipliers)
    np.testing.assert_allclose(weights, [0.94, 1.06])
    # within the bounds the multipliers decay, and stop at 0
    fair = np.array([0.2, 0.2])
    multipliers = step(sides, multipliers, fair, rate=0.5)
    np.testing.assert_allclose(multipliers, [0.01, 0, 0, 0.01])
    multipliers = step(sides, multipliers, fair, rate=0.5)
    np.testing.assert_allclose(multipliers, 0)


def test_exact_and_epsilon_constraints_in_one_problem():
    sides = dual.sides(C0, C, np.array([0, -0.04]), np.array([0, 0.04]))
    multipliers = step(sides, np.zeros(4), np.array([0.3, 0.1]), rate=1.0)  # F = (-0.1, 0.1)
    np.testing.assert_allclose(multipliers, [-0.1, 0.06, 0, 0])


def test_infinite_bounds_never_push_not_even_at_rate_zero():
    sides = dual.sides(C0, C, np.array([-np.inf, 0]), np.array([0, np.inf]))
    for rate in (0.0, 1.0):
        multipliers = step(sides, np.zeros(4), np.array([0.3, 0.1]), rate)  # F = (-0.1, 0.1)
        np.testing.assert_array_equal(multipliers, 0)
    multipliers = step(sides, np.zeros(4), np.array([0.1, 0.3]), 1.0)  # F = (0.1, -0.1)
    np.testing.assert_allclose(dual.net_multipliers(multipliers, sides.sign), [0.1, -0.1])


def test_proportional_term_counts_what_is_beyond_the_bounds():
    epsilon = np.full(2, 0.04)
    sides = dual.sides(C0, C, -epsilon, epsilon)
    errors = with_constant_cell([0.1, 0.3])
    used = dual.with_proportional(np.zeros(4), sides.A, errors, sides.floor, 2.0)
    np.testing.assert_allclose(dual.net_multipliers(used, sides.sign), [0.12, -0.12])
    exact = dual.sides(C0, C, np.zeros(2), np.zeros(2))
    for floor in (exact.floor, None):
        used = dual.with_proportional(np.zeros(2), exact.A, errors, floor, 2.0)
        np.testing.assert_allclose(used, [0.2, -0.2])


def test_a_cell_without_rows_has_weight_one():
    A = dual.sides(C0, C, np.zeros(2), np.zeros(2)).A
    assert weights_of(A, np.array([1.0, 0.0]), np.array([3.0, -2.0]))[1] == 1


class TestErrors:
    """Estimates of the cells' errors: 2 labels x 2 groups."""

    @staticmethod
    def run(batches, memory=0.0, dtype=np.float64):
        """The estimates after batches of (right, wrong) counts."""
        kept = dual.Memory(*(part.astype(dtype) for part in dual.nothing_remembered(4, 2)))
        pooling = dual.Pooling(*(part.astype(dtype) for part in dual.pooling(4, 2)))
        for right, wrong in batches:
            counts = np.concatenate([right, wrong]).astype(dtype)
            errors, kept = dual.estimate_errors(kept, pooling, counts, memory)
        assert errors[-1] == 1  # the constant cell
        return errors[:-1]

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

    @given(seed=st.integers(0, 1000))
    def test_once_every_cell_was_seen_a_step_needs_less(self, seed):
        rng = np.random.default_rng(seed)
        kept, pooling = dual.nothing_remembered(4, 2), dual.pooling(4, 2)
        counts = [rng.integers(1, 5, 8), *rng.integers(0, 5, (5, 8))]
        _, kept = dual.estimate_errors(kept, pooling, counts[0].astype(float), 0.0)
        rows, settled = np.full(5, dual.TINY), kept.errors
        for batch in counts[1:]:
            errors, kept = dual.estimate_errors(kept, pooling, batch.astype(float), 0.0)
            settled = dual.settled_errors(settled, rows, pooling, batch.astype(float))
            np.testing.assert_allclose(settled, errors, rtol=1e-7)
            np.testing.assert_array_equal(kept.rows, rows)

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

    @given(seed=st.integers(0, 1000), n_labels=st.integers(1, 4), n_groups=st.integers(1, 5))
    def test_many_cells_are_pooled_as_few_are(self, seed, n_labels, n_groups):
        K = n_labels * n_groups
        counts = np.random.default_rng(seed).integers(0, 9, (3, 2 * K)).astype(float)
        start = dual.Memory(*(np.tile(x, (3, 1)) for x in dual.nothing_remembered(K, 2)))
        with_matrices = dual.estimate_errors(start, dual.pooling(K, n_labels), counts, 0.5)
        without = dual.estimate_errors(start, n_labels, counts, 0.5)
        tensors = dual.Memory(*map(torch.from_numpy, start))
        on_tensors = dual.estimate_errors(tensors, n_labels, torch.from_numpy(counts), 0.5)
        for a, b, c in zip(
            (with_matrices[0], *with_matrices[1]),
            (without[0], *without[1]),
            (on_tensors[0], *on_tensors[1]),
            strict=True,
        ):
            np.testing.assert_allclose(a, b)
            np.testing.assert_allclose(a, c)


@given(seed=st.integers(0, 2**32 - 1), J=st.integers(1, 5), K=st.integers(1, 6))
def test_leading_axes_equal_a_loop_in_both_libraries(seed, J, K):
    rng = np.random.default_rng(seed)
    lead = (3, 2)
    c0, C = rng.normal(size=(*lead, J)), rng.normal(size=(*lead, J, K))
    epsilon = rng.choice([0.0, 0.1, np.inf], size=(*lead, J))
    p = rng.random((*lead, K))
    rows, last = 1 + rng.random((*lead, K + 1)), rng.random((*lead, K + 1))
    counts = rng.integers(0, 5, (*lead, 2 * K)).astype(float)
    sides = dual.sides(c0, C, -epsilon, epsilon)
    start = np.maximum(rng.normal(size=sides.floor.shape), sides.floor)

    def run(ones, A, floor, influence, mu, rows, last, counts, pool_rows, pool_wrong):
        pooling = dual.Pooling(pool_rows, pool_wrong)
        e, kept = dual.estimate_errors(dual.Memory(rows, last), pooling, counts, 0.5)
        mu = dual.ascend(mu, A, e, floor, 0.3)
        used = dual.with_proportional(mu, A, e, floor, 1.5)
        return mu, dual.cell_weights(ones, influence, used, 0.5), e, *kept

    ones, influence = np.ones((*lead, K)), dual.influence(sides.A, p)
    inputs = (ones, sides.A, sides.floor, influence, start, rows, last, counts)
    shared = dual.pooling(K, 1)
    stacked = run(*inputs, *shared)
    tensors = run(*(torch.from_numpy(np.ascontiguousarray(x)) for x in (*inputs, *shared)))
    for index in np.ndindex(lead):
        own = [*(np.ascontiguousarray(x[index]) for x in inputs), *shared]
        for alone in (run(*own), run(*map(torch.from_numpy, own))):
            for part, whole, tensor in zip(alone, stacked, tensors, strict=True):
                np.testing.assert_allclose(whole[index], part, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(tensor[index].numpy(), part, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_the_weights_are_the_gradient_of_the_lagrangian(epsilon):
    """p_k w_k is the derivative of error + sum mu v by e_k, whatever the multipliers."""
    rng = np.random.default_rng(0)
    c0, C, p = rng.normal(size=3), rng.normal(size=(3, 4)), rng.dirichlet(np.ones(4))
    sides = dual.sides(c0, C, np.full(3, -epsilon), np.full(3, epsilon))
    multipliers = rng.random(len(sides.A))
    errors = torch.rand(4, dtype=torch.float64, requires_grad=True)
    A, mu, share = (torch.from_numpy(x) for x in (sides.A, multipliers, p))
    violation = dual.violations(A, torch.cat([errors, torch.ones(1)]))
    (share @ errors + mu @ violation).backward()
    np.testing.assert_allclose(p * weights_of(sides.A, p, multipliers), errors.grad.numpy())
    np.testing.assert_allclose(
        dual.net_multipliers(multipliers, sides.sign) @ dual.levels(c0, C, errors.detach().numpy())
        - multipliers.sum() * epsilon,
        (mu @ violation).item(),
    )
