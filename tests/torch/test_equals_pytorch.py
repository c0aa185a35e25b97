"""With a fairness rate of 0, and after eval(), the loss is PyTorch's own, for every argument."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fairgrad.torch import CrossEntropyLoss


@st.composite
def calls(draw):
    """Arguments of the loss and a batch, ignored and class-weighted examples among them."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    n, n_classes = draw(st.integers(1, 20)), draw(st.integers(2, 5))
    arguments = {"reduction": draw(st.sampled_from(["mean", "sum", "none"]))}
    if draw(st.booleans()):
        arguments["weight"] = torch.rand(n_classes, generator=generator) + 0.1
    if draw(st.booleans()):
        arguments["label_smoothing"] = draw(st.floats(0, 1))
    ignore_index = draw(st.sampled_from([-100, -1, 0, 255]))
    arguments["ignore_index"] = ignore_index
    y = torch.randint(0, n_classes, (n,), generator=generator)
    target = torch.where(torch.rand(n, generator=generator) < 0.3, ignore_index, y)
    s = torch.randint(0, 3, (n,), generator=generator)
    # every label and group occurs in training, whatever the batch
    y_train = torch.arange(n_classes).repeat(3)
    s_train = torch.arange(3).repeat_interleave(n_classes)
    logits = torch.randn(n, n_classes, generator=generator)
    return arguments, (y_train, s_train), (logits, target, s)


def both(arguments, train, batch, *, evaluate):
    logits, target, s = batch
    plain_logits, fair_logits = (logits.clone().requires_grad_() for _ in range(2))
    plain = nn.CrossEntropyLoss(**arguments)(plain_logits, target)
    criterion = CrossEntropyLoss(*train, "accuracy_parity", fairness_rate=0.0, **arguments)
    fair = criterion.eval()(fair_logits, target) if evaluate else criterion(fair_logits, target, s)
    plain.sum().backward()
    fair.sum().backward()
    return (plain, plain_logits.grad), (fair, fair_logits.grad)


@pytest.mark.parametrize("evaluate", [False, True])
@given(call=calls())
def test_value_and_gradient(evaluate, call):
    plain, fair = both(*call, evaluate=evaluate)
    for expected, got in zip(plain, fair, strict=True):
        torch.testing.assert_close(got, expected, equal_nan=True)


@given(call=calls(), seed=st.integers(0, 1000))
def test_whole_sample_weights_repeat_examples(call, seed):
    arguments, train, (logits, target, s) = call
    if arguments["reduction"] == "none":
        arguments = {**arguments, "reduction": "mean"}
    repeat = torch.randint(0, 4, (len(target),), generator=torch.Generator().manual_seed(seed))
    arguments = {**arguments, "fairness_rate": 0.01}  # "auto" counts rows, not their weights
    criteria = [CrossEntropyLoss(*train, "accuracy_parity", **arguments) for _ in range(2)]
    logits.requires_grad_()
    weighted = criteria[0](logits, target, s, sample_weight=repeat)
    rows = torch.arange(len(target)).repeat_interleave(repeat)
    repeated = criteria[1](logits[rows], target[rows], s[rows])
    torch.testing.assert_close(weighted, repeated, equal_nan=True)
    torch.testing.assert_close(criteria[0].multipliers, criteria[1].multipliers)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_loss_has_the_precision_of_its_input(dtype):
    y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    criterion = CrossEntropyLoss(y, s, "equalized_odds")
    loss = criterion(torch.randn(4, 2, dtype=dtype, requires_grad=True), y, s)
    assert loss.dtype == dtype
    assert criterion.multipliers.dtype == torch.float32


def test_the_older_spelling_of_reduction():
    y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    with pytest.warns(UserWarning, match="size_average"):
        criterion = CrossEntropyLoss(y, s, "equalized_odds", size_average=False)
    assert criterion.reduction == "sum"
