"""What fair decisions cost: seconds of a fit beside the estimator's own, and of a frontier of 32.

Processor seconds, medians of runs taken in turns, one thread, on the training rows of the paper's
first split. `plain` is the estimator fitted to the labels, `cells` the models of the cells,
`solver` the search for the multipliers, `fit` all of FairDecisionClassifier.fit, and `frontier` 32
epsilons, judged.

    python benchmarks/decisions.py [--data adult compas dutch] [--repeats 3] [--many]
        [--out results]

With --many the solver alone is timed on 36,000 made-up rows with 4, 20 and 40 cells. With --out the
table is also written there, as decisions.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

from fairgrad.datasets import PAPER_SEEDS
from fairgrad.decisions import DecisionProblem, judged_apart, solve
from fairgrad.frontier import Frontier
from fairgrad.groups import group_rows
from fairgrad.measures import MEASURES
from fairgrad.sklearn import FairDecisionClassifier
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.datasets import Split

ESTIMATORS = {
    "logistic regression": LogisticRegression(max_iter=500),
    "LightGBM": LGBMClassifier(n_estimators=200, num_leaves=15, n_jobs=1, verbose=-1),
}
ROWS = 36_000
CELLS = ((2, 2), (2, 10), (2, 20), (4, 10))
"""Labels and groups of the made-up rows."""


def in_turns(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The median processor seconds of each task."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.process_time()
            task()
            times[name].append(time.process_time() - started)
    return {name: median(taken) for name, taken in times.items()}


def costs(data: str, split: Split, measure: str, repeats: int) -> list[dict[str, Any]]:
    """One row per estimator."""
    (X, y, s), validation, _ = split
    records = []
    for name, estimator in ESTIMATORS.items():

        def fair(epsilon: float = 0.0, estimator: Any = estimator) -> FairDecisionClassifier:
            return FairDecisionClassifier(estimator, measure, epsilon, random_state=0)

        seconds = in_turns(
            {
                "plain": lambda item=estimator: item.fit(X, y),
                "cells": lambda make=fair: make(np.inf).fit(X, y, sensitive_features=s),
                "fit": lambda make=fair: make().fit(X, y, sensitive_features=s),
                "frontier": lambda make=fair: Frontier(make(), epsilons=32, random_state=0).fit(
                    X, y, sensitive_features=s, validation=validation
                ),
            },
            repeats,
        )
        solver = seconds["fit"] - seconds["cells"]
        row = {"data": data, "measure": measure, "estimator": name, **seconds, "solver": solver}
        records.append({**row, "cells / plain": seconds["cells"] / seconds["plain"]})
    return records


def made_up(n_labels: int, n_groups: int) -> DecisionProblem:
    """Rows whose groups differ, and probabilities of a regression on the cells."""
    rng = np.random.default_rng(0)
    s = rng.choice(n_groups, ROWS, p=rng.dirichlet(np.full(n_groups, 3.0)))
    X = rng.normal(size=(ROWS, 10)) + 0.5 * rng.normal(size=(n_groups, 10))[s]
    scores = X @ rng.normal(size=(10, n_labels)) + 2 * rng.gumbel(size=(ROWS, n_labels))
    y = scores.argmax(1)
    rows = group_rows(y, s)
    model = LogisticRegression(max_iter=200).fit(X, y * n_groups + s)
    probability = np.zeros((n_labels * n_groups, ROWS))
    probability[model.classes_] = model.predict_proba(X).T
    shaped = probability.reshape(n_labels, n_groups, ROWS)
    return DecisionProblem(judged_apart("equalized_odds", rows), [shaped])


def many_cells(repeats: int) -> list[dict[str, Any]]:
    """The solver alone, equalized odds."""
    records = []
    for n_labels, n_groups in CELLS:
        problem = made_up(n_labels, n_groups)
        plain = problem.decide(np.zeros(len(problem.lower)))
        seconds = in_turns({"solver": lambda item=problem: solve(item)}, repeats)
        decision = solve(problem)
        records.append(
            {
                "data": f"{ROWS} rows, {n_labels} labels, {n_groups} groups",
                **seconds,
                "worst level of the plain model": float(np.abs(plain.levels).max()),
                "worst level": float(np.abs(decision.levels).max()),
                "beyond the bounds": decision.beyond,
            }
        )
    return records


def main() -> None:
    """Runs the requested benchmarks, prints and writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["adult"])
    parser.add_argument("--measures", nargs="*", default=["equalized_odds"], choices=[*MEASURES])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.filterwarnings(
        "ignore", message="The bounds are not kept|Every row is predicted|X does not have valid"
    )
    if arguments.many:
        records = many_cells(arguments.repeats)
    else:
        records = [
            row
            for data in arguments.data
            for measure in arguments.measures
            for row in costs(data, load(data).split(PAPER_SEEDS[0]), measure, arguments.repeats)
        ]
    table = pd.DataFrame(records)
    print(table.round(4).to_string(index=False))
    if arguments.out is not None:
        name = "decisions_many.csv" if arguments.many else "decisions.csv"
        table.to_csv(arguments.out / name, index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
