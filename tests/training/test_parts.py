"""The parts of the stack against PyTorch's own and against definitions computed directly."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from fairgrad.torch import is_compiled
from fairgrad.training import Member, TrainingPlan, TrainingTable, losses, residual, train
from fairgrad.training.evaluation import errors
from fairgrad.training.fairness import StackCells
from fairgrad.training.layers import drop, normalise
from fairgrad.training.networks import build
from fairgrad.training.optimizers import OPTIMIZERS
from fairgrad.training.plan import Shape
from fairgrad.training.table import Streams


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("hidden", [(), (6, 4)])
def test_written_out_gradient_is_the_one_of_autograd(n_outputs, hidden):
    shape = Shape(n_features=5, hidden=hidden, n_outputs=n_outputs)
    network = build(shape, n_streams=2, seeds=[0, 0, 1, 1], dtype=torch.float64)
    x, along = (
        torch.randn(2, 7, 5, dtype=torch.float64),
        torch.randn(4, n_outputs, 7, dtype=torch.float64),
    )
    scores, pull = network.forward(x, None)
    flat = network.parameters.clone().requires_grad_()
    for m in range(4):
        pieces = [
            p.view(s)
            for p, s in zip(flat[m].split(shape.sizes), shape.pieces.values(), strict=True)
        ]
        a = x[m // 2]
        for layer in range(len(hidden) + 1):
            a = functional.linear(a if layer == 0 else a.relu(), *pieces[2 * layer : 2 * layer + 2])
        torch.testing.assert_close(scores[m], a.T)
        (a.T * along[m]).sum().backward()
    torch.testing.assert_close(pull(along), flat.grad)


@pytest.mark.parametrize(("dropout", "n_rows"), [(0.0, (7, 7)), (0.3, (7, 7)), (0.0, (7, 4))])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_hidden_layers_are_those_of_autograd(batch_norm, dropout, n_rows):
    """Scores, gradients and running statistics; the second stream may have run out of rows."""
    shape = Shape(5, (6, 4), 1, batch_norm, dropout)
    torch.manual_seed(len(set(n_rows)))
    x, along = torch.randn(2, 7, 5).double(), torch.randn(4, 1, 7).double()
    valid = torch.arange(7) < torch.tensor(n_rows)[:, None]
    along *= valid.repeat_interleave(2, dim=0)[:, None]
    parameters = torch.randn(4, sum(shape.sizes)).double()

    def network(n_streams, seeds, members):
        found = build(shape, n_streams, seeds, torch.float64)
        found.parameters.copy_(parameters[members])
        return found

    stack = network(2, [0, 0, 1, 1], slice(None))
    scores, pull = stack.forward(x, None if valid.all() else valid)
    gradient = pull(along)
    for stream, n in enumerate(n_rows):
        members = slice(2 * stream, 2 * stream + 2)
        own = network(1, [stream, stream], members)
        flat = own.parameters.clone().requires_grad_()
        expected = own.scores_with(flat, x[stream, None, :n])
        torch.testing.assert_close(scores[members, :, :n], expected.detach())
        (expected * along[members, :, :n]).sum().backward()
        torch.testing.assert_close(gradient[members], flat.grad)
        for name, buffer in own.buffers.items():
            torch.testing.assert_close(stack.buffers[name][members], buffer)
        rows = torch.randn(1, 9, 5).double()
        torch.testing.assert_close(
            stack.scores(rows.expand(2, 9, 5))[members], _evaluated(own, rows[0])
        )


@pytest.mark.skipif(not is_compiled, reason="no compiler when it was installed")
def _evaluated(network, rows):
    """Scores by PyTorch's own layers, member by member."""
    found = []
    for m in range(len(network.parameters)):
        pieces = {name: part[m] for name, part in network.shape.views(network.parameters).items()}
        a = rows
        for layer in range(2):
            a = functional.linear(a, pieces[f"weight{layer}"], pieces[f"bias{layer}"])
            if network.shape.batch_norm:
                running = (network.buffers[f"{name}{layer}"][m] for name in ("mean", "variance"))
                a = functional.batch_norm(
                    a, *running, pieces[f"scale{layer}"], pieces[f"shift{layer}"]
                )
            a = a.relu()
        found.append(functional.linear(a, pieces["weight2"], pieces["bias2"]).T)
    return torch.stack(found)


def test_memory_of_a_larger_batch_is_used_again():
    shape = Shape(5, (6, 4), 1, batch_norm=True)
    x, along = torch.randn(1, 9, 5).double(), torch.randn(2, 1, 4).double()
    fresh, used = (build(shape, 1, [0, 0], torch.float64) for _ in range(2))
    _, pull = used.forward(x, None)
    pull(torch.ones(2, 1, 9).double())
    gradients = []
    for network in (fresh, used):
        _, pull = network.forward(x[:, :4], None)
        gradients.append(pull(along))
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_initial_weights_have_the_spread_of_pytorch():
    shape = Shape(n_features=100, hidden=(400,), n_outputs=3)
    first = shape.initial(0)[: 100 * 400]
    expected = nn.Linear(100, 400).weight
    assert first.abs().max() <= 0.1
    assert first.std().item() == pytest.approx(expected.std().item(), rel=0.05)
    assert torch.equal(shape.initial(0), shape.initial(0))
    assert not torch.equal(shape.initial(0), shape.initial(1))


@given(st.integers(1, 3), st.integers(2, 6), st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_batch_norm_over_valid_rows_is_pytorchs_over_those_rows(n_members, n_rows, n_padding):
    torch.manual_seed(n_rows)
    a = torch.randn(n_members, 3, n_rows + n_padding, dtype=torch.float64)
    scale, shift = torch.randn(2, n_members, 3, dtype=torch.float64)
    valid = (torch.arange(n_rows + n_padding) < n_rows).expand(n_members, -1)
    buffers = Shape(1, (3,), 1, batch_norm=True).initial_buffers(n_members, torch.float64)
    found = normalise(a, scale, shift, buffers, 0, valid, training=True)
    for m in range(n_members):
        layer = nn.BatchNorm1d(3).double()
        layer.weight.data, layer.bias.data = scale[m], shift[m]
        torch.testing.assert_close(found[m, :, :n_rows].T, layer(a[m, :, :n_rows].T))
        torch.testing.assert_close(buffers["mean0"][m], layer.running_mean)
        torch.testing.assert_close(buffers["variance0"][m], layer.running_var)


def test_batch_norm_takes_a_batch_of_one_row(make_data):
    table = TrainingTable.from_data(*make_data(65))
    training = train(
        table, [Member()], TrainingPlan(hidden=(4,), batch_norm=True, batch_size=64, epochs=2)
    )
    assert np.isfinite(training.history.loss).all()


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 20), st.integers(0, 9999), st.booleans()
)
@settings(max_examples=40, deadline=None)
def test_counting_by_products_is_counting_one_by_one(streams, members, rows, seed, weighted):
    rng = np.random.default_rng(seed)
    n = 30
    table = TrainingTable.from_data(
        rng.normal(size=(n, 2)),
        np.r_[0, 1, 2, rng.integers(0, 3, n - 3)],
        rng.integers(0, 4, n),
        rng.uniform(0.1, 2, n) if weighted else None,
        dtype=torch.float64,
    )
    index = torch.from_numpy(rng.integers(0, n, (streams, rows)))
    valid = torch.from_numpy(rng.random((streams, rows)) < 0.8)
    wrong = torch.from_numpy(rng.random((streams, members, rows)) < 0.5).double()
    dense, sparse = (
        StackCells(table, by_label=True, max_dense=limit).take(index, valid) for limit in (64, 0)
    )
    assert dense.membership is not None
    assert sparse.membership is None
    torch.testing.assert_close(dense.count(wrong), sparse.count(wrong))
    weights = torch.from_numpy(rng.normal(size=(streams, members, dense.n_cells)))
    torch.testing.assert_close(dense.spread(weights), sparse.spread(weights))
    expected = np.zeros((streams, members, 2, dense.n_cells))
    for i, j, k in np.ndindex(streams, members, rows):
        row = index[i, k]
        cell = table.label[row] * table.groups.n_groups + table.group[row]
        weight = 1.0 if table.weight is None else table.weight[row]
        expected[i, j, int(wrong[i, j, k]), cell] += float(valid[i, k]) * float(weight)
    np.testing.assert_allclose(dense.count(wrong), expected, atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_losses_and_residuals_are_cross_entropy_and_its_gradient(n_outputs):
    scores = torch.randn(2, 3, n_outputs, 8, dtype=torch.float64, requires_grad=True)
    label = torch.randint(0, max(n_outputs, 2), (2, 8))
    logits = (
        torch.cat([torch.zeros_like(scores), scores], dim=2) if n_outputs == 1 else scores
    ).movedim(2, -1)
    expected = functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        label[:, None].expand(2, 3, 8).reshape(-1),
        reduction="none",
    )
    torch.testing.assert_close(losses(scores.detach(), label).reshape(-1), expected.detach())
    expected.sum().backward()
    torch.testing.assert_close(residual(scores.detach(), label), scores.grad)
    expected_wrong = logits.argmax(-1) != label[:, None]
    assert torch.equal(errors(scores.detach(), label).bool(), expected_wrong)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_optimizers_are_pytorchs_member_by_member(solver):
    members = [
        Member(learning_rate=0.1, weight_decay=0.1, clip_norm=0.5),
        Member(learning_rate=0.02, weight_decay=0.0),
    ]
    found = torch.randn(2, 6, dtype=torch.float64)
    plain = [nn.Parameter(row.clone()) for row in found]
    own = OPTIMIZERS[solver](members, 1.0, found)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[solver]
    theirs = [
        kind([p], lr=m.learning_rate, weight_decay=m.weight_decay)
        for p, m in zip(plain, members, strict=True)
    ]
    for _ in range(5):
        gradient = torch.randn(2, 6, dtype=torch.float64)
        own.step(found, gradient.clone(), 1.0)
        for p, g, m, optimizer in zip(plain, gradient, members, theirs, strict=True):
            p.grad = g.clone()
            nn.utils.clip_grad_norm_([p], m.clip_norm)
            optimizer.step()
    for row, p in zip(found, plain, strict=True):
        torch.testing.assert_close(row, p.detach())


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_a_gain_makes_margins_move_like_the_two_outputs_they_are_the_difference_of(solver):
    """A margin's gradient g is -g for the first of two outputs and g for the second."""
    member = Member(learning_rate=0.1, weight_decay=0.1, clip_norm=0.5)
    hidden, outputs = torch.randn(3).double(), torch.randn(2, 2).double()
    found = torch.cat([hidden, outputs[1] - outputs[0]])[None]
    own = OPTIMIZERS[solver]([member], torch.tensor([1.0, 1, 1, 2, 2]), found)
    plain = [nn.Parameter(hidden), nn.Parameter(outputs)]
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[solver]
    theirs = kind(plain, lr=0.1, weight_decay=0.1 if solver == "sgd" else 0.0)
    if solver == "adam":  # a sum of both outputs decays in its own way
        own.has_decay = False
    for _ in range(5):
        gradient = torch.randn(5).double()
        own.step(found, gradient[None].clone(), 1.0)
        plain[0].grad = gradient[:3].clone()
        plain[1].grad = torch.stack([-gradient[3:], gradient[3:]])
        nn.utils.clip_grad_norm_(plain, 0.5)
        theirs.step()
    expected = torch.cat([plain[0], plain[1][1] - plain[1][0]])
    torch.testing.assert_close(found[0], expected.detach())


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_every_stream_goes_through_its_rows_once(sizes, batch_size):
    rows = [np.arange(size) + 100 * i for i, size in enumerate(sizes)]
    streams = Streams(rows, list(range(len(sizes))), batch_size)
    seen = [[] for _ in sizes]
    n_steps = 0
    for batch in streams.epoch():
        n_steps += 1
        for i in range(len(sizes)):
            own = batch.row[i] if batch.valid is None else batch.row[i][batch.valid[i]]
            seen[i] += own.tolist()
    assert [sorted(own) for own in seen] == [part.tolist() for part in rows]
    assert n_steps == streams.n_steps


def random_sources(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 0.2, 0.5, 0.97, 0.9999])
def test_as_many_are_dropped_as_asked_and_the_others_scaled(share):
    n = 400 * 501
    dropped = drop(torch.ones(1, 400, 501), share, random_sources(3))
    kept = dropped != 0
    deviation = (share * (1 - share) / n) ** 0.5
    assert kept.float().mean().item() == pytest.approx(1 - share, abs=4 * deviation + 2**-16)
    assert torch.allclose(dropped[kept], torch.tensor(1 / (1 - share)))


def test_neighbours_are_dropped_independently_of_each_other():
    """Four activations share one random integer: its quarters must not go together."""
    kept = (drop(torch.ones(1, 500, 400), 0.3, random_sources(5)) != 0).float().view(-1, 4)
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 4 / len(kept) ** 0.5


def test_members_of_a_stream_drop_the_same_units_and_streams_others():
    kept = drop(torch.ones(4, 9, 7), 0.5, random_sources(1, 2)) != 0
    assert (kept[0] == kept[1]).all()
    assert (kept[2] == kept[3]).all()
    assert (kept[0] != kept[2]).any()


def test_every_call_draws_anew_and_the_same_seed_the_same():
    a, own, again = torch.ones(1, 20, 20), random_sources(1), random_sources(1)
    first, second = drop(a, 0.5, own), drop(a, 0.5, own)
    assert (first != second).any()
    assert (drop(a, 0.5, again) == first).all()


def test_gradient_goes_through_what_is_kept():
    a = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    dropped = drop(a, 0.4, random_sources(8))
    (gradient,) = torch.autograd.grad(dropped.sum(), a)
    assert torch.equal(gradient, (dropped != 0).double() / 0.6)
