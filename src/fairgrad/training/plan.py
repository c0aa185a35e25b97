"""What the members of a stack have in common: the network's shape, the batches, the epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairgrad.training.member import check_count, check_number

SOLVERS = ("sgd", "adam")
DECAYS = ("constant", "cosine")


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """How a stack is trained. The defaults are the paper's linear model.

    Attributes:
        hidden: units of the hidden layers; none is a linear model.
        batch_norm: whether hidden layers are batch-normalised.
        dropout: share of hidden units dropped in training.
        epochs: passes over the rows.
        batch_size: rows per step; the last batch of an epoch may be smaller.
        solver: "sgd" or "adam".
        decay: "constant", or "cosine" to let the learning rates fall to 0 by the last step.
        average_last: share of the steps, at the end, over which the weights are averaged; from
            then on the average is what is recorded and kept.
        keep: of how many last epochs the models are kept for selection.

    Raises:
        ValueError: if a setting is out of its range or not known.

    Example:
        >>> TrainingPlan(hidden=(128, 64, 32), batch_norm=True, dropout=0.2).epochs
        50
    """

    hidden: tuple[int, ...] = ()
    batch_norm: bool = False
    dropout: float = 0.0
    epochs: int = 50
    batch_size: int = 64
    solver: str = "sgd"
    decay: str = "constant"
    average_last: float = 0.0
    keep: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            check_count("hidden", units)
        for name in ("epochs", "batch_size", "keep"):
            check_count(name, getattr(self, name))
        check_number("dropout", self.dropout, below=1.0)
        if self.average_last != 1:
            check_number("average_last", self.average_last, below=1.0)
        for name, allowed in {"solver": SOLVERS, "decay": DECAYS}.items():
            if getattr(self, name) not in allowed:
                got = getattr(self, name)
                raise ValueError(f"{name}: expected one of {list(allowed)}, got {got!r}.")

    def rate_factor(self, progress: float) -> float:
        """What the learning rate is multiplied by after this share of all steps.

        ``(1 + cos(pi progress)) / 2`` for the cosine decay.
        """
        return 0.5 * (1 + math.cos(math.pi * progress)) if self.decay == "cosine" else 1.0
