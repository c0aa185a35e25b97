"""Tests the defaults on tables that were not used for tuning, beside other methods.

    python benchmarks/strangers.py run [--tables law nursery] [--methods ...]
    python benchmarks/strangers.py summary
    python benchmarks/strangers.py groups

`run` fits every method for every table, measure and epsilon, without and with the sensitive values
as inputs. It fits to four fifths of the rows, at most 6,000, and judges the model on these rows and
on at most 20,000 others. Every method has its defaults; choices are made on training rows. A row is
written as soon as it is done and is not fitted again, so a run can be interrupted and resumed.
Delete rows to repeat them.
`summary` prints and writes, for each method, how often epsilon is kept on the training rows, and
how often another method with the same inputs and the same kind of model is better in both figures:
in the means over the splits that both were fitted to.

`groups` compares default fits with plain ones on tables with many and small groups, trained on all
rows except the test rows: is the mean |F| on new rows above that of the plain model by more than
one standard error, is it at most half of it, and what does it cost?

fairlearn's reduction and threshold optimizer predict at random. Their figures are expected values,
not those of one draw.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from fairlearn import reductions
from fairlearn.postprocessing import ThresholdOptimizer
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stranger_tables import MANY_GROUPS, TABLES, StrangerTable

from fairgrad import fairness_levels
from fairgrad.aware import SensitiveEncoder
from fairgrad.files import write_whole
from fairgrad.groups import Groups, group_rows, judged_groups
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.splitting import hold_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

MEASURES = ("equalized_odds", "equality_of_opportunity", "demographic_parity", "accuracy_parity")
EPSILONS = (0.05,)
"""The default."""
MOMENTS = {
    "equalized_odds": "EqualizedOdds",
    "equality_of_opportunity": "TruePositiveRateParity",
    "demographic_parity": "DemographicParity",
    "accuracy_parity": "ErrorRateParity",
}
"""Their names in fairlearn's reduction."""
THRESHOLDS = {
    "equalized_odds": "equalized_odds",
    "equality_of_opportunity": "true_positive_rate_parity",
    "demographic_parity": "demographic_parity",
}
"""Their names in fairlearn's ThresholdOptimizer, which lacks one of them."""

HIDDEN = (64, 32)
TREES: dict[str, Any] = {"n_estimators": 100, "n_jobs": 1, "verbose": -1, "random_state": 0}
TEST_SHARE, MOST_FIT, MOST_TEST = 0.2, 6_000, 20_000
"""The share held out for the test, and the largest numbers of rows, drawn from every cell."""
REACHED = 0.005
"""Epsilon is kept if the worst level on the training rows exceeds it by at most this."""
MARGIN = 0.003
"""A model is better if it is better by this, in accuracy and in unfairness."""
COSTLY, USEFUL = 0.02, 0.001
"""A default fit should lose at most the first in accuracy against the plain model, and be more
accurate than a constant by the second, or warn."""
KEYS = ["table", "measure", "inputs", "model", "method", "epsilon", "seed"]


@dataclass(frozen=True, eq=False)
class FittingProblem:
    """The training and test rows of a table, and the inputs that a method may use.

    Attributes:
        train: training rows.
        test: test rows.
        aware: whether models may use the sensitive values.
        seed: of the split and of the methods.
    """

    train: StrangerTable
    test: StrangerTable
    aware: bool
    seed: int

    @cached_property
    def encoder(self) -> SensitiveEncoder:
        """Encodes sensitive values for other methods, as our own models do."""
        return SensitiveEncoder.of(Groups.from_data(self.train.y, self.train.s))

    def inputs(self, rows: StrangerTable) -> NDArray[np.float64]:
        """The features of another method's model."""
        if not self.aware:
            return rows.X
        return np.hstack([rows.X, self.encoder.encode(rows.s, len(rows.y))])

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The fitted plain models by kind; several methods start from the same one."""
        return {}

    def plain_model(self, kind: str) -> Any:
        """A model of that kind, trained for accuracy alone."""
        if kind not in self.plain:
            self.plain[kind] = _learner(kind, self.seed).fit(self.inputs(self.train), self.train.y)
        return self.plain[kind]


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A fitted method.

    Attributes:
        predict: predicts labels, or, if predictions are random, the chance of label 1 for each row.
        own_max: the worst level by its own account, on the rows it used to enforce fairness.
        is_random: whether its predictions are random.
    """

    predict: Callable[[StrangerTable], NDArray[Any]]
    own_max: float = np.nan
    is_random: bool = False


def _learner(kind: str, seed: int = 0) -> Any:
    if kind == "linear":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if kind == "network":
        return FairGradClassifier(None, hidden_layer_sizes=HIDDEN, random_state=seed, verbose=False)
    return LGBMClassifier(**TREES)


def fit_ours(problem: FittingProblem, model: Any) -> FittedMethod:
    """Fits one of our classifiers; aware ones encode the sensitive values by themselves."""
    train = problem.train
    model.fit(train.X, train.y, sensitive_features=train.s)
    values = (lambda rows: {"sensitive_features": rows.s}) if problem.aware else (lambda _: {})
    return FittedMethod(
        lambda rows: model.predict(rows.X, **values(rows)), float(np.nanmax(np.abs(model.levels_)))
    )


def fairgrad(problem: FittingProblem, kind: str, measure: str, epsilon: float) -> FittedMethod:
    """FairGrad, by gradient or by boosting."""
    settings = {
        "epsilon": epsilon,
        "use_sensitive": problem.aware,
        "y_desirable": problem.train.y_desirable,
    }
    if kind == "LightGBM":
        return fit_ours(problem, FairGradLGBMClassifier(measure, **settings, **TREES))
    hidden = HIDDEN if kind == "network" else ()
    return fit_ours(
        problem,
        FairGradClassifier(
            measure, **settings, hidden_layer_sizes=hidden, random_state=problem.seed, verbose=False
        ),
    )


def decision(problem: FittingProblem, kind: str, measure: str, epsilon: float) -> FittedMethod:
    """Fair decisions on the probabilities of a plain model."""
    learner = None if kind == "linear" else _learner(kind, problem.seed)
    return fit_ours(
        problem,
        FairDecisionClassifier(
            learner,
            measure,
            epsilon,
            use_sensitive=problem.aware,
            y_desirable=problem.train.y_desirable,
            random_state=problem.seed,
        ),
    )


def plain(problem: FittingProblem, kind: str, _: str, __: float) -> FittedMethod:
    """Accuracy alone."""
    model = problem.plain_model(kind)
    return FittedMethod(lambda rows: model.predict(problem.inputs(rows)))


def reduction(
    problem: FittingProblem, kind: str, measure: str, epsilon: float
) -> FittedMethod | None:
    """Fairlearn's ExponentiatedGradient; None for problems that it does not support."""
    if len(np.unique(problem.train.y)) > 2 or kind == "network":
        return None
    bound = max(epsilon, 0.001)
    moment = getattr(reductions, MOMENTS[measure])(difference_bound=bound)
    learner = LogisticRegression(max_iter=1000) if kind == "linear" else LGBMClassifier(**TREES)
    model = reductions.ExponentiatedGradient(learner, moment, eps=bound)
    train = problem.train
    scaling = StandardScaler().fit(problem.inputs(train))

    def scaled(rows: StrangerTable) -> Any:
        return scaling.transform(problem.inputs(rows))

    model.fit(scaled(train), train.y.astype(int), sensitive_features=train.group)

    def chance(rows: StrangerTable) -> NDArray[Any]:
        chances = model._pmf_predict(scaled(rows))  # noqa: SLF001 - there is no public method
        return np.asarray(chances)[:, 1]

    return FittedMethod(chance, is_random=True)


def threshold(
    problem: FittingProblem, kind: str, measure: str, epsilon: float
) -> FittedMethod | None:
    """Fairlearn's ThresholdOptimizer; None for problems that it does not support."""
    if not problem.aware or measure not in THRESHOLDS or len(np.unique(problem.train.y)) > 2:
        return None
    train, model = problem.train, problem.plain_model(kind)
    optimizer = ThresholdOptimizer(
        estimator=model,
        constraints=THRESHOLDS[measure],
        prefit=True,
        predict_method="predict_proba",
        # fairlearn has no slack for equalized odds: exact, whatever epsilon.
        tol=None if measure == "equalized_odds" else epsilon or None,
    )
    optimizer.fit(problem.inputs(train), train.y.astype(int), sensitive_features=train.group)

    def chance(rows: StrangerTable) -> NDArray[Any]:
        values = {"sensitive_features": rows.group}
        chances = optimizer._pmf_predict(problem.inputs(rows), **values)  # noqa: SLF001 - as above
        return np.asarray(chances)[:, 1]

    return FittedMethod(chance, is_random=True)


def plug_in(
    problem: FittingProblem, kind: str, measure: str, epsilon: float
) -> FittedMethod | None:
    """One threshold per group (Menon and Williamson, 2018; Zeng et al., 2022).

    Every group's rate is brought within epsilon of a common rate, the one with the best accuracy on
    the training rows. The rate is that of label 1: among all rows (demographic parity)
    or among rows of that label (equality of opportunity). Needs the sensitive values.
    """
    rates = {"demographic_parity": False, "equality_of_opportunity": True}
    train = problem.train
    if not problem.aware or measure not in rates or len(np.unique(train.y)) > 2:
        return None
    model = problem.plain_model(kind)
    score = model.predict_proba(problem.inputs(train))[:, 1]
    candidates: list[tuple[float, dict[str, float]]] = []
    for target in np.linspace(0.0, 1.0, 101):
        cuts = {}
        for name in np.unique(train.group):
            in_group = train.group == name
            counted = score[in_group & (train.y == 1)] if rates[measure] else score[in_group]
            plain_rate = float(np.mean(counted > 0.5))
            rate = np.clip(plain_rate, target - epsilon, target + epsilon)
            keeps = rate == plain_rate
            cuts[name] = 0.5 if keeps else float(np.quantile(counted, 1.0 - np.clip(rate, 0, 1)))
        cut = pd.Series(train.group).map(cuts).to_numpy()
        candidates.append((float(np.mean((score > cut) == train.y)), cuts))
    best = max(candidates, key=lambda pair: pair[0])[1]

    def predict(rows: StrangerTable) -> NDArray[Any]:
        cut = pd.Series(rows.group).map(best).fillna(0.5).to_numpy()
        return (model.predict_proba(problem.inputs(rows))[:, 1] > cut).astype(int)

    return FittedMethod(predict)


METHODS: dict[str, Callable[..., Any]] = {
    "plain": plain,
    "fairgrad": fairgrad,
    "decision": decision,
    "ThresholdOptimizer": threshold,
    "plug-in": plug_in,
    "ExponentiatedGradient": reduction,
}
OURS = ("fairgrad", "decision")
OTHERS = ("ThresholdOptimizer", "plug-in", "ExponentiatedGradient")
KINDS = ("linear", "network", "LightGBM")
FITS = (("linear", "fairgrad"), ("LightGBM", "decision"))
"""What `groups` fits: the default estimator, and what the program does with trees."""


class ResultFile:
    """A table of results that grows row by row; the whole file is written each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        if path.exists():
            for row in pd.read_csv(path, keep_default_na=False).to_dict("records"):
                self.rows[self.key(row)] = row

    @staticmethod
    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        """The values that identify a row."""
        return tuple(str(row[name]) for name in KEYS)

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row and writes the file."""
        self.rows[self.key(row)] = row
        write_whole(self.path, pd.DataFrame([*self.rows.values()]).to_csv(index=False))


def figures(
    rows: StrangerTable, predicted: NDArray[Any], measure: str, *, is_random: bool = False
) -> tuple[float, float, float]:
    """Accuracy, mean and largest gap of the groups that are large enough to be judged.

    With chances, each row counts with label 1 and with label 0, weighted by their chances.
    """
    grouped = group_rows(rows.y, rows.s)
    size = np.bincount(grouped.group, minlength=grouped.groups.n_groups)
    large = judged_groups(size)[grouped.group]
    y, s, weight = rows.y, rows.s.where(pd.Series(large), None), None
    if is_random:
        predicted = np.clip(predicted, 0.0, 1.0)  # fairlearn's sums are off by rounding
        weight = np.concatenate([predicted, 1.0 - predicted])
        predicted = np.repeat([1, 0], len(y))
        y, s = np.concatenate([y, y]), pd.concat([s, s], ignore_index=True)
    levels = fairness_levels(
        y, predicted, s, measure, y_desirable=rows.y_desirable, sample_weight=weight
    )
    accuracy = float(np.average(predicted == y, weights=weight))
    return accuracy, levels.unfairness, float(np.nanmax(levels.gaps))


def judged_fit(
    problem: FittingProblem, kind: str, method: str, measure: str, epsilon: float
) -> dict[str, Any] | None:
    """Fits, predicts and returns the figures; None if the method does not support the problem."""
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = METHODS[method](problem, kind, measure, epsilon)
            seconds = time.process_time() - started
            if fitted is None:
                return None
            predictions = [(rows, fitted.predict(rows)) for rows in (problem.train, problem.test)]
        except Exception as error:  # noqa: BLE001 - a failure is a result, too
            return {"error": f"{type(error).__name__}: {error}"[:200]}
    fit, test = (
        figures(rows, np.asarray(predicted), measure, is_random=fitted.is_random)
        for rows, predicted in predictions
    )
    counts = pd.Series(problem.train.y).value_counts()
    return {
        "fit_accuracy": round(fit[0], 4),
        "fit_max": round(fit[2], 4),
        "own_max": round(fitted.own_max, 4),
        "accuracy": round(test[0], 4),
        "unfairness": round(test[1], 4),
        "max": round(test[2], 4),
        "constant": round(float(np.mean(problem.test.y == counts.index[0])), 4),
        "seconds": round(seconds, 2),
        "warnings": _our_warnings(caught) if method in OURS else "",
        "error": "",
    }


def _our_warnings(caught: list[warnings.WarningMessage]) -> str:
    """The texts of fairgrad's warnings, without those of libraries that it uses."""
    texts = [
        str(warning.message)
        for warning in caught
        if warning.category.__module__.startswith("fairgrad")
        or (
            warning.category is UserWarning
            and not str(warning.message).startswith("X does not have valid")
        )
    ]
    return " | ".join(dict.fromkeys(texts))[:400]


def split(table: StrangerTable, seed: int) -> tuple[StrangerTable, StrangerTable]:
    """Training and test rows, with the same share of every cell."""
    cell = group_rows(table.y, table.s).cell()
    fit, test = hold_out(cell, max(TEST_SHARE, 1.0 - MOST_FIT / len(cell)), seed)
    spare = max(0.0, 1.0 - MOST_TEST / len(test))
    return table.take(fit), table.take(test[hold_out(cell[test], spare, seed)[0]])


def units(asked: argparse.Namespace) -> Iterator[tuple[FittingProblem, dict[str, Any]]]:
    """Everything to fit, with one table in memory at a time."""
    for name in asked.tables:
        table = TABLES[name](asked.data)
        for seed in range(asked.splits):
            train, test = split(table, seed)
            for inputs in asked.inputs:
                problem = FittingProblem(train, test, inputs == "aware", seed)
                common = {"table": name, "inputs": inputs, "seed": seed}
                for kind in asked.models:
                    for method in asked.methods:
                        for measure in asked.measures:
                            for epsilon in [np.inf] if method == "plain" else asked.epsilons:
                                names = {"measure": measure, "model": kind, "method": method}
                                yield problem, {**common, **names, "epsilon": float(epsilon)}


def run(asked: argparse.Namespace) -> None:
    """Fits everything that is not in the file yet."""
    results = ResultFile(asked.out / "strangers.csv")
    for problem, unit in units(asked):
        if results.key(unit) in results.rows:
            continue
        of_unit = (unit[name] for name in ("model", "method", "measure", "epsilon"))
        fit = judged_fit(problem, *of_unit)
        if fit is None:
            continue
        results.add({name: unit[name] for name in KEYS} | fit)
        shown = {key: value for key, value in fit.items() if key != "constant"}
        print(*(unit[name] for name in KEYS), shown, flush=True)


def many_groups(asked: argparse.Namespace) -> None:
    """Default fits beside plain ones on tables of many and small groups, without s as an input."""
    path = asked.out / "strangers_groups.csv"
    done = pd.read_csv(path, keep_default_na=False).to_dict("records") if path.exists() else []
    keys = ["table", "measure", "model", "method", "seed"]
    known = {tuple(str(row[key]) for key in keys) for row in done}
    for table in asked.tables:
        everyone = MANY_GROUPS[table](asked.data)
        cell = group_rows(everyone.y, everyone.s).cell()
        for seed in range(asked.splits):
            problem = FittingProblem(
                *map(everyone.take, hold_out(cell, TEST_SHARE, seed)), aware=False, seed=seed
            )
            for (kind, method), measure in product(FITS, asked.measures):
                key = (table, measure, kind, method, seed)
                if kind in asked.models and tuple(map(str, key)) not in known:
                    fit = beside_plain(problem, kind, method, measure)
                    done.append(dict(zip(keys, key, strict=True)) | fit)
                    print(done[-1], flush=True)
                    write_whole(path, pd.DataFrame(done).to_csv(index=False))
    summary = group_summary(pd.DataFrame(done))
    write_whole(asked.out / "strangers_groups_summary.csv", summary.to_csv(index=False))
    print(summary.to_string(index=False))


def group_summary(fits: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, and which goals they reach; an unfair plain model has mean |F| > .05.

    The price counts as stated if every split warned of it.
    """
    keys = ["table", "measure", "model"]
    fits["stated"] = fits["warnings"].str.contains("Fairness costs")
    cells = fits.groupby(keys, sort=False)
    means = cells[["accuracy", "plain_accuracy", "unfairness", "plain_unfairness", "error", "max"]]
    table = means.mean().round(4).join(cells[["groups", "smallest"]].min())
    stated, lost = cells["stated"].all(), table["plain_accuracy"] - table["accuracy"]
    table["not_less_fair"] = table["unfairness"] <= table["plain_unfairness"] + table["error"]
    halved = table["unfairness"] <= table["plain_unfairness"] / 2
    table["halved"] = halved.where(table["plain_unfairness"] > 0.05, "")
    table["2_points_or_stated"] = (lost <= COSTLY) | stated
    return table.assign(splits=cells.size()).reset_index()


def beside_plain(problem: FittingProblem, kind: str, method: str, measure: str) -> dict[str, Any]:
    """The figures of a default fit and of the plain model on new rows.

    The standard error of the difference in mean |F| is that of 200 draws of as many test rows.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = METHODS[method](problem, kind, measure, EPSILONS[0])
        label = fitted.predict(problem.test)
    fair = figures(problem.test, label, measure)
    plain_label = problem.plain_model(kind).predict(problem.inputs(problem.test))
    plain = figures(problem.test, plain_label, measure)
    rows = problem.test
    frame = rows.s.assign(y=rows.y, fair=label, plain=plain_label)
    alike = frame.value_counts(dropna=False).rename("n").reset_index()
    rng, columns, gains = np.random.default_rng(0), [*rows.s], []
    for n in rng.multinomial(alike["n"].sum(), alike["n"] / alike["n"].sum(), size=200):
        drawn = alike.loc[np.repeat(alike.index, n)].reset_index(drop=True)
        sample = StrangerTable(rows.X[:0], drawn["y"].to_numpy(), drawn[columns], rows.y_desirable)
        gain = [figures(sample, drawn[name].to_numpy(), measure)[1] for name in ("fair", "plain")]
        gains.append(gain[0] - gain[1])
    sizes = pd.Series(problem.train.group).value_counts()
    return {
        "rows": len(problem.train.y),
        "groups": len(sizes),
        "smallest": int(sizes.min()),
        "accuracy": round(fair[0], 4),
        "plain_accuracy": round(plain[0], 4),
        "unfairness": round(fair[1], 4),
        "plain_unfairness": round(plain[1], 4),
        "error": round(float(np.std(gains, ddof=1)), 4),
        "max": round(fair[2], 4),
        "warnings": _our_warnings(caught),
    }


def is_beaten(fits: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether another method is better by the margin, both in accuracy and in unfairness.

    Both have the rows of one case, one per split. Means over their common splits are compared.
    """
    both = fits.merge(other, on="seed", suffixes=("", "_other"))
    return bool(
        len(both)
        and both["accuracy_other"].mean() >= both["accuracy"].mean() + MARGIN
        and both["unfairness_other"].mean() <= both["unfairness"].mean() - MARGIN
    )


def summary(asked: argparse.Namespace) -> None:
    """The table of methods, printed and written."""
    results = pd.read_csv(asked.out / "strangers.csv", keep_default_na=False)
    failed = results[results["error"] != ""]
    results = results[results["error"] == ""]
    numbers = ["fit_max", "own_max", "accuracy", "unfairness", "max", "constant", "seconds"]
    results[numbers] = results[numbers].apply(pd.to_numeric)
    results["kept"] = results["fit_max"] <= results["epsilon"] + REACHED
    results["own_kept"] = results["own_max"] <= results["epsilon"] + REACHED
    rows = []
    for (kind, method, inputs), fits in results[results["method"] != "plain"].groupby(
        ["model", "method", "inputs"], sort=False
    ):
        same = results[(results["model"] == kind) & (results["inputs"] == inputs)]
        keys = ["table", "measure", "epsilon"]
        beaten = pd.DataFrame([_beaten(case, same) for _, case in fits.groupby(keys, sort=False)])
        is_ours = method in OURS
        rows.append(
            {
                "model": kind,
                "inputs": inputs,
                "method": method,
                "cases": len(beaten),
                "compared": int(beaten["beaten_by_another"].notna().sum()),
                "epsilon_kept": fits["kept"].mean(),
                "own_levels_kept": fits["own_kept"].mean() if is_ours else np.nan,
                "missed_without_warning": _share_of_silent_misses(fits) if is_ours else np.nan,
                **_price(fits, same[same["method"] == "plain"], is_ours=is_ours),
                **beaten.astype(float).mean(),
            }
        )
    order = {name: place for place, name in enumerate([*KINDS, "blind", "aware", *METHODS])}
    table = pd.DataFrame(rows).sort_values(
        ["model", "inputs", "method"], key=lambda column: column.map(order)
    )
    print(table.round(2).to_string(index=False))
    if len(failed):
        print(f"\n{len(failed)} fits failed:")
        print(failed.groupby(["method", "model", "error"]).size().to_string())
    write_whole(asked.out / "strangers_summary.csv", table.round(3).to_csv(index=False))
    attained = attained_levels(results[results["method"] != "plain"], order)
    print(attained.round(3).to_string(index=False))
    write_whole(asked.out / "strangers_epsilon.csv", attained.round(4).to_csv(index=False))


def attained_levels(results: pd.DataFrame, order: dict[str, int]) -> pd.DataFrame:
    """Requested and achieved epsilon by method: medians over tables, measures and splits."""
    keys = ["model", "inputs", "method", "epsilon"]
    grouped = results.groupby(keys, sort=False)
    medians = grouped[["fit_max", "own_max", "max", "unfairness", "accuracy"]].median()
    medians["warned"] = grouped["warnings"].agg(lambda texts: float((texts != "").mean()))
    medians.loc[~medians.index.get_level_values("method").isin(OURS), "warned"] = np.nan
    named = {
        "fit_max": "max_training",
        "own_max": "max_own",
        "max": "max_test",
        "unfairness": "mean_test",
        "accuracy": "accuracy_test",
    }
    table = medians.rename(columns=named).reset_index()
    return table.sort_values(keys, key=lambda column: column.map(order).fillna(column))


def _price(fits: pd.DataFrame, plain: pd.DataFrame, *, is_ours: bool) -> dict[str, float]:
    """The accuracy lost against plain models, and how often a bad fit comes without a warning."""
    keys = ["table", "measure", "seed"]
    both = fits.merge(plain.drop_duplicates(keys), on=keys, suffixes=("", "_plain"))
    lost, is_silent = both["accuracy_plain"] - both["accuracy"], both["warnings"] == ""
    is_useless = both["accuracy"] < both["constant"] + USEFUL
    return {
        "accuracy_lost": lost.mean(),
        "lost_at_most_2_points": (lost <= COSTLY).mean(),
        "lost_more_without_warning": ((lost > COSTLY) & is_silent).mean() if is_ours else np.nan,
        "no_better_than_constant": is_useless.mean(),
        "useless_without_warning": (is_useless & is_silent).mean() if is_ours else np.nan,
    }


def _share_of_silent_misses(fits: pd.DataFrame) -> float:
    """The share of fits that miss epsilon by their own levels, without a warning."""
    return float((~fits["own_kept"] & (fits["warnings"] == "")).mean())


def _beaten(case: pd.DataFrame, same: pd.DataFrame) -> dict[str, bool | None]:
    """What beats a method in a case, which has a row per split; None if nothing can be compared."""
    first = case.iloc[0]
    here = same[(same["table"] == first["table"]) & (same["measure"] == first["measure"])]
    others = here[here["method"].isin(OTHERS) & (here["method"] != first["method"])]
    others = others[others["seed"].isin(case["seed"])]
    constant = case[["seed"]].assign(accuracy=case["constant"], unfairness=0.0)

    def by_any(methods: pd.DataFrame) -> bool | None:
        each = [fits for _, fits in methods.groupby(["method", "epsilon"])]
        return any(is_beaten(case, fits) for fits in each) if each else None

    return {
        "beaten_by_constant": is_beaten(case, constant),
        "beaten_by_plain": is_beaten(case, here[here["method"] == "plain"]),
        "beaten_by_another": by_any(others[others["epsilon"] == first["epsilon"]]),
        "beaten_at_any_epsilon": by_any(others),
    }


def main() -> None:
    """Reads the options."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "summary", "groups"])
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--measures", nargs="*", default=[*MEASURES], choices=[*MEASURES])
    parser.add_argument("--inputs", nargs="*", default=["blind", "aware"])
    parser.add_argument("--models", nargs="*", default=[*KINDS], choices=[*KINDS])
    parser.add_argument("--methods", nargs="*", default=[*METHODS], choices=[*METHODS])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[*EPSILONS])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path("build/strangers"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    asked = parser.parse_args()
    asked.tables = asked.tables or [*(MANY_GROUPS if asked.what == "groups" else TABLES)]
    {"run": run, "summary": summary, "groups": many_groups}[asked.what](asked)


if __name__ == "__main__":
    main()
