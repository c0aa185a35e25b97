"""A chart with everything that makes it accessible: words, its data as a table, fit colours.

Charts name colours as CSS variables, so that the page's light, dark and print styles recolour them
without drawing them anew. Pictures outside the page get the light colours filled in.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import altair as alt

from fairgrad.audit.record import plain_values
from fairgrad.checks import needing
from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
Channel = TypeVar("Channel", alt.Color, alt.Shape, alt.StrokeDash)
FORMATS = ("svg", "png")
LABEL_LETTERS, LABEL_LINES = 20, 4
"""How much of a group's name stands at an axis: beside the chart there must be room for it."""

# The eight series colours follow Okabe and Ito's set, darkened on light ground and lightened on
# dark ground where the original would be too faint to read.
COLOURS = {
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#57606a", "#a9b1bb"),
    "grid": ("#e3e6ea", "#353b43"),
    "page": ("#ffffff", "#14171b"),
    "card": ("#f6f8fa", "#1e2329"),
    "band": ("#dbe9f5", "#1d3a52"),
    "accent": ("#0067a6", "#62b8f0"),
    "before": ("#b25a00", "#f2a33a"),
    "good": ("#00694e", "#4fd1a8"),
    "bad": ("#a62b00", "#ff9270"),
    "open": ("#7a5900", "#e9c34a"),
    "c1": ("#0072b2", "#62b8f0"),
    "c2": ("#d55e00", "#ff8a4c"),
    "c3": ("#009e73", "#3ccfa0"),
    "c4": ("#7a1f6b", "#e29ac4"),
    "c5": ("#b98100", "#f0b93a"),
    "c6": ("#2f8fc4", "#9ad4f7"),
    "c7": ("#5d6470", "#b5bcc6"),
    "c8": ("#7a6a00", "#e0d05a"),
}
"""Every colour on light ground and on dark ground."""
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}
SERIES = tuple(f"c{i}" for i in range(1, 9))


def var(name: str) -> str:
    """The CSS variable of a colour."""
    return f"var(--{name})"


def filled_in(spec: dict[str, Any]) -> dict[str, Any]:
    """A chart with the light colours instead of the variables, for pictures."""
    names = "|".join(LIGHT)
    text = re.sub(rf'"var\(--({names})\)"', lambda m: f'"{LIGHT[m[1]]}"', json.dumps(spec))
    filled: dict[str, Any] = json.loads(text)
    return filled


LABELS = {
    "labelColor": var("ink"),
    "titleColor": var("muted"),
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **LABELS,
        "gridColor": var("grid"),
        "domainColor": var("grid"),
        "tickColor": var("grid"),
        "labelLimit": 145,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
        "tickCount": 6,
    },
    "legend": {
        **LABELS,
        "labelLimit": 150,
        "orient": "bottom",
        "columns": 2,
        "symbolStrokeWidth": 2,
    },
    "range": {"category": [var(name) for name in SERIES]},
    "text": {"color": var("ink"), "fontSize": 12},
}


@dataclass(frozen=True, eq=False)
class ReportFigure:
    """A chart of the report.

    Attributes:
        id: names the chart in the page and its file; letters, digits and dashes.
        title: above it.
        chart: what Altair draws.
        alternative: what it shows, in words.
        columns: headings of its data.
        rows: its data, as text.
        note: a sentence below it.
        by: the attribute whose groups it shows, if the page names it above the chart.

    Example:
        >>> from fairgrad.audit import Audit
        >>> from fairgrad.report import Report
        >>> figure = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20)).figures[0]
        >>> figure.id, figure.columns
        ('compared', ['group', 'predictions', 'rate', 'from', 'to'])
    """

    id: str
    title: str
    chart: AnyChart
    alternative: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    by: str = ""

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, colours as CSS variables, `CONFIG` left out."""
        # Checking every part against Vega-Lite's schema takes most of a page's time; tests do it.
        spec: dict[str, Any] = self.chart.to_dict(validate=False, format="vega-lite")
        kept = {key: value for key, value in spec.items() if key not in {"config", "$schema"}}
        return {**kept, "description": self.alternative}

    def standalone(self, width: int = 460) -> AnyChart:
        """The chart by itself, on white and of a fixed width: for notebooks and papers."""
        title = f"{self.title} by {self.by}" if self.by else self.title
        config = {**CONFIG, "background": var("page")}
        spec = {**self.spec(), "config": config, "$schema": alt.SCHEMA_URL}
        return alt.Chart.from_dict(
            filled_in({**spec, "width": width, "title": title, "padding": 12})
        )

    def svg(self, width: int = 460) -> str:
        """The chart as an SVG picture, with its words for screen readers."""
        vl_convert = vl_convert_module("Pictures of charts")
        picture: str = vl_convert.vegalite_to_svg(self.standalone(width).to_json())
        return picture


def series(channel: type[Channel], field: str, order: Sequence[str], **scale: Any) -> Channel:
    """A channel that tells series apart, in this order.

    Channels with the same order share one legend: shape or dash beside colour, never colour alone.
    """
    longest = max((len(name) for name in order), default=0)
    legend = alt.Legend(columns=1, labelLimit=320) if longest > 20 else alt.Legend()
    domain = alt.Scale(domain=list(order), **scale)
    return channel(f"{field}:N", title=None, scale=domain, legend=legend)


def told_apart(base: alt.Chart, field: str, order: Sequence[str], **shapes: Any) -> alt.Chart:
    """A chart whose series have colours, and what else is given; a single one has the accent."""
    if len(order) < 2:
        return base.encode(color=alt.value(var("accent")))
    return base.encode(color=series(alt.Color, field, order), **shapes)


def groups_axis(order: Sequence[str]) -> alt.Y:
    """One line per group, in this order; long names wrap."""
    long = {name: lines for name in order if len(lines := _lines(name)) > 1}
    shown: dict[str, Any] = (
        {"labelExpr": f"{json.dumps(long)}[datum.label] || datum.label"} if long else {}
    )
    axis = alt.Axis(grid=True, ticks=False, labelOverlap=False, **shown)
    return alt.Y("group:N", title=None, sort=list(order), axis=axis)


def groups_height(order: Sequence[str], line: int = 24, least: int = 48) -> int:
    """The height of a chart with these groups on its axis: `line` each, more for long names."""
    lines = max((len(_lines(name)) for name in order), default=1)
    return max(max(line, 14 * lines + 10 if lines > 1 else line) * len(order), least)


def _lines(name: str) -> list[str]:
    """A name in lines of a bearable length; what is very long is cut, and whole in the table."""
    return textwrap.wrap(name, LABEL_LETTERS, max_lines=LABEL_LINES, placeholder="…") or [name]


def dashed(*points: Mapping[str, float]) -> alt.Chart:
    """A dashed line: between points, or at the value of a single one across the whole chart."""
    line = alt.Chart(data(points))
    mark = line.mark_rule if len(points) == 1 else line.mark_line
    marked: alt.Chart = mark(color=var("muted"), strokeDash=[4, 3])
    return marked


def data(records: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Records as a chart's data: plain values, None where a figure is not defined."""
    return alt.InlineData(values=plain_values(list(records)))


def number(value: float | None, digits: int = 4) -> str:
    """A level or multiplier for people."""
    return "not defined" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def save_figures(
    figures: Sequence[ReportFigure],
    folder: str | os.PathLike[str],
    formats: Sequence[str] = FORMATS,
    *,
    width: int = 460,
    scale: float = 3.0,
) -> list[Path]:
    """Writes every chart in every format ("svg", "png") into a folder; gives the files.

    Args:
        figures: the charts.
        folder: made if it is not there.
        formats: "svg", "png" or both.
        width: of the plotting area, in pixels.
        scale: PNG pixels per pixel of the chart.

    Raises:
        ValueError: if a format is not known.
        ImportError: if vl-convert-python is not installed.
    """
    unknown_names = [name for name in formats if name not in FORMATS]
    if unknown_names:
        raise ValueError(f"formats: expected some of {list(FORMATS)}, got {unknown_names[0]!r}.")
    vl_convert = vl_convert_module("Pictures of charts")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        spec = figure.standalone(width).to_json()
        for name in formats:
            options = {"scale": scale} if name == "png" else {}
            content = getattr(vl_convert, f"vegalite_to_{name}")(spec, **options)
            written.append(target / f"{figure.id}.{name}")
            write_whole(written[-1], content)
    return written


def vl_convert_module(what: str) -> Any:
    """The package that draws charts and brings their JavaScript."""
    missing = f"{what} need the package vl-convert-python: pip install 'fairgrad[report]'"
    with needing("vl_convert", message=missing):
        import vl_convert  # noqa: PLC0415 - large, and needed for pages and pictures only
    return vl_convert
