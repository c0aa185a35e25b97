"""Fairness constraints as data: ``lower <= c0 + C e <= upper``, e the error rates of the cells."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Groups, Ints


@dataclass(frozen=True, eq=False)
class Constraints:
    """J linear constraints on the error rates of K cells.

    The level of fairness of constraint j is ``F_j = c0_j + sum_k C_jk e_k``: positive where its
    group is advantaged, negative where it is disadvantaged. A row of NaN is a constraint that is
    not defined on these data.

    Attributes:
        c0: (J,) constants.
        C: (J, K) coefficients.
        by_label: whether cells are (label, group) pairs or groups.
        names: (J,) what each constraint speaks of.
        lower: (J,) lower bounds, ``-inf`` for none.
        upper: (J,) upper bounds, ``inf`` for none.
        slack: (J,) by how much the bounds lie outside those of the definition.

    Raises:
        ValueError: if the shapes do not fit, or a lower bound is above its upper bound.

    Example:
        >>> gap = Constraints(c0=[0.0], C=[[1.0, -1.0]], by_label=False, names=["gap of errors"])
        >>> gap.slacken(0.02).upper
        array([0.02])
    """

    c0: Floats
    C: Floats
    by_label: bool
    names: tuple[str, ...] = ()
    lower: Floats | float = 0.0
    upper: Floats | float = 0.0
    slack: Floats | float = 0.0

    def __post_init__(self) -> None:
        C = np.asarray(self.C, dtype=np.float64)
        if C.ndim != 2 or C.size == 0:
            raise ValueError(f"C: expected a matrix (constraints, cells), got shape {C.shape}.")
        n = len(C)
        names = tuple(self.names) or tuple(f"constraint {j}" for j in range(n))
        if len(names) != n:
            raise ValueError(f"names: expected one per constraint ({n}), got {len(names)}.")
        lower, upper = (_vector(getattr(self, side), n, side) for side in ("lower", "upper"))
        if not np.all(lower <= upper):
            j = int(np.flatnonzero(~(lower <= upper))[0])
            raise ValueError(
                f"lower: expected at most upper, got {lower[j]} > {upper[j]} for {names[j]!r}."
            )
        fields = {"c0": _vector(self.c0, n, "c0"), "C": C, "names": names}
        fields |= {"lower": lower, "upper": upper, "slack": _vector(self.slack, n, "slack")}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def is_defined(self) -> NDArray[np.bool_]:
        """(J,) whether each constraint is defined on these data."""
        return ~np.isnan(self.c0)

    def slacken(self, epsilon: Any) -> Constraints:
        """Moves both bounds outwards by epsilon: from exact fairness to epsilon-fairness.

        Raises:
            ValueError: if epsilon is negative or not a number.
        """
        slack = _vector(epsilon, len(self.c0), "epsilon")
        if not np.all(slack >= 0):
            raise ValueError(f"epsilon: expected at least 0, got {epsilon}.")
        return replace(
            self, lower=self.lower - slack, upper=self.upper + slack, slack=self.slack + slack
        )

    def gaps(self, levels: Floats) -> Floats:
        """(..., J) how unfair each level is, measured by the definition: without the slack.

        ``|F|``; for a constraint with one bound only, by how much that bound is broken.
        """
        lower, upper = self.lower + self.slack, self.upper - self.slack
        beyond = np.maximum(np.maximum(lower - levels, levels - upper), 0.0)
        gaps: Floats = np.where(np.isinf(lower) | np.isinf(upper), beyond, np.abs(levels))
        return gaps

    def select(self, rows: NDArray[Any]) -> Constraints:
        """The constraints at these positions."""
        return Constraints(
            c0=self.c0[rows],
            C=self.C[rows],
            by_label=self.by_label,
            names=tuple(np.asarray(self.names, dtype=object)[rows]),
            lower=np.asarray(self.lower)[rows],
            upper=np.asarray(self.upper)[rows],
            slack=np.asarray(self.slack)[rows],
        )

    def drop_undefined(self) -> Constraints:
        """Leaves out, with a warning, the constraints whose group has no rows.

        Raises:
            ValueError: if none remains.
        """
        defined = self.is_defined
        if defined.all():
            return self
        missing = [name for name, ok in zip(self.names, defined, strict=True) if not ok]
        if not defined.any():
            raise ValueError(
                f"fairness_measure: no constraint is defined on these data; {missing} have no rows."
            )
        warnings.warn(
            f"Constraints left out because they have no rows: {'; '.join(missing)}.", stacklevel=2
        )
        return self.select(defined)


def lift(constraints: Constraints, coarse: Groups, fine: Groups, member: Ints) -> Constraints:
    """The same constraints, written for the cells of finer groups.

    A coarse cell's error is the mean of its fine cells' errors, weighted by their rows:
    ``e_coarse = sum_fine (n_fine / n_coarse) e_fine``. Fine groups that belong to no coarse group
    (their attribute is unknown) get zeros. A constraint that speaks of a coarse cell without rows
    is not defined and becomes a row of NaN.

    Args:
        constraints: for the cells of `coarse`.
        coarse: the groups the constraints speak of.
        fine: the groups to speak of instead.
        member: (G,) the coarse group of each fine group, -1 for none.

    Raises:
        ValueError: if there is not one coefficient per cell of `coarse`.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> fine = Groups.from_data([0] * 4, {"sex": [0, 0, 1, 1], "race": [0, 1, 0, 1]})
        >>> coarse = fine.marginal("sex")
        >>> lift(accuracy_parity(coarse), coarse, fine, fine.parents("sex")).C
        array([[-0.25, -0.25,  0.25,  0.25],
               [ 0.25,  0.25, -0.25, -0.25]])
    """
    by_label = constraints.by_label
    coarse_mass = coarse.cell_mass(by_label)
    if constraints.C.shape[1] != len(coarse_mass):
        raise ValueError(
            f"C: expected one column per cell ({len(coarse_mass)}: "
            f"{list(coarse.cell_names(by_label))}), got {constraints.C.shape[1]}."
        )
    undefined = np.isnan(constraints.C).any(axis=1) | np.isnan(constraints.c0)
    undefined |= (constraints.C[:, coarse_mass == 0] != 0).any(axis=1)
    fine_mass = fine.cell_mass(by_label)
    labels = np.arange(len(fine.labels) if by_label else 1)
    parent = np.where(member < 0, -1, labels[:, None] * coarse.n_groups + member).ravel()
    share = fine_mass / np.where(coarse_mass[parent] > 0, coarse_mass[parent], 1.0)
    C = constraints.C[:, parent] * np.where(parent < 0, 0.0, share)
    C[undefined] = 0.0
    return replace(constraints, C=C, c0=np.where(undefined, np.nan, constraints.c0))


def split_by_label(constraints: Constraints, groups: Groups) -> Constraints:
    """Constraints on the groups' errors as constraints on the errors of (label, group) cells.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> split_by_label(accuracy_parity(groups), groups).C
        array([[-0.375,  0.125, -0.125,  0.375],
               [ 0.375, -0.125,  0.125, -0.375]])
    """
    if constraints.by_label:
        return constraints
    total = groups.mass.sum(axis=0)
    share = groups.mass / np.where(total > 0, total, 1.0)
    C = (constraints.C[:, None, :] * share).reshape(len(constraints.C), -1)
    return replace(constraints, C=C, by_label=True)


def stack(parts: Sequence[Constraints], groups: Groups) -> Constraints:
    """Several sets of constraints on the cells of the same groups, as one.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity, equalized_odds
        >>> groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
        >>> stack([accuracy_parity(groups), equalized_odds(groups)], groups).C.shape
        (6, 4)
    """
    if any(part.by_label for part in parts):
        parts = [split_by_label(part, groups) for part in parts]
    return Constraints(
        c0=np.concatenate([part.c0 for part in parts]),
        C=np.concatenate([part.C for part in parts]),
        by_label=parts[0].by_label,
        names=tuple(name for part in parts for name in part.names),
        lower=np.concatenate([np.asarray(part.lower) for part in parts]),
        upper=np.concatenate([np.asarray(part.upper) for part in parts]),
        slack=np.concatenate([np.asarray(part.slack) for part in parts]),
    )


def _vector(value: Any, length: int, argument: str) -> Floats:
    try:
        vector = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{argument}: expected numbers, got {value!r}.") from None
    if vector.shape not in {(), (length,)}:
        raise ValueError(
            f"{argument}: expected a number or one per constraint ({length}), "
            f"got shape {vector.shape}."
        )
    return np.broadcast_to(vector, (length,)).copy()
