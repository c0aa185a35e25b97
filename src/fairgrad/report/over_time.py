"""Charts of audits over time: a line per level, with a band for its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from fairgrad.audit import words
from fairgrad.report import figure as fig
from fairgrad.report.figure import ReportFigure, number

if TYPE_CHECKING:
    from fairgrad.audit import Finding
    from fairgrad.audit.over_time import AuditOverTime

MOST_LINES = 8
"""Lines in a chart; those with the largest levels."""


def over_time_figures(over: AuditOverTime) -> list[ReportFigure]:
    """One chart per measure and way of grouping of the verdict.

    Args:
        over: audits of consecutive periods.

    Example:
        >>> from fairgrad.audit import Audit, AuditOverTime
        >>> audit = Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20)
        >>> over = AuditOverTime({"2024-01-01": audit, "2024-02-01": audit})
        >>> [figure.id for figure in over_time_figures(over)]
        ['over-time-0', 'over-time-1', 'over-time-2', 'over-time-3']
    """
    levels = over.to_frame("levels").dropna(subset="level")
    first = next(iter(over.audits.values()))
    found: list[ReportFigure] = []
    for finding in first.asked:
        is_own = (levels["measure"] == finding.measure) & (levels["attribute"] == finding.attribute)
        found.append(_figure(f"over-time-{len(found)}", finding, levels[is_own], over))
    return found


def _figure(name: str, finding: Finding, levels: pd.DataFrame, over: AuditOverTime) -> ReportFigure:
    largest = levels["level"].abs().groupby(levels["name"]).max().sort_values(ascending=False)
    shown = [one for one in dict.fromkeys(levels["name"]) if one in set(largest.index[:MOST_LINES])]
    rows: list[dict[Any, Any]] = levels.to_dict(orient="records")
    drawn = [
        {**row, "said": number(row["level"]), "interval": _ends(row)}
        for row in rows
        if row["name"] in shown
    ]
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    last = over.periods[-1]
    ends = "; ".join(
        f"{row['name']} {number(row['level'])} ({_ends(row)})"
        for row in rows[-60:]
        if row["period"] == last
    )
    more = len(largest) - len(shown)
    return ReportFigure(
        id=name,
        title=title,
        chart=_chart(drawn, shown, finding, over),
        alternative=f"Levels of {title} in {len(over.periods)} periods; in {last}: {ends}.",
        columns=["period", "level of", "F", "from", "to"],
        rows=[
            [row["period"], row["name"], *(number(row[key]) for key in ("level", "low", "high"))]
            for row in rows
        ],
        note=f"The {words.n_of(more, 'level')} nearest to 0 are in the table alone."
        if more > 0
        else "",
    )


def _chart(
    rows: list[dict[Any, Any]], names: list[str], finding: Finding, over: AuditOverTime
) -> fig.AnyChart:
    dates = pd.to_datetime(pd.Series(over.periods), format="ISO8601", errors="coerce")
    if dates.notna().all():
        x: Any = alt.X("period:T", title=None, scale=alt.Scale(type="utc"))
    else:
        x = alt.X("period:O", title=None)
    base = alt.Chart(fig.data(rows)).encode(
        x=x, tooltip=fig.tooltips(period="period", name="level of", said="F", interval="interval")
    )
    band = fig.told_apart(base.mark_area(fillOpacity=0.15), "name", names).encode(
        y=_y("low"), y2="high:Q"
    )
    dash, shape = (fig.series(alt.StrokeDash, "name", names), fig.series(alt.Shape, "name", names))
    line = fig.told_apart(base.mark_line(strokeWidth=2), "name", names, strokeDash=dash)
    dots = fig.told_apart(fig.points(base, 40), "name", names, shape=shape)
    parts: list[Any] = [
        band,
        fig.rule_at(0.0).encode(y="at:Q"),
        line.encode(y=_y("level")),
        dots.encode(y=_y("level")),
    ]
    if finding.tolerance.kind == "level":  # other verdicts do not look at the levels themselves
        ends = {"from": -finding.tolerance.value, "to": finding.tolerance.value}
        rect = alt.Chart(fig.data([ends])).mark_rect(color=fig.var("band"), opacity=0.8)
        parts.insert(0, rect.encode(y=_y("from"), y2="to:Q"))
    return alt.layer(*parts).properties(width="container", height=240)


def _y(field: str) -> alt.Y:
    return alt.Y(f"{field}:Q", title="F, with its interval")


def _ends(row: dict[Any, Any]) -> str:
    return f"{number(row['low'])} to {number(row['high'])}"
