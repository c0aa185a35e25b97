"""Measures of what is predicted, in the losses that can have them: against the formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import fairgrad.torch
from fairgrad import AtLeast, AtMost, On, fairness_levels
from fairgrad.torch import CrossEntropyLoss, NLLLoss

MEASURES = {
    "parity": "demographic_parity",
    "odds": "equalized_odds_all",
    "rule": "four_fifths_rule",
    "selection": AtMost("selection_rate", 0.3),
    "several": ["accuracy_parity", On("s", "demographic_parity", 0.05), AtLeast("recall", 0.9)],
}
COSTS = np.array([[0.0, 1.0, 3.0], [0.5, 0.0, 1.0], [2.0, 1.0, 0.0]])


def problem(seed, n=60, n_classes=3):
    generator = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.arange(3).repeat(2), torch.randint(0, 3, (n - 6,), generator=generator)])
    s = torch.cat(
        [torch.arange(2).repeat_interleave(3), torch.randint(0, 2, (n - 6,), generator=generator)]
    )
    return y, s, torch.randn(n, n_classes, generator=generator)


def costs_by_hand(criterion, predicted, y, s, cost, rate):
    """(N, 3) ``a[k, l]`` of each row after one step, from the definition."""
    constraints, groups = criterion.constraints, criterion.groups
    levels = fairness_levels(y, predicted, s, criterion.fairness_measure, y_desirable=1).values
    np.testing.assert_allclose(criterion.levels, levels, atol=1e-6)
    upper = np.maximum(levels - constraints.upper, 0)
    lower = np.maximum(constraints.lower - levels, 0)
    exact = constraints.lower == constraints.upper
    net = rate * np.where(exact, levels - constraints.upper, upper - lower)
    np.testing.assert_allclose(criterion.multipliers, net, atol=1e-6)
    K = groups.mass.size
    pull = (constraints.C.T @ net).reshape(3, K) / (groups.mass.ravel() / groups.mass.sum())
    cell = y.numpy() * 2 + s.numpy()
    return cost[y.numpy()] + pull[:, cell].T


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", [CrossEntropyLoss, NLLLoss])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**31), costs=st.booleans(), weighted=st.booleans())
def test_one_step_from_first_principles(kind, measure, seed, costs, weighted):
    y, s, scores = problem(seed)
    weight = torch.full((len(y),), 3.0) if weighted else None
    criterion = kind(
        y, s, MEASURES[measure], fairness_rate=0.5, y_desirable=1,
        cost_matrix=COSTS if costs else None,
    )  # fmt: skip
    scores.requires_grad_()
    given_input = scores if kind is CrossEntropyLoss else scores.log_softmax(1)
    loss = criterion(given_input, y, s, weight)
    loss.backward()
    cost = COSTS / COSTS.max(1).mean() if costs else 1 - np.eye(3)
    a = costs_by_hand(criterion, scores.argmax(1), y, s, cost, 0.5)
    target = torch.from_numpy(a.max(1, keepdims=True) - a)
    p = scores.detach().double().softmax(1)
    assert loss.item() == pytest.approx((target * -p.log()).sum(1).mean().item(), abs=1e-5)
    gradient = (target.sum(1, keepdim=True) * p - target) / len(y)  # of sum_l t_l (-log p_l)
    torch.testing.assert_close(scores.grad.double(), gradient, atol=1e-6, rtol=1e-5)
    assert len(criterion.cell_names) == len(criterion.cell_weights) == 18


@pytest.mark.parametrize("measure", MEASURES)
def test_of_two_labels_it_is_the_same_loss_for_all(measure):
    y, s, scores = problem(0)
    y, scores = y % 2, scores[:, :2]
    criterion = CrossEntropyLoss(y, s, MEASURES[measure], fairness_rate=0.5, y_desirable=1)
    assert criterion.constraints.n_outcomes == 1
    assert fairgrad.torch.MultiMarginLoss(y, s, MEASURES[measure])(scores, y, s).isfinite()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"weight": torch.tensor([0.3, 2.0, 1.0]), "label_smoothing": 0.1, "ignore_index": 2}],
)
def test_equals_pytorch_at_rate_zero(reduction, arguments):
    y, s, scores = problem(3)
    criterion = CrossEntropyLoss(
        y, s, "demographic_parity", fairness_rate=0.0, reduction=reduction,
        cost_matrix=None if not arguments else 1 - np.eye(2), **arguments,
    )  # fmt: skip
    assert criterion.constraints.n_outcomes > 1
    plain = nn.CrossEntropyLoss(reduction=reduction, **arguments)(scores, y)
    torch.testing.assert_close(criterion(scores.requires_grad_(), y, s), plain)


def test_classes_that_are_no_labels():
    """Of five classes only 0, 1 and 2 were ever true: others are predicted, but learn nothing."""
    y, s, scores = problem(1, n_classes=5)
    criterion = CrossEntropyLoss(y, s, "demographic_parity", fairness_rate=0.5)
    scores.requires_grad_()
    criterion(scores, y, s).backward()
    levels = fairness_levels(y, scores.argmax(1), s, "demographic_parity")
    known = [name.startswith(("y=0", "y=1", "y=2")) for name in levels.names]
    np.testing.assert_allclose(criterion.levels, levels.values[known], atol=1e-6)
    assert (scores.grad[:, 3:] >= 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", ["mean", "sum"])
def test_tensors_and_arrays_do_the_same(weighted, mean):
    y, s, scores = problem(2)
    y[:5] = -100
    weight = torch.rand(len(y)) if weighted else None
    one, two = (
        CrossEntropyLoss(y[5:], s[5:], "equalized_odds_all", fairness_rate=0.5, reduction=mean)
        for _ in range(2)
    )
    two.state.is_compiled = False  # takes the path of accelerators
    for _ in range(3):
        first = one(scores.requires_grad_(), y, s, weight)
        torch.testing.assert_close(two(scores, y, s, weight), first)
    torch.testing.assert_close(two.multipliers, one.multipliers)
    torch.testing.assert_close(two.cell_weights, one.cell_weights)


@pytest.mark.parametrize("measure", ["parity", "selection"])
def test_other_losses_say_why_not(measure):
    y, s, _ = problem(0)
    with pytest.raises(ValueError, match="only with the log loss.*got MultiMarginLoss"):
        fairgrad.torch.MultiMarginLoss(y, s, MEASURES[measure], y_desirable=1)
    costs = [[0, 1], [2, 0]]
    with pytest.raises(ValueError, match="cost_matrix.*got BCEWithLogitsLoss"):
        fairgrad.torch.BCEWithLogitsLoss(y % 2, s, "accuracy_parity", cost_matrix=costs)


def test_training_makes_predictions_alike():
    """Three labels that two groups have at different rates: parity to within a few rows."""
    generator = torch.Generator().manual_seed(0)
    n = 3000
    s = torch.randint(0, 2, (n,), generator=generator)
    x = torch.randn(n, 4, generator=generator)
    x[:, 0] += 1.5 * s
    noise = 0.5 * torch.randn(n, 3, generator=generator)
    y = (x @ torch.tensor([[1.0, 0, -1], [0, 1, 0], [0, 0, 1], [0, 0, 0]]) + noise).argmax(1)
    found = {}
    for rate in (0.0, 0.05):
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        criterion = CrossEntropyLoss(
            y, s, "demographic_parity", fairness_rate=rate, proportional_rate=2 * (rate > 0)
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        for _ in range(300):
            optimizer.zero_grad()
            criterion(model(x), y, s).backward()
            optimizer.step()
        h = model(x).argmax(1)
        unfair = fairness_levels(y, h, s, "demographic_parity").unfairness
        found[rate] = unfair, (h == y).float().mean().item()
    assert found[0.0][0] > 0.1
    assert found[0.05][0] < 0.01
    assert found[0.05][1] > 0.55
