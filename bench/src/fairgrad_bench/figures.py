"""The paper's figures drawn anew: accuracy against unfairness, batch size, epsilon."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from fairgrad.report import SERIES, ReportFigure, data, number, save_figures, series, var
from fairgrad_bench.comparison import CELL
from fairgrad_bench.paper import MEASURES, METHODS, dataset_title, method_title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fairgrad_bench.results import BenchResults

SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)
OURS, PAPER = "measured here", "the paper"
NOTE = "filled: measured here; hollow: the paper; bars: one standard deviation over seeds"
CLAIMS = {
    "accuracy": "dashed: the paper's unconstrained",
    "mean_abs_fairness": "dashed: epsilon",
}
AXES = {"accuracy": "accuracy", "mean_abs_fairness": "unfairness (mean |F|)"}


def write_figures(
    results: BenchResults, folder: str | Path, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Draws all figures that the results allow into a folder; gives the files."""
    figures = []
    if not results.comparison.empty:
        names = all_methods(results.comparison)
        groups = results.comparison.groupby(CELL, sort=False)
        figures += [trade_off(rows, names) for _, rows in groups]
    for frame, setting in ((results.batch_sizes, "batch_size"), (results.epsilons, "epsilon")):
        if not frame.empty:
            groups = frame.groupby(CELL, sort=False)
            figures += [over(rows, setting, figure) for _, rows in groups for figure in AXES]
    return save_figures(figures, folder, formats, scale=2.0)


def all_methods(comparison: pd.DataFrame) -> list[str]:
    """Titles of the paper's method, its baselines, and all others that were measured."""
    marked = [_title(row) for row in comparison.to_dict(orient="records")]
    return list(dict.fromkeys([METHODS["fairgrad"], *METHODS.values(), *sorted(marked)]))


def trade_off(rows: pd.DataFrame, names: Sequence[str]) -> ReportFigure:
    """Accuracy against unfairness of all methods on one data set, model and measure."""
    points = []
    for row in rows.to_dict(orient="records"):
        for prefix, source in (("", OURS), ("paper_", PAPER)):
            if not pd.isna(row[f"{prefix}accuracy"]):
                point: dict[str, Any] = {"method": _title(row), "source": source}
                for figure in AXES:
                    point |= bars(row, figure, prefix)
                points.append(point)
    chart = scatter(
        points,
        _axis(alt.X, "mean_abs_fairness", note=True),
        _axis(alt.Y, "accuracy"),
        field="method",
        names=names,
        error_bars=("x", "y"),
    )
    return _figure(rows, chart, points, ("method", "source"), "", "Accuracy against unfairness")


def over(rows: pd.DataFrame, setting: str, figure: str) -> ReportFigure:
    """One figure over a setting, with the paper's points, or its claims, beside ours."""
    points = [
        {"series": source, "source": source, setting: row[setting], **bars(row, figure, prefix)}
        for row in rows.to_dict(orient="records")
        for prefix, source in (("", OURS), ("paper_", PAPER))
        if not pd.isna(row.get(f"{prefix}{figure}", float("nan")))
    ]
    scale = alt.Scale(type="log", base=2) if setting == "batch_size" else alt.Undefined
    values = sorted({row[setting] for row in points})
    axis = alt.Axis(values=values) if setting == "batch_size" else alt.Undefined
    below = _claims(rows, figure) if setting == "epsilon" else []
    note = f"{NOTE}; {CLAIMS[figure]}" if below else NOTE
    chart = scatter(
        points,
        alt.X(f"{setting}:Q", title=[setting.replace("_", " "), note], scale=scale, axis=axis),
        _axis(alt.Y, figure),
        field="series",
        names=(OURS, PAPER),
        error_bars=("y",),
        below=below,
    )
    what = "Accuracy" if figure == "accuracy" else "Unfairness"
    title = f"{what} over {setting.replace('_', ' ')}"
    ending = f"-{setting.replace('_', '-')}-{figure.replace('_', '-')}"
    return _figure(rows, chart, points, (setting, "source"), ending, title)


def _claims(rows: pd.DataFrame, figure: str) -> list[Any]:
    """The paper's claims: unfairness below epsilon, accuracy up to that without constraints."""
    dashed: dict[str, Any] = {"color": var("muted"), "strokeDash": [4, 3]}
    if figure == "mean_abs_fairness":
        ends = [{"epsilon": value, figure: value} for value in (0.0, float(rows["epsilon"].max()))]
        line = alt.Chart(data(ends)).mark_line(**dashed)
        return [line.encode(x="epsilon:Q", y=_axis(alt.Y, figure))]
    accuracy = rows["paper_unconstrained_accuracy"].iloc[0]
    if pd.isna(accuracy):
        return []
    rule = alt.Chart(data([{figure: float(accuracy)}])).mark_rule(**dashed)
    return [rule.encode(y=_axis(alt.Y, figure))]


def _axis(channel: Any, figure: str, *, note: bool = False) -> Any:
    title = [AXES[figure], NOTE] if note else AXES[figure]
    return channel(f"{figure}:Q", title=title, scale=alt.Scale(zero=figure != "accuracy"))


def _figure(
    rows: pd.DataFrame,
    chart: Any,
    points: Sequence[dict[str, Any]],
    keys: Sequence[str],
    ending: str,
    title: str,
) -> ReportFigure:
    dataset, model, measure = (str(rows[key].iloc[0]) for key in CELL)
    case = f"{dataset_title(dataset)}, {model}, {MEASURES.get(measure, measure)}"
    name = re.sub(r"[^a-z0-9]+", "-", f"{dataset}-{model}-{measure}".lower())
    shown = [name for name in (*keys, *AXES) if name in points[0]]
    return ReportFigure(
        id=f"{name}{ending}",
        title=f"{title}: {case}",
        chart=chart.properties(height=320),
        alternative=f"{title} for {case}; {NOTE}.",
        columns=shown,
        rows=[[_text(point[name]) for name in shown] for point in points],
        note=NOTE,
    )


def _title(row: dict[Any, Any]) -> str:
    return method_title(row["method"]) + (" †" if row["needs_s_to_predict"] else "")


def _text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def bars(row: Mapping[Any, Any], figure: str, prefix: str = "") -> dict[str, Any]:
    """A figure with the ends of its error bar, one standard deviation to both sides."""
    value, deviation = float(row[f"{prefix}{figure}"]), float(row[f"{prefix}{figure}_std"])
    ends = {f"{figure}_low": value - deviation, f"{figure}_high": value + deviation}
    return {figure: value, **ends}


def scatter(
    rows: Sequence[dict[str, Any]],
    x: alt.X,
    y: alt.Y,
    *,
    field: str,
    names: Sequence[str],
    error_bars: Sequence[str],
    below: Sequence[Any] = (),
) -> Any:
    """Points with error bars: filled where measured here, hollow where the paper's.

    Args:
        rows: with the fields of x and y, "source" (`OURS` or `PAPER`), and `field`.
        x: the horizontal channel.
        y: the vertical channel.
        field: whose values are told apart by colour and shape.
        names: all values of the field in all charts, so that each looks the same everywhere.
        error_bars: "x", "y" or both; the rows hold ``<figure>_low`` and ``<figure>_high``.
        below: charts to draw the points on.
    """
    here = [name for name in names if any(row[field] == name for row in rows)]
    colours, shapes = _looks(here, names)
    colour = series(alt.Color, field, here, range=colours)
    base = alt.Chart(data(rows)).encode(x=x, y=y, color=colour)
    fill = alt.Fill(f"{field}:N", scale=alt.Scale(domain=here, range=colours), legend=None)
    points = base.mark_point(size=70, strokeWidth=1.8, opacity=1).encode(
        shape=series(alt.Shape, field, here, range=shapes),
        fill=alt.when(f"datum.source === '{OURS}'").then(fill).otherwise(alt.value(var("page"))),
    )
    layers = [_bars(base, name, {"x": x, "y": y}[name]) for name in error_bars]
    return alt.layer(*below, *layers, points)


def _looks(here: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Colours and shapes; beyond eight colours begin again with other shapes."""
    places = [list(names).index(name) for name in here]
    colours = [var(SERIES[place % len(SERIES)]) for place in places]
    return colours, [SHAPES[(place + place // len(SERIES)) % len(SHAPES)] for place in places]


def _bars(base: alt.Chart, name: str, channel: Any) -> Any:
    """The error bars along one axis, which they share with the points."""
    field = str(channel.shorthand).partition(":")[0]
    channel_options = channel.to_dict()
    shared = {
        key: channel_options[key] for key in ("title", "scale", "axis") if key in channel_options
    }
    start = type(channel)(f"{field}_low:Q", **shared)
    ends = {name: start, f"{name}2": f"{field}_high:Q"}
    return base.mark_rule(strokeOpacity=0.45, strokeWidth=1.4).encode(**ends)
