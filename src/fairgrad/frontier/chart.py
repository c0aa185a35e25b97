"""A frontier as the report takes it. The only part that needs `fairgrad.report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.audit.words import OVERALL
from fairgrad.frontier.geometry import non_dominated
from fairgrad.measures import measure_name
from fairgrad.report.frontier import FrontierData

if TYPE_CHECKING:
    from fairgrad.audit import Audit
    from fairgrad.frontier.frontier import Frontier

RATES = ("accuracy", "selection_rate", "true_positive_rate", "false_positive_rate")
OWN = "trained fair"
OTHER = "post-processed: needs the sensitive value to predict"
NOTE = (
    "Bars are {confidence:.0%} intervals of the models on the frontier, exact for the accuracy and "
    "simultaneous over groups for the unfairness."
)
OTHER_NOTE = (
    " The post-processed models set a threshold for each group on the scores of the plain model "
    "(fairlearn's ThresholdOptimizer): unlike the others they need to know the group of everyone "
    "they judge, and decide partly at random."
)


def report_data(frontier: Frontier, on: str, chosen: int | None) -> FrontierData:
    """The points on some rows, the rates of their groups, and what readers should know."""
    own = _points(frontier.points_, on)
    audits = frontier.audits_[on]
    note, points = NOTE.format(confidence=frontier.confidence), own
    other = frontier.post_processing_
    if other is not None:
        parts = [own.assign(series=OWN), _points(other, on).assign(series=OTHER)]
        points = pd.concat(parts, ignore_index=True)
        audits = [*audits, *frontier.post_processing_audits_[on]]
        note += OTHER_NOTE
    return FrontierData(
        points,
        pd.concat([_rates(i, audit) for i, audit in enumerate(audits)], ignore_index=True),
        chosen=chosen,
        measure=f"mean |F|, {measure_name(frontier.fairness_measure_).replace('_', ' ')}",
        on=f"{on} rows",
        note=note,
    )


def _points(points: pd.DataFrame, on: str) -> pd.DataFrame:
    prefix = f"{on}_"
    figures = points[[name for name in points if str(name).startswith(prefix)]]
    figures = figures.rename(columns=lambda name: name.removeprefix(prefix))
    best = non_dominated(figures["accuracy"], figures["unfairness"])  # on the rows that are shown
    ends = [name for name in figures if str(name).endswith(("_low", "_high"))]
    figures = figures.assign(on_frontier=best)
    figures.loc[~best, ends] = float("nan")
    return points[["epsilon"]].join(figures)


def _rates(position: int, audit: Audit) -> pd.DataFrame:
    """Rates of the finest groups; of several labels each has its own."""
    frame = audit.to_frame("rates")
    finest = " x ".join(audit.attributes)
    frame = frame[(frame["attribute"] == finest) & (frame["group"] != OVERALL)]
    frame = frame[frame["rate"].isin(RATES) & frame["value"].notna()]
    several = len(audit.shown_labels) > 1
    pairs = zip(frame["rate"], frame["label"], strict=True)
    names = [_name(rate, label, several) for rate, label in pairs]
    kept = frame[["group", "value"]].assign(rate=names, point=position)
    return kept.reset_index(drop=True)


def _name(rate: str, label: Any, several: bool) -> str:
    return f"{rate} of {label}" if several and label is not None else rate
