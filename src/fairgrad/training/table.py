"""What models are trained on: the rows of a table, in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad.columns import as_array
from fairgrad.groups import GroupedRows, group_rows
from fairgrad.torch.compiled import on_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.groups import Groups, Ints

INITIAL_WEIGHTS, SHUFFLING, DROPOUT = range(3)
"""The independent uses of a seed."""


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
        cls,
        X: Any,
        rows: GroupedRows,
        *,
        dtype: torch.dtype = torch.float32,
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
        self.rows, self.seed = rows, seed
        self.is_whole_table = torch.equal(rows, torch.arange(len(rows)))
        self.batch_size = min(batch_size, len(rows))
        self.n_steps = math.ceil(len(rows) / self.batch_size)
        self.restart()

    def restart(self) -> None:
        """Shuffles from now on as in the beginning."""
        self.source = generator(self.seed, SHUFFLING)

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
