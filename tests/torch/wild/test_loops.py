"""Loops as tutorials and reference scripts write them."""

import pytest
import torch
from scene import N, S, X, Y, is_same, linear, make, state_of, train
from torch import nn

from fairgrad import fairness_levels
from fairgrad.torch import CrossEntropyLoss


@pytest.mark.parametrize("no_grad", [torch.no_grad, torch.inference_mode])
def test_an_evaluation_loop_needs_no_sensitive_values(no_grad):
    """``criterion(outputs, targets)`` without gradients; ``criterion.eval()`` was not called."""
    model, criterion = linear(), make()
    train(model, criterion)
    before = state_of(criterion)
    with no_grad():
        loss = criterion(model(X), Y)
        torch.testing.assert_close(loss, nn.functional.cross_entropy(model(X), Y))
    assert is_same(before, state_of(criterion))
    with pytest.raises(ValueError, match="s: required in training"):
        criterion(model(X), Y)
    with no_grad(), pytest.raises(ValueError, match="s: required in training"):
        criterion(model(X), Y, mode="eval")


def test_a_criterion_left_behind_says_so():
    """The model and the batch were moved to a device, the loss was not."""
    criterion = make()
    before = state_of(criterion)
    batch = [part.to("meta") for part in (X[:, :2].clone().requires_grad_(), Y, S)]
    with pytest.raises(
        ValueError, match=r"target: on meta, but the loss is on cpu; call crit.*meta"
    ):
        criterion(*batch)
    with pytest.raises(ValueError, match="s: on cpu, but the target is on meta"):
        criterion(batch[0], batch[1], S)
    elsewhere = torch.ones(N, device="meta")
    with pytest.raises(ValueError, match="sample_weight: on meta, but the target is on cpu"):
        criterion(X[:, :2].clone().requires_grad_(), Y, S, elsewhere)
    weighted = make(weight=torch.tensor([1.0, 2.0]))
    with pytest.raises((ValueError, RuntimeError), match="on meta, but the loss is on cpu|device"):
        weighted(*batch)
    moved = make().to("meta")
    with pytest.raises(ValueError, match=r"target: on cpu, but the loss is on meta; .*'cpu'"):
        moved(X[:, :2].clone().requires_grad_(), Y, S)
    assert is_same(before, state_of(criterion))


@pytest.mark.parametrize("path", ["compiled", "numpy"])
def levels(measure, s, y_desirable=None):
    criterion = CrossEntropyLoss(Y, s, measure, y_desirable=y_desirable)
    scores = X[:, :2].numpy()
    found = criterion.fairness_function.groupwise(scores, Y.numpy(), s.numpy())
    expected = fairness_levels(Y, scores.argmax(1), s, measure, y_desirable=y_desirable)
    return found, expected.values


@pytest.mark.parametrize("measure", ["demographic_parity", "accuracy_parity", "equal_opportunity"])
def test_the_measure_as_in_0_2_0_of_groups_that_0_2_0_did_not_know(measure):
    """Unknown values, ids with gaps, and other measures; test_parity compares the known ones."""
    s = torch.where(torch.arange(N) % 7 == 0, -1, S * 5 + torch.arange(N) % 2)
    found, expected = levels(measure, s)
    assert found.shape == (2, 4)
    n_rows = 1 if measure == "accuracy_parity" else 2
    for row, part in zip(
        found, expected.reshape(n_rows, -1).repeat(3 - n_rows, axis=0), strict=True
    ):
        assert row.tolist() == part.tolist()
    found, expected = levels(["four_fifths_rule", "accuracy_parity"], s)
    assert found.tolist() == expected.tolist()


def test_bad_sample_weights_never_stay_in_the_state():
    """On an accelerator they are not looked at, as that would wait: the state stays finite."""
    criterion = make()
    criterion.state.is_compiled = False  # takes the path of accelerators
    weight = torch.ones(N, dtype=torch.float64)
    for bad in (torch.nan, torch.inf, -1.0):
        weight[3] = bad
        scores = torch.zeros(len(Y), 2)
        criterion.state.factors(Y, S, weight, scores, None, mean=True, update=True)
        assert criterion.multipliers.isfinite().all()
        assert criterion.state.errors.isfinite().all()


def test_any_batch_sizes_are_two_graphs():
    """Buckets of sequences, last batches: one graph for the first size, one for all others."""
    from torch._dynamo.testing import CompileCounterWithBackend  # noqa: PLC0415 - slow to import

    torch._dynamo.reset()  # noqa: SLF001 - compiles afresh
    counter = CompileCounterWithBackend("aot_eager")
    original, eager = make(error_memory=0.5), make(error_memory=0.5)
    compiled = torch.compile(original, fullgraph=True, backend=counter)
    compiled(X[:64, :2].clone().requires_grad_(), Y[:64], S[:64])
    eager(X[:64, :2].clone().requires_grad_(), Y[:64], S[:64])
    at_first = counter.frame_count
    for size in (64, 64, 32, 17, 50, 3, 77, 200, 9, 8, 7, 2, 64):
        logits = X[:size, :2].clone().requires_grad_()
        loss = compiled(logits, Y[:size], S[:size])
        loss.backward()
        torch.testing.assert_close(loss, eager(logits, Y[:size], S[:size]))
        torch.testing.assert_close(original.multipliers, eager.multipliers)
        torch.testing.assert_close(original.plain_loss, eager.plain_loss)
    assert counter.frame_count == at_first + 1


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_values_never_seen_are_an_error_when_compiled_too(backend):
    """Also if compiled code narrows its indices to 32 bits."""
    torch._dynamo.reset()  # noqa: SLF001 - compiles afresh
    original = make()
    compiled = torch.compile(original, fullgraph=True, backend=backend)
    compiled(X[:20, :2].clone().requires_grad_(), Y[:20], S[:20])
    for unseen in (-1, 7, 2**36, -(2**36), 2**62):
        s = S[:20].clone()
        s[3] = unseen
        before = state_of(original)
        with pytest.raises((IndexError, RuntimeError), match="index out of"):
            compiled(X[:20, :2].clone().requires_grad_(), Y[:20], s)
        assert is_same(before, state_of(original))
