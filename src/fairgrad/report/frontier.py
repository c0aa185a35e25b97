"""The accuracy-fairness frontier: what it must bring, and its charts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from fairgrad.report.figure import ReportFigure, data, number, percent, series, var

FRONTIER, POINT_RATES = "frontier", "frontier-rates"
"""Names of the two charts: clicking a point of the first shows its rates in the second."""
NEEDED = ("epsilon", "accuracy", "unfairness")
RATES_NEEDED = ("point", "group", "rate", "value")


@dataclass(frozen=True, eq=False)
class FrontierData:
    """Models along the trade-off between accuracy and fairness.

    Attributes:
        points: one row per model with the columns epsilon, accuracy, unfairness; optional are
            `accuracy_low`, `accuracy_high`, `unfairness_low`, `unfairness_high` (intervals),
            `on_frontier` (bool: no other model is both fairer and more accurate) and `series` (a
            name, where several methods are compared).
        rates: one row per model, group and rate with the columns point (the position of the model
            in `points`), group, rate and value; shown when a point is clicked.
        chosen: position of the model that was chosen, if any.
        measure: what unfairness means here.
        on: which rows the figures come from.
        note: what readers should know, such as what a compared method needs to predict.

    Raises:
        ValueError: if a column is missing, a figure is not finite, or a position does not exist.

    Example:
        >>> points = pd.DataFrame({"epsilon": [0.0, 0.1], "accuracy": [0.8, 0.9],
        ...                        "unfairness": [0.01, 0.1]})
        >>> FrontierData(points, chosen=0).chosen
        0
    """

    points: pd.DataFrame
    rates: pd.DataFrame | None = None
    chosen: int | None = None
    measure: str = "mean |F|"
    on: str = "validation rows"
    note: str = ""

    def __post_init__(self) -> None:
        _check_columns(self.points, NEEDED, "points")
        if len(self.points) == 0:
            raise ValueError("points: expected at least one model, got none.")
        figures = self.points[["accuracy", "unfairness"]].to_numpy(dtype=float)
        if not np.isfinite(figures).all():
            row = int(np.flatnonzero(~np.isfinite(figures).all(axis=1))[0])
            raise ValueError(f"points: row {row} has an accuracy or unfairness that is no number.")
        last = len(self.points) - 1
        if self.chosen is not None and not 0 <= self.chosen <= last:
            raise ValueError(f"chosen: expected a position from 0 to {last}, got {self.chosen}.")
        if self.rates is not None:
            _check_columns(self.rates, RATES_NEEDED, "rates")
            if not self.rates["point"].between(0, last).all():
                raise ValueError(f"rates: expected positions of points from 0 to {last}.")


def as_frontier(given: Any, chosen: int | None = None) -> FrontierData:
    """A frontier for the report.

    Args:
        given: a fitted `Frontier`, shown on its test rows if it has any, else on its validation
            rows; `FrontierData`; or a frame of its points alone.
        chosen: position of the model that was chosen.

    Raises:
        TypeError: if it is something else.
    """
    if hasattr(given, "report_data"):
        on = "test" if "test" in getattr(given, "audits_", ()) else "validation"
        found: FrontierData = given.report_data(on, chosen)
        return found
    if isinstance(given, pd.DataFrame):
        return FrontierData(given, chosen=chosen)
    if isinstance(given, FrontierData):
        return given if chosen is None else replace(given, chosen=chosen)
    raise TypeError(
        "frontier: expected a fitted Frontier, FrontierData or a DataFrame of points, got "
        f"{type(given).__name__}."
    )


def frontier_figures(frontier: Any) -> list[ReportFigure]:
    """The frontier, and the rates of the point last clicked (if rates are known).

    Args:
        frontier: a fitted `Frontier`, `FrontierData` or a frame of points: as in `Report`.

    Example:
        >>> points = pd.DataFrame({"epsilon": [0.0, 0.1], "accuracy": [0.8, 0.9],
        ...                        "unfairness": [0.01, 0.1]})
        >>> [figure.title for figure in frontier_figures(points)]
        ['Accuracy against unfairness']
    """
    found = as_frontier(frontier)
    return [_frontier(found), *([] if found.rates is None else [_rates(found)])]


def point_names(frontier: FrontierData) -> list[str]:
    """Each point in words, for the list beside the chart."""
    return [
        f"{_series(row)}ε = {number(row['epsilon'])}: accuracy {percent(row['accuracy'])}, "
        f"unfairness {number(row['unfairness'])}{' (chosen)' if i == frontier.chosen else ''}"
        for i, row in enumerate(_records(frontier.points))
    ]


def _frontier(frontier: FrontierData) -> ReportFigure:
    rows = [_point(i, row, frontier) for i, row in enumerate(_records(frontier.points))]
    methods = list(dict.fromkeys(row["series"] for row in rows))
    several = len(methods) > 1
    base = alt.Chart(data(rows)).encode(
        x=alt.X("unfairness:Q", title=f"unfairness ({frontier.measure})"),
        y=alt.Y("accuracy:Q", title="accuracy", axis=alt.Axis(format=".1%")).scale(zero=False),
    )
    line = base.transform_filter("datum.on_frontier").mark_line(strokeWidth=1.5, opacity=0.7)
    dots = base.mark_point(filled=True, opacity=1, cursor="pointer").encode(
        size=alt.when("datum.point === shown").then(alt.value(190)).otherwise(alt.value(80)),
        tooltip=[
            alt.Tooltip("epsilon_shown:N", title="epsilon"),
            alt.Tooltip("accuracy_shown:N", title="accuracy"),
            alt.Tooltip("unfairness_shown:N", title="unfairness"),
            *([alt.Tooltip("series:N", title="method")] if several else []),
        ],
    )
    colour: Any = series(alt.Color, "series", methods) if several else alt.value(var("accent"))
    line, dots = line.encode(color=colour), dots.encode(color=colour)
    if several:
        dots = dots.encode(shape=series(alt.Shape, "series", methods))
    ring = base.transform_filter("datum.is_chosen").mark_point(
        size=330, strokeWidth=2, color=var("ink"), filled=False, opacity=1
    )
    label = base.transform_filter("datum.is_chosen").mark_text(
        text="chosen", dy=-18, color=var("ink"), fontWeight="bold"
    )
    shown = alt.param(name="shown", value=_first(frontier))
    chart = alt.layer(*_whiskers(base, rows, colour), line, dots, ring, label).add_params(shown)
    return ReportFigure(
        id=FRONTIER,
        title="Accuracy against unfairness",
        chart=chart.properties(width="container", height=340),
        alternative=_words(frontier),
        columns=["epsilon", "accuracy", "unfairness", *(["method"] if several else []), "remark"],
        rows=[_table_row(row, several) for row in rows],
        note=frontier.note,
    )


def _whiskers(base: alt.Chart, rows: list[dict[str, Any]], colour: Any) -> list[alt.Chart]:
    """Intervals of both figures, where they are given."""
    parts = []
    if "accuracy_low" in rows[0]:
        ends = {"y": alt.Y("accuracy_low:Q", title="accuracy"), "y2": "accuracy_high:Q"}
        parts.append(base.mark_rule(strokeOpacity=0.4).encode(**ends, color=colour))
    if "unfairness_low" in rows[0]:
        parts.append(
            base.mark_rule(strokeOpacity=0.4).encode(
                x=alt.X("unfairness_low:Q"), x2="unfairness_high:Q", color=colour
            )
        )
    return parts


def _rates(frontier: FrontierData) -> ReportFigure:
    assert frontier.rates is not None  # noqa: S101 - the caller asked
    rows = [{**row, "rate_shown": percent(row["value"])} for row in _records(frontier.rates)]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    kinds = list(dict.fromkeys(row["rate"].replace("_", " ") for row in rows))
    rows = [{**row, "rate": row["rate"].replace("_", " ")} for row in rows]
    base = alt.Chart(data(rows)).transform_filter("datum.point === shown")
    chart = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("value:Q", title=None, axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("group:N", title=None, sort=groups, axis=alt.Axis(grid=True, ticks=False)),
        color=series(alt.Color, "rate", kinds),
        shape=series(alt.Shape, "rate", kinds),
        tooltip=[
            alt.Tooltip("group:N", title="group"),
            alt.Tooltip("rate:N", title="rate"),
            alt.Tooltip("rate_shown:N", title="value"),
        ],
    )
    chart = chart.add_params(alt.param(name="shown", value=_first(frontier)))
    names = point_names(frontier)
    return ReportFigure(
        id=POINT_RATES,
        title="Rates per group at the point shown",
        chart=chart.properties(width="container", height=max(30 * len(groups), 90)),
        alternative="Rates per group of one model of the frontier; the table holds all of them.",
        columns=["model", "group", "rate", "value"],
        rows=[[names[row["point"]], row["group"], row["rate"], row["rate_shown"]] for row in rows],
    )


def _point(position: int, row: dict[Any, Any], frontier: FrontierData) -> dict[str, Any]:
    return {
        "series": "",
        "on_frontier": True,
        **row,
        "point": position,
        "is_chosen": position == frontier.chosen,
        "epsilon_shown": number(row["epsilon"]),
        "accuracy_shown": percent(row["accuracy"]),
        "unfairness_shown": number(row["unfairness"]),
    }


def _table_row(row: dict[str, Any], several: bool) -> list[str]:
    remarks = ["chosen"] if row["is_chosen"] else []
    remarks += [] if row["on_frontier"] else ["another model is fairer and more accurate"]
    figures = [row["epsilon_shown"], row["accuracy_shown"], row["unfairness_shown"]]
    return [*figures, *([str(row["series"])] if several else []), "; ".join(remarks)]


def _words(frontier: FrontierData) -> str:
    points = frontier.points
    chosen = (
        "" if frontier.chosen is None else f" Chosen: {point_names(frontier)[frontier.chosen]}."
    )
    return (
        f"Accuracy against unfairness of {len(points)} models on {frontier.on}: accuracy from "
        f"{percent(points['accuracy'].min())} to {percent(points['accuracy'].max())}, unfairness "
        f"from {number(points['unfairness'].min())} to {number(points['unfairness'].max())}."
        f"{chosen}"
    )


def _first(frontier: FrontierData) -> int:
    return 0 if frontier.chosen is None else int(frontier.chosen)


def _series(row: dict[Any, Any]) -> str:
    return f"{row['series']}, " if row.get("series") else ""


def _records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    records: list[dict[Any, Any]] = frame.to_dict(orient="records")
    return records


def _check_columns(frame: Any, needed: tuple[str, ...], argument: str) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{argument}: expected a DataFrame, got {type(frame).__name__}.")
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{argument}: expected the columns {list(needed)}; {missing} are missing from "
            f"{[str(name) for name in frame.columns]}."
        )
