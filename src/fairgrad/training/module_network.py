"""Any `torch.nn.Module` as a stack, so that the same trainer serves it. Members run one by one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fairgrad.training.state import StackState

if TYPE_CHECKING:
    from fairgrad.training.network import Pull


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
        leaf = self.parameters.detach().requires_grad_()
        with torch.enable_grad():
            scores = self._run(leaf, x, training=True)
        return scores.detach(), lambda gradient: torch.autograd.grad(scores, leaf, gradient)[0]

    def load_into(self, module: nn.Module, member: int) -> None:
        """Writes a member's parameters and buffers into a module of the same architecture."""
        state = {name: value.detach() for name, value in self._tensors(self.parameters, member)}
        module.load_state_dict(state, strict=False)

    def _run(self, flat: Tensor, x: Tensor, *, training: bool) -> Tensor:
        before = self.module.training
        self.module.train(training)
        try:
            per_stream = len(flat) // self.n_streams
            outputs = [
                functional_call(self.module, dict(self._tensors(flat, m)), (x[m // per_stream],))
                for m in range(len(flat))
            ]
        finally:
            self.module.train(before)
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


def loaded(module: nn.Module, state: dict[str, Any]) -> nn.Module:
    """A copy of a module with the parameters and buffers of a trained stack of one.

    Args:
        module: the module that was trained.
        state: holds ``network.parameters`` and ``buffers.*``, tensors or arrays (1, ...).
    """
    stack = ModuleStack(module, n_streams=1, n_members=1, n_labels=2)
    parts = {"network": {"parameters": stack.parameters}, "buffers": stack.buffers}
    StackState(parts).load(state)
    trained = copy.deepcopy(module)
    stack.load_into(trained, 0)
    return trained


def module_scores(module: nn.Module, X: Tensor) -> Tensor:
    """(n, outputs) what a module gives in evaluation; a single output is a column."""
    before = module.training
    module.train(mode=False)
    try:
        with torch.no_grad():
            scores: Tensor = module(X)
    finally:
        module.train(before)
    return scores[:, None] if scores.ndim == 1 else scores
