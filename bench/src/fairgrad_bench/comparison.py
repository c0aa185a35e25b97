"""Compares our figures with the paper's, with a verdict per row, and with other methods."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from fairgrad_bench.paper import (
    MAX_MIN_ARE_ABSOLUTE,
    MEASURES,
    NOT_COMPARABLE,
    dataset_title,
    method_title,
    paper_name,
    paper_results,
)
from fairgrad_bench.selection import FIGURES, KEYS

BETTER, REPRODUCED, TRADE_OFF, WORSE = "better", "reproduced", "trade-off", "worse"
VERDICTS = (BETTER, REPRODUCED, TRADE_OFF, WORSE)
NO_VERDICT, NOT_IN_PAPER = "not comparable", "not in the paper"

MEANING = {
    BETTER: "at least as accurate and as fair as the paper's, and better in one of the two",
    REPRODUCED: "accuracy within 0.02 of the paper's and mean |F| within two pooled standard "
    "deviations (at least 0.002 each)",
    TRADE_OFF: "another point of the trade-off: fairer but less accurate, or the reverse",
    WORSE: "none of these",
    NO_VERDICT: "the data are not the paper's",
    NOT_IN_PAPER: "the paper has no such row",
}
ACCURACY_WITHIN, LEAST_DEVIATION, DEVIATIONS = 0.02, 0.002, 2.0
_DIGITS = 9  # differences of figures with four digits, without floating-point noise

CELL = ["dataset", "model", "measure"]
FAIRGRAD, ESTIMATOR = "fairgrad", "fairgrad_stable"
OWN = (FAIRGRAD, "decision")
"""How the names of FairGrad and its variants begin."""

Row = Mapping[Any, Any]


def verdict(ours: Row, paper: Row) -> str:
    """The first that fits of better, reproduced, trade-off and worse.

    Args:
        ours: with accuracy, mean_abs_fairness and mean_abs_fairness_std.
        paper: likewise.
    """
    more_accurate = round(ours["accuracy"] - paper["accuracy"], _DIGITS)
    fairer = round(paper["mean_abs_fairness"] - ours["mean_abs_fairness"], _DIGITS)
    if min(more_accurate, fairer) >= 0 and max(more_accurate, fairer) > 0:
        return BETTER
    if abs(more_accurate) <= ACCURACY_WITHIN and abs(fairer) <= round(
        DEVIATIONS * pooled_deviation(ours, paper), _DIGITS
    ):
        return REPRODUCED
    return TRADE_OFF if more_accurate * fairer < 0 else WORSE


def pooled_deviation(ours: Row, paper: Row) -> float:
    """``sqrt((s1^2 + s2^2) / 2)`` of the two standard deviations of mean |F|, at least 0.002."""
    squares = [float(row["mean_abs_fairness_std"]) ** 2 for row in (ours, paper)]
    return max(math.sqrt(sum(squares) / 2), LEAST_DEVIATION)


def compared(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with the paper's figures as columns ``paper_...`` and a verdict.

    Maxima and minima that the paper prints as absolute values are left out.
    """
    printed = {
        tuple(row[key] for key in KEYS): row for row in paper_results().to_dict(orient="records")
    }
    rows = summary.to_dict(orient="records")
    return pd.DataFrame([row | _beside(row, printed) for row in rows])


def _beside(row: Row, printed: Mapping[tuple[Any, ...], Row]) -> dict[str, Any]:
    name = paper_name(row["dataset"])
    paper = printed.get((name, *(row[key] for key in KEYS[1:])))
    hidden = FIGURES[2:] if row["method"] in MAX_MIN_ARE_ABSOLUTE else ()
    figures: dict[str, Any] = {
        f"paper_{figure}{ending}": None
        if paper is None or figure in hidden
        else paper[f"{figure}{ending}"]
        for figure in FIGURES
        for ending in ("", "_std")
    }
    if paper is None:
        return figures | {"verdict": NOT_IN_PAPER}
    comparable = row["dataset"] not in NOT_COMPARABLE
    return figures | {"verdict": verdict(row, paper) if comparable else NO_VERDICT}


def beaten_by(rows: pd.DataFrame, method: str) -> list[str]:
    """Methods that are at least as good in both figures, and better in one, within a cell.

    Methods that need the sensitive value to predict are left out, because they solve an easier
    problem, and so are the variants of FairGrad.
    """
    ours = rows[rows["method"] == method].iloc[0]
    more_accurate = rows["accuracy"] - ours["accuracy"]
    fairer = ours["mean_abs_fairness"] - rows["mean_abs_fairness"]
    beats = (more_accurate >= 0) & (fairer >= 0) & ((more_accurate > 0) | (fairer > 0))
    is_other = ~rows["needs_s_to_predict"].astype(bool) & ~rows["method"].str.startswith(OWN)
    better: list[str] = rows[beats & is_other]["method"].tolist()
    return better


@dataclass(frozen=True, eq=False)
class Tally:
    """How a method fares over all cells (data set, model, measure).

    Attributes:
        method: its name.
        verdicts: how often each verdict was given.
        missed: how often a result of the paper was neither reproduced nor bettered, by data set.
        on_front: cells in which no other method beats it.
        beaten: the other cells, with the methods that do.
    """

    method: str
    verdicts: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    on_front: list[str] = field(default_factory=list)
    beaten: dict[str, list[str]] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """The tally in words; none if the method was not measured."""
        cells = len(self.on_front) + len(self.beaten)
        if not cells:
            return []
        title = method_title(self.method)
        judged = sum(self.verdicts[name] for name in VERDICTS)
        counts = ", ".join(f"{self.verdicts[name]} {name}" for name in VERDICTS)
        verdicts = (
            "Does this implementation reproduce the paper's figures? We repeated the paper's "
            f"experiments. Verdicts on its {judged} results of {title} that can be compared: "
            f"{counts}. Each is a cell: a data set, a kind of model (linear or network) and a "
            "measure."
        )
        if self.missed:
            where = ", ".join(f"{name} {count}" for name, count in self.missed.most_common())
            verdicts += f" Trade-offs and worse results by data set: {where}."
        front = (
            f"In {len(self.on_front)} of {cells} cells no other method beats {title}. A method "
            "beats another if it is at least as accurate and as fair, and better in one of the "
            f"two. This count leaves out variants of {title} and methods that need the sensitive "
            "value to predict."
        )
        return [verdicts, front]


def of_trees(comparison: pd.DataFrame, *, those: bool = True) -> pd.DataFrame:
    """The rows of boosted trees, which the paper does not have; or all but those."""
    return comparison[(comparison["model"] == "lightgbm") == those]


def tally(comparison: pd.DataFrame, method: str = FAIRGRAD) -> Tally:
    """Counts a method's verdicts and its places on the Pareto front, of the paper's models."""
    result = Tally(method)
    comparison = of_trees(comparison, those=False)
    for key, rows in comparison.groupby(CELL, sort=False):
        dataset, model, measure = map(str, key)
        if method not in set(rows["method"]):
            continue
        judged = rows[rows["method"] == method].iloc[0]["verdict"]
        result.verdicts[judged] += 1
        if judged in (TRADE_OFF, WORSE):
            result.missed[dataset_title(dataset)] += 1
        cell = f"{dataset_title(dataset)} {model} {MEASURES.get(measure, measure)}"
        others = beaten_by(rows, method)
        if others:
            result.beaten[cell] = [method_title(other) for other in others]
        else:
            result.on_front.append(cell)
    return result


def together(comparison: pd.DataFrame, *, trees: bool = False) -> str | None:
    """In how many cells one of FairGrad's blind rows is on the Pareto front; None if in no cell."""
    cells, lost = 0, []
    for key, rows in of_trees(comparison, those=trees).groupby(CELL, sort=False):
        is_own = rows["method"].str.startswith(OWN) & ~rows["needs_s_to_predict"].astype(bool)
        if is_own.any():
            cells += 1
            if all(beaten_by(rows, method) for method in rows[is_own]["method"]):
                dataset, model, measure = map(str, key)
                lost.append(f"{dataset_title(dataset)} {model} {MEASURES.get(measure, measure)}")
    if not cells:
        return None
    missing = f" Exceptions: {', '.join(lost)}." if lost else ""
    return (
        f"{'With boosted trees, in' if trees else 'In'} {cells - len(lost)} of {cells} cells, "
        "FairGrad or one of its variants that do not need the sensitive value to predict is beaten "
        f"by no other method.{missing}"
    )


def duel(comparison: pd.DataFrame, first: str = ESTIMATOR, second: str = FAIRGRAD) -> str | None:
    """In how many cells one method is better than another in both figures; None if in no cell."""
    rows = of_trees(comparison, those=False)
    figures = rows[rows["method"].isin([first, second])].pivot_table(
        index=CELL, columns="method", values=["accuracy", "mean_abs_fairness"]
    )
    if not {first, second} <= set(figures.columns.get_level_values(-1)):
        return None
    figures = figures.dropna()
    accurate = figures["accuracy"][first] - figures["accuracy"][second]
    fairer = figures["mean_abs_fairness"][second] - figures["mean_abs_fairness"][first]
    better = int(((accurate >= 0) & (fairer >= 0)).sum())
    worse = int(((accurate <= 0) & (fairer <= 0) & ((accurate < 0) | (fairer < 0))).sum())
    return (
        f"{method_title(first)} trains one model per seed and selects no settings. It is at least "
        f"as accurate and fair as {method_title(second)} in {better} of {len(figures)} cells, and "
        f"beaten in {worse}. In the others, one is fairer and the other more accurate."
    )
