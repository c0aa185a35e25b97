"""The constraints of all members of a stack as arrays with a leading member axis.

Members may have different measures, so they may differ in the number of constraints (missing ones
are zero rows, whose level is always 0) and in what their cells are. If some measures look at the
label and others do not, all members get cells by (label, group); for a measure that does not look
at the label, each such cell then stands for its whole group: it holds the group's rows of every
label, and its weight is the group's.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad import dual
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups
    from fairgrad.training.table import Member


class LevelConstants(NamedTuple):
    """Constants of the levels ``F = c0 + C e`` of M members.

    Attributes:
        c0: (M, J).
        C: (M, J, K).
        defined: (M, J) whether each level exists for the member and is defined on its rows.
    """

    c0: Floats
    C: Floats
    defined: NDArray[np.bool_]


class DualConstants(NamedTuple):
    """Constants of the method for M members; see `fairgrad.dual.Sides`."""

    sides: dual.Sides
    influence: Floats


def member_constraints(
    members: Sequence[Member], groups: Sequence[Groups]
) -> list[Constraints | None]:
    """What each member's measure asks of the cells of its groups; None without a measure."""
    return [
        None
        if member.fairness_measure is None
        else constraints_of(
            member.fairness_measure, own, epsilon=member.epsilon, y_desirable=member.y_desirable
        )
        for member, own in zip(members, groups, strict=True)
    ]


def needs_labels(constraints: Sequence[Constraints | None]) -> bool:
    """Whether any member's cells are by (label, group)."""
    return any(part is not None and part.by_label for part in constraints)


def level_constants(
    constraints: Sequence[Constraints | None], n_cells: int, *, by_label: bool
) -> LevelConstants:
    """Stacks the constants of the levels, zero rows where a member has fewer."""
    n_rows = max([1, *(len(part.c0) for part in constraints if part is not None)])
    c0 = np.zeros((len(constraints), n_rows))
    C = np.zeros((len(constraints), n_rows, n_cells))
    defined = np.zeros(c0.shape, dtype=bool)
    for m, part in enumerate(constraints):
        if part is None:
            continue
        rows, columns = part.C.shape
        own = part.is_defined
        defined[m, :rows] = own
        c0[m, :rows] = np.where(own, part.c0, 0.0)
        if not by_label or part.by_label:
            _check_columns(columns, n_cells)
        # A measure that does not look at the label reads its groups off the first label's cells.
        C[m, :rows, :columns] = np.where(own[:, None], part.C, 0.0)
    return LevelConstants(c0, C, defined)


def dual_constants(
    constraints: Sequence[Constraints | None],
    groups: Sequence[Groups],
    n_cells: int,
    *,
    by_label: bool,
) -> DualConstants:
    """Stacks the constants of the method; undefined constraints are switched off."""
    levels = level_constants(constraints, n_cells, by_label=by_label)
    lower, upper = np.zeros(levels.c0.shape), np.zeros(levels.c0.shape)
    shares = np.zeros((len(constraints), n_cells))
    weighting = levels.C.copy()
    for m, (part, own) in enumerate(zip(constraints, groups, strict=True)):
        if part is None:
            continue
        kept = part.is_defined
        lower[m, : len(kept)] = np.where(kept, part.lower, 0.0)
        upper[m, : len(kept)] = np.where(kept, part.upper, 0.0)
        mass = own.cell_mass(part.by_label)
        copies = n_cells // len(mass)
        shares[m] = np.tile(mass / mass.sum(), copies)
        weighting[m] = np.tile(levels.C[m, :, : len(mass)], copies)
    sides = dual.sides(levels.c0, levels.C, lower, upper)
    A = dual.sides(levels.c0, weighting, lower, upper).A
    return DualConstants(sides, dual.influence(A, shares))


def mixing(constraints: Sequence[Constraints | None], n_labels: int, n_groups: int) -> Floats:
    """(M, K, K) makes of the counts of (label, group) cells what each member's cells hold."""
    own = np.eye(n_labels * n_groups)
    whole_group = np.tile(np.eye(n_groups), (n_labels, n_labels))
    return np.stack(
        [whole_group if part is not None and not part.by_label else own for part in constraints]
    )


def warn_of_undefined(constraints: Sequence[Constraints | None]) -> None:
    """One warning for all members that names the constraints left out for lack of rows.

    Raises:
        ValueError: if a member has a measure but no constraint that is defined.
    """
    missing: dict[str, None] = {}
    for part in constraints:
        if part is None or part.is_defined.all():
            continue
        names = [name for name, ok in zip(part.names, part.is_defined, strict=True) if not ok]
        if len(names) == len(part.names):
            raise ValueError(
                f"fairness_measure: no constraint is defined on these data; {names} have no rows."
            )
        missing.update(dict.fromkeys(names))
    if missing:
        warnings.warn(
            f"Constraints left out because they have no rows: {'; '.join(missing)}.", stacklevel=2
        )


def _check_columns(columns: int, n_cells: int) -> None:
    if columns != n_cells:
        raise ValueError(f"C: expected one column per cell ({n_cells}), got {columns}.")
