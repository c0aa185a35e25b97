"""Charts of audits, frontiers and training histories: one function per kind that sections name.

Every chart is made from records and a table of the fields to show, with their headings and formats.
The table defines the tooltips, and the data below the chart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import altair as alt
import numpy as np
import pandas as pd

from fairgrad.audit import words
from fairgrad.audit.sections import MANY_GROUPS, compared_values
from fairgrad.audit.words import percent
from fairgrad.groups import numbered
from fairgrad.report import figure as fig
from fairgrad.report.figure import ReportFigure, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairgrad.audit import Audit, Finding, Monitor

Records: TypeAlias = "list[dict[Any, Any]]"
Table: TypeAlias = "Mapping[str, tuple[str, Callable[[Any], str]]]"
"""Fields of records, each with its heading and how its values are shown."""

MOST_GROUPS, MOST_LABELS, MOST_LEVELS, MOST_EPOCHS = 40, 10, 60, 60
MOST_LINES, MOST_LEVEL_LINES, MOST_SCORED_LABELS = 6, 8, 4
"""More lines in one chart cannot be told apart: the largest groups are drawn."""
MOST_TOLD = 12
"""Records that the words for a chart name."""
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
DOT: Any = {"filled": True, "opacity": 1}
"""How a mark of a record looks."""
X, Y = partial(alt.X, type="quantitative"), partial(alt.Y, type="quantitative")
"""Axes of numbers."""
NOT_DRAWN = frozenset({"attribute", "measure", "trials", "quantity", "beyond"})
"""Columns of frames that are the same in all records of a chart, or not part of it."""
MONITORED = {
    "demographic_parity": "Gaps in how often {label} is predicted",
    "equalized_odds": "Gaps in how often each label is predicted where it is true",
    "equality_of_opportunity": "Gaps in how often {label} is predicted where it is true",
    "accuracy_parity": "Gaps in how often predictions are right",
    "four_fifths_rule": "How often {label} is predicted, minus 0.8 of another group's rate",
}
"""What the gaps of a measure are between."""
WITHOUT = "without the fairness constraint"
BOUNDS: Table = {"low": ("from", percent), "high": ("to", percent)}
LEVELS: Table = {"level": ("F", number), "low": ("from", number), "high": ("to", number)}


def three_digits(value: float) -> str:
    """A threshold or score for people."""
    return "above all" if np.isinf(value) else number(value, 3)


def _told(records: Records, table: Table) -> alt.Chart:
    """A chart of the records, with the fields of the table as tooltips."""
    rows = []
    for row in records:
        texts = {f"{field} text": show(row[field]) for field, (_, show) in table.items()}
        rows.append({key: row[key] for key in row if key not in NOT_DRAWN} | texts)
    tips = [alt.Tooltip(f"{field} text:N", title=head) for field, (head, _) in table.items()]
    chart = alt.Chart(fig.data(rows))
    return chart.encode(tooltip=tips) if tips else chart


def _figure(
    key: str, title: str, chart: fig.AnyChart, records: Records, table: Table, alt_text: str,
    height: int, **more: Any,
) -> ReportFigure:  # fmt: skip
    """A chart with its words and the data of these records."""
    return ReportFigure(
        id=key,
        title=title,
        chart=chart.properties(width="container", height=height),
        alternative=alt_text,
        columns=[heading for heading, _ in table.values()],
        rows=[[show(row[field]) for field, (_, show) in table.items()] for row in records],
        **more,
    )


def _in_words(records: Records, name: str, value: str, show: Callable[[Any], str]) -> str:
    """The first records in words: a name, its value, and the ends of its interval."""
    return "; ".join(
        f"{row[name]} {show(row[value])} ({show(row['low'])} to {show(row['high'])})"
        for row in records[:MOST_TOLD]
    )


def _interval_chart(
    base: alt.Chart,
    x: Callable[..., alt.X],
    value: str,
    *,
    at: float,
    band: tuple[float, float] | None = None,
    bars: Any = None,
) -> fig.AnyChart:
    """A dot per record, or a bar of these colours, with its interval, a dashed line and a band."""
    ends = {"x": x("low"), "x2": "high:Q"}
    if bars is None:
        layers = [base.mark_rule(strokeWidth=2), base.mark_point(size=70, **DOT).encode(x=x(value))]
        layers[0] = layers[0].encode(**ends)
    else:
        bar = base.mark_bar(opacity=0.85, height={"band": 0.85}).encode(x=x(value), color=bars)
        layers = [bar, base.mark_rule(strokeWidth=2, color=fig.var("ink")).encode(**ends)]
    if band is not None:
        layers.insert(0, _band(band).encode(x=x("from"), x2="to:Q"))
    if not np.isnan(at):
        layers.append(fig.dashed({"at": at}).encode(x=x("at")))
    return alt.layer(*layers)


def _band(ends: tuple[float, float]) -> alt.Chart:
    """What is tolerated, shaded."""
    chart = alt.Chart(fig.data([{"from": ends[0], "to": ends[1]}]))
    band: alt.Chart = chart.mark_rect(color=fig.var("band"), opacity=0.9)
    return band


def _line_chart(
    records: Records,
    table: Table,
    x: alt.X,
    y: Callable[..., alt.Y],
    value: str,
    series: str,
    names: Sequence[str],
    *,
    dots: bool = True,
    band: bool = False,
) -> list[Any]:
    """A line per series, told apart by colour and dash, with its dots and intervals."""
    base = _told(records, table if dots else {}).encode(x=x)
    dash, shape = fig.series(alt.StrokeDash, series, names), fig.series(alt.Shape, series, names)
    layers: list[Any] = []
    if band:
        area = fig.told_apart(base.mark_area(fillOpacity=0.15), series, names)
        layers.append(area.encode(y=y("low"), y2="high:Q"))
    line = fig.told_apart(base.mark_line(strokeWidth=2, clip=True), series, names, strokeDash=dash)
    layers.append(line.encode(y=y(value)))
    if dots:
        marks = fig.told_apart(base.mark_point(size=40, **DOT), series, names, shape=shape)
        layers.append(marks.encode(y=y(value)))
    return layers


def compared_figure(audit: Audit) -> ReportFigure:
    """The rates that a verdict rests on: a bar per group before and now, and the tolerated band."""
    values = compared_values(audit)
    assert values is not None  # noqa: S101 - sections ask for this chart only if there are rates
    before = WITHOUT if audit.baseline_name == words.PLAIN else audit.baseline_name
    called = {"before": before, "now": "this model"}
    order = list(dict.fromkeys(row["group"] for row in values["rates"]))[:MOST_GROUPS]
    records = [
        {**row, "when": called[row["when"]]} for row in values["rates"] if row["group"] in order
    ]
    times = list(dict.fromkeys(row["when"] for row in records))
    table: Table = {
        "group": ("group", str), "when": ("predictions", str), "rate": ("rate", percent), **BOUNDS,
    }  # fmt: skip
    base = _told(records, table).encode(y=fig.groups_axis(order))
    colour: Any = alt.value(fig.var("accent"))
    if len(times) > 1:
        base = base.encode(yOffset=alt.YOffset("when:N", sort=times))
        colours = [fig.var("before"), fig.var("accent")]
        colour = fig.series(alt.Color, "when", times, range=colours)
    x = partial(X, title=None, axis=PERCENT, scale=alt.Scale(zero=True, nice=True))
    band, at = (values["fair_low"], values["fair_high"]), values["reference"]
    chart = _interval_chart(base, x, "rate", at=at, band=band, bars=colour)
    each = (f"{row['group']}, {row['when']}: {percent(row['rate'])}" for row in records[:MOST_TOLD])
    fair, title = f"{percent(band[0])} to {percent(band[1])}", values["title"]
    dashed = "" if np.isnan(at) else f" Dashed: {values['compared_with']}."
    return _figure(
        "compared", title, chart, records, table, f"{title}: {'; '.join(each)}. Fair: {fair}.",
        fig.groups_height(order, line=30 * len(times), least=70),
        note=f"Shaded: judged fair ({fair}).{dashed} Lines: {100 * audit.confidence:.4g} % "
        "intervals.",
    )  # fmt: skip


def rate_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """One chart per rate: a dot per group with its interval, and a line at the overall rate."""
    frame, counted = audit.to_frame("rates"), audit.views[view]
    frame = frame[frame["attribute"] == view]
    names = _names(audit, view)
    largest = {counted.groups.names[index] for index in counted.largest(MOST_GROUPS)}
    table: Table = {"group": (view, str), "value": ("rate", percent), **BOUNDS}
    x = partial(X, title=None, axis=PERCENT, scale=alt.Scale(zero=False, padding=8))
    figures = []
    for rate, form in RATES.items():
        of_rate = frame[frame["rate"] == rate]
        for label in list(dict.fromkeys(of_rate["label"]))[:MOST_LABELS]:
            of_label = of_rate if label is None else of_rate[of_rate["label"] == label]
            records = of_label.to_dict(orient="records")
            drawn = [
                {**row, "group": names[row["group"]]} for row in records if row["group"] in largest
            ]
            if len(drawn) > MANY_GROUPS:
                drawn.sort(key=lambda row: float(np.nan_to_num(row["value"])))
            order = [row["group"] for row in drawn]
            base = _told(drawn, table).encode(
                y=fig.groups_axis(order), color=alt.value(fig.var("accent"))
            )
            overall = records[-1]["value"]
            place = 0 if label is None else audit.labels.index(label)
            title = form.format(label=label, target=audit.target)
            told = _in_words(drawn, "group", "value", percent)
            figures.append(_figure(
                f"rate-{list(audit.views).index(view)}-{rate}-{place}",
                title,
                _interval_chart(base, x, "value", at=overall),
                [{**row, "group": names.get(row["group"], row["group"])} for row in records],
                table,
                f"{title} by {view}: {told}. Overall {percent(overall)}.",
                fig.groups_height(order, line=24 if len(order) <= 20 else 16),
                by=view,
            ))  # fmt: skip
    return figures


def _names(audit: Audit, view: str) -> dict[str, str]:
    """Short names of the groups of a way of grouping, each different."""
    groups = audit.views[view].groups
    return dict(zip(groups.names, numbered(words.people_names(groups)), strict=True))


def level_figure(audit: Audit, position: int) -> ReportFigure:
    """A dot per level with its interval; a band where levels are tolerated."""
    finding = audit.findings[position]
    records = _levels(finding)
    largest = sorted(records, key=lambda row: -abs(row["level"]))[:MOST_LEVELS]
    shown = [row for row in records if row in largest]
    many = len({row["group"] for row in shown}) > MANY_GROUPS
    by_level = sorted(shown, key=lambda row: (row["label"], row["level"])) if many else shown
    order = list(dict.fromkeys(row["group"] for row in by_level))
    labels = list(dict.fromkeys(row["label"] for row in shown))
    table: Table = {"name": ("level of", str), **LEVELS}
    base = fig.told_apart(
        _told(shown, table).encode(y=fig.groups_axis(order)), "label", labels,
        yOffset=alt.YOffset("label:N", sort=labels), shape=fig.series(alt.Shape, "label", labels),
    )  # fmt: skip
    x = partial(X, title="← worse off · F · better off →")
    # Other verdicts than those of levels do not look at the levels themselves.
    limit = finding.tolerance.value
    band = (-limit, limit) if finding.tolerance.kind == "level" else None
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    line = (14 if many else 24) * max(len(labels), 1)
    some = f"The {len(shown)} largest |F| of {len(records)}; all are in the table."
    return _figure(
        f"level-{position}", title, _interval_chart(base, x, "level", at=0.0, band=band), records,
        table, f"Levels of {title}: {_in_words(records, 'name', 'level', number)}.",
        fig.groups_height(order, line=line, least=60),
        note=some if len(shown) < len(records) else "",
    )  # fmt: skip


def _levels(finding: Finding) -> Records:
    """The levels that are defined and asked for."""
    comparison, (low, high) = finding.comparison, finding.level_intervals
    groups = finding.table.groups
    names, level_names = numbered(words.people_names(groups)), words.level_names(finding)
    asked = getattr(comparison.map, "applies", None)
    records = []
    for j, level in enumerate(finding.levels):
        if np.isnan(level) or (asked is not None and not asked[j]):
            continue
        name, group, label = level_names[j], comparison.group[j], comparison.label[j]
        row = {"name": name, "group": names[group] if group >= 0 else name}
        row["label"] = f"{groups.label_name} {groups.labels[label]}" if label >= 0 else ""
        records.append({**row, "level": float(level), "low": float(low[j]), "high": float(high[j])})
    return records


def score_figures(audit: Audit, view: str) -> list[ReportFigure]:
    """ROC curves and calibration of the scores of the largest groups."""
    figures, names, counted = [], _names(audit, view), audit.views[view]
    lines = [names[counted.groups.names[g]] for g in counted.largest(MOST_LINES)]
    some = f"The {len(lines)} largest of {len(names)} groups." if len(names) > len(lines) else ""
    for index in audit.shown_labels[:MOST_SCORED_LABELS]:
        label, tables = audit.label_values[index], {}
        for kind in ("scores", "roc", "calibration"):
            frame = audit.to_frame(kind)
            rows = frame[(frame["attribute"] == view) & (frame["label"] == label)]
            tables[kind] = [
                {**row, "group": names.get(row["group"], row["group"])}
                for row in rows.to_dict(orient="records")
            ]
        drawn = {k: [row for row in tables[k] if row["group"] in lines] for k in tables}
        key = f"{list(audit.views).index(view)}-{index}"
        of = f" of {label}" if len(audit.shown_labels) > 1 else ""
        areas = "; ".join(f"{row['group']} {number(row['auc'], 3)}" for row in drawn["scores"])
        text = f"ROC curves{of} by {view}; areas under them: {areas}."
        fields = "false_positive_rate", "true_positive_rate"
        table: Table = {
            "group": (view, str), "threshold": ("threshold", three_digits),
            **{field: (field.replace("_", " "), percent) for field in fields},
        }  # fmt: skip
        curves = [{name: row[name] for name in ("group", *fields)} for row in drawn["roc"]]
        x, y = X(fields[0], title=table[fields[0]][0], axis=SHARE), partial(Y, axis=SHARE)
        y = partial(y, title=table[fields[1]][0])
        layers = _line_chart(curves, {}, x, y, fields[1], "group", lines, dots=False)
        ideal = fig.dashed(*(dict.fromkeys(fields, end) for end in (0, 1)))
        chart = alt.layer(ideal.encode(x=x, y=y(fields[1])), *layers)
        more: dict[str, Any] = {"note": some, "by": view}
        figures.append(_figure(
            f"roc-{key}", f"ROC curves{of}", chart, drawn["roc"], table, text, 260, **more
        ))  # fmt: skip
        if tables["calibration"]:  # the scores are probabilities
            text = "; ".join(
                f"{row['group']} {number(row['calibration_gap'], 3)}" for row in drawn["scores"]
            )
            table = {
                "group": (view, str),
                "from": ("scores from", three_digits), "to": ("to", three_digits),
                "rows": ("rows", "{:,}".format), "mean_score": ("mean score", three_digits),
                "rate": ("true", percent), **BOUNDS,
            }  # fmt: skip
            x = X("mean_score", title="mean score", scale=alt.Scale(domain=[0, 1]))
            y = partial(Y, title="how often it is true", axis=SHARE)
            shown = drawn["calibration"]
            layers = _line_chart(shown, table, x, y, "rate", "group", lines, band=True)
            ideal = fig.dashed(*({"mean_score": end, "rate": end} for end in (0, 1)))
            more["note"] = (
                f"On the dashed line scores are as high as the true rates. {some}".strip()
            )
            layers.insert(0, ideal.encode(x=x, y=y("rate")))
            figures.append(_figure(
                f"calibration-{key}", f"Calibration{of}", alt.layer(*layers),
                tables["calibration"], table,
                f"Calibration{of} by {view}: true rates against mean scores in ten bins. "
                f"Gaps: {text}.", 260, **more,
            ))  # fmt: skip
    return figures


def monitor_figures(monitor: Monitor) -> list[ReportFigure]:
    """One chart per measure and way of grouping: the limits of each gap after every batch."""
    audit, levels = monitor.current_audit(), monitor.to_frame()
    dates = pd.to_datetime(levels["batch"], format="ISO8601", errors="coerce")
    x = alt.X("batch:O", title=None, sort=None)
    if dates.notna().all():
        x = alt.X("batch:T", title=None, scale=alt.Scale(type="utc"))
    table: Table = {
        "batch": ("batch", str), "name": ("group", str), **LEVELS, "level": ("gap", number),
    }  # fmt: skip
    y = partial(Y, title="average gap since the start")
    turns: Records = monitor.turns.iloc[1:].to_dict(orient="records")
    turned = alt.Chart(fig.data(turns)).mark_rule(color=fig.var("ink"), strokeDash=[2, 2])
    told = [f"{words.short(row['verdict'])[2:]} since {row['batch']}" for row in turns]
    note = f"Vertical lines: the verdict changed ({', '.join(told)})." if turns else ""
    figures = []
    for position, finding in enumerate(audit.findings):
        names = words.told_levels(finding)
        is_shown = (levels["measure"] == finding.measure) & levels["name"].isin(list(names))
        of_finding = levels[is_shown & (levels["attribute"] == finding.attribute)]
        of_finding = of_finding.assign(name=of_finding["name"].map(names))
        records = of_finding.to_dict(orient="records")
        largest = of_finding["level"].abs().groupby(of_finding["name"]).max()
        shown = largest.nlargest(MOST_LEVEL_LINES).index.tolist()
        drawn = [row for row in records if row["name"] in shown]
        layers = _line_chart(drawn, table, x, y, "level", "name", shown, band=True)
        layers = [fig.dashed({"at": 0.0}).encode(y="at:Q"), *layers, turned.encode(x=x)]
        shaded = ""
        if finding.tolerance.kind == "level":  # ratios do not look at the levels themselves
            limit = finding.tolerance.value
            layers.insert(0, _band((-limit, limit)).encode(y=y("from"), y2="to:Q"))
            shaded = f"Shaded: gaps of up to {words.points(limit)} points are tolerated. "
        is_of_one = len(audit.labels) == 2 or finding.measure == "equality_of_opportunity"
        label = words.conjoined([*map(str, audit.desirable)]) if is_of_one else "each label"
        how = MONITORED.get(finding.measure, words.title(finding.measure)).format(label=label)
        title, last = f"{how}, by {finding.attribute}", levels["batch"].iloc[-1]
        ends = _in_words([row for row in records if row["batch"] == last], "name", "level", number)
        figures.append(_figure(
            f"monitor-{position}", title, alt.layer(*layers), records, table,
            f"{title}: gaps after each batch; after {last}: {ends}. {note}",
            240, note=f"{shaded}{note}".strip(),
        ))  # fmt: skip
    return figures


FRONTIER, POINT_RATES = "frontier", "frontier-rates"
"""Names of two charts: clicking a point of the first shows its rates in the second."""


def epsilon_text(value: float) -> str:
    """What a model was trained for, in words."""
    return "no constraint" if np.isinf(value) else f"a gap of at most {value:.4g}"


@dataclass(frozen=True, eq=False)
class FrontierData:
    """Models along the trade-off between accuracy and fairness; `Frontier.report_data` makes it.

    Attributes:
        points: one row per model with the columns epsilon, accuracy, unfairness; optional are
            `accuracy_low`, `accuracy_high`, `unfairness_low`, `unfairness_high` (intervals),
            `on_frontier` (bool: no other model is both fairer and more accurate) and `series` (a
            name, where several kinds of models are compared).
        rates: one row per model, group and rate with the columns point (the position of the model
            in `points`), group, rate and value; shown when a point is clicked.
        chosen: position of the model that was chosen, if any.
        measure: the fairness measure, if it is known.
        on: which rows the figures come from.
        note: what readers should know.

    Raises:
        ValueError: if there is no such model to choose.
    """

    points: pd.DataFrame
    rates: pd.DataFrame
    chosen: int | None = None
    measure: str = ""
    on: str = "validation rows"
    note: str = ""

    def __post_init__(self) -> None:
        last = len(self.points) - 1
        if self.chosen is not None and not 0 <= self.chosen <= last:
            raise ValueError(f"chosen: expected a position from 0 to {last}, got {self.chosen}.")

    @property
    def first(self) -> int:
        """Position of the model whose rates are shown at first."""
        return 0 if self.chosen is None else int(self.chosen)

    @property
    def names(self) -> list[str]:
        """Each point in words, for the list beside the chart."""
        return [
            f"{row['series']}{': ' if row['series'] else ''}"
            f"accuracy {percent(row['accuracy'])}, unfairness {number(row['unfairness'], 3)}, "
            f"trained for {epsilon_text(row['epsilon'])}{' (chosen)' if row['is_chosen'] else ''}"
            for row in self.records
        ]

    @property
    def records(self) -> Records:
        """The points with what the chart and its table need."""
        rows = self.points.to_dict(orient="records")
        known = {"series": "", "on_frontier": True}
        return [
            {**known, **row, "point": place, "is_chosen": place == self.chosen}
            for place, row in enumerate(rows)
        ]

    @property
    def sentence(self) -> str:
        """What the chosen model costs against the most accurate model."""
        rows, best = self.points, int(self.points["accuracy"].argmax())
        accuracy, unfairness = map(percent, rows["accuracy"]), rows["unfairness"]
        figures = [
            f"predicts {right} of the {self.on} correctly, with an unfairness of {number(gap, 3)}."
            for right, gap in zip(accuracy, unfairness, strict=True)
        ]
        most = f"The most accurate of the {len(figures)} models {figures[best]}"
        return most if self.chosen is None else f"{most} The chosen model {figures[self.chosen]}"


def as_frontier(source: Any, chosen: int | None = None) -> FrontierData:
    """What `Report` takes as a frontier, with the position of the model that was chosen."""
    if isinstance(source, FrontierData):
        return source if chosen is None else replace(source, chosen=chosen)
    if not hasattr(source, "report_data"):
        raise TypeError(f"frontier: expected a fitted Frontier, got {type(source).__name__}.")
    on = "test" if "test" in getattr(source, "audits_", ()) else "validation"
    data: FrontierData = source.report_data(on, chosen)
    return data


def frontier_figures(frontier: Any) -> list[ReportFigure]:
    """The frontier, and the rates of the point last clicked.

    See `fairgrad.frontier.Frontier` for an example.

    Args:
        frontier: a fitted `Frontier`.
    """
    data = as_frontier(frontier)
    return [_frontier(data), _rates(data)]


def _frontier(frontier: FrontierData) -> ReportFigure:
    records = [{**row, "remark": _remark(row)} for row in frontier.records]
    methods = list(dict.fromkeys(row["series"] for row in records))
    table: Table = {
        "epsilon": ("trained for", epsilon_text), "accuracy": ("accuracy", percent),
        "unfairness": ("unfairness", number),
        **({"series": ("method", str)} if len(methods) > 1 else {}),
    }  # fmt: skip
    unfairness = f"unfairness, {frontier.measure}" if frontier.measure else "unfairness"
    base = fig.told_apart(
        _told(records, table).encode(
            x=alt.X("unfairness:Q", title=unfairness),
            y=alt.Y("accuracy:Q", title="accuracy", axis=alt.Axis(format=".1%")).scale(zero=False),
        ), "series", methods,
    )  # fmt: skip
    layers: list[Any] = []
    rule = base.mark_rule(strokeOpacity=0.4)  # intervals, where they are known
    if "accuracy_low" in records[0]:
        ends = alt.Y("accuracy_low:Q", title="accuracy")
        layers.append(rule.encode(y=ends, y2="accuracy_high:Q"))
    if "unfairness_low" in records[0]:
        layers.append(rule.encode(x=alt.X("unfairness_low:Q"), x2="unfairness_high:Q"))
    dots = base.mark_point(**DOT, cursor="pointer").encode(
        size=alt.when("datum.point === shown").then(alt.value(190)).otherwise(alt.value(80))
    )
    dots = fig.told_apart(dots, "series", methods, shape=fig.series(alt.Shape, "series", methods))
    chosen = base.transform_filter("datum.is_chosen").encode(color=alt.value(fig.var("ink")))
    values = frontier.points["unfairness"]
    is_right = values.iloc[frontier.first] > (values.min() + values.max()) / 2
    side: Any = {"align": "right" if is_right else "left", "dx": -16 if is_right else 16, "dy": -10}
    layers += [
        base.transform_filter("datum.on_frontier").mark_line(strokeWidth=1.5, opacity=0.7),
        dots,
        chosen.mark_point(size=330, strokeWidth=2, filled=False, opacity=1),
        chosen.mark_text(text="chosen", fontWeight="bold", **side),
    ]
    chart = alt.layer(*layers).add_params(alt.param(name="shown", value=frontier.first))
    table = {**table, "remark": ("remark", str)}
    title = "Accuracy against unfairness"
    alt_text = f"{title}. {frontier.sentence}"
    return _figure(FRONTIER, title, chart, records, table, alt_text, 300, note=frontier.note)


def _remark(row: dict[Any, Any]) -> str:
    remarks = ["chosen"] if row["is_chosen"] else []
    remarks += [] if row["on_frontier"] else ["another model is fairer and more accurate"]
    return "; ".join(remarks)


def _rates(frontier: FrontierData) -> ReportFigure:
    records: Records = [
        {**row, "rate": row["rate"].replace("_", " "), "model": frontier.names[row["point"]]}
        for row in frontier.rates.to_dict(orient="records")
    ]
    groups, kinds = (list(dict.fromkeys(row[key] for row in records)) for key in ("group", "rate"))
    table: Table = {"group": ("group", str), "rate": ("rate", str), "value": ("value", percent)}
    base = _told(records, table).transform_filter("datum.point === shown")
    chart = base.mark_point(size=80, **DOT).encode(
        x=X("value", title=None, axis=SHARE, scale=alt.Scale(domain=[0, 1])),
        y=fig.groups_axis(groups),
        color=fig.series(alt.Color, "rate", kinds),
        shape=fig.series(alt.Shape, "rate", kinds),
    )
    return _figure(
        POINT_RATES,
        "Rates of each group, model shown",
        chart.add_params(alt.param(name="shown", value=frontier.first)),
        records,
        {"model": ("model", str), **table},
        "Rates per group of one model of the frontier; the table holds all of them.",
        fig.groups_height(groups, line=30, least=90),
    )


HISTORY = {
    "level": (
        "Levels of fairness",
        "F on the validation rows, or on the training rows if there are none; 0 is fair.",
    ),
    "multiplier": (
        "Multipliers",
        "How strongly each constraint acts; the sign shows in which direction.",
    ),
}


def as_history(source: Any) -> pd.DataFrame | None:
    """Levels and multipliers of a model's epochs in long form; None if it has no history."""
    model = source.steps[-1][1] if hasattr(source, "steps") else source
    if not hasattr(model, "fit"):
        raise TypeError(f"history: expected a fitted model, got {type(source).__name__}.")
    if not hasattr(model, "classes_"):
        raise ValueError(f"history: this {type(model).__name__} is not fitted yet.")
    if getattr(model, "groups_", None) is None or not hasattr(model, "history_"):
        return None
    n, names = len(model.history_["accuracy"]), np.asarray(model.constraint_names_, dtype=object)
    epochs = np.unique(np.linspace(0, n - 1, min(n, MOST_EPOCHS)).round().astype(int))
    frames = [
        pd.DataFrame({
            "epoch": np.repeat(epochs + 1, len(names)),
            "quantity": quantity,
            "name": np.tile(names, len(epochs)),
            "value": model.history_[f"{quantity}s"][epochs].ravel(),
        })
        for quantity in HISTORY
    ]  # fmt: skip
    return pd.concat(frames, ignore_index=True).dropna(subset="value")


def history_figures(history: Any) -> list[ReportFigure]:
    """The levels and the multipliers of every epoch, a chart each.

    Args:
        history: a fitted model; of one that keeps no history there are no charts.

    Example:
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> X, y, s = [[0.0], [1.0]] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20
        >>> model = FairGradClassifier(max_iter=2).fit(X, y, sensitive_features=s)
        >>> [figure.title for figure in history_figures(model)]
        ['Levels of fairness', 'Multipliers']
    """
    frame, figures = as_history(history), []
    x = X("epoch", title="epoch", axis=alt.Axis(format="d", tickMinStep=1))
    table: Table = {"epoch": ("epoch", str), "name": ("of", str), "value": ("value", number)}
    if frame is None:
        return []
    for kind, (title, note) in HISTORY.items():
        records = frame[frame["quantity"] == kind].to_dict(orient="records")
        if not records:
            continue
        names = list(dict.fromkeys(row["name"] for row in records))
        layers = _line_chart(records, table, x, partial(Y, title=None), "value", "name", names)
        chart = alt.layer(fig.dashed({"at": 0.0}).encode(y="at:Q"), *layers)
        last = max(row["epoch"] for row in records)
        at_end = [f"{r['name']} {number(r['value'])}" for r in records if r["epoch"] == last]
        alt_text = f"{title} over {int(last)} epochs; at the end: {'; '.join(at_end)}."
        figures.append(
            _figure(f"history-{kind}", title, chart, records, table, alt_text, 220, note=note)
        )
    return figures
