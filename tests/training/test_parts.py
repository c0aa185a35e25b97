"""The parts of the stack against PyTorch's own and against definitions computed directly."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from fairgrad import dual
from fairgrad.training import (
    Batches,
    Member,
    Perceptrons,
    Stack,
    TrainingPlan,
    TrainingTable,
    losses,
    residual,
)
from fairgrad.training.stack import Descent, drop, predictions


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("hidden", [(), (6, 4)])
def test_scores_are_those_of_pytorchs_layers(n_outputs, hidden):
    network = Perceptrons((5, *hidden, n_outputs), 3, dtype=torch.float64)
    network.parameters.copy_(torch.randn(network.parameters.shape))
    x = torch.randn(7, 5, dtype=torch.float64)
    for m, found in enumerate(network.scores(x)):
        pieces = {name: part[m] for name, part in network.views(network.parameters).items()}
        a = x
        for layer in range(len(hidden) + 1):
            a = functional.linear(
                a if layer == 0 else a.relu(), pieces[f"weight{layer}"], pieces[f"bias{layer}"]
            )
        torch.testing.assert_close(found, a.T)
    torch.testing.assert_close(network.scores_with(network.parameters, x), network.scores(x))


def test_initial_weights_have_the_spread_of_pytorch():
    first, again, other = (Perceptrons((100, 400, 3), 1, seed).parameters[0] for seed in (0, 0, 1))
    own, expected = first[: 100 * 400], nn.Linear(100, 400).weight
    assert own.abs().max() <= 0.1
    assert own.std().item() == pytest.approx(expected.std().item(), rel=0.05)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@given(st.integers(1, 3), st.integers(1, 20), st.integers(0, 9999), st.booleans())
def test_counts_are_those_of_each_row(members, rows, seed, weighted):
    rng = np.random.default_rng(seed)
    n = 30
    table = TrainingTable.from_data(
        rng.normal(size=(n, 2)),
        np.r_[0, 1, 2, rng.integers(0, 3, n - 3)],
        rng.integers(0, 4, n),
        rng.uniform(0.1, 2, n) if weighted else None,
        dtype=torch.float64,
    )
    plan = TrainingPlan(fairness_measure="accuracy_parity", cost_matrix=np.ones((3, 3)) - np.eye(3))
    fairness = Stack(table, [Member()] * members, plan).fairness
    index = torch.from_numpy(rng.integers(0, n, rows))
    predicted = torch.from_numpy(rng.integers(0, 3, (members, rows)))
    expected = np.zeros((members, 4, fairness.n_cells))
    for m, i in np.ndindex(members, rows):
        row = index[i]
        cell = table.label[row] * table.groups.n_groups + table.group[row]
        weight = 1.0 if table.weight is None else table.weight[row]
        expected[m, 1 + predicted[m, i], cell] += weight
    np.testing.assert_allclose(fairness.count(index, predicted), expected, atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_losses_and_residuals_are_cross_entropy_and_its_gradient(n_outputs):
    scores = torch.randn(3, n_outputs, 8, dtype=torch.float64, requires_grad=True)
    label = torch.randint(0, max(n_outputs, 2), (8,))
    logits = (
        torch.cat([torch.zeros_like(scores), scores], dim=1) if n_outputs == 1 else scores
    ).movedim(1, -1)
    expected = functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        label.expand(3, 8).reshape(-1),
        reduction="none",
    )
    torch.testing.assert_close(losses(scores.detach(), label).reshape(-1), expected.detach())
    expected.sum().backward()
    torch.testing.assert_close(residual(scores.detach(), label), scores.grad)
    expected_wrong = logits.argmax(-1) != label
    assert torch.equal(predictions(scores.detach()) != label, expected_wrong)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_optimizers_are_pytorchs_member_by_member(solver):
    members = [
        Member(learning_rate=0.1, weight_decay=0.1, clip_norm=0.5),
        Member(learning_rate=0.02, weight_decay=0.0),
    ]
    found = torch.randn(2, 6, dtype=torch.float64)
    plain = [nn.Parameter(row.clone()) for row in found]
    network = SimpleNamespace(parameters=found, gain=torch.ones(6).double())
    own = Descent(solver, members, network)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[solver]
    theirs = [
        kind([p], lr=m.learning_rate, weight_decay=m.weight_decay)
        for p, m in zip(plain, members, strict=True)
    ]
    for _ in range(5):
        gradient = torch.randn(2, 6, dtype=torch.float64)
        own.step(gradient, 1.0)
        for p, g, m, optimizer in zip(plain, gradient, members, theirs, strict=True):
            p.grad = g.clone()
            nn.utils.clip_grad_norm_([p], m.clip_norm)
            optimizer.step()
    for row, p in zip(found, plain, strict=True):
        torch.testing.assert_close(row, p.detach())


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_a_gain_makes_margins_move_like_the_two_outputs_they_are_the_difference_of(solver):
    """A margin's gradient g is -g for the first of two outputs and g for the second."""
    decay = 0.1 if solver == "sgd" else 0.0  # in Adam a sum of both outputs decays in its own way
    member = Member(learning_rate=0.1, weight_decay=decay, clip_norm=0.5)
    hidden, outputs = torch.randn(3).double(), torch.randn(2, 2).double()
    found = torch.cat([hidden, outputs[1] - outputs[0]])[None]
    gain = torch.tensor([1.0, 1, 1, 2, 2]).double()
    own = Descent(solver, [member], SimpleNamespace(parameters=found, gain=gain))
    plain = [nn.Parameter(hidden), nn.Parameter(outputs)]
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[solver]
    theirs = kind(plain, lr=0.1, weight_decay=decay)
    for _ in range(5):
        gradient = torch.randn(5).double()
        own.step(gradient[None], 1.0)
        plain[0].grad = gradient[:3].clone()
        plain[1].grad = torch.stack([-gradient[3:], gradient[3:]])
        nn.utils.clip_grad_norm_(plain, 0.5)
        theirs.step()
    expected = torch.cat([plain[0], plain[1][1] - plain[1][0]])
    torch.testing.assert_close(found[0], expected.detach())


@given(st.integers(1, 40), st.integers(1, 50))
def test_every_epoch_goes_through_the_rows_once(size, batch_size):
    batches = Batches(torch.arange(size) + 100, 0, batch_size)
    found = list(batches.epoch())
    assert sorted(torch.cat(found).tolist()) == list(range(100, 100 + size))
    assert len(found) == batches.n_steps


def test_members_drop_the_same_units_anew_in_every_call():
    source = torch.Generator().manual_seed(1)
    first, second = (drop(torch.ones(2, 400, 50), 0.3, source) for _ in range(2))
    assert torch.equal(first[0], first[1])
    assert (first != second).any()
    assert (first != 0).float().mean().item() == pytest.approx(0.7, abs=0.02)
    assert torch.allclose(first[first != 0], torch.tensor(1 / 0.7))


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_levels_of_empty_cells_take_no_part_in_training(epsilon):
    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, 300), rng.integers(0, 3, 300)
    label[group == 2] = 0  # so no level compares label 1 of this group
    table = TrainingTable.from_data(rng.normal(size=(300, 2)), label, group, dtype=torch.float64)
    member = Member(epsilon=epsilon, fairness_rate=0.05)
    plan = TrainingPlan(fairness_measure="equalized_odds")
    with pytest.warns(UserWarning, match="undefined|no rows"):
        fairness = Stack(table, [member], plan).fairness
    constraints = fairness.constraints[0]
    assert not constraints.is_defined.all()
    defined = constraints.select(constraints.is_defined)
    constants = dual.make_constants(defined, table.groups, fairness_rate=0.05)
    state = dual.start(constants, 2)
    for _ in range(20):
        rows = torch.from_numpy(rng.integers(0, 300, 32))
        predicted = torch.from_numpy(rng.integers(0, 2, (1, 32)))
        fairness.row_weights(rows, predicted)
        counts = np.zeros((2, fairness.n_cells))
        wrong = (predicted[0] != table.label[rows]).long().numpy()
        np.add.at(counts, (wrong, fairness.code[rows].numpy()), 1.0)
        state, weights = dual.step(constants, state, counts)
    assert np.ptp(weights) > 0.01
    np.testing.assert_allclose(fairness.weights.ravel(), weights, rtol=1e-6)
