"""What is trained: the rows, the models of the stack, what these have in common, and batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairgrad.checks import check_count, check_number, is_number
from fairgrad.columns import as_array
from fairgrad.groups import GroupedRows, group_rows
from fairgrad.training.optimizers import SOLVERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.groups import Floats, Groups, Ints

SCHEDULES = ("constant", "cosine")
INITIAL_WEIGHTS, SHUFFLING, DROPOUT = range(3)
"""The independent uses of a member's seed."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A training table as tensors, with its labels and groups numbered.

    Attributes:
        raw: (n, ...) features: a tensor, or a SciPy CSR matrix that is made dense batch by batch.
        label: (n,) label indices.
        group: (n,) group indices.
        groups: labels, attributes and groups of the whole table.
        weight: (n,) sample weights, or None for ones.
        dtype: precision of the features as networks see them.
        scaling: offset and scale of each feature: networks see ``(raw - offset) / scale``.

    Example:
        >>> table = TrainingTable.from_data([[0.5], [1.0]], ["no", "yes"], s=["F", "M"])
        >>> table.label, table.n_labels, table.groups.names
        (tensor([0, 1]), 2, ('s=F', 's=M'))
    """

    raw: Any
    label: Tensor
    group: Tensor
    groups: Groups
    weight: Tensor | None
    dtype: torch.dtype
    scaling: tuple[Tensor, Tensor]

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
    def from_rows(
        cls,
        X: Any,
        rows: GroupedRows,
        *,
        dtype: torch.dtype = torch.float32,
        scaling: tuple[Floats, Floats] | None = None,
    ) -> TrainingTable:
        """A table of features and of rows whose labels and groups were read before.

        Args:
            X: (n, ...) features.
            rows: labels, groups and weights.
            dtype: precision of the features.
            scaling: offset and scale of each feature, if X is a matrix that is not sparse.

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
        if scaling is None:
            scaling = np.zeros(X.shape[1:]), np.ones(X.shape[1:])
        return cls(
            raw=X,
            label=torch.from_numpy(rows.label),
            group=torch.from_numpy(rows.group),
            groups=rows.groups,
            weight=None if rows.weight is None else torch.from_numpy(rows.weight).to(dtype),
            dtype=dtype,
            scaling=(torch.from_numpy(scaling[0]), torch.from_numpy(scaling[1])),
        )

    @cached_property
    def X(self) -> Any:  # noqa: N802 - as scikit-learn names features
        """(n, ...) the features as networks see them; made when first needed."""
        offset, scale = (part.to(self.dtype) for part in self.scaling)
        if not isinstance(self.raw, Tensor) or not (offset.any() or (scale != 1).any()):
            return self.raw
        return ((self.raw - offset).div_(scale)).to(self.dtype)

    @property
    def n_labels(self) -> int:
        """L, the number of labels."""
        return len(self.groups.labels)

    def __len__(self) -> int:
        return len(self.label)

    def take(self, index: Tensor) -> Tensor:
        """Features of some rows: index of any shape (...) gives (..., features)."""
        flat = index.reshape(-1)
        if isinstance(self.X, Tensor):
            rows = self.X.index_select(0, flat)
        else:
            rows = torch.from_numpy(self.X[flat.numpy()].toarray()).to(self.dtype)
        return rows.view(*index.shape, *rows.shape[1:])

    @cached_property
    def every_row(self) -> Ints:
        """(n,) the numbers of all rows."""
        return np.arange(len(self))

    def frequencies(self, rows: Ints) -> Groups:
        """The same groups with the frequencies of some of the rows."""
        if rows is self.every_row:
            return self.groups
        weight = None if self.weight is None else self.weight.numpy().astype(np.float64)
        everyone = GroupedRows(self.groups, self.label.numpy(), self.group.numpy(), weight)
        return everyone.take(rows).groups


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
            (`fairgrad.dual.with_steady_rates`); 0 is the paper, the same rates for all.
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


class RowBatch(NamedTuple):
    """The rows of one batch of every stream.

    Attributes:
        row: (S, B) row numbers; where a stream has run out, its first row stands in.
        valid: (S, B) whether an entry is a row of the stream, or None if all are.
    """

    row: Tensor
    valid: Tensor | None


class Streams:
    """S streams of rows, shuffled anew every epoch or as they are, cut into batches.

    Every stream goes through its rows exactly once per epoch. One with fewer rows than the longest
    runs out before it; from then on its entries are not valid.

    Args:
        rows: the row numbers of each stream.
        seeds: one per stream.
        batch_size: rows per batch.
    """

    def __init__(self, rows: Sequence[Ints], seeds: Sequence[int], batch_size: int) -> None:
        self.rows = [torch.from_numpy(part) for part in rows]
        self.is_whole = [bool((part == np.arange(len(part))).all()) for part in rows]
        self.seeds = seeds
        self.restart()
        self.sizes = np.array([len(part) for part in rows])
        self.lengths: list[int] = self.sizes.tolist()
        self.length, self.shortest = max(self.lengths), min(self.lengths)
        self.batch_size = min(batch_size, self.length)
        self.n_steps = math.ceil(self.length / self.batch_size)

    def epoch(self, *, shuffled: bool = True) -> Iterator[RowBatch]:
        """The batches of one epoch, in a new order or in that of the rows."""
        order = torch.stack([self._padded(stream, shuffled) for stream in range(len(self.rows))])
        for start in range(0, self.length, self.batch_size):
            row = order[:, start : start + self.batch_size]
            yield RowBatch(row, self._valid(start, row.shape[1]))

    def restart(self) -> None:
        """Shuffles from now on as in the beginning."""
        self.generators = [generator(seed, SHUFFLING) for seed in self.seeds]

    def shuffled(self, stream: int) -> Tensor:
        """The rows of one stream in the order of its next epoch."""
        rows = self.rows[stream]
        order = torch.randperm(self.lengths[stream], generator=self.generators[stream])
        return order if self.is_whole[stream] else rows[order]

    def _padded(self, stream: int, shuffled: bool) -> Tensor:
        rows = self.rows[stream]
        order = self.shuffled(stream) if shuffled else rows
        missing = self.length - len(order)
        return torch.cat([order, rows[:1].expand(missing)]) if missing else order

    def _valid(self, start: int, width: int) -> Tensor | None:
        if start + width <= self.shortest:
            return None
        return torch.arange(width) < torch.from_numpy(self.sizes - start)[:, None]


def generator(seed: int, use: int) -> torch.Generator:
    """A generator for one use of a seed, independent of its other uses and of other seeds."""
    word = np.random.SeedSequence([seed, use]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word >> np.uint64(1)))
