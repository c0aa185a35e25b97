"""What an audit says, as a list of sections: plain data that terminal, page, card and JSON render.

A section has a title, sentences and blocks. A block is a table, and may name the kind of chart that
a page draws of it. Nothing here depends on how it is shown.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.audit import headline, scores, subgroups, thresholds, words
from fairgrad.audit.headline import percent
from fairgrad.audit.intervals import impact_ratios
from fairgrad.audit.words import OVERALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Finding

MANY_GROUPS, MOST_LABELS, MOST_MISTAKES, MOST_CELLS = 12, 12, 10, 4_000
SUMMARY, VERDICTS, GROUPS, CHANGES, DETAILS, METHOD = (
    "summary",
    "verdicts",
    "groups",
    "changes",
    "details",
    "method",
)
OTHERS = "Also measured, not part of the verdict"
RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "true\npositive\nrate",
    "false_positive_rate": "false\npositive\nrate",
    "accuracy": "accuracy",
}
"""Rates of the tables and their headings."""
LIMITS = (
    "Equal rates between groups do not make each single decision right or just.",
    "The figures hold for data like these, at the threshold these predictions were made with.",
    "Groups that were not recorded, or were merged, may still be treated unequally.",
    "Measures contradict each other where base rates differ: which one matters is a choice.",
)


class Block(NamedTuple):
    """A table of a section, with what a page draws of it.

    Attributes:
        title: above it; may be empty.
        columns: headings; a line break marks where a narrow heading wraps.
        rows: cells, as text.
        sentences: below it.
        texts: how many of the first columns are texts; the others are figures.
        last: how many of the rows stand apart at the end, such as the row of everyone.
        chart: the kind of chart that a page draws; empty for none.
        about: what the chart is about: a way of grouping, or the position of a finding.
        is_brief: whether it is also shown where there is little room: on the terminal and the card.
        is_warning: whether its sentences are warnings.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = ()
    texts: int = 1
    last: int = 0
    chart: str = ""
    about: str | int = ""
    is_brief: bool = False
    is_warning: bool = False


class Section(NamedTuple):
    """A part of what an audit says.

    Attributes:
        key: names it for programs and links.
        title: for people.
        sentences: below the title.
        blocks: tables and charts.
    """

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


def sections(audit: Audit) -> tuple[Section, ...]:
    """Everything an audit says, in the order in which readers need it."""
    found = [_summary(audit), _groups(audit)]
    if audit.baseline is not None:
        found.append(changes(audit))
    found.append(_verdicts(audit))
    details = _details(audit)
    found += [details] if details.blocks else []
    return (*found, _method(audit))


def _summary(audit: Audit) -> Section:
    finding = headline.worst_finding(audit)
    blocks = []
    if headline.compared(finding) is not None:
        blocks.append(_compared(audit, finding))
    if audit.baseline is not None:
        said = [*headline.gains(audit), headline.price(audit)]
        gained = tuple(sentence for sentence in said if sentence)
        blocks.append(Block("Who gained, who lost, at what price", sentences=gained, is_brief=True))
    return Section(SUMMARY, "Is it fair?", headline.conclusion(audit), tuple(blocks))


def _compared(audit: Audit, finding: Finding) -> Block:
    """The rates that the conclusion is about, before and now."""
    place = audit.findings.index(finding)
    rates = headline.compared(finding)
    assert rates is not None  # noqa: S101 - the caller looked
    low, high = rates.rate.exact_interval(audit.alpha)
    rows = [
        [name, percent(value), f"{percent(a)} to {percent(b)}"]
        for name, value, a, b in zip(rates.groups, rates.rate.value, low, high, strict=True)
    ]
    columns = ["group", "rate", "interval"]
    before = headline.before_and_now(audit, finding, rates).get("before")
    if before is not None:
        was = before.value
        rows = [[row[0], percent(old), *row[1:]] for row, old in zip(rows, was, strict=True)]
        columns = ["group", "before", "now", "interval"]
    among = f" among people {rates.among}" if rates.among else ""
    title = f"{headline.capitalized(rates.predicate)}{among}, by {finding.attribute}"
    return Block(title, tuple(columns), _frozen(rows), chart="compared", about=place)


def _verdicts(audit: Audit) -> Section:
    """The verdict on each measure, the warnings, and the levels behind it."""
    blocks = [verdict_block("Verdict", audit, audit.asked)]
    if audit.others:
        blocks.append(verdict_block(OTHERS, audit, audit.others))
    said = [
        f"{words.heading(finding)}: {advice}"
        for finding in audit.asked
        if (advice := words.advice(finding))
    ]
    if said:
        blocks.append(Block("What would settle it", sentences=tuple(said), is_brief=True))
    warnings = tuple(notice.message for notice in audit.warnings)
    if warnings:
        blocks.append(Block("Warnings", sentences=warnings, is_brief=True, is_warning=True))
    for place, finding in enumerate(audit.findings):
        blocks.append(_levels(finding, place))
    return Section(VERDICTS, "Verdict by measure", (), tuple(blocks))


def verdict_block(title: str, audit: Audit, findings: Iterable[Finding]) -> Block:
    """What each verdict rests on, and what it was for the baseline."""
    before = {} if audit.baseline is None else _by_key(audit.baseline.findings)
    attributes = list(dict.fromkeys(finding.attribute for finding in audit.findings))
    several, rows = len(attributes) > 1, []
    for finding in findings:
        value, low, high, verdict = finding.judgement
        figures = [number(value), f"{low:.3f}-{high:.3f}", words.limit(finding)]
        by = [finding.attribute] if several else []
        row = [words.title(finding.measure), *by, *figures, short(verdict)]
        if before:
            was = before[finding.measure, finding.attribute].judgement
            row += [f"{number(was.value)} {words.SIGNS[was.verdict]}"]
        rows.append(row)
    columns = ["measure", *["groups by"] * several, words.judged(findings), "interval", "fair if"]
    columns += ["verdict", *["before"] * bool(before)]
    title = title if several else f"{title}, groups by {attributes[0]}"
    return Block(title, tuple(columns), _frozen(rows), texts=1 + several, is_brief=True)


def _by_key(findings: Iterable[Finding]) -> dict[tuple[str, str], Finding]:
    return {(finding.measure, finding.attribute): finding for finding in findings}


def short(verdict: str) -> str:
    """A verdict in one word after its sign."""
    return f"{words.SIGNS[verdict]} {verdict.split(maxsplit=1)[0]}"


def number(value: float, digits: int = 3) -> str:
    """A level or ratio for people."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _levels(finding: Finding, place: int) -> Block:
    """Every level of a measure with its interval."""
    comparison, (low, high) = finding.comparison, finding.level_intervals
    rows = [
        [name, f"{level:.4f}", f"{a:.4f}", f"{b:.4f}"]
        for name, level, a, b in zip(comparison.names, finding.levels, low, high, strict=True)
        if not math.isnan(level)
    ]
    (best, best_level), (worst, worst_level) = finding.best, finding.worst
    said = [words.convention(finding.measure)]
    if best:
        said.append(
            f"Best off: {words.in_sentence(best)} ({best_level:+.3f}). Worst off: "
            f"{words.in_sentence(worst)} ({worst_level:+.3f}). The mean of |F| is "
            f"{finding.unfairness:.4f}."
        )
    if finding.n_undefined:
        said.append(f"{words.n_of(finding.n_undefined, 'level')} not defined: no rows.")
    columns = ("level of", "F", "from", "to")
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    return Block(title, columns, _frozen(rows), tuple(said), chart="levels", about=place)


def _groups(audit: Audit) -> Section:
    """The rates of every group, their ratios and differences, and their mistakes."""
    blocks = [rate_block(audit, view) for view in audit.views]
    if audit.impact_table is not None:
        blocks += audit.impact_table.blocks()
    blocks.append(_named_figures(audit))
    if audit.has_labels:
        blocks += [_confusion(audit, view) for view in audit.views]
    return Section(GROUPS, "Rates of every group", (), tuple(blocks))


def rate_block(audit: Audit, view: str) -> Block:
    """The rates of every group in percent, with the baseline's if there is one."""
    table, judged = audit.views[view], audit.judged(view)
    columns = _rate_columns(audit)
    cells = [_rate_cells(audit, view, rate, label) for rate, label, _ in columns]
    heads = ["group", "people", *(title for _, _, title in columns)]
    desirable = audit.desirable_indices
    if len(desirable) == 1:
        selected = table.rates["selection_rate"].row(desirable[0])
        ratios = [number(ratio, 2) for ratio in impact_ratios(selected.value, judged)]
        place = next((i for i, c in enumerate(columns) if c[0] == "selection_rate"), None)
        if place is not None:
            heads.insert(3 + place, "impact\nratio")
            cells.insert(1 + place, [*ratios, ""])
    names = words.short_names(table.groups)
    rows = [
        [
            f"{names[g]}{'' if judged[g] else ' *'}",
            f"{int(table.size[g]):,}",
            *(c[g] for c in cells),
        ]
        for g in _ordered(table.size)
    ]
    rows.append([OVERALL, f"{table.n_rows:,}", *(c[-1] for c in cells)])
    said = []
    if not judged.all():
        least = words.n_of(audit.least_rows(view), "row")
        said.append(f"* not judged: fewer than {least}.")
    if len(audit.labels) > MOST_LABELS:
        said.append(f"... {words.n_of(len(audit.labels) - MOST_LABELS, 'more label')}.")
    labels = [str(audit.labels[index]) for index in audit.shown_labels]
    of = f"; selected means {audit.target} {labels[0]}" if len(labels) == 1 else ""
    shown = "before → now" if audit.baseline is not None else "with half of the interval"
    title = f"Rates by {view}, in %, {shown}{of}"
    sentences = tuple(said)
    return Block(
        title, tuple(heads), _frozen(rows), sentences, last=1, chart="rates", about=view,
        is_brief=True,
    )  # fmt: skip


def _rate_columns(audit: Audit) -> list[tuple[str, int, str]]:
    """Of two labels the rates of the desirable one; of more the accuracy and the recalls."""
    if len(audit.labels) == 2:
        wanted = [(rate, audit.shown_labels[0], title) for rate, title in RATES.items()]
    else:
        name = "true_positive_rate" if audit.has_labels else "selection_rate"
        word = "recall" if audit.has_labels else "selected"
        wanted = [("accuracy", -1, "accuracy")]
        for index, label in enumerate(audit.labels[:MOST_LABELS]):
            wanted.append((name, index, f"{word}\n{label}"))
    return [column for column in wanted if column[0] in audit.table.rates]


def _rate_cells(audit: Audit, view: str, rate: str, label: int) -> list[str]:
    """A rate of every group, and of everyone, as text."""
    label = -1 if rate == "accuracy" else label
    table = audit.views[view]
    now = [part.rates[rate].row(label) for part in (table, table.together())]
    if audit.baseline is None:
        found = []
        for own in now:
            low, high = own.exact_interval(audit.alpha)
            half = np.maximum(high - own.value, own.value - low)
            found += [
                "-" if math.isnan(value) else f"{100 * value:.1f}±{100 * reach:.1f}"
                for value, reach in zip(own.value, half, strict=True)
            ]
        return found
    before = audit.baseline.views[view]
    was = [part.rates[rate].row(label).value for part in (before, before.together())]
    return [
        "-" if math.isnan(new) else f"{_short_percent(old)}→{_short_percent(new)}"
        for olds, own in zip(was, now, strict=True)
        for old, new in zip(olds, own.value, strict=True)
    ]


def _short_percent(share: float) -> str:
    """In %, with one digit but for 100, which has no room for it."""
    return "100" if share > 0.9995 else f"{100 * share:.1f}"


def _ordered(size: Any) -> list[int]:
    """The groups in the order of tables: as they are, or if there are many the largest first."""
    order = np.argsort(-size, kind="stable") if len(size) > MANY_GROUPS else np.arange(len(size))
    found: list[int] = order.tolist()
    return found


def _named_figures(audit: Audit) -> Block:
    """Differences and ratios by their usual names, one column per way of grouping."""
    several = len(audit.labels) > 2
    rows: dict[tuple[str, str], list[str]] = {}
    for gaps in audit.figures.values():
        for gap in gaps:
            label = f" ({audit.label_value(gap.label)})" if several and gap.label >= 0 else ""
            value, low, high, judged = (number(figure) for figure in gap[2:])
            of_judged = "" if judged == value else f"; groups judged: {judged}"
            cell = f"{value} ({low} to {high}){of_judged}"
            rows.setdefault((gap.name, label), []).append(cell)
    cells = [[f"{name}{label}", *c, words.FIGURES[name]] for (name, label), c in rows.items()]
    columns = ("figure", *(f"by {view}" for view in audit.views), "what it is")
    title = "Differences and ratios by their usual names"
    return Block(title, columns, _frozen(cells), (words.FIGURES_NOTE,))


def _confusion(audit: Audit, view: str) -> Block:
    """Rows of each group and true label, by predicted label, with their share of the line."""
    table, labels = audit.views[view], [str(label) for label in audit.labels]
    order = table.largest(max(MOST_CELLS // len(labels) ** 2, 1))
    names = words.short_names(table.groups)
    together = table.together()
    groups = [(names[g], table.rows[g], table.mass[g]) for g in order]
    groups.append((OVERALL, together.rows[0], together.mass[0]))
    rows = []
    for name, counts, mass in groups:
        total = mass.sum(axis=1, keepdims=True)
        share = mass / np.where(total > 0, total, np.nan)
        for true, label in enumerate(labels):
            cells = zip(counts[true], share[true], strict=True)
            rows.append([name, label, *(f"{int(n):,} ({percent(part)})" for n, part in cells)])
    left_out = len(table.size) - len(order)
    said = (f"The {left_out} smallest groups are left out here.",) if left_out else ()
    columns = ("group", f"true {audit.target}", *(f"predicted {label}" for label in labels))
    title = f"Confusion by {view}: rows, and their share of the true label"
    return Block(title, columns, _frozen(rows), said, texts=2, last=len(labels))


def changes(audit: Audit) -> Section:
    """How the rates differ from the baseline's, and who gets another prediction."""
    frame = audit.to_frame("changes")
    blocks = [_change_block(audit, frame[frame["attribute"] == v], v) for v in audit.views]
    blocks.append(_sides(audit))
    level = f"{100 * audit.confidence:.4g} % confidence"
    said = (
        "Changes are paired differences on the same rows, in points, with their intervals at "
        f"{level} each (MOVER of two exact intervals). A star marks changes that surely are not 0."
    )
    title = f"Compared with {audit.baseline_name}"
    return Section(CHANGES, title, (said,), tuple(blocks))


def _change_block(audit: Audit, frame: Any, view: str) -> Block:
    columns = _rate_columns(audit)
    cells = {
        (row["group"], row["rate"], row["label"]): _change(row)
        for row in frame.to_dict(orient="records")
    }
    table, names = audit.views[view], words.short_names(audit.views[view].groups)
    lines = [(names[g], table.groups.names[g], table.size[g]) for g in _ordered(table.size)]
    rows = []
    for shown, group, size in (*lines, (OVERALL, OVERALL, table.n_rows)):
        keys = [
            (group, rate, None if rate == "accuracy" else audit.label_value(label))
            for rate, label, _ in columns
        ]
        rows.append([shown, f"{int(size):,}", *(cells[key] for key in keys)])
    heads = ("group", "people", *(title for _, _, title in columns))
    return Block(f"Changes by {view}, in points", heads, _frozen(rows), last=1)


def _change(row: Mapping[Any, Any]) -> str:
    change, low, high = (row[name] for name in ("change", "low", "high"))
    if math.isnan(change):
        return "-"
    half = max(high - change, change - low)
    return f"{100 * change:+.1f}±{100 * half:.1f}{'*' if low > 0 or high < 0 else ' '}"


def _sides(audit: Audit) -> Block:
    """Who gets another prediction, the most people first."""
    rows = [
        [str(row["group"]), f"{row['from']} → {row['to']}", _side(row), f"{row['rows']:,}"]
        for row in audit.to_frame("sides").to_dict(orient="records")
    ] or [["nobody", "-", "-", "0"]]
    columns = ("group", "prediction", "which is", "people")
    return Block(f"Who gets another {audit.target}", columns, _frozen(rows), texts=3)


def _side(row: Mapping[Any, Any]) -> str:
    """Whether the new prediction of a row of the frame "sides" is right."""
    if row["true"] == "not known":
        return "not known"
    if row["to"] == row["true"]:
        return "right now"
    return "wrong now" if row["from"] == row["true"] else "still wrong"


def _details(audit: Audit) -> Section:
    """Scores, thresholds, subgroups and the most frequent mistakes, where there are some."""
    blocks: list[Block] = []
    if len(audit.labels) > 2 and audit.has_labels:
        blocks += [_mistakes(audit, view) for view in audit.views]
    if audit.scores:
        blocks += [_scores(audit, view) for view in audit.views]
    if audit.thresholds is not None:
        blocks.append(_thresholds(audit))
    if audit.subgroups is not None:
        blocks.append(_subgroups(audit.subgroups))
    return Section(DETAILS, "Scores, thresholds and subgroups", (), tuple(blocks))


def _mistakes(audit: Audit, view: str) -> Block:
    """The mistakes that groups have most often, by their share of the true label's rows."""
    frame = audit.to_frame("confusion")
    wrong = frame[(frame["attribute"] == view) & (frame["true"] != frame["predicted"])]
    table = audit.views[view]
    names = dict(zip(table.groups.names, words.short_names(table.groups), strict=True))
    judged = {n for n, ok in zip(table.groups.names, audit.judged(view), strict=True) if ok}
    wrong = wrong[(wrong["rows"] > 0) & wrong["group"].isin(judged)]
    largest = wrong.sort_values(["share", "rows"], ascending=False, kind="stable")
    rows = [
        [
            names[row["group"]],
            f"{row['true']} → {row['predicted']}",
            f"{row['rows']:,}",
            f"{100 * row['share']:.1f}",
        ]
        for row in largest.head(MOST_MISTAKES).to_dict(orient="records")
    ] or [["none", "-", "0", "0.0"]]
    columns = ("group", "true → predicted", "rows", "% of the true")
    title = f"Most frequent mistakes by {view}"
    return Block(title, columns, _frozen(rows), texts=2, is_brief=True)


def _scores(audit: Audit, view: str) -> Block:
    """AUC, and with one label the calibration, of every group."""
    frame = audit.to_frame("scores")
    labels = [audit.label_value(index) for index in audit.shown_labels][:MOST_LABELS]
    own = frame[frame["attribute"] == view].to_dict(orient="records")
    found = {(row["group"], row["label"]): row for row in own}
    table, several = audit.views[view], len(labels) > 1
    names = words.short_names(table.groups)
    lines = [(names[g], table.groups.names[g]) for g in _ordered(table.size)]
    rows = []
    for shown, group in (*lines, (OVERALL, OVERALL)):
        of_labels = [found[group, label] for label in labels if (group, label) in found]
        if of_labels:
            first = of_labels[0]
            cells = [_with_half(row, "auc") for row in of_labels]
            if not several:
                cells += [number(first["mean_score"]), number(first["base_rate"])]
                cells.append(_with_half(first, "calibration", "_gap", "+"))
            rows.append([shown, f"{first['rows']:,}", *cells])
    heads = [f"AUC\n{label}" for label in labels] if several else ["AUC"]
    heads += [] if several else ["mean\nscore", "base\nrate", "calibration\ngap"]
    said = [scores.METHOD]
    if audit.scores[0].is_probability:
        said.append(scores.CALIBRATION)
    return Block(
        f"Scores by {view}", ("group", "rows", *heads), _frozen(rows), tuple(said), last=1,
        chart="scores", about=view, is_brief=True,
    )  # fmt: skip


def _with_half(row: Mapping[Any, Any], name: str, more: str = "", sign: str = "") -> str:
    value, low, high = row[f"{name}{more}"], row[f"{name}_low"], row[f"{name}_high"]
    half = max(value - low, high - value)
    return "-" if math.isnan(value) else f"{value:{sign}.3f}±{half:.3f}"


def _thresholds(audit: Audit) -> Block:
    """Every measure now, and at the most accurate threshold at which it holds."""
    sweep = audit.thresholds
    assert sweep is not None  # noqa: S101 - the caller looked
    rows = []
    for finding in audit.asked:
        best = sweep.best_holding(finding)
        cells = ["-", "-", "-"]
        if best is not None:
            at, value = f"{best['threshold']:.3g}", number(best["value"])
            cells = [at, value, percent(best["accuracy"])]
        now = number(finding.judgement.value)
        rows.append([words.title(finding.measure), finding.attribute, now, *cells])
    at = "now" if sweep.present is None else f"now, at {sweep.present:.3g}"
    columns = ("measure", "groups by", at, "holds at", "with", "accuracy")
    said = (f"Accuracy now {percent(audit.accuracy)}.", thresholds.SAME_ROWS)
    title = "Thresholds: the most accurate at which a measure holds"
    return Block(
        title, columns, _frozen(rows), said, texts=2, chart="thresholds", is_brief=True
    )  # fmt: skip


def _subgroups(found: subgroups.SubgroupSearch) -> Block:
    rows = [
        [
            one.name,
            subgroups.rate_name(one),
            f"{one.rows:,}",
            percent(one.rate),
            percent(one.overall),
            f"{one.gap:+.3f}",
            f"{one.low:+.2f} to {one.high:+.2f}",
            "yes" if one.is_confirmed else "no",
        ]
        for one in found.subgroups
    ] or [["none with enough rows", *"-------"]]
    columns = ("subgroup", "rate", "rows", "there", "overall", "gap", "interval", "confirmed")
    said = (found.sentence, subgroups.ABOUT)
    title = "Subgroups with large gaps"
    return Block(title, columns, _frozen(rows), said, texts=2, is_brief=True)


def _method(audit: Audit) -> Section:
    """What was audited, how intervals and verdicts are made, and what figures do not say."""
    facts = {
        "Rows": f"{audit.table.n_rows:,}",
        "Labels": ", ".join(str(label) for label in audit.labels),
        "Desirable label": ", ".join(str(label) for label in audit.desirable) or "none named",
        "Sensitive attributes": ", ".join(audit.attributes),
        "Confidence": f"{100 * audit.confidence:.4g} %",
        "Sample weights": "yes, intervals are approximate" if audit.is_weighted else "none",
        "Least rows of a group to be judged": f"{audit.min_group:g}",
        "Compared with": audit.baseline_name if audit.baseline is not None else "nothing",
    }
    measures = dict.fromkeys(finding.measure for finding in audit.findings)
    meanings = [[words.title(measure), words.convention(measure)] for measure in measures]
    rates = [[rate.replace("_", " "), words.RATES[rate]] for rate in audit.table.rates]
    blocks = (
        Block("What was audited", ("fact", "value"), _frozen(facts.items()), texts=2),
        Block("Measures", ("measure", "what it asks"), _frozen(meanings), texts=2),
        Block("Rates", ("rate", "what it is"), _frozen(rates), texts=2),
        Block("Intervals and verdicts", sentences=(words.LEVELS, *words.intervals(audit))),
        Block("What these figures do not say", sentences=LIMITS),
    )
    return Section(METHOD, "Method and definitions", (), blocks)


def _frozen(rows: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in rows)
