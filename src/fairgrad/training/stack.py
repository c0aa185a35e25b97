"""A stack of models with all it needs to take a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from fairgrad.training import heads
from fairgrad.training.evaluation import Evaluation
from fairgrad.training.fairness import StackedFairness
from fairgrad.training.module_network import ModuleStack
from fairgrad.training.network import LinearStack, PerceptronStack, Shape
from fairgrad.training.optimizers import Settings, make_optimizer
from fairgrad.training.parts import StackParts
from fairgrad.training.state import StackState
from fairgrad.training.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from fairgrad.groups import Ints
    from fairgrad.training.member import Member
    from fairgrad.training.network import Network
    from fairgrad.training.parts import Batches, Objective
    from fairgrad.training.plan import TrainingPlan
    from fairgrad.training.streams import Indices
    from fairgrad.training.table import TrainingTable


class Stack:
    """M models, ordered by the stream of batches they see, T on each of S streams.

    Args:
        table: the rows.
        members: what each model is trained on and how.
        plan: what they have in common.
        module: trains copies of this module in place of networks of its own.
        parts: what to have in place of its own parts.

    Attributes:
        order: (M,) position in `members` of each model of the stack.
        members: M of them, in the order of the models.
    """

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        plan: TrainingPlan,
        module: nn.Module | None = None,
        parts: StackParts | None = None,
    ) -> None:
        parts = parts or StackParts()
        rows = [member.indices(table, "rows") for member in members]
        judged = [member.indices(table, "validation") for member in members]
        self.order, leaders = _by_stream(members, rows, judged, apart=parts.batches is not None)
        given, members = members, [members[i] for i in self.order]
        self.members = members
        self.table = table
        self.streams: Batches = Streams(
            [rows[i] for i in leaders], [given[i].seed for i in leaders], plan.batch_size
        )
        self.n_streams = len(leaders)
        self.fairness = StackedFairness(table, members, [rows[i] for i in self.order])
        self.network, self.shape = self._make_network(plan, module, parts)
        widest = max(plan.hidden, default=1)
        if self.shape is not None:
            widest = max(widest, self.shape.n_features)
        self.evaluation = Evaluation(
            table, members, [judged[i] for i in leaders], self.fairness, widest
        )
        parameters = self.network.parameters
        settings = Settings(members, self.network.gain, parameters.dtype)
        self.optimizer = make_optimizer(plan.solver, settings, parameters)
        self.objective: Objective = self.fair_objective
        if parts.objective is not None:
            self.objective = parts.objective(self)
        if parts.batches is not None:
            self.streams = parts.batches(self)
        self.state = StackState(
            {
                "network": {"parameters": parameters},
                "buffers": self.network.buffers,
                "fairness": self.fairness.state,
                "optimizer": self.optimizer.state,
                "objective": getattr(self.objective, "state", {}),
            }
        )

    def _make_network(
        self, plan: TrainingPlan, module: nn.Module | None, parts: StackParts
    ) -> tuple[Network, Shape | None]:
        n_labels, members = self.table.n_labels, self.members
        if parts.network is not None:
            return parts.network(self), None
        if module is not None:
            return ModuleStack(module, self.n_streams, len(members), n_labels), None
        shape = Shape(
            n_features=self.table.X.shape[1],
            hidden=plan.hidden,
            n_outputs=1 if n_labels == 2 else n_labels,
            batch_norm=plan.batch_norm,
            dropout=plan.dropout,
        )
        return build(shape, self.n_streams, [m.seed for m in members], self.table.dtype), shape

    def step(self, indices: Indices, factor: float) -> None:
        """One step on one batch of every stream; `factor` multiplies the learning rates."""
        row, valid = indices
        scores, pull = self.network.forward(self.table.take(row), valid)
        by_stream = scores.view(self.n_streams, -1, *scores.shape[1:])
        gradient = self.objective(by_stream, indices)
        self.optimizer.step(self.network.parameters, pull(gradient.view(scores.shape)), factor)

    def fair_objective(self, scores: Tensor, indices: Indices) -> Tensor:
        """The gradient of the method's loss by the scores (S, T, outputs, B)."""
        cells = self.fairness.cells.take(*indices)
        label = cells.label if scores.shape[2] == 1 else cells.label.long()
        factors = self.fairness.row_factors(cells, heads.wrong(scores, label))
        return heads.residual(scores, label) * factors[:, :, None]

    def finished(self, indices: Indices) -> Tensor | None:
        """(M,) which members have no row in this batch, or None if all have some."""
        if indices.valid is None:
            return None
        empty = ~indices.valid.any(1)
        return empty.repeat_interleave(len(self.order) // self.n_streams)


def build(
    shape: Shape, n_streams: int, seeds: Sequence[int], dtype: torch.dtype
) -> LinearStack | PerceptronStack:
    """A stack of networks with the initial weights of their seeds."""
    parameters = torch.stack([shape.initial(seed) for seed in seeds]).to(dtype)
    if not shape.hidden:
        return LinearStack(shape, n_streams, parameters)
    buffers = shape.initial_buffers(len(seeds), dtype)
    return PerceptronStack(shape, seeds[:: len(seeds) // n_streams], parameters, buffers)


def _by_stream(
    members: Sequence[Member], rows: Sequence[Ints], judged: Sequence[Ints], *, apart: bool
) -> tuple[Ints, list[int]]:
    """Puts members that see the same batches side by side.

    Returns the order of the members, and one of each stream. If the streams have different numbers
    of members, or are to be apart, every member becomes a stream of its own.
    """
    streams: dict[tuple[int, bytes, bytes], list[int]] = {}
    for i, member in enumerate(members):
        key = (member.seed, rows[i].tobytes(), judged[i].tobytes())
        streams.setdefault(key, []).append(i)
    if apart or len({len(own) for own in streams.values()}) > 1:
        return np.arange(len(members)), list(range(len(members)))
    return np.concatenate([*streams.values()]), [own[0] for own in streams.values()]
