"""FairBatch (Roh et al., 2021): batches with more of the groups that are worse off.

A batch has as many rows of each label as the data's shares say. Which groups they are of is
learnt: after every epoch the shares of the groups within a label move by alpha towards those whose
loss is above the label's mean. Equality of opportunity moves the desirable labels; equalized odds
the label with the largest gap between groups; demographic parity likewise, with losses as if all
labels were 1, per row of the group, and with label 0's direction reversed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared import support
from fairgrad.methods.shared.cell_losses import CellLosses
from fairgrad.methods.shared.grids import batch_and_decay, combinations
from fairgrad.methods.shared.slots import apportion, draw
from fairgrad.methods.shared.stacked import SGD, train_stacked
from fairgrad.training import SHUFFLING, RowBatch, StackParts, generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from fairgrad.training import Stack

MEASURES = ("equalized_odds", "equality_of_opportunity", "demographic_parity")
ALPHA = {"two groups": 0.005, "more groups": 0.1}


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
    """Shares (..., G) after a step of alpha, within [0, 1] and with a sum of 1.

    Example:
        >>> shifted(torch.tensor([0.7, 0.3]), torch.tensor([-1.0, 1.0]), 0.1)
        tensor([0.6000, 0.4000])
    """
    moved = (shares + alpha * towards).clamp(0, 1)
    return moved / moved.sum(-1, keepdim=True)


class FairBatches:
    """Batches of a stack in which every member has its own shares of groups.

    Attributes:
        shares: (M, L, G) the share of each group in the slots of each label.
    """

    def __init__(self, stack: Stack, task: Task, batch_size: int) -> None:
        table = stack.table
        self.measure, self.y_desirable = task.measure or "", task.y_desirable
        self.losses = CellLosses(stack, as_if_all_are=1 if self._is_parity else None)
        self.counts = self.losses.counts
        by_label = self.counts.sum(-1, keepdim=True)
        self.label_shares = (by_label / by_label.sum(1, keepdim=True))[..., 0]
        self.shares = self.counts / by_label.clamp(min=1)
        self.alpha = ALPHA["two groups" if table.groups.n_groups <= 2 else "more groups"]
        self.generators = [generator(member.seed, SHUFFLING) for member in stack.members]
        n_rows = max(len(rows) for rows in self.losses.rows)
        self.batch_size = min(batch_size, n_rows)
        self.n_steps = -(-n_rows // self.batch_size)
        self.is_first = True

    @property
    def _is_parity(self) -> bool:
        return self.measure == "demographic_parity"

    def epoch(self) -> Iterator[RowBatch]:
        """The batches of one epoch; the shares move between epochs."""
        if not self.is_first:  # before that the models have learnt nothing to judge by
            self.move()
        self.is_first = False
        rows = torch.stack([self._rows(member) for member in range(len(self.shares))])
        for step in range(self.n_steps):
            yield RowBatch(rows[:, step].contiguous(), None)

    def move(self) -> None:
        """Moves the shares by the losses of the models as they are."""
        totals = self.losses.totals()
        sizes = self.counts.sum(1, keepdim=True) if self._is_parity else self.counts
        losses = torch.where(self.counts > 0, totals / sizes, torch.nan)
        towards = direction(losses, self.measure, self.y_desirable)
        self.shares = shifted(self.shares, towards, self.alpha)

    def _rows(self, member: int) -> Tensor:
        """(n_steps, B) the rows of a member's batches, cell by cell."""
        slots = apportion(self.label_shares[member].tolist(), self.batch_size)
        drawn = [
            draw(self.losses.cell(member, label, group), size, self.n_steps, source)
            for source in [self.generators[member]]
            for label, total in enumerate(slots)
            for group, size in enumerate(apportion(self.shares[member, label].tolist(), total))
        ]
        return torch.cat(drawn, dim=1)


def _unsupported(task: Task) -> str | None:
    only_two = task.measure == "demographic_parity"
    return (
        support.no_network(task)
        or support.other_measure(task, MEASURES)
        or (support.more_labels(task) if only_two else None)
        or support.unknown_groups(task)
    )


def _train(task: Task) -> list[Candidate]:
    def parts_of(settings: Sequence[Settings]) -> StackParts:
        batch_size = settings[0]["batch_size"]
        return StackParts(batches=lambda stack: FairBatches(stack, task, batch_size))

    return train_stacked(task, combinations(METHOD, task), parts_of=parts_of, **SGD)


METHOD = Method(
    name="fairbatch",
    description="Draws batches with more of the groups whose loss is higher.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=_unsupported,
    settings=batch_and_decay,
    train=_train,
)
