"""Measures of what is predicted, on tables with many labels: plain and fair, five seeds.

`law`: grades of the first year in quarters, by race (5 groups). `occupation`: Adult's occupations
in six kinds, by sex. `nursery`: four ranks of applications, by the parents' occupation (3 groups).
Models do not see the sensitive values. A fifth of the rows is for the test; nothing is chosen by
them. `gradient` is FairGradClassifier, a linear model, and `decision` FairDecisionClassifier around
logistic regression, both asked for exact fairness (epsilon 0), and else with their defaults.
Unfairness is the mean of |F| on the test rows, and `worst` the largest gap; `ratio` is the smallest
selection rate of the desirable labels over the largest.

    python benchmarks/many_labels.py [--data FOLDER] [--seeds 5] [--out results] [--records FILE]

With a file of records an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from stranger_tables import StrangerTable, law_quarters, nursery

from fairgrad import fairness_levels
from fairgrad.datasets import load
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.splitting import hold_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MEASURES = ("demographic_parity", "equalized_odds_all", "four_fifths_rule")


def occupation(_: Path) -> StrangerTable:
    """Census data: the kind of occupation, by sex (2 groups)."""
    people = load("adult")
    own = people.frame["occupation"].astype(str).map(KINDS).fillna("manual")
    features = pd.get_dummies(people.frame.drop(columns=["occupation", "relationship", "fnlwgt"]))
    return StrangerTable.of(features, own, sex=people.sensitive["sex"].astype(str))


KINDS = {
    "Exec-managerial": "managers",
    "Prof-specialty": "professionals",
    "Tech-support": "professionals",
    "Adm-clerical": "clerks",
    "Sales": "sales",
    "Other-service": "services",
    "Priv-house-serv": "services",
    "Protective-serv": "services",
}
TABLES: dict[str, tuple[Callable[[Path], StrangerTable], tuple[str, ...]]] = {
    "law": (law_quarters, ("third", "fourth")),
    "nursery": (nursery, ("priority", "very_recom")),
    "occupation": (occupation, ("managers", "professionals")),
}
"""Each with its desirable labels."""


PLACES = {name: place for place, name in enumerate([*TABLES, *MEASURES])}


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "gradient": lambda measure, desirable: FairGradClassifier(
        measure, epsilon=0.0, y_desirable=desirable, random_state=0
    ),
    "decision": lambda measure, desirable: FairDecisionClassifier(
        None, measure, y_desirable=desirable
    ),
}


def figures(table: StrangerTable, predicted: Any, measure: str, desirable: Any) -> dict[str, float]:
    """Accuracy and fairness of predictions by one measure."""
    levels = fairness_levels(table.y, predicted, table.s, measure, y_desirable=desirable)
    chosen = pd.Series(np.isin(predicted, desirable)).groupby(table.group).mean()
    return {
        "accuracy": float((predicted == table.y).mean()),
        "unfairness": levels.unfairness,
        "worst": float(np.nanmax(levels.gaps)),
        "ratio": float(chosen.min() / chosen.max()) if chosen.max() > 0 else np.nan,
    }


def run(
    name: str, table: StrangerTable, seed: int, method: str, measure: str | None
) -> list[dict[str, Any]]:
    """One model on one split; a plain one is judged by all measures."""
    label = np.unique(table.y, return_inverse=True)[1]
    group = np.unique(table.group, return_inverse=True)[1]
    training, test = hold_out(label * (group.max() + 1) + group, 0.2, seed)
    train, held = table.take(training), table.take(test)
    desirable = TABLES[name][1]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of bounds that are not quite kept
        model = METHODS[method](measure, desirable)
        model.fit(train.X, train.y, sensitive_features=train.s)
    seconds = time.process_time() - began
    predicted = model.predict(held.X)
    about = {"table": name, "method": method, "model": "plain" if measure is None else "fair"}
    return [
        {**about, "measure": judged, "seed": seed, "seconds": seconds}
        | figures(held, predicted, judged, desirable)
        for judged in (MEASURES if measure is None else (measure,))
    ]


def run_all(
    data: Path, tables: Sequence[str], methods: Sequence[str], seeds: int, file: Path | None
) -> pd.DataFrame:
    """All models that are not among the records yet, and those that are."""
    every = pd.read_csv(file).to_dict("records") if file is not None and file.exists() else []
    known = {(r["table"], r["seed"], r["method"], r["model"], r["measure"]) for r in every}
    for method, name in product(methods, tables):
        table = TABLES[name][0](data)
        for seed, measure in product(range(seeds), (None, *MEASURES)):
            kind = "plain" if measure is None else "fair"
            if (name, seed, method, kind, measure or MEASURES[0]) in known:
                continue
            every += run(name, table, seed, method, measure)
            print(f"{name}, seed {seed}, {method}, {measure}: {every[-1]}", flush=True)
            if file is not None:
                pd.DataFrame(every).to_csv(file, index=False)
    return pd.DataFrame(every)


def main() -> None:
    """Prints the means over the seeds, and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path.home() / ".cache" / "fairgrad-wheels")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--records", type=Path)
    options = parser.parse_args()
    every = run_all(options.data, options.tables, options.methods, options.seeds, options.records)
    keys = ["table", "measure", "method", "model"]
    every = every[
        every.groupby(keys)["seed"].transform("size") == options.seeds
    ]  # the finished ones
    means = every.drop(columns="seed").groupby(keys, sort=False).mean()
    deviation = every.groupby(keys, sort=False)[["accuracy", "unfairness"]].std(ddof=0)
    shown = means.join(deviation.add_suffix("_std")).reset_index()
    shown = shown.sort_values(keys[:2], key=lambda part: part.map(PLACES), kind="stable")
    shown["seconds"] = shown["seconds"].round(1)
    shown = shown.round(4)
    print(shown.to_string(index=False))
    if options.out is not None:
        shown.to_csv(options.out / "many_labels.csv", index=False)


if __name__ == "__main__":
    main()
