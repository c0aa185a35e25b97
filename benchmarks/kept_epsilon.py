"""Is epsilon kept on whole tables of any size, and is a larger epsilon never worse?

    python benchmarks/kept_epsilon.py [--tables law nursery] [--out results]

`FairGradClassifier` with its defaults is fitted to all rows of the tables of strangers.py, for five
epsilons, without and with the sensitive values as inputs, and judged on the same rows, because
epsilon is a promise about these. A fit keeps epsilon if no level exceeds it by more than 0.005. It
is useful if no single label for everybody is as accurate and as fair. Epsilons are in order if no
larger epsilon gives a model that is fairer by 0.003 and less accurate by 0.003.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from stranger_tables import TABLES, StrangerTable
from strangers import MARGIN, REACHED, figures

from fairgrad.files import write_whole
from fairgrad.sklearn import FairGradClassifier
from fairgrad.usefulness import FairnessWarning

EPSILONS = (0.0, 0.01, 0.02, 0.05, 0.1)
MEASURES = (
    "equalized_odds",
    "equality_of_opportunity",
    "demographic_parity",
    "accuracy_parity",
    "four_fifths_rule",
)


def fit(table: StrangerTable, measure: str, epsilon: float, *, aware: bool) -> dict[str, Any]:
    """The figures of one fit."""
    model = FairGradClassifier(
        measure,
        epsilon=epsilon,
        use_sensitive=aware,
        y_desirable=table.y_desirable,
        random_state=0,
        verbose=False,
    )
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table.X, table.y, sensitive_features=table.s)
    seconds = time.process_time() - started
    values = {"sensitive_features": table.s} if aware else {}
    accuracy, _, worst = figures(table, model.predict(table.X, **values), measure)
    constants = [
        figures(table, np.full(len(table.y), label), measure) for label in np.unique(table.y)
    ]
    return {
        "epsilon": epsilon,
        "accuracy": round(accuracy, 4),
        "worst": round(worst, 4),
        "kept": worst <= epsilon + REACHED,
        "useful": not any(a >= accuracy and w <= worst for a, _, w in constants),
        "warned": any(issubclass(w.category, FairnessWarning) for w in caught),
        "seconds": round(seconds, 2),
    }


def in_order(fits: list[dict[str, Any]]) -> bool:
    """Whether no larger epsilon is both fairer and less accurate."""
    return not any(
        larger["worst"] < smaller["worst"] - MARGIN
        and larger["accuracy"] < smaller["accuracy"] - MARGIN
        for smaller, larger in combinations(fits, 2)
    )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """By inputs: the number of fits, and the share of them that is as promised."""
    good = rows["kept"] & rows["useful"]
    rows = rows.assign(good=good, silent=~good & ~rows["warned"])
    shares = rows.groupby("inputs", sort=False).agg(
        fits=("kept", "size"),
        kept=("kept", "mean"),
        kept_and_useful=("good", "mean"),
        failed_without_warning=("silent", "mean"),
        epsilons_in_order=("in_order", "mean"),
    )
    return shares.round(3).reset_index()


def main() -> None:
    """Fits, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=[*TABLES], choices=[*TABLES])
    parser.add_argument("--data", type=Path, default=Path("build/strangers"))
    parser.add_argument("--out", type=Path, help="folder for kept_epsilon.csv and its summary")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name in asked.tables:
        table = TABLES[name](asked.data)
        for measure in MEASURES:
            for inputs in ("blind", "aware"):
                fits = [fit(table, measure, e, aware=inputs == "aware") for e in EPSILONS]
                unit = {"table": name, "rows": len(table.y), "measure": measure, "inputs": inputs}
                rows += [{**unit, **f, "in_order": in_order(fits)} for f in fits]
                shown = (f"{f['epsilon']:g}: {f['accuracy']}/{f['worst']}" for f in fits)
                print(name, measure, inputs, *shown, sep="  ", flush=True)
    table = pd.DataFrame(rows)
    print(summary(table).to_string(index=False))
    if asked.out:
        write_whole(asked.out / "kept_epsilon.csv", table.to_csv(index=False))
        write_whole(asked.out / "kept_epsilon_summary.csv", summary(table).to_csv(index=False))


if __name__ == "__main__":
    main()
