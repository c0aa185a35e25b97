"""Accuracy and unfairness of the default estimator, five seeds, beside plain and exactly fair ones.

Run with ``FAIRGRAD_DATA`` naming the folder of data sets that are not in the package:
``python benchmarks/estimator_quality.py adult compas crime german --out results/estimator.csv``.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS, Split
from fairgrad.sklearn import FairGradClassifier
from fairgrad_bench.datasets import load

MEASURES = ("equalized_odds", "equality_of_opportunity", "demographic_parity", "accuracy_parity")


def judge(split: Split, model: FairGradClassifier, measure: str) -> tuple[float, float]:
    """Test accuracy and test unfairness of one fit; `training_speed.py` measures times."""
    train, _, test = split
    model.fit(train.X, train.y, sensitive_features=train.s)
    predicted = model.predict(test.X)
    levels = fairness_levels(test.y, predicted, test.s, measure)
    return np.mean(predicted == test.y), levels.unfairness


def row(name: str, splits: list[Split], measure: str, **arguments: Any) -> dict[str, Any]:
    """The plain model, the default and the exactly fair one, means over the seeds."""
    found: dict[str, Any] = {"dataset": name, "measure": measure}
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"fairness_measure": None},
        "default": {"fairness_measure": measure},
        "exact": {"fairness_measure": measure, "epsilon": 0.0},
    }
    for kind, asked in kinds.items():
        models = [
            FairGradClassifier(random_state=seed, **asked, **arguments) for seed in PAPER_SEEDS
        ]
        results = [judge(split, m, measure) for split, m in zip(splits, models, strict=True)]
        means = np.mean(results, axis=0).round(4)
        keys = ("accuracy", "unfairness")
        found |= {f"{kind}_{key}": float(mean) for key, mean in zip(keys, means, strict=True)}
    return {**found, "seeds": len(PAPER_SEEDS)}


def main() -> None:
    """Prints accuracy / mean |F| on the test sets."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the warning about lost accuracy is what the table shows
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=["adult"])
    parser.add_argument("--nonlinear", action="store_true")
    parser.add_argument("--out", help="a CSV file to write")
    asked = parser.parse_args()
    deep = {"hidden_layer_sizes": (128, 64, 32)}
    rows = []
    for name in asked.datasets:
        data = load(name)
        splits = [data.split(seed=seed) for seed in PAPER_SEEDS]
        for measure in MEASURES:
            rows.append(row(name, splits, measure, **(deep if asked.nonlinear else {})))
            print(rows[-1], flush=True)
    if asked.out:
        pd.DataFrame(rows).to_csv(asked.out, index=False)


if __name__ == "__main__":
    main()
