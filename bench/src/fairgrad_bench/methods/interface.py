"""What a method is, what it is asked to train and what it gives: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from fairgrad.datasets import Split

NETWORKS = ("linear", "nonlinear")
"""The paper's models."""

MODELS = (*NETWORKS, "lightgbm")
GRIDS = ("paper", "quick")

Settings = dict[str, Any]
"""One combination of hyper-parameters, by their names."""


@dataclass(frozen=True, eq=False)
class Task:
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

    Example:
        >>> from fairgrad.datasets import load
        >>> task = Task({10: load("german").split(10)}, "linear", "equalized_odds", "quick")
        >>> task.epochs
        50
    """

    splits: Mapping[int, Split]
    model: str
    measure: str | None
    grid: str
    epochs: int = 50
    y_desirable: tuple[int, ...] = (1,)
    combinations: tuple[Settings, ...] | None = None

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

    Example:
        >>> from fairgrad.datasets import load
        >>> from fairgrad.methods import methods
        >>> task = Task({10: load("german").split(10)}, "linear", None, "quick")
        >>> candidate = methods()["constant"].train(task)[0]
        >>> candidate.seed, candidate.test.shape
        (10, (200,))
    """

    seed: int
    settings: Settings
    epoch: int
    validation: NDArray[Any]
    test: NDArray[Any]
    test_positive_rate: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Method:
    """A way to train classifiers.

    Attributes:
        name: as in tables; the name of its file.
        description: one sentence.
        uses_measure: whether it trains another model for every measure.
        needs_s_to_predict: whether predictions need the sensitive value.
        unsupported: why it cannot do a task, or None if it can.
        settings: the combinations of hyper-parameters for a model and a grid.
        train: all models of a task: every seed, every combination, the last epochs of each.

    Example:
        >>> from fairgrad.methods import methods
        >>> method = methods()["fairgrad"]
        >>> method.uses_measure, method.needs_s_to_predict
        (True, False)
    """

    name: str
    description: str
    uses_measure: bool
    needs_s_to_predict: bool
    unsupported: Callable[[Task], str | None]
    settings: Callable[[str, str], list[Settings]]
    train: Callable[[Task], list[Candidate]]
