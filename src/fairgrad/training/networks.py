"""Stacks of networks: linear models, multilayer perceptrons, and copies of any PyTorch module.

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

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fairgrad.torch.compiled import on_cpu
from fairgrad.training.layers import BatchNorm, HiddenLayer, Memory, draw_masks, drop, normalise
from fairgrad.training.table import DROPOUT, generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.groups import Floats
    from fairgrad.training.plan import Shape

Pull = Callable[[Tensor], Tensor]
"""From the gradient of a loss by the scores to that by the parameters."""


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


class LinearStack:
    """M linear models on S streams. Its gradient is written out: autograd costs ten times more."""

    def __init__(self, shape: Shape, n_streams: int, parameters: Tensor) -> None:
        self.shape, self.n_streams, self.parameters = shape, n_streams, parameters
        self.buffers: dict[str, Tensor] = {}
        self.gain: Tensor | float = shape.gain
        # With one output these are views, which follow the parameters: no need to make them anew.
        self.views = self._layer(parameters) if shape.n_outputs == 1 else None

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (S, B, features)."""
        return self._product(self.views or self._layer(self.parameters), x)

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores in training with other parameters, for callers that differentiate by them."""
        return self._product(self._layer(parameters), x)

    def _layer(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and biases of all members by stream."""
        weight, bias = torch.split(parameters, self.shape.sizes, dim=1)
        streams = self.n_streams
        return weight.reshape(streams, -1, self.shape.n_features), bias.reshape(streams, -1, 1)

    def _product(self, layer: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        weight, bias = layer
        scores = torch.baddbmm(bias, weight, x.transpose(1, 2))
        return scores.view(-1, self.shape.n_outputs, x.shape[1])

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
        pieces, scratch = shape.views(parameters), Memory(parameters)
        self.layers: list[HiddenLayer] = []
        for layer in range(len(shape.hidden)):
            norm = None
            if shape.batch_norm:
                norm = BatchNorm(
                    pieces[f"scale{layer}"],
                    pieces[f"shift{layer}"],
                    buffers[f"mean{layer}"],
                    buffers[f"variance{layer}"],
                )
            weight, bias = pieces[f"weight{layer}"], pieces[f"bias{layer}"]
            self.layers.append(HiddenLayer(weight, bias, norm, shape.dropout, scratch))
        last = len(self.layers)
        self.weight, self.bias = pieces[f"weight{last}"], pieces[f"bias{last}"].unsqueeze(-1)

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (S, B, features), as in evaluation."""
        return torch.baddbmm(self.bias, self.weight, self.activations(x))

    def activations(self, x: Tensor) -> Tensor:
        """(M, units, B) what the last layer sees of features (S, B, features), in evaluation."""
        a = self._per_member(x).transpose(1, 2)
        for layer in self.layers:
            a = layer.evaluate(a)
        return a

    def forward(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Pull]:
        """Scores in training, and how to go back from their gradient to that of the parameters.

        The way back must be taken before the next call, which overwrites the activations.
        """
        shape, rows = self.shape, x.shape[1]
        a, masks = self._per_member(x).transpose(1, 2), None
        valid = None if valid is None else self._per_member(valid)[:, None].to(a.dtype)
        if shape.dropout:
            masks = draw_masks(shape.hidden, rows, shape.dropout, self.generators, a.dtype)
        for i, layer in enumerate(self.layers):
            a = layer.forward(a, valid, None if masks is None else masks[i])
        return torch.baddbmm(self.bias, self.weight, a), partial(self._pull, a)

    def _pull(self, a: Tensor, gradient: Tensor) -> Tensor:
        """From the gradient by the scores to that by the parameters; a are the last activations."""
        found = [torch.bmm(gradient, a.transpose(1, 2)), gradient.sum(-1)]
        weight = self.weight
        for layer in reversed(self.layers):
            own, gradient = layer.backward(weight, gradient)
            found, weight = own + found, layer.weight
        return torch.cat([part.flatten(1) for part in found], dim=1)

    def _per_member(self, of_stream: Tensor) -> Tensor:
        """(S, ...) as (M, ...)."""
        n_members = len(self.parameters)
        if self.n_streams == 1:
            return of_stream.expand(n_members, *of_stream.shape[1:])
        if self.n_streams == n_members:
            return of_stream
        return of_stream.repeat_interleave(n_members // self.n_streams, dim=0)

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores in training with other parameters, for callers that differentiate by them."""
        pieces = self.shape.views(parameters)
        a, last = self._per_member(x).transpose(1, 2), len(self.shape.hidden)
        for layer in range(last):
            a = torch.baddbmm(pieces[f"bias{layer}"].unsqueeze(-1), pieces[f"weight{layer}"], a)
            if self.shape.batch_norm:
                scale, shift = pieces[f"scale{layer}"], pieces[f"shift{layer}"]
                a = normalise(a, scale, shift, self.buffers, layer, None, training=True)
            a = a.relu()
            if self.shape.dropout:
                a = drop(a, self.shape.dropout, self.generators)
        return torch.baddbmm(pieces[f"bias{last}"].unsqueeze(-1), pieces[f"weight{last}"], a)


def _by_autograd(run: Callable[[Tensor], Tensor], parameters: Tensor) -> tuple[Tensor, Pull]:
    leaf = parameters.detach().requires_grad_()
    with torch.enable_grad():
        scores = run(leaf)
    return scores.detach(), lambda gradient: torch.autograd.grad(scores, leaf, gradient)[0]


def build(
    shape: Shape, n_streams: int, seeds: Sequence[int], dtype: torch.dtype
) -> LinearStack | PerceptronStack:
    """A stack of networks with the initial weights of their seeds."""
    initial = {seed: shape.initial(seed) for seed in set(seeds)}
    parameters = torch.stack([initial[seed] for seed in seeds]).to(dtype)
    if not shape.hidden:
        return LinearStack(shape, n_streams, parameters)
    buffers = shape.initial_buffers(len(seeds), dtype)
    return PerceptronStack(shape, seeds[:: len(seeds) // n_streams], parameters, buffers)


class ModuleStack:
    """M copies of a module on S streams.

    Parameters that do not require a gradient stay as they are, so layers can be frozen. The module
    itself is never changed; `load_into` writes a member back.

    Args:
        module: gives (B, labels) logits, or (B,) or (B, 1) margins for two labels.
        n_streams: S.
        n_members: M.
        n_labels: L.

    Attributes:
        parameters: (M, P) the trainable parameters.
        buffers: the module's buffers, each (M, ...).
    """

    def __init__(self, module: nn.Module, n_streams: int, n_members: int, n_labels: int) -> None:
        self.module, self.n_streams, self.n_labels = module, n_streams, n_labels
        self.gain: Tensor | float = 1.0
        trainable = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not trainable:
            raise ValueError("module: expected parameters that require a gradient, got none.")
        self.shapes = {name: p.shape for name, p in trainable.items()}
        flat = torch.cat([p.detach().reshape(-1) for p in trainable.values()])
        self.parameters = flat.repeat(n_members, 1)
        self.buffers = {
            name: torch.stack([buffer.detach()] * n_members)
            for name, buffer in module.named_buffers()
        }

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (S, B, ...), as in evaluation."""
        with torch.no_grad():
            return self._run(self.parameters, x, training=False)

    def forward(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Pull]:
        """Scores in training, and how to go back from their gradient to that of the parameters."""
        if valid is not None:
            raise ValueError("rows: members that share a module need equally many rows.")
        return _by_autograd(
            lambda parameters: self._run(parameters, x, training=True), self.parameters
        )

    def load_into(self, module: nn.Module, member: int) -> None:
        """Writes a member's parameters and buffers into a module of the same architecture."""
        state = {name: value.detach() for name, value in self._tensors(self.parameters, member)}
        module.load_state_dict(state, strict=False)

    def _run(self, flat: Tensor, x: Tensor, *, training: bool) -> Tensor:
        per_stream = len(flat) // self.n_streams
        with _in_mode(self.module, training):
            outputs = [
                functional_call(self.module, dict(self._tensors(flat, m)), (x[m // per_stream],))
                for m in range(len(flat))
            ]
        return torch.stack([self._oriented(output) for output in outputs])

    def _tensors(self, flat: Tensor, member: int) -> list[tuple[str, Tensor]]:
        pieces = torch.split(flat[member], [shape.numel() for shape in self.shapes.values()])
        own = [
            (name, piece.view(shape))
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        ]
        return [*own, *((name, buffer[member]) for name, buffer in self.buffers.items())]

    def _oriented(self, output: Tensor) -> Tensor:
        """(outputs, B) whatever the module gives."""
        scores = output[:, None] if output.ndim == 1 else output
        allowed = {1, 2} if self.n_labels == 2 else {self.n_labels}
        if scores.ndim != 2 or scores.shape[1] not in allowed:
            raise ValueError(
                f"module: expected scores of shape (rows, outputs) with {sorted(allowed)} outputs "
                f"for {self.n_labels} labels, got shape {tuple(output.shape)}."
            )
        return scores.T


@on_cpu
def module_scores(module: nn.Module, X: Any) -> Floats:
    """(n, outputs) what a module gives for rows in evaluation; a single output is a column."""
    x = torch.tensor(X, dtype=next(module.parameters()).dtype)
    with _in_mode(module, training=False), torch.no_grad():
        scores: Floats = module(x).numpy()
    return scores[:, None] if scores.ndim == 1 else scores


@contextmanager
def _in_mode(module: nn.Module, training: bool) -> Iterator[None]:
    """Inside, a module is in training or in evaluation; afterwards it is as it was."""
    before = module.training
    module.train(training)
    try:
        yield
    finally:
        module.train(before)
