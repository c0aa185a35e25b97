"""Fair fine-tuning of existing networks: all layers, or the head alone with its whole frontier."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn
from torch.utils.data import default_collate

from fairgrad.checks import check_count, check_number, relative_costs
from fairgrad.columns import as_columns, sensitive_columns
from fairgrad.evaluate import levels_of, unfairness
from fairgrad.frontier import Frontier
from fairgrad.groups import group_rows
from fairgrad.measures import (
    accuracy_parity,
    check_several_groups,
    constraints_of,
    desirable_labels,
)
from fairgrad.progress import ProgressBar
from fairgrad.sklearn import FairGradClassifier
from fairgrad.sklearn.classifier import EPSILON, NETWORK, Schedule
from fairgrad.sklearn.last_layer import LastLayers, LayerInputs
from fairgrad.splitting import unpack_rows
from fairgrad.torch import BCEWithLogitsLoss, CrossEntropyLoss
from fairgrad.usefulness import Suggestions, constant_figures, model_figures, warn_of_faults

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.groups import GroupedRows, Ints

__all__ = [
    "FineTuned",
    "HeadFrontier",
    "compute_features",
    "finetune",
    "finetune_head",
    "predict_logits",
]

LARGE, PRETRAINED = 1_000_000, Schedule("adam", 1e-4, 3, 1, 1)
"""With more weights to train, a network was probably pretrained, and large steps would destroy what
it has learnt. Smaller networks are trained like those of `FairGradClassifier`."""


@dataclass(frozen=True, eq=False)
class FineTuned:
    """What fine-tuning gives.

    Attributes:
        module: the trained network, an ordinary module in evaluation mode.
        classes: the labels in the order of its outputs; with one output, above 0 is the second.
        history: one dictionary per epoch: the mean training loss (with its fairness weights), and
            with validation rows their accuracy and unfairness (mean of |F|). The last accuracy and
            unfairness are those of `module`.

    See `finetune` for an example.
    """

    module: nn.Module
    classes: NDArray[Any]
    history: list[dict[str, float]]


def finetune(
    module: nn.Module,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    fairness_measure: Any = "equalized_odds",
    epsilon: Any = EPSILON,
    fairness_rate: float | str = "auto",
    y_desirable: Any = None,
    cost_matrix: Any = None,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
    learning_rate: float | str = "auto",
    clip_norm: float | None = None,
    max_iter: int | str = "auto",
    batch_size: int = 64,
    validation: Any = None,
    random_state: Any = None,
    verbose: bool | str = "auto",
) -> FineTuned:
    """Trains all layers of a network that require a gradient, with the fair loss.

    The network is copied and left as it is. If its head does not have one output per class (or one
    for two classes), it is replaced by a linear layer with fresh weights; otherwise it is kept.
    After training, the head is moved until epsilon is kept on the training rows. If the result
    misses epsilon or costs much accuracy, a ``FairnessWarning`` gives the number and what to try.

    Args:
        module: gives logits: a tensor, or something with an entry or attribute ``logits``.
        X: rows: a tensor or array (n, ...); a mapping of these, passed by name; anything with a
            method ``batch(rows)``; or a sequence of examples
            (a PyTorch data set of inputs, a list of texts).
        y: (n,) labels of any kind.
        sensitive_features: (n,) sensitive values, or a table with one column per attribute;
            missing values and -1 are unknown and in no constraint.
        fairness_measure: as in `fairgrad.torch.FairLoss`; None trains with the plain loss.
        epsilon: slack of the constraints, or what the sampling error of a level explains where that
            is more; 0 is exact fairness.
        fairness_rate: step size of the multipliers, as in `fairgrad.torch.FairLoss`. With a number
            the head is not moved; 0 is the plain loss.
        y_desirable: desirable labels, for measures that need them; by default the second of two.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake. A network with one output gets a head with
            two.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch of X, such as a normalisation or a tokeniser.
        optimizer: a function of parameters and ``lr`` that gives a PyTorch optimiser.
        learning_rate: the learning rate at the start; it falls to 0 along a cosine. "auto" is for
            Adam: 0.003, or 0.0001 if more than a million weights are trained.
        clip_norm: the gradient's largest norm; None for none.
        max_iter: epochs, passes over the rows. "auto" is 3 if more than a million weights are
            trained. Otherwise it is 20, but at most 900 steps or 5 epochs, whichever is more.
        batch_size: rows per step.
        validation: (X, y, sensitive_features) to judge every epoch on.
        random_state: seed of the new head, the shuffling and the dropout.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Raises:
        ValueError: if an argument is missing or not allowed; nothing has been computed then.
        TypeError: if the network does not return logits.
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
        ...     network, X, y, s, fairness_measure="demographic_parity", random_state=0
        ... )
        >>> tuned.module(X).shape
        torch.Size([600, 2])
    """
    if fairness_measure is not None and sensitive_features is None:
        raise ValueError(
            "sensitive_features: required, one value per row; or fairness_measure=None for the "
            "plain loss."
        )
    check_count("batch_size", batch_size)
    if clip_norm is not None:
        check_number("clip_norm", clip_norm, above=0.0)
    inputs = NetworkInputs(X, transform)
    rows = _labelled(inputs, y, sensitive_features)
    classes = rows.groups.labels
    judge = _judge(validation, transform, classes, fairness_measure, y_desirable)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    name, old_head = find_head(module, head)
    relative_costs(cost_matrix, len(classes))  # refused before anything is trained
    # With costs every label needs a score of its own.
    n_outputs = _count_outputs(old_head, len(classes)) if cost_matrix is None else len(classes)
    criterion = _BatchLoss(
        rows,
        fairness_measure,
        single=n_outputs == 1,
        epsilon=epsilon,
        fairness_rate=fairness_rate,
        y_desirable=desirable_labels(classes, y_desirable) or None,
        cost_matrix=cost_matrix,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        keeps = old_head.out_features == n_outputs
        layer = copy.deepcopy(old_head) if keeps else _new_head(old_head, n_outputs)
        tuned = with_head(module, name, layer)
        trainable = [p for p in tuned.parameters() if p.requires_grad]
        if not trainable:
            raise ValueError("module: expected parameters that require a gradient, got none.")
        usual = PRETRAINED if sum(p.numel() for p in trainable) > LARGE else NETWORK
        rate = usual.learning_rate if learning_rate == "auto" else learning_rate
        n_epochs = usual.epochs_of(len(inputs), batch_size) if max_iter == "auto" else max_iter
        rate, n_epochs = check_number("learning_rate", rate), check_count("max_iter", n_epochs)
        solver, history = _solver(optimizer, trainable, rate), []
        n_steps = math.ceil(len(inputs) / batch_size)
        losses, order = 0.0, np.empty(0, dtype=np.int64)
        tuned.train()
        bar = _progress(n_epochs * n_steps, verbose, "fine-tuning")
        for place in bar:
            epoch, step = divmod(place, n_steps)
            passed = epoch + step / n_steps
            if step == 0:
                torch.manual_seed(seed + epoch)
                order = np.random.default_rng([seed, epoch]).permutation(len(inputs))
                losses = 0.0
            for group in solver.param_groups:
                group["lr"] = rate * 0.5 * (1.0 + math.cos(math.pi * passed / n_epochs))
            batch = order[step * batch_size : (step + 1) * batch_size]
            loss = criterion(_logits(tuned, inputs.batch(batch)), torch.from_numpy(batch))
            losses += len(batch) * _step(loss, solver, tuned, clip_norm, passed)
            bar.text = f"epoch {epoch + 1} of {n_epochs}"
            if step == n_steps - 1:
                history.append({"loss": losses / len(inputs), **judge(tuned)})
    if fairness_measure is not None and fairness_rate != 0:
        if fairness_rate == "auto" and layer.weight.requires_grad:
            criterion.move_head(tuned, name, inputs)
            history[-1] |= judge(tuned)
        criterion.warn_of_faults(inputs, tuned, *([module] if keeps else []))
    return FineTuned(tuned.eval(), classes, history)


def _solver(optimizer: Any, parameters: list[nn.Parameter], rate: float) -> torch.optim.Optimizer:
    """The optimizer of some parameters."""
    if not callable(optimizer):
        raise TypeError(
            "optimizer: expected a function of parameters and lr, such as torch.optim.AdamW, got "
            f"{type(optimizer).__name__}."
        )
    solver: torch.optim.Optimizer = optimizer(parameters, lr=rate)
    return solver


def _step(
    loss: Any,
    solver: torch.optim.Optimizer,
    module: nn.Module,
    clip_norm: float | None,
    passed: float,
) -> float:
    """One step of the optimizer, after so many epochs; gives the loss before it."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the loss became {value} after {passed:.2f} epochs: lower learning_rate or "
            "fairness_rate, or set clip_norm."
        )
    solver.zero_grad()
    loss.backward()
    if clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(module.parameters(), clip_norm)
    solver.step()
    return value


class _BatchLoss(nn.Module):
    """The fair loss of some of the training rows, by their numbers.

    A network with one output has the logit of the second of two classes. Without a measure, the
    multipliers of accuracy parity stay at 0: that is the plain loss.
    """

    def __init__(self, rows: GroupedRows, measure: Any, *, single: bool, **settings: Any) -> None:
        super().__init__()
        if measure is None:
            measure, settings = accuracy_parity, {**settings, "fairness_rate": 0.0}
        check_several_groups(measure, rows.groups, "sensitive_features")
        # The loss takes integers: labels and sensitive values are their positions here.
        groups = rows.groups
        values = tuple(np.arange(len(known)) for known in groups.values)
        coded = replace(groups, labels=np.arange(len(groups.labels)), values=values)
        exact = constraints_of(measure, coded, y_desirable=settings.get("y_desirable"))
        self.rows, self.epsilon = rows, settings["epsilon"]
        self.constraints = exact.slacken_for(rows, self.epsilon)
        settings["epsilon"] = self.constraints.slack
        kind = BCEWithLogitsLoss if single else CrossEntropyLoss
        self.single, self.label = single, torch.from_numpy(rows.label)
        self.s = torch.from_numpy(coded.ids[rows.group])
        self.fair = kind(coded, None, measure, **settings)

    def forward(self, logits: Tensor, rows: Tensor) -> Tensor:
        target, s = (column[rows].to(logits.device) for column in (self.label, self.s))
        if self.single:
            logits, target = logits[:, 0], target.to(logits.dtype)
        loss: Tensor = self.fair(logits, target, s[:, 0] if s.shape[1] == 1 else s)
        return loss

    def move_head(self, module: nn.Module, name: str, inputs: NetworkInputs) -> None:
        """Moves a head into the bounds on the training rows: `FairGradClassifier` ends so too."""
        try:
            features = LayerInputs(compute_features(module, inputs, head=name, verbose=False))
        except ValueError:  # the head is not the last step, so its inputs are not enough
            return
        _, head = find_head(module, name)
        if head.bias is None:
            head.bias = nn.Parameter(head.weight.new_zeros(head.out_features))
        layer = torch.column_stack([head.weight, head.bias]).detach().cpu().double().numpy()
        start = layer[1:] - layer[:1] if len(layer) == 2 else layer
        search = LastLayers(self.rows, self.constraints, [features], [start], self.fair.cost_matrix)
        change = search.keep_bounds().layer - start
        if len(layer) == 2:  # two outputs share the change of their margin
            change = np.concatenate([-change / 2, change / 2])
        moved = torch.from_numpy(layer + change)
        with torch.no_grad():
            head.weight.copy_(moved[:, :-1])
            head.bias.copy_(moved[:, -1])

    def warn_of_faults(self, inputs: NetworkInputs, *networks: nn.Module) -> None:
        """Warns of faults of a network; a second network is the one that training started from."""
        costs = self.fair.cost_matrix
        fair, *plain = (
            model_figures(self.constraints, self.rows, _predict(network, inputs), costs)
            for network in networks
        )
        is_auto = self.fair.fairness_rate == "auto"
        search = "a larger max_iter" if is_auto else 'fairness_rate="auto"'
        asked = None if np.ndim(self.epsilon) else float(self.epsilon)
        warn_of_faults(
            Suggestions(asked=asked, search=search, aware=""),
            fair,
            constant_figures(self.constraints, self.rows, costs),
            plain[0] if plain else None,
            labels=self.rows.groups.labels.tolist(),
        )


def _predict(module: nn.Module, inputs: NetworkInputs) -> Ints:
    """(n,) the index of each row's predicted label."""
    logits = predict_logits(module, inputs, verbose=False)
    predicted = logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(1)
    return np.asarray(predicted, dtype=np.int64)


def _judge(
    validation: Any,
    transform: Callable[[Any], Any] | None,
    classes: NDArray[Any],
    measure: Any,
    y_desirable: Any,
) -> Callable[[nn.Module], dict[str, float]]:
    """A function from a network to its figures on validation rows, which are checked at once."""
    if validation is None:
        return lambda _: {}
    X, y, s, _ = unpack_rows(validation, "validation")
    inputs = NetworkInputs(X, transform)
    rows = _labelled(inputs, y, s, classes)

    def judge(module: nn.Module) -> dict[str, float]:
        predicted = _predict(module, inputs)
        figures = {"accuracy": float((predicted == rows.label).mean())}
        if measure is not None and s is not None:
            constraints = constraints_of(measure, rows.groups, y_desirable=y_desirable)
            gaps = constraints.gaps(levels_of(constraints, rows, predicted))
            figures["unfairness"] = float(unfairness(gaps))
        return figures

    return judge


@dataclass(frozen=True, eq=False)
class HeadFrontier:
    """Heads of one network for many epsilons, judged, and the choice of one.

    Attributes:
        network: the network the features are of; it is never changed.
        head: the name of its head.
        frontier: the heads as linear classifiers on the features, with all that
            `fairgrad.frontier.Frontier` offers: points, audits, charts.

    See `finetune_head` for an example.
    """

    network: nn.Module
    head: str
    frontier: Frontier

    @property
    def points(self) -> pd.DataFrame:
        """One row per head: epsilon, accuracy and unfairness with their intervals."""
        points: pd.DataFrame = self.frontier.points_
        return points

    @property
    def classes(self) -> NDArray[Any]:
        """The labels in the order of the outputs; with one output, above 0 is the second."""
        classes: NDArray[Any] = self.frontier.classes_
        return classes

    def module(self, position: int) -> nn.Module:
        """A copy of the network with the head of a point: an ordinary module.

        Two classes share a margin z: as logits it is -z/2 and z/2, whose softmax is the same.

        Args:
            position: of the point in `points`.
        """
        model = self.frontier.estimators_[position]
        _, old_head = find_head(self.network, self.head)
        weight, bias = (torch.from_numpy(tensor) for tensor in (model.coef_, model.intercept_))
        n_outputs = _count_outputs(old_head, len(model.classes_))
        if n_outputs == 2:
            weight, bias = (torch.cat([-tensor / 2, tensor / 2]) for tensor in (weight, bias))
        layer = _new_head(old_head, n_outputs)
        with torch.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        return with_head(self.network, self.head, layer)

    def select(
        self, *, max_unfairness: float | None = None, min_accuracy: float | None = None
    ) -> nn.Module:
        """A network chosen by its figures on the validation rows, as `Frontier.select` does.

        Args:
            max_unfairness: takes the most accurate one that is at most so unfair.
            min_accuracy: takes the fairest one that is at least so accurate.

        Raises:
            ValueError: if none qualifies; the message names the best there is.
        """
        position = self.frontier.choose(max_unfairness=max_unfairness, min_accuracy=min_accuracy)
        return self.module(position)


def finetune_head(
    module: nn.Module,
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    fairness_measure: Any = "equalized_odds",
    epsilons: Any = 16,
    estimator: FairGradClassifier | None = None,
    sample_weight: Any = None,
    validation: Any = None,
    test: Any = None,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    batch_size: int = 256,
    verbose: bool | str = "auto",
    **settings: Any,
) -> HeadFrontier:
    """Trains the head of a network for many epsilons in one pass; all other layers stay.

    Every row goes through the network once. The heads, one per epsilon, are then trained as one
    stack on the features, which takes seconds where an epoch of the network takes minutes. To train
    heads on features that `compute_features` gave before, pass the head itself as the module.

    Args:
        module: the network, which is left as it is; what it returns must be its head's outputs.
        X: rows, as in `finetune`.
        y: (n,) labels of any kind.
        sensitive_features: (n,) sensitive values, or a table with one column per attribute.
        fairness_measure: as in `fairgrad.torch.FairLoss`.
        epsilons: how many heads, from exact fairness to the plain one; or a list of epsilons.
        estimator: settings of the training; a linear `FairGradClassifier`. For fair decisions on
            the outputs of a network see `fairgrad.torch.FairDecision.tuned`.
        sample_weight: (n,) non-negative weights.
        validation: (X, y, sensitive_features) to judge and choose on; by default a part of the
            rows is held out, the same share of every label in every group.
        test: (X, y, sensitive_features) to judge on besides.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch.
        batch_size: rows that go through the network at a time.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.
        settings: further arguments of `fairgrad.frontier.Frontier`, such as random_state.

    Raises:
        ValueError: if the head is not found, or an argument is not allowed.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> s = torch.arange(2000) % 2
        >>> X = torch.randn(2000, 4) + 0.5 * s[:, None]
        >>> y = (X.sum(1) > 1).long()
        >>> network = torch.nn.Sequential(
        ...     torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
        ... )
        >>> found = finetune_head(
        ...     network, X, y, s, fairness_measure="demographic_parity", epsilons=6, random_state=0
        ... )
        >>> found.points[["epsilon", "validation_unfairness"]].shape
        (6, 2)
        >>> found.select(max_unfairness=0.1)(X).shape
        torch.Size([2000, 2])
    """
    estimator = FairGradClassifier() if estimator is None else estimator
    is_linear = isinstance(estimator, FairGradClassifier)
    if not is_linear or np.size(estimator.hidden_layer_sizes):
        raise ValueError(
            "estimator: expected a linear FairGradClassifier (no hidden_layer_sizes), "
            f"got {estimator!r}."
        )

    def features(rows: Any) -> NDArray[np.float32]:
        return compute_features(
            module, rows, head=head, transform=transform, batch_size=batch_size, verbose=verbose
        )

    judged: dict[str, Any] = {"validation": validation, "test": test}
    for name, argument in judged.items():
        if argument is not None:
            V, *columns = unpack_rows(argument, name)
            judged[name] = (features(V), *columns)
    frontier = Frontier(estimator, fairness_measure, epsilons, **settings)
    weighted = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    frontier.fit(features(X), y, **weighted, **judged)
    return HeadFrontier(module, find_head(module, head)[0], frontier)


def compute_features(
    module: nn.Module,
    X: Any,
    *,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    batch_size: int = 256,
    verbose: bool | str = "auto",
) -> NDArray[np.float32]:
    """(n, features) what reaches the head of a network, in evaluation mode.

    Args:
        module: the network, which is left as it is.
        X: rows, as in `finetune`.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch.
        batch_size: rows at a time.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Raises:
        ValueError: if no head is found, or what it gives is not what the network returns.

    Example:
        >>> network = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
        >>> compute_features(network, torch.zeros(4, 3)).shape
        (4, 5)
    """
    inputs, (name, layer) = NetworkInputs(X, transform), find_head(module, head)
    features: NDArray[np.float32] = np.empty((len(inputs), layer.in_features), dtype=np.float32)
    seen: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, passed: seen.append(passed[0].detach()))
    try:
        with _evaluating(module), torch.no_grad():
            for place, batch in inputs.pieces(batch_size, verbose, "features"):
                logits = _logits(module, batch)
                if place.start == 0:
                    _check_head(name, layer, list(seen), logits, place.stop)
                features[place] = seen[0].float().cpu().numpy()
                seen.clear()
    finally:
        handle.remove()
    return features


def _check_head(name: str, layer: nn.Linear, seen: list[Tensor], logits: Tensor, n: int) -> None:
    """Refuses a head that is not the network's last step, by the first n rows."""
    if len(seen) != 1:
        raise ValueError(f"head: {name!r} is used {len(seen)} times per batch, not once.")
    (features,) = seen
    if features.ndim != 2 or len(features) != n:
        raise ValueError(
            f"head: expected one vector of features per row at {name!r}, got shape "
            f"{tuple(features.shape)} for {n} rows; name another head."
        )
    outputs = layer(features)
    if logits.shape != outputs.shape or not torch.equal(logits, outputs):
        raise ValueError(
            f"head: the outputs of {name!r} are not the logits that the network returns. Name the "
            "last linear layer with head=."
        )


def predict_logits(
    module: nn.Module,
    X: Any,
    *,
    transform: Callable[[Any], Any] | None = None,
    batch_size: int = 256,
    verbose: bool | str = "auto",
) -> Tensor:
    """(n, outputs) the logits of many rows, in evaluation mode and without a gradient.

    Args:
        module: the network, which is left as it is.
        X: rows, as in `finetune`.
        transform: applied to every batch.
        batch_size: rows at a time.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Example:
        >>> predict_logits(torch.nn.Linear(3, 2), torch.zeros(5, 3)).shape
        torch.Size([5, 2])
    """
    inputs = X if isinstance(X, NetworkInputs) else NetworkInputs(X, transform)
    with _evaluating(module), torch.no_grad():
        pieces = inputs.pieces(batch_size, verbose, "batches")
        return torch.cat([_logits(module, batch).float().cpu() for _, batch in pieces])


class NetworkInputs:
    """Rows for a network, gathered batch by batch: only one batch is in memory at a time.

    Args:
        rows: as in `finetune`.
        transform: applied to every batch; None for none.

    Raises:
        TypeError: if they are of no kind that can be read.
        ValueError: if there are none, or named columns differ in length.
    """

    def __init__(self, rows: Any, transform: Callable[[Any], Any] | None = None) -> None:
        is_named = isinstance(rows, Mapping)
        columns = {str(k): _readable(v) for k, v in (rows if is_named else {"X": rows}).items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"X: expected named columns of one length, got {lengths}.")
        self._n = next(iter(lengths.values()))
        if self._n == 0:
            raise ValueError("X: expected at least one row, got none.")
        self.rows, self.transform = columns if is_named else columns["X"], transform

    def __len__(self) -> int:
        return self._n

    def batch(self, index: Ints) -> Any:
        """Some rows as the network takes them: a tensor, or named tensors."""
        batch = _gather(self.rows, index)
        if self.transform is not None:
            return self.transform(batch)
        if isinstance(batch, (list, tuple)) and not isinstance(batch[0], str):
            raise TypeError(
                f"X: expected examples that are inputs alone, got {len(batch)} parts in each; take "
                "what the network needs by transform=, or pass arrays."
            )
        return batch

    def pieces(self, size: int, verbose: bool | str, unit: str) -> Iterator[tuple[slice, Any]]:
        """All rows in their order, so many at a time, each piece with its place; under a bar."""
        check_count("batch_size", size)
        for piece in _progress(-(-len(self) // size), verbose, unit):
            start, stop = piece * size, min((piece + 1) * size, len(self))
            yield slice(start, stop), self.batch(np.arange(start, stop))


def _readable(rows: Any) -> Any:
    """Frames as arrays; everything else that has a length as it is."""
    if hasattr(rows, "to_numpy"):
        return rows.to_numpy()
    is_indexed = hasattr(rows, "__getitem__") or hasattr(rows, "batch")
    if not (is_indexed and hasattr(rows, "__len__")) or isinstance(rows, (str, bytes)):
        raise TypeError(
            "X: expected a tensor, an array, a mapping of these, or a sequence of examples, got "
            f"{type(rows).__name__}."
        )
    return rows


def _gather(rows: Any, index: Ints) -> Any:
    if isinstance(rows, Mapping):
        return {name: _gather(column, index) for name, column in rows.items()}
    if isinstance(rows, Tensor):
        return rows[torch.from_numpy(index).to(rows.device)]
    if hasattr(rows, "batch") or isinstance(rows, np.ndarray):
        batch = rows.batch(index) if hasattr(rows, "batch") else rows[index]
        if not isinstance(batch, np.ndarray):
            return batch
        # Texts are left to the transform, which is their tokeniser.
        return torch.from_numpy(np.array(batch)) if batch.dtype.kind in "biuf" else batch.tolist()
    examples = [rows[int(i)] for i in index]
    return examples if isinstance(examples[0], str) else default_collate(examples)


def _labelled(
    inputs: NetworkInputs, y: Any, sensitive_features: Any, labels: Any = None
) -> GroupedRows:
    """Labels and groups of rows for a network; one group if there are no sensitive values."""
    n = len(inputs)
    n_labels = len(next(iter(as_columns(y, "y").values())))
    if n_labels != n:
        raise ValueError(f"y: expected one label per row of X ({n}), got {n_labels}.")
    s: Any = np.zeros(n, dtype=np.int64)
    if sensitive_features is not None:
        s = sensitive_columns(sensitive_features, n)
    rows = group_rows(y, s, labels=labels, arguments=("y", "sensitive_features", "sample_weight"))
    labels_seen = rows.groups.labels.tolist()
    if len(labels_seen) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {labels_seen}.")
    return rows


def _progress(n: int, verbose: bool | str, unit: str) -> ProgressBar:
    return ProgressBar(n, enabled=None if verbose == "auto" else bool(verbose), unit=unit)


def _logits(module: nn.Module, batch: Any) -> Tensor:
    """(n, outputs) the logits of a batch; named inputs are passed by name.

    A tensor is taken as it is, and so is the entry or attribute ``logits`` of anything else, as in
    the models of Hugging Face.
    """
    own = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(0))

    def moved(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        # Arrays and frames have double precision unless somebody sees to it.
        is_converted = {value.dtype, own.dtype} == {torch.float32, torch.float64}
        return value.to(own.device, own.dtype if is_converted else value.dtype)

    if isinstance(batch, Mapping):
        returned = module(**{name: moved(value) for name, value in batch.items()})
    else:
        returned = module(moved(batch))
    logits = returned if isinstance(returned, Tensor) else getattr(returned, "logits", None)
    if isinstance(returned, Mapping):
        logits = returned.get("logits")
    if not isinstance(logits, Tensor):
        raise TypeError(
            "module: expected it to return a tensor of logits, or something with an entry or "
            f"attribute 'logits', got {type(returned).__name__}; wrap it in a module that does."
        )
    return logits[:, None] if logits.ndim == 1 else logits


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Inside, all layers are in evaluation mode; after it each is in its own again."""
    before = [(layer, layer.training) for layer in module.modules()]
    module.train(mode=False)
    try:
        yield
    finally:
        for layer, training in before:
            layer.training = training


def find_head(module: nn.Module, head: str | None = None) -> tuple[str, nn.Linear]:
    """The last linear layer of a network, or of the part of it with that name, and its path.

    Args:
        module: the network.
        head: name of the head, as in ``module.named_modules()``. If it names a larger part, such
            as a sequence of dropout and a linear layer, its last linear layer is the head.

    Raises:
        ValueError: if there is no such part, or no linear layer in it.
        TypeError: if it is no network.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module: expected a torch.nn.Module, got {module!r}.")
    layers = dict(module.named_modules(remove_duplicate=False))
    linear = {name: layer for name, layer in layers.items() if isinstance(layer, nn.Linear)}
    if head is not None and head not in layers:
        raise ValueError(
            f"head: expected the name of a part of {type(module).__name__}, got {head!r}; "
            f"its linear layers are {list(linear)[-10:]}."
        )
    inside = [name for name in linear if not head or f"{name}.".startswith(f"{head}.")]
    if not inside:
        raise ValueError(
            f"head: expected a linear layer (torch.nn.Linear) in {head or 'the module'}, a "
            f"{type(layers[head or '']).__name__}, which has none; name one with head=, or put one "
            "behind the network."
        )
    return inside[-1], linear[inside[-1]]


def with_head(module: nn.Module, name: str, layer: nn.Module) -> nn.Module:
    """A deep copy of a network with another layer in the place of its head."""
    if not name:
        return layer
    changed = copy.deepcopy(module)
    parent, _, last = name.rpartition(".")
    setattr(changed.get_submodule(parent), last, layer)
    return changed


def _new_head(old: nn.Linear, n_outputs: int) -> nn.Linear:
    """A linear layer with fresh weights, where the old one is."""
    weight = old.weight
    return nn.Linear(old.in_features, n_outputs, device=weight.device, dtype=weight.dtype)


def _count_outputs(old: nn.Linear, n_classes: int) -> int:
    """Outputs of the new head: one per class, or one for both of two if the old one had one."""
    return 1 if n_classes == 2 and old.out_features == 1 else n_classes
