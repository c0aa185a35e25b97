"""Gradient descent on a matrix of parameters, each member with its own rate, decay and clipping."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.training.networks import Network
    from fairgrad.training.table import Member


class _Descent:
    """Learning rate, weight decay and clipping of each member, as columns (M, 1).

    Attributes:
        state: what it remembers from step to step, each (M, ...).
    """

    def __init__(self, members: Sequence[Member], gain: Tensor | float, parameters: Tensor) -> None:
        def column(name: str) -> Tensor:
            values = [[getattr(member, name)] for member in members]
            return torch.tensor(values, dtype=parameters.dtype)

        self.gain = gain
        self.rate, self.decay, self.clip = (
            column(name) for name in ("learning_rate", "weight_decay", "clip_norm")
        )
        self.has_decay = bool((self.decay > 0).any())
        self.has_clip = bool(torch.isfinite(self.clip).any())
        self.state: dict[str, Tensor] = {}

    def _gradient(self, parameters: Tensor, gradient: Tensor) -> Tensor:
        """Shortened to each member's largest norm (as `clip_grad_norm_` does), decay added.

        The decay is divided by the gain, with which the whole is multiplied next.
        """
        if self.has_clip:
            norm = (gradient.square() * self.gain).sum(1, keepdim=True).sqrt()
            gradient = gradient * (self.clip / (norm + 1e-6)).clamp(max=1.0)
        if self.has_decay:
            gradient = gradient + self.decay * parameters / self.gain
        return gradient


class Sgd(_Descent):
    """``theta -= rate * (gradient + decay * theta)``."""

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step; `factor` multiplies every member's learning rate."""
        update, gain = self._gradient(parameters, gradient), self.gain
        if isinstance(gain, Tensor):
            update, gain = update * gain, 1.0
        parameters.addcmul_(update, self.rate, value=-factor * gain)


class Adam(_Descent):
    """Adam (Kingma and Ba, 2015) with PyTorch's defaults and its weight decay."""

    BETAS = (0.9, 0.999)
    EPS = 1e-8

    def __init__(self, members: Sequence[Member], gain: Tensor | float, parameters: Tensor) -> None:
        super().__init__(members, gain, parameters)
        self.state["steps"] = torch.zeros_like(self.rate)
        self.state |= {f"{n}_moment": torch.zeros_like(parameters) for n in ("first", "second")}

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step; `factor` multiplies every member's learning rate."""
        state, (beta1, beta2) = self.state, self.BETAS
        gradient = self._gradient(parameters, gradient)
        state["steps"] = state["steps"] + 1
        state["first_moment"] = state["first_moment"].lerp(gradient, 1 - beta1)
        state["second_moment"] = state["second_moment"].lerp(gradient.square(), 1 - beta2)
        corrected = (state["second_moment"] / (1 - beta2 ** state["steps"])).sqrt()
        rate = self.rate * factor / (1 - beta1 ** state["steps"])
        parameters.sub_(state["first_moment"] / (corrected + self.EPS) * (rate * self.gain))


SOLVERS: dict[str, type[Sgd | Adam]] = {"sgd": Sgd, "adam": Adam}
"""Each made of the members, the gain (see `Network`) and the parameters (M, P) it will change."""


class WeightAverage:
    """The mean of a network's weights over the steps from `first_step` on.

    The running statistics of batch normalisation are averaged in the same way.
    """

    def __init__(self, network: Network, first_step: int) -> None:
        self.network, self.first_step = network, first_step
        self.n_taken = 0
        self.mean: list[Tensor] = []

    def take(self, step: int) -> None:
        """Takes in the weights after a step."""
        if step < self.first_step:
            return
        if not self.mean:
            self.mean = [tensor.clone() for tensor in self._averaged()]
        self.n_taken += 1
        for mean, tensor in zip(self.mean, self._averaged(), strict=True):
            mean.lerp_(tensor, 1 / self.n_taken)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Inside, the network has the averaged weights, if there are any yet."""
        current = [tensor.clone() for tensor in self._averaged()] if self.mean else []
        for tensor, mean in zip(self._averaged(), self.mean, strict=False):
            tensor.copy_(mean)
        yield
        for tensor, own in zip(self._averaged(), current, strict=False):
            tensor.copy_(own)

    def restart(self, members: Tensor) -> None:
        """Forgets what was taken of these members (M,); their weights as they are stand for it."""
        for mean, tensor in zip(self.mean, self._averaged(), strict=False):
            mean[members] = tensor[members]

    def _averaged(self) -> list[Tensor]:
        floats = [t for t in self.network.buffers.values() if t.is_floating_point()]
        return [self.network.parameters, *floats]
