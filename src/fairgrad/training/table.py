"""The rows all members of a stack draw from: features, labels, groups, sample weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad.columns import as_array
from fairgrad.groups import Groups, check_weights

if TYPE_CHECKING:
    from fairgrad.groups import Ints


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
        >>> table = TrainingTable.from_data([[0.5], [1.0], [2.0]], ["no", "yes", "yes"], s=["F", "M", "M"])
        >>> table.label, table.n_labels, table.groups.names
        (tensor([0, 1, 1]), 2, ('s=F', 's=M'))
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
        groups = Groups.from_data(y, s, sample_weight)
        return cls.from_groups(X, y, s, groups, sample_weight, dtype=dtype)

    @classmethod
    def from_groups(
        cls,
        X: Any,
        y: Any,
        s: Any,
        groups: Groups,
        sample_weight: Any = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> TrainingTable:
        """A table whose labels and groups are numbered as in `groups`, which must hold them all."""
        label, group = groups.label_index(y), groups.group_index(s)
        return cls.from_codes(X, label, group, groups, sample_weight, dtype=dtype)

    @classmethod
    def from_codes(
        cls,
        X: Any,
        label: Ints,
        group: Ints,
        groups: Groups,
        sample_weight: Any = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> TrainingTable:
        """A table whose labels and groups are the indices of those of `groups`.

        Raises:
            ValueError: if the numbers of rows differ.
        """
        weight = check_weights(sample_weight, len(label))
        X = X if _is_sparse(X) else _dense(X, dtype)
        for name, rows in {"X": X.shape[0], "s": len(group)}.items():
            if rows != len(label):
                raise ValueError(f"{name}: expected one row per label ({len(label)}), got {rows}.")
        return cls(
            X=X,
            label=torch.from_numpy(label),
            group=torch.from_numpy(group),
            groups=groups,
            weight=None if weight is None else torch.from_numpy(weight).to(dtype),
            dtype=dtype,
        )

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

    def groups_of(self, rows: Ints) -> Groups:
        """The same groups with the frequencies of some of the rows."""
        n_groups = self.groups.n_groups
        cell = (self.label[rows] * n_groups + self.group[rows]).numpy()
        weight = None if self.weight is None else self.weight[rows].numpy().astype(np.float64)
        mass = np.bincount(cell, weight, minlength=self.groups.mass.size).astype(np.float64)
        return replace(self.groups, mass=mass.reshape(self.groups.mass.shape))


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def _dense(X: Any, dtype: torch.dtype) -> Tensor:
    tensor = X.detach() if isinstance(X, Tensor) else torch.from_numpy(np.array(as_array(X)))
    return tensor.to(dtype).contiguous()
