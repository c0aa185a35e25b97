"""Charts of models: the accuracy-fairness frontier, and the history of a training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from fairgrad import dual
from fairgrad.constraints import on_outcomes
from fairgrad.measures import LargeGroups, constraints_of
from fairgrad.report import figure as fig
from fairgrad.report.figure import ReportFigure, number, percent

FRONTIER, POINT_RATES = "frontier", "frontier-rates"
"""Names of the two charts: clicking a point of the first shows its rates in the second."""
PLAIN = "plain model"
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

    @property
    def first(self) -> int:
        """Position of the model whose rates are shown at first."""
        return 0 if self.chosen is None else int(self.chosen)

    @property
    def names(self) -> list[str]:
        """Each point in words, for the list beside the chart."""
        return [
            f"{row['series']}{', ' if row['series'] else ''}"
            f"{'' if row['epsilon_said'] == PLAIN else 'ε = '}{row['epsilon_said']}: accuracy "
            f"{row['accuracy_said']}, unfairness {row['unfairness_said']}"
            f"{' (chosen)' if row['is_chosen'] else ''}"
            for row in self.records
        ]

    @property
    def records(self) -> list[dict[Any, Any]]:
        """The points with what the chart and its table need."""
        return [
            {
                "series": "",
                "on_frontier": True,
                **row,
                "point": position,
                "is_chosen": position == self.chosen,
                "epsilon_said": number(row["epsilon"]).replace("inf", PLAIN),
                "accuracy_said": percent(row["accuracy"]),
                "unfairness_said": number(row["unfairness"]),
            }
            for position, row in enumerate(self.points.to_dict(orient="records"))
        ]


def as_frontier(given: Any, chosen: int | None = None) -> FrontierData:
    """What `Report` takes as a frontier, with the position of the model that was chosen."""
    if hasattr(given, "report_data"):
        on = "test" if "test" in getattr(given, "audits_", ()) else "validation"
        given, chosen = given.report_data(on, chosen), None
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
    return [_frontier(found), *([] if found.rates is None else [_rates(found, found.rates)])]


def _frontier(frontier: FrontierData) -> ReportFigure:
    rows = frontier.records
    methods = list(dict.fromkeys(row["series"] for row in rows))
    shown = {f"{name}_said": name for name in NEEDED}
    if len(methods) > 1:
        shown["series"] = "method"
    base = alt.Chart(fig.data(rows)).encode(
        x=alt.X("unfairness:Q", title=f"unfairness ({frontier.measure})"),
        y=alt.Y("accuracy:Q", title="accuracy", axis=alt.Axis(format=".1%")).scale(zero=False),
    )
    base = fig.told_apart(base, "series", methods)
    parts = []
    rule = base.mark_rule(strokeOpacity=0.4)  # intervals, where they are given
    if "accuracy_low" in rows[0]:
        ends = alt.Y("accuracy_low:Q", title="accuracy")
        parts.append(rule.encode(y=ends, y2="accuracy_high:Q"))
    if "unfairness_low" in rows[0]:
        parts.append(rule.encode(x=alt.X("unfairness_low:Q"), x2="unfairness_high:Q"))
    dots = base.mark_point(filled=True, opacity=1, cursor="pointer").encode(
        size=alt.when("datum.point === shown").then(alt.value(190)).otherwise(alt.value(80)),
        tooltip=fig.tooltips(**shown),
    )
    dots = fig.told_apart(dots, "series", methods, shape=fig.series(alt.Shape, "series", methods))
    chosen = base.transform_filter("datum.is_chosen").encode(color=alt.value(fig.var("ink")))
    parts += [
        base.transform_filter("datum.on_frontier").mark_line(strokeWidth=1.5, opacity=0.7),
        dots,
        chosen.mark_point(size=330, strokeWidth=2, filled=False, opacity=1),
        chosen.mark_text(text="chosen", fontWeight="bold", **_beside(frontier)),
    ]
    chart = alt.layer(*parts).add_params(alt.param(name="shown", value=frontier.first))
    return ReportFigure(
        id=FRONTIER,
        title="Accuracy against unfairness",
        chart=chart.properties(width="container", height=340),
        alternative=_words(frontier),
        columns=[*shown.values(), "remark"],
        rows=[[*(str(row[name]) for name in shown), _remark(row)] for row in rows],
        note=frontier.note,
    )


def _beside(frontier: FrontierData) -> dict[str, Any]:
    """Where the word stands beside its point: towards the middle, never over an axis."""
    unfairness = frontier.points["unfairness"]
    place = 0 if frontier.chosen is None else frontier.chosen
    is_right = unfairness.iloc[place] > (unfairness.min() + unfairness.max()) / 2
    return {"align": "right" if is_right else "left", "dx": -16 if is_right else 16, "dy": -10}


def _remark(row: dict[Any, Any]) -> str:
    remarks = ["chosen"] if row["is_chosen"] else []
    remarks += [] if row["on_frontier"] else ["another model is fairer and more accurate"]
    return "; ".join(remarks)


def _words(frontier: FrontierData) -> str:
    accuracy, unfairness = frontier.points["accuracy"], frontier.points["unfairness"]
    chosen = f" Chosen: {frontier.names[frontier.first]}." if frontier.chosen is not None else ""
    return (
        f"Accuracy against unfairness of {len(accuracy)} models on {frontier.on}: accuracy from "
        f"{percent(accuracy.min())} to {percent(accuracy.max())}, unfairness from "
        f"{number(unfairness.min())} to {number(unfairness.max())}.{chosen}"
    )


def _rates(frontier: FrontierData, rates: pd.DataFrame) -> ReportFigure:
    rows: list[dict[Any, Any]] = [
        {**row, "rate": row["rate"].replace("_", " "), "said": percent(row["value"])}
        for row in rates.to_dict(orient="records")
    ]
    groups, kinds = (list(dict.fromkeys(row[key] for row in rows)) for key in ("group", "rate"))
    chart = (
        fig.points(alt.Chart(fig.data(rows)), 80)
        .transform_filter("datum.point === shown")
        .encode(
            x=alt.X(
                "value:Q", title=None, axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])
            ),
            y=fig.groups_axis(groups),
            color=fig.series(alt.Color, "rate", kinds),
            shape=fig.series(alt.Shape, "rate", kinds),
            tooltip=fig.tooltips(group="group", rate="rate", said="value"),
        )
    )
    chart = chart.add_params(alt.param(name="shown", value=frontier.first))
    names = frontier.names
    return ReportFigure(
        id=POINT_RATES,
        title="Rates per group at the point shown",
        chart=chart.properties(
            width="container", height=fig.groups_height(groups, line=30, least=90)
        ),
        alternative="Rates per group of one model of the frontier; the table holds all of them.",
        columns=["model", "group", "rate", "value"],
        rows=[[names[row["point"]], row["group"], row["rate"], row["said"]] for row in rows],
    )


def _check_columns(frame: Any, needed: tuple[str, ...], argument: str) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{argument}: expected a DataFrame, got {type(frame).__name__}.")
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{argument}: expected the columns {list(needed)}; {missing} are missing from "
            f"{[str(name) for name in frame.columns]}."
        )


HISTORY_NEEDED = ("epoch", "quantity", "name", "value")
TITLES = {
    "level": (
        "Levels of fairness",
        "F on the validation rows, or on the training rows if there are none; 0 is fair.",
    ),
    "multiplier": ("Multipliers", "How hard each constraint pushes; the sign says which way."),
    "weight": (
        "Weights",
        "What one row of each cell counts in the loss; below 0 its errors are rewarded.",
    ),
    "negative_share": (
        "Share of negative weights",
        "Part of the rows (of the cells, if their sizes are not known) with a weight below 0.",
    ),
}
MOST_HISTORY_ROWS = 3000
MOST_EPOCHS = 60
"""More would not be told apart on a chart."""


def as_history(given: Any) -> pd.DataFrame | None:
    """What `Report` takes as a history, in long form, with the share of negative weights.

    A frame may also have the column share, of the rows in a cell. None where there is no history.
    """
    if not isinstance(given, pd.DataFrame):
        return _history_of_model(given)
    missing = [name for name in HISTORY_NEEDED if name not in given.columns]
    if missing:
        raise ValueError(
            f"history: expected the columns {list(HISTORY_NEEDED)}; {missing} are missing."
        )
    strangers = sorted({str(q) for q in given["quantity"]} - set(TITLES))
    if strangers:
        raise ValueError(f"history: expected quantities {list(TITLES)}, got {strangers[0]!r}.")
    weights = given[given["quantity"] == "weight"]
    if weights.empty or (given["quantity"] == "negative_share").any():
        return given
    return pd.concat([given, _negative_share(weights)], ignore_index=True)


def history_figures(history: Any) -> list[ReportFigure]:
    """One chart per quantity there is.

    Args:
        history: a fitted model, or a frame: as in `Report`.

    Example:
        >>> history = pd.DataFrame({"epoch": [1, 2], "quantity": "level", "name": "sex=F",
        ...                         "value": [-0.1, 0.0]})
        >>> [figure.title for figure in history_figures(history)]
        ['Levels of fairness']
    """
    frame = as_history(history)
    if frame is None:
        return []
    kinds = [kind for kind in TITLES if (frame["quantity"] == kind).any()]
    return [_history_figure(kind, frame[frame["quantity"] == kind]) for kind in kinds]


def _history_of_model(given: Any) -> pd.DataFrame | None:
    """Levels, multipliers and weights after some epochs, first and last included.

    The weights are those that the multipliers give, ``w_k = 1 + (C' lambda)_k / p_k``; the
    proportional term, which comes on top in every step, vanishes as the levels settle.
    """
    model = given.steps[-1][1] if hasattr(given, "steps") else given
    if not hasattr(model, "fit"):
        raise TypeError(
            f"history: expected a fitted model or a DataFrame, got {type(given).__name__}."
        )
    if not hasattr(model, "classes_"):
        raise ValueError(f"history: this {type(model).__name__} is not fitted yet.")
    groups = getattr(model, "groups_", None)
    if groups is None or not hasattr(model, "history_"):
        return None
    n = len(model.history_["accuracy"])
    epochs = np.unique(np.linspace(0, n - 1, min(n, MOST_EPOCHS)).round().astype(int))
    levels, multipliers = (model.history_[name][epochs] for name in ("levels", "multipliers"))
    measure, rows = model.fairness_measure, getattr(model, "group_rows_", None)
    if rows is not None:  # of few rows, which are in no constraint
        measure = LargeGroups(measure, groups, rows, model.min_group)
    constraints = constraints_of(measure, groups, y_desirable=model.y_desirable)
    costs = getattr(model, "cost_matrix", None)
    constraints = constraints if costs is None else on_outcomes(constraints, groups)
    mass = groups.cell_mass(constraints.by_label)
    share = np.tile(mass / mass.sum(), constraints.n_outcomes)
    constants = dual.make_constants(constraints, groups, cost_matrix=costs)
    weights = np.stack([dual.net_weights(constants, np.nan_to_num(net)) for net in multipliers])

    def long(kind: str, names: Any, values: Any) -> pd.DataFrame:
        columns = {
            "epoch": np.repeat(epochs + 1, len(names)),
            "quantity": kind,
            "name": np.tile(np.asarray(names, dtype=object), len(epochs)),
            "value": values.ravel(),
        }
        return pd.DataFrame(columns)

    parts = [
        long("level", model.constraint_names_, levels),
        long("multiplier", model.constraint_names_, multipliers),
        long("weight", model.cell_names_, weights).assign(share=np.tile(share, len(epochs))),
    ]
    return as_history(pd.concat(parts, ignore_index=True).dropna(subset="value"))


def _negative_share(weights: pd.DataFrame) -> pd.DataFrame:
    share = weights["share"] if "share" in weights.columns else 1.0
    known = weights.assign(share=share, below=(weights["value"] < 0) * share)
    sums = known.groupby("epoch")[["below", "share"]].sum()
    return pd.DataFrame(
        {
            "epoch": sums.index,
            "quantity": "negative_share",
            "name": "",
            "value": (sums["below"] / sums["share"]).to_numpy(),
        }
    )


def _history_figure(kind: str, frame: pd.DataFrame) -> ReportFigure:
    title, note = TITLES[kind]
    is_share = kind == "negative_share"
    shown = percent if is_share else number
    rows: list[dict[Any, Any]] = frame[list(HISTORY_NEEDED)].to_dict(orient="records")
    names = list(dict.fromkeys(row["name"] for row in rows))
    last = frame["epoch"].max()
    ends = "; ".join(
        f"{row['name']} {shown(row['value'])}".strip() for row in rows if row["epoch"] == last
    )
    table = (
        rows if len(rows) <= MOST_HISTORY_ROWS else [row for row in rows if row["epoch"] == last]
    )
    return ReportFigure(
        id=f"history-{kind.replace('_', '-')}",
        title=title,
        chart=_history_chart(rows, names, is_share),
        alternative=f"{title} over {int(last)} epochs; at the end: {ends}.",
        columns=["epoch", "of", "value"],
        rows=[[str(row["epoch"]), row["name"], shown(row["value"])] for row in table],
        note=note,
    )


def _history_chart(rows: list[dict[Any, Any]], names: list[str], is_share: bool) -> fig.AnyChart:
    base = alt.Chart(fig.data(rows)).encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(format="d", tickMinStep=1)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%" if is_share else "")),
        tooltip=[
            *([alt.Tooltip("name:N", title="of")] if len(names) > 1 else []),
            alt.Tooltip("epoch:Q", title="epoch"),
            alt.Tooltip("value:Q", title="value", format=".1%" if is_share else ".4f"),
        ],
    )
    # The line carries the dash, the points the shape: either tells series apart without colour.
    dash, shape = (fig.series(alt.StrokeDash, "name", names), fig.series(alt.Shape, "name", names))
    line = fig.told_apart(base.mark_line(strokeWidth=2), "name", names, strokeDash=dash)
    dots = fig.told_apart(fig.points(base, 30), "name", names, shape=shape)
    parts = [line, dots] if is_share else [fig.rule_at(0.0).encode(y="at:Q"), line, dots]
    return alt.layer(*parts).properties(width="container", height=220)
