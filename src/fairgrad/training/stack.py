"""A stack of models with all it needs to take a step, and the parts that may be replaced in it.

Methods that train small networks by gradient steps differ from FairGrad in their batches, their
objective or their network. Each such part is made by a function of the stack, whose members are
then in their final order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from fairgrad.training.evaluation import (
    Evaluation,
    errors,
    predictions,
    residual,
    soft_residual,
)
from fairgrad.training.fairness import StackedFairness
from fairgrad.training.networks import ModuleStack, build
from fairgrad.training.optimizers import OPTIMIZERS
from fairgrad.training.plan import Shape
from fairgrad.training.table import Streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import nn

    from fairgrad.groups import Ints
    from fairgrad.training.networks import Network
    from fairgrad.training.plan import Member, TrainingPlan
    from fairgrad.training.table import RowBatch, TrainingTable

State = dict[str, Tensor]
"""Everything that training changes, each tensor (M, ...)."""


Objective = Callable[[Tensor, "RowBatch"], Tensor]
"""From scores (S, T, outputs, B) to the gradient of each member's loss by them, same shape.

An objective with a dictionary `state` of tensors (M, ...) has it kept with the models'.
"""


class Batches(Protocol):
    """Where the rows of the steps come from.

    Attributes:
        n_steps: batches per epoch.
    """

    n_steps: int

    def epoch(self) -> Iterator[RowBatch]:
        """The batches of one epoch."""


@dataclass(frozen=True, kw_only=True)
class StackParts:
    """Functions that make a stack's parts; None leaves the stack its own.

    Attributes:
        network: the models; the stack gives them no shape, so that whoever made them reads their
            scores off the states kept.
        objective: the gradient by the scores.
        batches: the rows of each step. Every member then has a stream of its own.
    """

    network: Callable[[Stack], Network] | None = None
    objective: Callable[[Stack], Objective] | None = None
    batches: Callable[[Stack], Batches] | None = None


class StackState:
    """Reads and writes what the network, the method and the optimiser keep as one state.

    The entries of these dictionaries of tensors may be replaced or changed in place; the
    dictionaries stay the same.
    """

    def __init__(self, parts: Mapping[str, dict[str, Tensor]]) -> None:
        self.parts = parts

    def copy(self) -> State:
        """The state as it is now."""
        return {
            f"{part}.{name}": tensor.clone()
            for part, tensors in self.parts.items()
            for name, tensor in tensors.items()
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over the tensors or arrays that `state` has; the others stay as they are."""
        found = []
        for key, value in state.items():
            part, name = key.split(".", 1)
            own = self.parts.get(part, {}).get(name)
            if own is None:
                continue
            new = torch.as_tensor(value, dtype=own.dtype)
            if new.shape != own.shape:
                raise ValueError(
                    f"start: expected {key} of shape {tuple(own.shape)}, got {tuple(new.shape)}."
                )
            found.append((own, new))
        for own, new in found:  # only now that all of them fit
            own.copy_(new)

    @contextmanager
    def held(self, members: Tensor | None) -> Iterator[None]:
        """What happens inside leaves these members (M,) as they were."""
        if members is None or not bool(members.any()):
            yield
            return
        before = [
            (tensors, name, tensor[members].clone())
            for tensors in self.parts.values()
            for name, tensor in tensors.items()
        ]
        yield
        for tensors, name, old in before:
            tensors[name][members] = old


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
        self._widest = max(plan.hidden, default=1)
        if self.shape is not None:
            self._widest = max(self._widest, self.shape.n_features)
        self.evaluation = self.evaluation_on(table, [judged[i] for i in leaders])
        parameters = self.network.parameters
        self.optimizer = OPTIMIZERS[plan.solver](members, self.network.gain, parameters)
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
        shape = Shape.of(plan, self.table.raw.shape[1], n_labels)
        return build(shape, self.n_streams, [m.seed for m in members], self.table.dtype), shape

    def evaluation_on(self, table: TrainingTable, rows: Sequence[Ints]) -> Evaluation:
        """What judges the models on some rows of a table, those of each stream."""
        return Evaluation(table, self.members, rows, self.fairness, self._widest)

    def step(self, indices: RowBatch, factor: float) -> None:
        """One step on one batch of every stream; `factor` multiplies the learning rates."""
        row, valid = indices
        scores, pull = self.network.forward(self.table.take(row), valid)
        by_stream = scores.view(self.n_streams, -1, *scores.shape[1:])
        gradient = pull(self.objective(by_stream, indices).view(scores.shape))
        self.optimizer.step(self.network.parameters, gradient, factor)

    def fair_objective(self, scores: Tensor, indices: RowBatch) -> Tensor:
        """The gradient of the method's loss by the scores (S, T, outputs, B)."""
        cells = self.fairness.cells.take(*indices)
        if self.fairness.n_outcomes > 1:
            targets = self.fairness.row_targets(cells, predictions(scores))
            return soft_residual(scores, targets.to(scores.dtype))
        label = cells.label if scores.shape[2] == 1 else cells.label.long()
        factors = self.fairness.row_factors(cells, errors(scores, label))
        return residual(scores, label) * factors[:, :, None]

    def finished(self, indices: RowBatch) -> Tensor | None:
        """(M,) which members have no row in this batch, or None if all have some."""
        if indices.valid is None:
            return None
        empty = ~indices.valid.any(1)
        return empty.repeat_interleave(len(self.order) // self.n_streams)


def _by_stream(
    members: Sequence[Member], rows: Sequence[Ints], judged: Sequence[Ints], *, apart: bool
) -> tuple[Ints, list[int]]:
    """Puts members that see the same batches side by side.

    Returns the order of the members, and one of each stream. If the streams have different numbers
    of members, or are to be apart, every member becomes a stream of its own.
    """
    streams: dict[tuple[int, bytes, bytes], list[int]] = {}
    content = {id(part): part.tobytes() for part in (*rows, *judged)}
    for i, member in enumerate(members):
        key = (member.seed, content[id(rows[i])], content[id(judged[i])])
        streams.setdefault(key, []).append(i)
    if apart or len({len(own) for own in streams.values()}) > 1:
        return np.arange(len(members)), list(range(len(members)))
    return np.concatenate([*streams.values()]), [own[0] for own in streams.values()]
