"""Groups known for only some rows: do intervals hold, how wide are they, how fair do models get?

    FAIRGRAD_DATA=... python benchmarks/known.py coverage training [--out results]

*coverage*: a model's predictions for a table are the population. Each draw takes 10,000 of its rows
with replacement, hides the group of all but about 600, and audits the predictions in four ways: by
the rows of known group alone; with the most likely group in place of unknown ones (a hard proxy);
prediction-powered, with a cross-fitted model of the groups; and prediction-powered with nonsense,
the probabilities of other rows. The true level is that of the whole table. Groups are hidden at
random, or not: a group's rows then are known half as often, and those predicted 1 twice as often.
"Given how likely" has the true chances as weights. The difference that the sensitivity bound needs
is measured in the first draws.

*training*: classifiers trained with all groups, with the probabilities of a model of the groups for
all but a share of them, with the most likely groups, and on the rows of known group alone, judged
on new rows whose groups are all known. Both parts are resumed if they were interrupted.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from stranger_tables import admissions, credit

from fairgrad.audit import Audit
from fairgrad.audit.verdicts import level_limits
from fairgrad.membership import Membership, MembershipModel
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = ("adult", "folktables", "admissions", "credit")
MEASURES = ["demographic_parity", "equalized_odds", "accuracy_parity"]
N_ROWS, N_KNOWN, N_FIRST, ALPHA = 10_000, 600, 50, 0.05
COLUMNS = (
    "table", "hidden", "way", "measure", "level", "draws",
    "truth", "coverage", "width", "bias", "difference",
)  # fmt: skip


class Table(NamedTuple):
    """Features as numbers, labels 0 and 1, and one sensitive value per row."""

    X: Any
    y: Any
    s: Any


def read(name: str, wheels: Path) -> Table:
    """One of the tables; columns of texts become indicators, and all are scaled."""
    if name in {"adult", "folktables"}:
        data: Any = load(name)
        label = data.label
        y = (label == np.unique(label)[-1]).to_numpy().astype(int)
        frame, s = pd.get_dummies(data.frame), data.sensitive.iloc[:, 0]
    else:
        own = {"admissions": admissions, "credit": credit}[name](wheels)
        frame, y, s = pd.DataFrame(own.X), own.y, own.s.iloc[:, 0]
        s = s.replace({"4": "3"})  # of education: other than university, too few by themselves
    X = StandardScaler().fit_transform(frame.to_numpy(dtype=np.float64))
    return Table(X, y, s.astype(str).to_numpy(dtype=object))


def audits(
    y: Any, h: Any, s: Any, known: Any, Z: Any, chance: Any, difference: float
) -> Iterator[tuple[str, Audit]]:
    """The predictions of a draw, audited in all ways."""
    rng, seen = np.random.default_rng(0), np.where(known, s, -1)
    estimator = LogisticRegression(max_iter=200)
    found = MembershipModel(estimator).fit_predict(Z, seen)
    likely = np.where(known, s, found.to_numpy().argmax(axis=1))
    options: dict[str, Any] = {"measures": MEASURES, "tolerance": 1.0, "min_group": 0}
    nonsense = found.iloc[rng.permutation(len(found))]
    yield "prediction-powered", Audit(y, h, {"s": seen}, membership=found, **options)
    yield "known rows alone", Audit(y[known], h[known], {"s": s[known]}, **options)
    yield "hard proxy", Audit(y, h, {"s": likely}, **options)
    if chance is None:
        powered = Audit(y, h, {"s": seen}, membership=nonsense, **options)
        yield "prediction-powered, nonsense", powered
    else:
        given = Membership(found, known_probability=chance)
        yield "given how likely", Audit(y, h, {"s": seen}, membership=given, **options)
        bound = Membership(found, difference=difference)
        yield "sensitivity bound", Audit(y, h, {"s": seen}, membership=bound, **options)


def unknown_shares(audit: Audit, y: Any, h: Any, s: Any, known: Any) -> Any:
    """(G, L, L) estimated less true shares of the groups among rows of unknown group."""
    mass = audit.views["s"].mass
    true, unknown = np.zeros(mass.shape), np.zeros(mass.shape[1:])
    np.add.at(true, (s, y, h), 1.0)
    np.add.at(unknown, (y[~known], h[~known]), 1.0)
    return (mass - true) / np.maximum(unknown, 1.0)


def coverage(name: str, table: Table, n_draws: int) -> list[dict[str, Any]]:
    """How often intervals have the true level, by how groups are hidden, way, measure and level."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(table.y))
    learn, rest = order[: len(order) // 3], order[len(order) // 3 :]
    h_all = LogisticRegression(max_iter=300).fit(table.X[learn], table.y[learn]).predict(table.X)
    components = PCA(min(12, table.X.shape[1])).fit_transform(table.X)
    values, codes = np.unique(table.s, return_inverse=True)
    y, h, s = table.y[rest], h_all[rest], codes[rest]
    Z = np.column_stack([components[rest], y, h])
    whole = Audit(y, h, {"s": s}, measures=MEASURES, min_group=0)
    truth = {finding.measure: finding for finding in whole.findings}
    rarer = 1 if len(values) > 2 else int(np.bincount(s).argmin())
    rows: list[dict[str, Any]] = []

    def draw(odds: Any) -> tuple[Any, ...]:
        drawn = rng.integers(len(y), size=N_ROWS)
        chance = N_KNOWN / N_ROWS / odds.mean() * odds[drawn]
        return y[drawn], h[drawn], s[drawn], rng.random(N_ROWS) < chance, Z[drawn], chance

    for hidden in ("at random", "not at random"):
        odds, difference = np.ones(len(y)), 0.0
        if hidden != "at random":
            odds = np.where(s == rarer, 0.5, 1.0) * np.where(h == 1, 2.0, 1.0)
            first = [draw(odds)[:5] for _ in range(N_FIRST)]
            off = [unknown_shares(next(audits(*one, None, 0.0))[1], *one[:4]) for one in first]
            difference = float(np.abs(np.mean(off, axis=0)).max())
        sums: dict[Any, Any] = {}
        for _ in range(n_draws):
            *drawn, chance = draw(odds)
            for way, audit in audits(*drawn, None if hidden == "at random" else chance, difference):
                for finding in audit.findings:
                    low, high = level_limits(finding.comparison, ALPHA / 2)
                    true = truth[finding.measure].levels
                    if len(true) == len(low):  # a group may have no known row
                        told = [(low <= true) & (true <= high), high - low, finding.levels - true]
                        key = way, finding.measure
                        sums[key] = sums.get(key, 0.0) + np.array([*told, np.ones(len(low))])
        for (way, measure), told in sums.items():
            for j, level in enumerate(truth[measure].comparison.names):
                held, width, bias = told[:3, j] / told[3, j]
                found = (name, hidden, way, measure, _named(level, values), int(told[3, j]))
                figures = (truth[measure].levels[j], held, width, bias, difference)
                rows.append(dict(zip(COLUMNS, (*found, *np.round(figures, 4)), strict=True)))
    return rows


def _named(level: str, values: Any) -> str:
    """The name of a level, with the group's value in place of its number."""
    start, number = level.rsplit("=", 1)
    return f"{start}={values[int(number)]}"


def main() -> None:
    """Runs the parts that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+", choices=["coverage", "training"])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--wheels", type=Path, default=Path("wheels"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for part in options.parts:
        path = options.out / f"known_{part}.csv"
        done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["table"])
        for name in options.tables:
            if name in set(done["table"]):
                continue
            table = read(name, options.wheels)
            rows = coverage(name, table, options.draws)
            done = pd.concat([done, pd.DataFrame(rows)], ignore_index=True)
            done.to_csv(path, index=False)


if __name__ == "__main__":
    main()
