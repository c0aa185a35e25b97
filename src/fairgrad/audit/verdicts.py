"""Findings and verdicts: what the data allow to say about a measure.

Levels are sums of independent rates, and get intervals by MOVER from Clopper-Pearson limits, each
at the requested confidence. "Fair" means that every level is within the tolerance: an
intersection-union test (Berger, Technometrics 24, 1982), in which each level is tested at the full
error and no correction is needed. "Unfair" means that some level is beyond it: each gets its share
of the error (Holm, Scandinavian Journal of Statistics 6, 1979). The reference of a level is the
rate of all rows. The shares of groups in it are estimates, and their variance is part of intervals.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from fairgrad.audit.intervals import (
    Interval,
    impact_ratios,
    least_holding,
    narrowed,
    smallest_ratio,
)
from fairgrad.evaluate import unfairness

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.counts import CountTable
    from fairgrad.audit.forecast import RowsNeeded
    from fairgrad.groups import Floats

FAIR, UNFAIR, UNDECIDED = "fair within tolerance", "unfair", "undecided"
FOUR_FIFTHS = "80%"
"""The tolerance of the four-fifths rule: selection rates of at least 80 % of the highest."""
FAIR_SHARE = 0.98
"""Of the error allowed, what a verdict may spend on the side where it can be wrong. The rest is
that of the other end of an interval close to the tolerance (`intervals.narrowed`)."""
LEAST_LOG_P, MOST_LOG_P = math.log(1e-12), math.log(0.5)
"""Smaller and larger p-values are not told apart."""


def tolerated_ratio(tolerance: Any) -> float | None:
    """The ratio that a tolerance such as "80%" stands for; None if it is no such text.

    Less than half is none: "5%" is meant as 5 points, and hardly any rates would be unfair.
    """
    if not isinstance(tolerance, str) or not re.fullmatch(r"\d+(\.\d*)?\s*%", tolerance.strip()):
        return None
    ratio = float(tolerance.strip().removesuffix("%")) / 100
    return ratio if 0.5 <= ratio <= 1 else None


def gravest(verdicts: Iterable[str]) -> str:
    """The verdict that stands for several: unfair before undecided before fair."""
    distinct = set(verdicts)
    return next((verdict for verdict in (UNFAIR, UNDECIDED) if verdict in distinct), FAIR)


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
        fair = self.fair_figures
        if fair.low <= low and high <= fair.high:
            return FAIR
        return UNFAIR if high < fair.low or low > fair.high else UNDECIDED

    @property
    def fair_figures(self) -> Interval:
        """The least and the greatest fair figure."""
        value, none = np.asarray(self.value), np.asarray(np.inf)
        return Interval(value, none) if self.kind == "ratio" else Interval(-none, value)

    def fair_levels(self, comparison: Comparison) -> Interval:
        """(J,) the least and the greatest fair levels; without ends if levels do not decide."""
        if self.kind == "bounds":
            return comparison.bounds
        most = np.inf if self.kind == "ratio" else self.value
        return Interval(*(np.full(len(comparison.names), end) for end in (-most, most)))


class Judgement(NamedTuple):
    """The figure a verdict rests on, its interval, and the verdict."""

    value: float
    low: float
    high: float
    verdict: str


def holm_shares(p: Sequence[float], alpha: float) -> list[float]:
    """The share of the error that each of several findings may use for "unfair" (Holm 1979).

    The chance that any finding is wrongly called unfair is then at most `alpha`.
    """
    shares, n_left, stopped = [0.0] * len(p), len(p), False
    for place in np.argsort(p, kind="stable").tolist():
        shares[place] = 1.0 / n_left
        stopped = stopped or p[place] > alpha / n_left
        n_left -= not stopped
    return shares


def errors(alpha: float) -> tuple[float, float, float]:
    """How often a single limit may be wrong: of equal tails, towards a bound, away from it."""
    return alpha / 2, FAIR_SHARE * alpha, (1 - FAIR_SHARE) * alpha


def level_limits(comparison: Comparison, error: float) -> Interval:
    """(J,) limits of the levels, each of which is wrong at most `error` of the time."""
    cells, (least, most) = comparison.cells, comparison.map.range
    z = float(-ndtri(error))
    ends = cells.ends_in_sums(error)
    low, high = comparison.map.combine(cells.value, ends, z)
    return Interval(np.maximum(low, least), np.minimum(high, most))


def _excess(comparison: Comparison, rule: VerdictRule, level: Interval) -> float:
    """How far the worst level lies beyond its bounds, or beyond 0 if it has no bounds."""
    lower, upper = comparison.bounds if rule.kind == "bounds" else (0.0, 0.0)
    return float(np.nanmax(np.maximum(level.high - upper, lower - level.low)))


def _limits(comparison: Comparison, rule: VerdictRule, error: float) -> Interval:
    """Limits of the figure that a verdict looks at, each wrong at most `error` of the time."""
    if rule.kind == "ratio":
        rates = comparison.cells.pick(comparison.ratio_row)
        return smallest_ratio([rates], error, comparison.reference)
    # The figure is that of some level, so each upper limit counts in full; lower ones share.
    high = _excess(comparison, rule, level_limits(comparison, error))
    shared = error / max(int(comparison.tested.sum()), 1)
    low, top = level_limits(comparison, shared)
    least = _excess(comparison, rule, Interval(top, low))  # each level as fair as it may be
    least = max(least, 0.0) if rule.kind == "level" else least
    return Interval(np.asarray(least), np.asarray(high))


@dataclass(frozen=True, eq=False)
class Finding:
    """How fair the predictions are by one measure.

    Attributes:
        measure: its name.
        attribute: the attribute whose groups are compared, or several combined ("sex x race").
        table: the counts it rests on.
        comparison: what is compared.
        tolerance: the largest gap that is fair.
        alpha: 1 - confidence.
        is_asked: whether the verdict of the audit depends on it.
        unfair_share: of the error alpha, what "unfair" may use; the rest is that of other findings.

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
    unfair_share: float = 1.0

    @cached_property
    def levels(self) -> Floats:
        """(J,) the levels: above 0 advantaged, below 0 disadvantaged, NaN without rows."""
        return self.comparison.map.levels(self.comparison.cells.value)

    @cached_property
    def level_intervals(self) -> Interval:
        """(J,) intervals of the levels, each by itself with the audit's confidence.

        The verdict is "fair" exactly if all of them lie within the tolerance.
        """
        fair = self.tolerance.fair_levels(self.comparison)
        base, near, far = (level_limits(self.comparison, error) for error in errors(self.alpha))
        beyond = self.beyond  # decided with Holm's correction
        reject = Interval(
            np.where(beyond, near.low, np.minimum(near.low, fair.high)),
            np.where(beyond, near.high, np.maximum(near.high, fair.low)),
        )
        return narrowed(base, near, reject, far, fair)

    @cached_property
    def beyond(self) -> NDArray[np.bool_]:
        """(J,) the levels that are surely beyond the tolerance, with Holm's correction.

        The chance that any of them is not is at most ``1 - confidence``.
        """
        least, most = self.tolerance.fair_levels(self.comparison)
        n_tests = max(int(self.comparison.tested.sum()), 1)
        is_beyond = np.zeros(len(self.comparison.names), dtype=bool)
        while True:  # what was found makes room for the others
            n_left = max(n_tests - int((is_beyond & self.comparison.tested).sum()), 1)
            error = self.unfair_share * errors(self.alpha)[1] / n_left
            low, high = level_limits(self.comparison, error)
            more = is_beyond | (low > most) | (high < least)
            if (more == is_beyond).all() or n_left == 1:
                return more
            is_beyond = more

    @cached_property
    def unfairness(self) -> float:
        """Mean of |F| over the levels that are defined: the paper's unfairness.

        Of a measure with one bound only: the mean of what its levels break that bound by.
        """
        return float(unfairness(self.comparison.gaps(Interval(self.levels, self.levels)).low))

    @cached_property
    def unfairness_interval(self) -> Interval:
        """Where the unfairness lies, with at least the audit's confidence.

        The error of a mean is at most the mean of the errors. The lower end is the mean of the
        levels' own lower ends, all at once.
        """
        if not self.n_defined:
            return Interval(np.asarray(0.0), np.asarray(1.0))
        comparison, error = self.comparison, self.alpha / 2
        low, high = level_limits(comparison, error)
        reach = np.maximum(high - self.levels, self.levels - low)
        shared = error / max(int(comparison.tested.sum()), 1)
        least = unfairness(comparison.gaps(level_limits(comparison, shared)).low)
        return Interval(least, np.minimum(self.unfairness + np.nanmean(reach), 1.0))

    @property
    def n_defined(self) -> int:
        """How many levels are defined."""
        return int((~np.isnan(self.levels)).sum())

    @property
    def n_undefined(self) -> int:
        """How many levels are left out because their cell has no rows."""
        return len(self.levels) - self.n_defined

    @property
    def extremes(self) -> tuple[int, int] | None:
        """The most disadvantaged and advantaged level: of the desirable label if there is one."""
        levels = np.where(self.comparison.valued, self.levels, np.nan)
        if np.isnan(levels).all():
            return None
        return int(np.nanargmin(levels)), int(np.nanargmax(levels))

    @cached_property
    def judgement(self) -> Judgement:
        """The figure the verdict rests on, with its interval, and the verdict.

        Both may be wrong `alpha` of the time; "unfair" may use `unfair_share` of this error.
        """
        comparison, rule, figures = self.comparison, self.tolerance, self.levels
        if rule.kind == "ratio":
            rates = comparison.cells.value[comparison.ratio_row]
            figures = impact_ratios(rates, reference=comparison.reference)
        if np.isnan(figures).all():
            return Judgement(float("nan"), 0.0, 1.0, UNDECIDED)
        value = float(np.nanmin(figures))
        if rule.kind != "ratio":
            value = _excess(comparison, rule, Interval(figures, figures))
        base, near, far = (_limits(comparison, rule, error) for error in errors(self.alpha))
        share, reject = self.unfair_share, near
        if share < 1:
            reject = _limits(comparison, rule, share * errors(self.alpha)[1])
        low, high = map(float, narrowed(base, near, reject, far, rule.fair_figures))
        return Judgement(value, low, high, rule.settle(low, high))

    @cached_property
    def p_values(self) -> tuple[float, float]:
        """The least errors at which it would be "fair", and "unfair" if it were the only finding.

        The verdict is "fair" if the first is at most ``1 - confidence``, and "unfair" if the second
        is (with Holm's correction if there are several findings). 1 if neither is possible.
        """

        def holds(verdict: str, log_error: float) -> bool:
            limits = _limits(self.comparison, self.tolerance, math.exp(log_error))
            return self.tolerance.settle(*map(float, limits)) == verdict

        if np.isnan(self.judgement.value):
            return 1.0, 1.0
        fair, unfair = (
            math.exp(least_holding(partial(holds, verdict), LEAST_LOG_P, MOST_LOG_P))
            for verdict in (FAIR, UNFAIR)
        )
        return min(fair / FAIR_SHARE, 1.0), min(unfair / FAIR_SHARE, 1.0)

    @property
    def verdict(self) -> str:
        """Fair within tolerance, unfair or undecided."""
        return self.judgement.verdict

    @cached_property
    def rows_needed(self) -> RowsNeeded | None:
        """For an undecided verdict: about how many more rows of each group would settle it.

        That is, with a chance of four in five. Groups with fewer than N rows are brought up to N,
        the least number that does. None if the figure is too close to the tolerance, or not
        defined.
        """
        from fairgrad.audit.forecast import rows_needed  # noqa: PLC0415 - it imports this module

        return rows_needed(self)


def sharing_error(findings: list[Finding]) -> list[Finding]:
    """The findings; those of the verdict share its error for "unfair"."""
    asked = [finding for finding in findings if finding.is_asked]
    if len(asked) < 2 or UNFAIR not in {f.verdict for f in asked}:
        return findings
    # A finding that is not unfair by itself is not unfair among others, whatever its p-value.
    p = [f.p_values[1] if f.verdict == UNFAIR else 1.0 for f in asked]
    shares = iter(holm_shares(p, asked[0].alpha))
    return [replace(f, unfair_share=next(shares)) if f.is_asked else f for f in findings]


def attainable_tolerance(findings: Sequence[Finding]) -> float | None:
    """The least tolerance, rounded up, at which all are fair; None if levels do not decide."""
    if any(finding.tolerance.kind != "level" for finding in findings):
        return None
    rule = VerdictRule("level", 0.0)
    most = max(float(_limits(f.comparison, rule, errors(f.alpha)[1]).high) for f in findings)
    return float(np.ceil(1000 * most) / 1000)
