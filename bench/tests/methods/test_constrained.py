"""Constraints as a game: proxies bound the truth, multipliers follow it."""

import numpy as np
import pytest
import torch

from fairgrad.evaluate import fairness_levels
from fairgrad.training import Member, Stack, TrainingPlan, TrainingTable
from fairgrad_bench.methods import methods
from fairgrad_bench.methods.constrained import Game, margins

pytest.importorskip("cooper")

MEASURES = ("accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity")


def _game(task, measure, slacks=(0.0,), rates=(0.1,)):
    X, y, s = task.splits[1].train
    stack = Stack(TrainingTable.from_data(X, y, s), [Member()] * len(slacks), TrainingPlan())
    return Game(stack, measure, (1,), slacks, rates)


@pytest.mark.parametrize("measure", MEASURES)
def test_true_violations_are_the_levels_beyond_the_slack(measure, make_task):
    task = make_task(measure, rows=200)
    game = _game(task, measure, slacks=(0.0, 0.02), rates=(0.1, 0.1))
    scores = torch.randn(2, 1, 200, generator=torch.Generator().manual_seed(3))
    found = game.violations(scores, torch.arange(200))
    _, y, s = task.splits[1].train
    for member, slack in enumerate((0.0, 0.02)):
        predicted = (scores[member, 0] > 0).long().numpy()
        levels = fairness_levels(y, predicted, s, measure).values
        expected = np.concatenate([levels - slack, -levels - slack])
        assert found.true[member].numpy() == pytest.approx(expected, abs=1e-5)
    assert (found.proxy >= found.true - 1e-5).all()


def test_constraints_on_cells_without_rows_do_not_push(make_task):
    task = make_task(rows=200)
    game = _game(task, "equalized_odds")
    _, y, s = task.splits[1].train
    rows = torch.from_numpy(np.flatnonzero((y == 0) | (s == 0)))
    found = game.violations(torch.randn(1, 1, len(rows)), rows)
    assert (found.true.view(2, 2, 2)[:, 1] == 0).all()
    assert (found.true.view(2, 2, 2)[:, 0] != 0).all()


def test_multipliers_ascend_by_the_true_violations_and_stay_positive(make_task):
    task = make_task(rows=100)
    game = _game(task, "demographic_parity", slacks=(0.0, 0.0), rates=(0.1, 0.5))
    rows = torch.arange(100)
    scores = torch.randn(1, 1, 100).expand(2, -1, -1)
    true = game.violations(scores, rows).true
    game(scores, rows)
    expected = torch.tensor([[0.1], [0.5]]) * true
    assert torch.allclose(game.multipliers, expected.relu(), atol=1e-6)
    assert (game.multipliers > 0).any()


def test_gradient_is_that_of_loss_and_proxies(make_task):
    game = _game(make_task(rows=60), "equalized_odds", rates=(0.5,))
    rows, source = torch.arange(60), torch.Generator().manual_seed(1)
    game(torch.randn(1, 1, 60, generator=source), rows)
    multipliers = game.multipliers.clone()
    leaf = torch.randn(1, 1, 60, generator=source).requires_grad_()
    label = game.label.float()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(leaf[0, 0], label)
    total = loss + (multipliers * game.violations(leaf, rows).proxy).sum()
    (expected,) = torch.autograd.grad(total, leaf)
    assert torch.allclose(game(leaf.detach(), rows), expected, atol=1e-6)


def test_margins_are_positive_where_the_prediction_is_right():
    scores = torch.randn(3, 4, 50, generator=torch.Generator().manual_seed(1))
    label = torch.randint(0, 4, (50,), generator=torch.Generator().manual_seed(2))
    right = scores.argmax(1) == label
    assert torch.equal(margins(scores, label) > 0, right)


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_constrained_is_fairer_than_the_plain_model(measure, make_task, judge, plain):
    own = ({"batch_size": 128, "dual_rate": 0.003, "slack": 0.0},)
    task = make_task(measure, seeds=(1, 2), rows=2000, epochs=40, combinations=own)
    accuracy, unfairness = judge(task, methods()["constrained"].train(task), measure)
    assert unfairness < plain[measure][1] / 2
    assert accuracy > 0.6
