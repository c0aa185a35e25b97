"""Fine-tuning of a whole network with the fair loss: steps, judging, checkpoints, selection."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from fairgrad.checks import check_count, check_number
from fairgrad.dual import check_costs
from fairgrad.files import write_whole
from fairgrad.finetune.network import (
    count_outputs,
    find_head,
    network_key,
    new_head,
    predict_logits,
    progress_bar,
    read_labelled,
    read_logits,
    run,
    with_head,
)
from fairgrad.measures import accuracy_parity, constraints_of, desirable_labels
from fairgrad.splitting import hold_out, unpack_rows
from fairgrad.torch import BCEWithLogitsLoss, CrossEntropyLoss
from fairgrad.training import TrainingPlan
from fairgrad.training.evaluation import as_rule, last

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.finetune.network import LabelledInputs, Reading
    from fairgrad.groups import Ints
    from fairgrad.torch import FairLoss

MakeOptimizer = Callable[..., torch.optim.Optimizer]

ERROR_MEMORY = 0.9
"""Share of earlier batches in the error estimates, so that small cells pool over batches."""


@dataclass(frozen=True, eq=False)
class FineTuned:
    """What fine-tuning gives.

    Attributes:
        module: the trained network, an ordinary module in evaluation mode.
        classes: the labels in the order of its outputs; with one output, above 0 is the second.
        history: one dictionary per epoch: the mean training loss (with its fairness weights), and
            accuracy, with a cost matrix the merit (one less the mean cost as a share of the
            dearest mistake's), and unfairness (mean of |F|) on the validation rows, if there are
            any.
        epoch: the epoch, counted from 0, whose weights the module has.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> X, s = torch.randn(400, 4), torch.arange(400) % 2
        >>> y = (X.sum(1) + 0.5 * s > 0).long()
        >>> found = finetune(torch.nn.Linear(4, 2), X, y, s, max_iter=1, random_state=0)
        >>> found.classes, len(found.history), found.module(X).shape
        (array([0, 1]), 1, torch.Size([400, 2]))
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
    epsilon: Any = 0.05,
    fairness_rate: float = 0.05,
    y_desirable: Any = None,
    cost_matrix: Any = None,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-4,
    clip_norm: float | None = None,
    max_iter: int = 3,
    batch_size: int = 64,
    validation: Any = None,
    validation_fraction: float = 0.0,
    selection: Any = "last",
    checkpoint: str | Path | None = None,
    random_state: Any = None,
    verbose: bool | str = "auto",
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
        epsilon: slack of the constraints, or one standard error of a level where that is more; 0 is
            exact fairness.
        fairness_rate: step size of the multipliers; 0 is the plain loss.
        y_desirable: labels that some measures speak of; by default the second of two classes.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake. Epochs are then chosen by the mean cost in
            place of the accuracy. A network with one output gets a head with two.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch of X, such as a normalisation or a tokeniser.
        output: from what the network returns to its logits, if these are found nowhere.
        optimizer: a function of parameters and ``lr`` that gives a PyTorch optimiser.
        learning_rate: the learning rate at the start; it falls to 0 along a cosine.
        clip_norm: the gradient's largest norm; None for none.
        max_iter: epochs, passes over the rows.
        batch_size: rows per step.
        validation: (X, y, sensitive_features) to judge every epoch on.
        validation_fraction: without `validation`, the share of the rows that is held out for it:
            the same share of every label in every group.
        selection: which epoch's weights to return, judged on the validation rows: "last", or a
            rule of `fairgrad.training`, such as "fairest_of_accurate".
        checkpoint: a file written after every epoch, from which the same call goes on.
        random_state: seed of the new head, the held-out rows, the shuffling and the dropout.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

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
    data = read_labelled(X, y, sensitive_features, transform)
    classes = data.rows.groups.labels
    if fairness_measure is not None and not data.has_groups:
        raise ValueError(
            "sensitive_features: required, one value per row; or fairness_measure=None for the "
            "plain loss."
        )
    check_number("learning_rate", learning_rate)
    if clip_norm is not None:
        check_number("clip_norm", clip_norm, above=0.0)
    plan = TrainingPlan(
        epochs=check_count("max_iter", max_iter), batch_size=batch_size, schedule="cosine"
    )
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    judged = None
    if validation is not None:
        V, y_valid, s_valid, _ = unpack_rows(validation, "validation")
        judged = read_labelled(V, y_valid, s_valid, transform, classes)
    elif validation_fraction:
        kept, held = hold_out(data.rows.cell(), validation_fraction, seed)
        data, judged = data.take(kept), data.take(held)
    rule = as_rule(selection)
    if rule is not last and judged is None:
        raise ValueError(
            f"validation: required to choose an epoch by {selection!r}; or validation_fraction, or "
            "selection='last'."
        )
    found = find_head(module, head)
    check_costs(cost_matrix, len(classes))
    # With costs every label needs a score of its own.
    n_outputs = count_outputs(found, len(classes)) if cost_matrix is None else len(classes)
    loss = FineTuningLoss(
        data,
        fairness_measure,
        single=n_outputs == 1,
        epsilon=epsilon,
        fairness_rate=fairness_rate,
        error_memory=ERROR_MEMORY,
        y_desirable=desirable_labels(classes, y_desirable) or None,
        cost_matrix=cost_matrix,
    )

    def judge(tuned: nn.Module) -> dict[str, float]:
        if judged is None:
            return {}
        size = 4 * batch_size
        logits = predict_logits(tuned, judged.inputs, output=output, batch_size=size, verbose=False)
        predicted = logits[:, 0] > 0 if n_outputs == 1 else logits.argmax(1)
        return judged.judge(predicted.long().numpy(), fairness_measure, y_desirable, cost_matrix)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        keeps = found.layer.out_features == n_outputs
        layer = copy.deepcopy(found.layer) if keeps else new_head(found, n_outputs)
        tuned = with_head(module, found.name, layer)
        trainable = [p for p in tuned.parameters() if p.requires_grad]
        if not trainable:
            raise ValueError("module: expected parameters that require a gradient, got none.")
        work = FineTuning(
            tuned,
            data,
            loss,
            optimizer(trainable, lr=learning_rate),
            learning_rate=learning_rate,
            plan=plan,
            clip_norm=clip_norm,
            output=output,
            judge=judge,
            seed=seed,
            keeps_all=rule is not last,
        )
        if checkpoint is not None:
            measure = getattr(fairness_measure, "__qualname__", fairness_measure)
            costs = [] if cost_matrix is None else [np.asarray(cost_matrix).tolist()]
            work.use_checkpoint(Path(checkpoint), measure, epsilon, fairness_rate, *costs)
        work.train(verbose)
    return work.choose(rule)


class FineTuningLoss(nn.Module):
    """Cross-entropy of a batch's logits, fair if a measure is given, else plain.

    A network with one output has the logit of the second of two classes.

    Args:
        data: the training rows.
        measure: as in `fairgrad.torch.FairLoss`; None is the plain loss.
        single: whether the network has one output.
        settings: further arguments of the loss.
    """

    def __init__(
        self, data: LabelledInputs, measure: Any, *, single: bool, **settings: Any
    ) -> None:
        super().__init__()
        rows, groups = data.rows, data.rows.groups
        self.single = single
        self.label = torch.from_numpy(rows.label)
        self.plain = nn.BCEWithLogitsLoss() if single else nn.CrossEntropyLoss()
        self.fair: FairLoss | None = None
        if measure is None and settings.get("cost_matrix") is not None:
            # Costs alone: no constraint of any measure moves.
            measure, settings = accuracy_parity, {**settings, "fairness_rate": 0.0}
        if measure is not None:
            # The loss takes integers: labels and sensitive values are their positions here.
            values = tuple(np.arange(len(known)) for known in groups.values)
            coded = replace(groups, labels=np.arange(len(groups.labels)), values=values)
            kind = BCEWithLogitsLoss if single else CrossEntropyLoss
            exact = constraints_of(measure, coded, y_desirable=settings.get("y_desirable"))
            settings["epsilon"] = exact.slacken_for(rows, settings["epsilon"]).slack
            self.fair = kind(coded, None, measure, **settings)
            self.s = torch.from_numpy(coded.ids[rows.group])

    def forward(self, logits: Tensor, rows: Tensor) -> Tensor:
        """The loss of the training rows with these numbers."""
        target = self.label[rows].to(logits.device)
        if self.single:
            logits, target = logits[:, 0], target.to(logits.dtype)
        if self.fair is None:
            plain: Tensor = self.plain(logits, target)
            return plain
        s = self.s[rows].to(logits.device)
        fair: Tensor = self.fair(logits, target, s[:, 0] if s.shape[1] == 1 else s)
        return fair


@dataclass(eq=False)
class FineTuning:
    """One fine-tuning in progress.

    Attributes:
        module: the network, which is trained in place.
        data: the training rows.
        loss: what is minimised.
        optimizer: changes the network's parameters.
        learning_rate: at the start.
        plan: epochs, batch size and schedule of the learning rate.
        clip_norm: the gradient's largest norm, or None.
        output: how to read logits off what the network returns.
        judge: from the network to its accuracy and unfairness, if there is something to judge on.
        seed: of the shuffling and the dropout.
        keeps_all: whether any epoch may be chosen; if not, only the last one's weights are kept.
        history: what is known of the epochs so far.
        states: weights after the epochs that may be chosen.
        file: where every epoch is saved, or None.
        key: what the file must be of.
    """

    module: nn.Module
    data: LabelledInputs
    loss: FineTuningLoss
    optimizer: torch.optim.Optimizer
    learning_rate: float
    plan: TrainingPlan
    clip_norm: float | None
    output: Reading | None
    judge: Callable[[nn.Module], dict[str, float]]
    seed: int
    keeps_all: bool
    history: list[dict[str, float]] = field(default_factory=list)
    states: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    file: Path | None = None
    key: str = ""

    @property
    def n_steps(self) -> int:
        """Batches of one epoch; the last may be smaller."""
        return math.ceil(len(self.data) / self.plan.batch_size)

    def train(self, verbose: bool | str) -> None:
        """Trains the epochs that are left."""
        first = len(self.history) * self.n_steps
        bar = progress_bar(self.plan.epochs * self.n_steps - first, verbose, "fine-tuning")
        losses, order = 0.0, np.empty(0, dtype=np.int64)
        self.module.train()
        for place in bar:
            epoch, step = divmod(first + place, self.n_steps)
            if step == 0:
                # Each epoch has seeds of its own, so any can be repeated.
                torch.manual_seed(self.seed + epoch)
                order = np.random.default_rng([self.seed, epoch]).permutation(len(self.data))
                losses = 0.0
            batch = order[step * self.plan.batch_size : (step + 1) * self.plan.batch_size]
            losses += self._step(batch, epoch, step) * len(batch)
            bar.text = f"epoch {epoch + 1} of {self.plan.epochs}"
            if step == self.n_steps - 1:
                self._close(epoch, losses / len(order))

    def _step(self, batch: Ints, epoch: int, step: int) -> float:
        factor = self.plan.rate_factor((epoch + step / self.n_steps) / self.plan.epochs)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * factor
        logits = read_logits(run(self.module, self.data.inputs.batch(batch)), self.output)
        loss = self.loss(logits, torch.from_numpy(batch))
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
        self.history.append({"loss": loss, **self.judge(self.module)})
        if not self.keeps_all:
            self.states.clear()
        state = {name: tensor.clone() for name, tensor in self.module.state_dict().items()}
        self.states[epoch] = state
        if self.file is not None:
            content = {
                "key": self.key,
                "history": self.history,
                "states": self.states,
                "optimizer": self.optimizer.state_dict(),
                "criterion": self.loss.state_dict(),
            }
            buffer = io.BytesIO()
            torch.save(content, buffer)
            write_whole(self.file, buffer.getvalue())

    def use_checkpoint(self, file: Path, *settings: Any) -> None:
        """Goes on from a file, if it is there, and writes it after every epoch.

        Raises:
            ValueError: if the file is of another network, other rows or other settings.
        """
        solver = (type(self.optimizer).__name__, self.learning_rate, self.clip_norm, self.seed)
        length = (self.plan.epochs, self.plan.batch_size)
        columns = [column.tobytes() for column in (self.data.rows.label, self.data.rows.group)]
        self.file = file
        self.key = network_key(self.module, solver, length, self.keeps_all, settings, columns)
        if not file.exists():
            return
        # Tensors and plain values only: no code is run, whoever wrote the file.
        saved: dict[str, Any] = torch.load(file, weights_only=True)
        if saved.get("key") != self.key:
            raise ValueError(
                f"checkpoint: {file.name} is of another network, other data or other settings; "
                "delete it, or name another file."
            )
        self.history, self.states = saved["history"], saved["states"]
        self.module.load_state_dict(self.states[len(self.history) - 1])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loss.load_state_dict(saved["criterion"])

    def choose(self, rule: Callable[..., int]) -> FineTuned:
        """The network with the weights of the epoch that the rule takes."""
        merit = [entry.get("merit", entry.get("accuracy", np.nan)) for entry in self.history]
        unfairness = [entry.get("unfairness", np.nan) for entry in self.history]
        epoch = rule(np.array(merit), np.array(unfairness))
        self.module.load_state_dict(self.states[epoch])
        return FineTuned(self.module.eval(), self.data.rows.groups.labels, self.history, epoch)
