"""Verdicts: what the data allow to say about a measure, and how many more rows would settle it.

Every cell's rate gets a Clopper-Pearson interval at the Bonferroni level ``(1 - confidence) / K``,
so that all K hold at once with the confidence asked for; interval arithmetic carries them over to
the levels, which therefore hold at once too, whatever the dependence between groups. How frequent
each cell is, is taken as given: the intervals are about the model's rates, not about the mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad.audit.proportions import Interval, clopper_pearson, smallest_ratio

if TYPE_CHECKING:
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.groups import Floats

FAIR, UNFAIR, UNDECIDED = "fair within tolerance", "unfair", "undecided"
FOUR_FIFTHS = "four_fifths"
MOST_ROWS = 1e9
"""Beyond this many rows per group, more of them are no honest advice."""


@dataclass(frozen=True)
class Tolerance:
    """What is still called fair.

    Attributes:
        kind: "level" (largest distance of a level from 0), "ratio" (smallest to largest rate) or
            "bounds" (the measure's own lower and upper bounds).
        value: the distance, the ratio, or 0 for bounds.
    """

    kind: str
    value: float

    def settle(self, low: float, high: float) -> str:
        """The verdict on a figure known to lie between low and high."""
        if self.kind == "ratio":
            low, high, limit = -high, -low, -self.value
        else:
            limit = self.value
        if high <= limit:
            return FAIR
        return UNFAIR if low > limit else UNDECIDED


class Judgement(NamedTuple):
    """The figure a verdict rests on, its simultaneous interval, and the verdict."""

    value: float
    low: float
    high: float
    verdict: str


def rate_intervals(comparison: Comparison, alpha: float, growth: Floats | None = None) -> Interval:
    """Intervals of all cells' rates that hold at once with probability at least 1 - alpha.

    Args:
        comparison: whose cells.
        alpha: the error allowed to all of them together.
        growth: (G,) as if each group had this many times its rows, with the same rates.
    """
    trials = comparison.cells.trials
    if growth is not None:
        trials = trials * growth[comparison.cell_group]
    return clopper_pearson(comparison.cells.value, trials, alpha / max(comparison.n_free, 1))


def judge(
    comparison: Comparison, tolerance: Tolerance, alpha: float, growth: Floats | None = None
) -> Judgement:
    """The verdict on a measure; arguments as for `rate_intervals`."""
    rate = rate_intervals(comparison, alpha, growth)
    if tolerance.kind == "ratio":
        value, low, high = _ratio(comparison, rate)
    else:
        value, low, high = _largest_excess(comparison, tolerance, rate)
    if np.isnan(value):  # no level is defined: nothing was compared
        return Judgement(value, low, high, UNDECIDED)
    return Judgement(value, low, high, tolerance.settle(low, high))


def more_rows(comparison: Comparison, tolerance: Tolerance, alpha: float, size: Floats) -> Floats:
    """(G,) how many more rows of each group would settle an undecided verdict; NaN if none would.

    The rates are assumed to stay as observed. Groups with fewer than N rows are brought up to N,
    the smallest groups being what makes gaps uncertain; N is the least number that settles it.

    Args:
        comparison: the measure on the data.
        tolerance: what is still called fair.
        alpha: the error allowed.
        size: (G,) rows of each group now.
    """

    def settled(log_rows: float) -> bool:
        growth = np.maximum(np.exp(log_rows) / size, 1.0)
        return judge(comparison, tolerance, alpha, growth).verdict != UNDECIDED

    low, high = np.log(max(size.min(), 1.0)), np.log(MOST_ROWS)
    if size.min() <= 0 or not settled(high):
        return np.full(len(size), np.nan)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    more: Floats = np.ceil(np.maximum(np.exp(high) - size, 0.0))
    return more


def _largest_excess(
    comparison: Comparison, tolerance: Tolerance, rate: Interval
) -> tuple[float, float, float]:
    """How far the worst level lies beyond its bounds (beyond 0 if it has no bounds of its own)."""
    own = tolerance.kind == "bounds"
    lower, upper = (comparison.lower, comparison.upper) if own else (0.0, 0.0)
    level = comparison.map.levels(comparison.cells.value)
    if np.isnan(level).all():
        return np.nan, 0.0, 1.0
    low, high = comparison.map.enclose(rate)
    least = 0.0 if not own else -np.inf
    return (
        float(np.nanmax(np.maximum(level - upper, lower - level))),
        float(max(np.nanmax(np.maximum(low - upper, lower - high)), least)),
        float(np.nanmax(np.maximum(high - upper, lower - low))),
    )


def _ratio(comparison: Comparison, rate: Interval) -> tuple[float, float, float]:
    """The smallest rate of a group over the largest one."""
    row = comparison.ratio_row
    values = comparison.cells.value[row]
    seen = ~np.isnan(values)
    if seen.sum() < 2 or np.nanmax(values) == 0:
        return np.nan, 0.0, 1.0
    low, high = smallest_ratio(Interval(*(end[row][seen] for end in rate)))
    return float(np.nanmin(values) / np.nanmax(values)), float(low), float(high)
