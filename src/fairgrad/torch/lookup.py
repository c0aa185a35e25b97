"""Labels, predictions and sensitive values of a batch -> where each row is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.groups import Groups, Ints

FEW_CLASSES = 128
"""Up to so many classes labels and predictions are looked up at once, in a table of all pairs."""

MAX_TABLE = 2**24
"""Largest span of integer ids a lookup table may cover."""


class Table(NamedTuple):
    """A buffer with one entry per key, from the first key on."""

    name: str
    first: int


class Outcomes(NamedTuple):
    """A table of slots, one per label and code of the prediction, ``label * n_codes + code``."""

    name: str
    first: int
    n_codes: int


class CellLookup(nn.Module):
    """Maps rows of a batch to *slots*: the K cells of right predictions, then those of wrong ones.

    Everything is looked up in tables. Values never seen in training map so far beyond the last
    slot that they cannot be taken for one: using such a slot as an index is an error on the CPU
    and a device-side assert on an accelerator, without a check (and its host synchronisation) in
    every step.

    Cells are those of the groups, ``label * n_groups + group`` (or just the group), and, after
    them, one more row of ``n_groups`` cells for targets to be ignored.

    Args:
        groups: of the training set; labels must be integers.
        by_label: whether cells depend on the label.
        ignore_index: a target that is in no cell, if the loss has one.

    Attributes:
        by_flag: slots by label and whether the prediction is wrong.
        by_flag_or_ignored: the same, where labels may be ``ignore_index``.
        by_class: slots by label and predicted class, if there are few classes.
    """

    def __init__(self, groups: Groups, *, by_label: bool, ignore_index: int | None = None) -> None:
        super().__init__()
        self.n_groups = groups.n_groups
        self.n_label_rows = len(groups.labels) if by_label else 1
        self.n_cells = (self.n_label_rows + (ignore_index is not None)) * self.n_groups
        self.label_names = groups.labels.tolist()
        self.group_names = groups.names
        nowhere = 4 * self.n_cells

        kept = groups.labels != ignore_index
        labels = groups.labels[kept]
        if not len(labels):
            raise ValueError(f"y_train: expected labels besides ignore_index={ignore_index}.")
        cells = (np.arange(len(groups.labels)) * self.n_groups * by_label)[kept]
        self.by_flag = self._add_outcomes("by_flag", labels, cells, [0, 1], nowhere)
        self.by_class: Outcomes | None = None
        classes = np.arange(labels.max() + 1)
        if labels.min() >= 0 and len(classes) <= FEW_CLASSES:
            is_wrong = labels[:, None] != classes
            self.by_class = self._add_outcomes("by_class", labels, cells, is_wrong, nowhere)
        if ignore_index is not None:
            ignored = self.n_label_rows * self.n_groups
            labels, cells = np.append(labels, ignore_index), np.append(cells, ignored)
            self.by_flag_or_ignored = self._add_outcomes(
                "by_flag_or_ignored", labels, cells, [0, 1], nowhere
            )

        ids = groups.ids
        self.n_columns = ids.shape[1]
        self._any_s = torch.from_numpy(ids[:1])  # a valid row, to look up labels alone
        if self.n_columns == 1:
            group = np.arange(self.n_groups)
            self.columns = [self._add_table("group", ids[:, 0], group, nowhere, "s_train")]
        else:
            self._add_column_tables(ids, nowhere)

    def _add_outcomes(
        self, name: str, labels: Ints, cells: Ints, is_wrong: Any, nowhere: int
    ) -> Outcomes:
        """A table with an entry for every label and code of a prediction."""
        is_wrong = np.broadcast_to(is_wrong, (len(labels), np.shape(is_wrong)[-1]))
        n_codes = is_wrong.shape[1]
        keys = labels[:, None] * n_codes + np.arange(n_codes)
        slots = cells[:, None] + self.n_cells * is_wrong
        table = self._add_table(name, keys.ravel(), slots.ravel(), nowhere, "y_train")
        return Outcomes(*table, n_codes)

    def _add_column_tables(self, ids: Ints, nowhere: int) -> None:
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
        self.joint = self._add_table("joint", place, np.arange(self.n_groups), nowhere, "s_train")

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
        """(N,) the slot of each row; far beyond the last, or an IndexError, if it is unseen.

        Args:
            label: (N,) labels.
            code: (N,) of the predictions: 1 for a wrong one, or its class with `by_class`. It is
                written over.
            s: (N,) or (N, columns) sensitive values.
            outcomes: `by_flag`, `by_class`, or `by_flag_or_ignored`, where labels may be
                ``ignore_index``.
        """
        key = code.add_(label, alpha=outcomes.n_codes)
        return self._entries(outcomes.name, outcomes.first, key).add_(self._group(s))

    def _group(self, s: Tensor) -> Tensor:
        if s.ndim == 1:
            return self._entries(*self.columns[0], s)
        entries = [self._entries(*table, s[:, i]) for i, table in enumerate(self.columns)]
        if len(entries) == 1:
            return entries[0]
        return self._entries(*self.joint, torch.stack(entries).sum(0))

    def _entries(self, name: str, first: int, keys: Tensor) -> Tensor:
        # index_select, unlike indexing, takes a negative position for an error
        return self._buffers[name].index_select(0, keys - first if first else keys)  # type: ignore[union-attr]

    def explain(self, label: Tensor, s: Tensor, outcomes: Outcomes) -> str | None:
        """What is wrong with a batch, in words, or None if every row has a slot."""
        right = torch.zeros(1, dtype=torch.int64)
        for row in range(len(label)):
            if self._fails(
                lambda one: self.slots(label[one], right.clone(), self._any_s, outcomes), row
            ):
                return (
                    f"target: row {row} has {label[row].item()}, which was never seen in "
                    f"y_train; its labels are {self.label_names}."
                )
            if self._fails(lambda one: self._group(s[one]), row):
                return (
                    f"s: row {row} has {s[row].tolist()}, which was never seen in s_train; its "
                    f"groups are {list(self.group_names)}."
                )
        return None

    def _fails(self, look_up: Callable[[slice], Tensor], row: int) -> bool:
        try:
            return int(look_up(slice(row, row + 1))) >= 2 * self.n_cells
        except (IndexError, RuntimeError):
            return True
