"""FairBatch (Roh et al., 2021): batches with more of the groups that are worse off.

A batch has as many rows of each label as the data's shares say. Which groups they are of is
learnt: after every epoch the shares of the groups within a label move by alpha towards those whose
loss is above the label's mean. Equality of opportunity moves the desirable labels; equalized odds
the label with the largest gap between groups; demographic parity likewise, with losses as if all
labels were 1, per row of the group, and with label 0's direction reversed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from fairgrad.training import SHUFFLING, StackParts, generator
from fairgrad.training import losses as cross_entropies
from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import (
    Candidate,
    Combination,
    Method,
    MethodTask,
    batch_and_decay,
)
from fairgrad_bench.methods.models import SGD, train_stacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from fairgrad.training import Stack

MEASURES = ("equalized_odds", "equality_of_opportunity", "demographic_parity")
ALPHA = {"two groups": 0.005, "more groups": 0.1}
ROWS_AT_ONCE = 2048


def direction(losses: Tensor, measure: str, y_desirable: Sequence[int]) -> Tensor:
    """(M, L, G) where the shares of the groups within each label are to move: -1, 0 or 1.

    Args:
        losses: (M, L, G), NaN where a label's group has no rows.
        measure: one of those supported.
        y_desirable: the labels that move for equality of opportunity.
    """
    above = losses - losses.nanmean(-1, keepdim=True)
    above = above.nan_to_num(0.0)
    if measure == "equality_of_opportunity":
        moving = torch.zeros(losses.shape[1], 1)
        moving[list(y_desirable)] = 1
    else:
        gap = above.amax(-1) - above.amin(-1)
        moving = torch.nn.functional.one_hot(gap.argmax(-1), losses.shape[1])[..., None]
    if measure == "demographic_parity":
        above = above * torch.tensor([[-1.0], [1.0]])
    return above.sign() * moving


def shifted(shares: Tensor, towards: Tensor, alpha: float) -> Tensor:
    """Shares (..., G) after a step of alpha, within [0, 1] and with a sum of 1."""
    moved = (shares + alpha * towards).clamp(0, 1)
    return moved / moved.sum(-1, keepdim=True)


def apportion(shares: Sequence[float], total: int) -> list[int]:
    """Whole numbers in proportion to the shares that sum to the total, by largest remainder."""
    exact = [share * total / max(sum(shares), 1e-12) for share in shares]
    slots = [math.floor(part) for part in exact]
    by_remainder = sorted(range(len(exact)), key=lambda k: slots[k] - exact[k])
    for k in by_remainder[: total - sum(slots)]:
        slots[k] += 1
    return slots


def draw(rows: Tensor, size: int, n_steps: int, source: torch.Generator) -> Tensor:
    """(n_steps, size) rows, each used once more only when all have been used."""
    if size == 0:
        return rows.new_empty(n_steps, 0)
    needed = size * n_steps
    passes = [
        rows[torch.randperm(len(rows), generator=source)]
        for _ in range(math.ceil(needed / len(rows)))
    ]
    return torch.cat(passes)[:needed].view(n_steps, size)


class CellLosses:
    """Sums of the losses of a stack of one model per cell.

    Args:
        stack: the model.
        as_if_all_are: judges every row as if it had this label; None by its own.

    Attributes:
        rows: the training rows.
        counts: (L, G) how many rows each cell has.
    """

    def __init__(self, stack: Stack, as_if_all_are: int | None = None) -> None:
        self.stack, self.as_if_all_are = stack, as_if_all_are
        table = stack.table
        self.shape = (table.n_labels, table.groups.n_groups)
        self.code = table.label * table.groups.n_groups + table.group
        self.rows = stack.rows
        self.counts = self.code[self.rows].bincount(minlength=math.prod(self.shape))
        self.counts = self.counts.view(self.shape)

    def cell(self, label: int, group: int) -> Tensor:
        """The training rows of one cell."""
        return self.rows[self.code[self.rows] == label * self.shape[1] + group]

    def totals(self) -> Tensor:
        """(L, G) the sum of the losses of each cell, the model as in evaluation."""
        sums = torch.zeros(math.prod(self.shape))
        for rows in torch.split(self.rows, ROWS_AT_ONCE):
            label = self.stack.table.label[rows]
            if self.as_if_all_are is not None:
                label = torch.full_like(label, self.as_if_all_are)
            (losses,) = cross_entropies(
                self.stack.network.scores(self.stack.table.take(rows)), label
            )
            sums.index_add_(0, self.code[rows], losses)
        return sums.view(self.shape)


class FairBatches:
    """Batches of a stack of one model, with shares of groups that move.

    Attributes:
        shares: (L, G) the share of each group in the slots of each label.
    """

    def __init__(self, stack: Stack, task: MethodTask, batch_size: int) -> None:
        table = stack.table
        self.measure, self.y_desirable = task.measure or "", task.y_desirable
        self.losses = CellLosses(stack, as_if_all_are=1 if self._is_parity else None)
        self.counts = self.losses.counts
        by_label = self.counts.sum(-1, keepdim=True)
        self.label_shares = (by_label / by_label.sum())[..., 0]
        self.shares = self.counts / by_label.clamp(min=1)
        self.alpha = ALPHA["two groups" if table.groups.n_groups <= 2 else "more groups"]
        self.source = generator(stack.plan.seed, SHUFFLING)
        n_rows = len(self.losses.rows)
        self.batch_size = min(batch_size, n_rows)
        self.n_steps = -(-n_rows // self.batch_size)
        self.is_first = True

    @property
    def _is_parity(self) -> bool:
        return self.measure == "demographic_parity"

    def epoch(self) -> Iterator[Tensor]:
        """The batches of one epoch; the shares move between epochs."""
        if not self.is_first:  # before that the model has learnt nothing to judge by
            self.move()
        self.is_first = False
        yield from self._rows()

    def move(self) -> None:
        """Moves the shares by the losses of the model as it is."""
        totals = self.losses.totals()
        sizes = self.counts.sum(0, keepdim=True) if self._is_parity else self.counts
        losses = torch.where(self.counts > 0, totals / sizes, torch.nan)
        towards = direction(losses[None], self.measure, self.y_desirable)[0]
        self.shares = shifted(self.shares, towards, self.alpha)

    def _rows(self) -> Tensor:
        """(n_steps, B) the rows of the batches, cell by cell."""
        slots = apportion(self.label_shares.tolist(), self.batch_size)
        drawn = [
            draw(self.losses.cell(label, group), size, self.n_steps, self.source)
            for label, total in enumerate(slots)
            for group, size in enumerate(apportion(self.shares[label].tolist(), total))
        ]
        return torch.cat(drawn, dim=1)


def _unsupported(task: MethodTask) -> str | None:
    only_two = task.measure == "demographic_parity"
    return (
        support.no_network(task)
        or support.other_measure(task, MEASURES)
        or (support.more_labels(task) if only_two else None)
        or support.unknown_groups(task)
    )


def _train(task: MethodTask) -> list[Candidate]:
    def parts_of(settings: Sequence[Combination]) -> StackParts:
        batch_size = settings[0]["batch_size"]
        return StackParts(batches=lambda stack: FairBatches(stack, task, batch_size))

    return train_stacked(task, METHOD.combinations(task), parts_of=parts_of, most_members=1, **SGD)


METHOD = Method(
    name="fairbatch",
    version=1,
    description="Draws batches with more of the groups whose loss is higher.",
    unsupported=_unsupported,
    settings=batch_and_decay,
    train=_train,
)
