"""Charts of an audit: rates per group, before and after, and levels against what is tolerated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from fairgrad.audit import words
from fairgrad.report import figure as fig
from fairgrad.report.figure import ReportFigure, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.audit import Audit, Finding

MOST_GROUPS = 40
MOST_LABELS = 10
MOST_LEVELS = 60
MANY_GROUPS = 12
"""More groups than this are sorted, by what a chart shows or by their rows."""
RATES = (
    "accuracy",
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "precision",
    "base_rate",
)
PERCENT = alt.Axis(format=".1~%", tickCount=5)
LEVEL = "← worse off · F · better off →"
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


@dataclass(frozen=True, eq=False)
class RatePanel:
    """One rate of one label in all groups.

    Attributes:
        key: tells it from the other panels, as a part of the chart's name.
        rate: its name.
        title: with the label, where there are several.
        rows: the groups in the chart: the largest ones if there are very many.
        records: all groups, and everyone.
    """

    key: str
    rate: str
    title: str
    rows: list[dict[Any, Any]]
    records: list[dict[Any, Any]]

    @property
    def y(self) -> alt.Y:
        """The axis of the groups."""
        return fig.groups_axis([row["group"] for row in self.rows])

    @property
    def size(self) -> dict[str, Any]:
        """Of the chart."""
        order = [row["group"] for row in self.rows]
        height = fig.groups_height(order, line=24 if len(order) <= 20 else 16)
        return {"width": "container", "height": height}


def rate_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """One chart per rate: a dot per group with its interval, and a line at the overall rate."""
    return [_rate_figure(view, panel) for panel in _panels(audit, view, "rates", RATES)]


def change_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """One chart per rate: every group's rate under the baseline and now."""
    rates = RATES[:-1]  # the base rate is the data's, whoever predicts
    return [_change_figure(view, panel) for panel in _panels(audit, view, "changes", rates)]


def _panels(audit: Audit, view: str, kind: str, rates: Sequence[str]) -> Iterator[RatePanel]:
    frame, table = audit.to_frame(kind), audit.views[view]
    frame = frame[frame["attribute"] == view]
    names = dict(zip(table.groups.names, fig.unique(words.short_names(table.groups)), strict=True))
    shown = {table.groups.names[index] for index in table.largest(MOST_GROUPS)}
    for rate in rates:
        mine = frame[frame["rate"] == rate]
        for label in list(dict.fromkeys(mine["label"]))[:MOST_LABELS]:
            own = mine if label is None else mine[mine["label"] == label]
            found = own.to_dict(orient="records")
            records = [{**row, "group": names.get(row["group"], row["group"])} for row in found]
            is_shown = [row["group"] in shown for row in found]
            rows = [row for row, ok in zip(records, is_shown, strict=True) if ok]
            if len(rows) > MANY_GROUPS:
                shown_by = "value" if kind == "rates" else "after"
                rows.sort(key=lambda row: float(np.nan_to_num(row[shown_by])))
            place = 0 if label is None else audit.labels.index(label)
            title = rate.replace("_", " ").capitalize()
            yield RatePanel(
                key=f"{list(audit.views).index(view)}-{rate}-{place}",
                rate=rate,
                title=title if label is None or len(audit.labels) == 2 else f"{title} of {label}",
                rows=rows,
                records=records,
            )


def _rate_figure(view: str, panel: RatePanel) -> ReportFigure:
    overall = panel.records[-1]["value"]
    rows = [
        {**row, "said": percent(row["value"]), "interval": _ends(row, percent)}
        for row in panel.rows
    ]
    base = alt.Chart(fig.data(rows)).encode(
        y=panel.y, tooltip=fig.tooltips(group="group", said="rate", interval="interval")
    )
    rule = base.mark_rule(color=fig.var("accent"), strokeWidth=2).encode(x=_x("low"), x2="high:Q")
    dot = fig.points(base, color=fig.var("accent")).encode(x=_x("value"))
    chart = fig.rule_at(overall).encode(x=_x("at")) + rule + dot
    said = "; ".join(f"{row['group']} {row['said']} ({row['interval']})" for row in rows[:12])
    return ReportFigure(
        id=f"rate-{panel.key}",
        title=panel.title,
        chart=chart.properties(**panel.size),
        alternative=f"{panel.title} by {view}: {said}. Overall {percent(overall)}.",
        columns=[view, "rate", "from", "to"],
        rows=[
            [row["group"], *(percent(row[end]) for end in ("value", "low", "high"))]
            for row in panel.records
        ],
        note=words.RATES[panel.rate],
        by=view,
    )


def _change_figure(view: str, panel: RatePanel) -> ReportFigure:
    when = {"baseline": "before", "now": "after"}
    long = [
        {"group": row["group"], "when": name, "rate": row[key], "said": percent(row[key])}
        for row in panel.rows
        for name, key in when.items()
    ]
    link = alt.Chart(fig.data(panel.rows)).mark_rule(color=fig.var("muted"), strokeWidth=2)
    dots = fig.points(alt.Chart(fig.data(long)), 80).encode(
        y=panel.y,
        x=_x("rate"),
        shape=fig.series(alt.Shape, "when", list(when), range=["diamond", "circle"]),
        color=fig.series(
            alt.Color, "when", list(when), range=[fig.var("before"), fig.var("accent")]
        ),
        tooltip=fig.tooltips(group="group", when="predictions", said="rate"),
    )
    chart = link.encode(y=panel.y, x=_x("before"), x2="after:Q") + dots
    table = [
        [
            row["group"],
            percent(row["before"]),
            percent(row["after"]),
            *(_points(row[name]) for name in ("change", "low", "high")),
        ]
        for row in panel.records
    ]
    shown = {row["group"] for row in panel.rows[:12]}
    said = "; ".join(f"{row[0]} {row[1]} to {row[2]}" for row in table if row[0] in shown)
    return ReportFigure(
        id=f"change-{panel.key}",
        title=panel.title,
        chart=chart.properties(**panel.size),
        alternative=f"{panel.title} by {view}, from the baseline to now: {said}.",
        columns=[view, "baseline", "now", "change", "from", "to"],
        rows=table,
        by=view,
    )


def _x(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title=None, axis=PERCENT, scale=alt.Scale(zero=False, padding=8))


def _ends(row: dict[Any, Any], shown: Any) -> str:
    return f"{shown(row['low'])} to {shown(row['high'])}"


def _points(change: float) -> str:
    return "not defined" if np.isnan(change) else f"{100 * change:+.1f} points"


def level_figure(audit: Audit, position: int) -> ReportFigure:
    """A dot per level with its interval; a band where levels are tolerated."""
    finding = audit.findings[position]
    rows = _levels(finding)
    largest = sorted(rows, key=lambda row: -abs(row["level"]))[:MOST_LEVELS]
    shown = [row for row in rows if row in largest]
    many = len({row["group"] for row in shown}) > MANY_GROUPS
    by_level = sorted(shown, key=lambda row: (row["label"], row["level"])) if many else shown
    order = list(dict.fromkeys(row["group"] for row in by_level))
    labels = list(dict.fromkeys(row["label"] for row in shown))
    tips = fig.tooltips(name="level of", said="F", interval="interval")
    base = alt.Chart(fig.data(shown)).encode(y=fig.groups_axis(order), tooltip=tips)
    base = fig.told_apart(base, "label", labels, yOffset=alt.YOffset("label:N", sort=labels))
    rule = base.mark_rule(strokeWidth=2).encode(x=_level_x("low"), x2="high:Q")
    shape = fig.series(alt.Shape, "label", labels, range=SHAPES)
    dot = fig.points(fig.told_apart(base, "label", labels, shape=shape)).encode(x=_level_x("level"))
    parts: list[Any] = [fig.rule_at(0.0).encode(x=_level_x("at")), rule, dot]
    if finding.tolerance.kind == "level":  # other verdicts do not look at the levels themselves
        ends = {"from": -finding.tolerance.value, "to": finding.tolerance.value}
        band = alt.Chart(fig.data([ends])).mark_rect(color=fig.var("band"), opacity=0.8)
        parts.insert(0, band.encode(x=_level_x("from"), x2="to:Q"))
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    line = 14 if many else 24
    height = fig.groups_height(order, line=line * max(len(labels), 1), least=60)
    said = "; ".join(f"{row['name']} {row['said']} ({row['interval']})" for row in rows[:12])
    return ReportFigure(
        id=f"level-{position}",
        title=title,
        chart=alt.layer(*parts).properties(width="container", height=height),
        alternative=f"Levels of {title}: {said}.",
        columns=["level of", "F", "from", "to"],
        rows=[[row["name"], row["said"], number(row["low"]), number(row["high"])] for row in rows],
        note=f"The {len(shown)} largest |F| of {len(rows)}; all are in the table."
        if len(shown) < len(rows)
        else "",
    )


def _level_x(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title=LEVEL)


def _levels(finding: Finding) -> list[dict[str, Any]]:
    """The levels that are defined and asked for."""
    comparison, (low, high) = finding.comparison, finding.level_intervals
    groups = finding.table.groups
    shorts = fig.unique(words.short_names(groups))
    asked = getattr(comparison.map, "applies", None)
    rows = []
    for j, level in enumerate(finding.levels):
        if np.isnan(level) or (asked is not None and not asked[j // len(shorts)]):
            continue
        name, group, label = comparison.names[j], comparison.group[j], comparison.label[j]
        row: dict[str, Any] = {
            "name": name,
            "group": shorts[group] if group >= 0 else name,
            "label": f"{groups.label_name}={groups.labels[label]}" if label >= 0 else "",
            "level": float(level),
            "low": float(low[j]),
            "high": float(high[j]),
        }
        rows.append({**row, "said": number(row["level"]), "interval": _ends(row, number)})
    return rows
