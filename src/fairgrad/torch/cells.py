"""A batch as it comes from the user -> checked tensors, and the cell of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from fairgrad.groups import Groups, Ints

MAX_TABLE = 2**24
"""Largest span of integer ids a lookup table may cover."""

NOWHERE = 2**30
"""Where values never seen in training lead: far beyond the last cell, also in 32 bits."""

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


class LookupTable(NamedTuple):
    """One entry per key from `first + 1` on, and one more at each end for all others.

    Attributes:
        name: of the buffer of entries.
        first: the key of its first entry.
    """

    name: str
    first: int


class CellLookup(nn.Module):
    """Maps rows of a batch to their cells: ``label * n_groups + group``, or the group alone.

    Values never seen in training lead far beyond the last cell. Using such a cell as an index is an
    error on the CPU and a device-side assert on an accelerator, so that no step needs a check and
    its wait for the host. Targets to be ignored are in ``n_groups`` cells after all others.

    Args:
        groups: of the training set; labels must be integers.
        by_label: whether cells depend on the label.
        ignore_index: a target that is in no cell, if the loss has one.

    Attributes:
        n_cells: K, without the cells of targets to be ignored.
        n_slots: K, with these.
        n_columns: sensitive columns of a batch.
    """

    def __init__(self, groups: Groups, *, by_label: bool, ignore_index: int | None = None) -> None:
        super().__init__()
        self.ignore_index, self.n_groups = ignore_index, groups.n_groups
        self.n_cells = groups.n_groups * (len(groups.labels) if by_label else 1)
        self.n_slots = self.n_cells + (0 if ignore_index is None else self.n_groups)
        self.label_names, self.group_names = groups.labels.tolist(), groups.names
        labels, entries = groups.labels, np.arange(len(groups.labels)) * self.n_groups * by_label
        if ignore_index is not None:
            labels, entries = np.append(labels, ignore_index), np.append(entries, self.n_cells)
        self.label = self._add_table("label", labels, entries, "y_train")
        self.columns, self.joint = self._add_groups(groups.ids)

    @property
    def n_columns(self) -> int:
        """Sensitive columns of a batch."""
        return len(self.columns)

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
        """(N,) the cell of each row; tensors are on the buffers' device.

        Args:
            label: (N,) labels.
            s: (N,) sensitive values, or (N, columns) of several attributes.
        """
        return self._entries(self.label, label) + self._group(s)

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


def flat_labels(target: Any, n_examples: int) -> Tensor:
    """(N,) integer labels from what the base loss takes as its target.

    Raises:
        ValueError: if targets are not one label per example.
        TypeError: if they are not numbers of a tensor.
    """
    if type(target) is Tensor and target.dtype == torch.int64 and target.shape == (n_examples,):
        return target  # the usual case first: this is the hot path
    if not isinstance(target, Tensor):
        raise TypeError(f"target: expected a tensor, got {type(target).__name__}.")
    if target.numel() != n_examples or target.ndim not in {1, 2} or target.shape[0] != n_examples:
        raise ValueError(
            f"target: expected one label for each of {n_examples} examples, got shape "
            f"{tuple(target.shape)}; class probabilities and several labels per example are not "
            "supported, because then an example is in no single cell."
        )
    label = target if target.ndim == 1 else target.reshape(-1)
    if label.dtype == torch.int64:
        return label
    whole = label.long()
    if label.is_floating_point() and _can_look(label) and not bool((whole == label).all()):
        raise ValueError(
            "target: expected whole labels, got values such as "
            f"{label[whole != label][0].item():g}; soft labels are not supported, because then an "
            "example is in no single cell."
        )
    return whole


def flat_sensitive(s: Any, n_examples: int, n_columns: int) -> Tensor:
    """(N,) integer sensitive values, or (N, columns) of several attributes.

    Raises:
        ValueError: if they are missing or not one per example.
        TypeError: if they are not integers of a tensor.
    """
    if type(s) is Tensor and s.dtype == torch.int64 and s.shape == (n_examples,) and n_columns == 1:
        return s  # the usual case first: this is the hot path
    if s is None:
        raise ValueError("s: required in training; call criterion(input, target, s).")
    if not isinstance(s, Tensor) or s.dtype not in INTEGERS:
        got = s.dtype if isinstance(s, Tensor) else type(s).__name__
        raise TypeError(
            f"s: expected a tensor of integers, got {got}; criterion.groups.encode gives them."
        )
    columns = s.shape[1] if s.ndim == 2 else 1
    if s.ndim not in {1, 2} or s.shape[0] != n_examples or columns != n_columns:
        expected = f"({n_examples},)" if n_columns == 1 else f"({n_examples}, {n_columns})"
        raise ValueError(f"s: expected shape {expected}, got {tuple(s.shape)}.")
    return (s.reshape(-1) if n_columns == 1 else s).long()


def flat_weights(sample_weight: Any, n_examples: int) -> Tensor | None:
    """(N,) sample weights in double precision, or None.

    Raises:
        ValueError: if they are not one non-negative number per example.
        TypeError: if they are not a tensor.
    """
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, Tensor):
        raise TypeError(f"sample_weight: expected a tensor, got {type(sample_weight).__name__}.")
    if sample_weight.shape not in {(n_examples,), (n_examples, 1)}:
        raise ValueError(
            f"sample_weight: expected shape ({n_examples},), got {tuple(sample_weight.shape)}."
        )
    is_double = sample_weight.device.type != "mps"  # which has no double precision
    weight = sample_weight.detach().reshape(-1).to(torch.float64 if is_double else torch.float32)
    weight = weight.contiguous()  # an expanded one has no memory for every row
    if _can_look(weight) and not bool(((weight >= 0) & (weight < torch.inf)).all()):
        raise ValueError("sample_weight: expected finite weights of at least 0.")
    return weight


def flat_losses(losses: Tensor, n_examples: int) -> Tensor:
    """(N,) one loss per example.

    Raises:
        ValueError: if the base loss gave something else.
    """
    if losses.numel() != n_examples:
        raise ValueError(
            f"base_loss: expected one value per example ({n_examples}), "
            f"got shape {tuple(losses.shape)}."
        )
    return losses.reshape(-1)


def _can_look(tensor: Tensor) -> bool:
    """Whether values can be looked at without waiting for an accelerator or breaking a graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
