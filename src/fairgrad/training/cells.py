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
    from fairgrad.training.table import TrainingTable

MAX_DENSE = 64
"""With more cells than these, rows are counted one by one instead."""


@dataclass(frozen=True, eq=False, slots=True)
class CellBatch:
    """The cells of one batch of every stream.

    Attributes:
        n_cells: K.
        weight: (S, B) sample weights, 0 for entries that are no rows; None if all are 1.
        label: (S, B) label indices.
        membership: (S, B, K), or None if there are too many cells.
        cell: (S, B) cell numbers, needed without a membership matrix only.
    """

    n_cells: int
    label: Tensor
    weight: Tensor | None
    membership: Tensor | None
    cell: Tensor | None

    @property
    def total(self) -> Tensor | int:
        """The sum of the weights, (S, 1, 1), or the number of rows if all weigh 1."""
        if self.weight is None:
            return self.label.shape[1]
        return self.weight.sum(1)[:, None, None]

    def count(self, wrong: Tensor) -> Tensor:
        """(S, T, 2, K) rows of each member predicted rightly and wrongly.

        Args:
            wrong: (S, T, B) 1 where a row is predicted wrongly, else 0.
        """
        if self.membership is None:
            return self._count_one_by_one(wrong)
        # Both transposed: a product with few columns is slow, one with few rows is not.
        n_wrong = torch.bmm(self.membership.transpose(1, 2), wrong.transpose(1, 2)).transpose(1, 2)
        n_right = self.membership.sum(1)[:, None] - n_wrong
        return torch.stack([n_right, n_wrong], dim=2)

    def spread(self, cell_weights: Tensor) -> Tensor:
        """(S, T, B) each row's sample weight times the weight of its cell, of (S, T, K)."""
        if self.membership is not None:
            return torch.bmm(cell_weights, self.membership.transpose(1, 2))
        assert self.cell is not None  # noqa: S101 - always there without a membership matrix
        index = self.cell[:, None].expand(-1, cell_weights.shape[1], -1)
        found = cell_weights.gather(2, index)
        return found if self.weight is None else found * self.weight[:, None]

    def _count_one_by_one(self, wrong: Tensor) -> Tensor:
        assert self.cell is not None  # noqa: S101 - always there without a membership matrix
        streams, members, _ = wrong.shape
        first = torch.arange(streams * members).view(streams, members, 1) * 2 * self.n_cells
        place = first + self.cell[:, None] + self.n_cells * wrong.long()
        weight = wrong.new_ones(self.cell.shape) if self.weight is None else self.weight
        counts = weight.new_zeros(streams * members * 2 * self.n_cells)
        counts.index_add_(0, place.view(-1), weight[:, None].expand(wrong.shape).reshape(-1))
        return counts.view(streams, members, 2, self.n_cells)


class Cells:
    """The cells of a table's rows.

    Args:
        table: labels and groups of all rows.
        by_label: whether cells are (label, group) pairs or groups.
        max_dense: with more cells than these there is no membership matrix.
    """

    def __init__(self, table: TrainingTable, *, by_label: bool, max_dense: int = MAX_DENSE) -> None:
        n_groups = table.groups.n_groups
        self.n_label_rows = table.n_labels if by_label else 1
        self.n_cells = self.n_label_rows * n_groups
        self.code = table.label * n_groups + table.group if by_label else table.group
        self.weight, self.label, self.dtype = table.weight, table.label, table.dtype
        self.is_dense = self.n_cells <= max_dense
        if self.is_dense:
            membership = self.code[:, None] == torch.arange(self.n_cells)
            ones = 1.0 if self.weight is None else self.weight[:, None]
            # The labels stand beside, so that one look-up gives both.
            label = self.label[:, None].to(self.dtype)
            self.membership_and_label = torch.cat([membership.to(self.dtype) * ones, label], dim=1)

    def take(self, index: Tensor, valid: Tensor | None) -> CellBatch:
        """The cells of some rows, index (S, B); entries that are not valid weigh nothing."""
        flat = index.reshape(-1)
        weight = None
        if self.weight is not None:
            weight = self.weight.index_select(0, flat).view(index.shape)
        if valid is not None:
            weight = valid.to(self.dtype) if weight is None else weight * valid
        if not self.is_dense:
            cell = self.code.index_select(0, flat).view(index.shape)
            label = self.label.index_select(0, flat).view(index.shape)
            return CellBatch(self.n_cells, label, weight, None, cell)
        both = self.membership_and_label.index_select(0, flat).view(*index.shape, -1)
        membership, label = both[:, :, :-1], both[:, :, -1]
        if valid is not None:
            membership = membership * valid[:, :, None]
        return CellBatch(self.n_cells, label, weight, membership, None)
