"""The method for a whole stack: M members whose problems stand side by side in one step.

The streams' rows are in cells the same for all members, so that counting errors and giving rows
their cell's weight are products with the rows' membership matrix N, ``N_ik = weight_i`` where row i
is in cell k:

    wrong rows per cell = wrong @ N,        factor of each row = cell weights @ N'.

Members may have different measures. If some look at the label and others do not, all have cells by
(label, group); for a measure that does not look at the label, each such cell then stands for its
whole group: it holds the group's rows of every label, and its weight is the group's.

Measures of what is predicted, and costs of mistakes, count predicted labels in place of errors, and
every label has a weight in every cell (`fairgrad.dual`). Their loss is another one, so they are not
in a stack with measures of errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fairgrad import dual
from fairgrad.constraints import Coefficients, Constraints, on_outcomes, warn_of_undefined
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.groups import Groups, Ints
    from fairgrad.training.plan import Member
    from fairgrad.training.table import TrainingTable

MAX_DENSE = 64
"""With more cells than these, rows are counted one by one instead of by a product."""


class StackedFairness:
    """Error estimates, multipliers and cell weights of M members.

    Args:
        table: the rows.
        members: M of them.
        rows: the training rows of each member.

    Attributes:
        constraints: what each member's measure asks of the cells; None without a measure.
        exact: the same without slack, as `member_constraints` notes it.
        cells: the cells of the table's rows.
        state: what changes from step to step, each (M, ...).
        problems: of each member.
        constants: all of them side by side.
        is_active: whether any member is to be made fair; if not, all rows weigh the same.
        ignores_labels: (M,) whose measure does not look at the label although the cells are by
            label; None if nobody's.
        n_outcomes: 1 for measures of errors, else the number of labels, whose predictions count.
    """

    def __init__(
        self, table: TrainingTable, members: Sequence[Member], rows: Sequence[Ints]
    ) -> None:
        found = {id(index): table.frequencies(index) for index in rows}
        groups = [
            member.frequencies or found[id(index)]
            for member, index in zip(members, rows, strict=True)
        ]
        self.exact: dict[Any, tuple[Constraints, Groups]] = {}
        constraints = self.constraints = member_constraints(members, groups, self.exact)
        warn_of_undefined([part for part in constraints if part is not None])
        self.n_outcomes = _counted_outcomes(members, constraints, table.n_labels)
        is_of_outcomes = self.n_outcomes > 1
        by_label = is_of_outcomes or any(part is not None and part.by_label for part in constraints)
        self.cells = StackCells(table, by_label=by_label)
        self.n_members, self.n_groups = len(members), table.groups.n_groups
        n_levels = max([1, *(len(part.c0) for part in constraints if part is not None)])
        self.problems = [
            _member_constants(member, part, own, by_label, n_levels, self.n_outcomes)
            for member, part, own in zip(members, constraints, groups, strict=True)
        ]
        self.constants = dual.side_by_side(self.problems)
        ignores_labels = [
            by_label and part is not None and not part.by_label for part in constraints
        ]
        self.ignores_labels = torch.tensor(ignores_labels) if any(ignores_labels) else None
        self.is_active = is_of_outcomes or any(
            part is not None and (member.fairness_rate > 0 or member.proportional_rate > 0)
            for member, part in zip(members, constraints, strict=True)
        )
        start = dual.start(self.constants, table.n_labels)
        n_sides = len(self.constants.sign)
        # All members' levels side by side, as `dual` has them; a step changes them in place.
        self._joint = dual.State(
            torch.from_numpy(start.rows),
            torch.from_numpy(start.errors),
            torch.zeros(n_sides, self.n_members * n_levels, dtype=torch.float64),
            torch.from_numpy(start.seen),
        )
        weights = torch.ones(self.n_members, self.cells.n_cells, dtype=torch.float64)
        errors = self._joint.errors.view(self.n_members, -1)
        if is_of_outcomes:  # these are kept by member, which the joint ones are not
            at_zero = dual.net_weights(self.constants, np.zeros(len(self.constants.c0)))
            weights = self._by_member(torch.from_numpy(at_zero)).flatten(1)
            errors = self._by_member(self._joint.errors).flatten(1)
        self.state = {
            "rows": self._joint.rows.view(self.n_members, -1),
            "errors": errors,
            "multipliers": torch.zeros(self.n_members, n_sides * n_levels, dtype=torch.float64),
            "weights": weights,
            "seen": torch.zeros(self.n_members, 1, dtype=torch.float64),
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
        if not self.is_active:
            divisor = self._divisor(batch)
            weight = wrong.new_ones((), dtype=self.cells.dtype)
            weight = weight if batch.weight is None else batch.weight[:, None]
            return (weight / divisor).expand(len(wrong), 1, wrong.shape[-1])
        counts = batch.count(wrong)
        weights = self.step(self._relative(batch, counts).view(-1, 2, batch.n_cells))
        return batch.spread(weights.view(*wrong.shape[:2], -1) / self._divisor(batch))

    def row_targets(self, batch: CellBatch, predicted: Tensor) -> Tensor:
        """What each label of each row weighs: ``t[cell of i, l] * weight_i / sum of weights``.

        Updates the state first. For measures of what is predicted.

        Args:
            batch: the cells of the batch.
            predicted: (S, T, B) the index of the label that each member predicts.

        Returns:
            (S, T, L, B).
        """
        streams, members, n = predicted.shape
        counts = batch.count_labels(predicted, self.n_outcomes)
        by_member = self._relative(batch, counts).view(-1, 1 + self.n_outcomes, batch.n_cells)
        weights = self.step(by_member)
        weights = weights.view(streams, members * self.n_outcomes, -1)
        spread = batch.spread(weights / self._divisor(batch))
        return spread.view(streams, members, self.n_outcomes, n)

    def _divisor(self, batch: CellBatch) -> Tensor | int:
        """The sum of the rows' weights, by stream."""
        total = batch.total
        # Streams that have run out weigh nothing.
        return total.clamp(min=dual.NOTHING) if isinstance(total, Tensor) else total

    def _by_member(self, joint: Tensor) -> Tensor:
        """(M, O, K) of what stands side by side, (O * M * K)."""
        by_outcome = joint.view(self.n_outcomes, self.n_members, -1)
        return by_outcome.transpose(0, 1).contiguous()

    def _relative(self, batch: CellBatch, counts: Tensor) -> Tensor:
        """Counts (S, T, ...) in units of the mean weight: the scale of weights does not matter."""
        if self.cells.weight is None or batch.weight is None:
            return counts
        n_rows, total = (batch.weight > 0).sum(1), batch.weight.sum(1).clamp(min=dual.NOTHING)
        return counts.double() * (n_rows / total.double()).view(-1, 1, 1, 1)

    def step(self, counts: Tensor) -> Tensor:
        """Takes in counts of a batch, (M, 2, K) or (M, 1 + L, K), and gives the new weights.

        Returns:
            (M, K), or (M, L * K) of every label.
        """
        state, n_sides = self._joint, len(self._joint.multipliers)
        if self.n_outcomes > 1:
            kept = self.state["errors"].view(self.n_members, self.n_outcomes, -1)
            state.errors.copy_(kept.transpose(0, 1).reshape(-1))
        own = self.state["multipliers"].view(self.n_members, n_sides, -1)
        of_members = state.multipliers.view(n_sides, self.n_members, -1).transpose(0, 1)
        of_members.copy_(own)
        state.seen.copy_(self.state["seen"].max())
        joint = self.mixed(counts).transpose(0, 1).reshape(1 + self.n_outcomes, -1).double()
        arrays = dual.State(*(part.numpy() for part in state))
        found, new_weights = dual.step(self.constants, arrays, joint.numpy())
        for part, new in zip(arrays, found, strict=True):
            part[...] = new  # the state's own memory
        weights = torch.from_numpy(new_weights)
        own.copy_(of_members)
        self.state["seen"].fill_(float(state.seen))
        if self.n_outcomes > 1:
            self.state["errors"].copy_(self._by_member(state.errors).flatten(1))
            weights = self._by_member(weights)
        self.state["weights"] = weights = weights.view(self.n_members, -1)
        return weights.to(self.cells.dtype)

    def adapt(self, start: Mapping[str, Any]) -> dict[str, Any]:
        """A state to start from, if it is of a stack that had two sides where this has one."""
        key, n = "fairness.multipliers", self.state["multipliers"].shape[1]
        found = torch.as_tensor(start.get(key, ()))
        if found.ndim != 2 or found.shape[1] != 2 * n:
            return dict(start)
        return {**start, key: found[:, :n] - found[:, n:]}

    def mixed(self, counts: Tensor) -> Tensor:
        """Counts (..., M, 2, K) of (label, group) cells as what each member's own cells hold."""
        if self.ignores_labels is None:
            return counts
        by_label = counts.view(*counts.shape[:-1], -1, self.n_groups)
        whole_group = by_label.sum(-2, keepdim=True).expand(by_label.shape)
        mixed = torch.where(self.ignores_labels[:, None, None, None], whole_group, by_label)
        return mixed.reshape(counts.shape)

    @property
    def net_multipliers(self) -> Tensor:
        """(M, J) one multiplier per constraint, lambda - delta."""
        multipliers = self._by_side(self.state["multipliers"]).numpy()
        net = torch.from_numpy(dual.net_multipliers(self.constants, multipliers))
        return net.view(self.n_members, -1)

    def _by_side(self, multipliers: Tensor) -> Tensor:
        """(M, S * J) -> (S, M * J), contiguous."""
        n_sides = len(self.constants.sign)
        by_member = multipliers.view(self.n_members, n_sides, -1)
        return by_member.transpose(0, 1).reshape(n_sides, -1)


def member_constraints(
    members: Sequence[Member],
    groups: Sequence[Groups],
    exact: dict[Any, tuple[Constraints, Groups]],
    *,
    with_slack: bool = True,
) -> list[Constraints | None]:
    """What each member's measure asks of the cells of its groups; None without a measure.

    Often members differ in their slack alone: `exact` notes what was found before, without it, and
    for which groups.
    """
    found: list[Constraints | None] = []
    for member, own in zip(members, groups, strict=True):
        measure, desirable = member.fairness_measure, member.y_desirable
        if measure is None:
            found.append(None)
            continue
        key = (id(measure), id(own), repr(desirable), member.cost_matrix is None)
        if key not in exact:
            constraints = constraints_of(measure, own, y_desirable=desirable)
            if member.cost_matrix is not None:
                constraints = on_outcomes(constraints, own)
            exact[key] = constraints, own
        constraints = exact[key][0]
        found.append(constraints.slacken(member.epsilon) if with_slack else constraints)
    return found


def _counted_outcomes(
    members: Sequence[Member], constraints: Sequence[Constraints | None], n_labels: int
) -> int:
    """How many outcomes the cells of a stack have: one number for all members.

    Raises:
        ValueError: if the members' losses are of both kinds.
    """
    kinds = {
        n_labels if part is None else part.n_outcomes
        for member, part in zip(members, constraints, strict=True)
        if part is not None or member.cost_matrix is not None
    }
    if len(kinds) > 1:
        raise ValueError(
            "fairness_measure: measures of what is predicted, and costs, have another loss than "
            "measures of errors; train them in a stack of their own."
        )
    return kinds.pop() if kinds else 1


def _member_constants(
    member: Member,
    constraints: Constraints | None,
    groups: Groups,
    by_label: bool,
    n_levels: int,
    n_outcomes: int,
) -> dual.Constants:
    """One member's problem, filled up with levels that are always 0 to as many as others have."""
    n_cells = groups.mass.size if by_label else groups.n_groups
    if constraints is None:
        zeros = Coefficients.from_dense(np.zeros((n_levels, n_outcomes * n_cells)))
        constraints = Constraints(np.zeros(n_levels), zeros, by_label, n_outcomes=n_outcomes)
        return dual.make_constants(
            constraints, groups, fairness_rate=0.0, cost_matrix=member.cost_matrix
        )
    own, defined = constraints.coefficients, constraints.is_defined
    _check_cells(constraints.n_cells, groups, constraints.by_label)
    n_more = n_levels - len(defined)
    if n_more == 0 and defined.all():
        return _constants_of(member, constraints, groups, by_label)
    own = own.only(defined)
    # A measure that does not look at the label reads its groups off the first label's cells.
    own = replace(
        own,
        block=np.append(own.block, np.full(n_more, own.n_blocks)).astype(np.int64),
        share=np.append(np.where(defined, own.share, 0.0), np.zeros(n_more)),
    )
    filled = Constraints(
        np.append(np.where(defined, constraints.c0, 0.0), np.zeros(n_more)),
        own,
        constraints.by_label,
        lower=np.append(np.where(defined, constraints.lower, 0.0), np.zeros(n_more)),
        upper=np.append(np.where(defined, constraints.upper, 0.0), np.zeros(n_more)),
        n_outcomes=constraints.n_outcomes,
    )
    return _constants_of(member, filled, groups, by_label)


def _constants_of(
    member: Member, constraints: Constraints, groups: Groups, by_label: bool
) -> dual.Constants:
    constants = dual.make_constants(
        constraints,
        groups,
        fairness_rate=member.fairness_rate,
        proportional_rate=member.proportional_rate,
        error_memory=member.error_memory,
        negative_weights=member.negative_weights,
        cost_matrix=member.cost_matrix,
    )
    constants = dual.with_steady_rates(constants, member.steady_share)
    if by_label and not constraints.by_label:
        return _for_every_label(constants, len(groups.labels))
    return constants


def _for_every_label(constants: dual.Constants, n_labels: int) -> dual.Constants:
    """Constants of groups, for (label, group) cells that each stand for their whole group.

    Levels are read off the first label's cells alone, but all labels' cells get the weights: every
    entry is repeated for each label, and for reading it counts an equal part.
    """
    n_groups, n_entries = len(constants.per_share), len(constants.row)
    return replace(
        constants,
        row=np.tile(constants.row, n_labels),
        cell=np.tile(constants.cell, n_labels)
        + np.repeat(np.arange(n_labels) * n_groups, n_entries),
        value=np.tile(constants.value, n_labels) / n_labels,
        per_share=np.tile(constants.per_share, n_labels) * n_labels,
        n_label_rows=n_labels,
    )


def _check_cells(n_cells: int, groups: Groups, by_label: bool) -> None:
    expected = groups.mass.size if by_label else groups.n_groups
    if n_cells != expected:
        raise ValueError(f"C: expected one column per cell ({expected}), got {n_cells}.")


@dataclass(frozen=True, eq=False, slots=True)
class CellBatch:
    """The cells of one batch of every stream.

    Attributes:
        n_cells: K.
        weight: (S, B) sample weights, 0 for entries that are no rows; None if all are 1.
        label: (S, B) label indices.
        membership: (S, B, K), or None if there are too many cells.
        cell: (S, B) cell numbers, needed without a membership matrix only.
    """

    n_cells: int
    label: Tensor
    weight: Tensor | None
    membership: Tensor | None
    cell: Tensor | None

    @property
    def total(self) -> Tensor | int:
        """The sum of the weights, (S, 1, 1), or the number of rows if all weigh 1."""
        if self.weight is None:
            return self.label.shape[1]
        return self.weight.sum(1)[:, None, None]

    def count(self, wrong: Tensor) -> Tensor:
        """(S, T, 2, K) rows of each member predicted rightly and wrongly.

        Args:
            wrong: (S, T, B) 1 where a row is predicted wrongly, else 0.
        """
        if self.membership is None:
            return self._count_one_by_one(wrong, 2)
        # Both transposed: a product with few columns is slow, one with few rows is not.
        n_wrong = torch.bmm(self.membership.transpose(1, 2), wrong.transpose(1, 2)).transpose(1, 2)
        n_right = self.membership.sum(1)[:, None] - n_wrong
        return torch.stack([n_right, n_wrong], dim=2)

    def count_labels(self, predicted: Tensor, n_labels: int) -> Tensor:
        """(S, T, 1 + L, K) rows of each member by predicted label; none in the first row.

        Args:
            predicted: (S, T, B) indices of labels.
            n_labels: L.
        """
        if self.membership is None:
            return self._count_one_by_one(predicted + 1, 1 + n_labels)
        streams, members, n = predicted.shape
        chosen = functional.one_hot(predicted, n_labels).to(self.membership.dtype)
        chosen = chosen.permute(0, 2, 1, 3).reshape(streams, n, members * n_labels)
        counts = torch.bmm(self.membership.transpose(1, 2), chosen).transpose(1, 2)
        counts = counts.reshape(streams, members, n_labels, self.n_cells)
        return functional.pad(counts, (0, 0, 1, 0))

    def spread(self, cell_weights: Tensor) -> Tensor:
        """(S, T, B) each row's sample weight times the weight of its cell, of (S, T, K)."""
        if self.membership is not None:
            return torch.bmm(cell_weights, self.membership.transpose(1, 2))
        assert self.cell is not None  # noqa: S101 - always there without a membership matrix
        index = self.cell[:, None].expand(-1, cell_weights.shape[1], -1)
        found = cell_weights.gather(2, index)
        return found if self.weight is None else found * self.weight[:, None]

    def _count_one_by_one(self, outcome: Tensor, n_outcomes: int) -> Tensor:
        """(S, T, n_outcomes, K) rows of each outcome, a number from 0, (S, T, B)."""
        assert self.cell is not None  # noqa: S101 - always there without a membership matrix
        streams, members, _ = outcome.shape
        n_slots = n_outcomes * self.n_cells
        first = torch.arange(streams * members).view(streams, members, 1) * n_slots
        place = first + self.cell[:, None] + self.n_cells * outcome.long()
        weight = self.weight
        if weight is None:
            dtype = outcome.dtype if outcome.is_floating_point() else None
            weight = torch.ones(self.cell.shape, dtype=dtype)
        counts = weight.new_zeros(streams * members * n_slots)
        counts.index_add_(0, place.view(-1), weight[:, None].expand(outcome.shape).reshape(-1))
        return counts.view(streams, members, n_outcomes, self.n_cells)


class StackCells:
    """The cells of a table's rows.

    Args:
        table: labels and groups of all rows.
        by_label: whether cells are (label, group) pairs or groups.
        max_dense: with more cells than these there is no membership matrix.
    """

    def __init__(self, table: TrainingTable, *, by_label: bool, max_dense: int = MAX_DENSE) -> None:
        n_groups = table.groups.n_groups
        self.n_label_rows = table.n_labels if by_label else 1
        self.n_cells = self.n_label_rows * n_groups
        self.code = table.label * n_groups + table.group if by_label else table.group
        self.weight, self.label, self.dtype = table.weight, table.label, table.dtype
        self.is_dense = self.n_cells <= max_dense

    @cached_property
    def membership_and_label(self) -> Tensor:
        """(n, K + 1) the weight of each row in its cell; labels beside, so one look-up gives both.

        Made when first needed: compiled epochs do not.
        """
        membership = self.code[:, None] == torch.arange(self.n_cells)
        ones = 1.0 if self.weight is None else self.weight[:, None]
        label = self.label[:, None].to(self.dtype)
        return torch.cat([membership.to(self.dtype) * ones, label], dim=1)

    def take(self, index: Tensor, valid: Tensor | None) -> CellBatch:
        """The cells of some rows, index (S, B); entries that are not valid weigh nothing."""
        flat = index.reshape(-1)
        weight = None
        if self.weight is not None:
            weight = self.weight.index_select(0, flat).view(index.shape)
        if valid is not None:
            weight = valid.to(self.dtype) if weight is None else weight * valid
        if not self.is_dense:
            cell = self.code.index_select(0, flat).view(index.shape)
            label = self.label.index_select(0, flat).view(index.shape)
            return CellBatch(self.n_cells, label, weight, None, cell)
        both = self.membership_and_label.index_select(0, flat).view(*index.shape, -1)
        membership, label = both[:, :, :-1], both[:, :, -1]
        if valid is not None:
            membership = membership * valid[:, :, None]
        return CellBatch(self.n_cells, label, weight, membership, None)
