"""Measures how fair predictions are: the levels of a measure on some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.columns import UNKNOWN, as_array, as_column
from fairgrad.groups import Floats, GroupedRows, Ints, count_rows, group_rows
from fairgrad.measures import constraints_of, desirable_in_use

if TYPE_CHECKING:
    from fairgrad.constraints import Constraints


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of fairness: positive for advantaged groups, negative for disadvantaged ones.

    Attributes:
        names: the name of each level.
        values: the levels, NaN where a group has no rows.
        gaps: how unfair each level is: its distance from 0 or, for a measure with only one bound,
            by how much it violates that bound.
        desirable: the desirable labels, if the measure uses them.

    Example:
        >>> levels = Levels(("women", "men"), np.array([-0.04, 0.02]), np.array([0.04, 0.02]))
        >>> round(levels.unfairness, 4), levels.max, levels.min
        (0.03, 0.02, -0.04)
    """

    names: tuple[str, ...]
    values: Floats
    gaps: Floats
    desirable: tuple[Any, ...] = ()

    @property
    def unfairness(self) -> float:
        """The mean of the gaps over the levels that are defined: the paper's mean of |F|."""
        return float(unfairness(self.gaps))

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


SUMMARIES = ("mean", "max")


def unfairness(gaps: Floats, summary: str = "mean") -> Floats:
    """How unfair a model is: the mean or the largest of its gaps.

    Args:
        gaps: (..., J) as `Constraints.gaps` gives them; NaN where a level is not defined.
        summary: "mean", as in the paper, or "max".

    Returns:
        (...) one number per model, NaN where no level is defined.

    Raises:
        ValueError: if the summary is neither of the two.

    Example:
        >>> unfairness(np.array([[0.1, 0.3], [0.2, np.nan]]))
        array([0.2, 0.2])
        >>> float(unfairness(np.array([0.1, 0.3]), "max"))
        0.3
    """
    if summary not in SUMMARIES:
        raise ValueError(f"summary: expected one of {list(SUMMARIES)}, got {summary!r}.")
    defined = ~np.isnan(gaps)
    known = np.where(defined, gaps, 0.0)
    n = defined.sum(-1)
    summed = known.max(-1) if summary == "max" else known.sum(-1) / np.maximum(n, 1)
    return np.where(n > 0, summed, np.nan)


def fairness_levels(
    y_true: Any,
    y_pred: Any,
    s: Any,
    fairness_measure: Any,
    *,
    y_desirable: Any = None,
    sample_weight: Any = None,
) -> Levels:
    """Levels of fairness of predictions, with the frequencies of these rows.

    Args:
        y_true: one label per row.
        y_pred: one predicted label per row.
        s: one sensitive value per row, or one column per attribute.
        fairness_measure: a name, or anything else that `fairgrad.torch.FairLoss` takes.
        y_desirable: the desirable labels; by default the second of two in sorted order.
        sample_weight: one non-negative weight per row.

    Raises:
        ValueError: if the columns do not fit, or the measure is not known.

    Example:
        >>> levels = fairness_levels([0, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1], "accuracy_parity")
        >>> dict(zip(levels.names, levels.values.tolist()))
        {'s=0': 0.25, 's=1': -0.25}
        >>> levels.unfairness
        0.25
    """
    arguments = ("y_true", "s", "sample_weight")
    rows = group_rows(y_true, s, sample_weight, arguments=arguments)
    constraints = constraints_of(fairness_measure, rows.groups, y_desirable=y_desirable)
    predicted = predicted_index(rows, y_pred)
    if (predicted < 0).any():  # predicted labels that are not in y_true
        everything = np.concatenate([rows.groups.labels, as_array(as_column(y_pred))])
        wider = group_rows(y_true, s, sample_weight, labels=everything, arguments=arguments)
        bounds = constraints_of(fairness_measure, wider.groups, y_desirable=y_desirable)
        if bounds.n_outcomes > 1:
            rows, constraints, predicted = wider, bounds, predicted_index(wider, y_pred)
    levels = levels_of(constraints, rows, predicted)
    desirable = desirable_in_use(fairness_measure, rows.groups.labels, y_desirable)
    return Levels(constraints.names, levels, constraints.gaps(levels), desirable)


def levels_of(constraints: Constraints, rows: GroupedRows, predicted: Ints) -> Floats:
    """(J,) the levels of predictions: ``F = c0 + C e``, e the error rates of the cells.

    Args:
        constraints: on the cells of the rows' groups.
        rows: with their labels, groups and weights.
        predicted: (N,) the index of each row's predicted label, -1 if it is no label of the rows.
    """
    mass = rows.groups.cell_mass(constraints.by_label)
    cell, weight = rows.cell(constraints.by_label), 1.0 if rows.weight is None else rows.weight
    counted = [predicted != rows.label]
    if constraints.n_outcomes > 1:  # each predicted label is counted instead of errors
        counted = [predicted == label for label in range(constraints.n_outcomes)]
    # The rate of an empty cell is never used.
    counts = np.array([count_rows(cell, len(mass), weight * is_counted) for is_counted in counted])
    return constraints.levels((counts / np.where(mass > 0, mass, 1.0)).ravel())


def predicted_index(rows: GroupedRows, y_pred: Any) -> Ints:
    """(N,) the index of each row's predicted label, -1 if it is none of the rows' labels.

    Raises:
        ValueError: if there is not one prediction per row.
    """
    predicted = as_array(as_column(y_pred))
    if predicted.shape != rows.label.shape:
        raise ValueError(
            f"y_pred: expected one prediction per row of y_true ({len(rows)}), "
            f"got shape {predicted.shape}."
        )
    index = np.full(len(rows), UNKNOWN)
    for i, label in enumerate(rows.groups.labels):
        index[predicted == label] = i
    return index
