"""Rows per seed -> means and standard deviations, with the columns of the paper's results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.bench.naming import place
from fairgrad.bench.select import FIGURES, KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGITS = 4
COLUMNS = (*KEYS, *(f"{figure}{ending}" for figure in FIGURES for ending in ("", "_std")))
"""The columns of the paper's results."""
REMARKS = (
    "seeds",
    "grid",
    "epochs",
    "seconds",
    "needs_s_to_predict",
    "expected_accuracy",
    "expected_mean_abs_fairness",
)


def summarise(seeds: pd.DataFrame, by: Sequence[str] = KEYS) -> pd.DataFrame:
    """One row per data set, model, method and measure: means over seeds.

    Standard deviations are those of the seeds at hand (divided by their number); everything is
    rounded to four digits, as in the paper, so that verdicts follow from the printed figures.

    Args:
        seeds: what `per_seed` gives. Of several grids of one method the paper's is taken.
        by: the columns that make a row.

    Returns:
        The columns of the paper's results, then remarks.

    Example:
        >>> import tempfile
        >>> from fairgrad.bench import Plan, per_seed, run
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     seeds = per_seed(run(plan, folder).new)
        >>> summarise(seeds)[["measure", "accuracy"]].iloc[0].tolist()
        ['accuracy_parity', ...0.675...]
    """
    if seeds.empty:
        return pd.DataFrame(columns=[*COLUMNS, *REMARKS])
    rows = [_row(part, by) for _, part in _one_grid(seeds, by).groupby(list(by), sort=False)]
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


def _row(part: pd.DataFrame, by: Sequence[str]) -> dict[str, object]:
    first = part.iloc[0]
    row: dict[str, object] = {key: first[key] for key in by}
    for figure in FIGURES:
        row[figure] = round(float(part[figure].mean()), DIGITS) + 0.0  # no negative zero
        row[f"{figure}_std"] = round(float(part[figure].std(ddof=0)), DIGITS)
    row |= {"seeds": part["seed"].nunique()}
    row |= {name: first[name] for name in ("grid", "epochs", "seconds", "needs_s_to_predict")}
    for name in ("expected_accuracy", "expected_mean_abs_fairness"):
        values = part[name].astype(float)
        row[name] = None if values.isna().all() else round(float(values.mean()), DIGITS)
    return row
