"""What of the protocol makes the paper's figures on Gaussian data: one change at a time.

Linear models, the paper's grid and choice, five seeds. A row is one change of the protocol; the
columns are accuracy and mean |F| on test rows by measure, the paper's figures in the last row.

    python benchmarks/gaussian_protocol.py --out results/gaussian_protocol.csv
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairgrad.datasets import PAPER_SEEDS, Split
from fairgrad.evaluate import fairness_levels
from fairgrad.files import write_whole
from fairgrad_bench.comparison import verdict
from fairgrad_bench.datasets.catalogue.gaussian import draw
from fairgrad_bench.methods import MethodTask, methods
from fairgrad_bench.paper import MEASURES, paper_results
from fairgrad_bench.plan import load_splits
from fairgrad_bench.running import one_thread
from fairgrad_bench.selection import fairest_of_accurate

MEASURED = ("accuracy_parity", "equalized_odds", "equality_of_opportunity")
CHANGES: dict[str, dict[str, Any]] = {
    "the paper's protocol": {},
    "20,000 rows": {"rows": 20_000},
    "10,000 rows": {"rows": 10_000},
    "5,000 rows": {"rows": 5_000},
    "learning rate 0.01": {"learning_rate": 0.01},
    "no clipping": {"clip_norm": math.inf},
    "features not standardised": {"raw": True},
    "the groups' names swapped": {"swapped": True},
    "two clipped multipliers, as 0.2.0": {"epsilon": 1e-9},
    "fairness rate 0.001": {"fairness_rate": 0.001},
    "fairness rate 0.0005": {"fairness_rate": 0.0005},
    "20,000 rows, fairness rate 0.0025": {"rows": 20_000, "fairness_rate": 0.0025},
}
"""What is changed, by how the table calls it."""


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = []
    with one_thread():
        for name, change in CHANGES.items():
            rows.append({"protocol": name, **figures(**change)})
            print(rows[-1], flush=True)
    rows.append({"protocol": "paper", **printed()})
    write_whole(options.out, pd.DataFrame(rows).to_csv(index=False))


def figures(
    rows: int = 100_000, raw: bool = False, swapped: bool = False, **settings: Any
) -> dict[str, Any]:
    """Accuracy, mean |F| and verdict by measure."""
    splits = load_splits(f"gaussian:rows={rows}", PAPER_SEEDS)
    own = {seed: changed(split, raw=raw, swapped=swapped) for seed, split in splits.items()}
    grid = product((64, 512), (0.0, 0.001, 0.01))
    combinations = tuple(
        {"batch_size": size, "weight_decay": decay, **settings} for size, decay in grid
    )
    found: dict[str, Any] = {}
    for measure in MEASURED:
        task = MethodTask(
            splits=own, model="linear", measure=measure, grid="paper", combinations=combinations
        )
        chosen = [best(task, seed, pool) for seed, pool in by_seed(task).items()]
        accuracy, unfairness = np.array(chosen).T
        mean = {
            "accuracy": round(accuracy.mean(), 4),
            "mean_abs_fairness": round(unfairness.mean(), 4),
            "mean_abs_fairness_std": round(unfairness.std(), 4),
        }
        short = MEASURES[measure]
        found |= {
            f"{short} accuracy": mean["accuracy"],
            f"{short} mean |F|": mean["mean_abs_fairness"],
            f"{short} verdict": verdict(mean, of_the_paper(measure)),
        }
    return found


def changed(split: Split, *, raw: bool, swapped: bool) -> Split:
    """A split whose features have another scale, or whose groups have each other's numbers."""
    points = draw(100_000, 0)[["x1", "x2"]]
    scale, offset = points.std().to_numpy(), points.mean().to_numpy()
    parts = []
    for part in split:
        X = part.X * scale + offset if raw else part.X
        s = 1 - part.s if swapped else part.s
        parts.append(replace(part, X=np.asarray(X, dtype=np.float32), s=s))
    return Split(*parts)


def by_seed(task: MethodTask) -> dict[int, list[Any]]:
    """The candidates of each seed."""
    pools: dict[int, list[Any]] = {}
    for candidate in methods()["fairgrad"].train(task):
        pools.setdefault(candidate.seed, []).append(candidate)
    return pools


def best(task: MethodTask, seed: int, pool: list[Any]) -> tuple[float, float]:
    """Test figures of the model that the paper's rule chooses on the validation rows."""
    split = task.splits[seed]
    judged = [judge(task, split.validation, one.validation) for one in pool]
    accuracy, unfairness = np.array(judged).T
    chosen = pool[fairest_of_accurate(accuracy, np.round(unfairness, 12))]
    return judge(task, split.test, chosen.test)


def judge(task: MethodTask, part: Any, predicted: Any) -> tuple[float, float]:
    """Accuracy and mean |F| of predictions."""
    levels = fairness_levels(
        part.y, predicted, part.s, task.measure, y_desirable=np.asarray(task.y_desirable)
    )
    return float(np.mean(predicted == part.y)), levels.unfairness


def of_the_paper(measure: str) -> dict[Any, Any]:
    """The paper's row of FairGrad."""
    keys = {"dataset": "gaussian", "model": "linear", "method": "fairgrad", "measure": measure}
    frame = paper_results()
    rows: list[dict[Any, Any]] = frame[(frame[list(keys)] == pd.Series(keys)).all(axis=1)].to_dict(
        orient="records"
    )
    return rows[0]


def printed() -> dict[str, Any]:
    """The paper's figures as a row of the table."""
    found: dict[str, Any] = {}
    for measure in MEASURED:
        row, short = of_the_paper(measure), MEASURES[measure]
        found |= {
            f"{short} accuracy": row["accuracy"],
            f"{short} mean |F|": row["mean_abs_fairness"],
        }
        found[f"{short} verdict"] = ""
    return found


if __name__ == "__main__":
    main()
