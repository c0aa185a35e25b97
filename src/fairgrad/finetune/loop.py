"""The epochs of a fine-tuning: steps, figures, checkpoints, the choice of an epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad.finetune.checkpoint import restore, save, weights_key
from fairgrad.finetune.inputs import run
from fairgrad.finetune.outputs import logits_of
from fairgrad.training import EpochBar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from fairgrad.finetune.criterion import Criterion
    from fairgrad.finetune.outputs import Reading
    from fairgrad.finetune.rows import Labelled
    from fairgrad.training import TrainingPlan


@dataclass(frozen=True, eq=False)
class FineTuned:
    """What fine-tuning gives.

    Attributes:
        module: the trained network, an ordinary module in evaluation mode.
        classes: the labels in the order of its outputs; with one output, above 0 is the second.
        history: one dictionary per epoch: the mean training loss (with its fairness weights), and
            accuracy and unfairness (mean of |F|) on the validation rows, if there are any.
        epoch: the epoch, counted from 0, whose weights the module has.

    Example:
        >>> import torch
        >>> _ = torch.manual_seed(0)
        >>> s = torch.arange(400) % 2
        >>> X = torch.randn(400, 4) + 0.5 * s[:, None]
        >>> y = (X.sum(1) > 1).long()
        >>> network = torch.nn.Sequential(
        ...     torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        ... )
        >>> from fairgrad.finetune import finetune
        >>> found = finetune(network, X, y, s, epochs=1, random_state=0)
        >>> found.classes, len(found.history), found.module(X).shape
        (array([0, 1]), 1, torch.Size([400, 2]))
    """

    module: nn.Module
    classes: NDArray[Any]
    history: list[dict[str, float]]
    epoch: int


@dataclass(eq=False)
class Loop:
    """One fine-tuning in progress.

    Attributes:
        module: the network, which is trained in place.
        rows: the training rows.
        criterion: the loss.
        optimizer: changes the network's parameters.
        learning_rate: at the start.
        plan: epochs, batch size and decay of the learning rate.
        clip_norm: the gradient's largest norm, or None.
        output: how to read logits off what the network returns.
        seed: of the shuffling and the dropout.
        judge: from the network to its figures; None if there is nothing to judge on.
        history: figures of the epochs so far.
        states: weights after the epochs that may be chosen.
        file: where every epoch is saved, or None.
        key: what the file must be of.
    """

    module: nn.Module
    rows: Labelled
    criterion: Criterion
    optimizer: torch.optim.Optimizer
    learning_rate: float
    plan: TrainingPlan
    clip_norm: float | None
    output: Reading | None
    seed: int
    judge: Callable[[nn.Module], dict[str, float]] | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    states: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    file: Path | None = None
    key: str = ""

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one epoch; the last may be smaller."""
        return math.ceil(len(self.rows) / self.plan.batch_size)

    def go(self, progress: bool | None) -> None:
        """Trains the epochs that are left."""
        first = len(self.history) * self.steps_per_epoch
        bar = EpochBar(
            self.plan.epochs * self.steps_per_epoch - first, enabled=progress, unit="fine-tuning"
        )
        epoch, losses, order = len(self.history), 0.0, np.empty(0, dtype=np.int64)
        self.module.train()
        for place in bar:
            epoch, step = divmod(first + place, self.steps_per_epoch)
            if step == 0:
                order, losses = self._begin(epoch), 0.0
            batch = order[step * self.plan.batch_size : (step + 1) * self.plan.batch_size]
            losses += self._step(batch, epoch, step) * len(batch)
            bar.text = f"epoch {epoch + 1} of {self.plan.epochs}"
            if step == self.steps_per_epoch - 1:
                self._close(epoch, losses / len(order))

    def _begin(self, epoch: int) -> NDArray[np.int64]:
        """The order of an epoch's rows. Each epoch has seeds of its own, so any can be repeated."""
        torch.manual_seed(self.seed + epoch)
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.rows))

    def _step(self, batch: NDArray[np.int64], epoch: int, step: int) -> float:
        progress = (epoch + step / self.steps_per_epoch) / self.plan.epochs
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * self.plan.rate_factor(progress)
        rows = torch.from_numpy(batch)
        logits = logits_of(run(self.module, self.rows.inputs.batch(batch)), self.output)
        loss = self.criterion(logits, self.rows.label[rows], rows)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss became {value} in epoch {epoch}, step {step}: lower learning_rate or "
                "fairness_rate, or set clip_norm."
            )
        self.optimizer.zero_grad()
        loss.backward()
        if self.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.clip_norm)
        self.optimizer.step()
        return value

    def _close(self, epoch: int, loss: float) -> None:
        """Judges, keeps and saves an epoch."""
        found = {} if self.judge is None else self.judge(self.module)
        self.history.append({"loss": loss, **found})
        state = {name: tensor.clone() for name, tensor in self.module.state_dict().items()}
        if self.judge is None:
            self.states.clear()  # nothing to choose by: the last epoch it will be
        self.states[epoch] = state
        if self.file is not None:
            save(
                self.file,
                {
                    "key": self.key,
                    "history": self.history,
                    "states": self.states,
                    "optimizer": self.optimizer.state_dict(),
                    "criterion": self.criterion.state_dict(),
                },
            )

    def use_checkpoint(self, file: Path, *settings: Any) -> None:
        """Goes on from a file, if it is there, and writes it after every epoch.

        Raises:
            ValueError: if the file is of another network, other rows or other settings.
        """
        solver = type(self.optimizer).__name__
        own = (solver, self.learning_rate, self.clip_norm, self.plan)
        codes = self.rows.sensitive_codes or {}
        columns = [column.tobytes() for column in (self.rows.label.numpy(), *codes.values())]
        self.file, self.key = file, weights_key(self.module, own, self.seed, settings, columns)
        saved = restore(file, self.key)
        if saved is None:
            return
        self.history, self.states = saved["history"], saved["states"]
        self.module.load_state_dict(self.states[len(self.history) - 1])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.criterion.load_state_dict(saved["criterion"])

    def outcome(self, rule: Callable[..., int], classes: NDArray[Any]) -> FineTuned:
        """The network with the weights of the epoch that the rule takes."""
        accuracy, unfairness = (
            np.array([entry.get(name, np.nan) for entry in self.history])
            for name in ("accuracy", "unfairness")
        )
        epoch = rule(accuracy, unfairness)
        self.module.load_state_dict(self.states[epoch])
        return FineTuned(self.module.eval(), classes, self.history, epoch)
