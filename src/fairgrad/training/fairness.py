"""The method for a whole stack: the same functions as the losses, with a leading member axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad import dual
from fairgrad.training.cells import Cells
from fairgrad.training.constants import (
    dual_constants,
    level_constants,
    member_constraints,
    mixing,
    needs_labels,
    warn_of_undefined,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.groups import Ints
    from fairgrad.training.cells import CellBatch
    from fairgrad.training.table import Member, TrainingTable


class StackedFairness:
    """Error estimates, multipliers and cell weights of M members.

    Args:
        table: the rows.
        members: M of them.
        rows: the training rows of each member.

    Attributes:
        cells: the cells of the table's rows.
        state: what changes from step to step, each (M, ...).
        is_active: whether any member is to be made fair; if not, all rows weigh the same.
    """

    def __init__(
        self, table: TrainingTable, members: Sequence[Member], rows: Sequence[Ints]
    ) -> None:
        groups = [
            member.frequencies or table.groups_of(index)
            for member, index in zip(members, rows, strict=True)
        ]
        constraints = member_constraints(members, groups)
        warn_of_undefined(constraints)
        by_label = needs_labels(constraints)
        self.cells = Cells(table, by_label=by_label)
        n_cells = self.cells.n_cells

        def tensor(array: Any) -> Tensor:
            return torch.as_tensor(np.asarray(array), dtype=table.dtype)

        constants = dual_constants(constraints, groups, n_cells, by_label=by_label)
        sides = constants.sides
        self.sign = tensor(sides.sign)
        self.floor = None if np.isneginf(sides.floor).all() else tensor(sides.floor)
        self.influence = tensor(constants.influence)
        self.ones = torch.ones(n_cells, dtype=table.dtype)
        self.pooling: Any = self.cells.n_label_rows
        if self.cells.is_dense:
            self.pooling = [tensor(p) for p in dual.pooling(n_cells, self.cells.n_label_rows)]
        self.levels_of = level_constants(constraints, n_cells, by_label=by_label)
        self.mixing = None
        if by_label and any(part is not None and not part.by_label for part in constraints):
            self.mixing = tensor(mixing(constraints, table.n_labels, table.groups.n_groups))

        # Rates multiply the constraints once for all instead of the violations in every step.
        rate = tensor([[[_rate(member)]] for member in members])
        proportional = tensor([[[_rate(m, m.proportional_rate)]] for m in members])
        self.rate_A, self.proportional_A = rate * tensor(sides.A), proportional * tensor(sides.A)
        memories = [m.error_memory for m in members]
        same = len(set(memories)) == 1
        self.memory = float(memories[0]) if same else tensor(memories)[:, None]
        self.least_weight = tensor(
            [[-np.inf if member.negative_weights else 0.0] for member in members]
        )
        self.has_proportional = bool((proportional > 0).any())
        self.has_least_weight = bool((self.least_weight == 0).any())
        self.is_active = bool((rate > 0).any()) or self.has_proportional

        shape = (len(members), n_cells)
        self.state = {
            **{
                name: tensor(part).repeat(len(members), 1)
                for name, part in dual.nothing_remembered(n_cells, table.n_labels)._asdict().items()
            },
            "multipliers": torch.zeros(sides.floor.shape, dtype=table.dtype),
            "weights": torch.ones(shape, dtype=table.dtype),
        }

    def row_factors(self, batch: CellBatch, wrong: Tensor) -> Tensor:
        """What each row's loss is multiplied by: ``w[cell of i] * weight_i / sum of weights``.

        Updates the state first, as the paper's algorithm does.

        Args:
            batch: the cells of the batch.
            wrong: (S, T, B) which rows each member predicts wrongly.

        Returns:
            (S, T, B), or (S, 1, B) if no member is to be made fair.
        """
        divisor = batch.total
        if isinstance(divisor, Tensor):
            divisor = divisor.clamp(min=dual.NOTHING)  # streams that have run out weigh nothing
        if not self.is_active:
            weight = wrong.new_ones((), dtype=self.ones.dtype)
            weight = weight if batch.weight is None else batch.weight[:, None]
            return (weight / divisor).expand(len(wrong), 1, wrong.shape[-1])
        weights = self.step(batch.count(wrong).view(-1, 2, batch.n_cells))
        return batch.spread(weights.view(*wrong.shape[:2], -1) / divisor)

    def step(self, counts: Tensor) -> Tensor:
        """Takes in counts (M, 2, K) of a batch and gives the new weights (M, K)."""
        counts = self.mixed(counts)
        state = self.state
        errors, memory = dual.estimate_errors(
            dual.Memory(state["rows"], state["errors"]),
            self.pooling,
            counts.flatten(1),
            self.memory,
        )
        multipliers = dual.ascend(state["multipliers"], self.rate_A, errors, self.floor, 1.0)
        used = multipliers
        if self.has_proportional:
            used = dual.with_proportional(used, self.proportional_A, errors, self.floor, 1.0)
        weights: Tensor = dual.cell_weights(self.ones, self.influence, used)
        if self.has_least_weight:
            weights = weights.clip(min=self.least_weight)
        state |= {**memory._asdict(), "multipliers": multipliers, "weights": weights}
        return weights

    def mixed(self, counts: Tensor) -> Tensor:
        """Counts (..., 2, K) of (label, group) cells as what each member's own cells hold."""
        return counts if self.mixing is None else counts @ self.mixing

    @property
    def net_multipliers(self) -> Tensor:
        """(M, J) one multiplier per constraint, lambda - delta."""
        net: Tensor = dual.net_multipliers(self.state["multipliers"], self.sign)
        return net


def _rate(member: Member, rate: float | None = None) -> float:
    if member.fairness_measure is None:
        return 0.0
    return member.fairness_rate if rate is None else rate
