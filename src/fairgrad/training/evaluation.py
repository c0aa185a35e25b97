"""Judges all members of a stack on their validation rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from fairgrad import dual
from fairgrad.evaluate import unfairness
from fairgrad.training import heads
from fairgrad.training.fairness import member_constraints
from fairgrad.training.records import Record
from fairgrad.training.streams import Indices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from fairgrad.groups import Floats, Ints
    from fairgrad.training.fairness import StackedFairness
    from fairgrad.training.member import Member
    from fairgrad.training.network import Network
    from fairgrad.training.table import TrainingTable

MAX_ACTIVATIONS = 2**21
"""Rows are judged in pieces of so many activations, which stay in the processor's cache."""


class Evaluation:
    """Accuracy, loss and levels of M members, with the frequencies of their validation rows.

    Args:
        table: the rows.
        members: M of them, ordered by stream.
        rows: the validation rows of each stream.
        fairness: the stack's method, whose cells are used.
        widest: units of the network's widest layer.
    """

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        rows: Sequence[Ints],
        fairness: StackedFairness,
        widest: int,
    ) -> None:
        self.table, self.fairness = table, fairness
        self.rows = [torch.from_numpy(part) for part in rows]
        self.n_streams, self.n_members = len(rows), len(members)
        per_stream = self.n_members // self.n_streams
        groups = [table.groups_of(part) for part in rows for _ in range(per_stream)]
        self.constraints = member_constraints(members, groups)
        self.n_levels = max([1, *(len(part.c0) for part in self.constraints if part is not None)])
        self.piece = max(256, MAX_ACTIVATIONS // (self.n_members * widest))

    def record(self, network: Network) -> Record:
        """Judges the network's models as they are."""
        counts = torch.zeros(self.n_members, 2, self.fairness.cells.n_cells, dtype=torch.float64)
        loss = torch.zeros(self.n_members, dtype=torch.float64)
        for index, valid in self._pieces():
            scores = network.scores(self.table.take(index))
            scores = scores.view(self.n_streams, -1, *scores.shape[1:])
            batch = self.fairness.cells.take(index, valid)
            label = batch.label if scores.shape[2] == 1 else batch.label.long()
            counts += batch.count(heads.wrong(scores, label)).view(counts.shape)
            losses = heads.losses(scores, label)
            if batch.weight is None:
                loss += losses.sum(-1).view(-1)
            else:
                loss += (losses @ batch.weight[:, :, None]).view(-1)
        return self._record(counts, loss)

    def _record(self, counts: Tensor, loss: Tensor) -> Record:
        total = counts.sum((1, 2)).numpy()
        n_wrong = counts[:, 1].sum(1).numpy()
        levels, gaps = self._levels(counts)
        return Record(
            accuracy=1 - n_wrong / total,
            loss=loss.numpy() / total,
            unfairness=unfairness(gaps),
            levels=levels,
            multipliers=self.fairness.net_multipliers.numpy().astype(np.float64),
        )

    def _levels(self, counts: Tensor) -> tuple[Floats, Floats]:
        """(M, J) levels and how unfair they are, NaN where a member has no such level."""
        right, wrong = self.fairness.mixed(counts).numpy().swapaxes(0, 1)
        errors = wrong / np.maximum(right + wrong, dual.NOTHING)
        levels, gaps = np.full((2, self.n_members, self.n_levels), np.nan)
        for m, part in enumerate(self.constraints):
            if part is not None:
                n = len(part.c0)
                # A measure that does not look at the label finds its groups in the first cells.
                levels[m, :n] = part.levels(errors[m, : part.n_cells])
                gaps[m, :n] = part.gaps(levels[m, :n])
        return levels, gaps

    def _pieces(self) -> Iterator[Indices]:
        """The validation rows of all streams, in order, padded where some have fewer."""
        sizes = torch.tensor([len(rows) for rows in self.rows])
        longest = int(sizes.max())
        for start in range(0, longest, self.piece):
            place = torch.arange(start, min(start + self.piece, longest))
            valid = place < sizes[:, None]
            index = torch.stack(
                [
                    rows[place.clamp(max=int(n) - 1)]
                    for rows, n in zip(self.rows, sizes, strict=True)
                ]
            )
            yield Indices(index, None if bool(valid.all()) else valid)
