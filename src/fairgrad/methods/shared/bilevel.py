"""Weights of cells learnt through the training steps that they lead to, for a stack of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from fairgrad.training import Streams, heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from fairgrad.datasets import Encoded
    from fairgrad.methods.interface import Settings
    from fairgrad.training import LinearStack, PerceptronStack

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
        network: LinearStack | PerceptronStack,
        train: Encoded,
        seed: int,
        settings: Sequence[Settings],
        labels: Sequence[int],
    ) -> None:
        self.network, self.labels = network, labels
        self.X, self.y = torch.from_numpy(train.X), torch.from_numpy(train.y)
        self.cell = 2 * self.y + torch.from_numpy(train.s)
        self.decay = torch.tensor([[one["weight_decay"]] for one in settings])
        self.fairness_weight = torch.tensor([one["fairness_weight"] for one in settings])
        self.inner_steps = settings[0]["inner_steps"]
        rows = torch.arange(len(self.y)).numpy()
        sources = ([seed], [seed + 1])  # the outer batches are other ones than the inner
        self.inner, self.outer = (
            Streams([rows], source, settings[0]["batch_size"]) for source in sources
        )
        self.weights = torch.ones(len(settings), 4)
        self.moments = Moments.nothing(network.parameters)
        self.weight_moments = Moments.nothing(self.weights)

    def epoch(self) -> None:
        """One pass over the rows; an outer step after every so many inner steps and at its end."""
        batches = [batch.row[0] for batch in self.inner.epoch()]
        judged = [batch.row[0] for batch in self.outer.epoch()]
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
        scores = self.network.scores_of(parameters, self.X[rows][None])
        return heads.losses(scores[None], self.y[rows][None])[0]
