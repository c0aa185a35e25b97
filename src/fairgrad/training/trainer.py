"""Trains a stack of models: steps, epochs, records, divergence, interruption.

Scores are (M, outputs, B): one output is the margin between two labels, several are logits. All
members see the same batches, so that rows are gathered once and multiplied in one product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fairgrad import dual
from fairgrad.checks import warn
from fairgrad.evaluate import unfairness
from fairgrad.progress import ProgressBar
from fairgrad.torch.compiled import on_cpu
from fairgrad.training.fairness import StackedFairness
from fairgrad.training.linear import compiled_epochs
from fairgrad.training.networks import Descent, Network, Perceptrons, WeightAverage
from fairgrad.training.plan import Batches, TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats
    from fairgrad.training.plan import Member, TrainingTable

State = dict[str, Tensor]
"""Everything that training changes, each tensor (M, ...)."""

Objective = Callable[[Tensor, Tensor], Tensor]
"""From scores (M, outputs, B) of rows (B,) to the gradient of each member's loss by them.

An objective with a dictionary `state` of tensors (M, ...) has it kept with the models'.
"""

MAX_ACTIVATIONS = 2**18
"""Rows are judged in pieces of so many activations, which stay in the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class StackParts:
    """Functions of the stack that make its parts; None leaves the stack its own.

    Methods that train small networks by gradient steps differ from FairGrad in these.

    Attributes:
        network: the models.
        objective: the gradient by the scores.
        batches: the rows of each step, as `Batches` has them.
    """

    network: Callable[[Stack], Network] | None = None
    objective: Callable[[Stack], Objective] | None = None
    batches: Callable[[Stack], Any] | None = None


@dataclass(frozen=True, eq=False)
class History:
    """How good M models were after each of some epochs, on their validation rows.

    Attributes:
        accuracy: (epochs, M).
        merit: (epochs, M) what models are chosen by: the accuracy; with costs one less the mean
            cost as a share of that of the costliest mistake.
        loss: (epochs, M) mean cross-entropy, without fairness weights.
        unfairness: (epochs, M) as `fairgrad.evaluate.unfairness` has it; NaN without a measure.
        levels: (epochs, M, J) levels of fairness, NaN where not defined.
        multipliers: (epochs, M, J) net multipliers, lambda - delta.
    """

    accuracy: Floats
    merit: Floats
    loss: Floats
    unfairness: Floats
    levels: Floats
    multipliers: Floats

    @classmethod
    def join(cls, histories: Sequence[History]) -> History:
        """The epochs of several histories one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(one, name) for one in histories]) for name in names))

    def __len__(self) -> int:
        return len(self.accuracy)


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

    @property
    def last_epoch(self) -> int:
        """The last epoch that was completed."""
        return max(self.kept)

    def state(self, member: int, epoch: int | None = None) -> State:
        """All tensors of one model, as a stack of one; by default after the last epoch."""
        chosen = slice(member, member + 1)
        state = self.kept[self.last_epoch if epoch is None else epoch]
        return {name: tensor[chosen].clone() for name, tensor in state.items()}


def predictions(scores: Tensor) -> Tensor:
    """(M, B) the index of the predicted label. A margin of 0 is the first, as for a softmax."""
    return scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).long()


def residual(scores: Tensor, label: Tensor) -> Tensor:
    """(M, outputs, B) the gradient of each row's cross-entropy: probability less label."""
    if scores.shape[1] == 1:
        return scores.sigmoid() - label
    return scores.softmax(1) - functional.one_hot(label, scores.shape[1]).T


def losses(scores: Tensor, label: Tensor) -> Tensor:
    """(M, B) each row's cross-entropy."""
    if scores.shape[1] == 1:
        return (functional.softplus(scores) - label * scores)[:, 0]
    index = label.expand(len(scores), 1, -1)
    return (scores.logsumexp(1, keepdim=True) - scores.gather(1, index))[:, 0]


class Stack:
    """M models with all they need to take a step and to be judged; arguments as of `train`."""

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        plan: TrainingPlan,
        *,
        rows: Any = None,
        validation: Any = None,
        parts: StackParts | None = None,
    ) -> None:
        parts = parts or StackParts()
        self.table, self.members, self.plan = table, members, plan
        trained, judged = table.check_rows(rows, "rows"), table.check_rows(validation, "validation")
        self.rows = torch.arange(len(table)) if trained is None else torch.from_numpy(trained)
        self.judged = self.rows if judged is None else torch.from_numpy(judged)
        self.fairness = StackedFairness(table, members, plan, trained)
        n_labels = table.n_labels
        self.sizes = (table.X.shape[1], *plan.hidden, 1 if n_labels == 2 else n_labels)
        self.network: Network
        if parts.network is not None:
            self.network = parts.network(self)
        else:
            self.network = Perceptrons(
                self.sizes, len(members), plan.seed, plan.dropout, table.dtype
            )
        self.optimizer = Descent(plan.solver, members, self.network)
        self.batches: Any = Batches(self.rows, plan.seed, plan.batch_size)
        if parts.batches is not None:
            self.batches = parts.batches(self)
        self.objective: Objective = self.fair_objective
        if parts.objective is not None:
            self.objective = parts.objective(self)
        self.is_linear = parts == StackParts() and not plan.hidden
        self._judged_groups = table.frequencies(trained if judged is None else judged)
        self._judged_by = self.fairness.constraints_on(self._judged_groups)
        self._cost_shares = dual.cost_shares(plan.cost_matrix, n_labels)

    def step(self, rows: Tensor, factor: float) -> None:
        """One step on a batch of rows; `factor` multiplies the learning rates."""
        leaf = self.network.parameters.detach().requires_grad_()
        with torch.enable_grad():
            scores = self.network.scores_with(leaf, self.table.take(rows))
        by_scores = self.objective(scores.detach(), rows)
        (gradient,) = torch.autograd.grad(scores, leaf, by_scores)
        self.optimizer.step(gradient, factor)

    def fair_objective(self, scores: Tensor, rows: Tensor) -> Tensor:
        """The gradient of the method's loss by the scores (M, outputs, B)."""
        label, weights = (
            self.table.label[rows],
            self.fairness.row_weights(rows, predictions(scores)),
        )
        if self.fairness.n_outcomes > 1:  # of sum_l t_l (-log p_l), with weights t
            target = weights.to(scores.dtype)
            total = target.sum(1, keepdim=True)
            if scores.shape[1] == 1:
                return total * scores.sigmoid() - target[:, 1:]
            return total * scores.softmax(1) - target
        factors = weights[:, 0]
        if self.fairness.opposes and bool((factors < 0).any()):
            factors, _ = dual.opposed(factors, losses(scores, label))
        return residual(scores, label) * factors[:, None]

    def _tensors(self) -> State:
        """What training changes in place."""
        parts = {
            "buffers": self.network.buffers,
            "optimizer": self.optimizer.state,
            "objective": getattr(self.objective, "state", {}),
        }
        tensors = {"network.parameters": self.network.parameters}
        for kind, named in parts.items():
            tensors |= {f"{kind}.{name}": tensor for name, tensor in named.items()}
        return tensors

    def state(self) -> State:
        """A copy of everything that training changes."""
        copied = {name: tensor.clone() for name, tensor in self._tensors().items()}
        return copied | {f"fairness.{name}": one for name, one in self.fairness.copy().items()}

    def load(self, state: State) -> None:
        """Takes over what `state` gave."""
        tensors = self._tensors()
        for name, tensor in tensors.items():
            tensor.copy_(state[name])
        of_method = {name: state[name] for name in state if name not in tensors}
        self.fairness.load({name.removeprefix("fairness."): t for name, t in of_method.items()})

    def judge(self) -> History:
        """Judges the models as they are: a history of one epoch."""
        n_members, n_counted = len(self.members), 1 + self.fairness.n_outcomes
        counts = torch.zeros(n_members, n_counted, self.fairness.n_cells, dtype=torch.float64)
        loss = torch.zeros(n_members, dtype=torch.float64)
        widest = max(*self.sizes[:-1], 1)
        for rows in torch.split(self.judged, max(512, MAX_ACTIVATIONS // (n_members * widest))):
            scores, label = self.network.scores(self.table.take(rows)), self.table.label[rows]
            counts += self.fairness.count(rows, predictions(scores))
            row_losses, weight = losses(scores, label), self.table.weight
            loss += row_losses.sum(1) if weight is None else row_losses @ weight[rows]
        net = dual.net_multipliers(self.fairness.constants, self.fairness.state.multipliers)
        return self.record(counts.numpy()[None], loss.numpy()[None], net.reshape(1, n_members, -1))

    def record(self, counts: Floats, loss: Floats, multipliers: Floats) -> History:
        """What was counted of the models after each of some epochs.

        Args:
            counts: (epochs, M, 2, K) rows predicted rightly, and wrongly; (epochs, M, 1 + L, K) by
                predicted label.
            loss: (epochs, M) sums over the rows.
            multipliers: (epochs, M, J).
        """
        n_labels, models = self.table.n_labels, counts.shape[:2]
        total = counts.sum((2, 3))
        wrong = cost = counts[:, :, 1].sum(2)
        if self.fairness.n_outcomes > 1:
            by_label = counts[:, :, 1:].reshape(*models, n_labels, n_labels, -1).sum(-1)
            wrong = total - np.einsum("emll->em", by_label)
            cost = np.einsum("emly,yl->em", by_label, self._cost_shares)
        levels, gaps = np.full((2, *models, self.fairness.n_levels), np.nan)
        if self._judged_by is not None:
            rates = counts[:, :, 1:] / np.maximum(counts.sum(2, keepdims=True), dual.NOTHING)
            levels = self._judged_by.levels(rates.reshape(*models, -1))
            gaps = self._judged_by.gaps(levels)
        return History(
            accuracy=1 - wrong / total,
            merit=1 - cost / total,
            loss=loss / total,
            unfairness=unfairness(gaps),
            levels=levels,
            multipliers=multipliers,
        )


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
    """Trains many models as one.

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
    run = TrainingRun(stack)
    if not run.go_compiled(progress):
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)  # for parts that draw from PyTorch's own generator
            run.go(progress)
    return run.outcome()


class TrainingRun:
    """One training in progress."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.plan = stack, stack.plan
        self.records: list[History] = []
        self.kept: dict[int, State] = {}
        self.sound: State = {}  # before the first step
        self.stopped: list[str | None] = [None] * len(stack.members)
        self.interrupted = False
        self.n_steps, self.steps_done = self.plan.epochs * stack.batches.n_steps, 0
        first = self.n_steps - round(self.plan.average_last * self.n_steps)
        self.average = WeightAverage(stack.network, first_step=first)

    def go(self, progress: bool | None) -> None:
        """Trains all epochs by single steps."""
        self.sound = self.stack.state()
        bar = ProgressBar(self.plan.epochs, enabled=progress)
        try:
            for epoch in bar:
                for rows in self.stack.batches.epoch():
                    self.stack.step(rows, self.plan.rate_factor(self.steps_done / self.n_steps))
                    self.average.take(self.steps_done)
                    self.steps_done += 1
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
        epochs = compiled_epochs(self.stack)
        if epochs is None:
            return False
        bar = ProgressBar(self.plan.epochs, enabled=progress)
        finite = True
        try:
            for _ in bar:
                finite = epochs.epoch()
                if not finite:
                    break
                if bar.is_shown and epochs.counted:
                    bar.text = _describe(epochs.history(last=1))
        except KeyboardInterrupt:
            self.interrupted = True
            if epochs.n_done == 0:  # not even one epoch: the weights as they are
                self._close(0)
                return True
        if not finite or not epochs.judge():
            self.stack.batches.restart()
            return False
        self.records, self.kept = [epochs.history()], epochs.kept()
        return True

    def _close(self, epoch: int) -> None:
        """Records and keeps the models of an epoch; puts those that diverged back."""
        record, state = self._snapshot()
        diverged = ~torch.from_numpy(np.isfinite(record.loss[0]))
        for tensor in state.values():
            if tensor.is_floating_point() and tensor.ndim > 1:
                diverged |= ~torch.isfinite(tensor).flatten(1).all(1)
        if diverged.any():
            sound, state = self.kept.get(epoch - 1, self.sound), self.stack.state()
            for name, tensor in state.items():
                tensor[diverged] = sound[name][diverged]
            self.stack.load(state)
            self.average.restart(diverged)
            for member in torch.nonzero(diverged)[:, 0].tolist():
                self.stopped[member] = self.stopped[member] or (
                    f"diverged in epoch {epoch}: its weights or its loss are not finite; its last "
                    "sound weights are kept. Lower learning_rate or fairness_rate, or set clip_norm"
                )
            record, state = self._snapshot()
        self.records.append(record)
        self.kept[epoch] = state
        self.kept.pop(epoch - self.plan.keep, None)

    def _snapshot(self) -> tuple[History, State]:
        with self.average.shown():
            return self.stack.judge(), self.stack.state()

    def outcome(self) -> Training:
        """What was trained."""
        for member, reason in enumerate(self.stopped):
            if reason is not None:
                warn(f"Member {member} {reason}.", RuntimeWarning)
        return Training(
            history=History.join(self.records),
            kept=self.kept,
            constraints=tuple(self.stack.fairness.constraints),
            stopped=tuple(self.stopped),
            interrupted=self.interrupted,
        )


def _describe(record: History) -> str:
    accuracy = f"accuracy {np.nanmax(record.accuracy):.4f}"
    if np.isnan(record.unfairness).all():
        return accuracy
    return f"{accuracy}, unfairness {np.nanmin(record.unfairness):.4f}"
