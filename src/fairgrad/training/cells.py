"""Rows -> cells, for a whole stack: counting errors per cell, and giving rows their cell's weight.

The streams' rows are in cells the same for all members, so that both directions are products with
the rows' membership matrix N, ``N_ik = weight_i`` where row i is in cell k:

    wrong rows per cell = wrong @ N,        factor of each row = cell weights @ N'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from fairgrad.training.table import Table

MAX_DENSE = 64
"""With more cells than these, rows are counted one by one instead."""


@dataclass(frozen=True, eq=False, slots=True)
class CellBatch:
    """The cells of one batch of every stream.

    Attributes:
        n_cells: K.
        weight: (S, B) sample weights, 0 for entries that are no rows.
        membership: (S, B, K), or None if there are too many cells.
        cell: (S, B) cell numbers, needed without a membership matrix only.
    """

    n_cells: int
    weight: Tensor
    membership: Tensor | None
    cell: Tensor | None

    def count(self, wrong: Tensor) -> Tensor:
        """(S, T, 2, K) rows of each member predicted rightly and wrongly, of (S, T, B) errors."""
        if self.membership is None:
            return self._count_one_by_one(wrong)
        n_wrong = wrong.to(self.membership.dtype) @ self.membership
        n_right = self.membership.sum(1)[:, None] - n_wrong
        return torch.stack([n_right, n_wrong], dim=2)

    def spread(self, cell_weights: Tensor) -> Tensor:
        """(S, T, B) each row's sample weight times the weight of its cell, of (S, T, K)."""
        if self.membership is not None:
            return cell_weights @ self.membership.transpose(1, 2)
        assert self.cell is not None  # noqa: S101 - always there without a membership matrix
        index = self.cell[:, None].expand(-1, cell_weights.shape[1], -1)
        return cell_weights.gather(2, index) * self.weight[:, None]

    def _count_one_by_one(self, wrong: Tensor) -> Tensor:
        assert self.cell is not None  # noqa: S101 - always there without a membership matrix
        streams, members, _ = wrong.shape
        first = torch.arange(streams * members).view(streams, members, 1) * 2 * self.n_cells
        place = first + self.cell[:, None] + self.n_cells * wrong
        counts = self.weight.new_zeros(streams * members * 2 * self.n_cells)
        counts.index_add_(0, place.view(-1), self.weight[:, None].expand(wrong.shape).reshape(-1))
        return counts.view(streams, members, 2, self.n_cells)


class Cells:
    """The cells of a table's rows.

    Args:
        table: labels and groups of all rows.
        by_label: whether cells are (label, group) pairs or groups.
        max_dense: with more cells than these there is no membership matrix.
    """

    def __init__(self, table: Table, *, by_label: bool, max_dense: int = MAX_DENSE) -> None:
        n_groups = table.groups.n_groups
        self.n_label_rows = table.n_labels if by_label else 1
        self.n_cells = self.n_label_rows * n_groups
        self.code = table.label * n_groups + table.group if by_label else table.group
        self.weight = table.weight
        self.dtype = table.dtype
        self.is_dense = self.n_cells <= max_dense
        if self.is_dense:
            membership = self.code[:, None] == torch.arange(self.n_cells)
            ones = 1.0 if self.weight is None else self.weight[:, None]
            self.membership = membership.to(self.dtype) * ones

    def take(self, index: Tensor, valid: Tensor | None) -> CellBatch:
        """The cells of some rows, index (S, B); entries that are not valid weigh nothing."""
        flat = index.reshape(-1)
        if self.weight is None:
            weight = torch.ones(index.shape, dtype=self.dtype)
        else:
            weight = self.weight.index_select(0, flat).view(index.shape)
        if valid is not None:
            weight = weight * valid
        if not self.is_dense:
            cell = self.code.index_select(0, flat).view(index.shape)
            return CellBatch(self.n_cells, weight, None, cell)
        membership = self.membership.index_select(0, flat).view(*index.shape, self.n_cells)
        if valid is not None:
            membership = membership * valid[:, :, None]
        return CellBatch(self.n_cells, weight, membership, None)
