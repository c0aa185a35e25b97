"""Bad input: one clear error, and nothing in the state has changed."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fairgrad import Constraints, Groups
from fairgrad.torch import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    FairLoss,
    SoftMarginLoss,
)

Y = torch.tensor([0, 0, 1, 1, 3, 3])
S = torch.tensor([0, 4, 0, 4, 0, 4])
LOGITS = torch.zeros(6, 5)


@pytest.fixture
def criterion():
    made = CrossEntropyLoss(Y, S, "equalized_odds", fairness_rate=0.1)
    made(torch.randn(6, 5, requires_grad=True), Y, S)
    return made


BATCHES = {
    "missing s": ((LOGITS, Y), ValueError, "s: required in training"),
    "s too short": ((LOGITS, Y, S[:5]), ValueError, r"s: expected shape \(6,\), got \(5,\)"),
    "target too short": (
        (LOGITS, Y[:5], S),
        ValueError,
        r"target: expected labels of the shape \(6,\)",
    ),
    "s never seen": ((LOGITS, Y, S + 100), ValueError, "s: row 0 has 100, which was never seen"),
    "s in a gap of the ids": ((LOGITS, Y, S // 2), ValueError, "s: row 1 has 2, which was never"),
    "s unknown but never in training": ((LOGITS, Y, S * 0 - 1), ValueError, "s: row 0 has -1"),
    "s very negative": ((LOGITS, Y, S - 6), ValueError, "s: row 0 has -6"),
    "target never seen": (
        (LOGITS, Y * 0 + 2, S),
        ValueError,
        "target: row 0 has 2, which was never",
    ),
    "target out of range": ((LOGITS, Y + 7, S), ValueError, "target: row 0 has 7, which was never"),
    "target negative": ((LOGITS, Y - 9, S), ValueError, "target: row 0 has -9"),
    "s of floats": ((LOGITS, Y, S.float()), TypeError, "s: expected a tensor of integers"),
    "s a list": ((LOGITS, Y, S.tolist()), TypeError, "s: expected a tensor of integers, got list"),
    "target a list": ((LOGITS, Y.tolist(), S), TypeError, "target: expected a tensor"),
    "s of two columns": ((LOGITS, Y, S.repeat(2, 1).T), ValueError, "s: expected shape"),
    "negative weight": (
        (LOGITS, Y, S, -torch.ones(6)),
        ValueError,
        "sample_weight: expected finite",
    ),
    "NaN weight": (
        (LOGITS, Y, S, torch.full((6,), torch.nan)),
        ValueError,
        "sample_weight: expect",
    ),
    "weights too short": (
        (LOGITS, Y, S, torch.ones(5)),
        ValueError,
        "sample_weight: expected shape",
    ),
    "mode as fourth argument": (
        (LOGITS, Y, S, "test"),
        ValueError,
        "mode: expected one of",
    ),
    "mode": ((LOGITS, Y, S, None, "test"), ValueError, "mode: expected one of"),
    "no class axis": (
        (LOGITS[:, 0], Y, S),
        ValueError,
        r"input: expected a column per class, got the shape \(6,\); for one .* BCEWithLogitsLoss",
    ),
    "pixels": ((LOGITS[:, :, None], Y, S), ValueError, "target: expected labels of the shape"),
    "s of other pixels": (
        (LOGITS[:, :, None], Y[:, None], S[:, None].expand(6, 2)),
        ValueError,
        r"s: expected shape \(6,\) or \(6, 1\), got \(6, 2\)",
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batch(criterion, case):
    arguments, kind, message = BATCHES[case]
    before = copy.deepcopy(criterion.state_dict())
    with pytest.raises(kind, match=message):
        criterion(arguments[0].clone().requires_grad_(), *arguments[1:])
    after = criterion.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_s_in_a_gap_is_refused_without_an_update_too(criterion):
    with pytest.raises(ValueError, match="never seen"):
        criterion(LOGITS, Y, S // 2, mode="eval")


ARGUMENTS = {
    "no measure": ((Y, S), {}, ValueError, "fairness_measure: required"),
    "unknown measure": ((Y, S, "fair"), {}, ValueError, "'fair'; expected one of"),
    "no y": ((None, S, "equalized_odds"), {}, ValueError, "y_train: required"),
    "no s": ((Y, None, "equalized_odds"), {}, ValueError, "s_train: required"),
    "lengths": (
        (Y, S[:3], "equalized_odds"),
        {},
        ValueError,
        "s_train: expected one value per row",
    ),
    "string labels": (
        (["a", "b"], [0, 1], "equalized_odds"),
        {},
        TypeError,
        "y_train: expected int",
    ),
    "four fifths": ((Y, S, "four_fifths_rule"), {}, ValueError, "y_desirable: four_fifths_rule"),
    "desirable": (
        (Y, S, "equality_of_opportunity"),
        {"y_desirable": [2]},
        ValueError,
        "y_desirable: expected labels among",
    ),
    "groups and s": (
        (Groups.from_data(Y, S), S, "equalized_odds"),
        {},
        ValueError,
        "s_train: not needed",
    ),
    "weights": (
        (Y, S, "equalized_odds"),
        {"sample_weight_train": [1.0]},
        ValueError,
        "sample_weight_train: expected one value",
    ),
    "one group": (
        (Y, S * 0, "equalized_odds"),
        {},
        ValueError,
        "s_train: fairness compares at least",
    ),
    "no group": ((Y, S * 0 - 1, "equalized_odds"), {}, ValueError, "s_train: fairness compares at"),
    "epsilon no number": (
        (Y, S, "equalized_odds"),
        {"epsilon": "x"},
        TypeError,
        "epsilon: expected n",
    ),
    "nothing but ignored": (
        (Y * 0, S, "accuracy_parity"),
        {"ignore_index": 0},
        ValueError,
        "y_train: expected labels besides ignore_index=0",
    ),
    "one-hot labels": (
        (torch.eye(3)[torch.arange(6) % 3], S, "equalized_odds"),
        {},
        ValueError,
        r"y_train: .* a one in each row, as one-hot labels have; pass y_train.argmax\(1\)",
    ),
    "ids too wide": (
        (Y, S * 10**9, "equalized_odds"),
        {},
        ValueError,
        "s_train: integer ids may span",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case):
    arguments, options, kind, message = ARGUMENTS[case]
    with pytest.raises(kind, match=message):
        CrossEntropyLoss(*arguments, **options)


@pytest.mark.parametrize(
    ("loss", "labels", "known"),
    [
        (BCEWithLogitsLoss, [-1, 1], "0 and 1"),
        (BCELoss, [0, 1, 2], "0 and 1"),
        (SoftMarginLoss, [0, 1], "-1 and 1"),
    ],
)
def test_labels_that_the_loss_does_not_predict(loss, labels, known):
    y, s = torch.tensor(labels).repeat(4), torch.arange(4 * len(labels)) // 2 % 2
    name = loss.__name__
    with pytest.raises(
        ValueError, match=f"y_train: {name} has the labels {known}, got .{labels[0]}"
    ):
        loss(y, s, "equalized_odds")
    FairLoss(loss.base, y, s, "equalized_odds", predict=lambda scores: scores.long())


def test_predictions_of_another_shape():
    criterion = FairLoss(
        nn.CrossEntropyLoss, Y, S, "equalized_odds", predict=lambda scores: scores.argmax()
    )
    with pytest.raises(
        ValueError, match=r"predict: expected a label for each of 6 rows, got .*\(\)"
    ):
        criterion(LOGITS, Y, S)


def test_a_binary_target_of_integers():
    y, s = torch.arange(4) % 2, torch.arange(4) // 2
    criterion = BCEWithLogitsLoss(y, s, "equalized_odds")
    with pytest.raises(
        ValueError, match="target: expected floats, as PyTorch's .* got torch.int64"
    ):
        criterion(torch.zeros(4), y, s)


def test_an_input_on_another_device(criterion):
    with pytest.raises(ValueError, match="input: on meta, but the target is on cpu"):
        criterion(LOGITS.to("meta"), Y, S)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "0.1", None])
@pytest.mark.parametrize("name", ["fairness_rate", "proportional_rate", "error_memory"])
def test_rates(name, value):
    with pytest.raises(ValueError, match=f"{name}: expected a (finite )?number"):
        CrossEntropyLoss(Y, S, "equalized_odds", **{name: value})


def test_error_memory_is_below_one():
    with pytest.raises(ValueError, match="error_memory.*below 1, got 1"):
        CrossEntropyLoss(Y, S, "equalized_odds", error_memory=1.0)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan])
def test_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon: expected at least 0"):
        CrossEntropyLoss(Y, S, "equalized_odds", epsilon=epsilon)


def test_reduction():
    with pytest.raises(ValueError, match="reduction: expected one of .* got 'average'"):
        CrossEntropyLoss(Y, S, "equalized_odds", reduction="average")


def test_bounds():
    with pytest.raises(ValueError, match="lower: expected at most upper"):
        Constraints([0.0], [[1.0] * 6], by_label=True, lower=0.2, upper=0.1)


def test_a_loss_of_your_own_needs_a_way_to_read_predictions():
    with pytest.raises(TypeError, match="predict: needed with function"):
        FairLoss(nn.functional.cross_entropy, Y, S, "equalized_odds")


def test_a_loss_that_is_already_reduced():
    with pytest.raises(ValueError, match="base_loss: expected one value per example"):
        FairLoss(nn.CrossEntropyLoss(), Y, S, "equalized_odds")
    reduced = FairLoss(lambda i, _: i.sum(), Y, S, "equalized_odds", predict=lambda i: i.argmax(1))
    with pytest.raises(ValueError, match="base_loss: expected one value per label .6."):
        reduced(LOGITS, Y, S)


@pytest.mark.parametrize("outputs", [(LOGITS,), {"logits": LOGITS}], ids=["tuple", "dict"])
def test_outputs_of_a_model_that_are_no_tensor(criterion, outputs):
    before = criterion.multipliers
    kind = type(outputs).__name__
    with pytest.raises(
        TypeError, match=rf"input: expected a tensor, got a {kind}; pass the logits"
    ):
        criterion(outputs, Y, S)
    assert torch.equal(criterion.multipliers, before)
