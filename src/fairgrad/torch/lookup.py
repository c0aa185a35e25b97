"""Labels, predictions and sensitive values of a batch -> where each row is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad.torch.slots import group_slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.groups import Groups, Ints

MAX_TABLE = 2**24
"""Largest span of integer ids a lookup table may cover."""


NOWHERE = 2**36
"""Where values never seen in training lead: far beyond the last slot, whatever is added to it."""


class Table(NamedTuple):
    """A buffer with one entry per key, from the first key on; None if the keys are the entries."""

    name: str | None
    first: int


class Outcomes(NamedTuple):
    """A table with an entry per label and code of the prediction, ``label * n_codes + code``."""

    table: Table
    n_codes: int


class CellLookup(nn.Module):
    """Maps rows of a batch to *slots*, each of which counts rows of one cell, right or wrong.

    ``slot = group * stride + outcome``: groups and outcomes are looked up in tables, or are the
    values themselves. Values never seen in training lead beyond the last slot or below the first:
    using such a slot as an index is an error on the CPU and a device-side assert on an
    accelerator, without a check (and its host synchronisation) in every step.

    Cells are those of the groups, ``label * n_groups + group`` (or just the group), and, after
    them, one more row of ``n_groups`` cells for targets to be ignored.

    Args:
        groups: of the training set; labels must be integers.
        by_label: whether cells depend on the label.
        ignore_index: a target that is in no cell, if the loss has one.
        checks_labels: whether the loss itself refuses labels that are no class.

    Attributes:
        n_cells: K.
        cell: (slots,) the cell of each slot.
        is_wrong: (slots,) whether it counts wrong predictions.
        by_flag: outcomes by label and whether the prediction is wrong.
        by_flag_or_ignored: the same, where labels may be ``ignore_index``.
        by_class: outcomes by label and predicted class, if there are few classes.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        by_label: bool,
        ignore_index: int | None = None,
        checks_labels: bool = False,
    ) -> None:
        super().__init__()
        self.n_groups = groups.n_groups
        self.n_label_rows = len(groups.labels) if by_label else 1
        self.n_cells = (self.n_label_rows + (ignore_index is not None)) * self.n_groups
        self.label_names = groups.labels.tolist()
        self.group_names = groups.names

        kept = groups.labels != ignore_index
        if not kept.any():
            raise ValueError(f"y_train: expected labels besides ignore_index={ignore_index}.")
        label_row = np.arange(len(groups.labels)) * by_label
        found = group_slots(groups.labels[kept], label_row[kept], self.n_groups)
        self.by_flag = self._add_outcomes("by_flag", found.labels, found.by_flag)
        rows, is_wrong = found.label_row, found.is_wrong
        if ignore_index is not None:
            labels = np.append(found.labels, ignore_index)
            slots = np.vstack([found.by_flag, [len(rows)] * 2])
            self.by_flag_or_ignored = self._add_outcomes("by_flag_or_ignored", labels, slots)
            rows, is_wrong = np.append(rows, self.n_label_rows), np.append(is_wrong, False)
        self.stride = len(rows)
        self.cell = (rows * self.n_groups + np.arange(self.n_groups)[:, None]).ravel()
        self.is_wrong = np.tile(is_wrong, self.n_groups)
        self.by_class: Outcomes | None = None
        if found.by_class is not None:
            self.by_class = self._add_outcomes("by_class", found.labels, found.by_class)
            if found.is_key and checks_labels and not self._is_taken(ignore_index):
                self.by_class = self.by_class._replace(table=Table(None, 0))
        self._add_groups(groups.ids)

    def _is_taken(self, ignore_index: int | None) -> bool:
        """Whether a target to be ignored could be taken for a slot, if it is not looked up."""
        if ignore_index is None or self.by_class is None:
            return False
        keys = ignore_index * self.by_class.n_codes + np.arange(self.by_class.n_codes)
        slots = keys + np.arange(self.n_groups)[:, None] * self.stride
        return bool(((slots >= 0) & (slots < len(self.cell))).any())

    def _add_outcomes(self, name: str, labels: Ints, slots: Ints) -> Outcomes:
        """A table with an entry for every label and code of a prediction."""
        n_codes = slots.shape[1]
        keys = labels[:, None] * n_codes + np.arange(n_codes)
        table = self._add_table(name, keys.ravel(), slots.ravel(), NOWHERE, "y_train")
        return Outcomes(table, n_codes)

    def _add_groups(self, ids: Ints) -> None:
        self.n_columns = ids.shape[1]
        any_s = torch.from_numpy(ids[:1])  # a valid row, to look up labels alone
        self._any_s = any_s if self.n_columns > 1 else any_s[0]
        group = np.arange(self.n_groups)
        if self.n_columns > 1:
            self._add_column_tables(ids)
        elif np.array_equal(ids[:, 0], group):
            self.columns = [Table(None, 0)]
        else:
            self.columns = [self._add_table("group", ids[:, 0], group, NOWHERE, "s_train")]
        self.is_group_given = self.columns[0].name is None

    def _add_column_tables(self, ids: Ints) -> None:
        """One table per attribute, whose entries add up to the place of their combination."""
        codes = [np.unique(column, return_inverse=True) for column in ids.T]
        radix = np.array([len(values) for values, _ in codes])
        strides = np.append(np.cumprod(radix[:0:-1])[::-1], 1)
        span = int(np.prod(radix))
        self.columns = [
            self._add_table(f"column{i}", values, np.arange(len(values)) * stride, span, "s_train")
            for i, ((values, _), stride) in enumerate(zip(codes, strides, strict=True))
        ]
        place = sum(code * stride for (_, code), stride in zip(codes, strides, strict=True))
        self.joint = self._add_table("joint", place, np.arange(self.n_groups), NOWHERE, "s_train")

    def _add_table(
        self, name: str, keys: Ints, entries: Ints, nowhere: int, argument: str
    ) -> Table:
        first, last = int(keys.min()), int(keys.max())
        if last - first >= MAX_TABLE:
            raise ValueError(
                f"{argument}: integer ids may span at most {MAX_TABLE}, got {first} to {last}; "
                "pass them as strings, or renumber them."
            )
        if first > 0 and last < MAX_TABLE:
            first = 0  # spares a subtraction in every step
        table = np.full(last - first + 1, nowhere, dtype=np.int64)
        table[keys - first] = entries
        self.register_buffer(f"{name}_table", torch.from_numpy(table), persistent=False)
        return Table(f"{name}_table", first)

    def slots(self, label: Tensor, code: Tensor, s: Tensor, outcomes: Outcomes) -> Tensor:
        """(N,) the slot of each row; far beyond the last, below 0, or an IndexError, if unseen.

        Args:
            label: (N,) labels.
            code: (N,) of the predictions: 1 for a wrong one, or its class with `by_class`. It is
                written over.
            s: (N,) sensitive values, or (N, columns) of several attributes.
            outcomes: `by_flag`, `by_class`, or `by_flag_or_ignored`, where labels may be
                ``ignore_index``.
        """
        table, n_codes = outcomes
        slot = code.add_(label, alpha=n_codes)
        if table.name is not None:
            slot = self._entries(table, slot)
        return slot.add_(s if self.is_group_given else self._group(s), alpha=self.stride)

    def _group(self, s: Tensor) -> Tensor:
        if s.ndim == 1:
            return self._entries(self.columns[0], s)
        entries = [self._entries(table, s[:, i]) for i, table in enumerate(self.columns)]
        return self._entries(self.joint, torch.stack(entries).sum(0))

    def _entries(self, table: Table, keys: Tensor) -> Tensor:
        name, first = table
        if name is None:
            return keys
        # index_select, unlike indexing, takes a negative position for an error
        return self._buffers[name].index_select(0, keys - first if first else keys)  # type: ignore[union-attr]

    def explain(self, label: Tensor, s: Tensor, outcomes: Outcomes) -> str | None:
        """What is wrong with a batch, in words, or None if every row has a slot."""
        right = torch.zeros(1, dtype=torch.int64)
        for row in range(len(label)):
            if self._fails(
                lambda one: self.slots(label[one], right.clone(), self._any_s, outcomes),
                row,
                len(self.cell),
            ):
                return (
                    f"target: row {row} has {label[row].item()}, which was never seen in "
                    f"y_train; its labels are {self.label_names}."
                )
            if self._fails(lambda one: self._group(s[one]), row, self.n_groups):
                return (
                    f"s: row {row} has {s[row].tolist()}, which was never seen in s_train; its "
                    f"groups are {list(self.group_names)}."
                )
        return None

    def _fails(self, look_up: Callable[[slice], Tensor], row: int, end: int) -> bool:
        try:
            return not 0 <= int(look_up(slice(row, row + 1))) < end
        except (IndexError, RuntimeError):
            return True
