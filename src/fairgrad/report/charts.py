"""Charts of an audit: one function per kind of chart that its sections name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from fairgrad.audit import headline, words
from fairgrad.audit.sections import MANY_GROUPS, short
from fairgrad.report import figure as fig
from fairgrad.report.figure import ReportFigure, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit import Audit, AuditOverTime, Finding

MOST_GROUPS, MOST_LABELS, MOST_LEVELS = 40, 10, 60
MOST_LINES, MOST_LEVEL_LINES, MOST_SCORED_LABELS = 6, 8, 4
"""More lines in one chart cannot be told apart: the largest groups are drawn."""
RATES = {
    "accuracy": "Predicted correctly (accuracy)",
    "selection_rate": "Predicted {label} (selection rate)",
    "true_positive_rate": "Predicted correctly among people with {target} {label} (true positive "
    "rate)",
    "false_positive_rate": "Predicted {label} among the others (false positive rate)",
    "precision": "With {target} {label} among those predicted {label} (precision)",
    "base_rate": "With {target} {label} (base rate)",
}
PERCENT = alt.Axis(format=".1~%", tickCount=5)
SHARE = alt.Axis(format=".0%", tickCount=5)
LEVEL = "← worse off · F · better off →"
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3]]


def compared_figure(audit: Audit, position: int) -> ReportFigure:
    """The rates that a verdict rests on: a bar per group before and now, and the tolerated band."""
    finding = audit.findings[position]
    rates = headline.compared(finding)
    assert rates is not None  # noqa: S101 - sections ask for this chart only if there are rates
    both = headline.before_and_now(audit, finding, rates)
    shown = {when.replace("before", audit.baseline_name): rate for when, rate in both.items()}
    names = fig.unique(rates.groups)
    order = sorted(range(len(names)), key=lambda g: -rates.rate.total[g])[:MOST_GROUPS]
    rows = []
    for when, rate in shown.items():
        low, high = rate.exact_interval(audit.alpha)
        for g in sorted(order):
            row = {"group": names[g], "when": when, "rate": rate.value[g]}
            row |= {"low": low[g], "high": high[g], "said": percent(rate.value[g])}
            rows.append({**row, "interval": _ends(row, percent)})
    x = alt.Scale(zero=True, nice=True)
    base = alt.Chart(fig.data(rows)).encode(
        y=fig.groups_axis([names[g] for g in sorted(order)]),
        tooltip=fig.tooltips(group="group", when="predictions", said="rate", interval="interval"),
    )
    if len(shown) > 1:
        base = base.encode(yOffset=alt.YOffset("when:N", sort=list(shown)))
    colours = [fig.var("before"), fig.var("accent")][-len(shown) :]
    colour: Any = fig.series(alt.Color, "when", list(shown), range=colours)
    colour = colour if len(shown) > 1 else alt.value(fig.var("accent"))
    bars = base.mark_bar(opacity=0.85, height={"band": 0.85}).encode(
        x=alt.X("rate:Q", title=None, axis=PERCENT, scale=x), color=colour
    )
    lines = base.mark_rule(color=fig.var("ink"), strokeWidth=2).encode(x="low:Q", x2="high:Q")
    ends = {"from": float(rates.fair.low), "to": float(rates.fair.high)}
    band = alt.Chart(fig.data([ends])).mark_rect(color=fig.var("band"), opacity=0.9)
    chart = band.encode(x=alt.X("from:Q", title=None, axis=PERCENT, scale=x), x2="to:Q")
    chart = chart + bars + lines
    if not np.isnan(rates.reference):
        chart += fig.rule_at(rates.reference).encode(x="at:Q")
    height = fig.groups_height([names[g] for g in order], line=34 * len(shown), least=70)
    among = f" among people {rates.among}" if rates.among else ""
    title = f"{headline.capitalized(rates.predicate)}{among}, by {finding.attribute}"
    said = "; ".join(f"{row['group']}, {row['when']}: {row['said']}" for row in rows[:12])
    to = f"{percent(ends['from'])} to {percent(ends['to'])}"
    dashed = "" if np.isnan(rates.reference) else " Dashed: the overall rate."
    return ReportFigure(
        id=f"compared-{position}",
        title=title,
        chart=chart.properties(width="container", height=height),
        alternative=f"{title}: {said}. Fair are {to}.",
        columns=["group", "predictions", "rate", "from", "to"],
        rows=[
            [row["group"], row["when"], *(percent(row[key]) for key in ("rate", "low", "high"))]
            for row in rows
        ],
        note=f"Shaded: the rates that are judged fair, {to}.{dashed} Lines: "
        f"{100 * audit.confidence:.4g} % intervals.",
    )


def rate_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """One chart per rate: a dot per group with its interval, and a line at the overall rate."""
    frame, table = audit.to_frame("rates"), audit.views[view]
    frame = frame[frame["attribute"] == view]
    names = dict(zip(table.groups.names, fig.unique(words.short_names(table.groups)), strict=True))
    largest = {table.groups.names[index] for index in table.largest(MOST_GROUPS)}
    found = []
    for rate, title in RATES.items():
        of_rate = frame[frame["rate"] == rate]
        for label in list(dict.fromkeys(of_rate["label"]))[:MOST_LABELS]:
            own = of_rate if label is None else of_rate[of_rate["label"] == label]
            records = own.to_dict(orient="records")
            rows = [row for row in records if row["group"] in largest]
            if len(rows) > MANY_GROUPS:
                rows.sort(key=lambda row: float(np.nan_to_num(row["value"])))
            place = 0 if label is None else audit.labels.index(label)
            key = f"rate-{list(audit.views).index(view)}-{rate}-{place}"
            shown = title.format(label=label, target=audit.target)
            short = [
                [{**row, "group": names.get(row["group"], row["group"])} for row in part]
                for part in (rows, records)
            ]
            found.append(_rate_figure(key, shown, view, *short))
    return found


def _rate_figure(
    key: str, title: str, view: str, shown: list[dict[Any, Any]], records: list[dict[Any, Any]]
) -> ReportFigure:
    overall, order = records[-1]["value"], [row["group"] for row in shown]
    rows = [
        {**row, "said": percent(row["value"]), "interval": _ends(row, percent)} for row in shown
    ]
    base = alt.Chart(fig.data(rows)).encode(
        y=fig.groups_axis(order),
        tooltip=fig.tooltips(group="group", said="rate", interval="interval"),
    )
    rule = base.mark_rule(color=fig.var("accent"), strokeWidth=2).encode(x=_x("low"), x2="high:Q")
    dot = fig.points(base, color=fig.var("accent")).encode(x=_x("value"))
    chart = fig.rule_at(overall).encode(x=_x("at")) + rule + dot
    height = fig.groups_height(order, line=24 if len(order) <= 20 else 16)
    said = "; ".join(f"{row['group']} {row['said']} ({row['interval']})" for row in rows[:12])
    return ReportFigure(
        id=key,
        title=title,
        chart=chart.properties(width="container", height=height),
        alternative=f"{title} by {view}: {said}. Overall {percent(overall)}.",
        columns=[view, "rate", "from", "to"],
        rows=[
            [row["group"], *(percent(row[end]) for end in ("value", "low", "high"))]
            for row in records
        ],
        by=view,
    )


def _x(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title=None, axis=PERCENT, scale=alt.Scale(zero=False, padding=8))


def _ends(row: dict[Any, Any], shown: Any) -> str:
    return f"{shown(row['low'])} to {shown(row['high'])}"


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


def score_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """ROC, calibration and distribution of the scores of the largest groups."""
    figures = []
    for scored in audit.scores[:MOST_SCORED_LABELS]:
        label = audit.label_value(scored.label)
        part = _Part(audit, view, label, f"{list(audit.views).index(view)}-{scored.label}")
        figures.append(_roc(part))
        if scored.is_probability:
            figures.append(_calibration(part))
        figures.append(_histogram(part))
    return figures


def threshold_figures(audit: Audit) -> list[ReportFigure]:
    """The figure of every verdict asked for along the thresholds."""
    if audit.thresholds is None:
        return []
    frame = audit.to_frame("thresholds")
    return [_threshold(audit, frame, position) for position in range(len(audit.asked))]


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
    said = sweep.sentence(finding)
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
                short(row["verdict"]),
                percent(row["accuracy"]),
                percent(row["selection_rate"]),
            ]
            for row in records
        ],
        note=said,
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


def _threshold_text(value: float) -> str:
    return "above all" if np.isinf(value) else number(value, 3)


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
        found.append(_over_time_figure(f"over-time-{len(found)}", finding, levels[is_own], over))
    return found


def _over_time_figure(
    name: str, finding: Finding, levels: pd.DataFrame, over: AuditOverTime
) -> ReportFigure:
    largest = levels["level"].abs().groupby(levels["name"]).max().sort_values(ascending=False)
    shown = [
        one for one in dict.fromkeys(levels["name"]) if one in set(largest.index[:MOST_LEVEL_LINES])
    ]
    rows: list[dict[Any, Any]] = levels.to_dict(orient="records")
    drawn = [
        {**row, "said": number(row["level"]), "interval": _ends(row, number)}
        for row in rows
        if row["name"] in shown
    ]
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    last = over.periods[-1]
    ends = "; ".join(
        f"{row['name']} {number(row['level'])} ({_ends(row, number)})"
        for row in rows[-60:]
        if row["period"] == last
    )
    more = len(largest) - len(shown)
    return ReportFigure(
        id=name,
        title=title,
        chart=_over_time_chart(drawn, shown, finding, over),
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


def _over_time_chart(
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
