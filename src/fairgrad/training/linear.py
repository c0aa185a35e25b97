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

from fairgrad.torch.compiled import CompiledStep, compiled_code, is_compiled

if TYPE_CHECKING:
    from fairgrad.groups import Floats
    from fairgrad.training.trainer import History, Stack, State

VECTOR = {torch.float32: 8, torch.float64: 4}
"""Models, current and averaged, stand side by side in multiples of so many."""

MOST_JUDGED = 512
"""Rows that models are judged by at a time, or those of a batch if these are more."""


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
        n_members, n_features, n_outputs = len(stack.members), stack.sizes[0], stack.sizes[-1]
        batches, n_cells = stack.batches, fairness.n_cells
        step = CompiledStep(fairness.constants.convert(torch.from_numpy))
        self.is_judged_later = stack.judged is stack.batches.rows
        n_steps = plan.epochs * batches.n_steps
        factors = plan.rate_factor(np.arange(n_steps) / n_steps)
        self.factors = torch.from_numpy(factors).view(plan.epochs, -1)
        first_averaged = n_steps - round(plan.average_last * n_steps)

        state, initial = fairness.state, stack.network.parameters.double()
        self.multipliers = np.array(state.multipliers)
        weight = initial[:, :-n_outputs].view(n_members, n_outputs, -1)
        start = {  # in the order in which the compiled code keeps it
            # (M, outputs, features + 1): the bias of each output beside its weights
            "parameters": torch.cat([weight, initial[:, -n_outputs:, None]], dim=2),
            "rows": torch.from_numpy(np.array(state.rows)),
            "errors": torch.from_numpy(np.array(state.errors)),
            "multipliers": torch.from_numpy(self.multipliers),
            "weights": torch.from_numpy(np.ascontiguousarray(fairness.weights)).reshape(-1),
            "seen": torch.tensor([float(state.seen)], dtype=torch.float64),
        }
        self.shapes = {name: tensor.shape for name, tensor in start.items()}
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
            *list(start.values())[1:],
            self.counts,
            self.loss,
            self.slots,
            *(torch.zeros(size, dtype=table.dtype) for size in scratch),
            *(empty(size) for size in ((stride + 1) * n_cells, stride * n_cells)),
            *(empty(size) for size in (plane, n_numbers)),
            *(torch.zeros(most_rows, dtype=torch.int64), empty(most_rows)),
            torch.zeros(most_rows, dtype=torch.int64),
        )
        contiguous = [None if array is None else array.contiguous() for array in arrays]
        addresses = tuple(0 if array is None else array.data_ptr() for array in contiguous)
        self.models = compiled_code.prepare_models(step.problem, tuple(map(int, sizes)), addresses)
        self._alive = contiguous, step  # the models hold nothing but their addresses

    def epoch(self) -> bool:
        """Trains one more epoch; whether all numbers are finite."""
        rows, judges = self.stack.batches.shuffled(), self.is_judged_later and self.n_done > 0
        before = self.multipliers.copy()
        place, factors = 0 if judges else -1, self.factors[self.n_done]
        addresses = (rows.data_ptr(), len(rows), factors.data_ptr())
        finite: bool = compiled_code.epoch(self.models, self.n_done, place, *addresses)
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
        finite: bool = compiled_code.epoch(self.models, self.n_done, 0, 0, 0, 0)
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
        first, states = max(0, self.n_done - self.stack.plan.keep), {}
        for epoch in range(first, self.n_done):
            kept, m = self._slot(epoch), len(self.stack.members)
            weight, bias = kept["parameters"][:, :, :-1], kept["parameters"][:, :, -1]
            parameters = torch.cat([weight.reshape(m, -1), bias], dim=1)
            multipliers = kept["multipliers"].view(len(self.multipliers), m, -1).transpose(0, 1)
            states[epoch] = {
                "network.parameters": parameters.to(self.stack.table.dtype),
                "fairness.multipliers": multipliers.reshape(m, -1),
                "fairness.seen": kept["seen"].expand(m, 1).clone(),
                "fairness.rows": kept["rows"].view(m, -1),
                "fairness.errors": kept["errors"].view(m, -1),
                "fairness.weights": kept["weights"].view(m, -1),
            }
        return states

    def _slot(self, epoch: int) -> dict[str, Tensor]:
        """The state after one of the last epochs, as the compiled code has it."""
        slot = self.slots[epoch % len(self.slots)]
        sizes = [shape.numel() for shape in self.shapes.values()]
        pieces = zip(self.shapes.items(), torch.split(slot, sizes), strict=True)
        return {name: tensor.view(shape).clone() for (name, shape), tensor in pieces}
