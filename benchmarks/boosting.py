"""Fair boosting beside plain LightGBM and fairlearn's methods on the same trees.

Test accuracy / mean |F| and processor seconds per fit (one thread), on the paper's splits; ratios
are to plain LightGBM with the same trees, fitted in turn.

    python benchmarks/boosting.py quality [--data adult compas dutch folktables] [--seeds 3]
    python benchmarks/boosting.py hessian   # other rules for the hessians of weighted rows
    python benchmarks/boosting.py growth    # rounds, rows and groups
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
from lightgbm import LGBMClassifier

import fairgrad.boosting.objective
from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS, load
from fairgrad.lightgbm import FairGradLGBMClassifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.datasets import Split

COMMON = {"n_jobs": 1, "verbose": -1, "random_state": 0}
TREES = {**COMMON, "n_estimators": 200, "num_leaves": 31}
SMOOTH = {
    **COMMON,
    "n_estimators": 300,
    "num_leaves": 15,
    "min_child_samples": 100,
    "colsample_bytree": 0.3,
}
"""Trees that fit less of the training rows' noise, chosen on Adult's validation rows."""

MOMENTS = {"equalized_odds": EqualizedOdds, "demographic_parity": DemographicParity}
PLAIN, PLAIN_SMOOTH = "plain LightGBM", "plain, smooth trees"
Row = tuple[float, float, float]


def ours(trees: dict[str, Any], **settings: Any) -> Callable[[Split, str], Any]:
    """Fits our estimator, gives the test predictions."""

    def run(split: Split, measure: str) -> Any:
        train, _, test = split
        model = FairGradLGBMClassifier(measure, **settings, **trees)
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
    "fairgrad, 20 % held out": ours(TREES, held_out=0.2),
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
    return float(np.mean(predicted == test.y)), levels.mean_abs, seconds


def show(name: str, rows: list[Row], reference: list[Row] | None = None) -> None:
    """Prints the means over the seeds, and the time in times of the reference's."""
    accuracy, unfairness, seconds = np.mean(rows, axis=0)
    ratio = ""
    if reference is not None:
        ratio = f"  {seconds / np.mean(reference, axis=0)[2]:6.2f}x plain"
    print(f"  {name:30s} {accuracy:.4f} / {unfairness:.4f}   {seconds:6.2f} s{ratio}", flush=True)


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
            for name in names:
                show(name, rows[name], rows[PLAIN_SMOOTH if "smooth" in name else PLAIN])


def hessian(arguments: argparse.Namespace) -> None:
    """What other hessians would do: the same fits with another function for the weights."""
    rules: dict[str, Callable[[Any], Any]] = {
        "max(|w|, 1) h, the rule": lambda w: np.maximum(np.abs(w), 1.0),
        "|w| h": np.abs,
        "h, not weighted": np.ones_like,
        "max(w, 0.01) h, a floor": lambda w: np.maximum(w, 0.01),
    }
    weigh = fairgrad.boosting.objective.weigh
    splits = [load("adult").split(seed=seed) for seed in PAPER_SEEDS[: arguments.seeds]]
    for measure in MOMENTS:
        for rate in (0.1, 0.2):
            print(f"\nadult, {measure}, fairness rate {rate}")
            for name, size in rules.items():
                fairgrad.boosting.objective.weigh = _with_hessian(size)
                method = ours({**TREES, "min_child_samples": 100}, fairness_rate=rate)
                show(name, [judge(method, split, measure) for split in splits])
    fairgrad.boosting.objective.weigh = weigh


def _with_hessian(size: Callable[[Any], Any]) -> Callable[..., Any]:
    def weigh(gradient: Any, hessian: Any, weight: Any, loss_weight: Any = 1.0) -> Any:
        return loss_weight * weight * gradient, loss_weight * size(weight) * hessian

    return weigh


def growth(arguments: argparse.Namespace) -> None:
    """Seconds in times of plain LightGBM as rounds, rows and groups grow."""
    base = {"rounds": 100, "rows": 20_000, "groups": 2}
    grown = {"rounds": (50, 200, 400), "rows": (5_000, 40_000, 80_000), "groups": (5, 20, 50)}
    print("\n  rounds    rows  groups    plain     fair   ratio")
    for what, values in grown.items():
        for value in (base[what], *values):
            _grow(**{**base, what: value}, repeats=arguments.repeats)


def _grow(rounds: int, rows: int, groups: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    s = rng.integers(groups, size=rows)
    X = rng.normal(size=(rows, 20)).astype(np.float32)
    X[:, 0] += s / groups
    y = (X[:, :5].sum(1) + rng.normal(size=rows) > 0.5).astype(int)
    trees = {**COMMON, "n_estimators": rounds}
    fits = {
        "plain": lambda: LGBMClassifier(**trees).fit(X, y),
        "fair": lambda: FairGradLGBMClassifier(**trees).fit(X, y, sensitive_features=s),
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


def main() -> None:
    """Runs one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["quality", "hessian", "growth"])
    parser.add_argument("--data", nargs="+", default=["adult", "compas", "dutch", "folktables"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without", nargs="+", default=[], choices=list(METHODS)[2:])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # fairlearn's, about versions
    {"quality": quality, "hessian": hessian, "growth": growth}[arguments.part](arguments)


if __name__ == "__main__":
    main()
