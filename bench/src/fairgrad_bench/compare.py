"""Our figures beside the paper's, with a verdict per row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from fairgrad.bench.paper import MAX_MIN_ARE_ABSOLUTE, NOT_COMPARABLE, paper_name, paper_results
from fairgrad.bench.select import FIGURES, KEYS

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

Row = Mapping[str, Any]


def verdict(ours: Row, paper: Row) -> str:
    """The first that fits of better, reproduced, trade-off and worse.

    Args:
        ours: with accuracy, mean_abs_fairness and mean_abs_fairness_std.
        paper: likewise.

    Example:
        >>> paper = {"accuracy": 0.83, "mean_abs_fairness": 0.02, "mean_abs_fairness_std": 0.001}
        >>> verdict({**paper, "accuracy": 0.84}, paper)
        'better'
        >>> verdict({**paper, "accuracy": 0.82}, paper)
        'reproduced'
        >>> verdict({**paper, "accuracy": 0.84, "mean_abs_fairness": 0.03}, paper)
        'trade-off'
        >>> verdict({**paper, "accuracy": 0.80}, paper)
        'worse'
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
    printed = {tuple(row[key] for key in KEYS): row for row in _records(paper_results())}
    return pd.DataFrame([row | _beside(row, printed) for row in _records(summary)])


def _beside(row: dict[str, Any], printed: Mapping[tuple[Any, ...], Row]) -> dict[str, Any]:
    name = paper_name(row["dataset"])
    paper = printed.get((name, *(row[key] for key in KEYS[1:])))
    hidden = FIGURES[2:] if row["method"] in MAX_MIN_ARE_ABSOLUTE else ()
    found: dict[str, Any] = {
        f"paper_{figure}{ending}": None
        if paper is None or figure in hidden
        else paper[f"{figure}{ending}"]
        for figure in FIGURES
        for ending in ("", "_std")
    }
    if paper is None:
        return found | {"verdict": NOT_IN_PAPER}
    comparable = row["dataset"] not in NOT_COMPARABLE
    return found | {"verdict": verdict(row, paper) if comparable else NO_VERDICT}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): row[key] for key in row} for row in frame.to_dict(orient="records")]
