"""How often is an unfair model certified? How often is a fair one? By simulation.

    python benchmarks/certificates.py [--draws 10000] [--out results]

A draw is one table of a user: a fifth of its rows are those that models are chosen by, a fifth is
fresh. Both are drawn as counts from known rates, so that it is known who is fair. Models are chosen
and judged by the library's own functions. Three worlds, tolerance 0.05, confidence 95 %:

- edge: all four models are unfair by a hair (largest |F| 0.0505, of the smallest group): the
  hardest case for the promise that at most 5 % of all draws certify an unfair model;
- frontier: largest |F| of 0.005, 0.03, 0.06 and 0.15, and the more unfair a model the more
  accurate;
- fair: all four models have a largest |F| of 0.01: how often is a model certified?

Predictions of the models are drawn independently of each other, which makes it harder: the best of
several independent figures is further from the truth than the best of similar ones.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit.certificate import best_candidate, passing
from fairgrad.audit.comparisons import AskedMeasure, compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.verdicts import FAIR, Finding
from fairgrad.files import write_whole
from fairgrad.groups import Groups

if TYPE_CHECKING:
    from fairgrad.groups import Floats

TOLERANCE, ALPHA, PART = 0.05, 0.05, 0.2
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
SHARES = {2: (0.6, 0.4), 5: (0.5, 0.2, 0.15, 0.1, 0.05)}
"""Of the groups."""
POSITIVE = 0.4
"""Share of label 1 in every group."""
RECALLS = (0.85, 0.75)
"""Of the two labels, over everyone."""
TOGETHER = 40
"""Draws that the audit looks at as one table."""
WORLDS = {
    "edge": (0.0505,) * 4,
    "frontier": (0.005, 0.03, 0.06, 0.15),
    "fair": (0.01,) * 4,
}
CASES = (("equalized_odds", 2), ("equalized_odds", 5), ("demographic_parity", 5))


@dataclass(frozen=True, eq=False)
class KnownModel:
    """A model whose rates are known.

    Attributes:
        recall: (G, L), or of each draw: the chance that a row of a group and label is predicted
            rightly.
        worst: its largest |F|.
    """

    recall: Floats
    worst: float

    @classmethod
    def of(cls, measure: str, shares: Floats, worst: float) -> KnownModel:
        """The smallest group is off by `worst`, the others make up for it.

        By equalized odds this is the level of label 1 in the smallest group; by demographic parity
        both recalls move so that its selection rate does.
        """
        others = 1.0 - shares[-1]
        moved = np.append(np.full(len(shares) - 1, -worst * shares[-1] / others), worst)
        by_selection = measure == "demographic_parity"
        sign = np.array([-1.0, 1.0]) if by_selection else np.array([0.0, 1.0])
        return cls(np.asarray(RECALLS) + moved[:, None] * sign, worst)

    def predicted(self, rows: Floats, rng: np.random.Generator) -> Floats:
        """(draws, G, L, L) rows by group, label and prediction, for (draws, G, L) rows."""
        right = rng.binomial(rows.astype(np.int64), self.recall).astype(np.float64)
        counts = np.empty((*rows.shape, 2))
        counts[..., 0, 0], counts[..., 1, 1] = right[..., 0], right[..., 1]
        counts[..., 0, 1] = rows[..., 0] - right[..., 0]
        counts[..., 1, 0] = rows[..., 1] - right[..., 1]
        return counts


def cells(draws: int, n_rows: int, shares: Floats, rng: np.random.Generator) -> Floats:
    """(draws, G, L) rows of every group and label, at random."""
    joint = np.outer(shares, [1.0 - POSITIVE, POSITIVE])
    counts: Floats = rng.multinomial(n_rows, joint.ravel(), size=draws).astype(np.float64)
    return counts.reshape(draws, *joint.shape)


def groups_of(rows: Floats) -> Groups:
    """Groups of (G, L) rows."""
    names = np.array([str(g) for g in range(len(rows))])
    labels = np.arange(rows.shape[1])
    return Groups(labels, ("s",), (names,), np.arange(len(rows))[:, None], rows.T.copy())


def finding(measure: str, counts: Floats) -> Finding:
    """What the audit finds in (G, L, L) counts."""
    table = CountTable(groups_of(counts.sum(axis=2)), counts, counts, counts)
    comparison = compare(measure, table, (1,))
    rule = AskedMeasure(measure, measure, (), TOLERANCE).rule(comparison)
    return Finding(measure, "s", table, comparison, rule, ALPHA)


def side_by_side(measure: str, counts: Floats) -> tuple[Floats, Floats]:
    """(draws,) the largest |F| of (draws, G, L, L) counts, and the upper end of its interval.

    The audit takes many draws at once as the labels of one table, of which each has a recall: the
    recalls of equalized odds, or, of demographic parity, label 1 among all rows of a group. Each
    level's interval holds by itself, so that others beside it change nothing. `check` compares
    with the verdicts of single draws.
    """
    if measure == "equalized_odds":
        total, right = counts.sum(axis=3), np.diagonal(counts, axis1=2, axis2=3)
    else:
        total, right = counts.sum(axis=(2, 3))[..., None], counts[..., 1].sum(axis=2)[..., None]
    draws, n_groups, n_rates = total.shape
    n_labels = draws * n_rates
    rows = np.zeros((n_groups, n_labels, n_labels))
    at = np.arange(n_labels)
    hits = right.transpose(1, 0, 2).reshape(n_groups, n_labels)
    rows[:, at, at] = hits
    rows[:, at, (at + 1) % n_labels] = total.transpose(1, 0, 2).reshape(n_groups, -1) - hits
    judged = finding("equalized_odds", rows)

    def largest(level: Floats) -> Floats:
        most: Floats = np.nanmax(level.reshape(draws, -1), axis=1)
        return most

    low, high = judged.level_intervals
    return largest(np.abs(judged.levels)), largest(np.maximum(high, -low))


def check(measure: str, counts: Floats) -> None:
    """Checks that draws judged together get the same verdicts as each draw by itself."""
    _, high = side_by_side(measure, counts)
    each = [finding(measure, draw).verdict == FAIR for draw in counts]
    if not np.array_equal(high <= TOLERANCE, each):
        raise AssertionError("draws judged together must get the verdicts of single draws")


def simulate(measure: str, n_groups: int, world: str, n_rows: int, draws: int) -> dict[str, Any]:
    """The shares of one row of the table."""
    shares, n_part = np.asarray(SHARES[n_groups]), round(PART * n_rows)
    models = [KnownModel.of(measure, shares, worst) for worst in WORLDS[world]]
    worst = np.array(WORLDS[world])
    rng = np.random.default_rng([n_rows, n_groups, len(measure), *map(ord, world)])
    chosen, chance, certified = [], [], []
    for start in range(0, draws, TOGETHER):
        n = min(TOGETHER, draws - start)
        rows, fresh = cells(n, n_part, shares, rng), cells(n, n_part, shares, rng)
        accuracy, chances = np.empty((len(models), n)), np.empty((len(models), n))
        for place, model in enumerate(models):
            counts = model.predicted(rows, rng)
            right = np.trace(counts, axis1=2, axis2=3).sum(axis=1)
            accuracy[place] = right / n_part + 0.1 * model.worst
            value, high = side_by_side(measure, counts)
            chances[place] = passing(TOLERANCE - value, high - value, 1.0, ALPHA)
        best = np.array([best_candidate(accuracy[:, i], chances[:, i]) for i in range(n)])
        recall = np.array([model.recall for model in models])[best]
        judged = KnownModel(recall, np.nan).predicted(fresh, rng)
        if not start:
            check(measure, judged[:20])
        chosen.append(worst[best])
        chance.append(chances[best, np.arange(n)])
        certified.append(side_by_side(measure, judged)[1] <= TOLERANCE)
    passed, unfair = np.concatenate(certified), np.concatenate(chosen) > TOLERANCE
    wrong = (passed & unfair).mean()
    return {
        "measure": measure,
        "groups": n_groups,
        "setting": world,
        "rows": n_rows,
        "fresh_rows": n_part,
        "draws": draws,
        "certified": passed.mean(),
        "unfair_certified": wrong,
        "unfair_share_of_certified": wrong / passed.mean() if passed.any() else np.nan,
        "certified_share_of_fair": passed[~unfair].mean() if (~unfair).any() else np.nan,
        "expected_to_pass": np.concatenate(chance).mean(),
    }


def main() -> None:
    """Prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--rows", type=int, nargs="*", default=[*ROWS])
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    for measure, n_groups in CASES:
        for world in WORLDS:
            for n_rows in asked.rows:
                rows.append(simulate(measure, n_groups, world, n_rows, asked.draws))
                print(
                    *(f"{v:.4f}" if isinstance(v, float) else v for v in rows[-1].values()),
                    flush=True,
                )
                if asked.out is not None:
                    table = pd.DataFrame(rows).to_csv(index=False, float_format="%.4f")
                    write_whole(asked.out / "certificates.csv", table)


if __name__ == "__main__":
    main()
