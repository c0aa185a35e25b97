"""BiFair (Ozdayi et al., 2021): weights of rows learnt so that the trained model is fair.

Two problems, one in the other. Inner: T steps of Adam on the weighted cross-entropy. Outer: the
fairness loss of where these steps lead,

    mean loss + fairness weight * mean over labels l of |loss(l, s=1) - loss(l, s=0)|,

over the labels that the measure constrains, differentiated through all T steps to the weights,
which take a step of Adam. Rows of one (label, group) cell share a weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from fairgrad.training import Batches, Perceptrons
from fairgrad.training import losses as cross_entropies
from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import Candidate, Combination, Method, MethodTask, crossed
from fairgrad_bench.methods.models import (
    HIDDEN,
    LAYERS,
    NormalisedPerceptrons,
    predicted_labels,
    stacks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from fairgrad.datasets import Encoded, Split

MEASURES = ("equalized_odds", "equality_of_opportunity")
KEPT = 5
MOST_ROW_STEPS = 200_000
"""Nonlinear models trained at once: their rows times inner steps, so that the steps fit memory."""

LEARNING_RATE = 0.001
WEIGHT_RATE = 0.01
"""Weights take one step where the model takes T, so theirs are longer."""

BETAS, EPS = (0.9, 0.999), 1e-8


class Moments(NamedTuple):
    """What Adam remembers."""

    steps: int
    first: Tensor
    second: Tensor

    @classmethod
    def nothing(cls, like: Tensor) -> Moments:
        """Before the first step."""
        return cls(0, torch.zeros_like(like), torch.zeros_like(like))

    def detach(self) -> Moments:
        """The same, through which nothing is differentiated."""
        return Moments(self.steps, self.first.detach(), self.second.detach())


def adam(gradient: Tensor, moments: Moments, rate: float) -> tuple[Tensor, Moments]:
    """A step of Adam that can be differentiated, and what it then remembers.

    The small number stands under the root, where the root of 0 would have no derivative.
    """
    steps = moments.steps + 1
    first = moments.first * BETAS[0] + gradient * (1 - BETAS[0])
    second = moments.second * BETAS[1] + gradient.square() * (1 - BETAS[1])
    root = (second / (1 - BETAS[1] ** steps) + EPS**2).sqrt()
    step = -rate * first / (1 - BETAS[0] ** steps) / root
    return step, Moments(steps, first, second)


class Bilevel:
    """M models of one seed, which share batches and differ in their settings.

    Args:
        network: of the models, whose parameters are replaced in every outer step.
        train: the training rows; two labels, two groups.
        seed: of the shuffling.
        settings: of each model; all of one batch size and number of inner steps.
        labels: those whose groups' losses are to be equal.

    Attributes:
        weights: (M, 4) of the cells, numbered ``2 * label + group``.
    """

    def __init__(
        self,
        network: Perceptrons,
        train: Encoded,
        seed: int,
        settings: Sequence[Combination],
        labels: Sequence[int],
    ) -> None:
        self.network, self.labels = network, labels
        self.X, self.y = torch.from_numpy(train.X), torch.from_numpy(train.y)
        self.cell = 2 * self.y + torch.from_numpy(train.s)
        self.decay = torch.tensor([[one["weight_decay"]] for one in settings])
        self.fairness_weight = torch.tensor([one["fairness_weight"] for one in settings])
        self.inner_steps = settings[0]["inner_steps"]
        rows, sources = torch.arange(len(self.y)), (seed, seed + 1)  # outer batches are others
        self.inner, self.outer = (
            Batches(rows, source, settings[0]["batch_size"]) for source in sources
        )
        self.weights = torch.ones(len(settings), 4)
        self.moments = Moments.nothing(network.parameters)
        self.weight_moments = Moments.nothing(self.weights)

    def epoch(self) -> None:
        """One pass over the rows; an outer step after every so many inner steps and at its end."""
        batches, judged = list(self.inner.epoch()), list(self.outer.epoch())
        for start in range(0, len(batches), self.inner_steps):
            own = batches[start : start + self.inner_steps]
            self._step(own, judged[start])

    def _step(self, batches: Sequence[Tensor], judged: Tensor) -> None:
        with torch.enable_grad():
            weights = self.weights.detach().requires_grad_()
            parameters, moments = self.descend(weights, batches)
            (gradient,) = torch.autograd.grad(self.outer_loss(parameters, judged).sum(), weights)
        self.network.parameters.copy_(parameters.detach())
        self.moments = moments.detach()
        step, self.weight_moments = adam(gradient, self.weight_moments, WEIGHT_RATE)
        self.weights = (self.weights + step).clamp(min=0)

    def descend(self, weights: Tensor, batches: Sequence[Tensor]) -> tuple[Tensor, Moments]:
        """Where inner steps with these weights lead, as a function of the weights."""
        parameters, moments = self.network.parameters.detach().clone(), self.moments
        parameters.requires_grad_()
        for rows in batches:
            loss = self.weighted_loss(parameters, weights, rows).sum()
            (gradient,) = torch.autograd.grad(loss, parameters, create_graph=True)
            gradient = gradient + self.decay * parameters / self.network.gain
            step, moments = adam(gradient, moments, LEARNING_RATE)
            parameters = parameters + step * self.network.gain
        return parameters, moments

    def weighted_loss(self, parameters: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
        """(M,) the weighted mean of the cross-entropies of a batch."""
        of_row = weights[:, self.cell[rows]]
        total = (of_row * self._losses(parameters, rows)).sum(1)
        return total / of_row.sum(1).clamp(min=1e-6)

    def outer_loss(self, parameters: Tensor, rows: Tensor) -> Tensor:
        """(M,) mean loss and unfairness; labels of which a group is absent are fair."""
        losses, cell = self._losses(parameters, rows), self.cell[rows]
        unfairness = torch.zeros(len(losses))
        for label in self.labels:
            one, other = cell == 2 * label, cell == 2 * label + 1
            if one.any() and other.any():
                unfairness = unfairness + (losses[:, one].mean(1) - losses[:, other].mean(1)).abs()
        return losses.mean(1) + self.fairness_weight * unfairness / len(self.labels)

    def _losses(self, parameters: Tensor, rows: Tensor) -> Tensor:
        return cross_entropies(self.network.scores_with(parameters, self.X[rows]), self.y[rows])


def _unsupported(task: MethodTask) -> str | None:
    return (
        support.no_network(task)
        or support.other_measure(task, MEASURES)
        or support.more_labels(task)
        or support.more_groups(task)
        or support.unknown_groups(task)
        or support.one_label_in_a_group(task)
    )


def _settings(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - one for all models
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


def _train(task: MethodTask) -> list[Candidate]:
    own = METHOD.combinations(task)

    def most(batch_size: int, inner_steps: int) -> int:
        """As many as fit memory."""
        fitting = MOST_ROW_STEPS // (batch_size * inner_steps)
        return len(own) if task.model == "linear" else fitting

    return [
        candidate
        for seed, split in task.splits.items()
        for settings in stacks(own, ["batch_size", "inner_steps"], most)
        for candidate in _train_stack(task, seed, split, settings)
    ]


def _train_stack(
    task: MethodTask, seed: int, split: Split, settings: Sequence[Combination]
) -> Iterator[Candidate]:
    sizes: tuple[int, ...] = (split.train.X.shape[1], 1)
    kind, dropout = Perceptrons, 0.0
    if task.model == "nonlinear":
        sizes, kind = (sizes[0], *HIDDEN, 1), NormalisedPerceptrons
        dropout = LAYERS["dropout"]
    network = kind(sizes, len(settings), seed, dropout)
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
    version=1,
    description="Learns weights of cells through the training steps that they lead to.",
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
