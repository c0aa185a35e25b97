"""What models are trained on: the rows of a table, in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairgrad.columns import as_array
from fairgrad.groups import GroupedRows, group_rows
from fairgrad.torch.compiled import on_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.groups import Floats, Groups, Ints

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
    @on_cpu
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
