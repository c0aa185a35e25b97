"""Shuffled rows in batches: one stream for all members that see the same ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.groups import Ints

INITIAL_WEIGHTS, SHUFFLING, DROPOUT = range(3)
"""The independent uses of a member's seed."""


class RowBatch(NamedTuple):
    """The rows of one batch of every stream.

    Attributes:
        row: (S, B) row numbers; where a stream has run out, its first row stands in.
        valid: (S, B) whether an entry is a row of the stream, or None if all are.
    """

    row: Tensor
    valid: Tensor | None


class Streams:
    """S streams of rows, shuffled anew every epoch or as they are, cut into batches.

    Every stream goes through its rows exactly once per epoch. One with fewer rows than the longest
    runs out before it; from then on its entries are not valid.

    Args:
        rows: the row numbers of each stream.
        seeds: one per stream.
        batch_size: rows per batch.
    """

    def __init__(self, rows: Sequence[Ints], seeds: Sequence[int], batch_size: int) -> None:
        self.rows = [torch.from_numpy(part) for part in rows]
        self.generators = [generator(seed, SHUFFLING) for seed in seeds]
        self.sizes = np.array([len(part) for part in rows])
        self.length, self.shortest = int(self.sizes.max()), int(self.sizes.min())
        self.batch_size = min(batch_size, self.length)
        self.n_steps = math.ceil(self.length / self.batch_size)

    def epoch(self, *, shuffled: bool = True) -> Iterator[RowBatch]:
        """The batches of one epoch, in a new order or in that of the rows."""
        order = torch.stack([self._order(stream, shuffled) for stream in range(len(self.rows))])
        for start in range(0, self.length, self.batch_size):
            row = order[:, start : start + self.batch_size]
            yield RowBatch(row, self._valid(start, row.shape[1]))

    def _order(self, stream: int, shuffled: bool) -> Tensor:
        rows = order = self.rows[stream]
        if shuffled:
            order = rows[torch.randperm(len(rows), generator=self.generators[stream])]
        missing = self.length - len(order)
        return torch.cat([order, rows[:1].expand(missing)]) if missing else order

    def _valid(self, start: int, width: int) -> Tensor | None:
        if start + width <= self.shortest:
            return None
        return torch.arange(width) < torch.from_numpy(self.sizes - start)[:, None]


def generator(seed: int, use: int) -> torch.Generator:
    """A generator for one use of a seed, independent of its other uses and of other seeds."""
    word = np.random.SeedSequence([seed, use]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word >> np.uint64(1)))
