"""What is asked for: how models are trained, what each of them is, the shape of their networks.

PyTorch is imported where it is used only: a fitted linear model holds its shape, and predicts
without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.checks import check_count, check_number, is_number

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from fairgrad.groups import Floats, Groups, Ints
    from fairgrad.training.table import TrainingTable

SOLVERS = ("sgd", "adam")
SCHEDULES = ("constant", "cosine")

LARGEST_OFFSET = {"float32": 10.0, "float64": 1e4}
"""Of features in units of their scale; beyond, scaling them by way of the weights is not exact."""

LARGEST_SCALE = 1e30
"""Scales of features beyond it, or below its inverse, are not multiplied into weights either."""


def can_fold(offset: Floats, scale: Floats, dtype: Any) -> bool:
    """Whether weights can take over the scaling, ``(X - offset) / scale``, of features as they are.

    Then no scaled copy of the features is needed, and little precision of this type is lost.
    """
    largest = LARGEST_OFFSET.get(str(dtype), 0.0)
    is_usual = (scale <= LARGEST_SCALE) & (scale >= 1 / LARGEST_SCALE)
    return bool(is_usual.all() and (np.abs(offset) <= largest * scale).all())


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
        schedule: of the learning rates: "constant", or "cosine" to let them fall to 0 by the last
            step.
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
    schedule: str = "constant"
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
        for name, allowed in {"solver": SOLVERS, "schedule": SCHEDULES}.items():
            if getattr(self, name) not in allowed:
                got = getattr(self, name)
                raise ValueError(f"{name}: expected one of {list(allowed)}, got {got!r}.")

    def rate_factor(self, progress: Any) -> Any:
        """What the learning rate is multiplied by after this share of all steps, or each of many.

        ``(1 + cos(pi progress)) / 2`` for the cosine schedule.
        """
        if self.schedule != "cosine":
            return 1.0 + 0.0 * progress
        factor = 0.5 * (1 + np.cos(np.pi * progress))
        return factor if np.ndim(factor) else float(factor)


@dataclass(frozen=True, eq=False, kw_only=True)
class Member:
    """One model of a stack. Members share the table, the network's shape and the batch size.

    Members with equal rows and seed see the same batches, which makes a sweep over the other
    settings cheapest: their features are gathered once and multiplied in one product.

    Attributes:
        rows: indices of its training rows; None for all rows of the table.
        validation: indices of the rows its epochs are judged on; None for its training rows.
        seed: of its initial weights, its shuffling and its dropout.
        learning_rate: step size of the weights.
        weight_decay: added to the gradient times the weights, as PyTorch's optimisers do.
        clip_norm: the gradient's largest Euclidean norm; infinity for none.
        fairness_measure: as in `fairgrad.torch.FairLoss`; None trains the plain model.
        epsilon: slack of the constraints.
        y_desirable: the desirable labels; by default the second of two in sorted order.
        fairness_rate: step size of the multipliers; 0 trains a plain model whose levels of
            `fairness_measure` are recorded.
        proportional_rate: adds this times the current violation to the multipliers in use.
        error_memory: share of earlier batches kept in the error estimates.
        steady_share: constraints on cells with a smaller share of the rows have lower rates
            (``fairgrad.dual.with_steady_rates``); 0 is the paper, the same rates for all.
        negative_weights: False clips the cells' weights at 0, for ablation only.
        cost_matrix: what it costs to predict each label (columns) where each is true (rows); None
            for 1 for every mistake.
        frequencies: groups with the frequencies to use in place of those of the training rows, as
            when rows come bit by bit.

    Raises:
        ValueError: if a rate, the decay, the memory or the norm is out of its range.

    Example:
        >>> Member(fairness_measure="equalized_odds", epsilon=0.02).epsilon
        0.02
        >>> Member(learning_rate=-1.0)
        Traceback (most recent call last):
            ...
        ValueError: learning_rate: expected a finite number of at least 0, got -1.0.
    """

    rows: Ints | None = None
    validation: Ints | None = None
    seed: int = 0
    learning_rate: float = 0.1
    weight_decay: float = 0.0
    clip_norm: float = math.inf
    fairness_measure: Any = None
    epsilon: Any = 0.0
    y_desirable: Any = None
    fairness_rate: float = 0.01
    proportional_rate: float = 0.0
    error_memory: float = 0.0
    steady_share: float = 0.0
    negative_weights: bool = True
    cost_matrix: Any = None
    frequencies: Groups | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "weight_decay", "fairness_rate", "proportional_rate"):
            check_number(name, getattr(self, name))
        for name in ("error_memory", "steady_share"):
            check_number(name, getattr(self, name), below=1.0)
        if not (is_number(self.clip_norm) and self.clip_norm > 0):
            raise ValueError(f"clip_norm: expected a number above 0, got {self.clip_norm!r}.")

    def indices(self, table: TrainingTable, part: str) -> Ints:
        """The checked row numbers of a part, "rows" or "validation".

        Raises:
            ValueError: if they are not numbers of rows of the table.
        """
        chosen = getattr(self, part)
        if chosen is None:
            return self.indices(table, "rows") if part == "validation" else table.every_row
        index: Ints = np.asarray(chosen)
        fits = index.ndim == 1 and len(index) and index.dtype.kind in "iu"
        if not fits or index.min() < 0 or index.max() >= len(table):
            raise ValueError(
                f"{part}: expected at least one row number from 0 to {len(table) - 1}, got {index}."
            )
        return index.astype(np.int64)


@dataclass(frozen=True)
class Shape:
    """The shape of a network: which piece of a member's parameters is what.

    Attributes:
        n_features: inputs.
        hidden: units of the hidden layers.
        n_outputs: 1 (the margin of two labels), or the number of labels.
        batch_norm: whether hidden layers are normalised.
        dropout: share of hidden units dropped.
    """

    n_features: int
    hidden: tuple[int, ...]
    n_outputs: int
    batch_norm: bool = False
    dropout: float = 0.0

    @classmethod
    def of(cls, plan: TrainingPlan, n_features: int, n_labels: int) -> Shape:
        """The shape of a plan's networks; for two labels they give the margin."""
        n_outputs = 1 if n_labels == 2 else n_labels
        return cls(n_features, plan.hidden, n_outputs, plan.batch_norm, plan.dropout)

    @property
    def pieces(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters, in the order in which they lie."""
        sizes = (self.n_features, *self.hidden, self.n_outputs)
        pieces: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, units) in enumerate(pairwise(sizes)):
            pieces |= {f"weight{layer}": (units, inputs), f"bias{layer}": (units,)}
            if self.batch_norm and layer < len(self.hidden):
                pieces |= {f"scale{layer}": (units,), f"shift{layer}": (units,)}
        return pieces

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters (M, P) by name, each (M, ...)."""
        import torch  # noqa: PLC0415 - see the module

        parts = torch.split(flat, self.sizes, dim=1)
        named = zip(self.pieces.items(), parts, strict=True)
        return {name: part.view(len(flat), *shape) for (name, shape), part in named}

    @property
    def sizes(self) -> list[int]:
        """The number of parameters of each piece."""
        return [prod(shape) for shape in self.pieces.values()]

    @property
    def gain(self) -> Tensor | float:
        """2 for the parameters of a margin, 1 for all others."""
        if self.n_outputs > 1:
            return 1.0
        if not self.hidden:
            return 2.0
        import torch  # noqa: PLC0415 - see the module

        gain = torch.ones(sum(self.sizes))
        gain[-sum(self.sizes[-2:]) :] = 2.0
        return gain

    def initial(self, seed: int) -> Tensor:
        """(P,) initial parameters as PyTorch's layers have them.

        Uniform in ``+-1/sqrt(inputs)``; a margin is the difference of two such outputs.
        """
        import torch  # noqa: PLC0415 - see the module

        from fairgrad.training.table import (  # noqa: PLC0415 - as above
            INITIAL_WEIGHTS,
            generator,
        )

        source = generator(seed, INITIAL_WEIGHTS)
        parts = {
            name: torch.full(shape, float(name.startswith("scale")))
            for name, shape in self.pieces.items()
        }
        for layer, inputs in enumerate((self.n_features, *self.hidden)):
            draws = 2 if layer == len(self.hidden) and self.n_outputs == 1 else 1
            for name in (f"weight{layer}", f"bias{layer}"):
                drawn = torch.rand(draws, *self.pieces[name], generator=source) * 2 - 1
                one_output = drawn[1] - drawn[0] if draws == 2 else drawn[0]
                parts[name] = one_output * max(inputs, 1) ** -0.5
        return torch.cat([part.reshape(-1) for part in parts.values()])

    def initial_buffers(self, n_members: int, dtype: torch.dtype) -> dict[str, Tensor]:
        """Running statistics of batch normalisation before training."""
        import torch  # noqa: PLC0415 - see the module

        buffers = {}
        for layer, units in enumerate(self.hidden if self.batch_norm else ()):
            buffers[f"mean{layer}"] = torch.zeros(n_members, units, dtype=dtype)
            buffers[f"variance{layer}"] = torch.ones(n_members, units, dtype=dtype)
        return buffers
