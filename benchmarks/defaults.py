"""Two defaults, judged on validation rows: the slack of small groups, and the steps of networks.

    python benchmarks/defaults.py slack     # forms of the slack, linear models
    python benchmarks/defaults.py schedule  # optimizers, learning rates and epochs of networks

Rows are a quarter of those that `strangers.py` fits its models to: its test rows are not touched.
Adult and COMPAS have the paper's validation rows. Writes results/defaults_slack.csv and
defaults_schedule.csv: means over two splits and two measures, with epsilon .05.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from stranger_tables import TABLES
from strangers import HIDDEN, split

from fairgrad import fairness_levels
from fairgrad.constraints import Constraints
from fairgrad.datasets import PAPER_SEEDS
from fairgrad.groups import group_rows
from fairgrad.sklearn import FairGradClassifier, classifier
from fairgrad.splitting import hold_out
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEASURES = ("equalized_odds", "demographic_parity")
SPLITS, MOST_ROWS = 2, 6_000
SMALL_GROUPS = ("loans", "marriage", "sqf", "law", "health")
OF_NETWORKS = ("adult", "compas", "law", "credit")
RESULTS = Path(__file__).parents[1] / "results"
RULE, SCHEDULE = Constraints.slacken_for, classifier.NETWORK


def slack_of(combine: Callable[[Any, Any], Any]) -> Callable[..., Constraints]:
    """The slack as a function of epsilon and of the standard error of each level."""

    def slacken_for(constraints: Constraints, rows: Any, epsilon: Any) -> Constraints:
        with patch("fairgrad.constraints.FEW_LEVELS", 10**9):  # one standard error, no multiple
            error = RULE(constraints, rows, 1e-12).upper - constraints.upper
        return constraints.slacken(combine(epsilon, error))

    return slacken_for


SLACKS = {
    "epsilon": slack_of(lambda epsilon, _: epsilon),
    "the larger of epsilon and 1 s.e.": slack_of(np.maximum),
    "the same, more with many levels (default)": RULE,
    "the larger of epsilon and 1.5 s.e.": slack_of(
        lambda epsilon, error: np.maximum(epsilon, 1.5 * error)
    ),
    "the larger of epsilon and 2 s.e.": slack_of(
        lambda epsilon, error: np.maximum(epsilon, 2 * error)
    ),
    "epsilon + 1 s.e.": slack_of(lambda epsilon, error: epsilon + error),
    "epsilon + 2 s.e.": slack_of(lambda epsilon, error: epsilon + 2 * error),
}
SCHEDULES = {
    "Adam .003, 20 epochs (default)": SCHEDULE,
    "Adam .001, 20 epochs": SCHEDULE._replace(learning_rate=0.001),
    "Adam .01, 20 epochs": SCHEDULE._replace(learning_rate=0.01),
    "Adam .003, 40 epochs": SCHEDULE._replace(epochs=40, least_steps=200, most_steps=1800),
    "SGD .15, 30 epochs": classifier.LINEAR,
}


def parts_of(name: str, seed: int) -> Iterator[tuple[Any, Any, Any]]:
    """Rows to fit and rows to judge by."""
    if name in TABLES:
        rows, _ = split(TABLES[name](Path("build/strangers")), seed)
        cell = group_rows(rows.y, rows.s).cell()
        for part in hold_out(cell, 0.25, seed):
            held = rows.take(part)
            yield held.X, held.y, held.group
        return
    for held in load(name).split(PAPER_SEEDS[seed])[:2]:
        yield held.X[:MOST_ROWS], held.y[:MOST_ROWS], held.s[:MOST_ROWS]


def judged(name: str, hidden: tuple[int, ...]) -> dict[str, float]:
    """Accuracy, mean and largest level on validation rows."""
    figures = []
    for seed in range(SPLITS):
        (X, y, s), (X_new, y_new, s_new) = parts_of(name, seed)
        for measure in MEASURES:
            model = FairGradClassifier(
                measure, hidden_layer_sizes=hidden, random_state=seed, verbose=False
            )
            predicted = model.fit(X, y, sensitive_features=s).predict(X_new)
            levels = fairness_levels(y_new, predicted, s_new, measure)
            accuracy = float(np.mean(predicted == y_new))
            figures.append((accuracy, levels.unfairness, float(np.nanmax(levels.gaps))))
    names = ("accuracy", "mean_abs_fairness", "max_abs_fairness")
    means = np.mean(figures, axis=0).round(4).tolist()
    return dict(zip(names, means, strict=True))


def main() -> None:
    """Runs one part."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["slack", "schedule"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    records = []
    if asked.part == "slack":
        for table in SMALL_GROUPS:
            for name, rule in SLACKS.items():
                Constraints.slacken_for = rule  # type: ignore[method-assign]  # for these fits
                records.append({"table": table, "slack": name, **judged(table, ())})
                print(*records[-1].values(), flush=True)
    else:
        for table in OF_NETWORKS:
            for name, classifier.NETWORK in SCHEDULES.items():
                records.append({"table": table, "schedule": name, **judged(table, HIDDEN)})
                print(*records[-1].values(), flush=True)
    pd.DataFrame(records).to_csv(asked.out / f"defaults_{asked.part}.csv", index=False)


if __name__ == "__main__":
    main()
