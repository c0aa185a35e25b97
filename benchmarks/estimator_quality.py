"""Accuracy and unfairness of the default estimator, five seeds, beside the plain model.

Adult in full; COMPAS, Crime and German as tables under 10,000 rows, where defaults are gentle.
Run with ``FAIRGRAD_DATA`` naming the folder of data sets that are not in the package.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
import torch

from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS, Split, load
from fairgrad.sklearn import FairGradClassifier

MEASURES = {
    "EOdds": "equalized_odds",
    "EOpp": "equality_of_opportunity",
    "DP": "demographic_parity",
    "AP": "accuracy_parity",
}


def judge(split: Split, model: FairGradClassifier, measure: str) -> tuple[float, float, float]:
    """Test accuracy, test unfairness and seconds of one fit."""
    train, _, test = split
    started = time.perf_counter()
    model.fit(train.X, train.y, sensitive_features=train.s)
    seconds = time.perf_counter() - started
    predicted = model.predict(test.X)
    levels = fairness_levels(test.y, predicted, test.s, measure)
    return np.mean(predicted == test.y), levels.unfairness, seconds


def row(name: str, splits: list[Split], label: str, measure: str, **arguments: Any) -> None:
    """One line: the fair and the plain model, mean over the seeds."""
    figures = []
    for kind in (measure, None):
        models = [FairGradClassifier(kind, random_state=seed, **arguments) for seed in PAPER_SEEDS]
        results = [judge(split, m, measure) for split, m in zip(splits, models, strict=True)]
        figures.append(np.mean(results, axis=0))
    (accuracy, unfairness, seconds), (plain_accuracy, plain_unfairness, plain_seconds) = figures
    print(
        f"{name:8s} {label:5s}  fair {accuracy:.4f} / {unfairness:.4f}   plain "
        f"{plain_accuracy:.4f} / {plain_unfairness:.4f}   {seconds:.2f} s, "
        f"{seconds / plain_seconds:.2f}x the plain fit"
    )


def main() -> None:
    """Prints accuracy / mean |F| on the test sets."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the warning about lost accuracy is what the table shows
    networks = {
        "linear": {},
        "nonlinear": {"hidden_layer_sizes": (128, 64, 32), "batch_norm": True},
    }
    chosen = networks["nonlinear" if "--nonlinear" in sys.argv else "linear"]
    for name in [a for a in sys.argv[1:] if not a.startswith("-")] or ["adult"]:
        data = load(name)
        splits = [data.split(seed=seed) for seed in PAPER_SEEDS]
        for label, measure in MEASURES.items():
            row(name, splits, label, measure, **chosen)


if __name__ == "__main__":
    main()
