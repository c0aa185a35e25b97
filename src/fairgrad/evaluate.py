"""How fair given predictions are: the levels of a measure on the data at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.columns import as_array
from fairgrad.groups import Floats, Groups, check_weights
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from fairgrad.constraints import Constraints


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of fairness: positive for advantaged groups, negative for disadvantaged ones.

    Attributes:
        names: what each level speaks of.
        values: the levels, NaN where a group without rows leaves one undefined.

    Example:
        >>> levels = Levels(("women", "men"), np.array([-0.04, 0.02]))
        >>> round(levels.mean_abs, 4), levels.max, levels.min
        (0.03, 0.02, -0.04)
        >>> Levels(("a", "b"), np.array([0.1, np.nan])).n_undefined
        1
    """

    names: tuple[str, ...]
    values: Floats

    @property
    def mean_abs(self) -> float:
        """Mean of |F| over the levels that are defined: the paper's unfairness."""
        return float(np.nanmean(np.abs(self.values)))

    @property
    def max(self) -> float:
        """The level of the most advantaged group."""
        return float(np.nanmax(self.values))

    @property
    def min(self) -> float:
        """The level of the most disadvantaged group."""
        return float(np.nanmin(self.values))

    @property
    def n_undefined(self) -> int:
        """How many levels are left out because their group has no rows."""
        return int(np.isnan(self.values).sum())


def fairness_levels(
    y_true: Any,
    y_pred: Any,
    s: Any,
    fairness_measure: Any,
    *,
    y_desirable: Any = (1,),
    sample_weight: Any = None,
) -> Levels:
    """Levels of fairness of predictions, with the frequencies of these very data.

    Example:
        >>> levels = fairness_levels([0, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1], "accuracy_parity")
        >>> dict(zip(levels.names, levels.values.tolist()))
        {'s=0': 0.25, 's=1': -0.25}
        >>> levels.mean_abs
        0.25
    """
    groups = Groups.from_data(y_true, s, sample_weight)
    constraints = constraints_of(fairness_measure, groups, y_desirable=y_desirable)
    errors = cell_errors(groups, y_true, y_pred, s, constraints.by_label, sample_weight)
    return levels_of(constraints, errors)


def levels_of(constraints: Constraints, errors: Floats) -> Levels:
    """``F = c0 + C e`` with its names; e of an empty cell is never used.

    Example:
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_counts({(0, "a"): 50, (0, "b"): 50})
        >>> levels_of(accuracy_parity(groups), np.array([0.1, 0.3])).values.round(4)
        array([ 0.1, -0.1])
    """
    return Levels(constraints.names, constraints.c0 + constraints.C @ np.nan_to_num(errors))


def cell_errors(
    groups: Groups, y_true: Any, y_pred: Any, s: Any, by_label: bool, sample_weight: Any = None
) -> Floats:
    """(K,) error rate of each cell, NaN where it has no rows.

    Raises:
        ValueError: if there is not one prediction per row, or a label or group was never seen.

    Example:
        >>> y, s = [0, 0, 1, 1], ["a", "b", "a", "b"]
        >>> groups = Groups.from_data(y, s)
        >>> cell_errors(groups, y, [0, 1, 1, 1], s, by_label=False)
        array([0. , 0.5])
    """
    label, predicted = groups.label_index(y_true), as_array(y_pred)
    if predicted.shape != label.shape:
        raise ValueError(
            f"y_pred: expected one prediction per row of y_true ({len(label)}), "
            f"got shape {predicted.shape}."
        )
    wrong = predicted != groups.labels[label]
    weight = check_weights(sample_weight, len(label))
    group = groups.group_index(s)
    cell = label * groups.n_groups + group if by_label else group
    mass = groups.cell_mass(by_label)
    errors = np.bincount(cell, wrong if weight is None else wrong * weight, minlength=len(mass))
    return np.where(mass > 0, errors / np.where(mass > 0, mass, 1.0), np.nan)
