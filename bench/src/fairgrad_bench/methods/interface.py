"""What a method is, what it is asked to train and what it gives: plain data. And their listing."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.datasets import Split

NETWORKS = ("linear", "nonlinear")
"""The paper's models."""

MODELS = (*NETWORKS, "lightgbm")
GRIDS = ("paper", "quick")
DESIRABLE = (1,)
"""The labels that the benchmark takes as desirable, whatever the number of labels."""

Combination = dict[str, Any]
"""One combination of hyper-parameters, by their names."""


@dataclass(frozen=True, eq=False)
class MethodTask:
    """One unit of work: a method trains it for all seeds and combinations.

    Attributes:
        splits: for each seed its train, validation and test part, features standardised.
        model: "linear", "nonlinear" for hidden layers 128-64-32 with ReLU, batch normalisation and
            dropout 0.2, or "lightgbm" for boosted trees.
        measure: the name of a fairness measure; None if the method does not use it.
        grid: "paper" or "quick", which of the method's combinations to train.
        epochs: passes over the training rows, for methods that make such passes.
        y_desirable: labels that equality of opportunity speaks of.
        combinations: trains these instead of the grid's, as for a figure over one setting.

    Raises:
        ValueError: if the model or grid is not known, or there are no splits.
    """

    splits: Mapping[int, Split]
    model: str
    measure: str | None
    grid: str
    epochs: int = 50
    y_desirable: tuple[int, ...] = DESIRABLE
    combinations: tuple[Combination, ...] | None = None

    def __post_init__(self) -> None:
        for name, allowed in {"model": MODELS, "grid": GRIDS}.items():
            if getattr(self, name) not in allowed:
                got = getattr(self, name)
                raise ValueError(f"{name}: expected one of {list(allowed)}, got {got!r}.")
        if not self.splits:
            raise ValueError("splits: expected at least one seed, got none.")


@dataclass(frozen=True, eq=False)
class Candidate:
    """One trained model that was kept, by what it predicts.

    Attributes:
        seed: of its split, initial weights and shuffling.
        settings: its hyper-parameters.
        epoch: after which epoch (counted from 0) it was kept; 0 for methods without epochs.
        validation: (n,) predicted labels of the validation rows.
        test: (n,) predicted labels of the test rows.
        test_positive_rate: (n,) for randomised predictions the probability of label 1, from which
            expected rates follow; None if predictions are certain.
    """

    seed: int
    settings: Combination
    epoch: int
    validation: NDArray[Any]
    test: NDArray[Any]
    test_positive_rate: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Method:
    """A way to train classifiers.

    Attributes:
        name: as in tables; the name of its file.
        version: raised by hand whenever its results change, and by nothing else: records of an
            earlier version are then made anew.
        description: one sentence.
        unsupported: why it cannot do a task, or None if it can.
        settings: the combinations of hyper-parameters for a model and a grid.
        train: all models of a task: every seed, every combination, the last epochs of each.
        uses_measure: whether it trains another model for every measure.
        needs_s_to_predict: whether predictions need the sensitive value.
    """

    name: str
    version: int
    description: str
    unsupported: Callable[[MethodTask], str | None]
    settings: Callable[[str, str], list[Combination]]
    train: Callable[[MethodTask], list[Candidate]]
    uses_measure: bool = True
    needs_s_to_predict: bool = False

    def combinations(self, task: MethodTask) -> list[Combination]:
        """Those the task asks for, or else those of its grid."""
        if task.combinations is not None:
            return list(task.combinations)
        return self.settings(task.model, task.grid)


def methods() -> dict[str, Method]:
    """All methods by name, sorted: every module of the package that defines METHOD."""
    return {method.name: method for method in sorted(_listing(), key=lambda found: found.name)}


@cache
def _listing() -> tuple[Method, ...]:
    package = import_module("fairgrad_bench.methods")
    found = [
        import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return tuple(module.METHOD for module in found if hasattr(module, "METHOD"))


def crossed(**choices: Sequence[Any]) -> list[Combination]:
    """All combinations of some choices."""
    return [dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]


def nothing_to_set(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - a method's signature
    """The one combination of methods without hyper-parameters."""
    return [{}]


def batch_and_decay(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - one for all models
    """The paper's six combinations of batch size and weight decay, or two of them.

    Both batch sizes are needed: small ones on small data, where large ones make too few steps.
    """
    if grid == "quick":
        return crossed(batch_size=(64, 512), weight_decay=(0.0,))
    return crossed(batch_size=(64, 512), weight_decay=(0.0, 0.001, 0.01))


def usual(model: str, grid: str) -> list[Combination]:
    """Batch size and weight decay of networks; six sizes of boosted trees, or a single size."""
    if model != "lightgbm":
        return batch_and_decay(model, grid)
    if grid == "quick":
        return crossed(num_leaves=(15,), min_child_samples=(50,))
    return crossed(num_leaves=(15, 31), min_child_samples=(20, 50, 100))
