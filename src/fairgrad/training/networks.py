"""Stacks of networks: linear models and multilayer perceptrons.

All parameters of a member are one row of a matrix (M, P), so that an optimiser is a few operations
on it. Activations are (M, units, B).

With two labels there is one output, the margin ``z = z_1 - z_0``. Its parameters are differences
of those of a softmax with two outputs, and gradient descent on the two moves the difference twice
as fast: `gain` holds this 2, so that learning rates, weight decay and gradient norms mean what
they mean for PyTorch's cross-entropy.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from fairgrad.torch.compiled import on_cpu
from fairgrad.training.plan import DROPOUT, INITIAL_WEIGHTS, generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairgrad.groups import Floats
    from fairgrad.training.plan import Member


class Network(Protocol):
    """A stack of models as the trainer sees it.

    Attributes:
        parameters: (M, P), changed in place by the optimiser.
        buffers: what else changes in training, each (M, ...).
        gain: (P,) by which the gradient is to be multiplied.
    """

    parameters: Tensor
    buffers: dict[str, Tensor]
    gain: Tensor

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (B, ...) in training, to be differentiated."""

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (B, ...), for evaluation."""


class Perceptrons:
    """M multilayer perceptrons: linear, ReLU, dropout, ..., linear; or linear models.

    Args:
        sizes: number of features, units of the hidden layers, outputs: 1 (the margin of two
            labels), or the number of labels.
        n_members: M.
        seed: of the initial weights and the dropout.
        dropout: share of hidden units dropped.
        dtype: of the parameters.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        n_members: int,
        seed: int = 0,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.sizes, self.dropout, self.n_hidden = tuple(sizes), dropout, len(sizes) - 2
        self.pieces = self.shapes()
        self.parameters = self.initial(seed).to(dtype).repeat(n_members, 1)
        self.buffers: dict[str, Tensor] = {}
        self.source = generator(seed, DROPOUT)
        self.gain = torch.ones(self.parameters.shape[1], dtype=dtype)
        if sizes[-1] == 1:
            self.gain[-sizes[-2] - 1 :] = 2.0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters of a member, in the order in which they lie."""
        pieces: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, units) in enumerate(pairwise(self.sizes)):
            pieces |= {f"weight{layer}": (units, inputs), f"bias{layer}": (units,)}
        return pieces

    def initial(self, seed: int) -> Tensor:
        """(P,) initial parameters as PyTorch's layers have them.

        Uniform in ``+-1/sqrt(inputs)``; a margin is the difference of two such outputs.
        """
        source = generator(seed, INITIAL_WEIGHTS)
        initial = {
            name: torch.full(shape, float(name.startswith("scale")))
            for name, shape in self.pieces.items()
        }
        for layer, inputs in enumerate(self.sizes[:-1]):
            draws = 2 if layer == self.n_hidden and self.sizes[-1] == 1 else 1
            for name in (f"weight{layer}", f"bias{layer}"):
                drawn = torch.rand(draws, *self.pieces[name], generator=source) * 2 - 1
                one_output = drawn[1] - drawn[0] if draws == 2 else drawn[0]
                initial[name] = one_output * max(inputs, 1) ** -0.5
        return torch.cat([tensor.reshape(-1) for tensor in initial.values()])

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters (M, P) by name, each (M, ...)."""
        tensors = torch.split(flat, [prod(shape) for shape in self.pieces.values()], dim=1)
        named = zip(self.pieces.items(), tensors, strict=True)
        return {name: tensor.view(len(flat), *shape) for (name, shape), tensor in named}

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (B, features), as in evaluation."""
        pieces = self.views(self.parameters)
        return self._layer(pieces, self.n_hidden, self.activations(pieces, x, training=False))

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores in training with other parameters, to be differentiated by them."""
        pieces = self.views(parameters)
        return self._layer(pieces, self.n_hidden, self.activations(pieces, x, training=True))

    def activations(self, pieces: Mapping[str, Tensor], x: Tensor, *, training: bool) -> Tensor:
        """(M, units, B) what the last layer sees of features (B, features)."""
        a = x.T.expand(len(pieces["bias0"]), *x.T.shape)
        for layer in range(self.n_hidden):
            a = self.normalised(pieces, layer, self._layer(pieces, layer, a), training).relu()
            if training and self.dropout:
                a = drop(a, self.dropout, self.source)
        return a

    def normalised(
        self, pieces: Mapping[str, Tensor], layer: int, a: Tensor, training: bool
    ) -> Tensor:
        """A place for batch norm and the like: (M, units, B) before the ReLU."""
        del pieces, layer, training
        return a

    def _layer(self, pieces: Mapping[str, Tensor], layer: int, a: Tensor) -> Tensor:
        return torch.baddbmm(pieces[f"bias{layer}"].unsqueeze(-1), pieces[f"weight{layer}"], a)


def drop(a: Tensor, share: float, source: torch.Generator) -> Tensor:
    """Sets a share of the activations (M, units, B) to 0, the same of all members."""
    kept = torch.empty(a.shape[1:], dtype=a.dtype).bernoulli_(1 - share, generator=source)
    return a * (kept / (1 - share))


class Descent:
    """Gradient descent on a matrix of parameters, each member with its own rate, decay and clip.

    ``theta -= rate * (gradient + decay * theta)``, or Adam (Kingma and Ba, 2015) with PyTorch's
    defaults and its weight decay. What it remembers, `state`, is (M, ...) each.
    """

    BETAS, EPS = (0.9, 0.999), 1e-8

    def __init__(self, solver: str, members: Sequence[Member], network: Network) -> None:
        def column(name: str) -> Tensor:
            values = [[getattr(member, name)] for member in members]
            return torch.tensor(values, dtype=network.parameters.dtype)

        self.parameters, self.gain = network.parameters, network.gain
        self.rate, self.decay, self.clip = (
            column(name) for name in ("learning_rate", "weight_decay", "clip_norm")
        )
        self.state: dict[str, Tensor] = {}
        if solver == "adam":
            self.state["steps"] = torch.zeros_like(self.rate)
            for name in ("first_moment", "second_moment"):
                self.state[name] = torch.zeros_like(network.parameters)

    def step(self, gradient: Tensor, factor: float) -> None:
        """One step along a gradient (M, P); `factor` multiplies the learning rates."""
        if torch.isfinite(self.clip).any():  # as torch.nn.utils.clip_grad_norm_ does
            norm = (gradient.square() * self.gain).sum(1, keepdim=True).sqrt()
            gradient = gradient * (self.clip / (norm + 1e-6)).clamp(max=1.0)
        if self.decay.any():  # which has no gain
            gradient = gradient + self.parameters * self.decay / self.gain
        if self.state:
            steps, first, second = self.state.values()
            beta1, beta2 = self.BETAS
            steps.add_(1)
            first.lerp_(gradient, 1 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            root = (second / (1 - beta2**steps)).sqrt_().add_(self.EPS)
            gradient = first / (1 - beta1**steps) / root
        self.parameters.sub_(gradient * (self.rate * factor) * self.gain)


class WeightAverage:
    """The mean of a network's weights, and of its buffers, over the steps from `first_step` on."""

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
        for tensor, saved in zip(self._averaged(), current, strict=False):
            tensor.copy_(saved)

    def restart(self, members: Tensor) -> None:
        """Starts the means of these members, (M,), anew from their present weights."""
        for mean, tensor in zip(self.mean, self._averaged(), strict=False):
            mean[members] = tensor[members]

    def _averaged(self) -> list[Tensor]:
        floats = [t for t in self.network.buffers.values() if t.is_floating_point()]
        return [self.network.parameters, *floats]


@on_cpu
def network_outputs(
    sizes: Sequence[int], state: Mapping[str, Any], X: Any, *, before_last: bool = False
) -> Floats:
    """(n, outputs) scores of rows (n, features) by a network of one member, given by its state.

    `before_last` gives what its last layer sees instead, (n, units).
    """
    parameters = torch.as_tensor(state["network.parameters"])
    network = Perceptrons(sizes, 1, dtype=parameters.dtype)
    x = torch.as_tensor(X, dtype=parameters.dtype)
    pieces = network.views(parameters)
    outputs = network.activations(pieces, x, training=False)
    if not before_last:
        outputs = network._layer(pieces, network.n_hidden, outputs)  # noqa: SLF001 - of this module
    return outputs[0].T.contiguous().numpy()
