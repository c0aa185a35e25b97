"""Settings of training: those that all models of a stack share, and those of each model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairgrad.checks import check_count, check_number, is_number

SOLVERS = ("sgd", "adam")
SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """What all models of a stack have in common. The defaults are the paper's linear model.

    Attributes:
        hidden: units of the hidden layers; none is a linear model.
        dropout: share of hidden units dropped in training.
        epochs: passes over the rows.
        batch_size: rows per step; the last batch of an epoch may be smaller.
        solver: "sgd" or "adam".
        schedule: of the learning rates: "constant", or "cosine" to let them fall to 0 by the last
            step.
        average_last: share of the steps, at the end, over which the weights are averaged; from
            then on the average is what is recorded and kept.
        keep: of how many last epochs the models are kept for selection.
        seed: of the initial weights, the shuffling and the dropout.
        fairness_measure: as in `fairgrad.torch.FairLoss`; None trains plain models.
        y_desirable: the desirable labels; by default the second of two in sorted order.
        cost_matrix: the cost of predicting each label (columns) where each is true (rows); None
            if every mistake costs 1.
        negative_weights: False clips the cells' weights at 0, for ablation only.

    Raises:
        ValueError: if a setting is out of its range or not known.

    Example:
        >>> TrainingPlan(hidden=(128, 64, 32), dropout=0.2).epochs
        50
    """

    hidden: tuple[int, ...] = ()
    dropout: float = 0.0
    epochs: int = 50
    batch_size: int = 64
    solver: str = "sgd"
    schedule: str = "constant"
    average_last: float = 0.0
    keep: int = 5
    seed: int = 0
    fairness_measure: Any = None
    y_desirable: Any = None
    cost_matrix: Any = None
    negative_weights: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            check_count("hidden", units)
        for name in ("epochs", "batch_size", "keep"):
            check_count(name, getattr(self, name))
        check_number("dropout", self.dropout, below=1.0)
        if self.average_last != 1:
            check_number("average_last", self.average_last, below=1.0)
        for name, allowed in {"solver": SOLVERS, "schedule": SCHEDULES}.items():
            if getattr(self, name) not in allowed:
                got = getattr(self, name)
                raise ValueError(f"{name}: expected one of {list(allowed)}, got {got!r}.")

    def rate_factor(self, progress: Any) -> Any:
        """What learning rates are multiplied by after this share of all steps, or each of many."""
        if self.schedule != "cosine":
            return 1.0 + 0.0 * progress
        return 0.5 * (1 + np.cos(np.pi * progress))


@dataclass(frozen=True, kw_only=True)
class Member:
    """One model of a stack: its own settings.

    Attributes:
        learning_rate: step size of the weights.
        weight_decay: added to the gradient times the weights, as PyTorch's optimisers do.
        clip_norm: the gradient's largest Euclidean norm; infinity for none.
        epsilon: slack of the constraints.
        fairness_rate: step size of the multipliers; "auto" for the rule of `fairgrad.dual`, which
            all models of a stack have or none; 0 trains a plain model whose levels of fairness are
            recorded.
        proportional_rate: adds this times the current violation to the multipliers in use.
        error_memory: share of earlier batches kept in the error estimates.
        steady_share: constraints on cells with a smaller share of the rows have lower rates
            (``fairgrad.dual.with_steady_rates``); 0 is the paper, the same rates for all.

    Raises:
        ValueError: if a rate, the decay, the memory or the norm is out of its range.

    Example:
        >>> Member(epsilon=0.02).epsilon
        0.02
        >>> Member(learning_rate=-1.0)
        Traceback (most recent call last):
            ...
        ValueError: learning_rate: expected a finite number of at least 0, got -1.0.
    """

    learning_rate: float = 0.1
    weight_decay: float = 0.0
    clip_norm: float = math.inf
    epsilon: Any = 0.0
    fairness_rate: float | str = "auto"
    proportional_rate: float = 0.0
    error_memory: float = 0.0
    steady_share: float = 0.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "weight_decay", "fairness_rate", "proportional_rate"):
            if getattr(self, name) != "auto":
                check_number(name, getattr(self, name))
        for name in ("error_memory", "steady_share"):
            check_number(name, getattr(self, name), below=1.0)
        if not (is_number(self.clip_norm) and self.clip_norm > 0):
            raise ValueError(f"clip_norm: expected a number above 0, got {self.clip_norm!r}.")

    @property
    def is_fair(self) -> bool:
        """Whether the model is to be made fair."""
        return self.fairness_rate != 0 or self.proportional_rate > 0
