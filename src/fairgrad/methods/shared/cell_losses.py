"""The losses of a stack's models in each (label, group) cell of their training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairgrad.training import heads

if TYPE_CHECKING:
    from torch import Tensor

    from fairgrad.training import Stack

ROWS_AT_ONCE = 2048


class CellLosses:
    """Sums of losses per member and cell, for stacks whose members have a stream each.

    Args:
        stack: the models.
        as_if_all_are: judges every row as if it had this label; None by its own.

    Attributes:
        rows: the training rows of each member.
        counts: (M, L, G) how many rows each cell has.
    """

    def __init__(self, stack: Stack, as_if_all_are: int | None = None) -> None:
        self.stack, self.as_if_all_are = stack, as_if_all_are
        table = stack.table
        self.shape = (len(stack.members), table.n_labels, table.groups.n_groups)
        self.code = table.label * table.groups.n_groups + table.group
        self.rows = [torch.from_numpy(member.indices(table, "rows")) for member in stack.members]
        self.counts = torch.stack(
            [self.code[own].bincount(minlength=self.shape[1] * self.shape[2]) for own in self.rows]
        ).view(self.shape)

    def cell(self, member: int, label: int, group: int) -> Tensor:
        """A member's training rows of one cell."""
        rows = self.rows[member]
        return rows[self.code[rows] == label * self.shape[2] + group]

    def totals(self) -> Tensor:
        """(M, L, G) the sum of the losses of each cell, models as in evaluation."""
        n_members, n_labels, n_groups = self.shape
        sums = torch.zeros(n_members * n_labels * n_groups)
        first = torch.arange(n_members)[:, None] * n_labels * n_groups
        longest = max(len(own) for own in self.rows)
        for start in range(0, longest, ROWS_AT_ONCE):
            index, valid = self._piece(start)
            losses = self._losses(index) * valid
            sums.index_add_(0, (first + self.code[index]).view(-1), losses.view(-1))
        return sums.view(self.shape)

    def _piece(self, start: int) -> tuple[Tensor, Tensor]:
        """(M, B) the next rows of every member, and which of them there are."""
        pieces = [own[start : start + ROWS_AT_ONCE] for own in self.rows]
        padded = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True, padding_value=-1)
        return padded.clamp(min=0), padded >= 0

    def _losses(self, index: Tensor) -> Tensor:
        scores = self.stack.network.scores(self.stack.table.take(index))[:, None]
        label = self.stack.table.label[index]
        if self.as_if_all_are is not None:
            label = torch.full_like(label, self.as_if_all_are)
        return heads.losses(scores, label)[:, 0]
