"""The method for a whole stack: the problems of its M members stand side by side in one step.

Measures of what is predicted, and costs of mistakes, count predicted labels instead of errors, and
every label has a weight in every cell (`fairgrad.dual`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad import dual
from fairgrad.constraints import (
    Coefficients,
    Constraints,
    on_outcomes,
    split_by_label,
    warn_of_undefined,
)
from fairgrad.groups import count_rows
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from fairgrad.groups import Floats, Groups, Ints
    from fairgrad.training.plan import Member, TrainingPlan, TrainingTable


class StackedFairness:
    """Error estimates, multipliers and cell weights of M members.

    Attributes:
        constraints: (M,) what is asked of the cells, with each member's slack; None each without a
            measure.
        code: (n,) the cell of each row of the table.
        n_outcomes: 1 for measures of errors, else the number of labels, whose predictions count.
        constants, state: of all problems side by side, as NumPy arrays.
        weights: (M, O, K) that the last step gave.
        is_active: whether any member is to be made fair; if not, all rows weigh the same.
    """

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        plan: TrainingPlan,
        rows: Ints | None,
    ) -> None:
        self.table, self.plan, self.n_members = table, plan, len(members)
        self._is_auto = any(member.fairness_rate == "auto" for member in members)
        groups = table.frequencies(rows)
        exact = self.constraints_on(groups)
        self.constraints: list[Constraints | None] = [None] * len(members)
        by_label, self.n_outcomes, self.n_levels = False, 1, 1
        if exact is not None:
            slack = [exact.slacken(member.epsilon) for member in members]
            warn_of_undefined(slack)
            self.constraints = [*slack]
            by_label, self.n_outcomes, self.n_levels = (
                exact.by_label,
                exact.n_outcomes,
                len(exact.c0),
            )
        elif plan.cost_matrix is not None:
            by_label, self.n_outcomes = True, table.n_labels
        self.n_groups, self.by_label = groups.n_groups, by_label
        self.code = table.label * self.n_groups + table.group if by_label else table.group
        self.n_cells = self.n_groups * (table.n_labels if by_label else 1)
        self.constants = dual.side_by_side(
            [
                self._constants(member, bound, groups)
                for member, bound in zip(members, self.constraints, strict=True)
            ]
        )
        self.is_active = self.n_outcomes > 1 or (
            exact is not None and any(member.is_fair for member in members)
        )
        self.opposes = self._is_auto and self.n_outcomes == 1
        self.state = dual.start(self.constants, table.n_labels)
        at_zero = dual.net_weights(self.constants, np.zeros(len(self.constants.c0)))
        self.weights = self._by_member(at_zero)

    def constraints_on(self, groups: Groups) -> Constraints | None:
        """What the measure asks of the cells of some rows, without slack; None without one."""
        plan = self.plan
        if plan.fairness_measure is None:
            return None
        constraints = constraints_of(plan.fairness_measure, groups, y_desirable=plan.y_desirable)
        if plan.cost_matrix is not None:
            return on_outcomes(constraints, groups)
        return split_by_label(constraints, groups) if self._is_auto else constraints

    def row_weights(self, rows: Tensor, predicted: Tensor) -> Tensor:
        """What each row's loss is multiplied by: ``w[cell of i] * weight_i / sum of weights``.

        Updates the state first, as the paper's algorithm does, by the index of the label that each
        member predicts for the rows (B,), (M, B). Gives (M, 1, B), or (1, 1, B) if no member is to
        be made fair. For measures of what is predicted (M, L, B), the weight of each label.
        """
        if self.table.weight is None:
            share = torch.full((len(rows),), 1 / len(rows), dtype=self.table.dtype)
        else:
            share = self.table.weight[rows]
            share = share / share.sum().clamp(min=dual.NOTHING)
        if not self.is_active:
            return share[None, None]
        joint = self.count(rows, predicted).transpose(0, 1).flatten(1).numpy()
        n_rows = None
        if self.table.weight is not None:
            n_rows = np.float64((self.table.weight[rows] > 0).sum())
        self.state, weights = dual.step(self.constants, self.state, joint, n_rows)
        self.weights = self._by_member(weights)
        cell_weights = torch.from_numpy(self.weights).to(share.dtype)
        return cell_weights[:, :, self.code[rows]] * share

    def count(self, rows: Tensor, predicted: Tensor) -> Tensor:
        """(M, 2, K) rows of each member predicted rightly and wrongly; (M, 1 + L, K) by label."""
        outcome = predicted + 1
        if self.n_outcomes == 1:
            outcome = (predicted != self.table.label[rows]).long()
        size = (self.n_members, 1 + self.n_outcomes, self.n_cells)
        place = torch.arange(self.n_members)[:, None] * size[1] + outcome
        place = place * self.n_cells + self.code[rows]
        weight = torch.ones(1, dtype=torch.float64)
        if self.table.weight is not None:
            weight = self.table.weight[rows].double()
        counts: Tensor = count_rows(
            place.view(-1), math.prod(size), weight.expand(place.shape).reshape(-1)
        )
        return counts.view(size)

    def copy(self) -> dict[str, Tensor]:
        """The state of each member, (M, ...) each."""
        rows, errors, multipliers, seen = self.state
        m, n_sides = self.n_members, len(self.constants.sign)
        arrays = {
            "rows": rows.reshape(m, -1),
            "errors": self._by_member(errors).reshape(m, -1),
            "multipliers": multipliers.reshape(n_sides, m, -1).swapaxes(0, 1).reshape(m, -1),
            "weights": self.weights.reshape(m, -1),
            "seen": np.full((m, 1), float(seen)),
        }
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what `copy` gave."""
        m, n_sides = self.n_members, len(self.constants.sign)
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in state.items()}
        self.state = dual.State(
            arrays["rows"].ravel(),
            arrays["errors"].reshape(m, self.n_outcomes, -1).swapaxes(0, 1).ravel(),
            arrays["multipliers"].reshape(m, n_sides, -1).swapaxes(0, 1).reshape(n_sides, -1),
            np.asarray(arrays["seen"].max()),
        )
        self.weights = arrays["weights"].reshape(m, self.n_outcomes, -1)

    def _by_member(self, joint: Floats) -> Floats:
        """(M, O, K) of what stands side by side, (O * M * K)."""
        return joint.reshape(self.n_outcomes, self.n_members, -1).swapaxes(0, 1)

    def _constants(
        self, member: Member, constraints: Constraints | None, groups: Groups
    ) -> dual.Constants:
        """One member's problem; levels that are not defined are always 0."""
        costs, plan = self.plan.cost_matrix, self.plan
        if constraints is None:
            zeros = Coefficients.from_dense(np.zeros((1, self.n_outcomes * self.n_cells)))
            nothing = Constraints(np.zeros(1), zeros, self.by_label, n_outcomes=self.n_outcomes)
            return dual.make_constants(nothing, groups, fairness_rate=0.0, cost_matrix=costs)
        defined = constraints.is_defined
        if not defined.all():
            constraints = Constraints(
                np.where(defined, constraints.c0, 0.0),
                constraints.coefficients.only(defined),
                self.by_label,
                lower=np.where(defined, constraints.lower, 0.0),
                upper=np.where(defined, constraints.upper, 0.0),
                n_outcomes=self.n_outcomes,
            )
        constants = dual.make_constants(
            constraints,
            groups,
            fairness_rate=member.fairness_rate,
            proportional_rate=member.proportional_rate,
            error_memory=member.error_memory,
            negative_weights=plan.negative_weights,
            cost_matrix=costs,
            n_rows=float(groups.mass.sum()),
        )
        return dual.with_steady_rates(constants, member.steady_share)
