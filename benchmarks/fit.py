"""What a fair fit costs, in times of scikit-learn's logistic regression.

Logistic regression, `FairGradClassifier(None)` (plain), one fair model (equalized odds, given its
fairness rate), the fair classifier as it comes, which may train several to choose from, and a
`Frontier` of 32 models are fitted in turns on Adult, COMPAS and German (standardized), on law
schools (five groups; as the table comes, and standardized, where logistic regression needs far
fewer steps) and on random tables. Times are processor times of one thread, medians; a ratio is the
median over the turns.
`fair_beyond_10ms` is the ratio of one fair model less 10 ms, which checks and the like take on any
table.

    python benchmarks/fit.py [adult] [compas] [german] [law] [random] [large] [grid] [--repeats 5]
        [--out results] [--data build/strangers]

"large" is a random table of 100,000 rows and 500 features; "grid" is the paper's grid of one
measure, 30 linear models of 50 epochs on Adult. Without names all but "large" are measured. With
--out the ratios are also written there, as fit_speed.csv, the grid as grid_speed.csv.
Law schools are read from a wheel, which is kept in the folder named by --data.
COMPAS must have been fetched (`fairgrad-bench data fetch compas`), or lie in the folder named by
FAIRGRAD_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from stranger_tables import law
from training_speed import paper_grid, pooled_adult

from fairgrad.files import write_whole
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairGradClassifier
from fairgrad.usefulness import FairnessWarning
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODELS = 32
RANDOM = (
    *((1_000, features) for features in (10, 100, 500)),
    *((10_000, features) for features in (10, 100, 500)),
    *((100_000, features) for features in (10, 100)),
)
LARGE = ((100_000, 500),)

MOST_NUMBERS = 2_000_000
"""Of tables that a frontier is fitted to; on larger ones it takes minutes."""


class FitTable(NamedTuple):
    """A table to fit models to."""

    name: str
    X: Any
    y: Any
    s: Any


def tables(sections: list[str], data: Path) -> Iterator[FitTable]:
    """The tables of the named sections, one after the other."""
    for name in ("adult", "compas", "german"):
        if name in sections:
            part = load(name).split(seed=10).train
            yield FitTable(name, part.X, part.y, part.s)
    if "law" in sections:
        students = law(data)
        yield FitTable("law", students.X, students.y, students.s)
        scaled = StandardScaler().fit_transform(students.X).astype(np.float32)
        yield FitTable("law, standardized", scaled, students.y, students.s)
    sizes = (RANDOM if "random" in sections else ()) + (LARGE if "large" in sections else ())
    for n, features in sizes:
        rng = np.random.default_rng(0)
        s = rng.integers(0, 2, n)
        X = rng.normal(size=(n, features)).astype(np.float32)
        X[:, 0] += 0.5 * s
        score = X[:, :5].sum(axis=1) + 2 * rng.normal(size=n)
        yield FitTable("random", X, (score > 0.5).astype(int), s)


def fits(table: FitTable) -> dict[str, Callable[[], Any]]:
    """What is measured."""
    _, X, y, s = table
    measure = "equalized_odds"

    def one() -> Any:
        model = FairGradClassifier(measure, fairness_rate=0.05, random_state=0)
        return model.fit(X, y, sensitive_features=s)

    def frontier() -> Any:
        model = Frontier(fairness_measure=measure, epsilons=MODELS, random_state=0)
        return model.fit(X, y, sensitive_features=s)

    tasks = {
        "logistic_regression": lambda: LogisticRegression(max_iter=1000).fit(X, y),
        "plain": lambda: FairGradClassifier(None, random_state=0).fit(X, y),
        "fair": one,
        "default": lambda: FairGradClassifier(measure, random_state=0).fit(
            X, y, sensitive_features=s
        ),
    }
    return tasks | ({"frontier": frontier} if X.size <= MOST_NUMBERS else {})


def in_turns(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Processor seconds of each task in each turn, after one turn that does not count."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(repeats + 1):
        for name, task in tasks.items():
            started = time.process_time()
            task()
            if turn:
                times[name].append(time.process_time() - started)
    return times


def measured(table: FitTable, repeats: int) -> dict[str, Any]:
    """A row of the results."""
    times = in_turns(fits(table), repeats)
    reference = times.pop("logistic_regression")
    row: dict[str, Any] = {"table": table.name, "rows": len(table.y), "features": table.X.shape[1]}
    row["logistic_regression_ms"] = round(median(reference) * 1e3, 1)
    row |= {f"{name}_ms": round(median(own) * 1e3, 1) for name, own in times.items()}
    ratios = {name: np.divide(own, reference) for name, own in times.items()}
    beyond = np.divide(np.array(times["fair"]) - 0.01, reference)
    row["fair_beyond_10ms"] = round(float(np.median(beyond)), 1)
    return row | {f"{name}_ratio": round(float(np.median(r)), 1) for name, r in ratios.items()}


def grid() -> float:
    """Processor seconds of 5 seeds x 3 decays x 2 batch sizes, equalized odds, 50 epochs each."""
    pooled = pooled_adult()
    started = time.process_time()
    for batch_size in (512, 64):
        paper_grid(*pooled, batch_size)
    return time.process_time() - started


def main() -> None:
    """Prints the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    sections = ["adult", "compas", "german", "law", "random", "large", "grid"]
    parser.add_argument("sections", nargs="*", help=f"some of {', '.join(sections)}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path("build/strangers"))
    parser.add_argument("--out", type=Path, help="folder to write fit_speed.csv into")
    options = parser.parse_args()
    chosen = options.sections or [name for name in sections if name != "large"]
    if unknown := set(chosen) - set(sections):
        parser.error(f"sections: expected some of {sections}, got {sorted(unknown)}.")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FairnessWarning)
    rows = []
    for table in tables(chosen, options.data):
        rows.append(measured(table, options.repeats))
        print(pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1), flush=True)
        if options.out:
            write_whole(options.out / "fit_speed.csv", pd.DataFrame(rows).to_csv(index=False))
    if "grid" in chosen:
        seconds = round(median(grid() for _ in range(3)), 1)
        print(f"The paper's grid, 30 linear models of 50 epochs: {seconds} s")
        if options.out:
            row = {"table": "adult", "models": 30, "epochs": 50, "processor_seconds": seconds}
            write_whole(options.out / "grid_speed.csv", pd.DataFrame([row]).to_csv(index=False))


if __name__ == "__main__":
    main()
