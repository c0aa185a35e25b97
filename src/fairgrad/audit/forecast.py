"""How many more rows would settle a verdict, if the rates are as observed.

New rows bring new noise, so a number at which the observed figure would just be decided settles it
only every other time. Here the chance that the verdict is decided is computed for larger and
larger tables: every level is about normal around its observed value, with what its limits reach
beyond it, and levels of different groups are taken as independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from fairgrad.audit.intervals import Interval

if TYPE_CHECKING:
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.groups import Floats

CHANCE = 0.8
"""Of settling a verdict with the rows advised."""
MOST_ROWS = 1e9
"""Beyond this many rows per group, more of them are no honest advice."""
LEAST_MORE = 0.1
"""Share of every group's rows that is advised at least."""
STEPS = 48
MOST_COMPARED = 40
"""Of more groups, the ratios of the most and the least selected ones stand for all."""


def rows_needed(
    comparison: Comparison,
    size: Floats,
    fair: Interval,
    error: tuple[float, float],
    *,
    is_ratio: bool,
) -> Floats | None:
    """(G,) how many more rows of each group settle a verdict; None if no number does.

    Args:
        comparison: what is compared.
        size: (G,) rows there are.
        fair: the least and greatest fair levels, (J,), or the least and greatest fair ratio.
        error: how often a limit may be wrong that says "fair", and one that says "unfair".
        is_ratio: whether the verdict is about the smallest ratio of rates.
    """
    settles = _ratio_chance if is_ratio else _level_chance

    def chance(log_rows: float) -> float:
        growth = np.maximum(np.exp(log_rows) / size, 1.0)[comparison.cell_group]
        return settles(comparison, growth, fair, error)

    # The mix of groups changes with the rows, and levels with it: look step by step.
    grid = np.linspace(np.log(max(size.min(), 1.0)), np.log(MOST_ROWS), STEPS)
    enough = next((i for i, at in enumerate(grid) if chance(at) >= CHANCE), None)
    if enough is None:
        return None
    if enough == 0:  # the rows there are would do four times out of five, and they did not
        return np.ceil(LEAST_MORE * size)
    low, high = grid[enough - 1], grid[enough]
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= CHANCE else (middle, high)
    more: Floats = np.maximum(np.ceil(np.exp(high) - size), 0.0)
    return more


def _level_chance(
    comparison: Comparison, growth: Floats, fair: Interval, error: tuple[float, float]
) -> float:
    """The chance that all levels are surely fair, or one of them surely is not."""
    cells, tested = comparison.cells, comparison.tested
    levels = comparison.map.grown(growth)
    near, share = error[0], error[1] / max(int(tested.sum()), 1)
    trials = cells.trials * growth
    rate = np.nan_to_num(cells.value)
    level = levels.levels(rate)
    limits = [levels.combine(rate, _wide_limits(rate, trials, e)) for e in (near, share)]
    noise = _noise(rate, cells.trials, trials)
    (low, high), (far_low, far_high) = limits
    sd = levels.combine(rate, Interval(rate - noise, rate + noise)).high - level
    return _chance(
        (low - fair.low)[tested],
        (fair.high - high)[tested],
        (far_low - fair.high)[tested],
        (fair.low - far_high)[tested],
        sd[tested],
    )


def _ratio_chance(
    comparison: Comparison, growth: Floats, fair: Interval, error: tuple[float, float]
) -> float:
    """The same for ratios: ``rate_r - least ratio * rate_q`` is at least 0 for all r and q."""
    row = comparison.ratio_row
    before = comparison.cells.trials[row]
    rate, trials = comparison.cells.value[row], (comparison.cells.trials * growth)[row]
    order = np.argsort(np.where(before > 0, rate, np.nan))[: int((before > 0).sum())]
    few, many = order[:MOST_COMPARED], order[-MOST_COMPARED:]
    r, q = (part.ravel() for part in np.meshgrid(few, many))
    r, q = r[r != q], q[r != q]
    n_pairs = len(order) * (len(order) - 1) / 2
    least = float(fair.low)
    gap = rate[r] - least * rate[q]

    def reach(ends: Interval, sign: float) -> Floats:
        down, up = rate - ends.low, ends.high - rate
        own, other = (down, up) if sign > 0 else (up, down)
        far: Floats = np.hypot(own[r], least * other[q])
        return far

    near = reach(_wide_limits(rate, trials, error[0]), 1.0)
    far = reach(_wide_limits(rate, trials, error[1] / n_pairs), -1.0)
    noise = _noise(rate, before, trials)
    sd = np.hypot(noise[r], least * noise[q])
    endless = np.full(len(r), np.inf)
    return _chance(gap - near, endless, -endless, -gap - far, sd)


def _chance(above: Floats, below: Floats, over: Floats, under: Floats, sd: Floats) -> float:
    """The chance of a verdict, from how far limits are on its side of the bounds, and their noise.

    Args:
        above: lower limits less the lower bounds: all above 0, and so is `below`, if fair.
        below: upper bounds less the upper limits.
        over: lower limits less the upper bounds: unfair if one is above 0.
        under: lower bounds less the upper limits: unfair if one is above 0.
        sd: how much each of them varies.

    The rows there are stay. Of many levels some would be beyond in most fresh draws, and none is in
    this one; so there is no chance unless the rates observed, in so many rows, would tell.
    """
    is_fair = (above > 0).all() and (below > 0).all()
    if not (is_fair or (over > 0).any() or (under > 0).any()):
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        z = [
            np.nan_to_num(way / sd, posinf=40.0, neginf=-40.0)
            for way in (above, below, over, under)
        ]
    all_fair = np.log(np.maximum(ndtr(z[0]) + ndtr(z[1]) - 1.0, 1e-300)).sum()
    none_unfair = (log_ndtr(-z[2]) + log_ndtr(-z[3])).sum()
    return float(np.exp(all_fair) + 1.0 - np.exp(none_unfair))


def _noise(rate: Floats, before: Floats, trials: Floats) -> Floats:
    """How much rates of so many rows vary; a rate of 0 or 1 seen in few rows may be another."""
    known = np.where(before > 0, before, 1.0)
    shrunk = (rate * known + 0.5) / (known + 1.0)
    sd: Floats = np.sqrt(shrunk * (1 - shrunk) / np.where(trials > 0, trials, 1.0))
    return sd


def _wide_limits(rate: Floats, trials: Floats, error: float) -> Interval:
    """Wilson's limits with a correction for continuity: close to exact ones, and quick."""
    z = -ndtri(error)
    n = np.where(trials > 0, trials, 1.0)
    middle, low, high = rate, np.clip(rate - 0.5 / n, 0, 1), np.clip(rate + 0.5 / n, 0, 1)

    def ends(p: Floats, side: float) -> Floats:
        root = np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        found: Floats = (p + z**2 / (2 * n) + side * z * root) / (1 + z**2 / n)
        return found

    return Interval(np.minimum(ends(low, -1.0), middle), np.maximum(ends(high, 1.0), middle))
