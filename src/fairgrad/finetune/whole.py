"""Fine-tuning of a whole network with the fair loss."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from fairgrad.finetune.checkpoint import restore, save, weights_key
from fairgrad.finetune.criterion import Criterion, desirable_positions
from fairgrad.finetune.heads import find_head, n_outputs, new_head, with_head
from fairgrad.finetune.inputs import run
from fairgrad.finetune.outputs import logits_of, predict_logits
from fairgrad.finetune.rows import labelled
from fairgrad.frontier.parts import as_columns_of
from fairgrad.training.member import check_count, check_number
from fairgrad.training.plan import DECAYS
from fairgrad.training.progress import EpochBar
from fairgrad.training.selection import as_rule, last

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from fairgrad.finetune.outputs import Reading
    from fairgrad.finetune.rows import Labelled

MakeOptimizer = Callable[..., torch.optim.Optimizer]


@dataclass(frozen=True, eq=False)
class FineTuned:
    """What fine-tuning gives.

    Attributes:
        module: the trained network, an ordinary module in evaluation mode.
        classes: the labels in the order of its outputs; with one output, above 0 is the second.
        history: one dictionary per epoch: the mean training loss (with its fairness weights), and
            accuracy and unfairness (mean of |F|) on the validation rows, if there are any.
        epoch: the epoch, counted from 0, whose weights the module has.
    """

    module: nn.Module
    classes: NDArray[Any]
    history: list[dict[str, float]]
    epoch: int


def finetune(
    module: nn.Module,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    fairness_measure: Any = "equalized_odds",
    epsilon: Any = 0.0,
    fairness_rate: float = 0.05,
    proportional_rate: float = 0.0,
    error_memory: float = 0.9,
    y_desirable: Any = None,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-4,
    decay: str = "cosine",
    clip_norm: float | None = None,
    epochs: int = 3,
    batch_size: int = 64,
    validation: Any = None,
    selection: Any = "last",
    checkpoint: str | Path | None = None,
    random_state: Any = None,
    progress: bool | None = None,
) -> FineTuned:
    """Trains all layers of a network that require a gradient, with the fair loss.

    The network is copied and left as it is. If its head does not have one output per class (or one
    for two classes), it is replaced by a linear layer with fresh weights; otherwise it is kept.

    Args:
        module: gives logits: a tensor, or something with an entry or attribute ``logits``.
        X: rows: a tensor or array (n, ...); a mapping of these, passed by name; anything with a
            method ``batch(rows)``, as the images of `fairgrad.datasets`; or a sequence of examples
            (a PyTorch data set of inputs, a list of texts).
        y: (n,) labels of any kind.
        sensitive_features: (n,) sensitive values, or a table with one column per attribute;
            missing values and -1 are unknown and in no constraint.
        fairness_measure: as in `fairgrad.torch.FairLoss`; None trains with the plain loss.
        epsilon: slack of the constraints; 0 is exact fairness.
        fairness_rate: step size of the multipliers; 0 is the plain loss.
        proportional_rate: adds this times the current violation to the multipliers in use.
        error_memory: share of earlier batches kept in the error estimates, so that cells with few
            rows per batch pool over batches.
        y_desirable: labels that some measures speak of; by default the second of two classes.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch of X, such as a normalisation or a tokeniser.
        output: from what the network returns to its logits, if these are found nowhere.
        optimizer: a function of parameters and ``lr`` that gives a PyTorch optimiser.
        learning_rate: the learning rate at the start.
        decay: "cosine" lets the learning rate fall to 0 by the last step, "constant" keeps it.
        clip_norm: the gradient's largest norm; None for none.
        epochs: passes over the rows.
        batch_size: rows per step.
        validation: (X, y, sensitive_features) to judge every epoch on.
        selection: which epoch's weights to return, judged on the validation rows: "last", or a
            rule of `fairgrad.training.selection`, such as "fairest_of_accurate".
        checkpoint: a file written after every epoch, from which the same call goes on.
        random_state: seed of the new head, the shuffling and the dropout.
        progress: True shows a bar, None only when it takes long and on a terminal.

    Raises:
        ValueError: if an argument is missing or not allowed; nothing has been computed then.
        TypeError: if the network returns something no logits can be read off.
        FloatingPointError: if the loss stops being a finite number.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> s = torch.arange(600) % 2
        >>> X = torch.randn(600, 4) + s[:, None]
        >>> y = (X.sum(1) > 2).long()
        >>> network = torch.nn.Sequential(
        ...     torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        ... )
        >>> tuned = finetune(
        ...     network, X, y, s, fairness_measure="demographic_parity", learning_rate=0.01,
        ...     random_state=0,
        ... )
        >>> tuned.module(X).shape
        torch.Size([600, 2])
    """
    rows = labelled(X, y, sensitive_features, transform)
    judged = _validation(validation, transform, rows)
    if fairness_measure is not None and sensitive_features is None:
        raise ValueError(
            "sensitive_features: required, one value per row; or fairness_measure=None for the "
            "plain loss."
        )
    _check(epochs, batch_size, learning_rate, clip_norm, decay, selection, judged)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    found = find_head(module, head)
    outputs = n_outputs(found, len(rows.classes))
    desirable = desirable_positions(y_desirable, rows.classes)
    criterion = Criterion(
        rows,
        fairness_measure,
        single=outputs == 1,
        epsilon=epsilon,
        fairness_rate=fairness_rate,
        proportional_rate=proportional_rate,
        error_memory=error_memory,
        y_desirable=desirable,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        keeps = found.layer.out_features == outputs
        layer = copy.deepcopy(found.layer) if keeps else new_head(found, outputs)
        tuned = with_head(module, found.name, layer)
        trainable = [p for p in tuned.parameters() if p.requires_grad]
        if not trainable:
            raise ValueError("module: expected parameters that require a gradient, got none.")
        loop = Loop(
            tuned,
            rows,
            criterion,
            optimizer(trainable, lr=learning_rate),
            learning_rate=learning_rate,
            decay=decay,
            clip_norm=clip_norm,
            epochs=epochs,
            batch_size=batch_size,
            output=output,
            seed=seed,
        )
        loop.judge = _judge(judged, output, batch_size, fairness_measure, desirable)
        if checkpoint is not None:
            measure = getattr(fairness_measure, "__qualname__", fairness_measure)
            rates = (fairness_rate, proportional_rate, error_memory)
            loop.use_checkpoint(Path(checkpoint), measure, epsilon, rates)
        loop.go(progress)
    return loop.outcome(as_rule(selection), rows.classes)


@dataclass(eq=False)
class Loop:
    """The epochs of one fine-tuning."""

    module: nn.Module
    rows: Labelled
    criterion: Criterion
    optimizer: torch.optim.Optimizer
    learning_rate: float
    decay: str
    clip_norm: float | None
    epochs: int
    batch_size: int
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
        return math.ceil(len(self.rows) / self.batch_size)

    def go(self, progress: bool | None) -> None:
        """Trains the epochs that are left."""
        first = len(self.history) * self.steps_per_epoch
        bar = EpochBar(
            self.epochs * self.steps_per_epoch - first, enabled=progress, unit="fine-tuning"
        )
        epoch, losses, order = len(self.history), 0.0, np.empty(0, dtype=np.int64)
        self.module.train()
        for place in bar:
            epoch, step = divmod(first + place, self.steps_per_epoch)
            if step == 0:
                order, losses = self._begin(epoch), 0.0
            batch = order[step * self.batch_size : (step + 1) * self.batch_size]
            losses += self._step(batch, epoch, step) * len(batch)
            bar.text = f"epoch {epoch + 1} of {self.epochs}"
            if step == self.steps_per_epoch - 1:
                self._close(epoch, losses / len(order))

    def _begin(self, epoch: int) -> NDArray[np.int64]:
        """The order of an epoch's rows. Each epoch has seeds of its own, so any can be repeated."""
        torch.manual_seed(self.seed + epoch)
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.rows))

    def _step(self, batch: NDArray[np.int64], epoch: int, step: int) -> float:
        progress = (epoch + step / self.steps_per_epoch) / self.epochs
        factor = 0.5 * (1 + math.cos(math.pi * progress)) if self.decay == "cosine" else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * factor
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
        own = (solver, self.learning_rate, self.decay, self.clip_norm, self.epochs, self.batch_size)
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


def predicted_positions(logits: Tensor) -> NDArray[Any]:
    """(n,) positions among the classes of the labels that logits predict."""
    index = logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(1)
    found: NDArray[Any] = index.long().numpy()
    return found


def _validation(given: Any, transform: Any, rows: Labelled) -> Labelled | None:
    if given is None:
        return None
    X, y, s, _ = as_columns_of(given, "validation")
    return labelled(X, y, s, transform, rows.classes)


def _judge(
    judged: Labelled | None, output: Reading | None, batch_size: int, measure: Any, desirable: Any
) -> Callable[[nn.Module], dict[str, float]] | None:
    """A function from the network to its figures on the validation rows."""
    if judged is None:
        return None

    def figures(module: nn.Module) -> dict[str, float]:
        inputs = judged.inputs
        logits = predict_logits(
            module,
            inputs.rows,
            transform=inputs.transform,
            output=output,
            batch_size=4 * batch_size,
            progress=False,
        )
        return judged.figures(predicted_positions(logits), measure, desirable)

    return figures


def _check(
    epochs: int,
    batch_size: int,
    learning_rate: float,
    clip_norm: float | None,
    decay: str,
    selection: Any,
    judged: Labelled | None,
) -> None:
    check_count("epochs", epochs)
    check_count("batch_size", batch_size)
    check_number("learning_rate", learning_rate)
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm: expected a number above 0 or None, got {clip_norm!r}.")
    if decay not in DECAYS:
        raise ValueError(f"decay: expected one of {list(DECAYS)}, got {decay!r}.")
    if as_rule(selection) is not last and judged is None:
        raise ValueError(
            f"validation: required to choose an epoch by {selection!r}; or selection='last'."
        )
