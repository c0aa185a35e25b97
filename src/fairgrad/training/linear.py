"""Linear models trained by compiled code, whole epochs at a time.

What a step of a linear model computes is so little that starting its operations costs most of the
time. Here one call trains all members of a stream for one epoch and judges them. It gives what
`fairgrad.training.trainer` gives by single steps, up to rounding: scores, and gradients of a step,
are in the precision of the features, counts and all state in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad import dual
from fairgrad.torch.compiled import CompiledStep, is_compiled, linear_models, run_epoch
from fairgrad.training.networks import LinearStack
from fairgrad.training.optimizers import Sgd
from fairgrad.training.plan import can_fold
from fairgrad.training.table import Streams

if TYPE_CHECKING:
    from fairgrad.training.evaluation import History
    from fairgrad.training.plan import TrainingPlan
    from fairgrad.training.stack import Stack, State
    from fairgrad.training.table import TrainingTable

MAX_COUNTS = 2**20
"""So many numbers are counted before they become a history."""

VECTOR = {torch.float32: 8, torch.float64: 4}
"""Models stand side by side in multiples of so many."""

MOST_JUDGED = 512
"""Rows that models are judged by at a time, or those of a batch if these are more."""

ARRAYS = ("parameters", "rows", "errors", "multipliers", "weights", "seen")
"""The state of linear models, in the order in which it is kept."""


def compiled_epochs(stack: Stack, plan: TrainingPlan) -> LinearEpochs | None:
    """For linear models on dense rows, trained by the paper's own descent and loss; else None."""
    network, streams = stack.network, stack.streams
    fits = (
        is_compiled
        and isinstance(stack.optimizer, Sgd)
        and stack.objective == stack.fair_objective
        and stack.fairness.n_outcomes == 1
        and isinstance(stack.table.raw, Tensor)
        and stack.table.dtype in {torch.float32, torch.float64}
    )
    if fits and isinstance(network, LinearStack) and isinstance(streams, Streams):
        return LinearEpochs(stack, plan, network, streams)
    return None


class LinearEpochs:
    """All streams of a stack, trained epoch by epoch.

    If models are judged by the rows they are trained on, an epoch is judged while the next goes
    over these rows. The stack itself stays as it is.

    Args:
        stack: of linear models.
        plan: what its members have in common.
        network: the stack's.
        batches: the stack's.
    """

    def __init__(
        self, stack: Stack, plan: TrainingPlan, network: LinearStack, batches: Streams
    ) -> None:
        self.stack, self.plan, self.network, self.batches = stack, plan, network, batches
        self.n_done, self.n_recorded = 0, 0
        self.records: list[History] = []
        n_members, n_cells = len(stack.order), stack.fairness.cells.n_cells
        self.n_pending = max(1, min(plan.epochs, MAX_COUNTS // (2 * n_members * n_cells)))
        n_steps = plan.epochs * batches.n_steps
        factors = plan.rate_factor(np.arange(n_steps) / n_steps)
        self.factors = torch.from_numpy(factors).view(plan.epochs, -1)
        first = n_steps - round(plan.average_last * n_steps)
        self.features = _features(stack.table)
        self.streams = [
            LinearStream(self, stream, first_averaged=first) for stream in range(stack.n_streams)
        ]

    def epoch(self) -> bool:
        """Trains one more epoch; whether all numbers are finite."""
        if self.n_done - self.n_recorded == self.n_pending and not self.record():
            return False
        place = self.n_done - self.n_recorded - 1  # of the last epoch, if it is not recorded yet
        factors = self.factors[self.n_done]
        finite = [stream.epoch(self.n_done, place, factors) for stream in self.streams]
        self.n_done += 1
        return all(finite)

    def record(self) -> bool:
        """Makes all epochs since the last time a part of the history; whether they are finite."""
        n = self.n_done - self.n_recorded
        if n == 0:
            return True
        finite = [stream.judge(self.n_done, n - 1) for stream in self.streams]
        counted = [stream.counted(n) for stream in self.streams]
        parts = (np.concatenate(part, axis=1) for part in zip(*counted, strict=True))
        self.records.append(self.stack.evaluation.history(*parts))
        self.n_recorded = self.n_done
        return all(finite)

    def kept(self) -> dict[int, State]:
        """The states of the last epochs, by epoch."""
        first = max(0, self.n_done - self.plan.keep)
        return {epoch: self._state(epoch) for epoch in range(first, self.n_done)}

    def _state(self, epoch: int) -> State:
        parts = [stream.state(epoch) for stream in self.streams]
        whole = {name: torch.cat([part[name] for part in parts]) for name in ARRAYS}
        whole["parameters"] = whole["parameters"].to(self.stack.table.dtype)
        state = {"network.parameters": whole.pop("parameters")}
        return state | {f"fairness.{name}": tensor for name, tensor in whole.items()}


class LinearStream:
    """The members that see the same rows, and what is counted of them.

    Args:
        epochs: of which it is a part.
        stream: its number.
        first_averaged: the step from which on weights are averaged.
    """

    def __init__(self, epochs: LinearEpochs, stream: int, *, first_averaged: int) -> None:
        stack, plan = epochs.stack, epochs.plan
        fairness, table, network = stack.fairness, stack.table, epochs.network
        self.batches, self.number, self.n_done = epochs.batches, stream, 0
        self.n_members = len(stack.order) // stack.n_streams
        own = slice(stream * self.n_members, (stream + 1) * self.n_members)
        self.n_sides = len(fairness.constants.sign)
        problem = fairness.constants
        if stack.n_streams > 1:
            problem = dual.side_by_side(fairness.problems[own], self.n_sides)
        self.step = CompiledStep(problem.convert(torch.from_numpy))
        self.n_features, self.n_outputs = network.shape.n_features, network.shape.n_outputs
        n_cells = fairness.cells.n_cells
        judged = stack.evaluation.streams.rows[stream]
        self.is_judged_later = torch.equal(judged, self.batches.rows[stream])
        start = {"parameters": self._joined(network.parameters[own].double())}
        start |= {name: fairness.state[name][own].clone() for name in ARRAYS[1:]}
        start["seen"] = start["seen"].max().reshape(1)
        start["multipliers"] = self._by_side(start["multipliers"])
        self.shapes = {name: start[name].shape for name in ARRAYS}
        n_pending, n_state = epochs.n_pending, sum(part.numel() for part in start.values())
        n_slots = plan.keep + 1  # one more than are kept: an epoch may be interrupted

        def setting(values: Any) -> Tensor:
            return torch.as_tensor(values, dtype=torch.float64)[own].reshape(-1).contiguous()

        def empty(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64)

        self.counts = empty(n_pending, self.n_members, 2, n_cells)
        self.loss = empty(n_pending, self.n_members)
        self.multipliers = np.zeros((n_pending, *self.shapes["multipliers"]))
        self.slots = empty(n_slots, n_state)
        ignores = fairness.ignores_labels
        optimizer = stack.optimizer
        weight, (X, offset, factor) = table.weight, epochs.features
        self.multipliers_now = start["multipliers"].numpy()
        stride = -(-self.n_members // VECTOR[table.dtype]) * VECTOR[table.dtype]
        most_rows = max(self.batches.batch_size, MOST_JUDGED)
        plane = self.n_outputs * stride
        n_numbers = max(2 * self.n_members * n_cells, self.n_outputs * (self.n_features + 1))
        sizes = (
            self.n_features,
            self.n_outputs,
            self.n_members,
            stride,
            self.batches.batch_size,
            self.batches.n_steps,
            len(judged),
            n_cells,
            fairness.n_groups,
            n_slots,
            first_averaged,
            table.dtype == torch.float32,
            fairness.is_active,
            n_state,
            X.shape[1] * X.element_size(),
            most_rows,
        )
        scratch = (
            *(2 * plane * self.n_features, 2 * plane, 2 * plane * most_rows),
            *(plane * self.n_features, 3 * stride),
        )
        arrays = (
            X,
            (table.label * fairness.n_groups + table.group).int(),
            judged,
            None if weight is None else weight.double(),
            offset,
            factor,
            *(setting(part) for part in (optimizer.rate, optimizer.decay, optimizer.clip)),
            torch.tensor([float(network.gain)], dtype=torch.float64),
            torch.zeros(self.n_members, dtype=torch.bool) if ignores is None else ignores[own],
            torch.stack([start["parameters"]] * 2),
            start["parameters"].clone(),
            *(start[name] for name in ARRAYS[1:]),
            self.counts,
            self.loss,
            self.slots,
            *(torch.zeros(size, dtype=table.dtype) for size in scratch),
            *(empty(size) for size in ((2 * stride + 1) * n_cells, stride * n_cells)),
            *(empty(size) for size in (plane, n_numbers)),
            *(torch.zeros(most_rows, dtype=torch.int64), empty(most_rows)),
            torch.zeros(most_rows, dtype=torch.int64),
        )
        self.models = linear_models(self.step, sizes, arrays)

    def epoch(self, epoch: int, place: int, factors: Tensor) -> bool:
        """Trains one epoch; the one before is judged into this place, unless it is negative."""
        rows = self.batches.shuffled(self.number)
        later = self.is_judged_later
        finite = run_epoch(self.models, epoch, place if later else -1, rows, factors)
        self.multipliers[place + 1] = self.multipliers_now
        self.n_done = epoch + 1
        return finite if later else self._judge(place + 1) and finite

    def _judge(self, place: int) -> bool:
        return run_epoch(self.models, self.n_done, place, None, None)

    def judge(self, n_done: int, place: int) -> bool:
        """Judges the last of so many epochs into this place, if that was not done yet.

        It was if the stream is ahead of others, because these were interrupted.
        """
        is_judged = not self.is_judged_later or self.n_done > n_done
        return is_judged or self._judge(place)

    def counted(self, n: int) -> tuple[Any, Any, Any]:
        """Counts (n, T, 2, K), losses (n, T) and net multipliers (n, T, J) of the last n epochs.

        Counting starts anew then.
        """
        sign = np.array([1.0, -1.0])[: self.n_sides, None]
        net = (sign * self.multipliers[:n]).sum(1)
        counts, loss = (part[:n].numpy().copy() for part in (self.counts, self.loss))
        self.counts.zero_()
        self.loss.zero_()
        return counts, loss, net.reshape(n, self.n_members, -1)

    def state(self, epoch: int) -> dict[str, Tensor]:
        """The state after one of the last epochs, each (T, ...)."""
        slot = self.slots[epoch % len(self.slots)]
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), torch.split(slot, sizes), strict=True)
        state = {name: part.view(shape).clone() for (name, shape), part in parts}
        by_side = state["multipliers"].view(self.n_sides, self.n_members, -1)
        state["seen"] = state["seen"].expand(self.n_members, 1).clone()
        state["multipliers"] = by_side.transpose(0, 1).reshape(self.n_members, -1)
        return state | {"parameters": self._parted(state["parameters"])}

    def _by_side(self, multipliers: Tensor) -> Tensor:
        by_member = multipliers.view(self.n_members, self.n_sides, -1)
        return by_member.transpose(0, 1).reshape(self.n_sides, -1).clone()

    def _joined(self, parameters: Tensor) -> Tensor:
        """(T, outputs, features + 1): the bias of each output beside its weights."""
        weight = parameters[:, : -self.n_outputs].view(self.n_members, self.n_outputs, -1)
        return torch.cat([weight, parameters[:, -self.n_outputs :, None]], dim=2)

    def _parted(self, joined: Tensor) -> Tensor:
        """(T, P): the weights of all outputs, then their biases."""
        weight = joined[:, :, : self.n_features].reshape(self.n_members, -1)
        return torch.cat([weight, joined[:, :, self.n_features]], dim=1)


def _features(table: TrainingTable) -> tuple[Tensor, Tensor, Tensor]:
    """The rows to read, and what weights take over of their scaling: offset and factor.

    They are those of the table, if weights can take it over; else a scaled copy.
    """
    rows, (offset, scale) = table.raw, table.scaling
    if not can_fold(offset.numpy(), scale.numpy(), str(table.dtype).removeprefix("torch.")):
        rows, offset, scale = table.X, torch.zeros_like(offset), torch.ones_like(scale)
    return rows, offset, 1 / scale
