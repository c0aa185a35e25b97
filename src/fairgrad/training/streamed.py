"""Trains a stack on rows that come bit by bit, by one process or by several, and can go on later.

An epoch is a pass over the rows in stages, some million rows each. After every stage the state is
handed to whoever keeps it (`Checkpoint`), and a training that was killed goes on from there: all
that is random follows from the seed, the epoch and the stage. An epoch is judged while the next one
passes over the rows, since validation rows lie among the others.

Several processes read different rows. Their counts are summed before the step of the method, and
their gradients before that of the weights, so that all have the same models at any time.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch

from fairgrad.groups import GroupedRows
from fairgrad.splitting import TRAINING_PART, VALIDATION_PART
from fairgrad.torch.compiled import on_cpu
from fairgrad.training.evaluation import History
from fairgrad.training.networks import build
from fairgrad.training.stack import Stack, StackState
from fairgrad.training.table import DROPOUT, RowBatch, TrainingTable, generator
from fairgrad.training.trainer import EpochBar, TrainingRun, not_finite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from fairgrad.groups import Floats, Groups, Ints
    from fairgrad.torch.processes import Processes
    from fairgrad.training.plan import Member, TrainingPlan
    from fairgrad.training.trainer import Training


class RowChunk(NamedTuple):
    """Some rows of one part.

    Attributes:
        part: which part, as `fairgrad.splitting` numbers them.
        X: (n, features).
        label: (n,) label indices.
        group: (n,) group indices.
    """

    part: int
    X: NDArray[np.float32]
    label: Ints
    group: Ints


class RowSource(Protocol):
    """Where rows come from.

    Attributes:
        groups: labels and groups, with the frequencies of the training rows.
        judged: the same with those of the validation rows.
        n_features: columns of X.
        scaling: offset and scale of each.
        batch_size: rows of a step, of this process.
    """

    groups: Groups
    judged: Groups
    n_features: int
    scaling: tuple[Floats, Floats]
    batch_size: int

    def n_stages(self, epoch: int) -> int:
        """How many stages a pass has."""

    def n_steps(self, epoch: int) -> int:
        """About how many steps a pass has."""

    def rows(self, epoch: int, stage: int, parts: Collection[int]) -> Iterator[RowChunk]:
        """The rows of a stage, training rows shuffled and in whole batches but for the last."""


class Checkpoint(Protocol):
    """Keeps the state of a training where it survives the process."""

    def save(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Keeps a state in place of the last one."""

    def load(self) -> tuple[Mapping[str, Tensor], Mapping[str, Any]] | None:
        """The last state; None if there is none."""


@on_cpu
def train_streamed(
    source: RowSource,
    members: Sequence[Member],
    plan: TrainingPlan,
    *,
    processes: Processes | None = None,
    checkpoint: Checkpoint | None = None,
    progress: bool | None = False,
) -> Training:
    """Trains many models as one, as `fairgrad.training.train` does, on rows that are not held.

    Args:
        source: the rows.
        members: the models; they share rows and seed.
        plan: what they have in common.
        processes: those that train together; None for this one alone.
        checkpoint: keeps the state after every stage; what it has already is gone on with.
        progress: True shows a bar, None only when it takes long and on a terminal.

    Raises:
        ValueError: if the models diverge.
    """
    run = StreamedRun(source, members, plan, processes)
    found = None if checkpoint is None else checkpoint.load()
    if found is not None:
        run.load(*found)
    with torch.no_grad():
        run.go_on(checkpoint, progress)
    return run.outcome()


class StreamedRun(TrainingRun):
    """A training on rows that come bit by bit."""

    def __init__(
        self,
        source: RowSource,
        members: Sequence[Member],
        plan: TrainingPlan,
        processes: Processes | None = None,
    ) -> None:
        self.source, self.processes = source, processes
        # One row that stands for all, until rows come: the frequencies are those of the source.
        nowhere = np.zeros(1, dtype=np.int64)
        example = self._table(np.zeros((1, source.n_features), np.float32), nowhere, nowhere)
        stack = Stack(example, members, plan)
        stack.fairness.processes = processes
        judged = replace(example, groups=source.judged)
        # Its own every_row: the frequencies of others would be counted, in this one row.
        stack.evaluation = stack.evaluation_on(judged, [judged.every_row] * stack.n_streams)
        n_steps = sum(source.n_steps(epoch) for epoch in range(plan.epochs))
        super().__init__(stack, plan, max(1, n_steps))
        assert stack.shape is not None  # noqa: S101 - networks are its own
        self.judge = build(stack.shape, 1, [m.seed for m in stack.members], example.dtype)
        self.position = (0, 0)
        self.counts, self.loss = self._nothing()

    def _table(self, X: Any, label: Any, group: Any) -> TrainingTable:
        rows = GroupedRows(self.source.groups, label, group, None)
        return TrainingTable.from_rows(torch.from_numpy(X), rows, scaling=self.source.scaling)

    def _nothing(self) -> tuple[Tensor, Tensor]:
        evaluation = self.stack.evaluation
        shape = (evaluation.n_members, 1 + self.stack.fairness.n_outcomes)
        counts = torch.zeros(*shape, self.stack.fairness.cells.n_cells, dtype=torch.float64)
        return counts, torch.zeros(evaluation.n_members, dtype=torch.float64)

    def go_on(self, checkpoint: Checkpoint | None, progress: bool | None) -> None:
        """Trains from where it is to the end; the last pass is of validation rows alone."""
        places = [
            (epoch, stage)
            for epoch in range(self.plan.epochs + 1)
            for stage in range(self.source.n_stages(epoch))
        ]
        left = [place for place in places if place >= self.position]
        bar = EpochBar(len(left), enabled=progress, unit="stages")
        for number in bar:
            epoch, stage = left[number]
            self._stage(epoch, stage)
            is_last = stage == self.source.n_stages(epoch) - 1
            if is_last:
                self._end_pass(epoch)
            self.position = (epoch + 1, 0) if is_last else (epoch, stage + 1)
            if checkpoint is not None:
                checkpoint.save(*self.state())
            bar.text = f"epoch {min(epoch + 1, self.plan.epochs)} of {self.plan.epochs}"

    def _stage(self, epoch: int, stage: int) -> None:
        trains, judges = epoch < self.plan.epochs, epoch > 0
        parts = {TRAINING_PART} if trains else set()
        parts |= {VALIDATION_PART} if judges else set()
        for place, own in enumerate(getattr(self.stack.network, "generators", ())):
            seed = self.stack.members[place].seed + 7919 * (1 + epoch) + 104_729 * stage
            own.set_state(generator(seed % 2**31, DROPOUT).get_state())
        counts, loss = self._nothing()
        for chunk in self.source.rows(epoch, stage, parts):
            self.stack.take_rows(self._table(chunk.X, chunk.label, chunk.group))
            if chunk.part == TRAINING_PART:
                self._train(len(chunk.label))
            else:
                found = self.stack.evaluation.counted(self.judge)
                counts, loss = counts + found[0], loss + found[1]
        if self.processes is None:
            self.counts, self.loss = self.counts + counts, self.loss + loss
            return
        while trains and self.stack.fairness.step_without_rows():
            self._take(torch.zeros_like(self.stack.network.parameters))
        for part in (counts, loss):
            self.processes.sum(part)
        self.counts, self.loss = self.counts + counts, self.loss + loss
        self._share_buffers()

    def _train(self, n: int) -> None:
        size = self.source.batch_size
        for start in range(0, n, size):
            index = torch.arange(start, min(start + size, n))[None]
            self.stack.step(RowBatch(index.expand(self.stack.n_streams, -1), None), self._factor())
            self._count_step()

    def _take(self, gradient: Tensor) -> None:
        """A step of a process that has no rows, while others have."""
        self.stack.descend(gradient, self._factor())
        self._count_step()

    def _factor(self) -> float:
        return float(self.plan.rate_factor(min(1.0, self.steps_done / self.n_steps)))

    def _count_step(self) -> None:
        self.average.take(self.steps_done)
        self.steps_done += 1

    def _share_buffers(self) -> None:
        """Running statistics of batch normalisation become the mean over processes."""
        assert self.processes is not None  # noqa: S101 - for type checkers
        averaged = self.average.mean[1:] if self.average.mean else []
        own = [t for t in self.stack.network.buffers.values() if t.is_floating_point()]
        for tensor in (*own, *averaged):
            self.processes.sum(tensor)
            tensor.div_(self.processes.size)

    def _end_pass(self, epoch: int) -> None:
        """Records the epoch before this one, and keeps this one's models, which are judged next."""
        if epoch > 0:
            evaluation = self.stack.evaluation
            parts = (self.counts.numpy(), self.loss.numpy(), self.multipliers)
            self.records.append(evaluation.history(*(part[None] for part in parts)))
            self.counts, self.loss = self._nothing()
        if epoch == self.plan.epochs:
            return
        with self.average.shown():
            state = self.stack.state.copy()
        if not_finite(state).any():
            raise ValueError(
                f"the training diverged in epoch {epoch + 1}: weights are not finite; look for "
                "features with extreme values, or allow some unfairness with --epsilon"
            )
        self.kept[epoch] = state
        self.kept.pop(epoch - self.plan.keep, None)
        self._show_judge(epoch)

    def _show_judge(self, epoch: int) -> None:
        """The models of an epoch become those that are judged."""
        state = self.kept[epoch]
        network = {"network": {"parameters": self.judge.parameters}, "buffers": self.judge.buffers}
        StackState(network).load(state)
        own = self.stack.fairness
        kept = own.state["multipliers"]
        own.state["multipliers"] = state["fairness.multipliers"]
        self.multipliers = own.net_multipliers.numpy().copy()
        own.state["multipliers"] = kept

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that is needed to go on: tensors and plain values."""
        tensors = {f"now.{name}": tensor for name, tensor in self.stack.state.copy().items()}
        for epoch, state in self.kept.items():
            tensors |= {f"kept.{epoch}.{name}": tensor for name, tensor in state.items()}
        tensors |= {f"average.{i}": tensor.clone() for i, tensor in enumerate(self.average.mean)}
        tensors |= {"counts": self.counts, "loss": self.loss}
        for one in fields(History) if self.records else ():
            joined = np.concatenate([getattr(record, one.name) for record in self.records])
            tensors[f"history.{one.name}"] = torch.from_numpy(np.ascontiguousarray(joined))
        values = {
            "epoch": self.position[0],
            "stage": self.position[1],
            "steps_done": self.steps_done,
            "n_averaged": self.average.n_taken,
        }
        return tensors, values

    def load(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""
        self.position = (int(values["epoch"]), int(values["stage"]))
        self.steps_done = int(values["steps_done"])
        self.average.n_taken = int(values["n_averaged"])

        def under(prefix: str) -> dict[str, Tensor]:
            own = {name: t for name, t in tensors.items() if name.startswith(prefix)}
            return {name.removeprefix(prefix): tensor.clone() for name, tensor in own.items()}

        self.stack.state.load(under("now."))
        kept = {int(name.split(".")[1]) for name in tensors if name.startswith("kept.")}
        self.kept = {epoch: under(f"kept.{epoch}.") for epoch in sorted(kept)}
        averaged = under("average.")
        self.average.mean = [averaged[str(i)] for i in range(len(averaged))]
        self.counts, self.loss = tensors["counts"].clone(), tensors["loss"].clone()
        history = under("history.")
        if history:
            self.records = [History(**{name: part.numpy() for name, part in history.items()})]
        if self.kept:
            self._show_judge(max(self.kept))
