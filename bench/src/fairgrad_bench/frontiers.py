"""Methods at equal unfairness: the accuracy of their frontiers, interpolated at the same levels.

One row per data set, model and measure says if FairGrad is ahead of another method, level with it
or behind. FairGrad is the better of its two ways, weights in training and fair decisions, chosen on
the validation rows of each seed; so are the models of a frontier: those that no other one of the
same method beats there. All figures that are compared are of test rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad_bench.comparison import CELL
from fairgrad_bench.records import FINISHED, newest
from fairgrad_bench.selection import judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.groups import Floats
    from fairgrad_bench.records import UnitRecord

GRADIENT = ("fairgrad", "fairgrad_epsilon", "fairgrad_stable", "fairgrad_frontier")
DECISIONS = ("decision",)
AHEAD, LEVEL, BEHIND = "ahead", "level", "behind"
WITHIN = 0.001
"""Accuracies that differ by less, or by less than one standard error, are level."""

LEVELS = 21
"""At how many levels of unfairness two frontiers are compared."""

POINT = ["dataset", "model", "measure", "method", "seed"]
VALIDATION = ["validation_unfairness", "validation_accuracy"]
TEST = ["unfairness", "accuracy"]


def kept_points(records: Iterable[UnitRecord]) -> pd.DataFrame:
    """All models that records keep, of methods that are trained for a measure.

    Randomised predictions have the figures that they reach on average.
    """
    rows = []
    for record in records:
        unit = record.unit
        if record.status != FINISHED or unit.measure is None or unit.varies is not None:
            continue
        for seed in unit.seeds:
            pool = [kept for kept in record.kept if kept.seed == seed]
            test = [kept.test if kept.expected is None else kept.expected for kept in pool]
            wrong = {"validation": [kept.validation for kept in pool], "test": test}
            found = [judge(record, seed, part, own, unit.measure) for part, own in wrong.items()]
            columns = [figures for one in found for figures in (one.unfairness, one.accuracy)]
            key = (unit.dataset, unit.model, unit.measure, unit.method, seed)
            rows += [(*key, *figures) for figures in zip(*columns, strict=True)]
    return pd.DataFrame(rows, columns=[*POINT, *VALIDATION, *TEST])


def chosen_points(seeds: pd.DataFrame) -> pd.DataFrame:
    """The one model of each seed that was chosen, for methods whose records are not at hand.

    Args:
        seeds: as `BenchResults` holds them.
    """
    found = seeds.rename(columns={"validation_mean_abs_fairness": VALIDATION[0]})
    return found.assign(
        unfairness=found["expected_mean_abs_fairness"].fillna(found["mean_abs_fairness"]),
        accuracy=found["expected_accuracy"].fillna(found["accuracy"]),
    )[[*POINT, *VALIDATION, *TEST]]


def accuracy_at(points: Floats, levels: Floats) -> Floats:
    """The accuracy of a frontier at levels of unfairness; NaN where it is never so fair.

    Between two models of the frontier there are lotteries over them: a straight line.

    Args:
        points: (n, 2) unfairness and accuracy of models.
        levels: (m,) of unfairness.
    """
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    best = np.maximum.accumulate(points[:, 1])
    is_better = np.concatenate([[True], best[1:] > best[:-1]])
    found: Floats = np.interp(levels, points[is_better, 0], best[is_better], left=np.nan)
    return found


def advantage(ours: Floats, other: Floats) -> float:
    """By how much one frontier is more accurate than another, on average over the same levels.

    From the lowest level that both reach to the highest of any model of the other.

    Args:
        ours: (n, 2) unfairness and accuracy of models.
        other: likewise.
    """
    lowest = max(ours[:, 0].min(), other[:, 0].min())
    levels = np.linspace(lowest, max(lowest, other[:, 0].max()), LEVELS)
    return float(np.mean(accuracy_at(ours, levels) - accuracy_at(other, levels)))


def not_beaten(points: pd.DataFrame) -> pd.DataFrame:
    """The models that no other one is as fair as and more accurate than, on validation rows."""
    ordered = points.sort_values(VALIDATION, ascending=[True, False], kind="stable")
    best = ordered[VALIDATION[1]].cummax()
    return ordered[best > best.shift(fill_value=-np.inf)]


def at_equal_unfairness(
    points: pd.DataFrame, other: str = "reduction", ways: Sequence[Sequence[str]] = ()
) -> pd.DataFrame:
    """One row per data set, model and measure: FairGrad's accuracy less another method's.

    Args:
        points: as `kept_points` and `chosen_points` give them.
        other: the name of the other method.
        ways: methods that make one frontier each, of which the better one on the validation rows
            is taken; by default gradient and decisions.

    Returns:
        The mean difference over seeds, its standard error, the verdict, for how many seeds the
        last of the ways was taken, and of how many models a frontier of the other method was made.
    """
    ways = ways or (GRADIENT, DECISIONS)
    rows = []
    for cell, of_cell in points.groupby(CELL, sort=False):
        differences, last, models = [], 0, 0
        for _, of_seed in of_cell.groupby("seed"):
            theirs = of_seed[of_seed["method"] == other]
            own = [of_seed[of_seed["method"].isin(way)] for way in ways]
            own = [not_beaten(frontier) for frontier in own if len(frontier)]
            if theirs.empty or not own:
                continue
            models = max(models, len(theirs))
            best, theirs = own[0], not_beaten(theirs)
            for frontier in own[1:]:
                if advantage(frontier[VALIDATION].to_numpy(), best[VALIDATION].to_numpy()) > 0:
                    best = frontier
            last += int(best["method"].isin(ways[-1]).all())
            differences.append(advantage(best[TEST].to_numpy(), theirs[TEST].to_numpy()))
        if differences:
            row = dict(zip(CELL, cell, strict=True)) | _verdict(differences, last)
            rows.append(row | {"other_models": models})
    return pd.DataFrame(rows)


def compared_frontiers(
    records: Sequence[UnitRecord], seeds: pd.DataFrame | None = None, other: str = "reduction"
) -> pd.DataFrame:
    """`at_equal_unfairness` of all models that records keep.

    Args:
        records: of both methods.
        seeds: figures of earlier results; of a unit that has no record, the chosen models are
            taken from there, a frontier of one model per method.
        other: the name of the other method.
    """
    found = kept_points(newest(records))
    if seeds is not None:
        unit = POINT[:-1]
        here = set(found[unit].itertuples(index=False, name=None))
        missing = [row not in here for row in seeds[unit].itertuples(index=False, name=None)]
        found = pd.concat([found, chosen_points(seeds[missing])], ignore_index=True)
    table = at_equal_unfairness(found, other)
    return table if table.empty else table.sort_values(CELL, ignore_index=True)


def with_earlier(
    found: pd.DataFrame, earlier: pd.DataFrame, records: Sequence[UnitRecord], other: str
) -> pd.DataFrame:
    """A comparison in which cells without a record of the other method are those of an earlier one.

    Without its record there is one model of that method, not its frontier; an earlier comparison
    may have had more of both.

    Args:
        found: as `compared_frontiers` gives it.
        earlier: likewise, from a file.
        records: those that `found` is of.
        other: the name of the other method.
    """
    here = {
        (record.unit.dataset, record.unit.model, record.unit.measure)
        for record in records
        if record.unit.method == other and record.status == FINISHED
    }
    parts = [
        own[[(cell in here) == is_new for cell in own[CELL].itertuples(index=False, name=None)]]
        for own, is_new in ((found, True), (earlier, False))
    ]
    return pd.concat(parts, ignore_index=True).sort_values(CELL, ignore_index=True)


def _verdict(differences: Sequence[float], last: int) -> dict[str, object]:
    mean, n = float(np.mean(differences)), len(differences)
    error = float(np.std(differences, ddof=1)) / n**0.5 if n > 1 else 0.0
    enough = max(WITHIN, error)
    verdict = LEVEL if abs(mean) <= enough else AHEAD if mean > 0 else BEHIND
    figures = {"difference": round(mean, 4), "standard_error": round(error, 4)}
    return {**figures, "verdict": verdict, "seeds": n, "by_decisions": last}
