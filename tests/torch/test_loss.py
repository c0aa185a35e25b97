"""What the loss does in training, evaluation and in between."""

import gc
import itertools
import subprocess
import sys

import psutil
import pytest
import torch
from torch import nn

from fairgrad import Groups, On, fairness_levels
from fairgrad.torch import BCEWithLogitsLoss, CrossEntropyLoss, FairnessLoss

Y = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
S = torch.tensor([0, 0, 1, 1, 0, 0, 1, 1])
# predictions: all right in group 0; group 1 has one of two wrong in each label
LOGITS = torch.tensor([[1.0, -1], [1, -1], [1, -1], [-1, 1], [-1, 1], [-1, 1], [1, -1], [-1, 1]])


def make(measure="equalized_odds", **arguments):
    return CrossEntropyLoss(Y, S, measure, **{"fairness_rate": 0.1, **arguments})


def logits():
    return LOGITS.clone().requires_grad_()


def test_one_step_by_hand():
    criterion = make()
    loss = criterion(logits(), Y, S)
    # F = P(right | cell) - P(right | label) = +-0.25; lambda = 0.1 F; p = 1/4 in every cell;
    # (C' lam)_(l,0) = 0.5 (lam_1 - lam_0) = -0.025, so w = 1 -+ 0.1
    torch.testing.assert_close(criterion.levels, torch.tensor([0.25, -0.25, 0.25, -0.25]))
    torch.testing.assert_close(criterion.multipliers, criterion.levels * 0.1)
    torch.testing.assert_close(criterion.cell_weights, torch.tensor([0.9, 1.1, 0.9, 1.1]))
    losses = nn.functional.cross_entropy(LOGITS, Y, reduction="none")
    weight = torch.tensor([0.9, 1.1])[S]
    torch.testing.assert_close(loss, (losses * weight).mean())
    torch.testing.assert_close(criterion.plain_loss, losses.mean())


@pytest.mark.parametrize("ignore", [-100, 1])
def test_every_step_has_the_loss_and_the_update_of_its_own_batch(ignore):
    """Steps after the first may take a shorter way, which sample weights of 1 lead around."""
    criterion, around = (make(fairness_rate=0.3, ignore_index=ignore) for _ in range(2))
    source = torch.Generator().manual_seed(0)
    for _ in range(4):
        scores = torch.randn(len(Y), 2, generator=source, requires_grad=True)
        loss, other = criterion(scores, Y, S), around(scores, Y, S, torch.ones(len(Y)))
        torch.testing.assert_close(loss, other)
        torch.testing.assert_close(
            torch.autograd.grad(loss, scores), torch.autograd.grad(other, scores)
        )
        plain = nn.functional.cross_entropy(scores, Y, ignore_index=ignore).detach()
        torch.testing.assert_close(criterion.plain_loss, plain)
        torch.testing.assert_close(around.plain_loss, plain)
        torch.testing.assert_close(criterion.state_dict(), around.state_dict())
    with pytest.raises(ValueError, match="never seen in s_train"):
        criterion(scores, Y, S + 7)
    torch.testing.assert_close(criterion.plain_loss, plain)
    torch.testing.assert_close(criterion.multipliers, around.multipliers)


def test_weights_enter_before_the_loss_is_formed():
    criterion = make()
    first = criterion(logits(), Y, S)
    assert not torch.isclose(first, nn.functional.cross_entropy(LOGITS, Y))


def test_weights_can_be_negative_and_can_be_clipped():
    signed, clipped = make(fairness_rate=5.0), make(fairness_rate=5.0, negative_weights=False)
    for criterion in (signed, clipped):
        criterion(logits(), Y, S)
    assert signed.cell_weights.min() < 0
    torch.testing.assert_close(clipped.cell_weights, signed.cell_weights.clip(min=0))


def test_epsilon_allows_what_is_within_it():
    criterion = make(epsilon=0.3)
    criterion(logits(), Y, S)
    torch.testing.assert_close(criterion.cell_weights, torch.ones(4))
    criterion = make(epsilon=0.2)
    criterion(logits(), Y, S)
    torch.testing.assert_close(criterion.multipliers, torch.tensor([0.005, -0.005] * 2))


def test_proportional_rate_reacts_at_once():
    criterion = make(fairness_rate=0.0, proportional_rate=0.4)
    criterion(logits(), Y, S)
    torch.testing.assert_close(criterion.multipliers, torch.zeros(4))
    torch.testing.assert_close(criterion.cell_weights, torch.tensor([0.6, 1.4, 0.6, 1.4]))


def test_error_memory_pools_over_batches():
    criterion = make(error_memory=0.5)
    criterion(logits(), Y, S)
    criterion(-logits(), Y, S)  # every prediction turned round
    # group 1 has errors 1/2 and then 1/2; group 0 has 0 and then 1: (0.5 * 0 + 1) / 1.5
    errors = criterion.state.errors.float()
    torch.testing.assert_close(errors, torch.tensor([2 / 3, 0.5, 2 / 3, 0.5]))


def test_an_absent_cell_keeps_its_estimate():
    criterion = make()
    criterion(logits(), Y, S)
    before = criterion.levels
    criterion(logits()[:1], Y[:1], S[:1])
    torch.testing.assert_close(criterion.levels, before)


def test_a_cell_not_yet_seen_does_not_push():
    criterion = make()
    for _ in range(5):
        criterion(logits()[2:4], Y[2:4], S[2:4])  # label 0, group 1 only: error 1/2
    torch.testing.assert_close(criterion.multipliers, torch.zeros(4))


def test_eval_freezes_and_gives_the_plain_loss():
    criterion = make()
    criterion(logits(), Y, S)
    state = {name: value.clone() for name, value in criterion.state_dict().items()}
    plain = nn.functional.cross_entropy(LOGITS, Y)
    criterion.eval()
    torch.testing.assert_close(criterion(logits(), Y, S), plain)
    torch.testing.assert_close(criterion(logits(), Y), plain)
    weighted = criterion(logits(), Y, S, mode="eval")
    assert not torch.isclose(weighted, plain)
    with torch.no_grad():
        torch.testing.assert_close(criterion.train()(logits(), Y, S), weighted)
    torch.testing.assert_close(criterion(logits(), Y, S, mode="eval"), weighted)
    for name, value in criterion.state_dict().items():
        assert torch.equal(value, state[name])


def test_unknown_sensitive_values_have_weight_one_and_are_in_no_constraint():
    s = torch.where(torch.arange(8) % 2 == 0, S, -1)
    criterion = CrossEntropyLoss(Y, s, "accuracy_parity", fairness_rate=5.0)
    for _ in range(3):
        criterion(logits(), Y, s)
    weights = dict(zip(criterion.cell_names, criterion.cell_weights.tolist(), strict=True))
    assert weights["s=?"] == 1
    assert weights["s=0"] != 1
    assert criterion.constraint_names == ("s=0", "s=1")


def test_ids_need_not_be_consecutive():
    plain = make()
    strange = CrossEntropyLoss(Y, S * 37 - 12, "equalized_odds", fairness_rate=0.1)
    for _ in range(3):
        losses = plain(logits(), Y, S), strange(logits(), Y, S * 37 - 12)
        torch.testing.assert_close(*losses)


@pytest.mark.parametrize("n_groups", [50, 100, 900])
def test_many_groups(n_groups):
    n = 3000
    y, s = torch.arange(n) % 3, torch.arange(n) // 3 % n_groups
    few, generator = torch.arange(n) % 7 == 0, torch.Generator().manual_seed(0)
    criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.5)
    scores = torch.randn(n, 3, generator=generator)
    criterion(scores[few], y[few], s[few])
    assert criterion.multipliers.isfinite().all()
    criterion(scores, y, s)
    levels = fairness_levels(y, scores.argmax(1), s, "equalized_odds").values
    torch.testing.assert_close(criterion.levels, torch.from_numpy(levels).float())


def test_counts_instead_of_data():
    counts = {(y, s): 2 for y in (0, 1) for s in (0, 1)}
    given = CrossEntropyLoss(
        Groups.from_counts(counts), fairness_measure="equalized_odds", fairness_rate=0.01
    )
    torch.testing.assert_close(given(logits(), Y, S), make(fairness_rate=0.01)(logits(), Y, S))


def test_strings_and_two_attributes():
    frame = {"sex": ["F", "F", "M", "M"] * 2, "race": ["W", "B"] * 4}
    measure = [On("sex", "equalized_odds"), On("race", "accuracy_parity", epsilon=0.1)]
    criterion = CrossEntropyLoss(Y, frame, measure)
    s = torch.from_numpy(criterion.groups.encode(frame))
    criterion(logits(), Y, s)
    assert criterion.group_names[0] == "sex=F, race=B"
    expected = [0.25, -0.25, 0.25, -0.25, 0, 0]
    right = LOGITS.argmax(1) == Y
    white = torch.tensor([True, False] * 4)
    expected[4] = (right[~white].float().mean() - right.float().mean()).item()
    expected[5] = (right[white].float().mean() - right.float().mean()).item()
    torch.testing.assert_close(criterion.levels, torch.tensor(expected))


def test_two_integer_columns():
    s = torch.stack([S, torch.tensor([3, 9] * 4)], dim=1)
    columns = CrossEntropyLoss(Y, s, "equalized_odds")
    joint = CrossEntropyLoss(Y, S * 10 + s[:, 1], "equalized_odds")
    torch.testing.assert_close(columns(logits(), Y, s), joint(logits(), Y, S * 10 + s[:, 1]))
    torch.testing.assert_close(columns.multipliers, joint.multipliers)


def test_keywords_of_0_2_0():
    old = FairnessLoss(
        nn.CrossEntropyLoss,
        reduction="sum",
        fairness_measure="equal_opportunity",
        y_train=Y.numpy(),
        s_train=S.numpy(),
        y_desirable=[1],
        epsilon=0.0,
        fairness_rate=0.1,
        label_smoothing=0.1,
    )
    new = make("equality_of_opportunity", reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(old(logits(), Y, S, mode="train"), new(logits(), Y, S))


def test_nan_logits_give_a_nan_loss_but_never_a_nan_multiplier():
    criterion = make()
    criterion(logits() * torch.nan, Y, S)
    loss = criterion(torch.full((8, 2), torch.nan, requires_grad=True), Y, S)
    assert loss.isnan()
    assert criterion.multipliers.isfinite().all()
    assert criterion(logits(), Y, S).isfinite()


def test_an_empty_batch_is_as_in_pytorch():
    criterion = make()
    loss = criterion(logits()[:0], Y[:0], S[:0])
    assert loss.isnan()  # the mean of nothing
    assert criterion.multipliers.isfinite().all()


def test_memory_is_flat():
    model = nn.Linear(20, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    criterion = make(error_memory=0.9, proportional_rate=1.0)
    x = torch.randn(8, 20)

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            criterion(model(x), Y, S).backward()
            optimizer.step()
        gc.collect()
        tensors = sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())
        return tensors, psutil.Process().memory_info().rss

    steps(200)
    seen = [steps(1), *(steps(2000) for _ in range(3))]
    tensors, memory = zip(*seen, strict=True)
    assert len(set(tensors)) == 1
    # What leaks grows in every round; memory of a process with much else may grow in one of them.
    assert min(after - before for before, after in itertools.pairwise(memory)) < 2 * 2**20


def test_importing_the_losses_loads_torch_and_numpy_only():
    code = (
        "import sys, torch, numpy; before = set(sys.modules); import fairgrad.torch;"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    others = set(loaded.stdout.split()) - set(sys.stdlib_module_names)
    assert others <= {"fairgrad", "numpy", "torch"}


@pytest.mark.parametrize("measure", ["accuracy_parity", "demographic_parity", "four_fifths_rule"])
def test_repr_is_readable(measure):
    assert "groups=['s=0', 's=1']" in repr(make(measure))


def test_the_rate_may_be_set_between_steps():
    criterion, twin = make(fairness_rate=0.1), make(fairness_rate=0.5)
    criterion.fairness_rate = 0.5
    for own in (criterion, twin):
        own(logits(), Y, S)
    assert criterion.fairness_rate == 0.5
    assert torch.equal(criterion.multipliers, twin.multipliers)
    with pytest.raises(ValueError, match="fairness_rate: expected"):
        criterion.fairness_rate = -1.0
    with pytest.raises(ValueError, match="automatic rate"):
        make(fairness_rate="auto").fairness_rate = 0.1


def test_values_of_a_column_are_a_column():
    """As PyTorch's: one value per entry of the input."""
    y = Y.float()[:, None]
    criterion = BCEWithLogitsLoss(Y, S, "equalized_odds", fairness_rate=0.0, reduction="none")
    scores = torch.randn(len(Y), 1, requires_grad=True)
    expected = nn.functional.binary_cross_entropy_with_logits(scores, y, reduction="none")
    torch.testing.assert_close(criterion(scores, y, S), expected)
    criterion.eval()
    torch.testing.assert_close(criterion(scores, y), expected)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_scale_of_sample_weights_does_not_matter(compiled):
    criteria = [make(fairness_rate=0.5) for _ in range(2)]
    for criterion, scale in zip(criteria, (1.0, 1e-6), strict=True):
        criterion.state.is_compiled &= compiled
        for step in range(5):
            generator = torch.Generator().manual_seed(step)
            weight = scale * torch.rand(len(Y), generator=generator, dtype=torch.float64)
            criterion(logits(), Y, S, sample_weight=weight)
    torch.testing.assert_close(criteria[0].multipliers, criteria[1].multipliers)


def test_a_plain_checkpoint_loads_into_a_module_with_a_fair_loss():
    """The multipliers start from 0 then."""
    plain = nn.ModuleDict({"net": nn.Linear(2, 2), "loss": nn.CrossEntropyLoss()})
    fair = nn.ModuleDict({"net": nn.Linear(2, 2), "loss": make()})
    fair.load_state_dict(plain.state_dict())
    assert torch.equal(fair["net"].weight, plain["net"].weight)
