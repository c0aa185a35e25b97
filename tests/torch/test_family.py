"""Every loss crossed with every measure: one table of tests."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import fairgrad.torch
from fairgrad import fairness_levels
from fairgrad.measures import MEASURES
from fairgrad.torch import FairLoss

# name of the loss -> (labels, input from a score per class, predictions from it, target)
SHAPES = {
    "CrossEntropyLoss": "classes",
    "NLLLoss": "log-probabilities",
    "MultiMarginLoss": "classes",
    "BCEWithLogitsLoss": "logit",
    "BCELoss": "probability",
    "SoftMarginLoss": "sign",
}
LOSSES = sorted(
    name for name in set(fairgrad.torch.__all__) - {"FairLoss", "FairnessLoss"} if "Loss" in name
)


def problem(name, seed=0, n=60, column=False):
    """(y, s, input, target, predictions): y as the loss wants its labels."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.arange(2).repeat(2), torch.randint(0, 2, (n - 4,), generator=generator)])
    s = torch.cat(
        [torch.arange(2).repeat_interleave(2), torch.randint(0, 2, (n - 4,), generator=generator)]
    )
    scores = torch.randn(n, 2, generator=generator)
    predicted = scores.argmax(1)
    margin = scores[:, 1] - scores[:, 0]
    kind = SHAPES[name]
    if kind == "classes":
        return y, s, scores, y, predicted
    if kind == "log-probabilities":
        return y, s, scores.log_softmax(1), y, predicted
    if kind == "sign":
        y, predicted = 2 * y - 1, 2 * predicted - 1
    given_input = margin.sigmoid() if kind == "probability" else margin
    target = y.float()
    if column:
        given_input, target = given_input[:, None], target[:, None]
    return y, s, given_input, target, predicted


def make(name, measure, y, s, **arguments):
    loss = getattr(fairgrad.torch, name)
    return loss(y, s, measure, y_desirable=[1], **arguments)


def test_the_table_is_complete():
    assert sorted(SHAPES) == LOSSES


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**31), column=st.booleans())
def test_one_step_from_first_principles(name, measure, seed, column):
    y, s, scores, target, predicted = problem(name, seed, column=column)
    criterion = make(name, measure, y, s, fairness_rate=0.5)
    scores.requires_grad_()
    loss = criterion(scores, target, s)
    loss.backward()
    assert scores.grad.isfinite().all()

    levels = fairness_levels(y, predicted, s, measure).values
    np.testing.assert_allclose(criterion.levels, levels, atol=1e-6)
    # signed multipliers for equalities; the four-fifths rule has a lower bound at 0 alone
    multipliers = 0.5 * (np.minimum(levels, 0) if measure == "four_fifths_rule" else levels)
    np.testing.assert_allclose(criterion.multipliers, multipliers, atol=1e-6)
    constraints = criterion.constraints
    mass = criterion.groups.cell_mass(constraints.by_label)
    weights = 1 + constraints.C.T @ multipliers / (mass / mass.sum())
    np.testing.assert_allclose(criterion.cell_weights, weights, atol=1e-5)
    label = criterion.groups.label_index(y)
    cell = label * 2 + s.numpy() if constraints.by_label else s.numpy()
    losses = getattr(nn, name)(reduction="none")(scores, target).detach().reshape(-1).numpy()
    assert loss.item() == pytest.approx((weights[cell] * losses).mean(), abs=1e-5)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**31), column=st.booleans())
def test_equals_pytorch_at_rate_zero_and_after_eval(name, reduction, seed, column):
    y, s, scores, target, _ = problem(name, seed, column=column)
    plain = getattr(nn, name)(reduction=reduction)(scores, target)
    criterion = make(name, "accuracy_parity", y, s, fairness_rate=0.0, reduction=reduction)
    for loss in (criterion(scores, target, s), criterion.eval()(scores, target)):
        torch.testing.assert_close(loss, plain)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("MultiMarginLoss", {"p": 2, "margin": 0.5, "weight": torch.tensor([0.3, 2.0])}),
        ("BCEWithLogitsLoss", {"pos_weight": torch.tensor([3.0])}),
        ("NLLLoss", {"weight": torch.tensor([0.3, 2.0]), "ignore_index": 1}),
    ],
)
def test_arguments_of_pytorch(name, arguments):
    y, s, scores, target, _ = problem(name)
    criterion = make(name, "accuracy_parity", y, s, fairness_rate=0.0, **arguments)
    plain = getattr(nn, name)(**arguments)(scores, target)
    torch.testing.assert_close(criterion(scores, target, s), plain)


def squared_hinge(scores, target):
    return (1 - scores * (2 * target - 1)).clamp(min=0) ** 2


def test_a_loss_of_your_own():
    y, s, scores, _, predicted = problem("BCEWithLogitsLoss")
    criterion = FairLoss(squared_hinge, y, s, "equalized_odds", predict=lambda score: score > 0)
    criterion(scores, y, s)
    levels = fairness_levels(y, predicted, s, "equalized_odds").values
    np.testing.assert_allclose(criterion.levels, levels, atol=1e-6)


# PyTorch itself refuses BCELoss under autocast
@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"BCELoss"}))
def test_autocast(name):
    y, s, scores, target, _ = problem(name)
    layer = nn.Linear(
        scores[..., None].shape[-1] if scores.ndim == 1 else 2, 2 if scores.ndim == 2 else 1
    )
    criterion = make(name, "equalized_odds", y, s, fairness_rate=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = layer(scores if scores.ndim == 2 else scores[:, None])
        assert output.dtype == torch.bfloat16
        if name == "NLLLoss":
            output = output.log_softmax(1)
        loss = criterion(output, target if scores.ndim == 2 else target[:, None], s)
    loss.backward()
    assert loss.isfinite()
    assert layer.weight.grad.isfinite().all()
    assert criterion.multipliers.dtype == torch.float32
    expected = fairness_levels(
        y, criterion.reading.predict(output).reshape(-1).long(), s, "equalized_odds"
    )
    np.testing.assert_allclose(criterion.levels, expected.values, atol=1e-6)
