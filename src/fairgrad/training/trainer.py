"""Trains a stack of models: steps, epochs, records, divergence, interruption.

What a step of a linear model computes is so little that starting its operations costs most of the
time. So compiled code trains all linear members for one epoch, and judges them, in one call
(`LinearEpochs`). It gives what single steps give, up to rounding: scores, and gradients of a step,
are in the precision of the features, counts and all state in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad import dual
from fairgrad.checks import warn
from fairgrad.compiled import compiled_code, is_compiled, on_cpu, prepare
from fairgrad.progress import ProgressBar
from fairgrad.training.plan import Batches, TrainingPlan
from fairgrad.training.stack import History, Stack, StackParts, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats
    from fairgrad.training.plan import Member, TrainingTable

VECTOR = {torch.float32: 8, torch.float64: 4}
"""Models, current and averaged, stand side by side in multiples of so many."""

MOST_JUDGED = 512
"""Rows that models are judged by at a time, or those of a batch if these are more."""


@dataclass(frozen=True, eq=False)
class Training:
    """The outcome of training a stack of M members.

    Attributes:
        history: records of all epochs, (epochs, M, ...).
        kept: the states of the last epochs, by epoch.
        constraints: (M,) what each member was asked for; None for a plain model.
        stopped: (M,) why a member was stopped, or None.
        interrupted: whether Ctrl-C ended the training.
    """

    history: History
    kept: dict[int, State]
    constraints: tuple[Constraints | None, ...]
    stopped: tuple[str | None, ...]
    interrupted: bool

    def state(self, member: int, epoch: int | None = None) -> State:
        """All tensors of one model, as a stack of one; by default after the last epoch."""
        chosen = slice(member, member + 1)
        state = self.kept[max(self.kept) if epoch is None else epoch]
        return {name: tensor[chosen].clone() for name, tensor in state.items()}


@on_cpu
def train(
    table: TrainingTable,
    members: Sequence[Member],
    plan: TrainingPlan | None = None,
    *,
    rows: Any = None,
    validation: Any = None,
    parts: StackParts | None = None,
    progress: bool | None = False,
) -> Training:
    """Trains many models together.

    Ctrl-C ends the training after the last complete epoch: what was kept so far is returned.

    Args:
        table: the rows.
        members: the models: rates and slack of each.
        plan: what they have in common.
        rows: numbers of the training rows; None for all.
        validation: numbers of the rows that epochs are judged on; None for the training rows.
        parts: puts other parts into the stack.
        progress: True shows a bar, None only when it takes long and on a terminal.

    Raises:
        ValueError: if an argument has a value that is not allowed.

    Example:
        >>> import numpy as np
        >>> from fairgrad.training import Member, TrainingPlan, TrainingTable, train
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(0, 2, 400)
        >>> X = rng.normal(size=(400, 2)) + 0.5 * s[:, None]
        >>> y = (X.sum(1) + rng.normal(size=400) > 0.5).astype(int)
        >>> table = TrainingTable.from_data(X, y, s)
        >>> members = [Member(epsilon=epsilon, fairness_rate=0.05) for epsilon in (0.0, 0.1, 1.0)]
        >>> plan = TrainingPlan(epochs=40, fairness_measure="demographic_parity")
        >>> unfairness = train(table, members, plan).history.unfairness
        >>> unfairness.shape, int(unfairness[-1].argmin())
        ((40, 3), 0)
    """
    if not members:
        raise ValueError("members: expected at least one, got none.")
    plan = plan or TrainingPlan()
    stack = Stack(table, members, plan, rows=rows, validation=validation, parts=parts)
    is_fast = (  # linear models on dense rows, trained by the paper's own descent and loss
        is_compiled
        and stack.is_linear
        and not stack.optimizer.state
        and stack.fairness.n_outcomes == 1
        and isinstance(table.X, Tensor)
        and table.dtype in VECTOR
    )
    trained = LinearEpochs(stack).run(progress) if is_fast else None
    if trained is None:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)  # for parts that draw from PyTorch's own generator
            trained = SingleSteps(stack).run(progress)
    return trained


class LinearEpochs:
    """Linear models of a stack, trained epoch by epoch; the stack itself stays as it is.

    If models are judged by the rows they are trained on, an epoch is judged while the next goes
    over these rows.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack, plan, fairness, table = stack, stack.plan, stack.fairness, stack.table
        n_members, n_features, n_outputs = len(stack.members), stack.sizes[0], stack.sizes[-1]
        self.batches = batches = Batches(stack.rows, plan.seed, plan.batch_size)
        n_cells, (problem, memory) = fairness.n_cells, prepare(fairness.constants)
        n_steps = plan.epochs * batches.n_steps
        factors = plan.rate_factor(np.arange(n_steps) / n_steps)
        self.factors = torch.from_numpy(factors).view(plan.epochs, -1)
        first_averaged = n_steps - round(plan.average_last * n_steps)

        state, initial = fairness.state, stack.network.parameters.double()
        self.multipliers = np.array(state.multipliers)
        weight = initial[:, :-n_outputs].view(n_members, n_outputs, -1)
        # (M, outputs, features + 1): the bias of each output beside its weights
        theta = torch.cat([weight, initial[:, -n_outputs:, None]], dim=2)
        others = (
            torch.from_numpy(np.array(state.rows)),
            torch.from_numpy(np.array(state.errors)),
            torch.from_numpy(self.multipliers),
            torch.from_numpy(np.ascontiguousarray(fairness.weights)).reshape(-1),
            torch.tensor([float(state.seen)], dtype=torch.float64),
        )
        self.shapes = [tensor.shape for tensor in (theta, *others)]  # as `slots` has them
        n_state = sum(shape.numel() for shape in self.shapes)
        n_slots = plan.keep + 1  # one more than are kept: an epoch may be interrupted
        double, whole = torch.float64, torch.int64
        self.counts = torch.zeros(plan.epochs, n_members, 2, n_cells, dtype=double)
        self.loss = torch.zeros(plan.epochs, n_members, dtype=double)
        self.slots = torch.zeros(n_slots, n_state, dtype=double)
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
        n_numbers = max(2 * n_members * n_cells, n_outputs * (n_features + 1))
        scratch = (plane * n_features, plane, plane * most_rows, plane * n_features, 3 * stride)
        numbers = ((stride + 1) * n_cells, stride * n_cells, plane, n_numbers)
        descent = stack.optimizer
        arrays = (
            table.X,
            (table.label * fairness.n_groups + table.group).int(),
            stack.judged,
            None if table.weight is None else table.weight.double(),
            *(tensor.double().view(-1) for tensor in (descent.rate, descent.decay, descent.clip)),
            stack.network.gain[-1:].double(),
            torch.stack([theta] * 2),
            theta.clone(),
            *others,
            self.counts,
            self.loss,
            self.slots,
            *(torch.zeros(size, dtype=table.dtype) for size in scratch),
            *(torch.zeros(size, dtype=double) for size in numbers),
            *(torch.zeros(most_rows, dtype=dtype) for dtype in (whole, double, whole)),
        )
        contiguous = [None if array is None else array.contiguous() for array in arrays]
        addresses = tuple(0 if array is None else array.data_ptr() for array in contiguous)
        self.models = compiled_code.prepare_models(problem, tuple(map(int, sizes)), addresses)
        self._alive = contiguous, problem, memory  # the models hold nothing but their addresses

    def run(self, progress: bool | None) -> Training | None:
        """Trains all epochs; None if a number is not finite: single steps stop such members."""
        stack, plan = self.stack, self.stack.plan
        n_members, is_judged_later = len(stack.members), stack.judged is stack.rows
        net: list[Floats] = []  # after each epoch
        bar, finite, interrupted = ProgressBar(plan.epochs, enabled=progress), True, False
        try:
            for epoch in bar:
                rows, factors = self.batches.shuffled(), self.factors[epoch]
                judged = epoch - 1 if is_judged_later else -1
                addresses = (rows.data_ptr(), len(rows), factors.data_ptr())
                finite = compiled_code.epoch(self.models, epoch, judged, *addresses)
                now = dual.net_multipliers(stack.fairness.constants, self.multipliers)
                net.append(now.reshape(n_members, -1))
                if not is_judged_later:
                    judged, finite = epoch, self._judge(epoch) and finite
                if not finite:
                    return None
                if bar.is_shown and judged >= 0:
                    place = slice(judged, judged + 1)
                    counts, loss = self.counts[place].numpy(), self.loss[place].numpy()
                    bar.text = _describe(stack.record(counts, loss, np.stack(net[place])))
        except KeyboardInterrupt:
            interrupted = True
        n_done = len(net)
        if n_done == 0:  # not even one epoch: the initial weights
            return _trained(stack, [stack.judge()], {0: stack.state()}, interrupted=True)
        if (is_judged_later or interrupted) and not self._judge(n_done - 1):
            return None
        counted = zip(self.counts[:n_done].numpy(), self.loss[:n_done].numpy(), net, strict=True)
        return _trained(stack, counted, self._kept(n_done), interrupted=interrupted)

    def _judge(self, epoch: int) -> bool:
        """Judges the models of the last epoch; whether all numbers are finite."""
        self.counts[epoch] = self.loss[epoch] = 0  # the next epoch may have been interrupted
        return bool(compiled_code.epoch(self.models, epoch, epoch, 0, 0, 0))

    def _kept(self, n_done: int) -> dict[int, State]:
        """The states of the last epochs, by epoch."""
        m, states = len(self.stack.members), {}
        for epoch in range(max(0, n_done - self.stack.plan.keep), n_done):
            slot, sizes = self.slots[epoch % len(self.slots)], [s.numel() for s in self.shapes]
            theta, rows, errors, multipliers, weights, seen = (
                piece.view(shape).clone()
                for piece, shape in zip(torch.split(slot, sizes), self.shapes, strict=True)
            )
            parameters = torch.cat([theta[:, :, :-1].reshape(m, -1), theta[:, :, -1]], dim=1)
            by_member = multipliers.view(len(multipliers), m, -1).transpose(0, 1)
            states[epoch] = {
                "network.parameters": parameters.to(self.stack.table.dtype),
                "fairness.multipliers": by_member.reshape(m, -1),
                "fairness.seen": seen.expand(m, 1).clone(),
                "fairness.rows": rows.view(m, -1),
                "fairness.errors": errors.view(m, -1),
                "fairness.weights": weights.view(m, -1),
            }
        return states


class SingleSteps:
    """A stack trained step by step; members that diverge are put back."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.counted: list[tuple[Floats, Floats, Floats]] = []  # after each epoch
        self.kept: dict[int, State] = {}
        self.sound = stack.state()  # before the first step
        self.stopped: list[str | None] = [None] * len(stack.members)
        floats = [t for t in stack.network.buffers.values() if t.is_floating_point()]
        self.averaged = [stack.network.parameters, *floats]
        self.means: list[Tensor] = []  # of these, over the last steps

    def run(self, progress: bool | None) -> Training:
        """Trains all epochs."""
        stack, plan, done, interrupted = self.stack, self.stack.plan, 0, False
        n_steps = plan.epochs * stack.batches.n_steps
        first_averaged = n_steps - round(plan.average_last * n_steps)
        bar = ProgressBar(plan.epochs, enabled=progress)
        try:
            for epoch in bar:
                for rows in stack.batches.epoch():
                    stack.step(rows, plan.rate_factor(done / n_steps))
                    done += 1
                    if done > first_averaged:
                        self.means = self.means or [tensor.clone() for tensor in self.averaged]
                        for mean, tensor in zip(self.means, self.averaged, strict=True):
                            mean.lerp_(tensor, 1 / (done - first_averaged))
                self._close(epoch)
                if bar.is_shown:
                    counted = (numbers[None] for numbers in self.counted[-1])
                    bar.text = _describe(stack.record(*counted))
        except KeyboardInterrupt:
            interrupted = True
            if not self.counted:  # not even one epoch: the initial weights
                self._close(0)
        for member, reason in enumerate(self.stopped):
            if reason is not None:
                warn(f"Member {member} {reason}.", RuntimeWarning)
        return _trained(stack, self.counted, self.kept, self.stopped, interrupted=interrupted)

    def _close(self, epoch: int) -> None:
        """Records and keeps the models of an epoch; puts those that diverged back."""
        counted, state = self._snapshot()
        diverged = ~torch.from_numpy(np.isfinite(counted[1]))
        for tensor in state.values():
            if tensor.is_floating_point() and tensor.ndim > 1:
                diverged |= ~torch.isfinite(tensor).flatten(1).all(1)
        if diverged.any():
            sound, state = self.kept.get(epoch - 1, self.sound), self.stack.state()
            for name, tensor in state.items():
                tensor[diverged] = sound[name][diverged]
            self.stack.load(state)
            for mean, tensor in zip(self.means, self.averaged, strict=False):
                mean[diverged] = tensor[diverged]
            for member in torch.nonzero(diverged)[:, 0].tolist():
                self.stopped[member] = self.stopped[member] or (
                    f"diverged in epoch {epoch}: its weights or its loss are not finite; its last "
                    "sound weights are kept. Lower learning_rate or fairness_rate, or set clip_norm"
                )
            counted, state = self._snapshot()
        self.counted.append(counted)
        self.kept[epoch] = state
        self.kept.pop(epoch - self.stack.plan.keep, None)

    def _snapshot(self) -> tuple[tuple[Floats, Floats, Floats], State]:
        """The models judged, and their state, with the means of their weights if there are any."""
        current = [tensor.clone() for tensor in self.averaged]
        for tensor, mean in zip(self.averaged, self.means, strict=False):
            tensor.copy_(mean)
        counted, state = self.stack.judge(), self.stack.state()
        for tensor, saved in zip(self.averaged, current, strict=True):
            tensor.copy_(saved)
        return counted, state


def _trained(
    stack: Stack,
    counted: Iterable[tuple[Floats, Floats, Floats]],
    kept: dict[int, State],
    stopped: Sequence[str | None] = (),
    *,
    interrupted: bool,
) -> Training:
    """What was trained, from what `Stack.judge` gave after each epoch."""
    return Training(
        history=stack.record(*map(np.stack, zip(*counted, strict=True))),
        kept=kept,
        constraints=stack.fairness.constraints,
        stopped=tuple(stopped) or (None,) * len(stack.members),
        interrupted=interrupted,
    )


def _describe(record: History) -> str:
    accuracy = f"accuracy {np.nanmax(record.accuracy):.4f}"
    if np.isnan(record.unfairness).all():
        return accuracy
    return f"{accuracy}, unfairness {np.nanmin(record.unfairness):.4f}"
