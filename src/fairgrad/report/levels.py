"""Charts of the levels of each measure, against what is tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from fairgrad.audit import phrases, wording
from fairgrad.report.colours import var
from fairgrad.report.figure import Figure, data, number, series, unique

if TYPE_CHECKING:
    from fairgrad.audit import Audit, Finding

MOST_LEVELS = 60
AXIS = "← worse off · F · better off →"
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


def level_figure(audit: Audit, position: int) -> Figure:
    """A dot per level with its simultaneous interval; a band where levels are tolerated."""
    finding = audit.findings[position]
    rows = _rows(finding)
    shown = sorted(rows, key=lambda row: -abs(row["level"]))[:MOST_LEVELS]
    shown = [row for row in rows if row in shown]
    order = list(dict.fromkeys(row["group"] for row in shown))
    labels = list(dict.fromkeys(row["label"] for row in shown))
    y = alt.Y("group:N", title=None, sort=order, axis=alt.Axis(grid=True, ticks=False))
    base = alt.Chart(data([_tooltips(row) for row in shown])).encode(y=y, tooltip=_TOOLTIP)
    if len(labels) > 1:
        base = base.encode(yOffset=alt.YOffset("label:N", sort=labels))
    rule = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=AXIS), x2="high:Q", color=_colour(labels)
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("level:Q", title=AXIS), color=_colour(labels), shape=_shape(labels)
    )
    title = f"{wording.title(finding.measure)} by {finding.attribute}"
    return Figure(
        id=f"level-{position}",
        title=title,
        chart=alt.layer(*_band(finding), _zero(), rule, dot).properties(
            width="container", height=max(24 * len(order) * max(len(labels), 1), 60)
        ),
        alternative=_words(title, rows),
        columns=["level of", "F", "from", "to"],
        rows=[[row["name"], *(number(row[k]) for k in ("level", "low", "high"))] for row in rows],
    )


def _rows(finding: Finding) -> list[dict[str, Any]]:
    """The levels that are defined and asked for."""
    comparison, (low, high) = finding.comparison, finding.level_intervals
    shorts = unique(phrases.short_names(finding.table.groups))
    values, name = finding.table.groups.labels.tolist(), finding.table.groups.label_name
    asked = getattr(comparison.map, "applies", None)
    rows = []
    for j, level in enumerate(finding.levels):
        group, label = int(comparison.group[j]), int(comparison.label[j])
        is_asked = asked is None or asked[j // len(shorts)]
        if np.isfinite(level) and is_asked:
            rows.append(
                {
                    "name": comparison.names[j],
                    "group": shorts[group] if group >= 0 else comparison.names[j],
                    "label": f"{name}={values[label]}" if label >= 0 else "",
                    "level": float(level),
                    "low": float(low[j]),
                    "high": float(high[j]),
                }
            )
    return rows


def _band(finding: Finding) -> list[Any]:
    """Where levels are tolerated; nothing where the verdict looks at something else."""
    if finding.tolerance.kind != "level":
        return []
    ends = {"from": -finding.tolerance.value, "to": finding.tolerance.value}
    band = alt.Chart(data([ends])).mark_rect(color=var("band"), opacity=0.8)
    return [band.encode(x=alt.X("from:Q", title=AXIS), x2="to:Q")]


def _zero() -> Any:
    line = alt.Chart(data([{"zero": 0.0}])).encode(x=alt.X("zero:Q", title=AXIS))
    return line.mark_rule(color=var("muted"), strokeDash=[4, 3])


_TOOLTIP = [
    alt.Tooltip("name:N", title="level of"),
    alt.Tooltip("level_shown:N", title="F"),
    alt.Tooltip("interval_shown:N", title="interval"),
]


def _tooltips(row: dict[str, Any]) -> dict[str, Any]:
    ends = f"{number(row['low'])} to {number(row['high'])}"
    return {**row, "level_shown": number(row["level"]), "interval_shown": ends}


def _colour(labels: list[str]) -> Any:
    if len(labels) < 2:
        return alt.value(var("accent"))
    return series(alt.Color, "label", labels)


def _shape(labels: list[str]) -> Any:
    if len(labels) < 2:
        return alt.value("circle")
    return series(alt.Shape, "label", labels, range=SHAPES)


def _words(title: str, rows: list[dict[str, Any]]) -> str:
    said = "; ".join(
        f"{row['name']} {number(row['level'])} ({number(row['low'])} to {number(row['high'])})"
        for row in rows[:12]
    )
    return f"Levels of {title}: {said}."
