"""Which methods no other one beats in both accuracy and fairness, and the tally of verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairgrad.bench.compare import VERDICTS
from fairgrad.bench.naming import MEASURES, dataset_title, method_title

if TYPE_CHECKING:
    import pandas as pd

CELL = ["dataset", "model", "measure"]
FAIRGRAD, ESTIMATOR = "fairgrad", "fairgrad_stable"


def beaten_by(rows: pd.DataFrame, method: str) -> list[str]:
    """Methods that are at least as good in both figures, and better in one, within one cell.

    Methods that need the sensitive value to predict solve an easier problem: they do not count;
    nor do the variants of FairGrad, which are no other method.

    Example:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"method": ["a", "b"], "accuracy": [0.8, 0.9],
        ...     "mean_abs_fairness": [0.02, 0.02], "needs_s_to_predict": [False, False]})
        >>> beaten_by(rows, "a"), beaten_by(rows, "b")
        (['b'], [])
    """
    own = rows[rows["method"] == method].iloc[0]
    more_accurate = rows["accuracy"] - own["accuracy"]
    fairer = own["mean_abs_fairness"] - rows["mean_abs_fairness"]
    beats = (more_accurate >= 0) & (fairer >= 0) & ((more_accurate > 0) | (fairer > 0))
    is_other = ~rows["needs_s_to_predict"].astype(bool) & ~rows["method"].str.startswith(FAIRGRAD)
    found: list[str] = rows[beats & is_other]["method"].tolist()
    return found


@dataclass(frozen=True, eq=False)
class Tally:
    """How a method fares over all cells (data set, model, measure).

    Attributes:
        method: its name.
        verdicts: how often each verdict was given.
        on_front: cells in which no other method beats it.
        beaten: the other cells, with the methods that do.
    """

    method: str
    verdicts: Counter[str] = field(default_factory=Counter)
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
        verdicts = f"{title}: of {judged} cells that compare with the paper's {counts}."
        front = (
            f"{title} is on the Pareto front of the methods measured (those that need the "
            "sensitive value to predict and its own variants left out) in "
            f"{len(self.on_front)} of {cells} cells."
        )
        lost = "; ".join(f"{cell} ({', '.join(by)})" for cell, by in self.beaten.items())
        beaten = f"At least as good in both figures and better in one is another method in: {lost}."
        return [verdicts, front, beaten] if lost else [verdicts, front]


def tally(comparison: pd.DataFrame, method: str = FAIRGRAD) -> Tally:
    """Counts a method's verdicts and its places on the Pareto front."""
    found = Tally(method)
    for key, rows in comparison.groupby(CELL, sort=False):
        dataset, model, measure = map(str, key)
        if method not in set(rows["method"]):
            continue
        found.verdicts[rows[rows["method"] == method].iloc[0]["verdict"]] += 1
        cell = f"{dataset_title(dataset)} {model} {MEASURES.get(measure, measure)}"
        others = beaten_by(rows, method)
        if others:
            found.beaten[cell] = [method_title(other) for other in others]
        else:
            found.on_front.append(cell)
    return found


def duel(comparison: pd.DataFrame, one: str = ESTIMATOR, other: str = FAIRGRAD) -> str | None:
    """In how many cells one method is better than another in both figures; None if in no cell."""
    figures = comparison[comparison["method"].isin([one, other])].pivot_table(
        index=CELL, columns="method", values=["accuracy", "mean_abs_fairness"]
    )
    if not {one, other} <= set(figures.columns.get_level_values(-1)):
        return None
    figures = figures.dropna()
    accurate = figures["accuracy"][one] - figures["accuracy"][other]
    fairer = figures["mean_abs_fairness"][other] - figures["mean_abs_fairness"][one]
    better = int(((accurate >= 0) & (fairer >= 0)).sum())
    worse = int(((accurate <= 0) & (fairer <= 0) & ((accurate < 0) | (fairer < 0))).sum())
    return (
        f"{method_title(one)}, one model without any selection, is at least as good as "
        f"{method_title(other)} in both figures in {better} of {len(figures)} cells, at most as "
        f"good in both in {worse}, and another trade-off in the rest."
    )
