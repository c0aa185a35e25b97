"""Findings and verdicts: what the data allow to say about a measure.

Every cell's rate gets a Clopper-Pearson interval at the Bonferroni level ``(1 - confidence) / K``,
so that all K hold at once with the confidence asked for; interval arithmetic carries them over to
the levels, which therefore hold at once too, whatever the dependence between groups. How frequent
each cell is, is taken as given: the intervals are about the model's rates, not about the mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad.audit.intervals import Interval, clopper_pearson, smallest_ratio
from fairgrad.evaluate import unfairness

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.counts import CountTable
    from fairgrad.groups import Floats

FAIR, UNFAIR, UNDECIDED = "fair within tolerance", "unfair", "undecided"
FOUR_FIFTHS = "four_fifths"
MOST_ROWS = 1e9
"""Beyond this many rows per group, more of them are no honest advice."""


def gravest(verdicts: Iterable[str]) -> str:
    """The verdict that stands for several: unfair before undecided before fair."""
    found = set(verdicts)
    return next((verdict for verdict in (UNFAIR, UNDECIDED) if verdict in found), FAIR)


@dataclass(frozen=True)
class VerdictRule:
    """What is still called fair, and which figure decides it.

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
            is_fair, is_unfair = low >= self.value, high < self.value
        else:
            is_fair, is_unfair = high <= self.value, low > self.value
        return FAIR if is_fair else UNFAIR if is_unfair else UNDECIDED


class Judgement(NamedTuple):
    """The figure a verdict rests on, its simultaneous interval, and the verdict."""

    value: float
    low: float
    high: float
    verdict: str


def rate_intervals(comparison: Comparison, alpha: float, growth: Floats | None = None) -> Interval:
    """Intervals of all cells' rates that hold at once with probability at least 1 - alpha.

    With growth, (G,): as if each group had this many times its rows, with the same rates.
    """
    trials = comparison.cells.trials
    if growth is not None:
        trials = trials * growth[comparison.cell_group]
    return clopper_pearson(comparison.cells.value, trials, alpha / max(comparison.n_free, 1))


def judge(
    comparison: Comparison, rule: VerdictRule, alpha: float, growth: Floats | None = None
) -> Judgement:
    """The verdict on a measure; arguments as for `rate_intervals`."""
    rate = rate_intervals(comparison, alpha, growth)
    is_ratio = rule.kind == "ratio"
    figure = _ratio(comparison, rate) if is_ratio else _largest_excess(comparison, rule, rate)
    nothing_compared = np.isnan(figure[0])  # no level is defined
    return Judgement(*figure, UNDECIDED if nothing_compared else rule.settle(*figure[1:]))


def _largest_excess(
    comparison: Comparison, rule: VerdictRule, rate: Interval
) -> tuple[float, float, float]:
    """How far the worst level lies beyond its bounds (beyond 0 if it has no bounds of its own)."""
    own = rule.kind == "bounds"
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


def unfairness_of(comparison: Comparison, alpha: float) -> tuple[Floats, Interval]:
    """The mean of |F| over the levels that are defined, and where it lies with that confidence.

    One number each, or (M,) if the comparison is of many models. Of a measure with one bound only,
    such as the four-fifths rule: the mean of what its levels break that bound by.
    """
    levels = comparison.map.levels(comparison.cells.value)
    found = unfairness(comparison.gaps(Interval(levels, levels)).low)
    low, high = comparison.gaps(comparison.map.enclose(rate_intervals(comparison, alpha)))
    return found, Interval(unfairness(low), unfairness(high))


@dataclass(frozen=True, eq=False)
class Finding:
    """How fair the predictions are by one measure.

    Attributes:
        measure: its name.
        attribute: whose groups are compared: an attribute, or several crossed ("sex x race").
        table: the counts it rests on.
        comparison: what is compared.
        tolerance: what is still called fair.
        alpha: 1 - confidence.
        is_asked: whether the verdict of the audit looks at it.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 400, ["a", "a", "b", "b"] * 200
        >>> finding = Audit(y, y, s, measures="accuracy_parity").findings[0]
        >>> finding.measure, finding.verdict, round(finding.judgement.high, 3)
        ('accuracy_parity', 'fair within tolerance', 0.005)
    """

    measure: str
    attribute: str
    table: CountTable
    comparison: Comparison
    tolerance: VerdictRule
    alpha: float
    is_asked: bool = True

    @cached_property
    def levels(self) -> Floats:
        """(J,) the levels: above 0 advantaged, below 0 disadvantaged, NaN without rows."""
        return self.comparison.map.levels(self.comparison.cells.value)

    @cached_property
    def level_intervals(self) -> Interval:
        """Intervals of all levels that hold at once with the audit's confidence."""
        return self.comparison.map.enclose(rate_intervals(self.comparison, self.alpha))

    @property
    def unfairness(self) -> float:
        """Mean of |F| over the levels that are defined: the paper's unfairness."""
        return float(self._unfairness[0])

    @property
    def unfairness_interval(self) -> Interval:
        """Where the unfairness lies, with the audit's confidence."""
        if not self.n_defined:
            return Interval(np.asarray(0.0), np.asarray(1.0))
        return self._unfairness[1]

    @cached_property
    def _unfairness(self) -> tuple[Floats, Interval]:
        return unfairness_of(self.comparison, self.alpha)

    @property
    def n_defined(self) -> int:
        """How many levels are defined."""
        return int((~np.isnan(self.levels)).sum())

    @property
    def n_undefined(self) -> int:
        """How many levels are left out because their cell has no rows."""
        return len(self.levels) - self.n_defined

    @property
    def best(self) -> tuple[str, float]:
        """The most advantaged cell and its level: of the desirable label where there is one."""
        return self._extreme(1.0)

    @property
    def worst(self) -> tuple[str, float]:
        """The most disadvantaged cell and its level: of the desirable label where there is one."""
        return self._extreme(-1.0)

    def _extreme(self, sign: float) -> tuple[str, float]:
        levels = np.where(self.comparison.valued, self.levels, np.nan)
        if np.isnan(levels).all():
            return "", float("nan")
        j = int(np.nanargmax(sign * levels))
        return self.comparison.names[j], float(self.levels[j])

    @cached_property
    def judgement(self) -> Judgement:
        """The figure the verdict rests on, with its interval, and the verdict."""
        return judge(self.comparison, self.tolerance, self.alpha)

    @property
    def verdict(self) -> str:
        """Fair within tolerance, unfair or undecided."""
        return self.judgement.verdict

    @cached_property
    def more_rows(self) -> dict[str, int] | None:
        """For an undecided verdict: how many more rows of each group would settle it.

        The rates are assumed to stay as observed. Groups with fewer than N rows are brought up to
        N, as the smallest groups are what makes gaps uncertain; N is the least number that settles
        it. None where no number would: the figure is too close to the tolerance, or not defined.
        """
        if self.verdict != UNDECIDED:
            return {}
        size = self.table.size

        def settled(log_rows: float) -> bool:
            growth = np.maximum(np.exp(log_rows) / size, 1.0)
            return judge(self.comparison, self.tolerance, self.alpha, growth).verdict != UNDECIDED

        low, high = np.log(max(size.min(), 1.0)), np.log(MOST_ROWS)
        if np.isnan(self.judgement.value) or size.min() <= 0 or not settled(high):
            return None
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (low, middle) if settled(middle) else (middle, high)
        more = np.ceil(np.exp(high) - size)
        names = self.table.groups.names
        return {name: int(n) for name, n in zip(names, more, strict=True) if n > 0}
