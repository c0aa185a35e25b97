"""Gradient descent on a matrix of parameters, each member with its own rate, decay and clipping."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.training.networks import Network
    from fairgrad.training.plan import Member


class _Descent:
    """Learning rate, weight decay and clipping of each member, as columns (M, 1).

    Everything is done in place, in as few passes over the parameters as it takes: on small networks
    a step costs as much as the products of a batch.

    Attributes:
        state: what it remembers from step to step, each (M, ...).
    """

    def __init__(self, members: Sequence[Member], gain: Tensor | float, parameters: Tensor) -> None:
        def column(name: str) -> Tensor:
            values = [[getattr(member, name)] for member in members]
            return torch.tensor(values, dtype=parameters.dtype)

        self.rate, self.decay, self.clip = (
            column(name) for name in ("learning_rate", "weight_decay", "clip_norm")
        )
        self.has_decay = bool((self.decay > 0).any())
        self.has_clip = bool(torch.isfinite(self.clip).any())
        self.state: dict[str, Tensor] = {}
        # Only the parameters from the first on that has a gain: mostly the few of the last layer.
        every = torch.as_tensor(gain, dtype=parameters.dtype).expand(parameters.shape[1])
        first = int((every == 1).cumprod(0).sum())
        self.gained, self.gain = slice(first, None), every[first:].clone()

    def _clip(self, gradient: Tensor) -> Tensor | None:
        """What shortens each member's gradient to its largest norm, as `clip_grad_norm_` does."""
        if not self.has_clip:
            return None
        squares = torch.linalg.vector_norm(gradient, dim=1, keepdim=True).square_()
        more = gradient[:, self.gained].square().mul_(self.gain - 1).sum(1, keepdim=True)
        norm = squares.add_(more).sqrt_().add_(1e-6)
        return torch.div(self.clip, norm, out=norm).clamp_(max=1.0)


class Sgd(_Descent):
    """``theta -= rate * (gradient + decay * theta)``."""

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step, which uses the gradient up; `factor` multiplies the learning rates."""
        rate, clip = self.rate * factor, self._clip(gradient)
        if self.has_decay:
            parameters.mul_(1 - rate * self.decay)
        gradient.mul_(rate if clip is None else clip.mul_(rate))
        gradient[:, self.gained].mul_(self.gain)
        parameters.sub_(gradient)


class Adam(_Descent):
    """Adam (Kingma and Ba, 2015) with PyTorch's defaults and its weight decay."""

    BETAS = (0.9, 0.999)
    EPS = 1e-8

    def __init__(self, members: Sequence[Member], gain: Tensor | float, parameters: Tensor) -> None:
        super().__init__(members, gain, parameters)
        self.state["steps"] = torch.zeros_like(self.rate)
        self.state |= {f"{n}_moment": torch.zeros_like(parameters) for n in ("first", "second")}

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step, which uses the gradient up; `factor` multiplies the learning rates."""
        steps, first, second = self.state.values()
        beta1, beta2 = self.BETAS
        clip = self._clip(gradient)
        if clip is not None:
            gradient.mul_(clip)
        if self.has_decay:
            gradient[:, self.gained].mul_(self.gain)  # the decay has no gain
            gradient.add_(parameters * self.decay)
            gradient[:, self.gained].div_(self.gain)
        steps.add_(1)
        first.lerp_(gradient, 1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = torch.sqrt(second, out=gradient).mul_((1 - beta2**steps).rsqrt_()).add_(self.EPS)
        change = torch.div(first, root, out=root).mul_(self.rate * factor / (1 - beta1**steps))
        change[:, self.gained].mul_(self.gain)
        parameters.sub_(change)


OPTIMIZERS: dict[str, type[Sgd | Adam]] = {"sgd": Sgd, "adam": Adam}
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
