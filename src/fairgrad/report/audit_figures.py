"""Charts of an audit: rates per group, before and after, and levels against what is tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from fairgrad.audit import words
from fairgrad.report.figure import ReportFigure, data, number, percent, series, unique, var

if TYPE_CHECKING:
    import pandas as pd

    from fairgrad.audit import Audit, Finding

MOST_GROUPS = 40
RATES = (
    "accuracy",
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "precision",
    "base_rate",
)
GROUPS = alt.Axis(grid=True, ticks=False, labelOverlap=False)
PERCENT = alt.Axis(format=".1~%", tickCount=5)
MOST_LEVELS = 60
AXIS = "← worse off · F · better off →"
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


def rate_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """One chart per rate: a dot per group with its interval, and a line at the overall rate."""
    frame = audit.to_frame("rates")
    frame = frame[frame["attribute"] == view]
    return [
        _rate_figure(audit, view, rate, label, _picked(frame, rate, label))
        for rate in RATES
        for label in _labels(frame, rate)
    ]


def change_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """One chart per rate: every group's rate under the baseline and now."""
    frame = audit.to_frame("changes")
    frame = frame[frame["attribute"] == view]
    return [
        _change_figure(audit, view, rate, label, _picked(frame, rate, label))
        for rate in RATES[:-1]  # the base rate is the data's, whoever predicts
        for label in _labels(frame, rate)
    ]


def _picked(frame: pd.DataFrame, rate: str, label: Any) -> list[dict[Any, Any]]:
    mine = frame[frame["rate"] == rate]
    if label is not None:
        mine = mine[mine["label"] == label]
    records: list[dict[Any, Any]] = mine.to_dict(orient="records")
    return records


def _labels(frame: pd.DataFrame, rate: str) -> list[Any]:
    """The labels a rate is given for; their first ten if there are many."""
    return list(dict.fromkeys(frame[frame["rate"] == rate]["label"].tolist()))[:10]


def _rate_figure(
    audit: Audit, view: str, rate: str, label: Any, records: list[dict[Any, Any]]
) -> ReportFigure:
    names = _short(audit, view)
    shown = _shown(audit, view)
    overall = next(row for row in records if row["group"] == words.OVERALL)
    rows = [{**row, "group": names[row["group"]]} for row in records if row["group"] in shown]
    base = alt.Chart(data([_tooltips(row) for row in rows])).encode(
        y=_groups_axis([names[group] for group in shown]), tooltip=_TOOLTIP
    )
    rule = base.mark_rule(color=var("accent"), strokeWidth=2).encode(x=_x("low"), x2="high:Q")
    dot = base.mark_point(color=var("accent"), filled=True, size=70, opacity=1)
    dot = dot.encode(x=_x("value"))
    line = (
        alt.Chart(data([{"overall": overall["value"]}]))
        .mark_rule(color=var("muted"), strokeDash=[4, 3])
        .encode(x=_x("overall"))
    )
    title = _title(audit, rate, label)
    said = "; ".join(f"{row['group']} {_with_interval(row)}" for row in rows[:12])
    return ReportFigure(
        id=f"rate-{_number(audit, view)}-{rate}-{_label_number(audit, label)}",
        title=title,
        chart=(line + rule + dot).properties(width="container", height=_height(len(rows))),
        alternative=f"{title} by {view}: {said}. Overall {percent(overall['value'])}.",
        columns=[view, "rate", "from", "to"],
        rows=[
            [names.get(row["group"], row["group"]), *map(percent, _ends(row))] for row in records
        ],
        note=words.RATES[rate],
        by=view,
    )


def _change_figure(
    audit: Audit, view: str, rate: str, label: Any, records: list[dict[Any, Any]]
) -> ReportFigure:
    names = _short(audit, view)
    shown = _shown(audit, view)
    rows = [{**row, "group": names[row["group"]]} for row in records if row["group"] in shown]
    long = [
        {"group": row["group"], "when": when, "rate": row[key], "shown": percent(row[key])}
        for row in rows
        for when, key in (("baseline", "before"), ("now", "after"))
    ]
    y = _groups_axis([names[group] for group in shown])
    link = (
        alt.Chart(data(rows))
        .mark_rule(color=var("muted"), strokeWidth=2)
        .encode(y=y, x=_x("before"), x2="after:Q")
    )
    when = ["baseline", "now"]
    dots = (
        alt.Chart(data(long))
        .mark_point(size=80, opacity=1, filled=True)
        .encode(
            y=y,
            x=_x("rate"),
            shape=series(alt.Shape, "when", when, range=["diamond", "circle"]),
            color=series(alt.Color, "when", when, range=[var("before"), var("accent")]),
            tooltip=[
                alt.Tooltip("group:N", title="group"),
                alt.Tooltip("when:N", title="predictions"),
                alt.Tooltip("shown:N", title="rate"),
            ],
        )
    )
    title = _title(audit, rate, label)
    said = "; ".join(
        f"{row['group']} {percent(row['before'])} to {percent(row['after'])}" for row in rows[:12]
    )
    return ReportFigure(
        id=f"change-{_number(audit, view)}-{rate}-{_label_number(audit, label)}",
        title=title,
        chart=(link + dots).properties(width="container", height=_height(len(rows))),
        alternative=f"{title} by {view}, from the baseline to now: {said}.",
        columns=[view, "baseline", "now", "change"],
        rows=[
            [
                names.get(row["group"], row["group"]),
                percent(row["before"]),
                percent(row["after"]),
                _points(row["change"]),
            ]
            for row in records
        ],
        by=view,
    )


_TOOLTIP = [
    alt.Tooltip("group:N", title="group"),
    alt.Tooltip("rate_shown:N", title="rate"),
    alt.Tooltip("interval_shown:N", title="interval"),
]


def _tooltips(row: dict[Any, Any]) -> dict[Any, Any]:
    low, high = percent(row["low"]), percent(row["high"])
    return {**row, "rate_shown": percent(row["value"]), "interval_shown": f"{low} to {high}"}


def _x(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title=None, axis=PERCENT, scale=alt.Scale(zero=False, padding=8))


def _groups_axis(order: list[str]) -> alt.Y:
    return alt.Y("group:N", title=None, sort=order, axis=GROUPS)


def _short(audit: Audit, view: str) -> dict[str, str]:
    groups = audit.views[view].groups
    return dict(zip(groups.names, unique(words.short_names(groups)), strict=True))


def _shown(audit: Audit, view: str) -> list[str]:
    """The groups in a chart: the largest ones if there are very many."""
    table = audit.views[view]
    largest = set((-table.size).argsort(kind="stable")[:MOST_GROUPS].tolist())
    return [name for index, name in enumerate(table.groups.names) if index in largest]


def _title(audit: Audit, rate: str, label: Any) -> str:
    words = rate.replace("_", " ").capitalize()
    return words if label is None or len(audit.labels) == 2 else f"{words} of {label}"


def _with_interval(row: dict[Any, Any]) -> str:
    value, low, high = (percent(end) for end in _ends(row))
    return f"{value} ({low} to {high})"


def _ends(row: dict[Any, Any]) -> tuple[float, float, float]:
    return row["value"], row["low"], row["high"]


def _points(change: float) -> str:
    return "not defined" if change != change else f"{100 * change:+.1f} points"  # noqa: PLR0124 - NaN


def _height(n_groups: int) -> int:
    return max(24 * n_groups, 48) if n_groups <= 20 else 16 * n_groups


def _number(audit: Audit, view: str) -> int:
    return list(audit.views).index(view)


def _label_number(audit: Audit, label: Any) -> int:
    return 0 if label is None else audit.labels.index(label)


def level_figure(audit: Audit, position: int) -> ReportFigure:
    """A dot per level with its simultaneous interval; a band where levels are tolerated."""
    finding = audit.findings[position]
    rows = _rows(finding)
    shown = sorted(rows, key=lambda row: -abs(row["level"]))[:MOST_LEVELS]
    shown = [row for row in rows if row in shown]
    order = list(dict.fromkeys(row["group"] for row in shown))
    labels = list(dict.fromkeys(row["label"] for row in shown))
    y = alt.Y("group:N", title=None, sort=order, axis=alt.Axis(grid=True, ticks=False))
    base = alt.Chart(data([_level_tooltips(row) for row in shown])).encode(
        y=y, tooltip=_LEVEL_TOOLTIP
    )
    if len(labels) > 1:
        base = base.encode(yOffset=alt.YOffset("label:N", sort=labels))
    rule = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=AXIS), x2="high:Q", color=_colour(labels)
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("level:Q", title=AXIS), color=_colour(labels), shape=_shape(labels)
    )
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    return ReportFigure(
        id=f"level-{position}",
        title=title,
        chart=alt.layer(*_band(finding), _zero(), rule, dot).properties(
            width="container", height=max(24 * len(order) * max(len(labels), 1), 60)
        ),
        alternative=_levels_in_words(title, rows),
        columns=["level of", "F", "from", "to"],
        rows=[[row["name"], *(number(row[k]) for k in ("level", "low", "high"))] for row in rows],
    )


def _rows(finding: Finding) -> list[dict[str, Any]]:
    """The levels that are defined and asked for."""
    comparison, (low, high) = finding.comparison, finding.level_intervals
    shorts = unique(words.short_names(finding.table.groups))
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


_LEVEL_TOOLTIP = [
    alt.Tooltip("name:N", title="level of"),
    alt.Tooltip("level_shown:N", title="F"),
    alt.Tooltip("interval_shown:N", title="interval"),
]


def _level_tooltips(row: dict[str, Any]) -> dict[str, Any]:
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


def _levels_in_words(title: str, rows: list[dict[str, Any]]) -> str:
    said = "; ".join(
        f"{row['name']} {number(row['level'])} ({number(row['low'])} to {number(row['high'])})"
        for row in rows[:12]
    )
    return f"Levels of {title}: {said}."
