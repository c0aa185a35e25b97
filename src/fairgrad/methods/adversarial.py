"""Adversarial training (Raff and Sylvester, 2018): features from which the group cannot be told.

An adversary predicts the sensitive group from the features; a reversed gradient, times lambda,
teaches the features to prevent it. Which measure of fairness is meant plays no role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared import support
from fairgrad.methods.shared.grids import combinations, crossed
from fairgrad.methods.shared.stacked import SGD, train_stacked
from fairgrad.methods.shared.two_heads import TwoHeads, TwoHeadsStack
from fairgrad.training import StackParts, heads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from fairgrad.training import Network, RowBatch, Stack

LAMBDAS = tuple(round(0.1 + 0.2 * step, 1) for step in range(15))


class Duel:
    """The gradient of both heads' cross-entropies by their scores."""

    def __init__(self, stack: Stack, label_outputs: int) -> None:
        self.table, self.label_outputs = stack.table, label_outputs

    def __call__(self, scores: Tensor, indices: RowBatch) -> Tensor:
        """(S, T, label and group outputs, B)."""
        parts = (scores[:, :, : self.label_outputs], scores[:, :, self.label_outputs :])
        truths = (self.table.label[indices.row], self.table.group[indices.row])
        both = [heads.residual(part, truth) for part, truth in zip(parts, truths, strict=True)]
        if indices.valid is None:
            return torch.cat(both, dim=2) / indices.row.shape[1]
        share = indices.valid / indices.valid.sum(1, keepdim=True).clamp(min=1)
        return torch.cat(both, dim=2) * share[:, None, None]


def shape_of(task: Task) -> TwoHeads:
    """The network's shape for the task's labels and groups."""
    n_features = next(iter(task.splits.values())).train.X.shape[1]
    counts = (support.n_labels(task), support.n_groups(task))
    outputs = [1 if count == 2 else count for count in counts]
    return TwoHeads(n_features, *outputs)


def parts_for(shape: TwoHeads) -> Callable[[Sequence[Settings]], StackParts]:
    """The stack's network and objective, for the settings of its members."""

    def parts_of(settings: Sequence[Settings]) -> StackParts:
        def network(stack: Stack) -> Network:
            seeds = [member.seed for member in stack.members]
            return TwoHeadsStack(
                shape,
                seeds[:: len(seeds) // stack.n_streams],
                torch.stack([shape.initial(seed) for seed in seeds]),
                shape.initial_buffers(len(seeds)),
                torch.tensor([settings[i]["adversary_weight"] for i in stack.order]),
            )

        return StackParts(network=network, objective=lambda stack: Duel(stack, shape.label_outputs))

    return parts_of


def _unsupported(task: Task) -> str | None:
    if task.model == "linear":
        return "it needs hidden features, which linear models do not have"
    return support.no_network(task) or support.unknown_groups(task)


def _settings(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - nonlinear only
    if grid == "quick":
        return crossed(batch_size=(128,), weight_decay=(0.0,), adversary_weight=(0.5, 2.1))
    return crossed(batch_size=(64, 512), weight_decay=(0.0, 0.001, 0.01), adversary_weight=LAMBDAS)


def _train(task: Task) -> list[Candidate]:
    shape = shape_of(task)
    return train_stacked(
        task,
        combinations(METHOD, task),
        parts_of=parts_for(shape),
        network_of=lambda parameters, buffers: TwoHeadsStack(shape, [0], parameters, buffers),
        **SGD,
    )


METHOD = Method(
    name="adversarial",
    description="Learns features from which an adversary cannot tell the group.",
    uses_measure=False,
    needs_s_to_predict=False,
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
