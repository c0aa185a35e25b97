"""Trains the models of a task: networks as one stack, trees and other learners one by one.

The features of a seed are standardised by its own training rows, so the stack's table holds the
rows of every split; members take their seed's rows. Combinations of one batch size make a stack.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad.training import (
    LinearStack,
    Member,
    PerceptronStack,
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
    from fairgrad.training import Network, StackParts, Training
    from fairgrad_bench.methods.interface import Combination, MethodTask

    MakeNetwork = Callable[[Tensor, dict[str, Tensor]], Network]

HIDDEN = (128, 64, 32)
"""The hidden layers of the paper's nonlinear model."""

LAYERS: Combination = {"hidden": HIDDEN, "batch_norm": True, "dropout": 0.2}
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

TREES: Combination = {"n_estimators": 300, "colsample_bytree": 0.3, "n_jobs": 1, "verbose": -1}
"""What all boosted models share; no tree sees most of the columns, which fits less noise."""

USUAL_TREES: Combination = {"num_leaves": 15, "min_child_samples": 50}
"""The trees of methods that have other settings to choose among."""


def train_fair(
    task: MethodTask, combinations: Sequence[Combination], *, negative_weights: bool = True
) -> list[Candidate]:
    """Trains the paper's algorithm; combinations may set epsilon and the fairness rate."""
    fairness: Combination = {
        "fairness_measure": task.measure,
        "fairness_rate": FAIRNESS_RATE,
        "negative_weights": negative_weights,
        "y_desirable": task.y_desirable,
    }
    return train_stacked(task, combinations, **fairness, **SGD)


def train_stacked(
    task: MethodTask,
    combinations: Sequence[Combination],
    *,
    weight_of: Callable[[Split], Floats] | None = None,
    parts_of: Callable[[Sequence[Combination]], StackParts] | None = None,
    network_of: MakeNetwork | None = None,
    solver: str = "sgd",
    **of_all: Any,
) -> list[Candidate]:
    """The models of the last five epochs of every seed and combination.

    Args:
        task: what to train.
        combinations: hyper-parameters, of which ``batch_size`` must be one.
        weight_of: sample weights of a split's training rows.
        parts_of: other parts of the stack, for the settings of its members in their given order.
        network_of: makes a network, of parameters and buffers, that is not the stack's own.
        solver: "sgd" or "adam".
        of_all: settings of all members, which combinations may override.
    """
    table, rows = _table(task, weight_of)
    candidates = []
    for own in stacks(combinations, ["batch_size"], lambda _: MOST_MEMBERS // len(task.splits)):
        pairs = list(product(task.splits, own))
        settings = [combination for _, combination in pairs]
        members = [
            Member(
                seed=seed,
                rows=rows[seed][0],
                validation=rows[seed][1],
                **of_all | {name: one[name] for name in MEMBER_SETTINGS & one.keys()},
            )
            for seed, one in pairs
        ]
        plan = TrainingPlan(
            epochs=task.epochs,
            batch_size=own[0]["batch_size"],
            solver=solver,
            **(LAYERS if task.model == "nonlinear" else {}),
        )
        training = train(table, members, plan, parts=parts_of(settings) if parts_of else None)
        make = network_of or own_network(training)
        candidates += list(_candidates(task, pairs, training, make, table))
    return candidates


def _table(
    task: MethodTask, weight_of: Callable[[Split], Floats] | None
) -> tuple[TrainingTable, dict[int, tuple[Ints, Ints]]]:
    """The rows of all splits, and which are each seed's training and validation rows."""
    parts = [part for split in task.splits.values() for part in (split.train, split.validation)]
    edges = np.cumsum([0, *(len(part) for part in parts)])
    pieces = [np.arange(start, end) for start, end in pairwise(edges.tolist())]
    rows = dict(zip(task.splits, zip(pieces[::2], pieces[1::2], strict=True), strict=True))
    weight = None
    if weight_of is not None:
        weight = np.ones(edges[-1])
        for seed, split in task.splits.items():
            weight[rows[seed][0]] = weight_of(split)
    X, y, s = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "s"))
    return TrainingTable.from_data(X, y, s, weight), rows


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


def own_network(training: Training) -> MakeNetwork:
    """Makes networks of the kind that was trained, of parameters and buffers."""
    shape = training.shape
    assert shape is not None  # noqa: S101 - only other networks have none
    if not shape.hidden:
        return lambda parameters, _: LinearStack(shape, 1, parameters)
    return lambda parameters, buffers: PerceptronStack(shape, [0], parameters, buffers)


def _candidates(
    task: MethodTask,
    pairs: Sequence[tuple[int, Combination]],
    training: Training,
    make: MakeNetwork,
    table: TrainingTable,
) -> Iterator[Candidate]:
    for seed, split in task.splits.items():
        members = [m for m, (own, _) in enumerate(pairs) if own == seed]
        for epoch, state in training.kept.items():
            network = members_network(state, members, make)
            validation, test = (
                predicted_labels(network, part.X, table.groups.labels)
                for part in (split.validation, split.test)
            )
            for i, member in enumerate(members):
                yield Candidate(seed, dict(pairs[member][1]), epoch, validation[i], test[i])


def members_network(state: Mapping[str, Tensor], members: list[int], make: MakeNetwork) -> Network:
    """Some members of a trained stack as a network on one stream of rows."""
    buffers = {
        name.removeprefix("buffers."): tensor[members]
        for name, tensor in state.items()
        if name.startswith("buffers.")
    }
    return make(state["network.parameters"][members], buffers)


def predicted_labels(network: Network, X: np.ndarray, labels: np.ndarray) -> Ints:
    """(M, n) the label that each of M models on one stream gives each row.

    A margin of 0 is the first label, as for a softmax.
    """
    codes = []
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = torch.from_numpy(np.ascontiguousarray(X[start : start + ROWS_AT_ONCE]))
        scores = network.scores(rows.to(network.parameters.dtype)[None])
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
    """An unfitted boosted classifier; without a measure it is LightGBM's own."""
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
