"""Gradient descent on a matrix of parameters, each member with its own rate, decay and clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.training.member import Member


class Optimizer(Protocol):
    """Changes parameters (M, P) in place.

    Attributes:
        state: what it remembers from step to step, each (M, ...).
    """

    state: dict[str, Tensor]

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step; `factor` multiplies every member's learning rate."""


class Settings:
    """Learning rate, weight decay and clipping of each member, as columns (M, 1)."""

    def __init__(self, members: Sequence[Member], gain: Tensor | float, dtype: torch.dtype) -> None:
        def column(name: str) -> Tensor:
            return torch.tensor([[getattr(member, name)] for member in members], dtype=dtype)

        self.gain = gain
        self.rate, self.decay, self.clip = (
            column(name) for name in ("learning_rate", "weight_decay", "clip_norm")
        )
        self.has_decay = bool((self.decay > 0).any())
        self.has_clip = bool(torch.isfinite(self.clip).any())

    def clipped(self, gradient: Tensor) -> Tensor:
        """Each member's gradient, shortened to its largest norm (as `clip_grad_norm_` does)."""
        if not self.has_clip:
            return gradient
        norm = (gradient.square() * self.gain).sum(1, keepdim=True).sqrt()
        return gradient * (self.clip / (norm + 1e-6)).clamp(max=1.0)


class Sgd:
    """``theta -= rate * (gradient + decay * theta)``."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state: dict[str, Tensor] = {}

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step; `factor` multiplies every member's learning rate."""
        own = self.settings
        update = own.clipped(gradient)
        if own.has_decay:  # divided by what the whole is multiplied by next
            update = update + own.decay * parameters / own.gain
        if isinstance(own.gain, Tensor):
            update, gain = update * own.gain, 1.0
        else:
            gain = own.gain
        parameters.addcmul_(update, own.rate, value=-factor * gain)


class Adam:
    """Adam (Kingma and Ba, 2015) with PyTorch's defaults and its weight decay."""

    BETAS = (0.9, 0.999)
    EPS = 1e-8

    def __init__(self, settings: Settings, parameters: Tensor) -> None:
        self.settings = settings
        self.state = {
            "steps": torch.zeros_like(settings.rate),
            "first_moment": torch.zeros_like(parameters),
            "second_moment": torch.zeros_like(parameters),
        }

    def step(self, parameters: Tensor, gradient: Tensor, factor: float) -> None:
        """One step; `factor` multiplies every member's learning rate."""
        own, state, (beta1, beta2) = self.settings, self.state, self.BETAS
        gradient = own.clipped(gradient)
        if own.has_decay:
            gradient = gradient + own.decay * parameters / own.gain
        state["steps"] = state["steps"] + 1
        state["first_moment"] = state["first_moment"].lerp(gradient, 1 - beta1)
        state["second_moment"] = state["second_moment"].lerp(gradient.square(), 1 - beta2)
        corrected = (state["second_moment"] / (1 - beta2 ** state["steps"])).sqrt()
        rate = own.rate * factor / (1 - beta1 ** state["steps"])
        parameters.sub_(state["first_moment"] / (corrected + self.EPS) * (rate * own.gain))


def make_optimizer(solver: str, settings: Settings, parameters: Tensor) -> Optimizer:
    """The optimiser of that name."""
    return Sgd(settings) if solver == "sgd" else Adam(settings, parameters)
