"""Averages the weights over the last part of training."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from fairgrad.training.stack import Stack


class Average:
    """The mean of the weights of a stack over the steps from `first_step` on.

    The running statistics of batch normalisation are averaged in the same way.
    """

    def __init__(self, stack: Stack, first_step: int) -> None:
        self.stack, self.first_step = stack, first_step
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
        """Inside, the stack has the averaged weights, if there are any yet."""
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
        network = self.stack.network
        floats = [t for t in network.buffers.values() if t.is_floating_point()]
        return [network.parameters, *floats]
