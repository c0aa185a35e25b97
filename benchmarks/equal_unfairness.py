"""FairGrad beside fairlearn's methods and a plug-in rule, at equal unfairness.

    python benchmarks/equal_unfairness.py run
    python benchmarks/equal_unfairness.py summary

The design was written down, and committed, before the first complete run; a second run, with later
defaults, is published. A trial on COMPAS (one seed, linear models and trees) and part of a
larger design had been seen before; numbers of rows, seeds and epsilons were then reduced to save
time:

* Cells: four tables (Adult, COMPAS, Dutch, folktables) x three measures, for each kind of model.
* Rows: models are fitted to at most 3,000 rows of the paper's training part, frontiers are chosen
  on at most 3,000 validation rows, and all other rows, at most 20,000, are test rows.
* Seeds: the first three of the paper's.
* Base learner: the same on both sides, with the same optimizer. Linear models and networks are
  ``FairGradClassifier(None)``, trees are LightGBM with the settings below.
* Models: a frontier has one fair model for each of two epsilons, 0 and .05, and the plain model.
  ThresholdOptimizer cannot loosen equalized odds; there both sides have two models, the exactly
  fair one and the plain one.
* Inputs: the reduction and the plug-in rule do not see the sensitive values of new rows, and are
  compared with blind models. ThresholdOptimizer does, and is compared with aware models.
* Our ways: weights in training (`FairGradClassifier`, `FairGradLGBMClassifier`) and fair decisions
  (`FairDecisionClassifier`) are compared apart; neither is chosen after the fact. The goals are
  those of weights for linear models, and of decisions for networks and trees.
* Comparison: models that another one of the same frontier beats on the validation rows are left
  out, except the plain model. Test accuracies are interpolated at 21 levels of test unfairness
  (mean |F|), from the lowest to the highest that both frontiers reach: never beyond a model.
* Verdict: the mean difference over seeds is level within .001 or one standard error over seeds.
* Random predictions have the figures that they reach on average.
* Goals: mean difference from the reduction at least -.001 for each kind of model; behind in at
  most a tenth of the cells; epsilon .05 kept on test rows as often as by decisions that are tuned
  on as many new rows ("oracle"); a default fit costs at most 3 logistic regressions (linear), 4
  plain fits (networks) or 6 (trees).

`run` writes results/equal_unfairness_models.csv, one model after the other; it can be interrupted
and resumed. `summary` writes results/equal_unfairness.csv (cells) and equal_unfairness_summary.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from fairlearn import reductions
from fairlearn.postprocessing import ThresholdOptimizer
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS
from fairgrad.files import write_whole
from fairgrad.groups import Groups
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.measures import constraints_of
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad_bench.datasets import load
from fairgrad_bench.methods.plug_in import CellProbabilities, PlugInRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Chances = Callable[["Rows"], Floats]

TABLES = ("adult", "compas", "dutch", "folktables")
MEASURES = ("equalized_odds", "equality_of_opportunity", "demographic_parity")
KINDS = ("linear", "trees", "network")
SEEDS = PAPER_SEEDS[:3]
EPSILONS = (0.0, 0.05)
MOST_FIT, MOST_VALIDATION, MOST_TEST = 3_000, 3_000, 20_000
HIDDEN = (32,)
TREES: dict[str, Any] = {
    "n_estimators": 100,
    "num_leaves": 15,
    "min_child_samples": 50,
    "n_jobs": 1,
    "verbose": -1,
    "random_state": 0,
}
ROUNDS, LEAST_BOUND = 50, 0.001
"""Of the reduction: its rounds, and the bound that stands for exact fairness."""

WITHIN, LEVELS = 0.001, 21
"""What is level, and at how many levels of unfairness frontiers are compared."""

REACHED = 0.005
"""Epsilon is kept on test rows if the largest level is at most this much above it."""

MOMENTS = {
    "equalized_odds": "EqualizedOdds",
    "equality_of_opportunity": "TruePositiveRateParity",
    "demographic_parity": "DemographicParity",
}
THRESHOLDS = {
    "equalized_odds": "equalized_odds",
    "equality_of_opportunity": "true_positive_rate_parity",
    "demographic_parity": "demographic_parity",
}
"""What fairlearn calls our measures."""
OTHERS = {"reduction": "blind", "plug-in": "blind", "ThresholdOptimizer": "aware"}
OURS = ("weights", "decisions")
GOAL_WAY = {"linear": "weights", "network": "decisions", "trees": "decisions"}
MOST_COST = {"linear": 3.0, "network": 4.0, "trees": 6.0}
KEYS = ["table", "seed", "model", "measure", "inputs", "method", "epsilon"]
PLAIN, LOGISTIC = "plain", "LogisticRegression"
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, labels and sensitive values."""

    X: Floats
    y: NDArray[Any]
    s: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)

    def cut(self, start: int, stop: int | None = None) -> Rows:
        """Some of the rows."""
        return Rows(self.X[start:stop], self.y[start:stop], self.s[start:stop])


class Parts(NamedTuple):
    """The rows of one table and seed."""

    fit: Rows
    validation: Rows
    test: Rows


def parts_of(table: str, seed: int) -> Parts:
    """Rows of the fit, for the choice of frontiers, and all others, which are test rows."""
    train, validation, test = (
        Rows(part.X.astype(np.float64), part.y, part.s) for part in load(table).split(seed)
    )
    spare = (test, train.cut(MOST_FIT), validation.cut(MOST_VALIDATION))
    columns = ([getattr(rows, name) for rows in spare] for name in ("X", "y", "s"))
    others = Rows(*map(np.concatenate, columns))
    fit = train.cut(0, MOST_FIT)
    return Parts(fit, validation.cut(0, MOST_VALIDATION), others.cut(0, MOST_TEST))


class Unit:
    """What is fitted to the rows of one table and seed with one kind of model.

    Args:
        parts: the rows.
        kind: of model.
        seed: of the split and of the models.
    """

    def __init__(self, parts: Parts, kind: str, seed: int) -> None:
        self.parts, self.kind, self.seed = parts, kind, seed
        self.shared_seconds: dict[str, float] = {}

    @contextmanager
    def counting(self, method: str) -> Iterator[None]:
        """Remembers the seconds of a model that is fitted once for all epsilons and measures."""
        started = time.process_time()
        yield
        self.shared_seconds[method] = time.process_time() - started

    def learner(self) -> Any:
        """The plain model, not fitted."""
        if self.kind == "trees":
            return LGBMClassifier(**TREES)
        hidden = HIDDEN if self.kind == "network" else ()
        return FairGradClassifier(
            None, hidden_layer_sizes=hidden, random_state=self.seed, verbose=False
        )

    @cached_property
    def cells(self) -> CellProbabilities:
        """The plain model of labels and groups, which the plug-in rule takes as true."""
        fit = self.parts.fit
        with self.counting("plug-in"):
            return CellProbabilities(self.learner(), fit, int(fit.s.max()) + 1)

    @cached_property
    def aware_model(self) -> Any:
        """The plain model with the sensitive value among its features."""
        with self.counting("ThresholdOptimizer"):
            return self.learner().fit(with_s(self.parts.fit), self.parts.fit.y)

    def plain(self, _: str, __: float, inputs: str) -> Chances:
        """Trained for accuracy alone."""
        if inputs == "aware":
            return lambda part: self.aware_model.predict(with_s(part))
        model = self.learner().fit(self.parts.fit.X, self.parts.fit.y)
        return lambda part: model.predict(part.X)

    def logistic(self, _: str, __: float, ___: str) -> Chances:
        """Scikit-learn's logistic regression, for its time."""
        fit = self.parts.fit
        scale = fit.X.std(axis=0) + (fit.X.std(axis=0) == 0)
        model = LogisticRegression(max_iter=1000).fit(fit.X / scale, fit.y)
        return lambda part: model.predict(part.X / scale)

    def weights(self, measure: str, epsilon: float, inputs: str) -> Chances:
        """FairGrad by gradient or boosting."""
        settings = {"epsilon": epsilon, "use_sensitive": inputs == "aware"}
        if self.kind == "trees":
            return self._ours(FairGradLGBMClassifier(measure, **settings, **TREES))
        model = self.learner().set_params(fairness_measure=measure, **settings)
        return self._ours(model)

    def decisions(self, measure: str, epsilon: float, inputs: str) -> Chances:
        """Fair decisions of the plain model."""
        aware = inputs == "aware"
        model = FairDecisionClassifier(
            self.learner(), measure, epsilon, use_sensitive=aware, random_state=self.seed
        )
        return self._ours(model)

    def oracle(self, measure: str, epsilon: float, _: str) -> Chances:
        """Fair decisions that are tuned on new rows: nothing is overfitted but their noise."""
        model = FairDecisionClassifier(self.learner(), measure, epsilon, random_state=self.seed)
        new = self.parts.validation
        return self._ours(model, validation=(new.X, new.y, new.s))

    def _ours(self, model: Any, **rows: Any) -> Chances:
        fit = self.parts.fit
        model.fit(fit.X, fit.y, sensitive_features=fit.s, **rows)
        if model.use_sensitive:
            return lambda part: model.predict(part.X, sensitive_features=part.s)
        return lambda part: model.predict(part.X)

    def reduction(self, measure: str, epsilon: float, _: str) -> Chances:
        """Fairlearn's ExponentiatedGradient, whose predictions are random."""
        bound = max(epsilon, LEAST_BOUND)
        moment = getattr(reductions, MOMENTS[measure])(difference_bound=bound)
        model = reductions.ExponentiatedGradient(self.learner(), moment, eps=bound, max_iter=ROUNDS)
        fit = self.parts.fit
        model.fit(fit.X, fit.y, sensitive_features=fit.s)
        return lambda part: model._pmf_predict(part.X)[:, 1]  # noqa: SLF001 - the only way to them

    def plug_in(self, measure: str, epsilon: float, _: str) -> Chances:
        """Decisions of a linear program that takes the model's probabilities as true."""
        groups = Groups.from_data(self.parts.fit.y, self.parts.fit.s)
        constraints = constraints_of(measure, groups)
        rule = PlugInRule(self.cells.of(self.parts.fit), constraints, epsilon)
        return lambda part: rule(self.cells.of(part)).astype(np.float64)

    def threshold(self, measure: str, epsilon: float, _: str) -> Chances:
        """Fairlearn's ThresholdOptimizer, whose predictions are random."""
        optimizer = ThresholdOptimizer(
            estimator=self.aware_model,
            constraints=THRESHOLDS[measure],
            prefit=True,
            predict_method="predict_proba",
            tol=epsilon or None,
        )
        fit = self.parts.fit
        optimizer.fit(with_s(fit), fit.y, sensitive_features=fit.s)

        def chances(part: Rows) -> Floats:
            probabilities = optimizer._pmf_predict(with_s(part), sensitive_features=part.s)  # noqa: SLF001 - as above
            return np.asarray(probabilities)[:, 1]

        return chances


METHODS: dict[str, Callable[[Unit, str, float, str], Chances]] = {
    PLAIN: Unit.plain,
    LOGISTIC: Unit.logistic,
    "weights": Unit.weights,
    "decisions": Unit.decisions,
    "oracle": Unit.oracle,
    "reduction": Unit.reduction,
    "plug-in": Unit.plug_in,
    "ThresholdOptimizer": Unit.threshold,
}


def with_s(part: Rows) -> Floats:
    """Features of other methods that are aware: the sensitive value is the last column."""
    return np.column_stack([part.X, part.s])


def figures(part: Rows, chances: Any, measure: str) -> tuple[float, float, float]:
    """Expected accuracy, mean |F| and largest |F| of chances to get label 1."""
    chance = np.clip(np.asarray(chances, dtype=np.float64), 0.0, 1.0)
    weight = np.concatenate([chance, 1.0 - chance])
    label, s = np.tile(part.y, 2), np.tile(part.s, 2)
    predicted = np.repeat([1, 0], len(chance))
    levels = fairness_levels(label, predicted, s, measure, sample_weight=weight)
    accuracy = float(np.average(predicted == label, weights=weight))
    return accuracy, levels.unfairness, float(np.nanmax(levels.gaps))


def planned(kind: str, inputs: str) -> Iterator[tuple[str, str, str, float]]:
    """Measure, inputs, method and epsilon of each model of a unit."""
    others = [name for name, kind_of_inputs in OTHERS.items() if kind_of_inputs == inputs]
    if kind == "linear" and inputs == "blind":
        yield MEASURES[0], inputs, LOGISTIC, np.inf
    for measure in MEASURES:
        yield measure, inputs, PLAIN, np.inf
        for method in (*OURS, *others):
            only_exact = method == "ThresholdOptimizer" and measure == "equalized_odds"
            for epsilon in EPSILONS[:1] if only_exact else EPSILONS:
                yield measure, inputs, method, epsilon
        for epsilon in EPSILONS if inputs == "blind" else ():
            yield measure, inputs, "oracle", epsilon


def run(asked: argparse.Namespace) -> None:
    """Fits what the file does not have yet."""
    path = asked.out / "equal_unfairness_models.csv"
    known = pd.read_csv(path).to_dict("records") if path.exists() else []
    rows = {tuple(str(row[key]) for key in KEYS): row for row in known}
    for inputs, seed, kind, table in product(("blind", "aware"), SEEDS, asked.models, asked.tables):
        unit = None
        for plan in planned(kind, inputs):
            measure, _, method, epsilon = plan
            names = (table, seed, kind, measure, inputs, method, float(epsilon))
            key = tuple(map(str, names))
            if key in rows:
                continue
            unit = unit or Unit(parts_of(table, seed), kind, seed)
            rows[key] = dict(zip(KEYS, names, strict=True)) | judged(unit, *plan)
            write_whole(path, pd.DataFrame([*rows.values()]).to_csv(index=False))
            print(*key, rows[key], flush=True)


def judged(unit: Unit, measure: str, inputs: str, method: str, epsilon: float) -> dict[str, Any]:
    """The figures of one model, and the processor seconds of its fit."""
    if method in {"plug-in", "ThresholdOptimizer", PLAIN}:
        _ = unit.cells if method == "plug-in" else unit.aware_model
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chances = METHODS[method](unit, measure, epsilon, inputs)
        seconds = time.process_time() - started + unit.shared_seconds.get(method, 0.0)
        validation, test = (
            figures(part, chances(part), measure)
            for part in (unit.parts.validation, unit.parts.test)
        )
    return {
        "validation_accuracy": round(validation[0], 5),
        "validation_unfairness": round(validation[1], 5),
        "accuracy": round(test[0], 5),
        "unfairness": round(test[1], 5),
        "max": round(test[2], 5),
        "seconds": round(seconds, 3),
    }


def frontier(models: pd.DataFrame) -> Floats:
    """(m, 2) test unfairness and accuracy of the models that none beats on validation rows.

    The plain model always is among them.
    """
    accuracy, unfair = models["validation_accuracy"], models["validation_unfairness"]
    is_beaten = [
        bool(((accuracy >= a) & (unfair <= u) & ((accuracy > a) | (unfair < u))).any())
        for a, u in zip(accuracy, unfair, strict=True)
    ]
    kept = models[~np.array(is_beaten) | (models["method"] == PLAIN).to_numpy()]
    points: Floats = kept.sort_values("unfairness")[["unfairness", "accuracy"]].to_numpy()
    return points


def advantage(ours: Floats, other: Floats) -> float:
    """By how much a frontier is more accurate, on average over the levels that both reach."""
    lowest = max(ours[0, 0], other[0, 0])
    highest = min(ours[-1, 0], other[-1, 0])
    levels = np.linspace(lowest, highest, LEVELS)
    return float(np.mean(np.interp(levels, *ours.T) - np.interp(levels, *other.T)))


def verdict(differences: Any) -> dict[str, Any]:
    """Ahead, level or behind, from one difference per seed."""
    mean, n = float(np.mean(differences)), len(differences)
    error = float(np.std(differences, ddof=1)) / n**0.5 if n > 1 else 0.0
    is_level = abs(mean) <= max(WITHIN, error)
    words = "level" if is_level else "ahead" if mean > 0 else "behind"
    return {
        "difference": round(mean, 4),
        "standard_error": round(error, 4),
        "verdict": words,
        "seeds": n,
    }


def compared(models: pd.DataFrame) -> pd.DataFrame:
    """One row per kind of model, way, other method, table and measure."""
    rows = []
    for other, inputs in OTHERS.items():
        here = models[models["inputs"] == inputs]
        for cell, of_cell in here.groupby(["model", "table", "measure"], sort=False):
            for way in OURS:
                differences, sizes = [], set()
                for _, fits in of_cell.groupby("seed"):
                    plain = fits[fits["method"] == PLAIN]
                    theirs = fits[fits["method"] == other]
                    ours = fits[(fits["method"] == way) & fits["epsilon"].isin(theirs["epsilon"])]
                    if not len(theirs) or len(theirs) != len(ours) or not len(plain):
                        continue
                    sizes.add(len(ours) + 1)
                    pair = [frontier(pd.concat([plain, side])) for side in (ours, theirs)]
                    differences.append(advantage(*pair))
                if differences:
                    names = dict(zip(["model", "table", "measure"], cell, strict=True))
                    row = {**names, "way": way, "other": other, "models": max(sizes)}
                    rows.append(row | verdict(differences))
    return pd.DataFrame(rows)


def summary(asked: argparse.Namespace) -> None:
    """Writes the cells, and a summary for each kind of model, way and other method."""
    models = pd.read_csv(asked.out / "equal_unfairness_models.csv")
    cells = compared(models)
    write_whole(asked.out / "equal_unfairness.csv", cells.to_csv(index=False))
    cost, kept = costs(models), kept_on_new_rows(models)
    records = []
    for (kind, way, other), cases in cells.groupby(["model", "way", "other"], sort=False):
        counts = cases["verdict"].value_counts()
        records.append(
            {
                "model": kind,
                "way": way,
                "other": other,
                **{word: int(counts.get(word, 0)) for word in ("ahead", "level", "behind")},
                "mean_difference": round(float(cases["difference"].mean()), 4),
                "cost": cost[kind, way],
                "cost_of_other": cost[kind, other],
                "kept": kept.get((kind, way), np.nan),
                "kept_by_other": kept.get((kind, other), np.nan),
                "kept_by_oracle": kept.get((kind, "oracle"), np.nan),
            }
        )
    table = pd.DataFrame(records)
    write_whole(asked.out / "equal_unfairness_summary.csv", table.to_csv(index=False))
    print(cells.to_string(index=False), table.to_string(index=False), sep="\n\n")
    for kind, way in GOAL_WAY.items():
        for row in table[(table["model"] == kind) & (table["way"] == way)].to_dict("records"):
            if row["other"] == "reduction":
                print(kind, goals(row))


def costs(models: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Processor seconds of a fit at epsilon .05, in plain fits; linear: logistic regressions."""
    found = {}
    for kind, own in models.groupby("model"):
        unit = LOGISTIC if kind == "linear" else PLAIN
        plain = own[(own["method"] == unit) & (own["inputs"] == "blind")]
        base = plain.groupby(["table", "seed"])["seconds"].median()
        for method, fits in own[own["epsilon"] == EPSILONS[-1]].groupby("method"):
            seconds = fits.groupby(["table", "seed"])["seconds"].median()
            found[str(kind), str(method)] = round(float((seconds / base).median()), 1)
    return found


def kept_on_new_rows(models: pd.DataFrame) -> dict[tuple[str, str], float]:
    """How often epsilon .05 is kept on test rows, by blind models."""
    own = models[(models["epsilon"] == EPSILONS[-1]) & (models["inputs"] == "blind")]
    is_kept = own["max"] <= own["epsilon"] + REACHED
    shares = is_kept.groupby([own["model"], own["method"]]).mean().round(2)
    return {(str(kind), str(method)): float(share) for (kind, method), share in shares.items()}


def goals(row: dict[str, Any]) -> dict[str, bool]:
    """Which goals one row of the summary reaches."""
    n = row["ahead"] + row["level"] + row["behind"]
    return {
        "mean difference at least -.001": row["mean_difference"] >= -WITHIN,
        "behind in at most a tenth": row["behind"] <= 0.1 * n,
        "epsilon kept as by the oracle": row["kept"] >= row["kept_by_oracle"],
        "cost": row["cost"] <= MOST_COST[row["model"]],
    }


def main() -> None:
    """Reads the options."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "summary"])
    parser.add_argument("--tables", nargs="*", default=[*TABLES], choices=[*TABLES])
    parser.add_argument("--models", nargs="*", default=[*KINDS], choices=[*KINDS])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    {"run": run, "summary": summary}[asked.what](asked)


if __name__ == "__main__":
    main()
