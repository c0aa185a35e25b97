"""Charts of scores: how they rank, whether they mean what they say, and what thresholds do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from fairgrad.audit import words
from fairgrad.report import figure as fig
from fairgrad.report.audit_figures import MANY_GROUPS, MOST_GROUPS, SHAPES
from fairgrad.report.figure import ReportFigure, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from fairgrad.audit import Audit

MOST_LINES = 6
"""More lines in one chart cannot be told apart: the largest groups are drawn."""
MOST_SCORED_LABELS = 4
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3]]
SHARE = alt.Axis(format=".0%", tickCount=5)


def score_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """AUC and calibration gap of every group, and the curves of the largest ones."""
    figures = []
    for scored in audit.scores[:MOST_SCORED_LABELS]:
        label = audit.label_value(scored.label)
        part = _Part(audit, view, label, f"{list(audit.views).index(view)}-{scored.label}")
        ends = "calibration_gap", "calibration_low", "calibration_high"
        figures.append(_roc(part))
        if scored.is_probability:
            figures.append(_calibration(part))
        figures.append(_histogram(part))
        figures.append(_dots(part, "auc", "auc_low", "auc_high", "AUC"))
        if scored.is_probability:
            figures.append(_dots(part, *ends, "Calibration gap"))
    return figures


def threshold_figures(audit: Audit) -> list[ReportFigure]:
    """The figure of every verdict asked for along the thresholds, then accuracy and selection."""
    if audit.thresholds is None:
        return []
    frame = audit.to_frame("thresholds")
    figures = [_threshold(audit, frame, position) for position in range(len(audit.asked))]
    return [*figures, _accuracy(audit, frame)]


class _Part:
    """The tables of one way of grouping and one label, groups by their short names."""

    def __init__(self, audit: Audit, view: str, label: Any, key: str) -> None:
        table = audit.views[view]
        shorts = fig.unique(words.short_names(table.groups))
        self.names = dict(zip(table.groups.names, shorts, strict=True))
        self.audit, self.view, self.label, self.key = audit, view, label, key
        several = len(audit.scores) > 1
        self.of = f" of {label}" if several else ""
        largest = [table.groups.names[g] for g in table.largest(MOST_GROUPS)]
        self.shown = [self.names[name] for name in largest]
        self.lines = self.shown[:MOST_LINES]

    def records(self, kind: str) -> list[dict[Any, Any]]:
        """The rows of a table."""
        frame = self.audit.to_frame(kind)
        own = frame[(frame["attribute"] == self.view) & (frame["label"] == self.label)]
        found = own.to_dict(orient="records")
        return [{**row, "group": self.names.get(row["group"], row["group"])} for row in found]

    def curves(self, rows: Sequence[dict[Any, Any]]) -> list[dict[Any, Any]]:
        """Those of the groups that are drawn as lines."""
        return [row for row in rows if row["group"] in self.lines]

    def said(self, figure: str) -> str:
        """A figure of the scores of each group that is drawn as a line, in words."""
        found = {row["group"]: row[figure] for row in self.records("scores")}
        names = (name for name in self.lines if name in found)
        return "; ".join(f"{name} {number(found[name], 3)}" for name in names)

    def drawn(self, base: alt.Chart) -> alt.Chart:
        """Lines that differ by colour and dash."""
        if len(self.lines) < 2:
            return base.encode(color=alt.value(fig.var("accent")))
        dash = fig.series(alt.StrokeDash, "group", self.lines, range=DASHES[: len(self.lines)])
        return base.encode(color=fig.series(alt.Color, "group", self.lines), strokeDash=dash)

    @property
    def note(self) -> str:
        """Which groups are not drawn."""
        more = len(self.names) - len(self.lines)
        return "" if more <= 0 else f"The {len(self.lines)} largest of {len(self.names)} groups."


def _dots(part: _Part, value: str, low: str, high: str, title: str) -> ReportFigure:
    """A dot per group with its interval, and a line at what holds for everyone (or at 0)."""
    records = part.records("scores")
    said = [
        {**row, "said": number(row[value], 3), "interval": _ends(row, low, high)} for row in records
    ]
    rows = [row for row in said if row["group"] in part.shown and not np.isnan(row[value])]
    if len(rows) > MANY_GROUPS:
        rows.sort(key=lambda row: row[value])
    order = [row["group"] for row in rows]
    tips = fig.tooltips(group="group", said=title.lower(), interval="interval")
    base = alt.Chart(
        fig.data([_plain(row, "group", value, low, high, "said", "interval") for row in rows])
    )
    base = base.encode(y=fig.groups_axis(order), tooltip=tips)
    at = 0.0 if value == "calibration_gap" else records[-1][value]

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=None, scale=alt.Scale(zero=False, padding=8))

    rule = base.mark_rule(color=fig.var("accent"), strokeWidth=2).encode(x=x(low), x2=f"{high}:Q")
    dots = fig.points(base, color=fig.var("accent")).encode(x=x(value))
    chart = fig.rule_at(at).encode(x=x("at")) + rule + dots
    height = fig.groups_height(order, line=24 if len(order) <= 20 else 16)
    note = (
        "True rate less mean score: right of 0 the scores are too low for the group."
        if value == "calibration_gap"
        else "How likely a row of the label has the higher score of two; dashed: everyone."
    )
    return ReportFigure(
        id=f"{value.replace('_', '-')}-{part.key}",
        title=f"{title}{part.of}",
        chart=chart.properties(width="container", height=height),
        alternative=f"{title}{part.of} by {part.view}: "
        + "; ".join(f"{row['group']} {row['said']} ({row['interval']})" for row in rows[:12])
        + ".",
        columns=[part.view, "rows", title, "from", "to"],
        rows=[
            [row["group"], f"{row['rows']:,}", *(number(row[end], 3) for end in (value, low, high))]
            for row in records
        ],
        note=note,
        by=part.view,
    )


def _roc(part: _Part) -> ReportFigure:
    records = part.records("roc")
    fields = "false_positive_rate", "true_positive_rate"
    rows = [_plain(row, "group", *fields) for row in part.curves(records)]
    x = alt.X(f"{fields[0]}:Q", title="false positive rate", axis=SHARE)
    y = alt.Y(f"{fields[1]}:Q", title="true positive rate", axis=SHARE)
    line = part.drawn(alt.Chart(fig.data(rows)).mark_line(strokeWidth=2, clip=True))
    chance = alt.Chart(fig.data([dict.fromkeys(fields, end) for end in (0, 1)]))
    chance = chance.mark_line(color=fig.var("muted"), strokeDash=[4, 3])
    title = f"ROC curves{part.of}"
    return ReportFigure(
        id=f"roc-{part.key}",
        title=title,
        chart=(chance.encode(x=x, y=y) + line.encode(x=x, y=y)).properties(
            width="container", height=260
        ),
        alternative=f"{title} by {part.view}; areas under them: {part.said('auc')}.",
        columns=[part.view, "threshold", "false positive rate", "true positive rate"],
        rows=[
            [row["group"], _threshold_text(row["threshold"]), *(percent(row[f]) for f in fields)]
            for row in part.curves(records)
        ],
        note=part.note,
        by=part.view,
    )


def _calibration(part: _Part) -> ReportFigure:
    records = part.records("calibration")
    rows = [
        {
            **_plain(row, "group", "mean_score", "rate", "low", "high"),
            "said": percent(row["rate"]),
            "interval": f"{percent(row['low'])} to {percent(row['high'])}",
            "at": number(row["mean_score"], 3),
        }
        for row in part.curves(records)
    ]
    x = alt.X("mean_score:Q", title="mean score", scale=alt.Scale(domain=[0, 1]))

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="how often it is true", axis=SHARE)

    base = fig.told_apart(alt.Chart(fig.data(rows)), "group", part.lines)
    tips = fig.tooltips(group="group", at="mean score", said="true", interval="interval")
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x=x, y=y("low"), y2="high:Q")
    line = base.mark_line(strokeWidth=2).encode(x=x, y=y("rate"))
    shape = fig.series(alt.Shape, "group", part.lines, range=SHAPES)
    shaped = base.encode(shape=shape) if len(part.lines) > 1 else base
    dots = fig.points(shaped, 40).encode(x=x, y=y("rate"), tooltip=tips)
    ideal = alt.Chart(fig.data([{"mean_score": end, "rate": end} for end in (0, 1)]))
    ideal = ideal.mark_line(color=fig.var("muted"), strokeDash=[4, 3]).encode(x=x, y=y("rate"))
    title = f"Calibration{part.of}"
    said = "; ".join(
        f"{row['group']} {number(row['calibration_gap'], 3)}"
        for row in part.records("scores")
        if row["group"] in part.lines
    )
    return ReportFigure(
        id=f"calibration-{part.key}",
        title=title,
        chart=(ideal + bars + line + dots).properties(width="container", height=260),
        alternative=f"{title} by {part.view}: true rates against mean scores in ten bins. Gaps "
        f"overall: {said}.",
        columns=[part.view, "scores from", "to", "rows", "mean score", "true", "from", "to"],
        rows=[
            [
                row["group"],
                number(row["from"], 3),
                number(row["to"], 3),
                f"{row['rows']:,}",
                number(row["mean_score"], 3),
                *(percent(row[f]) for f in ("rate", "low", "high")),
            ]
            for row in records
        ],
        note=f"On the dashed line scores are what they say. {part.note}".strip(),
        by=part.view,
    )


def _histogram(part: _Part) -> ReportFigure:
    records = part.records("score_histogram")
    curves = part.curves(records)
    rows = [
        {"group": row["group"], "score": end, "share": row["share"]}
        for row in curves
        for end in (row["from"], row["to"])
    ]
    line = part.drawn(alt.Chart(fig.data(rows)).mark_line(strokeWidth=2))
    scale = alt.Scale(zero=False, nice=False)
    chart = line.encode(
        x=alt.X("score:Q", title="score", scale=scale),
        y=alt.Y("share:Q", title="share of the group", axis=SHARE),
    )
    title = f"Distribution of scores{part.of}"
    return ReportFigure(
        id=f"scores-{part.key}",
        title=title,
        chart=chart.properties(width="container", height=220),
        alternative=f"{title} by {part.view}; medians: {part.said('median')}.",
        columns=[part.view, "rows", "lower quartile", "median", "upper quartile", "mean"],
        rows=[
            [
                row["group"],
                f"{row['rows']:,}",
                *(
                    number(row[f], 3)
                    for f in ("lower_quartile", "median", "upper_quartile", "mean_score")
                ),
            ]
            for row in part.records("scores")
        ],
        note=part.note,
        by=part.view,
    )


def _threshold(audit: Audit, frame: pd.DataFrame, position: int) -> ReportFigure:
    """The figure that is judged, its interval as a band, what is tolerated, and where we are."""
    finding = audit.asked[position]
    own = frame[(frame["measure"] == finding.measure) & (frame["attribute"] == finding.attribute)]
    records = own.to_dict(orient="records")
    judged = words.judged([finding])
    rows = [
        {
            **_plain(row, "threshold", "value", "low", "high"),
            "at": number(row["threshold"], 3),
            "said": number(row["value"], 3),
            "verdict": row["verdict"],
            "accuracy": percent(row["accuracy"]),
        }
        for row in records
        if not np.isnan(row["value"])
    ]
    x = alt.X("threshold:Q", title="threshold", scale=alt.Scale(zero=False, nice=False))
    tips = fig.tooltips(at="threshold", said=judged, verdict="verdict", accuracy="accuracy")
    base = alt.Chart(fig.data(rows)).encode(x=x, tooltip=tips)
    band = base.mark_area(color=fig.var("accent"), opacity=0.2).encode(
        y=alt.Y("low:Q", title=judged), y2="high:Q"
    )
    line = base.mark_line(color=fig.var("accent"), strokeWidth=2).encode(y=alt.Y("value:Q"))
    dots = fig.points(base, 18, color=fig.var("accent")).encode(y=alt.Y("value:Q"))
    limit = alt.Chart(fig.data([{"limit": finding.tolerance.value}]))
    limit = limit.mark_rule(color=fig.var("good"), strokeWidth=2).encode(y=alt.Y("limit:Q"))
    chart = band + line + dots + limit
    present = next((row for row in records if row["present"]), None)
    where = "not from one threshold" if present is None else number(present["threshold"], 3)
    if present is not None:
        chart += _present(present["threshold"], x)
    sweep = audit.thresholds
    assert sweep is not None  # noqa: S101 - the caller looked
    said = sweep.sentence(finding, named=False)
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    return ReportFigure(
        id=f"threshold-{position}",
        title=title,
        chart=chart.properties(width="container", height=220),
        alternative=f"{judged} of {title} at thresholds from {number(records[0]['threshold'], 3)} "
        f"to {number(records[-1]['threshold'], 3)}; present threshold {where}. {said}",
        columns=["threshold", judged, "from", "to", "verdict", "accuracy", "selected"],
        rows=[
            [
                number(row["threshold"], 3) + (" (present)" if row["present"] else ""),
                *(number(row[f], 3) for f in ("value", "low", "high")),
                words.signed(row["verdict"]),
                percent(row["accuracy"]),
                percent(row["selection_rate"]),
            ]
            for row in records
        ],
        note=said,
    )


def _accuracy(audit: Audit, frame: pd.DataFrame) -> ReportFigure:
    """Accuracy and the share that is selected along the thresholds."""
    first = audit.asked[0]
    own = frame[(frame["measure"] == first.measure) & (frame["attribute"] == first.attribute)]
    records = own.to_dict(orient="records")
    what = {"accuracy": "accuracy", "selection_rate": "selected"}
    rows = [
        {
            "threshold": row["threshold"],
            "what": name,
            "share": row[field],
            "at": number(row["threshold"], 3),
            "said": percent(row[field]),
        }
        for row in records
        for field, name in what.items()
    ]
    names = list(what.values())
    x = alt.X("threshold:Q", title="threshold", scale=alt.Scale(zero=False, nice=False))
    line = alt.Chart(fig.data(rows)).mark_line(strokeWidth=2)
    chart: Any = line.encode(
        x=x,
        y=alt.Y("share:Q", title=None, axis=SHARE, scale=alt.Scale(domain=[0, 1])),
        color=fig.series(alt.Color, "what", names),
        strokeDash=fig.series(alt.StrokeDash, "what", names, range=DASHES[:2]),
        tooltip=fig.tooltips(at="threshold", what="what", said="share"),
    )
    present = next((row for row in records if row["present"]), None)
    if present is not None:
        chart = chart + _present(present["threshold"], x)
    best = max(records, key=lambda row: row["accuracy"])
    return ReportFigure(
        id="threshold-accuracy",
        title="Accuracy and share selected",
        chart=chart.properties(width="container", height=220),
        alternative="Accuracy and share of the rows selected along the thresholds; most accurate "
        f"at {number(best['threshold'], 3)}: {percent(best['accuracy'])}.",
        columns=["threshold", "accuracy", "selected"],
        rows=[
            [
                number(row["threshold"], 3) + (" (present)" if row["present"] else ""),
                percent(row["accuracy"]),
                percent(row["selection_rate"]),
            ]
            for row in records
        ],
    )


def _present(threshold: float, x: alt.X) -> alt.LayerChart:
    """The present threshold, with a word at its line."""
    base = alt.Chart(fig.data([{"threshold": threshold, "word": "now"}])).encode(x=x)
    line = base.mark_rule(color=fig.var("ink"), strokeWidth=2, strokeDash=[2, 2])
    word = base.mark_text(color=fig.var("ink"), align="left", baseline="top", dx=4, y=0)
    both: alt.LayerChart = line + word.encode(text="word:N")
    return both


def _plain(row: dict[Any, Any], *fields: str) -> dict[str, Any]:
    return {field: row[field] for field in fields}


def _ends(row: dict[Any, Any], low: str, high: str) -> str:
    return f"{number(row[low], 3)} to {number(row[high], 3)}"


def _threshold_text(value: float) -> str:
    return "above all" if np.isinf(value) else number(value, 3)
