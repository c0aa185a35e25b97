"""BiFair: weights that lead to a fairer model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fairgrad.training import Perceptrons
from fairgrad_bench.methods.bifair import METHOD, Bilevel, Moments, adam


def _settings(fairness_weight=4.0, inner_steps=5, batch_size=128):
    return {
        "batch_size": batch_size,
        "inner_steps": inner_steps,
        "weight_decay": 0.0,
        "fairness_weight": fairness_weight,
    }


def _problem(task, settings, dtype=torch.float32):
    train = task.splits[1].train
    network = Perceptrons((4, 1), len(settings), 1, dtype=dtype)
    return Bilevel(network, train, 1, settings, (0, 1))


def test_adam_takes_the_steps_of_pytorchs():
    source = torch.Generator().manual_seed(0)
    own = torch.randn(3, 5, generator=source)
    other = own.clone().requires_grad_()
    optimizer, moments = torch.optim.Adam([other], lr=0.01), Moments.nothing(own)
    for _ in range(6):
        other.grad = torch.randn(3, 5, generator=source)
        step, moments = adam(other.grad, moments, 0.01)
        own = own + step
        optimizer.step()
    assert torch.allclose(own, other, atol=1e-6)


def test_gradient_by_the_weights_is_that_of_finite_differences(make_task):
    task = make_task("equalized_odds", rows=200)
    problem = _problem(task, [_settings()], torch.float64)
    problem.X, problem.moments = problem.X.double(), Moments.nothing(problem.network.parameters)
    batches = [torch.arange(start, start + 50) for start in (0, 50, 100)]
    judged = torch.arange(100, 200)

    def loss(weights):
        parameters, _ = problem.descend(weights, batches)
        return problem.outer_loss(parameters, judged).sum()

    start = torch.tensor([[1.0, 0.7, 1.2, 0.9]], dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(loss(start), start)
    for cell in range(4):
        shift = torch.zeros(1, 4, dtype=torch.float64)
        shift[0, cell] = 1e-5
        ends = [loss((start + sign * shift).detach().requires_grad_()).item() for sign in (1, -1)]
        assert found[0, cell].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3)
    assert found.abs().max() > 1e-6


def test_outer_loss_is_the_mean_and_the_gaps_of_groups(make_task):
    task = make_task("equalized_odds", rows=300)
    problem = _problem(task, [_settings(fairness_weight=2.0)])
    X, y, s = task.splits[1].train
    weights = problem.network.parameters[0].double().numpy()
    margin = X @ weights[:-1] + weights[-1]
    losses = np.logaddexp(0, np.where(y == 1, -margin, margin))
    gaps = [
        abs(losses[(y == label) & (s == 0)].mean() - losses[(y == label) & (s == 1)].mean())
        for label in (0, 1)
    ]
    found = problem.outer_loss(problem.network.parameters, torch.arange(300))
    assert found.item() == pytest.approx(losses.mean() + 2 * np.mean(gaps), rel=1e-4)


def test_weights_move_towards_the_cells_that_are_worse_off(make_task):
    problem = _problem(make_task("equalized_odds", rows=2000), [_settings(), _settings(0.0)])
    for _ in range(30):
        problem.epoch()
    fair, _ = problem.weights
    # Positives of group 0 and negatives of group 1 are overlooked, by how the data were made.
    assert fair[2] > fair[3] + 0.1
    assert fair[1] > fair[0] + 0.1


@pytest.mark.parametrize("model", ["linear", "nonlinear"])
def test_a_larger_fairness_weight_is_fairer(model, make_task, judge):
    measure = "equalized_odds"
    own = tuple(_settings(weight, batch_size=64) for weight in (0.0, 4.0))
    task = make_task(measure, rows=2000, model=model, epochs=60 if model == "linear" else 12)
    candidates = METHOD.train(replace(task, combinations=own))
    plain, fair = (
        judge(task, [one for one in candidates if one.settings == settings], measure)
        for settings in own
    )
    assert fair[1] < 0.8 * plain[1]
    assert fair[0] > 0.6


def test_the_papers_grid_has_72_combinations():
    assert len(METHOD.settings("linear", "paper")) == 72
