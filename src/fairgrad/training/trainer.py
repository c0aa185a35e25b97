"""Trains a stack: epochs, divergence, interruption; and what this gives."""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from fairgrad.torch.compiled import on_cpu
from fairgrad.training.evaluation import History, as_rule
from fairgrad.training.linear import compiled_epochs
from fairgrad.training.networks import ModuleStack, PerceptronStack, build
from fairgrad.training.optimizers import WeightAverage
from fairgrad.training.plan import TrainingPlan
from fairgrad.training.stack import Stack, StackState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.progress import Progress
    from torch import Tensor, nn

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats
    from fairgrad.training.plan import Member, Shape
    from fairgrad.training.stack import StackParts, State
    from fairgrad.training.table import TrainingTable

PATIENCE = 2.0
"""Seconds of work before a progress bar appears."""


class Choice(NamedTuple):
    """A model that was kept.

    Attributes:
        member: which member it is of.
        epoch: after which epoch (counted from 0) it was kept.
        accuracy: on the validation rows.
        unfairness: on the validation rows.
        merit: what it is chosen by: the accuracy, or with costs as `History` has it.
    """

    member: int
    epoch: int
    accuracy: float
    unfairness: float
    merit: float


@dataclass(frozen=True, eq=False)
class Training:
    """The outcome of training a stack of M members.

    Attributes:
        history: records of all epochs, (epochs, M, ...).
        kept: the states of the last epochs, by epoch; members in the order they were given.
        shape: of the networks; None if a module was trained.
        constraints: (M,) what each member was asked for; None for a plain model.
        stopped: (M,) why a member was stopped, or None.
        interrupted: whether Ctrl-C ended the training.
    """

    history: History
    kept: dict[int, State]
    shape: Shape | None
    constraints: tuple[Constraints | None, ...]
    stopped: tuple[str | None, ...]
    interrupted: bool

    def select(
        self,
        rule: Any = "fairest_of_accurate",
        members: Sequence[int] | None = None,
        epochs: Sequence[int] | None = None,
    ) -> Choice:
        """The best of the models kept, of some members or of all.

        Args:
            rule: its name, or a function such as `fairest_of_accurate`.
            members: whose models are the candidates.
            epochs: of which epochs, among those kept.
        """
        n_members = self.history.accuracy.shape[1]
        chosen = range(n_members) if members is None else members
        candidates = [c for member in chosen for c in self.candidates(member, epochs)]
        return candidates[best_choice(rule, candidates)]

    def candidates(self, member: int, epochs: Sequence[int] | None = None) -> list[Choice]:
        """The models of a member that were kept, of some epochs or of all."""
        figures = (self.history.accuracy, self.history.unfairness, self.history.merit)
        return [
            Choice(member, epoch, *(float(part[epoch, member]) for part in figures))
            for epoch in epochs or self.kept
        ]

    @property
    def last_epoch(self) -> int:
        """The last epoch that was completed."""
        return max(self.kept)

    def state(self, choice: Choice) -> State:
        """All tensors of one model, as a stack of one; training can start from them again."""
        own = slice(choice.member, choice.member + 1)
        return {name: tensor[own].clone() for name, tensor in self.kept[choice.epoch].items()}

    def scores(self, choice: Choice, X: Any) -> Floats:
        """(n, outputs) the scores of rows: a margin for two labels, else one logit per label.

        Raises:
            ValueError: if a module was trained, whose scores only the module itself can give.
        """
        if self.shape is None:
            raise ValueError("scores: a module was trained; load the choice's state into it.")
        return network_scores(self.shape, self.state(choice), X)


def best_choice(rule: Any, candidates: Sequence[Choice]) -> int:
    """The position of the best of some candidates, which may be of several trainings."""
    merit = np.array([choice.merit for choice in candidates])
    return as_rule(rule)(merit, np.array([choice.unfairness for choice in candidates]))


@on_cpu
def network_scores(shape: Shape, state: dict[str, Any], X: Any) -> Floats:
    """(n, outputs) scores of rows (n, features) by a network rebuilt from its state.

    The state, tensors or arrays of a stack of one, holds ``network.parameters`` and ``buffers.*``.
    """
    dtype = torch.as_tensor(state["network.parameters"]).dtype
    network = build(shape, 1, [0], dtype)
    parts = {"network": {"parameters": network.parameters}, "buffers": network.buffers}
    StackState(parts).load(state)
    scores = network.scores(torch.as_tensor(X, dtype=dtype)[None])[0].T
    return scores.contiguous().numpy()


@on_cpu
def last_inputs(shape: Shape, state: dict[str, Any], X: Any) -> Floats:
    """(n, units) what the last layer of a network sees of rows (n, features)."""
    dtype = torch.as_tensor(state["network.parameters"]).dtype
    network = build(shape, 1, [0], dtype)
    assert isinstance(network, PerceptronStack)  # noqa: S101 - a linear model sees the features
    parts = {"network": {"parameters": network.parameters}, "buffers": network.buffers}
    StackState(parts).load(state)
    with torch.no_grad():
        return network.activations(torch.as_tensor(X, dtype=dtype)[None])[0].T.double().numpy()


@on_cpu
def trained_module(module: nn.Module, state: dict[str, Any]) -> nn.Module:
    """A copy of a module with the parameters and buffers of a trained stack of one."""
    stack = ModuleStack(module, n_streams=1, n_members=1, n_labels=2)
    parts = {"network": {"parameters": stack.parameters}, "buffers": stack.buffers}
    StackState(parts).load(state)
    trained = copy.deepcopy(module)
    stack.load_into(trained, 0)
    return trained


@on_cpu
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
        parts: puts other parts into the stack.
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
    plan = plan or TrainingPlan()
    run = TrainingRun(Stack(table, members, plan, module, parts), plan)
    if start is not None:
        own = {name: torch.as_tensor(value)[run.stack.order] for name, value in start.items()}
        run.stack.state.load(run.stack.fairness.adapt(own))
    if run.go_compiled(progress):
        return run.outcome()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(members[0].seed)  # for the dropout of modules; own networks have theirs
        run.go(progress)
    return run.outcome()


class TrainingRun:
    """One training in progress.

    Args:
        stack: what is trained.
        plan: how.
    """

    def __init__(self, stack: Stack, plan: TrainingPlan) -> None:
        self.stack, self.plan = stack, plan
        self.records: list[History] = []
        self.kept: dict[int, State] = {}
        self.initial = stack.state.copy()
        self.stopped: list[str | None] = [None] * len(stack.order)
        self.is_stopped: Tensor | None = None
        self.interrupted = False
        n_steps = plan.epochs * stack.streams.n_steps
        self.n_steps, self.steps_done = n_steps, 0
        self.average = WeightAverage(
            stack.network, first_step=n_steps - round(plan.average_last * n_steps)
        )

    def go(self, progress: bool | None) -> None:
        """Trains all epochs by single steps."""
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

    def go_compiled(self, progress: bool | None) -> bool:
        """Trains whole epochs of linear models; False if it must be done by `go` instead.

        That is so too if a number is not finite: members that diverge are stopped there.
        """
        epochs = compiled_epochs(self.stack, self.plan)
        if epochs is None:
            return False
        bar = EpochBar(self.plan.epochs, enabled=progress)
        try:
            for _ in bar:
                if not epochs.epoch():
                    epochs.batches.restart()
                    return False
                if bar.is_shown and epochs.record():
                    bar.text = _describe(epochs.records[-1])
        except KeyboardInterrupt:
            self.interrupted = True
            if epochs.n_done == 0:  # not even one epoch: the weights as they are
                self._close(0)
                return True
        if not epochs.record():
            epochs.batches.restart()
            return False
        self.records, self.kept = epochs.records, epochs.kept()
        return True

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
        record, state = self._snapshot()
        diverged = not_finite(state) | ~torch.from_numpy(np.isfinite(record.loss[0]))
        if self.is_stopped is not None:
            diverged &= ~self.is_stopped
        if diverged.any():
            self._stop(diverged, epoch)
            record, state = self._snapshot()
        self.records.append(record)
        self.kept[epoch] = state
        self.kept.pop(epoch - self.plan.keep, None)

    def _snapshot(self) -> tuple[History, State]:
        with self.average.shown():
            return self.stack.evaluation.record(self.stack.network), self.stack.state.copy()

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
        """What was trained, with the members in the order they were given."""
        back = np.argsort(self.stack.order)
        stopped = tuple(self.stopped[i] for i in back)
        for member, reason in enumerate(stopped):
            if reason is not None:
                warnings.warn(f"Member {member} {reason}.", RuntimeWarning, stacklevel=3)
        return Training(
            history=History.join(self.records, back),
            kept={
                epoch: {name: tensor[back] for name, tensor in state.items()}
                for epoch, state in self.kept.items()
            },
            shape=self.stack.shape,
            constraints=tuple(self.stack.fairness.constraints[i] for i in back),
            stopped=stopped,
            interrupted=self.interrupted,
        )


def not_finite(state: State) -> Tensor:
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


def _describe(record: History) -> str:
    accuracy = f"accuracy {np.nanmax(record.accuracy):.4f}"
    if np.isnan(record.unfairness).all():
        return accuracy
    return f"{accuracy}, unfairness {np.nanmin(record.unfairness):.4f}"


class EpochBar:
    """Counts epochs, or other units of work, and shows what the caller says of each.

    `enabled` True shows the bar at once, False never, None on a terminal when the work lasts.
    """

    def __init__(self, n_epochs: int, *, enabled: bool | None, unit: str = "epochs") -> None:
        self.n_epochs, self.enabled, self.unit = n_epochs, enabled, unit
        self.text = ""
        self._bar: Progress | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the bar is there already."""
        return self._bar is not None

    def __iter__(self) -> Iterator[int]:
        started = time.monotonic()
        try:
            for epoch in range(self.n_epochs):
                yield epoch
                lasts = time.monotonic() - started > PATIENCE
                if self._bar is None and (lasts if self.enabled is None else self.enabled):
                    self._show()
                if self._bar is not None:
                    self._bar.update(self._bar.task_ids[0], completed=epoch + 1, text=self.text)
        finally:
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - loaded only where a bar is shown
        from rich.progress import Progress  # noqa: PLC0415

        console = Console(stderr=True)
        if self.enabled is None and not console.is_terminal:
            self.enabled = False
            return
        self._bar = Progress(
            *Progress.get_default_columns(), "{task.fields[text]}", console=console
        )
        self._bar.add_task(self.unit, total=self.n_epochs, text=self.text)
        self._bar.start()
