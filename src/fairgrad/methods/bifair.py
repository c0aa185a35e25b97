"""BiFair (Ozdayi et al., 2021): weights of rows learnt so that the trained model is fair.

Two problems, one in the other. Inner: T steps of Adam on the weighted cross-entropy. Outer: the
fairness loss of where these steps lead,

    mean loss + fairness weight * mean over labels l of |loss(l, s=1) - loss(l, s=0)|,

over the labels that the measure constrains, differentiated through all T steps to the weights,
which take a step of Adam. Rows of one (label, group) cell share a weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared import support
from fairgrad.methods.shared.bilevel import Bilevel
from fairgrad.methods.shared.grids import combinations, crossed
from fairgrad.methods.shared.predictions import predicted_labels
from fairgrad.methods.shared.stacked import LAYERS
from fairgrad.training import Shape, build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.datasets import Split

MEASURES = ("equalized_odds", "equality_of_opportunity")
KEPT = 5
MOST_ROW_STEPS = 200_000
"""Nonlinear models trained at once: their rows times inner steps, so that the steps fit memory."""


def _unsupported(task: Task) -> str | None:
    return (
        support.no_network(task)
        or support.other_measure(task, MEASURES)
        or support.more_labels(task)
        or support.more_groups(task)
        or support.unknown_groups(task)
        or support.one_label_in_a_group(task)
    )


def _settings(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - one for all models
    if grid == "quick":
        return crossed(
            batch_size=(256,), inner_steps=(5,), weight_decay=(0.0,), fairness_weight=(1.0, 4.0)
        )
    return crossed(
        batch_size=(128, 256, 512),
        inner_steps=(5, 25, 50),
        weight_decay=(0.0, 0.001),
        fairness_weight=(0.5, 1.0, 2.0, 4.0),
    )


def _train(task: Task) -> list[Candidate]:
    return [
        candidate
        for seed, split in task.splits.items()
        for settings in _stacks(task.model, combinations(METHOD, task))
        for candidate in _train_stack(task, seed, split, settings)
    ]


def _stacks(model: str, settings: Sequence[Settings]) -> Iterator[list[Settings]]:
    """Combinations of one batch size and number of inner steps, as many as fit memory."""
    by_steps: dict[tuple[int, int], list[Settings]] = {}
    for one in settings:
        by_steps.setdefault((one["batch_size"], one["inner_steps"]), []).append(one)
    for (batch_size, inner_steps), own in by_steps.items():
        fitting = max(1, MOST_ROW_STEPS // (batch_size * inner_steps))
        most = len(own) if model == "linear" else fitting
        yield from (own[start : start + most] for start in range(0, len(own), most))


def _train_stack(
    task: Task, seed: int, split: Split, settings: Sequence[Settings]
) -> Iterator[Candidate]:
    layers = LAYERS if task.model == "nonlinear" else {"hidden": ()}
    shape = Shape(n_features=split.train.X.shape[1], n_outputs=1, **layers)
    network = build(shape, 1, [seed] * len(settings), torch.float32)
    is_odds = task.measure == "equalized_odds"
    problem = Bilevel(network, split.train, seed, settings, (0, 1) if is_odds else task.y_desirable)
    labels = torch.arange(2).numpy()
    for epoch in range(task.epochs):
        problem.epoch()
        if epoch < task.epochs - KEPT:
            continue
        validation, test = (
            predicted_labels(network, part.X, labels) for part in (split.validation, split.test)
        )
        for i, own in enumerate(settings):
            yield Candidate(seed, dict(own), epoch, validation[i], test[i])


METHOD = Method(
    name="bifair",
    description="Learns weights of cells through the training steps that they lead to.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
