"""Findings: one measure on the groups of one (or several crossed) attributes, with its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairgrad.audit.comparisons import Comparison, comparison_of
from fairgrad.audit.proportions import Interval, absolute
from fairgrad.audit.verdicts import (
    UNDECIDED,
    Judgement,
    Tolerance,
    judge,
    more_rows,
    rate_intervals,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit.settings import Asked
    from fairgrad.audit.table import Table
    from fairgrad.groups import Floats


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

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 400, ["a", "a", "b", "b"] * 200
        >>> finding = Audit(y, y, s, measures="accuracy_parity").findings[0]
        >>> finding.measure, finding.verdict, round(finding.judgement.high, 3)
        ('accuracy_parity', 'fair within tolerance', 0.005)
    """

    measure: str
    attribute: str
    table: Table
    comparison: Comparison
    tolerance: Tolerance
    alpha: float

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
        return float(np.nanmean(np.abs(self.levels))) if self.n_defined else float("nan")

    @property
    def unfairness_interval(self) -> Interval:
        """Where the mean of |F| lies, with the audit's confidence."""
        if not self.n_defined:
            return Interval(np.asarray(0.0), np.asarray(1.0))
        low, high = absolute(self.level_intervals)
        return Interval(np.asarray(np.nanmean(low)), np.asarray(np.nanmean(high)))

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
        """For an undecided verdict: rows to add per group to settle it, rates as observed.

        None where no number would: the figure is too close to the tolerance, or not defined.
        """
        if self.verdict != UNDECIDED:
            return {}
        if np.isnan(self.judgement.value):
            return None
        rows = more_rows(self.comparison, self.tolerance, self.alpha, self.table.size)
        if np.isnan(rows).any():
            return None
        names = self.table.groups.names
        return {name: int(n) for name, n in zip(names, rows, strict=True) if n > 0}


def findings_of(
    table: Table,
    asked: Sequence[Asked],
    views: Sequence[tuple[str, ...]],
    desirable: Sequence[int],
    alpha: float,
) -> tuple[Finding, ...]:
    """Every measure asked for, on the groups it is asked for."""
    found = []
    for request in asked:
        for attributes in views if request.attributes is None else [request.attributes]:
            view = table.view(*attributes)
            comparison = comparison_of(request.measure, view, desirable)
            found.append(
                Finding(
                    measure=request.name,
                    attribute=" x ".join(attributes),
                    table=view,
                    comparison=comparison,
                    tolerance=request.tolerance_for(comparison),
                    alpha=alpha,
                )
            )
    return tuple(found)
