"""A chart with everything that makes it accessible: words and the data as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import altair as alt

from fairgrad.report.colours import LIGHT, SERIES, filled_in, var

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
Channel = TypeVar("Channel", alt.Color, alt.Shape, alt.StrokeDash)

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": var("ink"),
        "titleColor": var("muted"),
        "gridColor": var("grid"),
        "domainColor": var("grid"),
        "tickColor": var("grid"),
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 130,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
        "tickCount": 6,
    },
    "legend": {
        "labelColor": var("ink"),
        "titleColor": var("muted"),
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 150,
        "orient": "bottom",
        "columns": 2,
        "symbolStrokeWidth": 2,
    },
    "range": {"category": [var(name) for name in SERIES]},
    "text": {"color": var("ink"), "fontSize": 12},
}


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart of the report.

    Attributes:
        id: names the chart in the page and its file; letters, digits and dashes.
        title: above it.
        chart: what Altair draws.
        alternative: what it shows, in words.
        columns: headings of its data.
        rows: its data, as text.
        note: a sentence below it.
        by: whose groups it shows, where the page says so above the chart.

    Example:
        >>> from fairgrad.audit import Audit
        >>> from fairgrad.report import Report
        >>> figure = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20)).figures[0]
        >>> figure.id, figure.columns
        ('level-0', ['level of', 'F', 'from', 'to'])
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
        spec: dict[str, Any] = self.chart.to_dict(format="vega-lite")
        kept = {key: value for key, value in spec.items() if key not in {"config", "$schema"}}
        return {**kept, "description": self.alternative}

    def standalone(self, width: int = 460) -> AnyChart:
        """The chart by itself, on white and of a fixed width: for notebooks and papers."""
        return alt.Chart.from_dict(_standalone(self, width))


def _standalone(figure: Figure, width: int) -> dict[str, Any]:
    spec = {**figure.spec(), "config": CONFIG, "$schema": alt.SCHEMA_URL}
    title = f"{figure.title} by {figure.by}" if figure.by else figure.title
    spec = {**spec, "width": width, "title": title, "padding": 12}
    filled = filled_in(spec)
    return {**filled, "config": {**filled["config"], "background": LIGHT["page"]}}


def series(channel: type[Channel], field: str, order: Sequence[str], **scale: Any) -> Channel:
    """A channel that tells series apart, in this order.

    Channels with the same order share one legend: shape or dash beside colour, never colour alone.
    """
    longest = max((len(name) for name in order), default=0)
    legend = alt.Legend(columns=1, labelLimit=320) if longest > 20 else alt.Legend()
    domain = alt.Scale(domain=list(order), **scale)
    return channel(f"{field}:N", title=None, scale=domain, legend=legend)


def data(records: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Records as a chart's data: plain values, None where a figure is not defined."""
    return alt.InlineData(values=[{k: _plain(v) for k, v in row.items()} for row in records])


def percent(value: float | None) -> str:
    """A rate for people."""
    return "not defined" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def number(value: float | None, digits: int = 4) -> str:
    """A level or multiplier for people."""
    return "not defined" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def unique(names: Sequence[str]) -> list[str]:
    """Names told apart by a number where two groups' values look the same."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
