"""Targets that PyTorch's losses take: positions, probabilities, several outputs, no batch."""

import copy
import warnings

import pytest
import torch
from torch import nn

import fairgrad.torch
from fairgrad import FairnessWarning, fairness_levels
from fairgrad.torch import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, monitor

pytest.importorskip("expecttest", reason="PyTorch's own tests need it")
from torch.testing._internal.common_modules import module_db

LOSSES = {
    getattr(nn, name): getattr(fairgrad.torch, name)
    for name in (
        "BCELoss",
        "BCEWithLogitsLoss",
        "CrossEntropyLoss",
        "MultiMarginLoss",
        "NLLLoss",
        "SoftMarginLoss",
    )
}
WITH_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)
INFOS = [info for info in module_db if info.module_cls in LOSSES]


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
@pytest.mark.parametrize("evaluate", [False, True])
def test_pytorchs_own_test_inputs_at_rate_zero(info, evaluate):
    """Values and gradients are PyTorch's for every input that its own tests have."""
    samples = info.module_inputs_func(
        info, device="cpu", dtype=torch.float64, requires_grad=True, training=True
    )
    assert len(samples) > 3
    for sample in samples:
        kept = dict(sample.constructor_input.kwargs)
        plain = info.module_cls(*sample.constructor_input.args, **kept)
        criterion = LOSSES[info.module_cls](fairness_measure="accuracy_parity", fairness_rate=0.0,
                                            **kept)  # fmt: skip
        scores, target = (part.detach() for part in sample.forward_input.args)
        if evaluate:
            criterion.eval()
        found = []
        for loss in (plain, criterion):
            own = scores.clone().requires_grad_()
            has_batch = own.ndim > 1 or (own.ndim == 1 and info.module_cls not in WITH_CLASSES)
            s = torch.arange(len(own)) % 2 if has_batch else torch.tensor(0)
            for _ in range(2):  # the second call knows the groups of the first
                value = loss(own, target) if loss is plain else loss(own, target, s)
            value.sum().backward()
            found.append((value, own.grad))
        for expected, got in zip(*found, strict=True):
            torch.testing.assert_close(got, expected, equal_nan=True)


def segmentation(seed=0, n=12, shape=(4, 5)):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n, *shape), generator=generator)
    return torch.randn(n, 3, *shape, generator=generator), y, torch.arange(n) % 2


@pytest.mark.parametrize("rate", [0.3, "auto"])
@pytest.mark.parametrize("measure", ["equalized_odds", "accuracy_parity", "demographic_parity"])
def test_positions_are_rows_of_their_own(measure, rate):
    """(N, C, d1, d2) is as N d1 d2 rows, with a sensitive value per example or per position."""
    scores, y, s = segmentation()
    every = s[:, None, None].expand(y.shape)
    made = [CrossEntropyLoss(y, values, measure, fairness_rate=rate) for values in (s, every)]
    flat = CrossEntropyLoss(y.flatten(), every.flatten(), measure, fairness_rate=rate)
    weight = torch.rand(len(y))
    for _ in range(3):
        rows = scores.movedim(1, -1).flatten(0, -2).requires_grad_()
        expected = flat(rows, y.flatten(), every.flatten(), weight.repeat_interleave(20))
        for criterion, values in zip(made, (s, every), strict=True):
            own = scores.clone().requires_grad_()
            loss = criterion(own, y, values, weight)
            torch.testing.assert_close(loss, expected)
            torch.testing.assert_close(
                torch.autograd.grad(loss, own)[0].movedim(1, -1).flatten(0, -2),
                torch.autograd.grad(expected, rows, retain_graph=True)[0],
            )
            torch.testing.assert_close(criterion.multipliers, flat.multipliers)


def test_class_probabilities_are_in_the_cell_of_the_most_probable_or_a_given_label():
    generator = torch.Generator().manual_seed(0)
    y, s = torch.arange(40) % 2, torch.arange(40) // 2 % 2
    scores = torch.randn(40, 2, generator=generator)
    mixed = 0.7 * nn.functional.one_hot(y, 2) + 0.15
    soft, hard, named = (CrossEntropyLoss(y, s, "equalized_odds") for _ in range(3))
    soft(scores.requires_grad_(), mixed, s)
    hard(scores, y, s)
    named(scores, 1 - mixed, s, label=y)
    assert torch.equal(soft.multipliers, hard.multipliers)
    assert torch.equal(named.multipliers, hard.multipliers)
    assert hard.multipliers.abs().max() > 0
    with pytest.raises(ValueError, match="target: expected labels"):
        CrossEntropyLoss(y, s, "equalized_odds", cost_matrix=[[0, 1], [2, 0]])(scores, mixed, s)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("loss", [BCEWithLogitsLoss, BCELoss])
def test_soft_binary_targets_have_the_nearest_label(loss, compiled):
    """Also under torch.compile, where all of them were counted as the label 0."""
    y, s = torch.arange(40) % 2, torch.arange(40) // 2 % 2
    scores = torch.rand(40, generator=torch.Generator().manual_seed(0)).requires_grad_()
    soft, hard = (loss(y, s, "equalized_odds", fairness_rate=0.3) for _ in range(2))
    call = torch.compile(soft, backend="eager", fullgraph=True) if compiled else soft
    call(scores, 0.9 * y + 0.05, s)
    hard(scores, y.float(), s)
    torch.testing.assert_close(soft.multipliers, hard.multipliers)


@pytest.mark.parametrize("rate", [0.3, "auto"])
@pytest.mark.parametrize("measure", ["equalized_odds", "accuracy_parity", "demographic_parity"])
def test_each_of_several_outputs_is_constrained_apart(measure, rate):
    """(N, M) is the mean of M losses."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (200, 3), generator=generator)
    s = torch.randint(0, 2, (200,), generator=generator)
    joint = BCEWithLogitsLoss(y, s, measure, fairness_rate=rate)
    apart = [BCEWithLogitsLoss(own, s, measure, fairness_rate=rate) for own in y.T]
    for step in range(4):
        rows = torch.arange(50) + 50 * step
        scores = torch.randn(50, 3, generator=generator) + s[rows, None]
        losses = [
            own(scores[:, i].clone().requires_grad_(), y[rows, i].float(), s[rows])
            for i, own in enumerate(apart)
        ]
        loss = joint(scores.requires_grad_(), y[rows].float(), s[rows])
        torch.testing.assert_close(loss, torch.stack(losses).mean())
    torch.testing.assert_close(joint.levels, torch.cat([own.levels for own in apart]))
    torch.testing.assert_close(joint.cell_weights, torch.cat([own.cell_weights for own in apart]))
    assert joint.constraint_names[0] == f"output 0, {apart[0].constraint_names[0]}"
    assert monitor.numbers_of(joint)["negative_share"] >= 0
    with pytest.raises(ValueError, match=r"target: expected shape \(N, 3\)"):
        joint(scores[:, :2], y[rows, :2].float(), s[rows])


def stream(n=400, groups=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=generator)
    s = torch.randint(0, groups, (n,), generator=generator)
    scores = torch.randn(n, 2, generator=generator) + nn.functional.one_hot(y, 2) * s[:, None]
    return scores, y, s


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_without_counts_shares_are_those_of_the_batches(measure):
    scores, y, s = stream()
    known, learned = (
        CrossEntropyLoss(*data, fairness_measure=measure, fairness_rate=0.1)
        for data in ((y, s), (None, None))
    )
    assert learned.levels.numel() == 0
    assert "not known yet" in repr(learned)
    plain = learned(scores[:1].clone().requires_grad_(), y[:1], s[:1])  # one label, one group
    torch.testing.assert_close(plain, nn.functional.cross_entropy(scores[:1], y[:1]))
    for _ in range(5):
        for criterion in (known, learned):
            criterion(scores.clone().requires_grad_(), y, s)
    assert learned.constraint_names == known.constraint_names
    torch.testing.assert_close(learned.levels, known.levels, atol=0.01, rtol=0)
    torch.testing.assert_close(learned.multipliers, known.multipliers, atol=0.01, rtol=0)


def test_values_that_appear_later_are_first_unconstrained_and_then_known():
    scores, y, s = stream()
    criterion = CrossEntropyLoss(fairness_measure="equalized_odds", fairness_rate=0.1)
    for _ in range(9):
        criterion(scores.clone().requires_grad_(), y, s)
    before = criterion.multipliers
    criterion(scores.clone().requires_grad_(), y, s + 5)  # batch 10
    assert len(criterion.group_names) == 5
    kept = dict(zip(criterion.constraint_names, criterion.multipliers, strict=True))
    assert set(kept) >= {"y=0, s=0", "y=0, s=5"}
    assert before.abs().max() > 0
    rows = criterion(scores.clone().requires_grad_(), y, s + 9)  # batch 11 is not one of use
    assert rows.isfinite()
    assert len(criterion.group_names) == 5
    for _ in range(3):
        criterion(scores.clone().requires_grad_(), y, s + 9)
    assert len(criterion.group_names) == 7


def test_what_was_learned_is_in_the_checkpoint():
    scores, y, s = stream()
    first, second = (
        CrossEntropyLoss(fairness_measure="equalized_odds", fairness_rate=0.1) for _ in range(2)
    )
    for _ in range(6):
        first(scores.clone().requires_grad_(), y, s)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(6):
        for criterion in (first, second):
            criterion(scores.clone().requires_grad_(), y, s + 1)
    assert first.constraint_names == second.constraint_names
    torch.testing.assert_close(first.multipliers, second.multipliers)


class TestWarnings:
    """Each appears once, names the remedy, and points to the line of the caller."""

    @pytest.fixture(autouse=True)
    def often(self, monkeypatch):
        monkeypatch.setattr(monitor, "EVERY", 2)

    def train(self, criterion, scores, y, s, steps=100):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FairnessWarning)
            for _ in range(steps):
                criterion(scores.clone().requires_grad_(), y, s)
        assert {warning.filename for warning in caught} == {__file__}
        return [str(warning.message) for warning in caught]

    def test_weights(self):
        scores, y, s = stream()
        criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=5.0)
        (message,) = [m for m in self.train(criterion, scores, y, s) if "smallest weight" in m]
        assert "Try fairness_rate='auto'" in message

    def test_constant(self):
        _, y, s = stream()
        criterion = CrossEntropyLoss(y, s, "equalized_odds")
        scores = torch.tensor([1.0, 0.0]).repeat(len(y), 1)
        (message,) = self.train(criterion, scores, y, s)
        assert "were the label 0: the model has become a constant. Train with the plain" in message

    def test_constant_after_few_epochs(self, monkeypatch):
        monkeypatch.undo()
        y, s = torch.arange(128) % 2, torch.arange(128) // 2 % 2
        criterion = CrossEntropyLoss(y, s, "equalized_odds")
        scores = torch.tensor([1.0, 0.0]).repeat(len(y), 1)
        (message,) = self.train(criterion, scores, y, s, steps=1_024)
        assert "the model has become a constant" in message

    def test_no_numbers(self):
        scores, y, s = stream()
        criterion = CrossEntropyLoss(y, s, "equalized_odds")
        messages = self.train(criterion, scores * torch.nan, y, s, steps=2)
        assert messages[0].startswith("The input of the loss is NaN in step 2. Try a smaller")

    def test_sampler(self):
        scores, y, s = stream()
        rows = torch.cat([torch.arange(len(y)), *[torch.nonzero(y).flatten()] * 3])
        criterion = CrossEntropyLoss(y, s, "accuracy_parity", fairness_rate=0.01)
        messages = self.train(criterion, scores[rows], y[rows], s[rows])
        assert "Use fairness_rate='auto', which corrects for samplers" in messages[0]

    def test_growing_levels(self):
        _, y, s = stream()
        criterion = CrossEntropyLoss(y, s, "accuracy_parity", fairness_rate=0.0)
        good = 10 * nn.functional.one_hot(y, 2).float()
        for _ in range(16):
            criterion(good.clone().requires_grad_(), y, s)
        bad = torch.where((s == 0)[:, None], -good, good)
        messages = self.train(criterion, bad, y, s)
        assert "has grown from 0.00 to 0.50" in messages[0]


@pytest.mark.parametrize(
    "measure",
    ["accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity"],
)
def test_samplers_do_not_matter_with_the_automatic_rate(measure):
    """A class-balanced sampler: levels are those of the training set."""
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(4000, generator=generator) < 0.2).long()
    s = (torch.rand(4000, generator=generator) < 0.3 + 0.4 * y).long()
    scores = torch.randn(4000, 2, generator=generator) + nn.functional.one_hot(y * s, 2)
    criterion = CrossEntropyLoss(y, s, measure)
    share = torch.bincount(y)[y].double().reciprocal()
    found = []
    for _ in range(80):
        rows = torch.multinomial(share, 512, replacement=True, generator=generator)
        criterion(scores[rows].requires_grad_(), y[rows], s[rows])
        found.append(criterion.levels)
    expected = torch.from_numpy(fairness_levels(y, scores.argmax(1), s, measure).values).float()
    torch.testing.assert_close(torch.stack(found[20:]).mean(0), expected, atol=0.01, rtol=0)


def test_the_plain_loss_of_positions_and_of_several_outputs():
    generator = torch.Generator().manual_seed(0)
    y, s = torch.arange(40).reshape(20, 2) % 3, torch.arange(20) % 2
    criterion = CrossEntropyLoss(y, s, "equalized_odds")
    scores = torch.randn(20, 3, 2, generator=generator, requires_grad=True)
    criterion(scores, y, s)
    torch.testing.assert_close(criterion.plain_loss, nn.functional.cross_entropy(scores, y))
    y = torch.stack([torch.arange(20) // 4 % 2, torch.arange(20) // 8 % 2], 1)
    criterion = BCEWithLogitsLoss(y, s, "equalized_odds")
    logits = torch.randn(20, 2, generator=generator, requires_grad=True)
    criterion(logits, y.float(), s)
    plain = nn.functional.binary_cross_entropy_with_logits(logits, y.float())
    torch.testing.assert_close(criterion.plain_loss, plain)


def test_numbers_of_a_measure_of_predicted_labels():
    y, s = torch.arange(60) % 3, torch.arange(60) // 3 % 2
    criterion = CrossEntropyLoss(y, s, "demographic_parity", y_desirable=2)
    criterion(torch.randn(60, 3, requires_grad=True), y, s)
    numbers = monitor.numbers_of(criterion)
    assert numbers["negative_share"] == 0.0  # such weights are never negative
    names = [name for name in numbers if name.startswith("weight/")]
    assert len(names) == len(criterion.cell_names)
