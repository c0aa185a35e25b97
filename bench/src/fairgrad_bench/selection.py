"""Records -> one model per seed and measure, chosen by the paper's rule; its figures over seeds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.evaluate import unfairness
from fairgrad.measures import constraints_of
from fairgrad_bench.methods.interface import DESIRABLE
from fairgrad_bench.paper import UNCONSTRAINED_CELEBA_LINEAR, paper_batch_sizes, place
from fairgrad_bench.plan import MEASURES
from fairgrad_bench.records import FINISHED, KeptModel, UnitRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.groups import Floats

KEYS = ("dataset", "model", "method", "measure")
FIGURES = ("accuracy", "mean_abs_fairness", "max_fairness", "min_fairness")
COLUMNS = (*KEYS, *(f"{figure}{ending}" for figure in FIGURES for ending in ("", "_std")))
"""The columns of the paper's results."""

EXPECTED = ("expected_accuracy", "expected_mean_abs_fairness")
OF_UNIT = ("grid", "epochs", "seconds", "needs_s_to_predict")
REMARKS = ("seeds", *OF_UNIT, *EXPECTED)
DIGITS, NOISE_DIGITS = 4, 12
"""Sums of floating-point numbers differ from 0 beyond the latter; equally fair models must tie."""

OF_ERRORS = ("accuracy_parity", "equalized_odds", "equality_of_opportunity")
"""Measures of errors whatever the number of labels."""

BATCH_SIZE, EPSILON, FAIRNESS_RATE = "batch_size", "epsilon", "fairness_rate"
PAPER_CASE = {"dataset": "celeba", "model": "linear"}


def fairest_of_accurate(accuracy: Floats, unfairness: Floats, slack: float = 0.03) -> int:
    """The paper's rule: the fairest of those within `slack` of the best accuracy.

    Of equally fair ones it is the most accurate, then the first. Without a measure, unfairness is
    NaN and all are alike.
    """
    unfairness = np.where(np.isnan(unfairness), 0.0, unfairness)
    key = np.where(accuracy >= np.nanmax(accuracy) - slack, unfairness, np.inf)
    return int(np.lexsort((np.where(np.isnan(accuracy), np.inf, -accuracy), key))[0])


@dataclass(frozen=True, eq=False)
class CandidateFigures:
    """What n candidates reach on one part.

    Attributes:
        accuracy: (n,).
        levels: (n, J) of fairness.
        unfairness: (n,) the mean of |F| over the levels that are defined.
    """

    accuracy: Floats
    levels: Floats
    unfairness: Floats

    def row(self, position: int) -> dict[str, float]:
        """The paper's four figures of one candidate."""
        levels = self.levels[position]
        figures = (
            self.accuracy[position],
            self.unfairness[position],
            np.nanmax(levels),
            np.nanmin(levels),
        )
        return {
            name: round(float(value), NOISE_DIGITS) + 0.0  # no negative zero
            for name, value in zip(FIGURES, figures, strict=True)
        }


def judge(
    record: UnitRecord, seed: int, part: str, wrong: Sequence[Any], measure: str
) -> CandidateFigures:
    """What candidates reach on a part of a seed's split.

    ``F = c0 + C e`` with the frequencies of this very part; e are the error rates of its cells.

    Args:
        record: whose candidates they are.
        seed: of the split.
        part: "validation" or "test".
        wrong: (n, cells) the rows that each candidate gets wrong; or (n, labels * cells), those of
            each predicted label.
        measure: the name of a fairness measure.
    """
    counts, rows = np.asarray(wrong, dtype=np.float64), np.asarray(record.rows[seed][part])
    constraints = constraints_of(measure, record.cells.as_groups(rows), y_desirable=DESIRABLE)
    shape = (len(record.cells.labels), len(record.cells.groups))
    if counts.shape[1] > len(rows):
        by_label = counts.reshape(-1, shape[0], *shape)
        right = np.einsum("nllg->nlg", by_label).reshape(len(counts), -1)
        wrong_rows = rows - right
    else:
        wrong_rows = counts
    accuracy = 1 - wrong_rows.sum(axis=1) / rows.sum()
    if constraints.n_outcomes > 1:
        rows = np.tile(rows, constraints.n_outcomes)
    else:
        counts = wrong_rows
    if not constraints.by_label:
        counts, rows = counts.reshape(-1, *shape).sum(axis=1), rows.reshape(shape).sum(axis=0)
    levels = constraints.levels(counts / np.where(rows > 0, rows, 1.0))
    means = unfairness(constraints.gaps(levels))
    return CandidateFigures(accuracy, levels, np.round(means, NOISE_DIGITS))


def per_seed(records: Iterable[UnitRecord], measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """One row per unit, seed and measure: the chosen model's figures on the test part.

    A method that is trained for a measure is judged by that one, the others by all of them.
    Where a unit varies a setting, there is one row for every value of it.
    """
    rows = [
        row
        for record in records
        if record.status == FINISHED
        for measure in _judged_by(record, measures)
        for row in _chosen_rows(record, measure)
    ]
    return pd.DataFrame(rows)


def _judged_by(record: UnitRecord, measures: Sequence[str]) -> list[str]:
    own = record.unit.measure
    wanted = [name for name in measures if own is None or name == own]
    n_cells = len(record.cells.labels) * len(record.cells.groups)
    has_labels = all(len(kept.test) > n_cells for kept in record.kept)
    if len(record.cells.labels) == 2 or has_labels:
        return wanted
    return [name for name in wanted if name in OF_ERRORS]  # an older record


def _chosen_rows(record: UnitRecord, measure: str) -> list[dict[str, Any]]:
    pools: dict[tuple[int, str], list[KeptModel]] = {}
    for kept in record.kept:
        value = kept.settings[record.unit.varies] if record.unit.varies else ""
        pools.setdefault((kept.seed, json.dumps(value)), []).append(kept)
    return [_chosen_row(record, measure, seed, pool) for (seed, _), pool in pools.items()]


def _chosen_row(
    record: UnitRecord, measure: str, seed: int, pool: list[KeptModel]
) -> dict[str, Any]:
    unit = record.unit
    validation = judge(record, seed, "validation", [k.validation for k in pool], measure)
    chosen = fairest_of_accurate(validation.accuracy, validation.unfairness)
    kept = pool[chosen]
    row: dict[str, Any] = dict(
        zip(KEYS, (unit.dataset, unit.model, unit.method, measure), strict=True)
    )
    row |= {"varies": unit.varies, "value": kept.settings.get(unit.varies or "")}
    row |= {"seed": seed, **judge(record, seed, "test", [kept.test], measure).row(0)}
    row |= dict.fromkeys(EXPECTED)
    if kept.expected is not None:  # what randomised predictions reach on average
        found = judge(record, seed, "test", [kept.expected], measure).row(0)
        row |= dict(zip(EXPECTED, (found["accuracy"], found["mean_abs_fairness"]), strict=True))
    grid = "paper" if record.full_grid else unit.grid
    return row | {
        "validation_accuracy": float(validation.accuracy[chosen]),
        "validation_mean_abs_fairness": float(validation.unfairness[chosen]),
        "epoch": kept.epoch,
        "settings": json.dumps(kept.settings, sort_keys=True),
        "grid": grid if unit.combinations is None else "own",
        "epochs": unit.epochs,
        "needs_s_to_predict": record.needs_s_to_predict,
        "seconds": record.seconds,
    }


def summarise(seeds: pd.DataFrame, by: Sequence[str] = KEYS) -> pd.DataFrame:
    """One row per data set, model, method and measure: means over seeds.

    Standard deviations are those of the seeds at hand (divided by their number); everything is
    rounded to four digits, as in the paper, so that verdicts follow from the printed figures.

    Args:
        seeds: what `per_seed` gives. Of several grids of one method the paper's is taken.
        by: the columns that make a row.

    Returns:
        The columns of the paper's results, then remarks.
    """
    if seeds.empty:
        return pd.DataFrame(columns=[*COLUMNS, *REMARKS])
    rows = [_mean_row(part, by) for _, part in _one_grid(seeds, by).groupby(list(by), sort=False)]
    rows.sort(key=lambda row: place(*(str(row[key]) for key in KEYS)))
    return pd.DataFrame(rows)


def _one_grid(seeds: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The rows of each method's fullest grid: the paper's rather than a quick one."""
    ranked = seeds.assign(rank=seeds["grid"].map({"paper": 0, "own": 1, "quick": 2}))
    effort = [*by, "rank", "epochs"]
    best = ranked.sort_values(effort, ascending=[*[True] * (len(by) + 1), False], kind="stable")
    kept = best.groupby(list(by), sort=False)[["rank", "epochs"]].transform("first")
    same = (best["rank"] == kept["rank"]) & (best["epochs"] == kept["epochs"])
    return best[same].drop_duplicates([*by, "seed"], keep="last")


def _mean_row(part: pd.DataFrame, by: Sequence[str]) -> dict[str, object]:
    first = part.iloc[0]
    row: dict[str, object] = {key: first[key] for key in by}
    for figure in FIGURES:
        row[figure] = round(float(part[figure].mean()), DIGITS) + 0.0  # no negative zero
        row[f"{figure}_std"] = round(float(part[figure].std(ddof=0)), DIGITS)
    row |= {"seeds": part["seed"].nunique(), **{name: first[name] for name in OF_UNIT}}
    for name in EXPECTED:
        values = part[name].astype(float)
        row[name] = None if values.isna().all() else round(float(values.mean()), DIGITS)
    return row


def batch_sizes(records: Sequence[UnitRecord]) -> pd.DataFrame:
    """Figures over the batch size, the paper's beside ours where it is the paper's case."""
    rows = _over(records, BATCH_SIZE)
    if rows.empty:
        return rows
    paper = paper_batch_sizes().set_index(BATCH_SIZE).add_prefix("paper_")
    joined = rows.join(paper, on=BATCH_SIZE)
    is_papers = _is_papers(joined, measure="equalized_odds")
    joined.loc[~is_papers, list(paper.columns)] = float("nan")
    return joined


def epsilons(records: Sequence[UnitRecord]) -> pd.DataFrame:
    """Figures over epsilon, with the paper's claims checked on each row.

    The paper claims that mean |F| is at most epsilon, and that accuracy rises to that of the
    unconstrained model once epsilon exceeds its unfairness.
    """
    rows = _over(records, EPSILON)
    if rows.empty:
        return rows
    rows["within_epsilon"] = rows["mean_abs_fairness"] <= rows[EPSILON]
    claims: dict[str, Any] = {
        "paper_unconstrained_accuracy": UNCONSTRAINED_CELEBA_LINEAR["accuracy"],
        "paper_unconstrained_mean_abs_fairness": rows["measure"].map(UNCONSTRAINED_CELEBA_LINEAR),
    }
    rows = rows.assign(**claims)
    rows.loc[~_is_papers(rows), list(claims)] = float("nan")
    return rows


def fairness_rates(records: Sequence[UnitRecord]) -> pd.DataFrame:
    """Figures over the rate of the multipliers, one row per value."""
    return _over(records, FAIRNESS_RATE)


def _over(records: Sequence[UnitRecord], varies: str) -> pd.DataFrame:
    """One row per value of the setting, with means and deviations over seeds; may be empty."""
    seeds = per_seed([record for record in records if record.unit.varies == varies])
    if seeds.empty:
        return pd.DataFrame()
    rows = summarise(seeds, by=(*KEYS, "value")).rename(columns={"value": varies})
    return rows.sort_values([*KEYS, varies], kind="stable", ignore_index=True)


def _is_papers(rows: pd.DataFrame, **more: str) -> pd.Series[bool]:
    case = {**PAPER_CASE, **more}
    return (rows[list(case)] == pd.Series(case)).all(axis=1)
