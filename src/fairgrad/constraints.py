"""Fairness constraints as data: ``lower <= c0 + C e <= upper``, e the error rates of the cells.

Every definition compares the rate of each group with the mean of that rate over a *block* of groups
(all groups, or those of one label). So C is never needed as a matrix:

    F_j = c0_j + r_j - sum over the block of j of share_i r_i,      r = R e,

where R has few entries in each row. `Coefficients` hold R, the blocks and the shares, so that costs
grow with the number of cells, not with its square.

Constraints may also be on the *outcomes* of the cells, the rates at which each label is predicted:
``F = c0 + C q``, ``q[k, l] = P(h = l | cell k)``. Errors are the special case
``e_k = 1 - q[k, y_k]``. With two labels, every constraint can be written with errors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.checks import warn
from fairgrad.groups import count_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, GroupedRows, Groups, Ints


SAME_NAME = ("c0", "by_label", "names", "slack", "n_outcomes", "single_group")
"""The arguments of `Constraints` that become attributes of the same name."""

FEW_LEVELS = 4
"""Up to so many levels, one standard error is the slack that sampling error explains."""

MOST_NAMES = 20
"""How many constraints a warning names at most."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The matrix ``C = R - (mean of R over each block)`` of J levels and K cells, stored sparsely.

    Attributes:
        row: (E,) the level that each entry of R belongs to.
        cell: (E,) the cell it multiplies.
        value: (E,) its coefficient.
        block: (J,) the block of each level.
        share: (J,) the weight of each level's rate in the mean of its block.
        n_cells: K.
    """

    row: Ints
    cell: Ints
    value: Floats
    block: Ints
    share: Floats
    n_cells: int

    @classmethod
    def from_dense(cls, C: Floats) -> Coefficients:
        """Converts any matrix: its nonzero entries, without means."""
        row, cell = np.nonzero(C)
        n = len(C)
        return cls(row, cell, C[row, cell], np.zeros(n, dtype=np.int64), np.zeros(n), C.shape[1])

    @property
    def n_blocks(self) -> int:
        """How many means there are."""
        return int(self.block.max()) + 1

    def dense(self) -> Floats:
        """(J, K) the matrix itself."""
        dense: Floats = times(self, np.eye(self.n_cells)).T
        return dense

    def only(self, rows: NDArray[np.bool_]) -> Coefficients:
        """The same levels, but with all coefficients 0 except those of `rows`, (J,)."""
        kept = rows[self.row]
        return replace(
            self,
            row=self.row[kept],
            cell=self.cell[kept],
            value=self.value[kept],
            # Levels of a block have its mean as coefficients, so the others leave the block.
            block=np.where(rows, self.block, self.n_blocks),
            share=np.where(rows, self.share, 0.0),
        )

    def select(self, kept: NDArray[Any]) -> Coefficients:
        """The levels at these positions; means are still taken over all levels of the block."""
        place = np.full(len(self.block), -1)
        place[kept] = np.arange(len(place[kept]))
        if self.share[place < 0].any():  # the mean also needs levels that are not selected
            return Coefficients.from_dense(self.dense()[kept])
        row = place[self.row]
        selected = (row[row >= 0], self.cell[row >= 0], self.value[row >= 0])
        return Coefficients(*selected, self.block[kept], self.share[kept], self.n_cells)

    def spread(self, cell: Ints, share: Floats, coarse: Ints, n_cells: int) -> Coefficients:
        """The same levels for finer cells; a coarse cell has the error ``sum share e_fine``."""
        order = np.argsort(coarse, kind="stable")
        size = np.bincount(coarse, minlength=self.n_cells)
        first = np.cumsum(size) - size
        copies = size[self.cell]  # one entry per fine cell of the coarse cell
        within = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
        fine = order[np.repeat(first[self.cell], copies) + within]
        return replace(
            self,
            row=np.repeat(self.row, copies),
            cell=cell[fine],
            value=np.repeat(self.value, copies) * share[fine],
            n_cells=n_cells,
        )

    @staticmethod
    def concatenate(matrices: Sequence[Any], *, apart: bool = False) -> Coefficients:
        """Joins the levels of several problems on the same cells or, if `apart`, different cells.

        The matrices have the attributes of `Coefficients`.
        """
        levels = np.cumsum([0, *(len(matrix.block) for matrix in matrices)])
        blocks = np.cumsum([0, *(matrix.n_blocks for matrix in matrices)])
        cells = np.cumsum([0, *(matrix.n_cells if apart else 0 for matrix in matrices)])
        return Coefficients(
            np.concatenate([matrix.row + n for matrix, n in zip(matrices, levels, strict=False)]),
            np.concatenate([matrix.cell + n for matrix, n in zip(matrices, cells, strict=False)]),
            np.concatenate([matrix.value for matrix in matrices]),
            np.concatenate([matrix.block + n for matrix, n in zip(matrices, blocks, strict=False)]),
            np.concatenate([matrix.share for matrix in matrices]),
            int(cells[-1]) if apart else matrices[0].n_cells,
        )


def times(matrix: Any, errors: Any) -> Any:
    """``C e``: (..., J), of errors (..., K).

    `matrix` has the attributes of `Coefficients`, either all as arrays or all as tensors.
    """
    rate = count_rows(matrix.row, matrix.block.shape[0], matrix.value * take(errors, matrix.cell))
    mean = count_rows(matrix.block, matrix.n_blocks, matrix.share * rate)
    return rate - take(mean, matrix.block)


def times_transposed(matrix: Any, value: Any, net: Any) -> Any:
    """``C' net``: (..., K), of multipliers (..., J).

    `value` are the coefficients; callers may divide them by the shares of the cells first.
    """
    sums = take(count_rows(matrix.block, matrix.n_blocks, net), matrix.block)
    net = net - matrix.share * sums
    return count_rows(matrix.cell, matrix.n_cells, value * take(net, matrix.row))


def take(values: Any, index: Any) -> Any:
    """(..., E) the values at these positions of the last axis."""
    if isinstance(values, np.ndarray):
        return values[..., index]
    return values.index_select(-1, index)


class Constraints:
    """J linear constraints on the error rates of K cells.

    The level of fairness of constraint j is ``F_j = c0_j + sum_k C_jk e_k``: positive where its
    group is advantaged, negative where it is disadvantaged. A constraint whose c0 is NaN is not
    defined on these data.

    Args:
        c0: (J,) constants.
        C: (J, K) coefficients, as a matrix or as `Coefficients`.
        by_label: whether cells are (label, group) pairs or groups.
        names: (J,) the name of each constraint.
        lower: (J,) lower bounds of the definition, ``-inf`` for none.
        upper: (J,) upper bounds of the definition, ``inf`` for none.
        slack: (J,) by how much levels may exceed these bounds.
        n_outcomes: 1 for constraints on error rates. The number of labels for constraints on
            outcomes: C then has a column for every predicted label and (label, group) cell,
            ``predicted label * K + cell``.
        single_group: names of strata in which fewer than two groups have rows. Nothing can be
            compared there; their constraints are not defined.

    Attributes:
        lower: (J,) lower bounds, slack included.
        upper: (J,) upper bounds, slack included.
        definition: (J,) and (J,) lower and upper bounds without slack.
        is_defined: (J,) whether each constraint is defined on these data.
        n_cells: K.

    Raises:
        ValueError: if the shapes do not fit, or a lower bound is above its upper bound.

    Example:
        >>> gap = Constraints(c0=[0.0], C=[[1.0, -1.0]], by_label=False, names=["gap of errors"])
        >>> gap.slacken(0.02).upper
        array([0.02])
        >>> gap.C
        array([[ 1., -1.]])
    """

    def __init__(
        self,
        c0: Any,
        C: Any,
        by_label: bool,
        names: Sequence[str] = (),
        lower: Any = 0.0,
        upper: Any = 0.0,
        slack: Any = 0.0,
        n_outcomes: int = 1,
        single_group: Sequence[str] = (),
    ) -> None:
        if not isinstance(C, Coefficients):
            C = _numbers(C, "C")
            if C.ndim != 2 or C.size == 0 or not np.isfinite(C).all():
                raise ValueError(
                    f"C: expected a matrix (constraints, cells) of finite numbers, got {C!r}."
                )
            C = Coefficients.from_dense(C)
        n = len(C.block)
        self.coefficients: Coefficients = C
        self.by_label, self.n_outcomes = by_label, n_outcomes
        self.n_cells = C.n_cells // n_outcomes
        if C.n_cells % n_outcomes or (n_outcomes > 1 and not by_label):
            raise ValueError(
                f"n_outcomes: expected a column for each of {n_outcomes} predicted labels and each "
                f"(label, group) cell, by_label=True; got {C.n_cells} columns, {by_label=}."
            )
        self.single_group = tuple(single_group)
        self.names = tuple(names) or tuple(f"constraint {j}" for j in range(n))
        if len(self.names) != n:
            raise ValueError(f"names: expected one per constraint ({n}), got {len(self.names)}.")
        self.c0, self.slack = _numbers(c0, "c0", n), _numbers(slack, "slack", n)
        self.is_defined: NDArray[np.bool_] = ~np.isnan(self.c0)
        low, high = _numbers(lower, "lower", n), _numbers(upper, "upper", n)
        is_reversed = ~(low <= high)
        if is_reversed.any():
            j = int(is_reversed.argmax())
            raise ValueError(
                f"lower: expected at most upper, got {low[j]} > {high[j]} for {self.names[j]!r}."
            )
        self.definition = low, high
        self.lower: Floats = low - self.slack
        self.upper: Floats = high + self.slack

    def replaced(self, **changed: Any) -> Constraints:
        """A copy with some arguments changed."""
        lower, upper = self.definition
        kept = {name: getattr(self, name) for name in SAME_NAME}
        kept |= {"C": self.coefficients, "lower": lower, "upper": upper}
        return Constraints(**{**kept, **changed})

    def __getstate__(self) -> dict[str, Any]:
        """Plain arrays, so that files contain no other type of this library."""
        lower, upper = self.definition
        kept = {name: getattr(self, name) for name in SAME_NAME}
        return {**kept, "lower": lower, "upper": upper, "parts": dict(vars(self.coefficients))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arguments = dict(state)
        Constraints.__init__(self, C=Coefficients(**arguments.pop("parts")), **arguments)

    def __repr__(self) -> str:
        matrix = self.coefficients
        of = "cells" if self.n_outcomes == 1 else f"cells x {self.n_outcomes} predicted labels"
        arrays = (self.c0, *self.definition, self.slack, matrix.cell, matrix.value, matrix.share)
        digest = hashlib.blake2b(b"".join(map(np.ndarray.tobytes, arrays)), digest_size=6)
        return f"<Constraints: {len(self.names)} on {self.n_cells} {of}, {digest.hexdigest()}>"

    @cached_property
    def C(self) -> Floats:  # noqa: N802 - the paper's name
        """(J, K) the coefficients as a dense matrix, for inspection."""
        return self.coefficients.dense()

    def weight_names(self, groups: Groups) -> tuple[str, ...]:
        """Names of the weights: (K,) of the cells, or (L * K,) of predicted labels in cells."""
        names = groups.cell_names(self.by_label)
        if self.n_outcomes == 1:
            return names
        return tuple(f"{label} predicted, {name}" for label in groups.labels for name in names)

    def levels(self, errors: Floats) -> Floats:
        """``F = c0 + C e``: (..., J); the error of an empty cell, NaN, is never used.

        For constraints on outcomes, `errors` are the rates of the predicted labels, (..., L * K).
        """
        levels: Floats = self.c0 + times(self.coefficients, np.nan_to_num(errors))
        return levels

    def slacken(self, epsilon: Any) -> Constraints:
        """Moves both bounds outwards by epsilon: from exact fairness to epsilon-fairness.

        Constraints that have slack already keep it, unless epsilon is infinite.

        Raises:
            TypeError: if epsilon is not a number.
            ValueError: if epsilon is negative, or above 1 and not infinite.
        """
        if type(epsilon) is float and epsilon == 0:
            return self
        slack = _numbers(epsilon, "epsilon", len(self.c0))
        wrong = slack[~((slack >= 0) & ((slack <= 1) | np.isposinf(slack)))]
        if len(wrong):  # rates differ by 1 at most, so more would be no bound
            raise ValueError(
                f"epsilon: expected at least 0 and at most 1, or float('inf') for no constraint; "
                f"got {wrong[0]:g}."
            )
        return self.replaced(
            slack=np.where((self.slack > 0) & np.isfinite(slack), self.slack, slack)
        )

    def slacken_for(self, rows: GroupedRows, epsilon: Any) -> Constraints:
        """Slackens by epsilon, or by what sampling error explains of a level where that is larger.

        The levels of small groups are mostly noise, and a model that fits noise is less accurate
        and less fair on new rows. With up to four levels sampling error explains one standard
        error. With more levels, more of them are further away by chance, so it explains a larger
        multiple: as many levels are expected beyond it as of four beyond one standard error.

        No model is needed: the variance of a cell's error rate is at most ``1 / 4n`` for n rows.
        With sample weights, n is ``(sum of w)^2 / sum of w^2``. Epsilon 0 stays exact fairness.

        Args:
            rows: the rows whose levels are constrained.
            epsilon: slack of all constraints, or one per constraint.

        Raises:
            TypeError: if epsilon is not a number.
            ValueError: if epsilon is negative, or above 1 and not infinite.

        Example:
            >>> from fairgrad.groups import group_rows
            >>> from fairgrad.measures import constraints_of
            >>> rows = group_rows([0, 1] * 5000, ["a"] * 9900 + ["b"] * 100)
            >>> parity = constraints_of("accuracy_parity", rows.groups)
            >>> parity.slacken_for(rows, 0.02).upper.round(3)
            array([0.02, 0.05])
        """
        slack = _numbers(epsilon, "epsilon", len(self.c0))
        cell = rows.cell(self.by_label)
        weight = np.ones(len(cell)) if rows.weight is None else rows.weight / rows.weight.max()
        total, squares = (count_rows(cell, self.n_cells, weight**power) for power in (1, 2))
        largest = 0.25 * np.divide(squares, total**2, out=np.zeros(len(total)), where=total > 0)
        n_levels = max(FEW_LEVELS, len(np.unique(self.coefficients.row)))
        multiple = -NormalDist().inv_cdf(NormalDist().cdf(-1.0) * FEW_LEVELS / n_levels)
        error = np.minimum(multiple * self.standard_errors(largest), 1.0)
        return self.slacken(np.where(slack > 0, np.maximum(slack, error), slack))

    def standard_errors(self, variance: Floats) -> Floats:
        """(J,) standard errors of the levels, from the variances of the cells' rates, (K,).

        With ``F_j = r_j - sum over its block of share_i r_i``,

            var F_j = (1 - 2 share_j) var r_j + sum over the block of share_i^2 var r_i,

        where a cell adds ``R_jk^2`` times its variance to ``var r_j``.
        """
        matrix = self.coefficients
        each = np.bincount(
            matrix.row,
            matrix.value**2 * variance[matrix.cell % self.n_cells],
            minlength=len(matrix.block),
        )
        pooled = np.bincount(matrix.block, matrix.share**2 * each, minlength=matrix.n_blocks)
        squares = (1 - 2 * matrix.share) * each + pooled[matrix.block]
        errors: Floats = np.sqrt(np.maximum(squares, 0.0))
        return errors

    def gaps(self, levels: Floats) -> Floats:
        """(..., J) how unfair each level is by the definition, ignoring the slack."""
        return gaps(levels, *self.definition)

    def select(self, rows: NDArray[Any]) -> Constraints:
        """The constraints at these positions."""
        lower, upper = self.definition
        return self.replaced(
            c0=self.c0[rows],
            C=self.coefficients.select(rows),
            names=tuple(np.asarray(self.names, dtype=object)[rows]),
            lower=lower[rows],
            upper=upper[rows],
            slack=self.slack[rows],
        )

    def drop_undefined(self, *, warns: bool = True) -> Constraints:
        """Removes the constraints whose group has no rows, with a warning.

        Args:
            warns: False if the caller warns of several sets of constraints at once.

        Raises:
            ValueError: if none remains and `warns` is true.
        """
        if self.is_defined.all():
            return self
        if warns:
            warn_of_undefined([self])
        return self.select(self.is_defined)


def gaps(levels: Floats, lower: Floats, upper: Floats) -> Floats:
    """(..., J) how unfair each level is, by the bounds of its definition.

    This is ``|F|`` or, if there is only one bound, by how much the level violates it.
    """
    beyond = np.maximum(np.maximum(lower - levels, levels - upper), 0.0)
    distances: Floats = np.where(np.isinf(lower) | np.isinf(upper), beyond, np.abs(levels))
    return distances


def warn_of_undefined(problems: Sequence[Constraints]) -> None:
    """Warns once of all constraints that are left out because their group has no rows.

    Raises:
        ValueError: if all constraints of a problem are undefined.
    """
    missing: dict[str, None] = {}
    single_group: dict[str, None] = {}
    for problem in problems:
        names = [name for name, ok in zip(problem.names, problem.is_defined, strict=True) if not ok]
        if len(names) == len(problem.names):
            raise ValueError(
                f"fairness_measure: no constraint is defined on these data; {names} have no rows"
                f"{' of two groups to compare' if problem.single_group else ''}."
            )
        single_group.update(dict.fromkeys(problem.single_group))
        missing.update(dict.fromkeys(n for n in names if not n.endswith(problem.single_group)))
    if missing:
        warn(f"Constraints left out because they have no rows: {_listed(missing)}.")
    if single_group:
        n = len(single_group)
        warn(
            f"{n} {'stratum' if n == 1 else 'strata'} left out because fewer than two groups have "
            f"rows there: {_listed(single_group)}."
        )


def _listed(names: dict[str, None]) -> str:
    more = f"; and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return "; ".join(list(names)[:MOST_NAMES]) + more


def lift(constraints: Constraints, coarse: Groups, fine: Groups, member: Ints) -> Constraints:
    """Rewrites constraints for the cells of finer groups.

    A coarse cell's error is the mean of its fine cells' errors, weighted by their rows:
    ``e_coarse = sum_fine (n_fine / n_coarse) e_fine``. Fine groups that belong to no coarse group
    (-1 in `member`, because their attribute is unknown) get zeros. A constraint on a coarse cell
    without rows is not defined: its c0 becomes NaN.
    """
    by_label, n_outcomes = constraints.by_label, constraints.n_outcomes
    coarse_mass, fine_mass = coarse.cell_mass(by_label), fine.cell_mass(by_label)
    if constraints.n_cells != len(coarse_mass) or n_outcomes not in {1, len(fine.labels)}:
        raise ValueError(
            f"C: expected one column per cell ({len(coarse_mass)}: "
            f"{list(coarse.cell_names(by_label))}), got {constraints.n_cells}"
            f"{f' of {n_outcomes} predicted labels' if n_outcomes > 1 else ''}."
        )
    matrix = constraints.coefficients
    undefined = np.isnan(constraints.c0)
    is_empty = (coarse_mass[matrix.cell % len(coarse_mass)] == 0) & (matrix.value != 0)
    undefined[matrix.row[is_empty | np.isnan(matrix.value)]] = True
    if matrix.share[undefined].any():  # then the mean of the block is not defined either
        in_block = np.zeros(matrix.n_blocks, dtype=bool)
        in_block[matrix.block[undefined & (matrix.share != 0)]] = True
        undefined |= in_block[matrix.block]
    labels = np.arange(len(fine.labels) if by_label else 1)
    parent = np.where(member < 0, -1, labels[:, None] * coarse.n_groups + member).ravel()
    cell = np.flatnonzero((parent >= 0) & (fine_mass > 0))
    share = fine_mass[cell] / coarse_mass[parent[cell]]
    outcome = np.arange(n_outcomes)[:, None]  # each predicted label has separate columns
    spread = matrix.only(~undefined).spread(
        (outcome * len(fine_mass) + cell).ravel(),
        np.tile(share, n_outcomes),
        (outcome * len(coarse_mass) + parent[cell]).ravel(),
        n_outcomes * len(fine_mass),
    )
    return constraints.replaced(C=spread, c0=np.where(undefined, np.nan, constraints.c0))


def split_by_label(constraints: Constraints, groups: Groups) -> Constraints:
    """Rewrites constraints on the errors of groups for the errors of (label, group) cells."""
    if constraints.by_label:
        return constraints
    total = groups.mass.sum(axis=0)
    share = (groups.mass / np.where(total > 0, total, 1.0)).ravel()
    cell = np.arange(groups.mass.size)
    spread = constraints.coefficients.spread(cell, share, cell % groups.n_groups, len(cell))
    return constraints.replaced(C=spread, by_label=True)


def on_outcomes(constraints: Constraints, groups: Groups) -> Constraints:
    """Rewrites constraints on errors as constraints on outcomes, by ``e_k = 1 - q[k, y_k]``.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
        >>> errors = np.array([0.1, 0.2, 0.3, 0.4])  # of the cells (0, 0), (0, 1), (1, 0), (1, 1)
        >>> outcomes = np.array([0.9, 0.8, 0.3, 0.4, 0.1, 0.2, 0.7, 0.6])  # of 0, then of 1
        >>> on_outcomes(accuracy_parity(groups), groups).levels(outcomes).round(4)
        array([ 0.05, -0.05])
        >>> split_by_label(accuracy_parity(groups), groups).levels(errors).round(4)
        array([ 0.05, -0.05])
    """
    if constraints.n_outcomes > 1:
        return constraints
    constraints = split_by_label(constraints, groups)
    matrix, n_labels = constraints.coefficients, len(groups.labels)
    C = replace(
        matrix,
        cell=matrix.cell // groups.n_groups * matrix.n_cells + matrix.cell,  # of the true label
        value=-matrix.value,
        n_cells=n_labels * matrix.n_cells,
    )
    c0 = constraints.c0 + times(matrix, np.ones(matrix.n_cells))
    return constraints.replaced(C=C, c0=c0, n_outcomes=n_labels)


def stack(problems: Sequence[Constraints], groups: Groups) -> Constraints:
    """Joins several sets of constraints on the cells of the same groups.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity, equalized_odds
        >>> groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
        >>> stack([accuracy_parity(groups), equalized_odds(groups)], groups).C.shape
        (6, 4)
    """
    if any(each.n_outcomes > 1 for each in problems):
        problems = [on_outcomes(each, groups) for each in problems]
    elif any(each.by_label for each in problems):
        problems = [split_by_label(each, groups) for each in problems]
    lower, upper = map(np.concatenate, zip(*(each.definition for each in problems), strict=True))
    return problems[0].replaced(
        c0=np.concatenate([each.c0 for each in problems]),
        C=Coefficients.concatenate([each.coefficients for each in problems]),
        names=tuple(name for each in problems for name in each.names),
        single_group=tuple(dict.fromkeys(name for each in problems for name in each.single_group)),
        lower=lower,
        upper=upper,
        slack=np.concatenate([each.slack for each in problems]),
    )


def _numbers(value: Any, argument: str, length: int | None = None) -> Floats:
    """Numbers as an array: of any shape, or, with a length, one per constraint."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or value is None or isinstance(value, str):  # NumPy takes None and "1"
        raise TypeError(f"{argument}: expected numbers, got {value!r}.")
    if length is None:
        return numbers
    if numbers.shape not in {(), (length,)}:
        raise ValueError(
            f"{argument}: expected a number or one per constraint ({length}), "
            f"got shape {numbers.shape}."
        )
    return np.full(length, numbers)
