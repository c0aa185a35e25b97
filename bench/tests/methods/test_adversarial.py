"""Adversarial training: the adversary is deceived."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from fairgrad.training import Member, TrainingPlan, TrainingTable, train
from fairgrad_bench.methods.adversarial import (
    LAMBDAS,
    METHOD,
    Duel,
    TwoHeadsStack,
    parts_for,
    shape_of,
)


def test_adversarys_accuracy_falls(make_task):
    task = make_task(model="nonlinear", rows=2000)
    shape, (X, y, s) = shape_of(task), task.splits[1].train
    settings = [{"adversary_weight": weight} for weight in (0.0, 1.0)]
    training = train(
        TrainingTable.from_data(X, y, s),
        [Member(learning_rate=0.1, clip_norm=0.5)] * 2,
        TrainingPlan(epochs=15, batch_size=64, seed=1),
        parts=parts_for(shape)(settings),
    )
    state = training.kept[14]
    buffers = {name[8:]: part for name, part in state.items() if name.startswith("buffers.")}
    network = TwoHeadsStack(shape, 0, state["network.parameters"], buffers)
    test = task.splits[1].test
    rows = torch.from_numpy(test.X)
    told = (network.group_scores(rows)[:, 0] > 0).numpy() == (test.s == 1)
    seen, hidden = told.mean(axis=1)
    chance = max(np.mean(test.s), 1 - np.mean(test.s))
    assert seen > chance + 0.1
    assert hidden < seen - 0.05


def test_gradient_is_that_of_both_losses_with_the_encoders_reversed(make_task):
    task = make_task(model="nonlinear", rows=50)
    shape, (X, y, s) = shape_of(task), task.splits[1].train
    x, truths = torch.from_numpy(X), [torch.from_numpy(y).float(), torch.from_numpy(s).float()]

    def gradients(strength):
        """Of each head's loss by the parameters, and of both by `Duel`."""
        parameters, buffers = shape.initial(3)[None].clone(), shape.initial_buffers(1)
        network = TwoHeadsStack(shape, 5, parameters, buffers, torch.tensor([strength]))
        weights = parameters.clone().requires_grad_()
        outputs = network.scores_with(weights, x)
        scores, found = outputs.detach(), []
        for head, truth in enumerate(truths):
            leaf = scores.clone().requires_grad_()
            loss = functional.binary_cross_entropy_with_logits(leaf[0, head], truth)
            found.append(torch.autograd.grad(loss, leaf)[0])
        stack = SimpleNamespace(table=TrainingTable.from_data(X, y, s))
        duel = Duel(stack, 1)(scores, torch.arange(len(y)))
        assert torch.allclose(duel, found[0] + found[1], atol=1e-7)
        return torch.autograd.grad(outputs, weights, duel)[0][0]

    n_encoder = sum(shape.sizes[:8])
    none, reversed_, straight = (gradients(strength) for strength in (0.0, 0.7, -1.0))
    of_group = (straight - none)[:n_encoder]
    assert of_group.abs().max() > 1e-4
    assert torch.allclose((reversed_ - none)[:n_encoder], -0.7 * of_group, atol=1e-6)
    assert torch.allclose(reversed_[n_encoder:], straight[n_encoder:], atol=1e-6)


def test_groups_are_treated_more_alike(make_task, judge):
    measure = "demographic_parity"
    combinations = tuple({"batch_size": 64, "adversary_weight": own} for own in (0.0, 2.0))
    task = make_task(
        model="nonlinear", seeds=(1, 2), rows=2000, epochs=40, combinations=combinations
    )
    candidates = METHOD.train(task)
    plain, fair = (
        judge(task, [one for one in candidates if one.settings == own], measure)
        for own in combinations
    )
    assert fair[1] < 0.8 * plain[1]
    assert fair[0] > 0.6


def test_the_papers_grid_has_90_combinations():
    assert len(METHOD.settings("nonlinear", "paper")) == 90
    assert pytest.approx(LAMBDAS) == np.arange(0.1, 3.0, 0.2)
