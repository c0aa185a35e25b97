"""How many rows an audit needs to say "fair", and how often it errs, by simulation.

Rows needed: the least number with which predictions that are fair are called fair in 80 % of the
draws, tolerance 0.05, confidence 0.95; by the audit as it is, and by the simplest valid method,
which it replaced: Clopper-Pearson intervals that hold for all rates at once (Bonferroni), carried
over to the levels by interval arithmetic. Coverage: how often the intervals shown hold the truth,
and how often a verdict is wrong where that is easiest: the worst level exactly at the tolerance.

    python benchmarks/audit_power.py [--draws 4000] [--out results]
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtri

from fairgrad.audit.comparisons import compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.intervals import Interval, Proportion, clopper_pearson, narrowed
from fairgrad.audit.verdicts import FAIR, UNFAIR, Finding, Judgement, VerdictRule, errors
from fairgrad.groups import Groups

if TYPE_CHECKING:
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.groups import Floats

TOLERANCE, ALPHA, POWER, RATE = 0.05, 0.05, 0.8, 0.4
RULE = VerdictRule("level", TOLERANCE)
BARELY = 1e-9


@dataclass(frozen=True)
class Case:
    """Groups of given shares, whose rates are 0.4 but for what the levels ask.

    Attributes:
        name: of the case.
        measure: "demographic_parity" or "equalized_odds" (both labels equally frequent).
        shares: of the groups.
    """

    name: str
    measure: str
    shares: tuple[float, ...]

    def table(self, rows: float) -> Floats:
        """(G, 2) rows of each group and label."""
        size = np.round(rows * np.asarray(self.shares) / 2)
        return np.maximum(np.stack([size, size], axis=1), 1.0)

    def rates(self, size: Floats, level: float, *, all_of_them: bool = False) -> Floats:
        """(G, 2) chances of a hit; the last group's level is this, or every other group's is.

        The hit is label 1 for demographic parity, a right prediction for equalized odds.
        """
        groups = len(self.shares)
        share = size[:, 0] / size[:, 0].sum()
        rate = np.full(groups, RATE)
        if all_of_them:  # half of the groups up, half down
            way = np.where(np.arange(groups) % 2, 1.0, -1.0)
            rate += level * way / np.abs(way - (share * way).sum()).max()
        else:
            rate[-1] += level / (1 - share[-1])
        return np.stack([rate, rate if all_of_them else np.full(groups, RATE)], axis=1)


CASES = (
    Case("demographic parity, 2 balanced groups", "demographic_parity", (0.5, 0.5)),
    Case("demographic parity, 2 groups 95/5", "demographic_parity", (0.95, 0.05)),
    Case("demographic parity, 8 equal groups", "demographic_parity", (1 / 8,) * 8),
    Case("equalized odds, 8 equal groups", "equalized_odds", (1 / 8,) * 8),
)


@dataclass(frozen=True)
class Draws:
    """Many tables drawn with the same chances.

    Attributes:
        comparison: of a table with these sizes, for its shares.
        hits: (D, K) hits in the cells of the comparison.
        truth: (J,) the true levels.
    """

    comparison: Comparison
    hits: Floats
    truth: Floats

    def limits(self, error: float) -> Interval:
        """(D, J) what `level_limits` gives for each draw; each number of hits is looked up once."""
        cells = self.comparison.cells
        low, high = np.empty_like(self.hits), np.empty_like(self.hits)
        for k, n in enumerate(cells.total):
            seen, place = np.unique(self.hits[:, k], return_inverse=True)
            total = np.full_like(seen, n)
            one = Proportion(seen, total, total, seen, seen)
            low[:, k], high[:, k] = (end[place] for end in one.ends_in_sums(error))
        z = float(-ndtri(error))
        ends = Interval(low, high)
        found = self.comparison.map.combine(self.hits / cells.total, ends, z)
        least, most = self.comparison.map.range
        return Interval(np.maximum(found.low, least), np.minimum(found.high, most))

    def one(self, draw: int) -> Comparison:
        """The comparison of one draw."""
        cells = self.comparison.cells
        return replace(self.comparison, cells=replace_hits(cells, self.hits[draw]))


def replace_hits(cells: Proportion, hits: Floats) -> Proportion:
    """The same cells with other hits."""
    return Proportion(hits, cells.total, cells.total, hits, hits)


def draw(case: Case, rows: float, level: float, n: int, seed: int, **how: Any) -> Draws:
    """Draws tables of a case."""
    size = case.table(rows)
    chance = case.rates(size, level, **how)
    groups = Groups.from_data([0, 1] * len(size), np.repeat(np.arange(len(size)), 2))
    rng = np.random.default_rng(seed)
    if case.measure == "demographic_parity":
        everyone = size.sum(axis=1)
        ones = rng.binomial(everyone.astype(int), chance[:, 0], size=(n, len(size)))
        hits = np.concatenate([everyone - ones, ones], axis=1).astype(float)
        truth = np.concatenate([1 - chance[:, 0], chance[:, 0]])
    else:
        right = rng.binomial(size.astype(int), chance, size=(n, *size.shape))
        hits = right.transpose(0, 2, 1).reshape(n, -1).astype(float)
        truth = chance.T.ravel()
    table = np.repeat(size[:, :, None] / 2, 2, axis=2)
    comparison = compare(case.measure, CountTable(groups, table, table, table), [1])
    return Draws(comparison, hits, comparison.map.levels(truth))


def judged(comparison: Comparison) -> Judgement:
    """What the audit itself says of one draw."""
    return Finding("measure", "s", None, comparison, RULE, ALPHA).judgement


def called_fair(draws: Draws) -> Floats:
    """(D,) whether the audit's verdict is "fair"; a few are checked against the audit's own."""
    low, high = draws.limits(errors(ALPHA)[1])
    fair = np.asarray((np.maximum(high, -low) <= TOLERANCE).all(axis=1))
    for i in range(0, len(fair), max(len(fair) // 20, 1)):
        if (judged(draws.one(i)).verdict == FAIR) != fair[i]:
            raise RuntimeError("this script and the audit disagree")
    return fair


def called_unfair(draws: Draws) -> Floats:
    """(D,) whether the audit's verdict is "unfair"."""
    low, high = draws.limits(errors(ALPHA)[1] / draws.comparison.tested.sum())
    unfair = np.asarray((np.maximum(low, -high) > TOLERANCE).any(axis=1))
    for i in range(0, len(unfair), max(len(unfair) // 20, 1)):
        if (judged(draws.one(i)).verdict == UNFAIR) != unfair[i]:
            raise RuntimeError("this script and the audit disagree")
    return unfair


def arithmetic(draws: Draws) -> Interval:
    """(D, J) the levels' ranges when every rate lies in its interval, all at once."""
    cells, share = draws.comparison.cells, draws.comparison.map.share
    # Selection rates of two labels say the same: half of them vary by themselves.
    n_free = int((cells.total > 0).sum()) // (1 + (draws.comparison.rate == "selection rate"))
    rate = clopper_pearson(
        draws.hits / cells.total,
        np.broadcast_to(cells.total, draws.hits.shape),
        ALPHA / n_free,
    )
    low, high = rate
    n_blocks = int(draws.comparison.block.max()) + 1

    def sums(part: Floats) -> Floats:
        blocks = part.reshape(len(part), n_blocks, -1)
        return np.broadcast_to(blocks.sum(-1, keepdims=True), blocks.shape).reshape(part.shape)

    others = [sums(share * end) - share * end for end in (low, high)]
    ends = (1 - share) * low - others[1], (1 - share) * high - others[0]
    return Interval(*(end.reshape(len(draws.hits), -1) for end in ends))


def called_fair_before(draws: Draws) -> Floats:
    """(D,) whether interval arithmetic says "fair"."""
    low, high = arithmetic(draws)
    return np.asarray((np.maximum(high, -low) <= TOLERANCE).all(axis=1))


def rows_for(case: Case, level: float, fair: Any, n: int) -> int:
    """The least number of rows with which the chance of "fair" is `POWER`."""
    low, high = np.log(50.0), np.log(2e6)
    while high - low > 0.002:
        middle = (low + high) / 2
        share = fair(draw(case, np.exp(middle), level, n, seed=1)).mean()
        low, high = (low, middle) if share >= POWER else (middle, high)
    return round(float(np.exp((low + high) / 2)))


def shown(draws: Draws) -> tuple[Floats, float]:
    """How often the intervals hold the truth: (J,) those of the levels, and that of the figure."""
    comparison, truth = draws.comparison, draws.truth
    of_levels = [draws.limits(error) for error in errors(ALPHA)]
    base, near, far = of_levels
    low, high = narrowed(base, near, near, far, RULE.fair_levels(comparison))
    held = (low <= truth + BARELY) & (truth - BARELY <= high)
    shared = [draws.limits(error / comparison.tested.sum()) for error in errors(ALPHA)]
    of_figure = [
        Interval(np.maximum(low, -high).max(axis=1), np.maximum(top, -bottom).max(axis=1))
        for (low, high), (bottom, top) in zip(shared, of_levels, strict=True)
    ]
    base, near, far = of_figure
    low, high = narrowed(base, near, near, far, RULE.fair_figures)
    for i in range(0, len(low), max(len(low) // 20, 1)):
        if not np.allclose((max(low[i], 0.0), high[i]), judged(draws.one(i))[1:3]):
            raise RuntimeError("this script and the audit disagree")
    figure = np.abs(truth).max()
    in_it = (low <= figure + BARELY) & (figure - BARELY <= high)
    return held.mean(axis=0), float(in_it.mean())


def power(n: int) -> list[dict[str, Any]]:
    """Rows needed, before and now."""
    rows = []
    for case in CASES:
        for level in (0.0, 0.02):
            before = rows_for(case, level, called_fair_before, n)
            now = rows_for(case, level, called_fair, n)
            rows.append(
                {
                    "case": case.name,
                    "largest level": level,
                    "rows by interval arithmetic": before,
                    "rows now": now,
                    "share": round(now / before, 3),
                }
            )
    return rows


def coverage(n: int) -> list[dict[str, Any]]:
    """How often intervals hold and verdicts err, with cells of many, some and few rows."""
    found = []
    for case in CASES:
        smallest = min(case.shares) / (2 if case.measure == "equalized_odds" else 1)
        for cell in (5, 20, 100, 1000):
            rows = cell / smallest
            beyond = draw(case, rows, TOLERANCE + BARELY, n, seed=3)
            within = [
                draw(case, rows, TOLERANCE - BARELY, n, seed=4, all_of_them=every)
                for every in (False, True)
            ]
            wrong = (
                float(called_fair(beyond).mean()),
                max(float(called_unfair(one).mean()) for one in within),
            )
            for level in (0.0, 0.02, TOLERANCE, 0.15):
                draws = draw(case, rows, level, n, seed=2)
                each, figure = shown(draws)
                found.append(
                    {
                        "case": case.name,
                        "rows of the smallest cell": cell,
                        "largest level": level,
                        "coverage, least": round(float(each.min()), 4),
                        "coverage, most": round(float(each.max()), 4),
                        "coverage of the figure": round(figure, 4),
                        "wrongly fair": round(wrong[0], 4),
                        "wrongly unfair": round(wrong[1], 4),
                    }
                )
    return found


def main() -> None:
    """Prints both tables, and writes them if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name, rows in (
        ("audit_rows", power(options.draws)),
        ("audit_coverage", coverage(options.draws)),
    ):
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*(f"{v:,}" if isinstance(v, int) else str(v) for v in row.values()))
        Console(width=160).print(table)
        if options.out:
            with (options.out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, rows[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
