"""Adversarial training (Raff and Sylvester, 2018): features from which the group cannot be told.

An adversary predicts the sensitive group from the features; a reversed gradient, times lambda,
teaches the features to prevent it. Which measure of fairness is meant plays no role.

    x -> 64 -> 128 -+-> 32 -> label
                    +-> reversal -> 32 -> group

Every hidden layer is linear, batch norm, ReLU, dropout. The reversal is the identity on the way
forward; on the way back it multiplies the gradient by -lambda: the group's head learns to tell the
group, the encoder to hide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from fairgrad.training import (
    DROPOUT,
    INITIAL_WEIGHTS,
    StackParts,
    drop,
    generator,
    residual,
)
from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import Candidate, Combination, Method, MethodTask, crossed
from fairgrad_bench.methods.models import SGD, normalise, train_stacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from fairgrad.training import Network, Stack

LAMBDAS = tuple(round(0.1 + 0.2 * step, 1) for step in range(15))
ENCODER, HEAD, DROPPED = (64, 128), 32, 0.2
FIRST, SECOND, LABEL_HEAD, GROUP_HEAD = range(4)


@dataclass(frozen=True)
class TwoHeads:
    """The sizes of such a network; a single output is the margin between two."""

    n_features: int
    label_outputs: int
    group_outputs: int

    @property
    def pieces(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters, in the order in which they lie."""
        pieces: dict[str, tuple[int, ...]] = {}
        sizes = ((self.n_features, 64), ENCODER, (128, HEAD), (128, HEAD))
        for layer, (inputs, units) in enumerate(sizes):
            pieces |= {f"weight{layer}": (units, inputs), f"bias{layer}": (units,)}
            pieces |= {f"scale{layer}": (units,), f"shift{layer}": (units,)}
        for name, outputs in {"label": self.label_outputs, "group": self.group_outputs}.items():
            pieces |= {f"weight_{name}": (outputs, HEAD), f"bias_{name}": (outputs,)}
        return pieces

    @property
    def sizes(self) -> list[int]:
        """The number of parameters of each piece."""
        return [prod(shape) for shape in self.pieces.values()]

    @property
    def gain(self) -> Tensor:
        """(P,) 2 for the parameters of a margin, 1 for all others, as in the trainer's networks."""
        single = {"label": self.label_outputs == 1, "group": self.group_outputs == 1}
        parts = [
            torch.full((prod(shape),), 2.0 if single.get(name.split("_")[-1]) else 1.0)
            for name, shape in self.pieces.items()
        ]
        return torch.cat(parts)

    def initial(self, seed: int) -> Tensor:
        """(P,) initial parameters as PyTorch's layers have them: uniform in +-1/sqrt(inputs)."""
        source = generator(seed, INITIAL_WEIGHTS)
        parts, bound = [], 1.0
        for name, shape in self.pieces.items():
            if name.startswith(("scale", "shift")):
                parts.append(torch.full(shape, float(name.startswith("scale"))))
                continue
            bound = shape[1] ** -0.5 if name.startswith("weight") else bound
            parts.append((torch.rand(shape, generator=source) * 2 - 1) * bound)
        return torch.cat([part.reshape(-1) for part in parts])

    def initial_buffers(self, n_members: int) -> dict[str, Tensor]:
        """Running statistics of batch normalisation before training."""
        units = (*ENCODER, HEAD, HEAD)
        means = {f"mean{i}": torch.zeros(n_members, size) for i, size in enumerate(units)}
        variances = {f"variance{i}": torch.ones(n_members, size) for i, size in enumerate(units)}
        return means | variances


class _Reversal(torch.autograd.Function):
    """The identity, whose gradient is multiplied by -lambda."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, strength: Tensor) -> Tensor:
        ctx.save_for_backward(strength)
        return a.view_as(a)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (strength,) = ctx.saved_tensors
        return -strength * gradients[0], None


class TwoHeadsStack:
    """M such networks, as the trainer takes them.

    Args:
        shape: of the networks.
        seed: of the dropout.
        parameters: (M, P).
        buffers: running statistics, each (M, units).
        strength: (M,) lambda of each member; not needed to predict.
    """

    def __init__(
        self,
        shape: TwoHeads,
        seed: int,
        parameters: Tensor,
        buffers: dict[str, Tensor],
        strength: Tensor | None = None,
    ) -> None:
        self.shape, self.parameters, self.buffers = shape, parameters, buffers
        self.source = generator(seed, DROPOUT)
        self.gain: Tensor = shape.gain.to(parameters.dtype)
        self.strength = torch.zeros(len(parameters)) if strength is None else strength

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of the label, as in evaluation."""
        return self._both(x)[:, : self.shape.label_outputs]

    def group_scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of the group, as in evaluation."""
        return self._both(x)[:, self.shape.label_outputs :]

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores of label and group in training, one after the other."""
        return self._layers(parameters, x, training=True)

    def _both(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self._layers(self.parameters, x, training=False)

    def _layers(self, flat: Tensor, x: Tensor, *, training: bool) -> Tensor:
        parts = torch.split(flat, self.shape.sizes, dim=1)
        named = zip(self.shape.pieces.items(), parts, strict=True)
        pieces = {name: part.view(len(flat), *shape) for (name, shape), part in named}

        def hidden(a: Tensor, layer: int) -> Tensor:
            a = torch.baddbmm(pieces[f"bias{layer}"][..., None], pieces[f"weight{layer}"], a)
            scale, shift = pieces[f"scale{layer}"], pieces[f"shift{layer}"]
            a = normalise(a, scale, shift, self.buffers, layer, training=training).relu()
            return drop(a, DROPPED, self.source) if training else a

        def head(a: Tensor, layer: int, name: str) -> Tensor:
            weight, bias = pieces[f"weight_{name}"], pieces[f"bias_{name}"]
            return torch.baddbmm(bias[..., None], weight, hidden(a, layer))

        rows = x.T.expand(len(flat), *x.T.shape)
        encoded = hidden(hidden(rows, FIRST), SECOND)
        reversed_: Tensor = _Reversal.apply(encoded, self.strength[:, None, None])  # type: ignore[no-untyped-call]
        return torch.cat(
            [head(encoded, LABEL_HEAD, "label"), head(reversed_, GROUP_HEAD, "group")], dim=1
        )


class Duel:
    """The gradient of both heads' cross-entropies by their scores."""

    def __init__(self, stack: Stack, label_outputs: int) -> None:
        self.table, self.label_outputs = stack.table, label_outputs

    def __call__(self, scores: Tensor, rows: Tensor) -> Tensor:
        """(M, label and group outputs, B)."""
        parts = (scores[:, : self.label_outputs], scores[:, self.label_outputs :])
        truths = (self.table.label[rows], self.table.group[rows])
        both = [residual(part, truth) for part, truth in zip(parts, truths, strict=True)]
        return torch.cat(both, dim=1) / len(rows)


def shape_of(task: MethodTask) -> TwoHeads:
    """The network's shape for the task's labels and groups."""
    n_features = next(iter(task.splits.values())).train.X.shape[1]
    counts = (support.n_labels(task), support.n_groups(task))
    outputs = [1 if count == 2 else count for count in counts]
    return TwoHeads(n_features, *outputs)


def parts_for(shape: TwoHeads) -> Callable[[Sequence[Combination]], StackParts]:
    """The stack's network and objective, for the settings of its members."""

    def parts_of(settings: Sequence[Combination]) -> StackParts:
        def network(stack: Stack) -> Network:
            return TwoHeadsStack(
                shape,
                stack.plan.seed,
                shape.initial(stack.plan.seed).repeat(len(settings), 1),
                shape.initial_buffers(len(settings)),
                torch.tensor([one["adversary_weight"] for one in settings]),
            )

        return StackParts(network=network, objective=lambda stack: Duel(stack, shape.label_outputs))

    return parts_of


def _unsupported(task: MethodTask) -> str | None:
    if task.model == "linear":
        return "it needs hidden features, which linear models do not have"
    return support.no_network(task) or support.unknown_groups(task)


def _settings(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - nonlinear only
    if grid == "quick":
        return crossed(batch_size=(128,), weight_decay=(0.0,), adversary_weight=(0.5, 2.1))
    return crossed(batch_size=(64, 512), weight_decay=(0.0, 0.001, 0.01), adversary_weight=LAMBDAS)


def _train(task: MethodTask) -> list[Candidate]:
    shape = shape_of(task)
    return train_stacked(
        task,
        METHOD.combinations(task),
        parts_of=parts_for(shape),
        network_of=lambda parameters, buffers: TwoHeadsStack(shape, 0, parameters, buffers),
        **SGD,
    )


METHOD = Method(
    name="adversarial",
    version=1,
    description="Learns features from which an adversary cannot tell the group.",
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
    uses_measure=False,
)
