"""The differences and ratios people know by name, as fairlearn computes them.

They compare groups with each other (largest less smallest, smallest over largest), where the levels
compare each group with everyone: the two never agree, and should not be mixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.audit.proportions import (
    Interval,
    Proportion,
    clopper_pearson,
    largest_difference,
    smallest_ratio,
)
from fairgrad.audit.table import rates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairgrad.audit.table import Table
    from fairgrad.groups import Floats

POSITIVES, FALSE_ALARMS = "true_positive_rate", "false_positive_rate"
RATES_OF = {
    "demographic_parity": ("selection_rate",),
    "equalized_odds": (POSITIVES, FALSE_ALARMS),
    "equal_opportunity": (POSITIVES,),
    "accuracy": ("accuracy",),
}
"""Each family of figures, and the rates whose worst gap it reports."""


class Figure(NamedTuple):
    """A difference or ratio between groups, with its simultaneous interval.

    Attributes:
        name: as fairlearn calls it.
        label: index of the label it treats as positive, -1 for none.
        value: NaN if fewer than two groups have the rate.
        low: lower end of the interval.
        high: upper end.
    """

    name: str
    label: int
    value: float
    low: float
    high: float


def figures_of(table: Table, labels: Sequence[int], alpha: float) -> list[Figure]:
    """All figures for the groups of a table, for each of these labels as the positive one."""
    by_name = rates(table)
    found = []
    for family, names in RATES_OF.items():
        for label in [-1] if family == "accuracy" else labels:
            rows = [_row(by_name[name], label) for name in names]
            found += _family(family, label, rows, alpha)
    return found


def _row(rate: Proportion, label: int) -> Proportion:
    return rate if label < 0 else Proportion(*(part[label] for part in rate))


def _family(family: str, label: int, rows: list[Proportion], alpha: float) -> list[Figure]:
    """The worst difference and the worst ratio over the rates of a family."""
    rows = [Proportion(*(part[row.total > 0] for part in row)) for row in rows]
    rows = [row for row in rows if len(row.total) > 1]
    cell_alpha = alpha / max(sum(len(row.total) for row in rows), 1)
    ends = [clopper_pearson(row.value, row.trials, cell_alpha) for row in rows]
    gaps = [_difference(row.value) for row in rows]
    ratios = [_ratio(row.value) for row in rows]
    gap_ends = [largest_difference(end) for end in ends]
    ratio_ends = [smallest_ratio(end) for end in ends]
    return [
        Figure(f"{family}_difference", label, *_worst(gaps, gap_ends, np.nanmax)),
        Figure(f"{family}_ratio", label, *_worst(ratios, ratio_ends, np.nanmin)),
    ]


def _difference(value: Floats) -> float:
    return float(value.max() - value.min())


def _ratio(value: Floats) -> float:
    """0 / 0 says nothing: where nobody has the rate the ratio is not defined."""
    return float(value.min() / value.max()) if value.max() > 0 else float("nan")


def _worst(
    values: list[float], ends: list[Interval], choose: Callable[..., Any]
) -> tuple[float, ...]:
    if not values or np.isnan(values).all():
        return float("nan"), 0.0, 1.0
    low, high = (choose([end[side] for end in ends]) for side in (0, 1))
    return float(choose(values)), float(low), float(high)
