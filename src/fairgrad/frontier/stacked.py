"""All models of a frontier in one pass: a stack with one member per epsilon and seed."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from fairgrad.frontier.template import Fitted
from fairgrad.sklearn.defaults import LARGE_TABLE_RATES
from fairgrad.sklearn.fitting import (
    constraints_for,
    keep,
    members_of,
    new_task,
    plan_of,
    read,
    table_of,
)
from fairgrad.training import train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.frontier.parts import Part
    from fairgrad.frontier.template import Template
    from fairgrad.groups import Floats
    from fairgrad.sklearn import FairGradClassifier
    from fairgrad.sklearn.fitting import Task
    from fairgrad.training import Training


def fit_stacked(
    template: Template, part: Part, measure: Any, epsilons: Floats, seeds: Sequence[int]
) -> Fitted:
    """Fits the preprocessing once, and all models as one stack.

    Each model is the one that its own parameters give when it is fitted by itself to these rows.
    A fairness rate of "auto" is the one that reaches exact fairness, however few the rows: how far
    to go is what epsilon says.
    """
    steps, name, X = [], "", part.X
    if isinstance(template.estimator, Pipeline):
        name = template.estimator.steps[-1][0]
        before = clone(template.estimator[:-1])
        if before.steps:
            X = before.fit_transform(part.X, part.y)
            steps = list(before.steps)
    first = _unfitted(template.last).set_params(fairness_measure=measure, epsilon=0.0)
    if isinstance(first.fairness_rate, str):
        candidates = {"auto": LARGE_TABLE_RATES[0]}
        first.set_params(fairness_rate=candidates.get(first.fairness_rate, first.fairness_rate))
    return Fitted(_fit(first, X, part, epsilons, seeds), steps, name)


def _unfitted(model: FairGradClassifier) -> FairGradClassifier:
    """The same parameters; unlike `clone` it keeps the fit of a model to start from."""
    fresh = type(model)(**model.get_params(deep=False))
    if hasattr(model, "_metadata_request"):
        fresh._metadata_request = copy.deepcopy(model._metadata_request)  # noqa: SLF001 - as clone does
    return fresh


def _fit(
    first: FairGradClassifier, X: Any, part: Part, epsilons: Floats, seeds: Sequence[int]
) -> list[FairGradClassifier]:
    s = None if first.sensitive_columns is not None else part.s
    rows = read(first, X, part.y, s, part.weight, fitted=False)
    models, members = [], []
    for seed in seeds:
        base = copy.copy(first).set_params(random_state=int(seed))
        task = new_task(base, rows)
        for epsilon in epsilons:
            model = copy.copy(base).set_params(epsilon=float(epsilon))
            models.append(model)
            members += members_of(model, rows, task)
    start = task.start
    if start is not None:
        start = {name: np.repeat(v, len(members), axis=0) for name, v in start.items()}
    judged = first.validation_fraction > 0
    training = train(
        table_of(base, rows, task),
        members,
        plan_of(base, len(rows)) if judged else plan_of(base, len(rows), keep=1),
        module=first.module,
        start=start,
        progress=None if first.verbose == "auto" else bool(first.verbose),
    )
    if training.interrupted:
        warnings.warn(
            f"Training was interrupted after {len(training.history)} epochs.", stacklevel=4
        )
    for i, model in enumerate(models):
        _finish(model, i, training, task, judged=judged)
    return models


def _finish(
    model: FairGradClassifier, member: int, training: Training, task: Task, *, judged: bool
) -> None:
    """Sets the fitted attributes of one model."""
    epochs = None if judged else [training.last_epoch]
    choice = training.select(model.selection, [member], epochs)
    model.groups_ = task.groups
    model.fairness_rate_ = float(model.fairness_rate)
    model.plain_accuracy_ = None
    keep(model, training, choice, constraints_for(model, task.groups))
