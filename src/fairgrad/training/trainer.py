"""Trains a stack: epochs, records, divergence, interruption."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad.training.averaging import Average
from fairgrad.training.plan import TrainingPlan
from fairgrad.training.progress import EpochBar
from fairgrad.training.records import History
from fairgrad.training.stack import Stack
from fairgrad.training.training import Training

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor, nn

    from fairgrad.training.member import Member
    from fairgrad.training.parts import StackParts
    from fairgrad.training.records import Record
    from fairgrad.training.state import State
    from fairgrad.training.table import TrainingTable


def train(
    table: TrainingTable,
    members: Sequence[Member],
    plan: TrainingPlan | None = None,
    *,
    module: nn.Module | None = None,
    parts: StackParts | None = None,
    start: Mapping[str, Any] | None = None,
    progress: bool | None = False,
) -> Training:
    """Trains many models as one.

    Ctrl-C ends the training after the last complete epoch: what was kept so far is returned.

    Args:
        table: the rows.
        members: the models: rows, seeds, rates, constraints of each.
        plan: what they have in common.
        module: trains copies of this module, which is left as it is, in place of own networks.
        parts: puts other parts into the stack: see `fairgrad.training.parts`.
        start: continues from this state (`Training.state`), each entry (M, ...).
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
        >>> fair = dict(fairness_measure="demographic_parity", fairness_rate=0.05)
        >>> members = [Member(epsilon=epsilon, **fair) for epsilon in (0.0, 0.1, 1.0)]
        >>> training = train(table, members, TrainingPlan(epochs=40))
        >>> training.history.unfairness.shape
        (40, 3)
        >>> training.select("fairest").member
        0
    """
    if not members:
        raise ValueError("members: expected at least one, got none.")
    run = _Run(Stack(table, members, plan or TrainingPlan(), module, parts), plan or TrainingPlan())
    if start is not None:
        own = {name: torch.as_tensor(value)[run.stack.order] for name, value in start.items()}
        run.stack.state.load(own)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(members[0].seed)  # for the dropout of modules; own networks have theirs
        run.go(progress)
    return run.outcome()


class _Run:
    """One training in progress."""

    def __init__(self, stack: Stack, plan: TrainingPlan) -> None:
        self.stack, self.plan = stack, plan
        self.records: list[Record] = []
        self.kept: dict[int, State] = {}
        self.initial = stack.state.copy()
        self.stopped: list[str | None] = [None] * len(stack.order)
        self.is_stopped: Tensor | None = None
        self.interrupted = False
        n_steps = plan.epochs * stack.streams.n_steps
        self.n_steps, self.steps_done = n_steps, 0
        self.average = Average(stack, first_step=n_steps - round(plan.average_last * n_steps))

    def go(self, progress: bool | None) -> None:
        bar = EpochBar(self.plan.epochs, enabled=progress)
        try:
            for epoch in bar:
                self._epoch()
                self._close(epoch)
                bar.text = _describe(self.records[-1])
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.records:  # not even one epoch: the weights as they are
                self._close(0)

    def _epoch(self) -> None:
        state = self.stack.state
        for indices in self.stack.streams.epoch():
            factor = self.plan.rate_factor(self.steps_done / self.n_steps)
            with state.held(_either(self.is_stopped, self.stack.finished(indices))):
                self.stack.step(indices, factor)
            self.average.take(self.steps_done)
            self.steps_done += 1

    def _close(self, epoch: int) -> None:
        """Records and keeps the models of an epoch; stops those that diverged."""
        with self.average.shown():
            record, state = self._record(), self.stack.state.copy()
        diverged = _not_finite(state) | ~torch.from_numpy(np.isfinite(record.loss))
        if self.is_stopped is not None:
            diverged &= ~self.is_stopped
        if diverged.any():
            self._stop(diverged, epoch)
            with self.average.shown():
                record, state = self._record(), self.stack.state.copy()
        self.records.append(record)
        self.kept[epoch] = state
        self.kept.pop(epoch - self.plan.keep, None)

    def _record(self) -> Record:
        return self.stack.evaluation.record(self.stack.network)

    def _stop(self, diverged: Tensor, epoch: int) -> None:
        """Puts these members back to the last epoch that was sound and leaves them there."""
        sound = self.kept.get(epoch - 1, self.initial)
        whole = self.stack.state.copy()
        for name, tensor in whole.items():
            tensor[diverged] = sound[name][diverged]
        self.stack.state.load(whole)
        self.average.restart(diverged)
        self.is_stopped = diverged if self.is_stopped is None else self.is_stopped | diverged
        for member in torch.nonzero(diverged)[:, 0].tolist():
            self.stopped[member] = (
                f"diverged in epoch {epoch}: its weights or its loss are not finite; its last "
                "sound weights are kept. Lower learning_rate or fairness_rate, or set clip_norm"
            )

    def outcome(self) -> Training:
        back = np.argsort(self.stack.order)
        stopped = tuple(self.stopped[i] for i in back)
        for member, reason in enumerate(stopped):
            if reason is not None:
                warnings.warn(f"Member {member} {reason}.", RuntimeWarning, stacklevel=3)
        return Training(
            history=History.of([record.reorder(back) for record in self.records]),
            kept={
                epoch: {name: tensor[back] for name, tensor in state.items()}
                for epoch, state in self.kept.items()
            },
            shape=self.stack.shape,
            stopped=stopped,
            interrupted=self.interrupted,
        )


def _not_finite(state: State) -> Tensor:
    """(M,) whether anything of a member is not a finite number."""
    broken = [
        ~torch.isfinite(tensor).flatten(1).all(1)
        for tensor in state.values()
        if tensor.is_floating_point() and tensor.ndim > 1
    ]
    return torch.stack(broken).any(0)


def _either(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _describe(record: Record) -> str:
    accuracy = f"accuracy {np.nanmax(record.accuracy):.4f}"
    if np.isnan(record.unfairness).all():
        return accuracy
    return f"{accuracy}, unfairness {np.nanmin(record.unfairness):.4f}"
