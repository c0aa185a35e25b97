"""Batches that compiled code reads, and batches that are not usual enough."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scene import S, X, Y, is_same, linear, make, state_of, train
from torch import nn

from fairgrad.torch import FairLoss, is_compiled
from fairgrad.torch.reading import best_class

pytestmark = pytest.mark.skipif(not is_compiled, reason="there is no compiled code")


def two_steps(criterion, batch):
    """The loss and gradient of a second step."""
    criterion(X[:8, :2].clone().requires_grad_(), Y[:8], S[:8])
    logits, *rest = batch
    logits.retain_grad()
    loss = criterion(logits, *rest)
    loss.backward()
    return loss.detach(), logits.grad


def batches():
    logits = X[:60, :2].clone().requires_grad_() * 1.0
    y, s = Y[:60], S[:60]
    wide = torch.stack([X[:60, 0], X[:60, 1], X[:60, 2]], 1).requires_grad_() * 1.0
    return {
        "usual": (logits, y, s),
        "one row": (logits[:1], y[:1], s[:1]),
        "fewer rows than cells": (logits[:3], y[:3], s[:3]),
        "three columns": (wide, y, s),
        "every other column": (wide[:, ::2], y, s),
        "columns first": (logits.t().contiguous().t(), y, s),
        "every other row": (logits[::2], y[::2], s[::2]),
        "double precision": (logits.double(), y, s),
        "half precision": (logits.bfloat16(), y, s),
        "sensitive values as a column": (logits, y, s[:, None]),
        "small integers": (logits, y, s.to(torch.int32)),
        "targets to be ignored": (logits, torch.where(torch.arange(60) % 7 == 0, -100, y), s),
        "no number": (torch.where(torch.arange(60)[:, None] == 3, torch.nan, logits), y, s),
    }


@pytest.mark.parametrize("measure", ["equalized_odds", "accuracy_parity"])
@pytest.mark.parametrize("name", batches())
@pytest.mark.parametrize("rate", [0.3, "auto"])
def test_every_batch_moves_the_multipliers_as_tensor_operations_do(name, measure, rate):
    own, other = (make(measure=measure, fairness_rate=rate) for _ in range(2))
    other.state.is_compiled = False
    loss, gradient = two_steps(own, batches()[name])
    expected, expected_gradient = two_steps(other, batches()[name])
    torch.testing.assert_close(loss, expected, equal_nan=True)
    torch.testing.assert_close(gradient, expected_gradient, equal_nan=True)
    torch.testing.assert_close(own.multipliers, other.multipliers)
    torch.testing.assert_close(own.state.errors, other.state.errors)
    torch.testing.assert_close(own.plain_loss, other.plain_loss, equal_nan=True)


@given(st.lists(st.sampled_from([4, 16, 64]), min_size=2, max_size=60))
def test_graphs_that_wait_keep_their_own_weights(sizes):
    """Gradients that are summed up over batches: the memory of factors is never used twice."""
    criterion, weights, waiting = make(fairness_rate=1.0), [], []
    model = linear()
    for i, size in enumerate(sizes):
        rows = torch.randperm(len(X), generator=torch.Generator().manual_seed(i))[:size]
        waiting.append((criterion(model(X[rows]), Y[rows], S[rows]), rows))
        weights.append(criterion.cell_weights)
    for (loss, rows), weight in zip(waiting, weights, strict=True):
        (gradient,) = torch.autograd.grad(loss, model.weight)
        by_row = nn.functional.cross_entropy(model(X[rows]), Y[rows], reduction="none")
        expected = (weight[2 * Y[rows] + S[rows]] * by_row).mean()
        torch.testing.assert_close(gradient, torch.autograd.grad(expected, model.weight)[0])


def test_a_loss_of_ones_own_is_called_once_per_step():
    calls = []

    def own(logits, y):
        calls.append(len(y))
        return nn.functional.cross_entropy(logits, y, reduction="none")

    criterion = FairLoss(own, Y, S, "equalized_odds", predict=best_class)
    for dtype in (torch.float32, torch.float32, torch.float64):
        criterion(X[:, :2].to(dtype).clone().requires_grad_(), Y, S)
    assert len(calls) == 3


def test_another_default_device_does_no_harm():
    own, expected = make(), train(linear(), make())
    model = linear()
    with torch.device("meta"):
        criterion_losses = []
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(10):
            generator = torch.Generator().manual_seed(step)
            rows = torch.randperm(len(X), generator=generator, device="cpu")[:16]
            optimizer.zero_grad()
            loss = own(model(X[rows]), Y[rows], S[rows])
            loss.backward()
            optimizer.step()
            criterion_losses.append(loss.detach())
    assert [loss.item() for loss in criterion_losses] == expected.tolist()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_batch_without_rows_changes_nothing(compiled):
    criterion = make()
    criterion.state.is_compiled &= compiled
    train(linear(), criterion)
    before = state_of(criterion)
    loss = criterion(torch.zeros(0, 2, requires_grad=True), Y[:0], S[:0])
    assert loss.isnan()
    assert is_same(before, state_of(criterion))


@pytest.mark.parametrize("compiled", [True, False])
def test_scores_of_another_shape_are_not_taken_for_classes(compiled):
    """A loss of one's own may take any input; here each row has one score more."""

    def own(scores, y):
        return nn.functional.cross_entropy(scores[:, :, 0], y, reduction="none")

    def predict(scores):
        return scores[:, :, 0].argmax(1)

    plain = FairLoss(own, Y, S, "equalized_odds", predict=predict, fairness_rate=0.3)
    other = FairLoss(own, Y, S, "equalized_odds", predict=best_class, fairness_rate=0.3)
    for criterion in (plain, other):
        criterion.state.is_compiled &= compiled
        for _ in range(2):
            criterion(X[:, :2, None].clone().requires_grad_(), Y, S)
    assert is_same(state_of(plain), state_of(other))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_copy_moves_on_by_itself(compiled):
    """What arrays share with the state is not copied."""
    criterion, twin = make(), make()
    for own in (criterion, twin):
        own.state.is_compiled &= compiled
        train(linear(), own)
    copied = copy.deepcopy(criterion)
    train(linear(), copied)
    assert is_same(state_of(criterion), state_of(twin))
    train(linear(), criterion)
    assert is_same(state_of(criterion), state_of(copied))
    assert not is_same(state_of(criterion), state_of(twin))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_state_in_other_memory_is_read_there(compiled):
    criterion, twin = make(), make()
    for own in (criterion, twin):
        own.state.is_compiled &= compiled
        train(linear(), own)
    criterion.load_state_dict(state_of(make()), assign=True)
    criterion.state.rows.data = criterion.state.rows.data.clone()
    train(linear(), criterion)
    assert is_same(state_of(criterion), state_of(twin))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_state_of_another_precision_is_not_read_as_if_it_were_double(compiled):
    criterion = make()
    criterion.state.is_compiled &= compiled
    train(linear(), criterion)
    criterion.state.errors.data = criterion.state.errors.data.float()
    before = criterion.multipliers
    train(linear(), criterion, steps=1)
    assert criterion.state.errors.dtype == torch.float64
    assert criterion.multipliers.isfinite().all()
    assert not torch.equal(before, criterion.multipliers)
