"""The paper's way to a model: six combinations, their last epochs, one rule to select among all."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.sklearn.fitting import (
    constraints_for,
    keep,
    members_of,
    new_task,
    plan_of,
    read,
    table_of,
)
from fairgrad.training import Choice, fairest_of_accurate
from fairgrad.training import train as train_stack

if TYPE_CHECKING:
    from fairgrad.cli.training import PreparedTable
    from fairgrad.sklearn import FairGradClassifier
    from fairgrad.sklearn.fitting import Task
    from fairgrad.training import Training

BATCH_SIZES = (64, 512)
WEIGHT_DECAYS = (0.0, 0.001, 0.01)
PAPER: dict[str, Any] = {
    "fairness_rate": 0.01,
    "proportional_rate": 0.0,
    "error_memory": 0.0,
    "learning_rate": "constant",
    "learning_rate_init": 0.1,
    "clip_norm": 0.05,
    "average_last": 0.0,
}
PAPER_EPOCHS = 50


def fit_paper_grid(base: FairGradClassifier, prepared: PreparedTable) -> FairGradClassifier:
    """The fairest, on validation rows, of all models within 3 points of the best accuracy.

    Candidates are the models of the last 5 epochs of every combination of batch size and weight
    decay; those that share a batch size are trained as one stack.

    Args:
        base: the unfitted estimator, with the parameters `PAPER`.
        prepared: the rows.
    """
    runs = [_run(base, prepared, batch_size) for batch_size in BATCH_SIZES]
    candidates = [
        (run, Choice(member, epoch, *_figures(run[1], member, epoch)))
        for run in runs
        for member in range(len(WEIGHT_DECAYS))
        for epoch in run[1].kept
    ]
    accuracy = np.array([choice.accuracy for _, choice in candidates])
    unfairness = np.array([choice.unfairness for _, choice in candidates])
    (models, training, task), choice = candidates[fairest_of_accurate(accuracy, unfairness)]
    model = models[choice.member]
    model.groups_ = task.groups
    model.fairness_rate_, model.plain_accuracy_ = float(model.fairness_rate), None
    keep(model, training, choice, constraints_for(model, task.groups))
    return model


def _run(
    base: FairGradClassifier, prepared: PreparedTable, batch_size: int
) -> tuple[list[FairGradClassifier], Training, Task]:
    base = copy.copy(base).set_params(batch_size=batch_size)
    rest, n = prepared.rest, prepared.n_training
    rows = read(base, rest.X, rest.y, rest.s, None, fitted=False)
    task = new_task(base, rows)
    models = [copy.copy(base).set_params(weight_decay=decay) for decay in WEIGHT_DECAYS]
    members = [
        replace(member, rows=np.arange(n), validation=np.arange(n, len(rest)))
        for model in models
        for member in members_of(model, rows, task)
    ]
    plan = plan_of(base, len(rows))
    training = train_stack(table_of(base, rows, task), members, plan, progress=None)
    return models, training, task


def _figures(training: Training, member: int, epoch: int) -> tuple[float, float]:
    history = training.history
    return float(history.accuracy[epoch, member]), float(history.unfairness[epoch, member])
