"""What a frontier of 32 models costs, in times of one model, and against fairlearn's reductions.

Times are processor times, medians of runs taken in turns, one thread. Frontiers are compared on
Adult's test set by the area they dominate (hypervolume) up to the accuracy of the constant
classifier and an unfairness of 0.1. Name sections (speed, fairlearn) to run some of them only.

    python benchmarks/frontier_speed.py [speed] [fairlearn] [--epsilons 8] [--repeats 3]
        [--out results]

With --out the tables are also written there: frontier_speed.csv and frontier_fairlearn.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from fairlearn.reductions import (
    DemographicParity,
    EqualizedOdds,
    ExponentiatedGradient,
    GridSearch,
)
from sklearn.linear_model import LogisticRegression

from fairgrad import fairness_levels
from fairgrad.datasets import Split, load
from fairgrad.files import write_whole
from fairgrad.frontier import Frontier, epsilon_grid, non_dominated
from fairgrad.sklearn import FairGradClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODELS = 32
WORST_UNFAIRNESS = 0.1
MOMENTS = {"equalized_odds": EqualizedOdds, "demographic_parity": DemographicParity}


def hypervolume(accuracy: Any, unfairness: Any, reference: tuple[float, float]) -> float:
    """The area of what the points are at least as good as, up to a reference point.

    ``area of the union over i of [u_i, u_ref] x [a_ref, a_i]``: larger is better. Two frontiers
    compare only with the same reference.

    Example:
        >>> round(hypervolume([0.8, 0.9], [0.0, 0.1], reference=(0.5, 0.2)), 4)
        0.07
    """
    worst_accuracy, worst_unfairness = reference
    order = np.argsort(unfairness)
    u = np.asarray(unfairness, dtype=np.float64)[order].clip(max=worst_unfairness)
    best = np.maximum.accumulate(np.asarray(accuracy, dtype=np.float64)[order])
    widths = np.diff(np.append(u, worst_unfairness))
    return float(widths @ (best - worst_accuracy).clip(min=0.0))


def seconds(task: Callable[[], Any]) -> float:
    """How long a task takes."""
    started = time.process_time()
    task()
    return time.process_time() - started


def in_turns(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The median time of each task."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            times[name].append(seconds(task))
    return {name: median(taken) for name, taken in times.items()}


def speed(split: Split, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One model against a frontier, judging included, for several networks and batch sizes."""
    train, validation, _ = split
    deep = {"hidden_layer_sizes": (128, 64, 32), "max_iter": 2}
    cases = {
        ("linear, batch 64, 30 epochs", "at most 4x"): {"batch_size": 64, "max_iter": 30},
        ("linear, batch 512, 30 epochs", "at most 12x"): {"batch_size": 512, "max_iter": 30},
        ("128-64-32, batch 64, 2 epochs", "printed"): {**deep, "batch_size": 64},
        ("128-64-32, batch 512, 2 epochs", "printed"): {**deep, "batch_size": 512},
    }
    print(f"\nAdult, equalized odds: a frontier of {MODELS} models in times of one model")
    rows_of_table = []
    for (name, wanted), settings in cases.items():
        model = FairGradClassifier("equalized_odds", random_state=0, **settings)
        frontier = Frontier(model, epsilons=MODELS, random_state=0)
        rows = {"sensitive_features": train.s}
        tasks = {
            "one": lambda model=model, rows=rows: model.fit(train.X, train.y, **rows),
            "all": lambda frontier=frontier, rows=rows: frontier.fit(
                train.X, train.y, **rows, validation=validation
            ),
        }
        times = in_turns(tasks, arguments.repeats)
        print(
            f"  {name:31s} one {times['one']:6.2f} s, frontier {times['all']:6.2f} s: "
            f"{times['all'] / times['one']:5.2f}x ({wanted})"
        )
        rows_of_table.append(
            {
                "network": name,
                "models": MODELS,
                "seconds_of_one": times["one"],
                "seconds_of_all": times["all"],
                "ratio": times["all"] / times["one"],
            }
        )
    return rows_of_table


def fairlearn(split: Split, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time and area of our frontier, of reductions by epsilon, and of a grid of multipliers."""
    rows_of_table = []
    for measure in MOMENTS:
        print(f"\nAdult, {measure}: frontiers on the test set, linear models")
        print(f"  {'':38s} models  seconds    area x 1000  per model")
        makers = {
            "fairgrad, one stack": lambda m: _ours(split, m, MODELS),
            "fairgrad, as many as the reductions": lambda m: _ours(split, m, arguments.epsilons),
            "ExponentiatedGradient per epsilon": lambda m: _reductions(
                split, m, epsilon_grid(arguments.epsilons, with_plain=False)
            ),
            "GridSearch": lambda m: _grid(split, m),
        }
        base = None
        for name, make in makers.items():
            started = time.process_time()
            predictions = make(measure)
            taken = time.process_time() - started
            area = _area(split, measure, predictions)
            base = base or taken
            print(
                f"  {name:38s} {len(predictions):5d} {taken:8.2f} ({taken / base:5.1f}x)"
                f" {1000 * area:9.3f} {taken / len(predictions):9.2f} s"
            )
            rows_of_table.append(
                {
                    "measure": measure.replace("_", " "),
                    "frontier": name,
                    "models": len(predictions),
                    "seconds": taken,
                    "area_x_1000": 1000 * area,
                }
            )
    return rows_of_table


def _ours(split: Split, measure: str, models: int) -> Sequence[Any]:
    train, validation, test = split
    frontier = Frontier(fairness_measure=measure, epsilons=models, random_state=0)
    frontier.fit(train.X, train.y, sensitive_features=train.s, validation=validation)
    return [model.predict(test.X) for model in frontier.estimators_]


def _reductions(split: Split, measure: str, epsilons: Any) -> Sequence[Any]:
    train, _, test = split
    found = []
    for epsilon in epsilons:
        moment = MOMENTS[measure](difference_bound=max(float(epsilon), 1e-3))
        model = ExponentiatedGradient(LogisticRegression(max_iter=1000), moment)
        model.fit(train.X, train.y, sensitive_features=train.s)
        found.append(np.asarray(model.predict(test.X, random_state=0)))
    return found


def _grid(split: Split, measure: str) -> Sequence[Any]:
    train, _, test = split
    model = GridSearch(LogisticRegression(max_iter=1000), MOMENTS[measure](), grid_size=MODELS)
    model.fit(train.X, train.y, sensitive_features=train.s)
    return [np.asarray(each.predict(test.X)) for each in model.predictors_]


def _area(split: Split, measure: str, predictions: Sequence[Any]) -> float:
    test = split.test
    accuracy = np.array([np.mean(predicted == test.y) for predicted in predictions])
    unfairness = np.array(
        [fairness_levels(test.y, p, test.s, measure).unfairness for p in predictions]
    )
    best = non_dominated(accuracy, unfairness)
    constant = max(np.mean(test.y), 1 - np.mean(test.y))
    return hypervolume(accuracy[best], unfairness[best], (constant, WORST_UNFAIRNESS))


SECTIONS = {"speed": speed, "fairlearn": fairlearn}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []])
    parser.add_argument("--epsilons", type=int, default=8, help="fits of ExponentiatedGradient")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # fairlearn's, about pandas
    adult = load("adult").split(seed=10)
    for section in given.sections or SECTIONS:
        table = pd.DataFrame(SECTIONS[section](adult, given)).round(4)
        if given.out is not None:
            write_whole(given.out / f"frontier_{section}.csv", table.to_csv(index=False))
