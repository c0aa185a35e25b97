"""What is trained and how: the rows in batches, the settings of all models and those of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad.checks import check_count, check_number, is_number
from fairgrad.columns import as_array
from fairgrad.compiled import on_cpu
from fairgrad.groups import GroupedRows, group_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.groups import Groups, Ints


INITIAL_WEIGHTS, SHUFFLING, DROPOUT = range(3)
"""The independent uses of a seed."""


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
        options = {"solver": ["sgd", "adam"], "schedule": ["constant", "cosine"]}
        for name, allowed in options.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}: expected one of {allowed}, got {getattr(self, name)!r}.")

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


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A training table as tensors, with its labels and groups numbered.

    Attributes:
        X: (n, ...) features: a tensor, or a SciPy CSR matrix that is made dense batch by batch.
        label: (n,) label indices.
        group: (n,) group indices.
        groups: labels, attributes and groups of the whole table.
        weight: (n,) sample weights, or None for ones.
        dtype: precision of the features as networks see them.

    Example:
        >>> table = TrainingTable.from_data([[0.5], [1.0]], ["no", "yes"], s=["F", "M"])
        >>> table.label, table.n_labels, table.groups.names
        (tensor([0, 1]), 2, ('s=F', 's=M'))
    """

    X: Any
    label: Tensor
    group: Tensor
    groups: Groups
    weight: Tensor | None
    dtype: torch.dtype

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        s: Any = None,
        sample_weight: Any = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> TrainingTable:
        """A table of the user's columns.

        Args:
            X: (n, ...) features.
            y: (n,) labels.
            s: sensitive values as in `Groups.from_data`; None puts all rows into one group.
            sample_weight: (n,) non-negative weights.
            dtype: precision of the features.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        s = np.zeros(n, dtype=np.int64) if s is None else s
        return cls.from_rows(X, group_rows(y, s, sample_weight), dtype=dtype)

    @classmethod
    @on_cpu
    def from_rows(
        cls, X: Any, rows: GroupedRows, *, dtype: torch.dtype = torch.float32
    ) -> TrainingTable:
        """A table of features and of rows whose labels and groups were read before.

        Args:
            X: (n, ...) features.
            rows: labels, groups and weights.
            dtype: precision of the features.

        Raises:
            ValueError: if the numbers of rows differ.
        """
        if not hasattr(X, "tocsr"):
            tensor = (
                X.detach() if isinstance(X, Tensor) else torch.from_numpy(np.array(as_array(X)))
            )
            X = tensor.to(dtype).contiguous()
        if X.shape[0] != len(rows):
            raise ValueError(f"X: expected one row per label ({len(rows)}), got {X.shape[0]}.")
        return cls(
            X=X,
            label=torch.from_numpy(rows.label),
            group=torch.from_numpy(rows.group),
            groups=rows.groups,
            weight=None if rows.weight is None else torch.from_numpy(rows.weight).to(dtype),
            dtype=dtype,
        )

    @property
    def n_labels(self) -> int:
        """L, the number of labels."""
        return len(self.groups.labels)

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: Tensor) -> Tensor:
        """Features of some rows, (B, features)."""
        if isinstance(self.X, Tensor):
            return self.X.index_select(0, rows)
        return torch.from_numpy(self.X[rows.numpy()].toarray()).to(self.dtype)

    def check_rows(self, rows: Any, argument: str) -> Ints | None:
        """Row numbers, or None for all rows.

        Raises:
            ValueError: if the table has no such rows.
        """
        if rows is None:
            return None
        index: Ints = np.asarray(rows)
        fits = index.ndim == 1 and len(index) and index.dtype.kind in "iu"
        if not fits or index.min() < 0 or index.max() >= len(self):
            raise ValueError(
                f"{argument}: expected at least one row number from 0 to {len(self) - 1}, got "
                f"{index}."
            )
        return index.astype(np.int64)

    def frequencies(self, rows: Ints | None) -> Groups:
        """The same groups with the frequencies of some of the rows; None for all."""
        if rows is None:
            return self.groups
        weight = None if self.weight is None else self.weight.numpy().astype(np.float64)
        everyone = GroupedRows(self.groups, self.label.numpy(), self.group.numpy(), weight)
        return everyone.take(rows).groups


class Batches:
    """Rows in batches of at most `batch_size`, shuffled anew every epoch."""

    def __init__(self, rows: Tensor, seed: int, batch_size: int) -> None:
        self.rows = rows
        self.is_whole_table = torch.equal(rows, torch.arange(len(rows)))
        self.batch_size = min(batch_size, len(rows))
        self.n_steps = math.ceil(len(rows) / self.batch_size)
        self.source = generator(seed, SHUFFLING)

    def shuffled(self) -> Tensor:
        """The rows in the order of the next epoch."""
        order = torch.randperm(len(self.rows), generator=self.source)
        return order if self.is_whole_table else self.rows[order]

    def epoch(self) -> Iterator[Tensor]:
        """The batches of the next epoch, row numbers each."""
        yield from torch.split(self.shuffled(), self.batch_size)


def generator(seed: int, use: int) -> torch.Generator:
    """A generator for one use of a seed, independent of its other uses and of other seeds."""
    word = np.random.SeedSequence([seed, use]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word >> np.uint64(1)))
