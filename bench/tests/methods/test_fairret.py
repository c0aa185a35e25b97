"""fairret: the penalty of its library, of all models of a stack at once."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fairgrad.training import Member, Stack, TrainingPlan, TrainingTable
from fairgrad_bench.methods import methods
from fairgrad_bench.methods.fairret import Penalised

statistic = pytest.importorskip("fairret.statistic")
NormLoss = pytest.importorskip("fairret.loss").NormLoss

STATISTICS = {
    "accuracy_parity": ("Accuracy",),
    "equalized_odds": ("TruePositiveRate", "FalsePositiveRate"),
    "equality_of_opportunity": ("TruePositiveRate",),
    "demographic_parity": ("PositiveRate",),
}
"""What the library calls the rates that our measures compare."""

SMALL_BATCHES = ({"batch_size": 128, "strength": 1.0},)


def _penalised(task, measure, strengths):
    X, y, s = task.splits[1].train
    members = [Member()] * len(strengths)
    return Penalised(
        Stack(TrainingTable.from_data(X, y, s), members, TrainingPlan()), measure, strengths
    )


def _of_library(penalised, measure, margin, rows):
    """The penalty by the library's own classes, of one model and batch."""
    total = 0.0
    for name in STATISTICS[measure]:
        loss = NormLoss(getattr(statistic, name)())
        label = [] if name == "PositiveRate" else [penalised.label[rows][:, None]]
        total = total + loss(margin[:, None], penalised.groups[rows], *label)
    return total


def test_penalty_is_the_sum_of_relative_differences(make_task):
    task = make_task("equalized_odds", rows=80)
    _, y, s = task.splits[1].train
    margin = torch.randn(80, generator=torch.Generator().manual_seed(1))
    probability = margin.sigmoid().numpy()
    expected = 0.0
    for label in (0, 1):
        overall = probability[y == label].mean()
        for group in (0, 1):
            expected += abs(probability[(y == label) & (s == group)].mean() / overall - 1)
    found = _penalised(task, "equalized_odds", [1.0]).penalties(margin[None], torch.arange(80))
    assert found.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("measure", STATISTICS)
@pytest.mark.parametrize("unknown", [False, True])
def test_gradient_is_that_of_the_library_and_the_cross_entropy(measure, unknown, make_task):
    task = make_task(measure, rows=60)
    if unknown:
        train = task.splits[1].train
        train = replace(train, s=np.where(np.arange(60) % 7 == 0, np.nan, train.s))
        task = replace(task, splits={1: task.splits[1]._replace(train=train)})
    penalised = _penalised(task, measure, [0.5, 2.0])
    source = torch.Generator().manual_seed(2)
    rows = torch.randperm(60, generator=source)[:40]
    scores = torch.randn(2, 1, 40, generator=source)
    leaf = scores.clone().requires_grad_()
    total = 0.0
    for model, strength in enumerate((0.5, 2.0)):
        label = penalised.label[rows].float()
        margin = leaf[model, 0]
        total += torch.nn.functional.binary_cross_entropy_with_logits(margin, label)
        total += strength * _of_library(penalised, measure, margin, rows)
    (expected,) = torch.autograd.grad(total, leaf)
    assert torch.allclose(penalised(scores, rows), expected, atol=1e-6)


def test_models_have_penalties_of_their_own(make_task):
    penalised = _penalised(make_task(rows=60), "equalized_odds", [1.0, 3.0])
    batch = torch.arange(30)
    scores = torch.randn(2, 1, 30, generator=torch.Generator().manual_seed(4))
    together = penalised.of_penalty(scores, batch)
    for model, strength in enumerate((1.0, 3.0)):
        penalised.strengths = torch.tensor([strength])
        assert torch.allclose(
            penalised.of_penalty(scores[model : model + 1], batch)[0], together[model]
        )


@pytest.mark.parametrize("missing", ["positives", "probability", "a group"])
def test_batches_without_a_rate_are_not_penalised(missing, make_task):
    task = make_task("equality_of_opportunity", rows=60)
    penalised = _penalised(task, "equality_of_opportunity", [1.0])
    _, y, s = task.splits[1].train
    chosen = {"positives": y == 0, "probability": y >= 0, "a group": (s == 0) & (y == 1)}[missing]
    rows = torch.from_numpy(np.flatnonzero(chosen))
    scores = torch.full((1, 1, len(rows)), -200.0 if missing == "probability" else 0.5)
    gradient = penalised.of_penalty(scores, rows)
    assert torch.allclose(gradient, torch.tensor(0.0), atol=1e-7)


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_fairret_is_fairer_than_the_plain_model(measure, make_task, judge, plain):
    task = make_task(measure, rows=2000, epochs=30)
    task = replace(task, combinations=SMALL_BATCHES)
    accuracy, unfairness = judge(task, methods()["fairret"].train(task), measure)
    assert unfairness < 0.6 * plain[measure][1]
    assert accuracy > 0.6
