"""Stacks of linear models and multilayer perceptrons.

All parameters of a member are one row of a matrix (members, P), so that an optimiser is a few
operations on it. Activations are (members, units, rows): the first layer of all members that see
the same rows is then one matrix product, and batch normalisation is PyTorch's own with
members x units as channels.

With two labels there is one output, the margin ``z = z_1 - z_0``. Its parameters are differences
of those of a softmax with two outputs, and gradient descent on the two moves the difference twice
as fast: `gain` holds this 2, so that learning rates, weight decay and gradient norms mean what
they mean for PyTorch's cross-entropy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from fairgrad.training.batch_norm import normalise
from fairgrad.training.dropout import drop
from fairgrad.training.streams import DROPOUT, INITIAL_WEIGHTS, generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Pull = Callable[[Tensor], Tensor]


class Network(Protocol):
    """A stack of models as the trainer sees it.

    Attributes:
        parameters: (M, P), changed in place by the optimiser.
        buffers: what else changes in training, each (M, ...).
        gain: (P,) or a number, by which the gradient is to be multiplied.
    """

    parameters: Tensor
    buffers: dict[str, Tensor]
    gain: Tensor | float

    def forward(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Pull]:
        """Scores (M, outputs, B) of features (S, B, ...) in training, and how to go back.

        The second result takes the gradient of a loss by the scores to that by the parameters.
        """

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (S, B, ...), for evaluation."""


@dataclass(frozen=True)
class Shape:
    """The shape of a network: which piece of a member's parameters is what.

    Attributes:
        n_features: inputs.
        hidden: units of the hidden layers.
        n_outputs: 1 (the margin of two labels), or the number of labels.
        batch_norm: whether hidden layers are normalised.
        dropout: share of hidden units dropped.

    Example:
        >>> Shape(n_features=3, hidden=(4,), n_outputs=1, batch_norm=True).pieces
        {'weight0': (4, 3), 'bias0': (4,), 'scale0': (4,), 'shift0': (4,),
         'weight1': (1, 4), 'bias1': (1,)}
    """

    n_features: int
    hidden: tuple[int, ...]
    n_outputs: int
    batch_norm: bool = False
    dropout: float = 0.0

    @property
    def pieces(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters, in the order in which they lie."""
        sizes = (self.n_features, *self.hidden, self.n_outputs)
        pieces: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, units) in enumerate(pairwise(sizes)):
            pieces |= {f"weight{layer}": (units, inputs), f"bias{layer}": (units,)}
            if self.batch_norm and layer < len(self.hidden):
                pieces |= {f"scale{layer}": (units,), f"shift{layer}": (units,)}
        return pieces

    @property
    def sizes(self) -> list[int]:
        """The number of parameters of each piece."""
        return [prod(shape) for shape in self.pieces.values()]

    @property
    def gain(self) -> Tensor | float:
        """2 for the parameters of a margin, 1 for all others."""
        if self.n_outputs > 1:
            return 1.0
        if not self.hidden:
            return 2.0
        gain = torch.ones(sum(self.sizes))
        gain[-sum(self.sizes[-2:]) :] = 2.0
        return gain

    def initial(self, seed: int) -> Tensor:
        """(P,) initial parameters as PyTorch's layers have them.

        Uniform in ``+-1/sqrt(inputs)``; a margin is the difference of two such outputs.
        """
        source = generator(seed, INITIAL_WEIGHTS)
        parts = {
            name: torch.full(shape, float(name.startswith("scale")))
            for name, shape in self.pieces.items()
        }
        for layer, inputs in enumerate((self.n_features, *self.hidden)):
            draws = 2 if layer == len(self.hidden) and self.n_outputs == 1 else 1
            for name in (f"weight{layer}", f"bias{layer}"):
                drawn = torch.rand(draws, *self.pieces[name], generator=source) * 2 - 1
                one_output = drawn[1] - drawn[0] if draws == 2 else drawn[0]
                parts[name] = one_output * max(inputs, 1) ** -0.5
        return torch.cat([part.reshape(-1) for part in parts.values()])

    def initial_buffers(self, n_members: int, dtype: torch.dtype) -> dict[str, Tensor]:
        """Running statistics of batch normalisation before training."""
        if not self.batch_norm:
            return {}
        buffers = {}
        for layer, units in enumerate(self.hidden):
            buffers[f"mean{layer}"] = torch.zeros(n_members, units, dtype=dtype)
            buffers[f"variance{layer}"] = torch.ones(n_members, units, dtype=dtype)
        return buffers


class LinearStack:
    """M linear models on S streams. Its gradient is written out: autograd costs ten times more."""

    def __init__(self, shape: Shape, n_streams: int, parameters: Tensor) -> None:
        self.shape, self.n_streams, self.parameters = shape, n_streams, parameters
        self.buffers: dict[str, Tensor] = {}
        self.gain: Tensor | float = shape.gain
        weight, bias = torch.split(parameters, shape.sizes, dim=1)
        # With one output these are views, which follow the parameters: no need to make them anew.
        self.views = self._by_stream(weight, bias) if shape.n_outputs == 1 else None

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (S, B, features)."""
        if self.views is None:
            return self.scores_of(self.parameters, x)
        weight, bias = self.views
        scores = torch.baddbmm(bias, weight, x.transpose(1, 2))
        return scores.view(len(self.parameters), self.shape.n_outputs, x.shape[1])

    def scores_of(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores in training with other parameters, for callers that differentiate by them."""
        weight, bias = self._by_stream(*torch.split(parameters, self.shape.sizes, dim=1))
        scores = torch.baddbmm(bias, weight, x.transpose(1, 2))
        return scores.view(len(parameters), self.shape.n_outputs, x.shape[1])

    def _by_stream(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        streams = self.n_streams
        return weight.reshape(streams, -1, self.shape.n_features), bias.reshape(streams, -1, 1)

    def forward(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Pull]:  # noqa: ARG002 - for layers that look across rows
        """Scores, and how to go back from their gradient to that of the parameters."""

        def pull(gradient: Tensor) -> Tensor:
            by_weight = torch.bmm(gradient.reshape(self.n_streams, -1, x.shape[1]), x)
            n_members = len(self.parameters)
            return torch.cat([by_weight.view(n_members, -1), gradient.sum(-1)], dim=1)

        return self.scores(x), pull


class PerceptronStack:
    """M multilayer perceptrons on S streams: linear, batch norm, ReLU, dropout, ..., linear."""

    def __init__(
        self, shape: Shape, seeds: Sequence[int], parameters: Tensor, buffers: dict[str, Tensor]
    ) -> None:
        self.shape, self.parameters, self.buffers = shape, parameters, buffers
        self.n_streams = len(seeds)
        self.generators = [generator(seed, DROPOUT) for seed in seeds]
        gain = shape.gain
        self.gain: Tensor | float = gain.to(parameters.dtype) if isinstance(gain, Tensor) else gain

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (S, B, features), as in evaluation."""
        with torch.no_grad():
            return self._layers(self.parameters, x, None, training=False)

    def scores_of(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores in training with other parameters, for callers that differentiate by them."""
        return self._layers(parameters, x, None, training=True)

    def forward(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Pull]:
        """Scores in training, and how to go back from their gradient to that of the parameters."""
        leaf = self.parameters.detach().requires_grad_()
        with torch.enable_grad():
            scores = self._layers(leaf, x, valid, training=True)
        return scores.detach(), lambda gradient: torch.autograd.grad(scores, leaf, gradient)[0]

    def _layers(self, flat: Tensor, x: Tensor, valid: Tensor | None, *, training: bool) -> Tensor:
        n_members, rows = len(flat), x.shape[1]
        pieces = dict(
            zip(self.shape.pieces, torch.split(flat, self.shape.sizes, dim=1), strict=True)
        )
        a = self._first_layer(pieces, x)
        for layer, units in enumerate(self.shape.hidden):
            if self.shape.batch_norm:
                a = normalise(
                    a,
                    pieces[f"scale{layer}"],
                    pieces[f"shift{layer}"],
                    self.buffers,
                    layer,
                    self._of_members(valid),
                    training=training,
                )
            a = a.relu()
            if training and self.shape.dropout:
                a = drop(a, self.shape.dropout, self.generators)
            weight = pieces[f"weight{layer + 1}"].view(n_members, -1, units)
            a = torch.baddbmm(pieces[f"bias{layer + 1}"].unsqueeze(-1), weight, a)
        return a.view(n_members, self.shape.n_outputs, rows)

    def _first_layer(self, pieces: dict[str, Tensor], x: Tensor) -> Tensor:
        """One product per stream, whatever the number of its members."""
        bias = pieces["bias0"].reshape(self.n_streams, -1, 1)
        weight = pieces["weight0"].reshape(self.n_streams, -1, self.shape.n_features)
        a = torch.baddbmm(bias, weight, x.transpose(1, 2))
        return a.view(-1, self.shape.hidden[0], x.shape[1])

    def _of_members(self, valid: Tensor | None) -> Tensor | None:
        if valid is None:
            return None
        return valid.repeat_interleave(len(self.parameters) // self.n_streams, dim=0)
