"""How many more rows would settle a verdict, in about four of five cases.

The groups that look most unequal do so in part by chance, so that rates as observed would ask for
far too many rows. Rates are therefore first moved towards their common mean, by as much as chance
explains of their differences (empirical Bayes, the moments of DerSimonian and Laird). The range
comes from how uncertain that share is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtri, log_ndtr, ndtr, ndtri

from fairgrad.audit.comparisons import GapToReference, MatrixMap
from fairgrad.audit.intervals import Interval, least_holding
from fairgrad.audit.verdicts import UNDECIDED, errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats

CHANCE = 0.8
"""Of settling a verdict with the rows advised."""
QUANTILES = (0.5, 0.8, 0.2)
"""Where the true differences of groups lie: in the middle, at the least, at the most."""
MOST_ROWS = 1e6
"""More rows per group, and more than 100 times those there are, are no honest advice."""
LEAST_MORE = 0.1
"""Share of every group's rows that is advised at least."""
STEPS = 48
MOST_COMPARED = 40
"""Of more groups, the ratios of the most and the least selected ones stand for all."""


class RowsNeeded(NamedTuple):
    """About how many more rows would settle a verdict.

    Attributes:
        more: of each group, by name: the middle of three estimates.
        low: in all, by the least one.
        high: in all, by the largest one; None if a million rows per group would not.
    """

    more: dict[str, int]
    low: int
    high: int | None


def rows_needed(finding: Finding) -> RowsNeeded | None:
    """About how many more rows of each group settle a verdict; None if a million would not."""
    if finding.verdict != UNDECIDED:
        return RowsNeeded({}, 0, 0)
    size = finding.table.size
    if np.isnan(finding.judgement.value) or size.min() <= 0:
        return None
    growths = [_more_rows(finding, _shrunk(finding.comparison, q)) for q in QUANTILES]
    # Differences close to the tolerance take by far the most rows, be they the middle ones or not.
    least, middle, most = sorted(growths, key=lambda g: np.inf if g is None else g.sum())
    if least is None or middle is None:
        return None
    names = zip(finding.table.groups.names, middle, strict=True)
    high = None if most is None else int(most.sum())
    return RowsNeeded({name: int(n) for name, n in names if n > 0}, int(least.sum()), high)


def _shrunk(comparison: Comparison, quantile: float) -> Floats:
    """(K,) the rates, moved towards the mean of their block by what chance explains."""
    cells, block = comparison.cells, comparison.block
    rate, trials = np.nan_to_num(cells.value), cells.trials
    known, n = cells.total > 0, np.where(cells.total > 0, trials, 1.0)
    smooth = (rate * n + 0.5) / (n + 1.0)  # 0 or 1 seen in few rows may be another rate
    variance = smooth * (1 - smooth) / n
    weight = np.where(known, 1 / variance, 0.0)

    def sums(of: Floats) -> Floats:
        return np.bincount(block, of)[block].astype(np.float64)

    mean = sums(np.where(known, n * rate, 0.0)) / np.maximum(sums(np.where(known, n, 0.0)), 1.0)
    df = np.maximum(sums(known.astype(np.float64)) - 1, 1.0)
    excess = sums(weight * (rate - mean) ** 2) * df / chdtri(df, 1 - quantile) - df
    scale = sums(weight) - sums(weight**2) / np.maximum(sums(weight), 1e-300)
    between = np.maximum(excess, 0.0) / np.maximum(scale, 1e-300)
    moved: Floats = mean + (rate - mean) * between / (between + variance)
    return moved


def _more_rows(finding: Finding, rate: Floats) -> Floats | None:
    """(G,) how many more rows of each group settle a verdict if the rates are these."""
    size = finding.table.size
    # The mix of groups changes with the rows, and levels with it: look step by step.
    most = max(MOST_ROWS, 100 * size.max())
    grid = np.linspace(np.log(max(size.min(), 1.0)), np.log(most), STEPS)
    enough = next((i for i, at in enumerate(grid) if _chance(finding, rate, at) >= CHANCE), None)
    if enough is None:
        return None
    if enough == 0:  # the rows there are would do four times out of five, and they did not
        return np.ceil(LEAST_MORE * size)
    ends = grid[enough - 1], grid[enough]
    log_rows = least_holding(lambda at: _chance(finding, rate, at) >= CHANCE, *ends)
    more: Floats = np.maximum(np.ceil(np.exp(log_rows) - size), 0.0)
    return more


def _chance(finding: Finding, rate: Floats, log_rows: float) -> float:
    """The chance that all levels are judged fair, or some level unfair, with so many rows.

    Groups with fewer rows get this number. Levels are approximately normal around their values,
    and independent between groups.
    """
    comparison, fair = finding.comparison, finding.tolerance.fair_levels(finding.comparison)
    growth = np.maximum(np.exp(log_rows) / finding.table.size, 1.0)[comparison.cell_group]
    rule, tested = comparison.map, comparison.tested
    n_tests, error = int(tested.sum()), errors(finding.alpha)[1]
    # Groups do not grow if more rows tell theirs, and a user's own matrix does not change.
    if isinstance(rule, GapToReference) and rule.with_reference is None:
        rule, tested = _grown(rule, tested, growth)
    if finding.tolerance.kind == "ratio":  # ``rate_r - ratio * rate_q >= 0`` for all pairs
        rule, n_tests = _ratio_map(comparison, rate, finding.tolerance.value)
        fair, tested = Interval(np.zeros(len(rule.c0)), np.full(len(rule.c0), np.inf)), rule.c0 == 0
    trials, total = comparison.cells.trials, comparison.cells.total
    n = np.where(trials > 0, trials * growth, 1.0)
    if comparison.cells.below is not None:  # more known groups leave the noise of the rows
        n = 1 / (1 / np.maximum(total, 1.0) + np.maximum(1 / n - 1 / (total * growth), 0.0))
    smooth = (rate * trials + 0.5) / (trials + 1.0)
    sd = np.sqrt(smooth * (1 - smooth) / n)
    level, reaches = rule.levels(rate), []
    for z in (1.0, -ndtri(error), -ndtri(finding.unfair_share * error / max(n_tests, 1))):
        high = rule.combine(rate, Interval(rate - z * sd, rate + z * sd), z).high
        reaches.append((high - level)[tested])
    spread, near, far = np.maximum(reaches, 1e-12)
    level, least, most = (values[tested] for values in (level, *fair))
    is_fair = ndtr((level - near - least) / spread) + ndtr((most - level - near) / spread) - 1
    none_beyond = log_ndtr(-(level - far - most) / spread) + log_ndtr(
        -(least - level - far) / spread
    )
    all_fair = np.log(np.maximum(is_fair, 1e-300)).sum()
    return float(np.exp(all_fair) + 1.0 - np.exp(none_beyond.sum()))


def _grown(
    gap: GapToReference, tested: NDArray[np.bool_], growth: Floats
) -> tuple[GapToReference, NDArray[np.bool_]]:
    """The levels where each cell has so many times its rows, and which of them to test.

    Of two groups that is the one which has the smaller share of the rows then.
    """
    mass = gap.share * growth
    before, total = gap.sums(gap.share), gap.sums(mass)
    kept = before / np.where(total > 0, total, 1.0)
    variance, n_rows = kept * gap.outside_variance, gap.n_rows / np.where(kept > 0, kept, 1.0)
    share = kept * mass
    is_smaller = gap.present & (2 * share < gap.sums(share))
    columns = np.array([gap.present, tested, is_smaller], dtype=np.float64)
    n_present, n_tested, n_smaller = gap.sums(columns)
    is_pair = (n_present == 2) & (n_tested == 1) & (n_smaller == 1)
    grown = replace(gap, share=share, outside_variance=variance, n_rows=n_rows)
    return grown, np.where(is_pair, is_smaller, tested)


def _ratio_map(comparison: Comparison, rate: Floats, least: float) -> tuple[MatrixMap, int]:
    """Differences ``rate_r - least * rate_q`` of the groups that matter, and how many there are."""
    cells = np.arange(len(rate))[comparison.ratio_row]
    cells = cells[comparison.cells.total[cells] > 0]
    order = cells[np.argsort(rate[cells], kind="stable")]
    few, many = order[:MOST_COMPARED], order[-MOST_COMPARED:]
    n_pairs = len(order) * (len(order) - 1) // 2
    if comparison.reference >= 0:
        many, n_pairs = cells[comparison.cell_group[cells] == comparison.reference], len(order) - 1
    r, q = (axis.ravel() for axis in np.meshgrid(few, many))
    r, q = r[r != q], q[r != q]
    pairs = MatrixMap.of_pairs(r, q, least, np.zeros(len(r)))
    return replace(pairs, correlation=getattr(comparison.map, "correlation", None)), n_pairs
