"""Groups known for only some rows: do intervals hold, how wide are they, how fair do models get?

    FAIRGRAD_DATA=... python benchmarks/known.py coverage training [--out results]

*coverage*: a model's predictions for a table are the population. Each draw takes 10,000 of its rows
with replacement, hides the group of all but about 600, and audits the predictions in four ways: by
the rows of known group alone; with the most likely group instead of unknown ones (a hard proxy);
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
import time
import warnings
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from stranger_tables import admissions, credit

from fairgrad.audit import Audit
from fairgrad.audit.comparisons import compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.known import soft_counts
from fairgrad.audit.verdicts import level_limits
from fairgrad.groups import group_rows
from fairgrad.membership import Membership, MembershipModel
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = ("adult", "folktables", "admissions", "credit")
MEASURES = ["demographic_parity", "equalized_odds", "accuracy_parity"]
SHARES, MOST_ROWS = (0.05, 0.2), 30_000
TRAINED = (
    "table", "seed", "model", "measure", "known", "way",
    "accuracy", "unfairness", "largest", "seconds",
)  # fmt: skip
N_ROWS, N_KNOWN, N_FIRST, PART, ALPHA = 10_000, 600, 50, 50, 0.05
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


class Counted(NamedTuple):
    """The counts of an audit and what its measures compare, without its sentences: much faster."""

    view: Any
    comparisons: dict[str, Any]


def counted(y: Any, h: Any, s: Any, given: Any = None) -> Counted:
    """What `Audit` computes of predictions, with probabilities of the groups if they are given."""
    rows = group_rows(y, {"s": s})
    table = CountTable.from_rows(rows, h)
    if given is not None:
        membership = Membership.of(given)
        table, _ = soft_counts(table, rows, h, membership.read({"s": s}), membership)
    view = table.view("s")
    return Counted(view, {measure: compare(measure, view, (1,)) for measure in MEASURES})


def ways_to_audit(
    y: Any, h: Any, s: Any, known: Any, Z: Any, chance: Any, difference: float
) -> Iterator[tuple[str, Counted]]:
    """The predictions of a draw, audited in all ways."""
    rng, seen = np.random.default_rng(0), np.where(known, s, -1)
    model = MembershipModel(LogisticRegression(solver="newton-cholesky"), n_folds=3)
    found = model.fit_predict(Z, seen)
    likely = np.where(known, s, found.to_numpy().argmax(axis=1))
    yield "prediction-powered", counted(y, h, seen, found)
    yield "known rows alone", counted(y[known], h[known], s[known])
    yield "hard proxy", counted(y, h, likely)
    if chance is None:
        yield "prediction-powered, nonsense", counted(y, h, seen, rng.permutation(found))
    else:
        yield "given how likely", counted(y, h, seen, Membership(found, known_probability=chance))
        yield "sensitivity bound", counted(y, h, seen, Membership(found, difference=difference))


def same_as_audit(y: Any, h: Any, s: Any, known: Any) -> None:
    """Checks that an audit agrees with the counts of the benchmark."""
    seen = np.where(known, s, -1)
    p = np.random.default_rng(0).dirichlet(np.ones(s.max() + 1), len(s))
    audit = Audit(y, h, {"s": seen}, MEASURES, membership=p, min_group=0)
    comparisons = counted(y, h, seen, p).comparisons
    for finding in audit.findings:
        both = finding.comparison, comparisons[finding.measure]
        np.testing.assert_allclose(*(level_limits(one, ALPHA / 2) for one in both))


def unknown_shares(found: Counted, y: Any, h: Any, s: Any, known: Any) -> Any:
    """(G, L, L) estimated less true shares of the groups among rows of unknown group."""
    mass = found.view.mass
    true, unknown = np.zeros(mass.shape), np.zeros(mass.shape[1:])
    np.add.at(true, (s, y, h), 1.0)
    np.add.at(unknown, (y[~known], h[~known]), 1.0)
    return (mass - true) / np.maximum(unknown, 1.0)


class Population:
    """A model's predictions for a table, of which rows are drawn."""

    def __init__(self, name: str, table: Table) -> None:
        order = np.random.default_rng(0).permutation(len(table.y))
        learn, rest = order[: len(order) // 3], order[len(order) // 3 :]
        model = LogisticRegression(max_iter=300).fit(table.X[learn], table.y[learn])
        self.name, (values, codes) = name, np.unique(table.s, return_inverse=True)
        self.y, self.s = table.y[rest], codes[rest]
        self.h = model.predict(table.X[rest])
        components = PCA(min(12, table.X.shape[1]), random_state=0).fit_transform(table.X)[rest]
        self.Z = np.column_stack([components, self.y, self.h])
        self.values, self.truth = values, {}
        for measure, own in counted(self.y, self.h, self.s).comparisons.items():
            self.truth[measure] = own.names, own.map.levels(own.cells.value)
        rarer = 1 if len(values) > 2 else int(np.bincount(self.s).argmin())
        odds = np.where(self.s == rarer, 0.5, 1.0) * np.where(self.h == 1, 2.0, 1.0)
        self.odds = {"at random": np.ones(len(rest)), "not at random": odds}
        same_as_audit(*self.draw(np.random.default_rng(0), "at random")[:4])

    def draw(self, rng: Any, hidden: str) -> tuple[Any, ...]:
        """Labels, predictions, groups, whether they are known, features, and how likely that is."""
        rows, odds = rng.integers(len(self.y), size=N_ROWS), self.odds[hidden]
        chance = N_KNOWN / N_ROWS / odds.mean() * odds[rows]
        known = rng.random(N_ROWS) < chance
        return self.y[rows], self.h[rows], self.s[rows], known, self.Z[rows], chance

    @cached_property
    def difference(self) -> float:
        """By how much shares of groups among unknown rows differ if groups miss not at random."""
        rng, off = np.random.default_rng(1), []
        for _ in range(N_FIRST):
            *drawn, _ = self.draw(rng, "not at random")
            off.append(unknown_shares(next(ways_to_audit(*drawn, None, 0.0))[1], *drawn[:4]))
        return float(np.abs(np.mean(off, axis=0)).max())

    def coverage(self, hidden: str, part: int) -> list[dict[str, Any]]:
        """Sums over `PART` draws, by way to audit, measure and level."""
        rng, sums = np.random.default_rng([part, hidden == "at random"]), {}
        difference = 0.0 if hidden == "at random" else self.difference
        for _ in range(PART):
            *drawn, chance = self.draw(rng, hidden)
            given = None if hidden == "at random" else chance
            for way, found in ways_to_audit(*drawn, given, difference):
                for measure, own in found.comparisons.items():
                    low, high = level_limits(own, ALPHA / 2)
                    true = self.truth[measure][1]
                    bias = own.map.levels(own.cells.value) - true
                    told = np.array([(low <= true) & (true <= high), high - low, bias])
                    sums[way, measure] = sums.get((way, measure), 0.0) + told / PART
        rows = []
        for (way, measure), told in sums.items():
            for j, (level, true) in enumerate(zip(*self.truth[measure], strict=True)):
                start, group = level.rsplit("=", 1)
                who = (self.name, hidden, way, measure, f"{start}={self.values[int(group)]}")
                rows.append(
                    dict(zip(COLUMNS, (*who, PART, true, *told[:, j], difference), strict=True))
                )
        return [{"part": part, **row} for row in rows]


def coverage(options: Any) -> None:
    """All draws of all tables, in parts that are kept, and their means."""
    kept = options.out / "known_coverage.parts.csv"
    done = pd.read_csv(kept) if kept.exists() else pd.DataFrame()
    populations: dict[str, Population] = {}
    wanted = product(options.tables, range(options.draws // PART), ("at random", "not at random"))
    for name, part, hidden in wanted:
        if (
            len(done)
            and ((done[["table", "hidden", "part"]] == [name, hidden, part]).all(axis=1)).any()
        ):
            continue
        if name not in populations:
            populations[name] = Population(name, read(name, options.wheels))
        found = pd.DataFrame(populations[name].coverage(hidden, part))
        done = pd.concat([done, found], ignore_index=True)
        done.to_csv(kept, index=False)
    by = done.groupby(list(COLUMNS[:5]), sort=False)
    table = by[list(COLUMNS[6:])].mean().round(4)
    table.insert(0, "draws", by["draws"].sum())
    table.reset_index().to_csv(options.out / "known_coverage.csv", index=False)


def training(name: str, table: Table, seed: int) -> list[dict[str, Any]]:
    """Accuracy and unfairness on new rows, by model, measure, share of known groups and way."""
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table.y))[:MOST_ROWS]
    test, fit = order[: len(order) // 3], order[len(order) // 3 :]
    X, y, s = (part[fit] for part in table)
    for share in SHARES:
        known = rng.random(len(fit)) < share
        seen = np.where(known, s, None)
        found = MembershipModel().fit_predict(X, seen, y)
        likely = np.where(known, s, found.columns.to_numpy()[found.to_numpy().argmax(axis=1)])
        ways: dict[str, tuple[Any, ...]] = {
            "probabilities": (X, y, seen, found),
            "most likely groups": (X, y, likely, None),
            "known rows alone": (X[known], y[known], s[known], None),
        }
        if share == SHARES[0]:
            ways = {"all groups": (X, y, s, None), **ways}
        for (model, measure), (way, given) in product(product(MODELS, MEASURES), ways.items()):
            started = time.process_time()
            fitted = MODELS[model](measure).fit(
                *given[:2], sensitive_features=given[2], membership=given[3]
            )
            seconds = time.process_time() - started
            predicted = fitted.predict(table.X[test])
            audit = Audit(table.y[test], predicted, {"s": table.s[test]}, measure, min_group=0)
            finding = audit.findings[0]
            figures = audit.accuracy, finding.unfairness, np.nanmax(np.abs(finding.levels))
            shown = 1.0 if way == "all groups" else share
            who = (name, seed, model, measure, shown, way)
            rows.append(
                dict(zip(TRAINED, (*who, *np.round(figures, 4), round(seconds, 2)), strict=True))
            )
    return rows


MODELS = {
    "FairGradClassifier": lambda measure: FairGradClassifier(measure, random_state=0),
    "FairDecisionClassifier": lambda measure: FairDecisionClassifier(None, measure, random_state=0),
}


def main() -> None:
    """Runs the parts that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+", choices=["coverage", "training"])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wheels", type=Path, default=Path("wheels"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if "coverage" in options.parts:
        coverage(options)
    if "training" in options.parts:
        path = options.out / "known_training.csv"
        done = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["table", "seed"])
        for name, seed in product(options.tables, range(options.seeds)):
            if not ((done["table"] == name) & (done["seed"] == seed)).any():
                rows = training(name, read(name, options.wheels), seed)
                done = pd.concat([done, pd.DataFrame(rows)], ignore_index=True)
                done.to_csv(path, index=False)


if __name__ == "__main__":
    main()
