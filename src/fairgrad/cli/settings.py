"""What the user asks a model to be, checked before anything is read or trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairgrad.measures import ALIASES, MEASURES, On

if TYPE_CHECKING:
    from collections.abc import Sequence

PAPER_EPOCHS = 50
SHOWN_POINTS = 16


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes:
        measure: the name of the fairness measure.
        epsilon: slack of its constraints; None for exact fairness, or where a bound chooses it.
        max_unfairness: take the most accurate of many models at most so unfair.
        min_accuracy: take the fairest of many models at least so accurate.
        separate: constrain each sensitive column apart, instead of their combinations.
        model: "network", or "lightgbm" for boosted trees.
        hidden: units of the hidden layers; none is a linear model.
        epochs: passes over the rows, or how many trees; None for the estimator's own choice.
        batch_size: rows per step; None for the estimator's own choice.
        paper_grid: train the paper's six combinations and select as the paper does.
        points: models of the frontier, where one is trained.
        seed: of the split, the initial weights and the shuffling.
        verbose: whether to show a progress bar; "auto" on terminals, when it takes long.
    """

    measure: str = "equalized_odds"
    epsilon: float | None = None
    max_unfairness: float | None = None
    min_accuracy: float | None = None
    separate: bool = False
    model: str = "network"
    hidden: tuple[int, ...] = ()
    epochs: int | None = None
    batch_size: int | None = None
    paper_grid: bool = False
    points: int = SHOWN_POINTS
    seed: int = 0
    verbose: bool | str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", ALIASES.get(self.measure, self.measure))
        if self.measure not in MEASURES:
            raise ValueError(f"--measure is {self.measure!r}; allowed are {', '.join(MEASURES)}")
        bounds = {
            "--epsilon": self.epsilon,
            "--max-unfairness": self.max_unfairness,
            "--min-accuracy": self.min_accuracy,
        }
        given = [name for name, value in bounds.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; give one of them")
        if self.paper_grid and self.by_frontier:
            raise ValueError(f"--grid paper and {given[0]} exclude each other; give one of them")
        if self.paper_grid and self.batch_size is not None:
            raise ValueError("--grid paper tries batches of 64 and 512; leave out --batch-size")
        if self.grows_trees:
            self._check_trees()

    def _check_trees(self) -> None:
        for option, given in {
            "--hidden": self.hidden,
            "--batch-size": self.batch_size,
            "--grid paper": self.paper_grid,
        }.items():
            if given:
                raise ValueError(f"{option} is for networks; leave it out with --model lightgbm")

    @property
    def grows_trees(self) -> bool:
        """Whether the model is boosted trees."""
        return self.model == "lightgbm"

    @property
    def by_frontier(self) -> bool:
        """Whether the model is chosen among those of a frontier."""
        return self.max_unfairness is not None or self.min_accuracy is not None

    def measure_on(self, attributes: Sequence[str]) -> Any:
        """The measure as the estimator takes it."""
        if self.separate and len(attributes) > 1:
            return [On(name, self.measure) for name in attributes]
        return self.measure

    def network(self) -> dict[str, Any]:
        """Parameters of the estimator that every way of training shares."""
        parameters: dict[str, Any] = {
            "hidden_layer_sizes": self.hidden,
            # The paper's networks: without these, deep ones swing too much to be made fair.
            "batch_norm": bool(self.hidden),
            "dropout": 0.2 if self.hidden else 0.0,
            "random_state": self.seed,
            "verbose": self.verbose,
        }
        if self.epochs is not None:
            parameters["max_iter"] = self.epochs
        if self.batch_size is not None:
            parameters["batch_size"] = self.batch_size
        return parameters

    def in_words(self, attributes: Sequence[str]) -> dict[str, str]:
        """For people: what was asked."""
        joined = " and ".join(attributes)
        several = f"{joined}, {'each by itself' if self.separate else 'crossed'}"
        words = {
            "Fairness measure": self.measure.replace("_", " "),
            "Groups by": several if len(attributes) > 1 else joined,
            "Asked for": self._asked(),
            "Model": self._model(),
            "Seed": str(self.seed),
        }
        if self.paper_grid:
            words["Training"] = "the paper's grid of 6 combinations, selected on validation rows"
        return words

    def _model(self) -> str:
        if self.grows_trees:
            return "boosted trees (LightGBM)"
        return f"hidden layers {', '.join(map(str, self.hidden))}" if self.hidden else "linear"

    def _asked(self) -> str:
        if self.max_unfairness is not None:
            return f"the most accurate model with an unfairness of at most {self.max_unfairness:g}"
        if self.min_accuracy is not None:
            return f"the fairest model with an accuracy of at least {self.min_accuracy:g}"
        return f"epsilon {self.epsilon:g}" if self.epsilon else "exact fairness (epsilon 0)"
