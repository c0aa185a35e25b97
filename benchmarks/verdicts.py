"""How often verdicts and intervals err where rows, groups or findings are not simple.

Every case is drawn again and again with a known truth. Half an hour on one core:

    python benchmarks/verdicts.py --out results
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from monitor import limits
from scipy.stats import binom

from fairgrad import Constraints, On
from fairgrad.audit import FAIR, UNFAIR, Audit, Candidacy, Certificate, ImpactTable, certify
from fairgrad.audit.certificate import look_share
from fairgrad.audit.scores import RankedScores
from fairgrad.audit.verdicts import FAIR_SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairgrad.groups import Groups

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


def categories(rng: np.random.Generator, rates: Any) -> tuple[bool, bool, float]:
    """Is the global p of an impact table below 0.05, some ratio surely lower than in truth?

    And the share of intervals of ratios that hold.
    """
    rates = np.asarray(rates)
    s, ratio = np.repeat(np.arange(len(rates)), 400), rates / rates.max()
    table = ImpactTable.from_decisions(rng.binomial(1, rates[s]), s, min_group=0)
    low, high = (table.frame[end].to_numpy() for end in ("ratio_low", "ratio_high"))
    held = float(((low <= ratio) & (ratio <= high)).mean())
    return table.p_value < 0.05, bool((high < ratio).any()), held


def unequal_groups(rng: np.random.Generator, rates: tuple[float, float]) -> Audit:
    """Very unfair rates, groups drawn at random."""
    s = rng.integers(2, size=1000)
    return audit_of((rng.random(1000) < np.where(s == 1, *rates)) * 1, s)


def two_outcomes(groups: Groups) -> Constraints:
    """A user's measure: how often label 1 less label 2 is predicted in one cell."""
    C = np.zeros((1, 9 * groups.n_groups))
    C[0, [3 * groups.n_groups, 6 * groups.n_groups]] = 1.0, -1.0
    return Constraints(np.zeros(1), C, by_label=True, names=("gap",), n_outcomes=3)


def multinomial_cell(rng: np.random.Generator) -> bool:
    """Two outcomes of one cell that are equally likely: does the interval of their gap hold 0?"""
    y = np.append(np.zeros(150, dtype=int), rng.integers(3, size=60))
    s = np.repeat([0, 1], [150, 60])
    found = Audit(y, rng.choice(3, size=len(y), p=[0.1, 0.45, 0.45]), s, measures=[two_outcomes])
    low, high = found.findings[0].level_intervals
    return bool(low[0] <= 0 <= high[0])


def auc_holds(rng: np.random.Generator, tails: str) -> bool:
    """31 positives and 3,000 negatives whose true AUC is 0.99."""
    far = {"normal": 2.326 * np.sqrt(2), "heavy": SHIFT}[tails]
    draw = rng.standard_normal if tails == "normal" else lambda n: rng.standard_t(2, n)
    score = np.append(draw(31) + far, draw(3000))
    order = np.argsort(score)
    ranked = RankedScores(score[order], order < 31)
    low, high = ranked.auc_interval(0.05)
    return bool(low <= AREA[tails] <= high)


def _areas() -> dict[str, float]:
    """The true areas of `auc_holds`, from many pairs."""
    rng, n = np.random.default_rng(0), 4_000_000
    heavy = rng.standard_t(2, n) + SHIFT > rng.standard_t(2, n)
    return {"normal": 0.99, "heavy": float(heavy.mean())}


SHIFT = 9.0
AREA = _areas()


def advised(rng: np.random.Generator, n_groups: int, needed: int) -> float:
    """Rows in all that an audit of fair groups of 200 advises, by those that are needed."""
    s = np.repeat(np.arange(n_groups), 200)
    (finding,) = audit_of(rng.binomial(1, 0.4, len(s)), s).findings
    more = finding.rows_needed
    return np.inf if more is None else (len(s) + sum(more.more.values())) / needed


def overlapping(rng: np.random.Generator, *, is_new: bool) -> bool:
    """Rows of three columns of four values each: are they refused as training rows?"""
    X = rng.integers(4, size=(2000, 6))
    fresh = rng.integers(4, size=(500, 6)) if is_new else X[:500]
    y, s = fresh[:, 0] > 1, fresh[:, 1] > 1
    try:
        certify(FirstColumn(), (fresh, y, s), fairness_measure="accuracy_parity", trained_on=X)
    except ValueError:
        return True
    return False


class FirstColumn:
    """A classifier that predicts by its first feature."""

    classes_ = np.array([False, True])

    def predict(self, X: Any) -> Any:
        """(N,) the predictions."""
        return X[:, 0] > 1


def looked_at(rng: np.random.Generator) -> bool:
    """A model just beyond the tolerance: does one of five looks at new rows certify it?"""
    for look in range(1, 6):
        s = rng.integers(2, size=2000)
        pred = (rng.random(2000) < np.where(s == 1, 0.5501, 0.4499)) * 1
        confidence = 1 - 0.05 * look_share(look)
        if Certificate(audit_of(pred, s, confidence=confidence), ONE).is_certified:
            return True
    return False


ONE = Candidacy()


def rows_ratio(level: float) -> float:
    """Rows that settle "unfair" in 80 % of draws, by those of the exact unconditional test.

    Two groups of one size. The test orders tables by the score statistic and takes the largest
    region whose probability is at most 5 % for all rates whose gap is at the tolerance.
    """
    audit, exact = (_least_rows(level, test) for test in (_audit_region, _exact_region))
    return audit / exact


def _least_rows(level: float, region: Callable[[int], Any]) -> int:
    """The fewest rows of each group with a power of 80 %, within 1 %."""
    low, high = 50, 2000
    while high - low > max(1, low // 100):
        m = (low + high) // 2
        gains = [binom.pmf(np.arange(m + 1), m, rate) for rate in (0.5 - level, 0.5 + level)]
        is_enough = gains[0] @ region(m) @ gains[1] >= 0.8
        low, high = (low, m) if is_enough else (m, high)
    return high


def _audit_region(m: int) -> Any:
    """(m + 1, m + 1) whether the audit calls this table unfair, the second group advantaged."""
    hits = np.stack(np.meshgrid(*[np.arange(m + 1.0)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    low, _ = limits(hits, np.full_like(hits, m), FAIR_SHARE * 0.05)
    return (low[:, 1] > 0.05).reshape(m + 1, m + 1)


def _exact_region(m: int) -> Any:
    """The same for the exact unconditional test at 5 %."""
    x, y = np.meshgrid(*[np.arange(m + 1) / m] * 2, indexing="ij")
    rates = np.linspace(0.0, 0.9, 91)  # of the first group; the second is selected 0.1 more often
    mean = (x + y) / 2
    spread = np.sqrt(np.maximum(mean * (1 - mean) - 0.0025, 1e-4) * 2 / m)
    order = np.argsort(-((y - x - 0.1) / spread), axis=None)
    tails = np.zeros((m + 1) ** 2)
    for rate in rates:
        chance = np.outer(*(binom.pmf(np.arange(m + 1), m, own) for own in (rate, rate + 0.1)))
        tails = np.maximum(tails, np.cumsum(chance.ravel()[order]))
    is_in = np.zeros((m + 1) ** 2, dtype=bool)
    is_in[order[tails <= 0.05]] = True
    return is_in.reshape(m + 1, m + 1)


def cases(n: int) -> Iterator[tuple[str, str, Callable[[np.random.Generator], Any], int, str]]:
    """What is tried: its name, the figure, one draw, how many of them, and the goal."""
    for k in (1, 4, 9):
        what = f"{k} attributes exactly at the tolerance"
        yield what, "called unfair", lambda r, k=k: several_findings(r, k), n, "<= 0.05"
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
        yield (
            f"{rows} rows per person, with cluster, just beyond the tolerance",
            "called fair",
            lambda r, m=rows: repeated_people(r, 0.0501, m, known=True).verdict == FAIR,
            n,
            "<= 0.05",
        )
    for k in (7, 14):
        for place, what in enumerate(("global p below 0.05", "some interval misses")):
            yield (
                f"impact table of {k} identical categories",
                what,
                lambda r, k=k, i=place: categories(r, [0.3] * k)[i],
                n,
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
    yield (
        "a user's measure of two outcomes of one cell",
        "interval holds",
        multinomial_cell,
        n,
        ">= 0.94",
    )
    for tails in ("normal", "heavy"):
        yield (
            f"AUC with 31 positives and 3,000 negatives, {tails} tails",
            "interval holds",
            lambda r, x=tails: auc_holds(r, x),
            n,
            ">= 0.94",
        )
    for k, needed in ((5, 5 * 1050), (12, 12 * 1500)):
        yield (
            f"{k} fair groups of 200 rows",
            "advice within a factor of 2",
            lambda r, k=k, m=needed: 0.5 <= advised(r, k, m) <= 2,
            n,
            ">= 0.5",
        )
    yield (
        "certificate on training rows",
        "refused",
        lambda r: overlapping(r, is_new=False),
        n,
        "1",
    )
    yield (
        "certificate on new rows, some equal to training rows",
        "refused",
        lambda r: overlapping(r, is_new=True),
        n,
        "0",
    )

    yield (
        "5 certificates of a model just beyond the tolerance, each on new rows",
        "certified at some look",
        looked_at,
        n,
        "<= 0.05",
    )
    for level in (0.08, 0.1):
        yield (
            f"level {level}: rows to call it unfair, by those of the exact test",
            "ratio",
            lambda _, x=level: rows_ratio(x),
            1,
            "<= 1.1",
        )
    yield (
        "impact table of 7 categories selected at 20 to 50 %",
        "interval holds",
        lambda r: categories(r, [0.2, 0.25, 0.3, 0.35, 0.4, 0.48, 0.5])[2],
        n,
        ">= 0.95",
    )


def main() -> None:
    """Draws all cases and writes one row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there")
    options = parser.parse_args()
    path = options.out / "verdicts.csv"
    known = pd.read_csv(path) if path.exists() and options.resume else pd.DataFrame()
    rows: list[dict[str, Any]] = known.to_dict(orient="records")
    path.parent.mkdir(parents=True, exist_ok=True)
    for place, (case, figure, draw, n, goal) in enumerate(cases(options.draws)):
        if place < len(rows):
            continue
        rng = np.random.default_rng(place)
        share = float(np.mean([draw(rng) for _ in range(n)]))
        rows.append({"case": case, "figure": figure, "value": share, "goal": goal, "draws": n})
        print(f"{case}: {figure} {share:.3f} of {n} draws ({goal})", flush=True)
        pd.DataFrame(rows).round(4).to_csv(path, index=False)


if __name__ == "__main__":
    main()
