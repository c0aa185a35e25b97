"""Fair boosting beside plain LightGBM and fairlearn's methods on the same trees.

Test accuracy / mean |F| and processor seconds per fit (one thread), on the paper's splits; ratios
are to plain LightGBM with the same trees, fitted in turn.

    python benchmarks/boosting.py quality [--data adult compas dutch folktables] [--seeds 5]
    python benchmarks/boosting.py negative  # other rules for rows of negative or small weight
    python benchmarks/boosting.py growth    # rounds, rows and groups
    python benchmarks/boosting.py rate      # the automatic rate, chosen on validation rows
    python benchmarks/boosting.py price     # is the price of fairness stated, and what is a fit?

They write results/boosting.csv, boosting_negative.csv, boosting_growth.csv, boosting_rate.csv and
boosting_price.csv, with --out into another folder. `fairgbm.py` adds the rows of FairGBM.
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
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
from lightgbm import LGBMClassifier
from stranger_tables import TABLES, law

import fairgrad.boosting.objective
from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.splitting import hold_out
from fairgrad.xgboost import FairGradXGBClassifier
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.datasets import Split

COMMON = {"n_jobs": 1, "verbose": -1, "random_state": 0}
TREES = {**COMMON, "n_estimators": 200, "num_leaves": 31}
SMOOTH = {
    **COMMON,
    "n_estimators": 400,
    "num_leaves": 15,
    "min_child_samples": 100,
    "colsample_bytree": 0.3,
}
"""Trees that fit less of the training rows' noise, chosen on Adult's validation rows."""

RESULTS = Path(__file__).parents[1] / "results"
KEYS = ["dataset", "measure", "method"]
MOMENTS = {"equalized_odds": EqualizedOdds, "demographic_parity": DemographicParity}
PLAIN, PLAIN_SMOOTH = "plain LightGBM", "plain, smooth trees"
Row = tuple[float, float, float]


def ours(trees: dict[str, Any], **settings: Any) -> Callable[[Split, str], Any]:
    """Fits our estimator, gives the test predictions."""

    def run(split: Split, measure: str) -> Any:
        train, _, test = split
        model = FairGradLGBMClassifier(measure, epsilon=0.0, **settings, **trees)
        model.fit(train.X, train.y, sensitive_features=train.s)
        return lambda: model.predict(test.X)

    return run


def plain(trees: dict[str, Any]) -> Callable[[Split, str], Any]:
    """Fits LightGBM's classifier."""

    def run(split: Split, _: str) -> Any:
        model = LGBMClassifier(**trees).fit(split.train.X, split.train.y)
        return lambda: model.predict(split.test.X)

    return run


def reduction(split: Split, measure: str) -> Any:
    """Fits fairlearn's ExponentiatedGradient: many boosted models and a lottery among them."""
    train, _, test = split
    model = ExponentiatedGradient(LGBMClassifier(**TREES), MOMENTS[measure]())
    model.fit(train.X, train.y, sensitive_features=train.s)
    return lambda: np.asarray(model.predict(test.X, random_state=0))


def threshold(split: Split, measure: str) -> Any:
    """Fits fairlearn's ThresholdOptimizer, which sees the sensitive value of new rows."""
    train, _, test = split
    model = ThresholdOptimizer(
        estimator=LGBMClassifier(**TREES), constraints=measure, predict_method="predict_proba"
    )
    model.fit(train.X, train.y, sensitive_features=train.s)
    return lambda: np.asarray(model.predict(test.X, sensitive_features=test.s, random_state=0))


METHODS: dict[str, Callable[[Split, str], Any]] = {
    PLAIN: plain(TREES),
    PLAIN_SMOOTH: plain(SMOOTH),
    "fairgrad": ours(TREES),
    "fairgrad, smooth trees": ours(SMOOTH),
    "ThresholdOptimizer (needs s)": threshold,
    "ExponentiatedGradient": reduction,
}


def judge(method: Callable[[Split, str], Any], split: Split, measure: str) -> Row:
    """Test accuracy, test unfairness, seconds of the fit."""
    started = time.process_time()
    predict = method(split, measure)
    seconds = time.process_time() - started
    predicted = predict()
    test = split.test
    levels = fairness_levels(test.y, predicted, test.s, measure)
    return float(np.mean(predicted == test.y)), levels.unfairness, seconds


def summary(data: str, measure: str, name: str, rows: list[Row], plain_rows: list[Row]) -> Any:
    """Means and deviations over the seeds as one row of the table, and prints it."""
    (accuracy, unfairness, seconds), spread = np.mean(rows, axis=0), np.std(rows, axis=0)
    ratio = seconds / np.mean(plain_rows, axis=0)[2]
    print(
        f"  {name:30s} {accuracy:.4f} / {unfairness:.4f}   {seconds:6.2f} s  {ratio:6.2f}x plain",
        flush=True,
    )
    return {
        "dataset": data,
        "measure": measure,
        "method": name,
        "accuracy": round(accuracy, 4),
        "accuracy_std": round(spread[0], 4),
        "mean_abs_fairness": round(unfairness, 4),
        "mean_abs_fairness_std": round(spread[1], 4),
        "seconds_ratio_to_plain": round(ratio, 2),
        "seeds": len(rows),
    }


def keep(records: list[dict[str, Any]], path: Path, keys: list[str]) -> None:
    """Writes rows to a table, in the place of earlier ones of the same keys."""
    table = pd.DataFrame(records)
    if path.exists():
        before = pd.read_csv(path)
        table = pd.concat([before, table]).drop_duplicates(keys, keep="last")
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)


def quality(arguments: argparse.Namespace) -> None:
    """The table of methods, seeds in the outer loop so that methods are timed in turn."""
    # The plain ones stay: they are what times are compared with.
    names = [name for name in METHODS if name not in arguments.without]
    for data in arguments.data:
        dataset = load(data)
        splits = [dataset.split(seed=seed) for seed in PAPER_SEEDS[: arguments.seeds]]
        for measure in MOMENTS:
            print(f"\n{data}, {measure}: test accuracy / mean |F|, {len(splits)} seeds")
            rows: dict[str, list[Row]] = {name: [] for name in names}
            for split in splits:
                for name in names:
                    rows[name].append(judge(METHODS[name], split, measure))
            records = [
                summary(
                    data,
                    measure,
                    name,
                    rows[name],
                    rows[PLAIN_SMOOTH if "smooth" in name else PLAIN],
                )
                for name in names
            ]
            keep(records, arguments.out / "boosting.csv", KEYS)


def negative(arguments: argparse.Namespace) -> None:
    """What other rules for rows of negative or small weight would do, in the same fits."""
    objective = fairgrad.boosting.objective
    gradients, weigh = objective.log_loss_gradients, objective.weigh
    rules: dict[str, tuple[Any, Any]] = {
        "-log(1 - p), max(|w|, 1) h: the rule": (gradients, weigh),
        "w log p, max(|w|, 1) h": (
            _without_opposing(gradients),
            _with_hessian(_floor_1, sign=True),
        ),
        "w log p, |w| h": (_without_opposing(gradients), _with_hessian(np.abs, sign=True)),
        "-log(1 - p), |w| h": (gradients, _with_hessian(np.abs)),
        "-log(1 - p), h not weighted": (gradients, _with_hessian(np.ones_like)),
    }
    splits = [load("adult").split(seed=seed) for seed in PAPER_SEEDS[: arguments.seeds]]
    records = []
    for measure in MOMENTS:
        for rate in (0.1, 0.2):
            print(f"\nadult, {measure}, fairness rate {rate}")
            for name, (objective.log_loss_gradients, objective.weigh) in rules.items():
                method = ours(SMOOTH, fairness_rate=rate)
                rows = [judge(method, split, measure) for split in splits]
                row = summary("adult", measure, name, rows, rows)
                records.append({**row, "fairness_rate": rate})
    table = pd.DataFrame(records).rename(columns={"method": "rule"})
    table.drop(columns="seconds_ratio_to_plain").to_csv(
        arguments.out / "boosting_negative.csv", index=False
    )
    objective.log_loss_gradients, objective.weigh = gradients, weigh


def _floor_1(weight: Any) -> Any:
    return np.maximum(np.abs(weight), 1.0)


def _without_opposing(gradients: Callable[..., Any]) -> Callable[..., Any]:
    return lambda scores, label, _: gradients(scores, label)


def _with_hessian(size: Callable[[Any], Any], *, sign: bool = False) -> Callable[..., Any]:
    def weigh(gradient: Any, hessian: Any, weight: Any, loss_weight: Any = 1.0) -> Any:
        factor = weight if sign else np.abs(weight)
        return loss_weight * factor * gradient, loss_weight * size(weight) * hessian

    return weigh


def growth(arguments: argparse.Namespace) -> None:
    """Seconds in times of plain LightGBM as rounds, rows and groups grow."""
    base = {"rounds": 100, "rows": 20_000, "groups": 2}
    grown = {"rounds": (50, 200, 400), "rows": (5_000, 40_000, 80_000), "groups": (5, 20, 50)}
    print("\n  rounds    rows  groups    plain     fair   ratio")
    records = [
        _grow(**{**base, what: value}, repeats=arguments.repeats)
        for what, values in grown.items()
        for value in (base[what], *values)
    ]
    keep(records, arguments.out / "boosting_growth.csv", list(base))


def _grow(rounds: int, rows: int, groups: int, repeats: int) -> dict[str, Any]:
    """One point, the smallest of some times of each fit, taken in turn."""
    rng = np.random.default_rng(0)
    s = rng.integers(groups, size=rows)
    X = rng.normal(size=(rows, 20)).astype(np.float32)
    X[:, 0] += s / groups
    y = (X[:, :5].sum(1) + rng.normal(size=rows) > 0.5).astype(int)
    trees = {**COMMON, "n_estimators": rounds}
    fits = {
        "plain": lambda: LGBMClassifier(**trees).fit(X, y),
        "fair": lambda: FairGradLGBMClassifier(epsilon=0.0, **trees).fit(
            X, y, sensitive_features=s
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(repeats):
        for name, fit in fits.items():
            started = time.process_time()
            fit()
            times[name].append(time.process_time() - started)
    one, fair = (min(times[name]) for name in ("plain", "fair"))
    print(
        f"  {rounds:6d} {rows:7d} {groups:7d} {one:7.2f} s {fair:7.2f} s {fair / one:6.2f}x",
        flush=True,
    )
    return {
        "rounds": rounds,
        "rows": rows,
        "groups": groups,
        "plain_seconds": round(one, 3),
        "fair_seconds": round(fair, 3),
        "ratio": round(fair / one, 2),
    }


RATES = (
    (0.1, 100.0, 0.1),
    (0.1, 25.0, 0.1),
    (0.1, 10.0, 0.1),
    (0.2, 25.0, 0.1),
    (0.05, 100.0, 0.1),
)
"""Candidates of the automatic rate: the step of the multipliers in a round, the rounds after which
it decays, and the proportional term."""


def rate(arguments: argparse.Namespace) -> None:
    """What other automatic rates reach on validation rows, of exact and of default fairness."""
    objective = fairgrad.boosting.objective
    in_use = objective.RATE, objective.HORIZON, objective.PROPORTIONAL
    records = []
    for data in arguments.data:
        splits = [_rate_rows(data, seed) for seed in range(arguments.seeds)]
        for trees, measure, epsilon in product(("default", "smooth"), MOMENTS, (0.0, 0.05)):
            settings = {**(TREES if trees == "default" else SMOOTH), "epsilon": epsilon}
            for candidate in RATES:
                objective.RATE, objective.HORIZON, objective.PROPORTIONAL = candidate
                figures = []
                for (X, y, s), (X_new, y_new, s_new) in splits:
                    model = FairGradLGBMClassifier(measure, **settings)
                    predicted = model.fit(X, y, sensitive_features=s).predict(X_new)
                    levels = fairness_levels(y_new, predicted, s_new, measure)
                    figures.append((float(np.mean(predicted == y_new)), levels.unfairness))
                accuracy, unfairness = np.mean(figures, axis=0)
                row = {"dataset": data, "trees": trees, "measure": measure, "epsilon": epsilon}
                row |= dict(zip(("rate", "horizon", "proportional"), candidate, strict=True))
                row |= {"accuracy": round(accuracy, 4), "mean_abs_fairness": round(unfairness, 4)}
                records.append({**row, "seeds": len(splits)})
                print(*row.values(), flush=True)
            keep(records, arguments.out / "boosting_rate.csv", [*row][:7])
    objective.RATE, objective.HORIZON, objective.PROPORTIONAL = in_use


def _rate_rows(data: str, seed: int) -> Any:
    """Training and validation rows; those of law schools, which no default was chosen on."""
    if data == "law":
        table = law(Path("build/strangers"))
        order = np.random.default_rng(seed).permutation(len(table.y))
        parts = order[: len(order) // 2], order[len(order) // 2 :]
        return [(table.X[rows], table.y[rows], table.group[rows]) for rows in parts]
    split = load(data).split(seed=PAPER_SEEDS[seed])
    return [(part.X, part.y, part.s) for part in split[:2]]


LIBRARIES: dict[str, Callable[..., Any]] = {
    "LightGBM": lambda measure: FairGradLGBMClassifier(measure, **COMMON),
    "XGBoost": lambda measure: FairGradXGBClassifier(measure, n_jobs=1, random_state=0),
}
COSTLY = 0.02
"""A fair model that loses more accuracy on test rows should have warned of it."""


def price(arguments: argparse.Namespace) -> None:
    """Default fits on tables not used for tuning: the price of fairness, its warning, and time.

    On 6,000 rows, and on four fifths of the table. Times are medians of fits taken in turn.
    """
    records = []
    for name, read in TABLES.items():
        table = read(Path("build/strangers"))
        labels = np.unique(table.y, return_inverse=True)[1]
        cell = np.unique([labels.astype(str), table.group], axis=1, return_inverse=True)[1]
        for seed in range(arguments.seeds):
            train, test = hold_out(cell, 0.2, random_state=seed, may_be_empty=True)
            order = np.random.default_rng(seed).permutation(train)
            sizes = sorted({min(6_000, len(train)), len(train)})
            for n_rows, measure, library in product(sizes, MOMENTS, LIBRARIES):
                row = {"table": name, "rows": n_rows, "measure": measure, "library": library}
                parts = [(table.X[part], labels[part]) for part in (order[:n_rows], test)]
                s = table.group[order[:n_rows]]
                row |= {"seed": seed, **_price(library, measure, *parts, s, arguments.repeats)}
                records.append(row)
                print(*row.values(), flush=True)
    fitted = pd.DataFrame(records)
    fitted.to_csv(arguments.out / "boosting_price.csv", index=False)
    fitted["is"] = np.where(fitted["price"] > COSTLY, "more than 2 points lost", "less lost")
    print(fitted.groupby(["library", "is"])["stated"].agg(["sum", "size"]))
    size = pd.cut(fitted["rows"], [0, 6_000, 50_000, np.inf])
    print(fitted.groupby(["library", size], observed=True)[["ratio", "extra_seconds"]].describe())


def _price(
    library: str, measure: str, train: Any, test: Any, s: Any, repeats: int
) -> dict[str, Any]:
    """Accuracy lost on the test rows, whether a fit stated the price, and its time beside plain."""
    (X, y), (X_new, y_new) = train, test
    fair, plain_one = (LIBRARIES[library](w) for w in (measure, None))
    times = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(repeats):
            started = time.process_time()
            fair.fit(X, y, sensitive_features=s)
            between = time.process_time()
            plain_one.fit(X, y)
            times.append((between - started, time.process_time() - between))
    seconds, plain_seconds = np.median(times, axis=0)
    lost = np.mean(plain_one.predict(X_new) == y_new) - np.mean(fair.predict(X_new) == y_new)
    return {
        "price": round(lost, 4),
        "stated": any("Fairness costs" in str(w.message) for w in caught),
        "ratio": round(seconds / plain_seconds, 2),
        "extra_seconds": round(seconds - plain_seconds, 2),
    }


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["quality", "negative", "growth", "rate", "price"])
    parser.add_argument("--data", nargs="+", default=["adult", "compas", "dutch", "folktables"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without", nargs="+", default=[], choices=list(METHODS)[2:])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # fairlearn's, about versions
    parts = (quality, negative, growth, rate, price)
    next(part for part in parts if part.__name__ == arguments.part)(arguments)


if __name__ == "__main__":
    main()
