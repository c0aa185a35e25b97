"""Trains the models of a task: networks as stacks, trees and other learners one by one.

Combinations of one seed and one batch size make a stack.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from fairgrad.training import (
    Member,
    Perceptrons,
    StackParts,
    TrainingPlan,
    TrainingTable,
    train,
)
from fairgrad_bench.methods.interface import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

    from fairgrad.datasets import Encoded, Split
    from fairgrad.groups import Floats, Ints
    from fairgrad.training import Network, Stack
    from fairgrad_bench.methods.interface import Combination, MethodTask

    MakeNetwork = Callable[[Tensor, dict[str, Tensor]], Network]

HIDDEN = (128, 64, 32)
"""The hidden layers of the paper's nonlinear model."""

LAYERS: Combination = {"hidden": HIDDEN, "dropout": 0.2}
SGD: Combination = {"learning_rate": 0.1, "clip_norm": 0.05}
"""The paper's settings of gradient descent."""

FAIRNESS_RATE = 0.01
MOST_MEMBERS = 100
"""So many models at once gain all there is to gain from stacking, and fit into memory."""

ROWS_AT_ONCE = 1024
"""Rows predicted at once: few enough for the activations of many models to stay in memory."""

MEMBER_SETTINGS = frozenset(
    {"learning_rate", "clip_norm", "weight_decay", "fairness_rate", "epsilon"}
)
"""Hyper-parameters that the trainer itself knows, beside the batch size."""

MOMENTUM, EPS = 0.1, 1e-5
"""Of batch normalisation, as PyTorch has them."""

TREES: Combination = {"n_estimators": 300, "colsample_bytree": 0.3, "n_jobs": 1, "verbose": -1}
"""What all boosted models share; no tree sees most of the columns, which fits less noise."""

USUAL_TREES: Combination = {"num_leaves": 15, "min_child_samples": 50}
"""The trees of methods that have other settings to choose among."""


class NormalisedPerceptrons(Perceptrons):
    """Perceptrons with batch norm before every ReLU: the paper's nonlinear model."""

    def __init__(self, sizes: Sequence[int], n_members: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(sizes, n_members, *args, **kwargs)
        for layer, units in enumerate(sizes[1:-1]):
            self.buffers[f"mean{layer}"] = torch.zeros(n_members, units).to(self.gain.dtype)
            self.buffers[f"variance{layer}"] = torch.ones(n_members, units).to(self.gain.dtype)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters, with those of batch norm after each layer's."""
        pieces: dict[str, tuple[int, ...]] = {}
        for name, shape in super().shapes().items():
            pieces[name] = shape
            layer = name.removeprefix("bias")
            if layer.isdigit() and int(layer) < self.n_hidden:
                pieces |= {f"scale{layer}": shape, f"shift{layer}": shape}
        return pieces

    def normalised(
        self, pieces: Mapping[str, Tensor], layer: int, a: Tensor, training: bool
    ) -> Tensor:
        """(M, units, B) with mean 0 and variance 1 over the rows, then scaled and shifted."""
        scale, shift = pieces[f"scale{layer}"], pieces[f"shift{layer}"]
        return normalise(a, scale, shift, self.buffers, layer, training=training)


def normalise(
    a: Tensor,
    scale: Tensor,
    shift: Tensor,
    buffers: dict[str, Tensor],
    layer: int,
    *,
    training: bool,
) -> Tensor:
    """Normalises activations over the rows and keeps the running statistics.

    ``scale * (a - mean) / sqrt(variance + eps) + shift``, with the batch's mean and variance in
    training and the running ones in evaluation, as `torch.nn.BatchNorm1d` does. A batch of one row
    is normalised by the running statistics (PyTorch refuses it). Activations are (M, units, B),
    scale and shift (M, units), as are the running statistics of each layer.
    """
    members, units, rows = a.shape
    normalised = functional.batch_norm(
        a.reshape(1, members * units, rows),
        buffers[f"mean{layer}"].view(-1),
        buffers[f"variance{layer}"].view(-1),
        scale.reshape(-1),
        shift.reshape(-1),
        training=training and rows > 1,
        momentum=MOMENTUM,
        eps=EPS,
    )
    return normalised.view(a.shape)


def paper_network(stack: Stack) -> Network:
    """The paper's nonlinear models, for a stack."""
    plan = stack.plan
    return NormalisedPerceptrons(
        stack.sizes, len(stack.members), plan.seed, plan.dropout, stack.table.dtype
    )


def train_fair(
    task: MethodTask, combinations: Sequence[Combination], *, negative_weights: bool = True
) -> list[Candidate]:
    """Trains the paper's algorithm; combinations may set epsilon and the fairness rate."""
    asked: Combination = {
        "fairness_measure": task.measure,
        "negative_weights": negative_weights,
        "y_desirable": task.y_desirable,
    }
    fair: Combination = {"fairness_rate": FAIRNESS_RATE, **SGD}
    return train_stacked(task, combinations, plan=asked, **fair)


def train_stacked(
    task: MethodTask,
    combinations: Sequence[Combination],
    *,
    weight_of: Callable[[Split], Floats] | None = None,
    parts_of: Callable[[Sequence[Combination]], StackParts] | None = None,
    network_of: MakeNetwork | None = None,
    most_members: int = MOST_MEMBERS,
    plan: Combination | None = None,
    **of_all: Any,
) -> list[Candidate]:
    """The models of the last five epochs of every seed and combination.

    Args:
        task: what to train.
        combinations: hyper-parameters, with ``batch_size`` among them.
        weight_of: sample weights of a split's training rows.
        parts_of: other parts of a stack, for the settings of its members.
        network_of: makes a network, of parameters and buffers, that is not the stack's own.
        most_members: models of a stack.
        plan: settings of all stacks, beside those of the task.
        of_all: settings of all members, which combinations may override.
    """
    layers = LAYERS if task.model == "nonlinear" else {}
    candidates = []
    for seed, split in task.splits.items():
        n, both = len(split.train.y), (split.train, split.validation)
        X, y, s = (np.concatenate([getattr(part, k) for part in both]) for k in ("X", "y", "s"))
        weight = None
        if weight_of is not None:
            weight = np.concatenate([weight_of(split), np.ones(len(y) - n)])
        table = TrainingTable.from_data(X, y, s, weight)
        for own in stacks(combinations, ["batch_size"], lambda _: most_members):
            members = [
                Member(**of_all | {name: one[name] for name in MEMBER_SETTINGS & one.keys()})
                for one in own
            ]
            parts = parts_of(own) if parts_of else StackParts()
            if layers and parts.network is None:
                parts = replace(parts, network=paper_network)
            common = {"epochs": task.epochs, "batch_size": own[0]["batch_size"], "seed": seed}
            settings = TrainingPlan(**common, **layers, **plan or {})
            training = train(
                table,
                members,
                settings,
                rows=np.arange(n),
                validation=np.arange(n, len(y)),
                parts=parts,
            )
            n_outputs = 1 if table.n_labels == 2 else table.n_labels
            sizes = (X.shape[1], *settings.hidden, n_outputs)
            make = network_of or own_network(sizes)
            for epoch, state in training.kept.items():
                network = members_network(state, list(range(len(own))), make)
                validation, test = (
                    predicted_labels(network, part.X, table.groups.labels)
                    for part in (split.validation, split.test)
                )
                candidates += [
                    Candidate(seed, dict(one), epoch, validation[i], test[i])
                    for i, one in enumerate(own)
                ]
    return candidates


def stacks(
    combinations: Sequence[Combination], same: Sequence[str], most: Callable[..., int]
) -> Iterator[list[Combination]]:
    """Combinations that are the same in some settings, at most so many together."""
    alike: dict[tuple[Any, ...], list[Combination]] = {}
    for one in combinations:
        alike.setdefault(tuple(one[name] for name in same), []).append(one)
    for values, own in alike.items():
        step = max(1, most(*values))
        yield from (own[start : start + step] for start in range(0, len(own), step))


def own_network(sizes: Sequence[int]) -> MakeNetwork:
    """Makes linear models, or the paper's networks, of parameters and buffers."""

    def make(parameters: Tensor, buffers: dict[str, Tensor]) -> Network:
        kind = NormalisedPerceptrons if len(sizes) > 2 else Perceptrons
        network = kind(sizes, len(parameters), dtype=parameters.dtype)
        network.parameters, network.buffers = parameters, buffers
        return network

    return make


def members_network(state: Mapping[str, Tensor], members: list[int], make: MakeNetwork) -> Network:
    """Some members of a trained stack as a network."""
    buffers = {
        name.removeprefix("buffers."): tensor[members]
        for name, tensor in state.items()
        if name.startswith("buffers.")
    }
    return make(state["network.parameters"][members], buffers)


def predicted_labels(network: Network, X: np.ndarray, labels: np.ndarray) -> Ints:
    """(M, n) the label that each of M models gives each row.

    A margin of 0 is the first label, as for a softmax.
    """
    codes = []
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = torch.from_numpy(np.ascontiguousarray(X[start : start + ROWS_AT_ONCE]))
        scores = network.scores(rows.to(network.parameters.dtype))
        chosen = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(1)
        codes.append(chosen.long().numpy())
    found: Ints = labels[np.concatenate(codes, axis=1)].astype(np.int64)
    return found


def train_trees(
    task: MethodTask,
    combinations: Sequence[Combination],
    *,
    weight_of: Callable[[Split], Floats] | None = None,
) -> list[Candidate]:
    """One boosted model for every seed and combination, fair if the task has a measure.

    Args:
        task: what to train.
        combinations: LightGBM's parameters.
        weight_of: sample weights of a split's training rows.
    """
    candidates = []
    for (seed, split), own in product(task.splits.items(), combinations):
        desirable = np.asarray(task.y_desirable)
        model = boosted_trees(task.measure, seed, y_desirable=desirable, **own)
        X, y, s = split.train
        model.fit(X, y, None if weight_of is None else weight_of(split), sensitive_features=s)
        validation, test = (model.predict(part.X) for part in (split.validation, split.test))
        candidates.append(Candidate(seed, dict(own), 0, validation, test))
    return candidates


def boosted_trees(measure: str | None, seed: int, **settings: Any) -> Any:
    """An unfitted boosted classifier; without a measure it is LightGBM's."""
    from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: PLC0415 - slow to import

    return FairGradLGBMClassifier(
        measure, random_state=seed, **{"epsilon": 0.0, **TREES, **settings}
    )


def learner(model: str, seed: int, epochs: int) -> Any:
    """An unfitted logistic regression, a perceptron with the paper's hidden layers, or trees."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415 - slow to import

    if model == "linear":
        return LogisticRegression(max_iter=1000)
    if model == "lightgbm":
        return boosted_trees(None, seed, **USUAL_TREES)
    return MLPClassifier(HIDDEN, batch_size="auto", max_iter=epochs, random_state=seed)


@contextmanager
def expected_warnings() -> Iterator[None]:
    """Inside, warnings that say nothing to the user are not shown.

    A perceptron ends with its last epoch, as the paper's networks do, converged or not; and
    fairlearn uses what newer pandas deprecates.
    """
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - slow to import

    with warnings.catch_warnings():
        for category in (ConvergenceWarning, DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield


def randomised(
    seed: int, split: Split, settings: Combination, rate: Callable[[Encoded], Floats]
) -> Candidate:
    """The candidate of a model whose predictions are random: label 1 with a row's rate."""
    parts = (split.validation, split.test)
    validation, test = (np.clip(rate(part), 0.0, 1.0) for part in parts)
    return Candidate(seed, dict(settings), 0, drawn(validation, seed), drawn(test, seed), test)


def drawn(positive_rate: Floats, seed: int) -> Ints:
    """(n,) label 1 with the given probabilities, else 0; the seed fixes the draw."""
    chance = np.random.default_rng(seed).random(len(positive_rate))
    return (chance < positive_rate).astype(np.int64)
