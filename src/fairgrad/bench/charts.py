"""What the charts of the benchmark have in common: points with error bars, ours and the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from fairgrad.report.figure import SERIES, data, series, var

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        y: the vertical one.
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
    """The error bars along one axis, of which they must not draw another one of their own."""
    field = str(channel.shorthand).partition(":")[0]
    given = channel.to_dict()
    shared = {key: given[key] for key in ("title", "scale", "axis") if key in given}
    start = type(channel)(f"{field}_low:Q", **shared)
    ends = {name: start, f"{name}2": f"{field}_high:Q"}
    return base.mark_rule(strokeOpacity=0.45, strokeWidth=1.4).encode(**ends)
