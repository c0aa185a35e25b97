"""The cell of each row of a batch, and counts of rows whose labels and groups are not known yet."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad.columns import UNKNOWN
from fairgrad.groups import Groups

if TYPE_CHECKING:
    from fairgrad.groups import Ints

MAX_TABLE = 2**24
"""Largest span of integer ids a lookup table may cover."""

NOWHERE = 2**30
"""Where values never seen in training lead: far beyond the last cell, also in 32 bits."""


class LookupTable(NamedTuple):
    """A buffer of one entry per key from `first + 1` on, and one at each end for all others."""

    name: str
    first: int


class CellLookup(nn.Module):
    """Maps rows of a batch to their cells: ``label * n_groups + group``, or the group alone.

    Values never seen in training lead far beyond the last cell. Using such a cell as an index is an
    error on the CPU and a device-side assert on an accelerator, so that no step needs a check and
    its wait for the host. Targets to be ignored are in ``n_groups`` cells after all others, the
    slots from ``n_cells`` to ``n_slots``. Each of `n_outputs` binary outputs of an example has
    separate cells; its rows follow one another.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        by_label: bool,
        ignore_index: int | None = None,
        n_outputs: int = 1,
    ) -> None:
        super().__init__()
        self.ignore_index, self.n_groups, self.n_outputs = ignore_index, groups.n_groups, n_outputs
        self.n_cells = groups.n_groups * (len(groups.labels) if by_label else 1) * n_outputs
        self.n_slots = self.n_cells + (0 if ignore_index is None else self.n_groups)
        self.label_names, self.group_names = groups.labels.tolist(), groups.names
        labels, entries = groups.labels, np.arange(len(groups.labels)) * self.n_groups * by_label
        if ignore_index is not None:
            labels, entries = np.append(labels, ignore_index), np.append(entries, self.n_cells)
        self.label = self._add_table("label", labels, entries, "y_train")
        self.columns, self.joint = self._add_groups(groups.ids)
        self.n_columns = len(self.columns)

    def _add_groups(self, ids: Ints) -> tuple[list[LookupTable], LookupTable | None]:
        """One table per column; of several, the entries add up to the place of the combination."""
        group = np.arange(self.n_groups)
        if ids.shape[1] == 1:
            return [self._add_table("s0", ids[:, 0], group, "s_train")], None
        codes = [np.unique(column, return_inverse=True) for column in ids.T]
        radix = np.array([len(values) for values, _ in codes])
        strides = np.append(np.cumprod(radix[:0:-1])[::-1], 1)
        columns = [
            self._add_table(f"s{i}", values, np.arange(len(values)) * stride, "s_train")
            for i, ((values, _), stride) in enumerate(zip(codes, strides, strict=True))
        ]
        place = sum(code * stride for (_, code), stride in zip(codes, strides, strict=True))
        return columns, self._add_table("joint", np.asarray(place), group, "s_train")

    def _add_table(self, name: str, keys: Ints, entries: Ints, argument: str) -> LookupTable:
        first, last = int(keys.min()), int(keys.max())
        if last - first >= MAX_TABLE:
            raise ValueError(
                f"{argument}: integer ids may span at most {MAX_TABLE}, got {first} to {last}; "
                "pass them as strings, or renumber them."
            )
        table = np.full(last - first + 3, NOWHERE, dtype=np.int64)
        table[keys - first + 1] = entries
        self.register_buffer(f"{name}_table", torch.from_numpy(table), persistent=False)
        return LookupTable(f"{name}_table", first - 1)

    def forward(self, label: Tensor, s: Tensor) -> Tensor:
        """(N,) the cell of each row, of labels (N,) and sensitive values (N,) or (N, columns)."""
        cell = self._entries(self.label, label) + self._group(s)
        if self.n_outputs == 1:
            return cell
        output = torch.arange(len(label), device=label.device) % self.n_outputs
        return cell + output * (self.n_cells // self.n_outputs)

    def outcome(self, predicted: Tensor) -> Tensor:
        """(N,) 1 + the index of each predicted label, 0 for classes that are no labels."""
        entries = self._entries(self.label, predicted)
        return torch.where(entries < self.n_cells, entries // self.n_groups + 1, 0)

    def _group(self, s: Tensor) -> Tensor:
        if self.joint is None:
            return self._entries(self.columns[0], s if s.ndim == 1 else s[:, 0])
        entries = [self._entries(table, s[:, i]) for i, table in enumerate(self.columns)]
        return self._entries(self.joint, sum(entries[1:], entries[0]))

    def _entries(self, table: LookupTable, keys: Tensor) -> Tensor:
        entries: Tensor = self._buffers[table.name]  # type: ignore[assignment]
        return entries.index_select(0, (keys - table.first).clamp(0, len(entries) - 1))

    def explain(self, label: Tensor, s: Tensor) -> str | None:
        """What is wrong with a batch, in words, or None if every row has a cell."""
        for row in torch.nonzero(self._entries(self.label, label) >= NOWHERE).flatten()[:1]:
            return (
                f"target: row {int(row)} has {label[row].item()}, which was never seen in "
                f"y_train; its labels are {self.label_names}."
            )
        for row in torch.nonzero(self._group(s) >= NOWHERE).flatten()[:1]:
            return (
                f"s: row {int(row)} has {s[row].tolist()}, which was never seen in s_train; its "
                f"groups are {list(self.group_names)}."
            )
        return None


class BatchCounts:
    """Counts labels and sensitive values in batches, where the training set is not known.

    What was counted becomes known to the loss in the batches 1 to 8, 10, 12, 15, ...: each is 1.25
    times as far as the one before. So it costs little, and several processes, which call the loss
    equally often, agree on it. `rows` are this process's counts, `used` those that the loss knows.
    """

    def __init__(self, ignore_index: int | None = None) -> None:
        self.ignore_index = ignore_index
        self.rows: Counter[tuple[int, ...]] = Counter()
        self.used: Counter[tuple[int, ...]] = Counter()
        self.n_batches, self.next_update = 0, 1

    def add(self, label: Tensor, s: Tensor) -> bool:
        """Counts a batch; whether it is time to use the counts."""
        rows = torch.cat([label[:, None], s.reshape(len(label), -1)], dim=1)
        if self.ignore_index is not None:
            rows = rows[label != self.ignore_index]
        keys, numbers = np.unique(rows.cpu().numpy(), axis=0, return_counts=True)
        self.rows.update(dict(zip(map(tuple, keys.tolist()), numbers.tolist(), strict=True)))
        self.n_batches += 1
        is_due = self.n_batches >= self.next_update
        if is_due:
            self.next_update = max(self.n_batches + 1, int(self.n_batches * 1.25))
        return is_due

    def use(self, of_all: list[Counter[tuple[int, ...]]]) -> Groups | None:
        """The groups in the counts of all processes; None before there are two groups and labels.

        There is always a group of unknown values, which rows of later values are in at first.
        """
        self.used = sum(of_all, start=Counter())
        known = [key for key in self.used if UNKNOWN not in key[1:]]
        if len({key[0] for key in known}) < 2 or len({key[1:] for key in known}) < 2:
            return None
        first = min(known)
        counts: dict[Any, int] = {(first[0], *[UNKNOWN] * (len(first) - 1)): 0}
        return Groups.from_counts(counts | self.used)

    def hide_unknown(self, lookup: CellLookup, label: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Labels and sensitive values; rows of values not used yet have an unknown one."""
        is_unknown = lookup(label, s) >= NOWHERE
        label = torch.where(is_unknown, lookup.label_names[0], label)
        return label, torch.where(is_unknown if s.ndim == 1 else is_unknown[:, None], UNKNOWN, s)

    def to_tensor(self) -> Tensor:
        """(R, columns) all of it, for a checkpoint; the first row has the numbers of batches."""
        keys = {**self.rows, **self.used}
        n_columns = len(next(iter(keys), (0, 0)))
        head = [self.n_batches, self.next_update, *[0] * n_columns]
        rows = [[*key, self.rows[key], self.used[key]] for key in keys]
        return torch.tensor([head, *rows])

    def load(self, tensor: Tensor) -> Groups | None:
        """Takes in what `to_tensor` gave; the groups that were in use."""
        head, *rows = tensor.tolist()
        self.n_batches, self.next_update = head[:2]
        self.rows = Counter({tuple(row[:-2]): row[-2] for row in rows if row[-2]})
        return self.use([Counter({tuple(row[:-2]): row[-1] for row in rows})])
