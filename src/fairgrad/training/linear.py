"""Linear models trained by compiled code, whole epochs at a time.

What a step of a linear model computes is so little that starting its operations costs most of the
time. Here one call trains all members for one epoch and judges them. It gives what
`fairgrad.training.trainer` gives by single steps, up to rounding: scores, and gradients of a step,
are in the precision of the features, counts and all state in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fairgrad.torch.compiled import CompiledStep, is_compiled, linear_models, run_epoch

if TYPE_CHECKING:
    from fairgrad.groups import Floats
    from fairgrad.training.trainer import History, Stack, State

VECTOR = {torch.float32: 8, torch.float64: 4}
"""Models, current and averaged, stand side by side in multiples of so many."""

MOST_JUDGED = 512
"""Rows that models are judged by at a time, or those of a batch if these are more."""

ARRAYS = ("parameters", "rows", "errors", "multipliers", "weights", "seen")
"""The state of linear models, in the order in which it is kept."""


def compiled_epochs(stack: Stack) -> LinearEpochs | None:
    """For linear models on dense rows, trained by the paper's own descent and loss; else None."""
    fits = (
        is_compiled
        and stack.is_linear
        and not stack.optimizer.state
        and stack.fairness.n_outcomes == 1
        and isinstance(stack.table.X, Tensor)
        and stack.table.dtype in VECTOR
    )
    return LinearEpochs(stack) if fits else None


class LinearEpochs:
    """Linear models of a stack, trained epoch by epoch; the stack itself stays as it is.

    If models are judged by the rows they are trained on, an epoch is judged while the next goes
    over these rows.
    """

    def __init__(self, stack: Stack) -> None:
        plan, fairness, table = stack.plan, stack.fairness, stack.table
        self.stack, self.n_done = stack, 0
        self.counted: list[tuple[Floats, Floats, Floats]] = []  # as `Stack.record` takes it
        self.n_members = n_members = len(stack.members)
        self.n_features, self.n_outputs = n_features, n_outputs = stack.sizes[0], stack.sizes[-1]
        batches, n_cells = stack.batches, fairness.n_cells
        self.step = CompiledStep(fairness.constants.convert(torch.from_numpy))
        self.is_judged_later = stack.judged is stack.batches.rows
        n_steps = plan.epochs * batches.n_steps
        factors = plan.rate_factor(np.arange(n_steps) / n_steps)
        self.factors = torch.from_numpy(factors).view(plan.epochs, -1)
        first_averaged = n_steps - round(plan.average_last * n_steps)

        self.multipliers = np.array(fairness.state.multipliers)
        state = fairness.state
        start = {
            "parameters": self._joined(stack.network.parameters.double()),
            "rows": torch.from_numpy(np.array(state.rows)),
            "errors": torch.from_numpy(np.array(state.errors)),
            "multipliers": torch.from_numpy(self.multipliers),
            "weights": torch.from_numpy(np.ascontiguousarray(fairness.weights)).reshape(-1),
            "seen": torch.tensor([float(state.seen)], dtype=torch.float64),
        }
        self.shapes = {name: start[name].shape for name in ARRAYS}
        n_state = sum(tensor.numel() for tensor in start.values())
        n_slots = plan.keep + 1  # one more than are kept: an epoch may be interrupted

        def empty(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64)

        self.counts, self.loss = empty(1, n_members, 2, n_cells), empty(1, n_members)
        self.slots = empty(n_slots, n_state)
        lanes = VECTOR[table.dtype]
        stride, end_current = (-(-n // lanes) * lanes for n in (2 * n_members, n_members))
        most_rows = max(batches.batch_size, MOST_JUDGED)
        plane = n_outputs * stride
        sizes = (
            n_features,
            n_outputs,
            n_members,
            stride,
            batches.batch_size,
            batches.n_steps,
            len(stack.judged),
            n_cells,
            fairness.n_groups,
            n_slots,
            first_averaged,
            table.dtype == torch.float32,
            fairness.is_active,
            n_state,
            n_features * table.X.element_size(),
            most_rows,
            end_current,
            n_members // lanes * lanes,
        )
        scratch = (plane * n_features, plane, plane * most_rows, plane * n_features, 3 * stride)
        n_numbers = max(2 * n_members * n_cells, n_outputs * (n_features + 1))
        descent = stack.optimizer
        arrays = (
            table.X,
            (table.label * fairness.n_groups + table.group).int(),
            stack.judged,
            None if table.weight is None else table.weight.double(),
            *(tensor.double().view(-1) for tensor in (descent.rate, descent.decay, descent.clip)),
            stack.network.gain[-1:].double(),
            torch.stack([start["parameters"]] * 2),
            start["parameters"].clone(),
            *(start[name] for name in ARRAYS[1:]),
            self.counts,
            self.loss,
            self.slots,
            *(torch.zeros(size, dtype=table.dtype) for size in scratch),
            *(empty(size) for size in ((stride + 1) * n_cells, stride * n_cells)),
            *(empty(size) for size in (plane, n_numbers)),
            *(torch.zeros(most_rows, dtype=torch.int64), empty(most_rows)),
            torch.zeros(most_rows, dtype=torch.int64),
        )
        self.models = linear_models(self.step, sizes, arrays)

    def epoch(self) -> bool:
        """Trains one more epoch; whether all numbers are finite."""
        rows, judges = self.stack.batches.shuffled(), self.is_judged_later and self.n_done > 0
        before = self.multipliers.copy()
        place, factors = 0 if judges else -1, self.factors[self.n_done]
        finite = run_epoch(self.models, self.n_done, place, rows, factors)
        if judges:
            self._take_counts(before)
        self.n_done += 1
        return finite if self.is_judged_later else self.judge() and finite

    def judge(self) -> bool:
        """Judges the last epoch, unless that was done; whether all numbers are finite."""
        if len(self.counted) == self.n_done:
            return True
        self.counts.zero_()  # an epoch may have been interrupted
        self.loss.zero_()
        finite = run_epoch(self.models, self.n_done, 0, None, None)
        self._take_counts(self._slot(self.n_done - 1)["multipliers"].numpy())
        return finite

    def _take_counts(self, multipliers: Floats) -> None:
        counts, loss = self.counts[0].numpy().copy(), self.loss[0].numpy().copy()
        self.counted.append((counts, loss, multipliers))
        self.counts.zero_()
        self.loss.zero_()

    def history(self, last: int = 0) -> History:
        """How good the models were after the last epochs, or after all."""
        counts, loss, multipliers = map(np.stack, zip(*self.counted[-last:], strict=True))
        sign = np.array([1.0, -1.0])[: multipliers.shape[1], None]
        net = (sign * multipliers).sum(1).reshape(*loss.shape, -1)
        return self.stack.record(counts, loss, net)

    def kept(self) -> dict[int, State]:
        """The states of the last epochs, by epoch."""
        first = max(0, self.n_done - self.stack.plan.keep)
        return {epoch: self._state(epoch) for epoch in range(first, self.n_done)}

    def _state(self, epoch: int) -> State:
        kept, m = self._slot(epoch), self.n_members
        weight = kept["parameters"][:, :, : self.n_features].reshape(m, -1)
        parameters = torch.cat([weight, kept["parameters"][:, :, self.n_features]], dim=1)
        multipliers = kept["multipliers"].view(len(self.multipliers), m, -1).transpose(0, 1)
        return {
            "network.parameters": parameters.to(self.stack.table.dtype),
            "fairness.multipliers": multipliers.reshape(m, -1),
            "fairness.seen": kept["seen"].expand(m, 1).clone(),
            **{
                f"fairness.{name}": kept[name].view(m, -1) for name in ("rows", "errors", "weights")
            },
        }

    def _slot(self, epoch: int) -> dict[str, Tensor]:
        """The state after one of the last epochs, as the compiled code has it."""
        slot = self.slots[epoch % len(self.slots)]
        sizes = [shape.numel() for shape in self.shapes.values()]
        pieces = zip(self.shapes.items(), torch.split(slot, sizes), strict=True)
        return {name: tensor.view(shape).clone() for (name, shape), tensor in pieces}

    def _joined(self, parameters: Tensor) -> Tensor:
        """(M, outputs, features + 1): the bias of each output beside its weights."""
        weight = parameters[:, : -self.n_outputs].view(self.n_members, self.n_outputs, -1)
        return torch.cat([weight, parameters[:, -self.n_outputs :, None]], dim=2)
