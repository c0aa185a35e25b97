"""Trains all seeds and combinations of a task with the stacked trainer.

The features of a seed are standardised by its own training rows, so the table holds the rows of
every split; members take their seed's rows. Combinations of one batch size make a stack.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.methods.interface import Candidate
from fairgrad.methods.shared.predictions import predicted_labels
from fairgrad.training import (
    LinearStack,
    Member,
    PerceptronStack,
    TrainingPlan,
    TrainingTable,
    train,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from fairgrad.datasets import Split
    from fairgrad.groups import Floats, Ints
    from fairgrad.methods.interface import Settings, Task
    from fairgrad.training import Network, StackParts, State, Training

    MakeNetwork = Callable[[Tensor, dict[str, Tensor]], Network]

SGD: Settings = {"learning_rate": 0.1, "clip_norm": 0.05}
"""The paper's settings of gradient descent."""

LAYERS: Settings = {"hidden": (128, 64, 32), "batch_norm": True, "dropout": 0.2}
"""The paper's nonlinear model."""

MOST_MEMBERS = 100
"""So many models at once gain all there is to gain from stacking, and fit into memory."""

MEMBER_SETTINGS = frozenset(
    {"learning_rate", "clip_norm", "weight_decay", "fairness_rate", "epsilon"}
)
"""Hyper-parameters that the trainer itself knows, beside the batch size."""


def train_stacked(
    task: Task,
    combinations: Sequence[Settings],
    *,
    weight_of: Callable[[Split], Floats] | None = None,
    parts_of: Callable[[Sequence[Settings]], StackParts] | None = None,
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
    for own in _stacks(combinations, max(1, MOST_MEMBERS // len(task.splits))):
        pairs = list(product(task.splits, own))
        settings = [combination for _, combination in pairs]
        members = [
            Member(seed=seed, rows=rows[seed][0], validation=rows[seed][1], **of_all | _known(one))
            for seed, one in pairs
        ]
        plan = TrainingPlan(
            epochs=task.epochs,
            batch_size=own[0]["batch_size"],
            solver=solver,
            **(LAYERS if task.model == "nonlinear" else {}),
        )
        training = train(table, members, plan, parts=parts_of(settings) if parts_of else None)
        make = network_of or _own_network(training)
        candidates += list(_candidates(task, pairs, training, make, table))
    return candidates


def _table(
    task: Task, weight_of: Callable[[Split], Floats] | None
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


def _stacks(combinations: Sequence[Settings], most: int) -> list[list[Settings]]:
    """Combinations of one batch size, at most so many together."""
    by_size: dict[int, list[Settings]] = {}
    for combination in combinations:
        by_size.setdefault(combination["batch_size"], []).append(combination)
    return [
        own[start : start + most] for own in by_size.values() for start in range(0, len(own), most)
    ]


def _known(combination: Settings) -> Settings:
    return {name: value for name, value in combination.items() if name in MEMBER_SETTINGS}


def _own_network(training: Training) -> MakeNetwork:
    shape = training.shape
    assert shape is not None  # noqa: S101 - only other networks have none
    if not shape.hidden:
        return lambda parameters, _: LinearStack(shape, 1, parameters)
    return lambda parameters, buffers: PerceptronStack(shape, [0], parameters, buffers)


def _candidates(
    task: Task,
    pairs: Sequence[tuple[int, Settings]],
    training: Training,
    make: MakeNetwork,
    table: TrainingTable,
) -> Iterator[Candidate]:
    for seed, split in task.splits.items():
        members = [m for m, (own, _) in enumerate(pairs) if own == seed]
        for epoch, state in training.kept.items():
            network = _network(state, members, make)
            validation, test = (
                predicted_labels(network, part.X, table.groups.labels)
                for part in (split.validation, split.test)
            )
            for i, member in enumerate(members):
                yield Candidate(seed, dict(pairs[member][1]), epoch, validation[i], test[i])


def _network(state: State, members: list[int], make: MakeNetwork) -> Network:
    buffers = {
        name.removeprefix("buffers."): tensor[members]
        for name, tensor in state.items()
        if name.startswith("buffers.")
    }
    return make(state["network.parameters"][members], buffers)
