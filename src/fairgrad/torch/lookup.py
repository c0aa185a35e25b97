"""Labels and sensitive values of a batch -> the cell of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from fairgrad.groups import Groups, Ints

MAX_TABLE = 2**24
"""Largest span of integer ids a lookup table may cover."""


class CellLookup(nn.Module):
    """Maps labels and sensitive values, as they come in batches, to cells, by tables.

    Values never seen in training map so far beyond the last cell that they cannot be taken for
    one: using such a cell as an index is an error on the CPU and a device-side assert on an
    accelerator, without a check (and its host synchronisation) in every step.

    Cells are those of the groups, ``label * n_groups + group`` (or just the group), and, after
    them, one more row of ``n_groups`` cells for targets to be ignored.

    Args:
        groups: of the training set; labels must be integers.
        by_label: whether cells depend on the label.
        ignore_index: a target that is in no cell, if the loss has one.
    """

    def __init__(self, groups: Groups, *, by_label: bool, ignore_index: int | None = None) -> None:
        super().__init__()
        self.n_groups = groups.n_groups
        self.n_label_rows = len(groups.labels) if by_label else 1
        self.n_cells = (self.n_label_rows + (ignore_index is not None)) * self.n_groups
        self.label_names = groups.labels.tolist()
        self.group_names = groups.names
        nowhere = 4 * self.n_cells

        label_cell = np.arange(len(groups.labels)) * (self.n_groups if by_label else 0)
        keys, cells = groups.labels, label_cell
        if ignore_index is not None and ignore_index not in self.label_names:
            keys = np.append(keys, ignore_index)
            cells = np.append(cells, self.n_label_rows * self.n_groups)
        elif ignore_index is not None:
            cells = np.where(keys == ignore_index, self.n_label_rows * self.n_groups, cells)
        self.first_label = self._add_table("label_table", keys, cells, nowhere, "y_train")

        ids = groups.ids
        self.n_columns = ids.shape[1]
        if self.n_columns == 1:
            group = np.arange(self.n_groups)
            self.first_ids = [self._add_table("table0", ids[:, 0], group, nowhere, "s_train")]
        else:
            self._add_column_tables(ids, nowhere)

    def _add_column_tables(self, ids: Ints, nowhere: int) -> None:
        """One table per attribute, whose entries add up to the place of their combination."""
        codes = [np.unique(column, return_inverse=True) for column in ids.T]
        radix = np.array([len(values) for values, _ in codes])
        strides = np.append(np.cumprod(radix[:0:-1])[::-1], 1)
        span = int(np.prod(radix))
        self.first_ids = [
            self._add_table(f"table{i}", values, np.arange(len(values)) * stride, span, "s_train")
            for i, ((values, _), stride) in enumerate(zip(codes, strides, strict=True))
        ]
        place = sum(code * stride for (_, code), stride in zip(codes, strides, strict=True))
        self._add_table("joint_table", place, np.arange(self.n_groups), nowhere, "s_train")

    def _add_table(self, name: str, keys: Ints, entries: Ints, nowhere: int, argument: str) -> int:
        first, last = int(keys.min()), int(keys.max())
        if last - first >= MAX_TABLE:
            raise ValueError(
                f"{argument}: integer ids may span at most {MAX_TABLE}, got {first} to {last}; "
                "pass them as strings, or renumber them."
            )
        table = np.full(last - first + 1, nowhere, dtype=np.int64)
        table[keys - first] = entries
        self.register_buffer(name, torch.from_numpy(table), persistent=False)
        return first

    def forward(self, target: Tensor, s: Tensor) -> Tensor:
        """(N,) the cell of each row; far beyond the last cell, or an IndexError, if unseen."""
        return self._entries("label_table", self.first_label, target) + self._group(s)

    def _group(self, s: Tensor) -> Tensor:
        if self.n_columns == 1:
            return self._entries("table0", self.first_ids[0], s.reshape(-1))
        place = torch.stack(
            [
                self._entries(f"table{i}", first, s[:, i].contiguous())
                for i, first in enumerate(self.first_ids)
            ]
        ).sum(0)
        return self._entries("joint_table", 0, place)

    def _entries(self, table: str, first: int, keys: Tensor) -> Tensor:
        # index_select, unlike indexing, takes a negative position for an error
        return self.get_buffer(table).index_select(0, keys - first if first else keys)

    def explain(self, target: Tensor, s: Tensor) -> str | None:
        """What is wrong with a batch, in words, or None if every row has a cell."""
        for row in range(len(target)):
            try:
                label = self._entries("label_table", self.first_label, target[row : row + 1])
            except (IndexError, RuntimeError):
                label = torch.tensor([self.n_cells])
            if int(label) >= self.n_cells:
                return (
                    f"target: row {row} has {target[row].item()}, which was never seen in "
                    f"y_train; its labels are {self.label_names}."
                )
            try:
                group = self._group(s[row : row + 1])
            except (IndexError, RuntimeError):
                group = torch.tensor([self.n_cells])
            if int(group) >= self.n_groups:
                return (
                    f"s: row {row} has {s[row].tolist()}, which was never seen in s_train; its "
                    f"groups are {list(self.group_names)}."
                )
        return None
