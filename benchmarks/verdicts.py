"""How often verdicts and intervals err where rows, groups or findings are not simple.

Every case is drawn again and again with a known truth. Minutes on one core:

    python benchmarks/verdicts.py --out results
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad import On
from fairgrad.audit import FAIR, UNFAIR, Audit, ImpactTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARITY = "demographic_parity"


def audit_of(pred: Any, s: Any, **options: Any) -> Audit:
    """Of decisions alone, by demographic parity unless other measures are named."""
    return Audit(y_pred=pred, sensitive_features=s, **{"measures": PARITY, **options})


def held(audit: Audit, truth: float) -> bool:
    """Whether the interval of the last group's level of label 1 holds the truth."""
    low, high = (end[-1] for end in audit.findings[0].level_intervals)
    return bool(low <= truth + 1e-12 and truth - 1e-12 <= high)


def several_findings(rng: np.random.Generator, n_attributes: int) -> bool:
    """Attributes that are each exactly at the tolerance: is some called unfair?"""
    side = rng.choice([-1, 1], size=(n_attributes, 1000))
    pred = (rng.random(1000) < 0.5 + 0.05 * side.sum(axis=0)) * 1
    columns = {f"a{i}": own > 0 for i, own in enumerate(side)}
    found = audit_of(pred, columns, measures=[On(name, PARITY) for name in columns])
    return found.verdict == UNFAIR


def heavy_rows(rng: np.random.Generator, gap: float) -> Audit:
    """1 % of the rows weigh 20 and are selected more often."""
    n = 4000
    s, heavy = rng.integers(2, size=n), rng.random(n) < 0.01
    chance = np.where(heavy, 0.8, 0.4) + np.where(s == 1, gap, -gap)
    weight = np.where(heavy, 20.0, 1.0)
    return audit_of((rng.random(n) < chance) * 1, s, sample_weight=weight)


def repeated_people(rng: np.random.Generator, gap: float, rows: int, *, known: bool) -> Audit:
    """Several rows per person, four in five of which agree."""
    n = 2000 // rows
    person, s = np.repeat(np.arange(n), rows), np.repeat(rng.integers(2, size=n), rows)
    usual = np.repeat(rng.random(n) < 0.4, rows) ^ (rng.random(len(person)) < 0.2)
    moved = rng.random(len(person)) < 2 * gap
    pred = np.where(moved, s, usual) * 1
    return audit_of(pred, s, cluster=person if known else None)


def alike_categories(rng: np.random.Generator, n_categories: int) -> tuple[bool, bool]:
    """Whether some p is below 0.05, and whether some interval misses, where all are alike."""
    s = np.repeat(np.arange(n_categories), 400)
    frame = ImpactTable.from_decisions(rng.binomial(1, 0.3, len(s)), s, min_group=0).frame
    others = frame[frame["impact_ratio"] < 1]
    return bool((others["fisher_p"] < 0.05).any()), bool((others["ratio_high"] < 1).any())


def unequal_groups(rng: np.random.Generator, rates: tuple[float, float]) -> Audit:
    """Very unfair rates, groups drawn at random."""
    s = rng.integers(2, size=1000)
    return audit_of((rng.random(1000) < np.where(s == 1, *rates)) * 1, s)


def cases(n: int) -> Iterator[tuple[str, str, Callable[[np.random.Generator], Any], int, str]]:
    """What is tried: its name, the figure, one draw, how many of them, and the goal."""
    for k in (1, 4, 9):
        what = f"{k} attributes exactly at the tolerance"
        yield what, "called unfair", lambda r, k=k: several_findings(r, k), n // 2, "<= 0.05"
    yield (
        "1 % of the rows weigh 20",
        "interval holds",
        lambda r: held(heavy_rows(r, 0.0), 0.0),
        n,
        ">= 0.94",
    )
    yield (
        "1 % of the rows weigh 20, just beyond the tolerance",
        "called fair",
        lambda r: heavy_rows(r, 0.0501).verdict == FAIR,
        n,
        "<= 0.05",
    )
    for rows in (3, 5):
        for known in (True, False):
            told = "with" if known else "without"
            yield (
                f"{rows} rows per person, {told} cluster",
                "interval holds",
                lambda r, m=rows, c=known: held(repeated_people(r, 0.0, m, known=c), 0.0),
                n,
                ">= 0.94" if known else "",
            )
    for k in (7, 14):
        for place, what in enumerate(("some p below 0.05", "some interval misses")):
            yield (
                f"impact table of {k} identical categories",
                what,
                lambda r, k=k, i=place: alike_categories(r, k)[i],
                n // 2,
                "<= 0.05",
            )
    for rates in ((0.9, 0.1), (0.95, 0.5)):
        truth = (rates[0] - rates[1]) / 2
        yield (
            f"selection rates {rates[0]} and {rates[1]}, random group sizes",
            "interval holds",
            lambda r, x=rates, t=truth: held(unequal_groups(r, x), t),
            n,
            ">= 0.94",
        )


def main() -> None:
    """Draws all cases and writes one row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    rows = []
    for place, (case, figure, draw, n, goal) in enumerate(cases(given.draws)):
        rng = np.random.default_rng(place)
        share = float(np.mean([draw(rng) for _ in range(n)]))
        rows.append({"case": case, "figure": figure, "share": share, "goal": goal, "draws": n})
        print(f"{case}: {figure} in {share:.3f} of {n} draws ({goal})", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).round(4).to_csv(given.out / "verdicts.csv", index=False)


if __name__ == "__main__":
    main()
