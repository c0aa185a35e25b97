"""An audit as text: on the terminal, and as a section of a model card."""

from __future__ import annotations

import io
import json
import math
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.text import Text

from fairgrad.audit import further, words
from fairgrad.audit.layout import FittedTable, Paragraph
from fairgrad.audit.verdicts import FAIR, UNFAIR
from fairgrad.audit.words import OVERALL
from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.layout import Cell
    from fairgrad.audit.verdicts import Finding

MOST_GROUPS, MOST_GROUPS_ON_CARD = 40, 50
MOST_LABELS = 12
MOST_VIEWS = 3
STYLES = {FAIR: "green", UNFAIR: "bold red"}
BESIDE = "Also measured, not part of the verdict"
COLUMNS = {
    "base_rate": "base",
    "accuracy": "accuracy",
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
}
"""Rates on the terminal: as many as leave room for the groups' names in 80 columns."""


class ShownAndWritten(ABC):
    """What has a `to_dict` and shows itself to rich: as JSON and as plain text, too."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""

    @abstractmethod
    def __rich__(self) -> Any: ...

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, also written to a file if a path is given."""
        said = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        if path is not None:
            write_whole(Path(path), said)
        return said

    def summary(self, width: int = 80) -> str:
        """A readable overview as plain text; ``rich.print`` shows it in colour."""
        return as_plain_text(self.__rich__(), width)


def as_plain_text(shown: Any, width: int = 80) -> str:
    """What rich prints, as plain text of at most this width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(shown)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO given above
    return "\n".join(line.rstrip() for line in text.splitlines())


def renderable(audit: Audit) -> Group:
    """The summary for any rich console: the verdict, what it rests on, the verdict again."""
    rates = audit.to_frame("rates")
    parts: list[Any] = [Paragraph("Fairness audit", "bold"), verdict_line(audit)]
    parts += [verdict_table("Verdict", audit, audit.asked)]
    parts += [Text(""), *(_remark(finding) for finding in audit.asked)]
    if audit.others:
        parts += [verdict_table(BESIDE, audit, audit.others)]
    for name in audit.views:
        parts.append(_rates(audit, name, rates[rates["attribute"] == name]))
    parts.append(_figures(audit))
    parts += further.shown(audit)
    parts += _against_baseline(audit)
    parts.append(Text(""))
    parts += [Paragraph(f"! {notice.message}", "yellow") for notice in audit.warnings]
    half = "± is half an interval, its wider side."
    reading = [half, words.LEVELS, words.FIGURES_NOTE, *words.intervals(audit)]
    reading += further.how_to_read(audit)
    parts += [Paragraph(sentence, "dim") for sentence in reading]
    return Group(*parts, Text(""), verdict_line(audit))


def verdict_line(audit: Audit) -> Paragraph:
    """The one sentence, after its sign."""
    style = STYLES.get(audit.verdict, "bold yellow")
    return Paragraph(f"{words.SIGNS[audit.verdict]} {audit.conclusion}", style)


def verdict_table(title: str, audit: Audit, findings: Sequence[Finding]) -> FittedTable:
    """What the verdicts rest on."""
    judged = words.judged(findings).replace("largest", "max")
    several = judged == "judged"
    rows: list[list[Cell]] = []
    for finding in findings:
        value, low, high, verdict = finding.judgement
        own = f" {words.judged([finding])}".replace("largest", "max") if several else ""
        figures = [f"{value:.3f}{own}", f"{low:.3f}-{high:.3f}", words.limit(finding)]
        mean = "-" if finding.tolerance.kind == "ratio" else f"{finding.unfairness:.3f}"
        rows.append([mean, *figures, short_verdict(verdict)])
    heads = ["mean |F|", judged, "interval", "fair if", "verdict"]
    return _by_measure(audit, title, findings, heads, rows)


def _by_measure(
    audit: Audit,
    title: str,
    findings: Sequence[Finding],
    heads: list[str],
    rows: Sequence[Sequence[Cell]],
) -> FittedTable:
    """A row per finding; of several ways of grouping each is named below the measure."""
    attributes = dict.fromkeys(finding.attribute for finding in audit.findings)
    by = f" by {next(iter(attributes))}" if len(attributes) == 1 else ""
    last = None
    lines: list[list[Cell]] = []
    for finding, row in zip(findings, rows, strict=True):
        name = words.title(finding.measure)
        if not by:
            if name != last:
                lines.append([name])
            last, name = name, f"  {finding.attribute}"
        lines.append([name, *row])
    first, comma, rest = title.partition(",")
    return FittedTable(
        f"{first}{by}{comma}{rest}", ["Measure" if by else "Measure, groups by", *heads], lines
    )


def short_verdict(verdict: str) -> Text:
    """A verdict in one word after its sign, in its colour."""
    short = verdict.split(maxsplit=1)[0]
    return Text(f"{words.SIGNS[verdict]} {short}", style=STYLES.get(verdict, "yellow"))


def _remark(finding: Finding) -> Paragraph:
    best, worst = words.extreme(finding.best), words.extreme(finding.worst)
    said = f"{words.heading(finding)}: best off {best}, worst off {worst}. {words.advice(finding)}"
    return Paragraph(said.rstrip())


def _rates(audit: Audit, attribute: str, frame: pd.DataFrame) -> FittedTable:
    wanted, rest = _columns(audit)
    wanted = [column for column in wanted if column[0] in audit.table.rates]
    view, cells = audit.views[attribute], {key: _half(row) for key, row in _by_cell(frame).items()}

    def line(shown: str, group: str, size: float) -> list[Cell]:
        row = [cells.get((group, rate, label), "") for rate, label, _ in wanted]
        return [shown, f"{int(size):,}", *row]

    return group_table(
        f"Rates by {attribute}, in %",
        ["Group", "rows", *(title for _, _, title in wanted)],
        audit,
        attribute,
        [line(name, group, size) for name, group, size in shown_groups(audit, attribute)],
        line(OVERALL, OVERALL, view.n_rows),
        rest,
    )


def shown_groups(audit: Audit, attribute: str) -> list[tuple[str, str, float]]:
    """The largest groups: the name to show (a star if not judged), the full name, the rows."""
    view, judged = audit.views[attribute], audit.judged(attribute)
    shorts = words.short_names(view.groups)
    return [
        (f"{shorts[g]}{'' if judged[g] else ' *'}", view.groups.names[g], view.size[g])
        for g in view.largest(MOST_GROUPS)
    ]


def group_table(
    title: str,
    heads: Sequence[str],
    audit: Audit,
    attribute: str,
    rows: list[list[Cell]],
    overall: list[Cell],
    rest: str = "",
) -> FittedTable:
    """A row per group, then everyone; below, what is left out and who is not judged."""
    view, judged = audit.views[attribute], audit.judged(attribute)
    more = len(view.size) - MOST_GROUPS
    said = [rest] if rest else []
    if more > 0:
        said.append(f"... {words.n_of(more, 'smaller group')}; the JSON and the report have all.")
    if not judged.all():
        least = audit.least_rows(attribute)
        said.append(f"* not judged: fewer than {words.n_of(least, 'row')}.")
    return FittedTable(title, heads, [*rows, overall], rest=" ".join(said), last=1)


def _columns(audit: Audit) -> tuple[list[tuple[str, Any, str]], str]:
    """The rates to show: all of the desirable label, or each label's recall; what is left out."""
    if len(audit.labels) == 2:
        label = audit.label_value(audit.shown_labels[0])
        return [(rate, None if rate == "accuracy" else label, t) for rate, t in COLUMNS.items()], ""
    labels = audit.labels[:MOST_LABELS]
    if not audit.has_labels:
        named = [("selection_rate", label, f"selected {label}") for label in labels]
        return named, more_labels(audit, len(labels))
    recalls = [("true_positive_rate", label, f"recall {label}") for label in labels]
    return [("accuracy", None, "accuracy"), *recalls], more_labels(audit, len(labels))


def more_labels(audit: Audit, shown: int) -> str:
    """A line that says how many labels are not shown."""
    more = len(audit.labels) - shown
    if more <= 0:
        return ""
    return f"... {words.n_of(more, 'more label')}; the JSON and the report have all."


def _by_cell(frame: pd.DataFrame) -> dict[tuple[Any, ...], Mapping[Any, Any]]:
    records = frame.to_dict(orient="records")
    return {(row["group"], row["rate"], row["label"]): row for row in records}


def _half(row: Mapping[Any, Any]) -> str:
    """A rate with half the width of its interval (the wider side)."""
    value = row["value"]
    half = max(row["high"] - value, value - row["low"])
    return "-" if math.isnan(value) else f"{100 * value:.1f}±{100 * half:.1f}"


def _figures(audit: Audit) -> FittedTable:
    """The named differences and ratios of the first labels and ways of grouping."""
    views = list(audit.figures)[:MOST_VIEWS]
    several = len(audit.labels) > 2
    rows: list[list[Cell]] = []
    found = list(zip(*(audit.figures[view] for view in views), strict=True))
    shown = [row for row in found if row[0].label < MOST_LABELS]
    for row in shown:
        named = several and row[0].label >= 0
        label = f", {audit.label_value(row[0].label)}" if named else ""
        rows.append([f"{row[0].name}{label}", *(f"{gap.value:.3f}" for gap in row)])
    heads = ["Figure", *(f"by {view}" for view in views)]
    rest = more_labels(audit, MOST_LABELS) if len(found) > len(shown) else ""
    return FittedTable("Differences and ratios between groups", heads, rows, rest=rest)


def _against_baseline(audit: Audit) -> list[Any]:
    if audit.baseline is None:
        return []
    rows: list[list[Cell]] = [
        [
            words.before_and_after(change),
            short_verdict(change.before.verdict),
            short_verdict(change.after.verdict),
        ]
        for change in audit.changes
    ]
    heads = ["before → now", "before", "now"]
    title = f"Against {audit.baseline_name}"
    table = _by_measure(audit, title, audit.findings, heads, rows)
    said = words.all_who_gained(audit.changes)
    in_people = words.impact(audit)
    return [table, Text(""), *(Paragraph(sentence) for sentence in (*said, in_people))]


def to_markdown(audit: Audit) -> str:
    """Verdicts, rates per group, changes and how to read them, as a section of a model card."""
    measures = dict.fromkeys(finding.measure for finding in audit.findings)
    advices = [(finding, words.advice(finding)) for finding in audit.findings]
    reading = [words.LEVELS, *(f"{words.title(m)}: {words.convention(m)}" for m in measures)]
    rates = audit.to_frame("rates")
    parts = [
        "## Fairness audit",
        _card_opening(audit),
        "### Verdict",
        _card_verdicts(audit.asked),
        *([f"### {BESIDE}", _card_verdicts(audit.others)] if audit.others else []),
        *_bullets([f"{words.heading(finding)}: {said}" for finding, said in advices if said]),
    ]
    for name in audit.views:
        mine = rates[rates["attribute"] == name]
        parts += [f"### Rates by {escape(name)}", _card_rates(audit, name, mine)]
    parts += _card_changes(audit)
    if audit.warnings:
        parts += ["### Warnings", *_bullets([notice.message for notice in audit.warnings])]
    parts += ["### How to read these figures", *_bullets([*reading, *words.intervals(audit)])]
    return "\n\n".join(parts) + "\n"


def escape(text: object) -> str:
    """A user's text as text: nothing in it becomes Markdown or HTML."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    html = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html)


def _card_opening(audit: Audit) -> str:
    labels = escape(", ".join(map(str, audit.labels)))
    return (
        f"**{words.SIGNS[audit.verdict]} {escape(audit.conclusion)}** Labels {labels}; "
        f"{100 * audit.confidence:.4g} % confidence."
    )


def _card_verdicts(findings: Sequence[Finding]) -> str:
    header = "Measure", "Groups by", "Unfairness", "Judged", "Figure", "Interval", "Fair if"
    rows = [
        [
            words.title(finding.measure),
            finding.attribute,
            "-" if finding.tolerance.kind == "ratio" else f"{finding.unfairness:.4f}",
            words.judged([finding]),
            f"{finding.judgement.value:.4f}",
            f"{finding.judgement.low:.4f} to {finding.judgement.high:.4f}",
            words.limit(finding),
            words.signed(finding.verdict),
        ]
        for finding in findings
    ]
    return _card_table([*header, "Verdict"], rows)


def _card_rates(audit: Audit, attribute: str, frame: pd.DataFrame) -> str:
    several, cells = len(audit.labels) > 2, _by_cell(frame)
    columns = list(dict.fromkeys(zip(frame["rate"], frame["label"], strict=True)))
    view = audit.views[attribute]
    sizes = {view.groups.names[g]: view.size[g] for g in view.largest(MOST_GROUPS_ON_CARD)}
    left_out = len(view.size) - len(sizes)
    sizes[OVERALL] = view.n_rows
    header = ["Group", "Rows"]
    for rate, label in columns:
        of = f" ({label})" if several and label is not None else ""
        header.append(f"{rate.replace('_', ' ')}{of}")
    rows = [
        [name, f"{int(size):,}", *(_with_ends(cells[(name, *column)]) for column in columns)]
        for name, size in sizes.items()
    ]
    note = f"\n\nThe {left_out} smallest groups are left out here." if left_out else ""
    return _card_table(header, rows) + note


def _with_ends(row: Mapping[Any, Any]) -> str:
    value, low, high = (100 * row[name] for name in ("value", "low", "high"))
    return "not defined" if math.isnan(value) else f"{value:.1f} % ({low:.1f} to {high:.1f})"


def _card_changes(audit: Audit) -> list[str]:
    if audit.baseline is None:
        return []
    header = ["Measure", "Groups by", "Before → now", "Who gained, who lost"]
    rows = []
    for change in audit.changes:
        named = [words.title(change.after.measure), change.after.attribute]
        rows.append([*named, words.before_and_after(change), words.who_gained(change)])
    said = escape(words.impact(audit))
    return [f"### Against {escape(audit.baseline_name)}", said, _card_table(header, rows)]


def _bullets(sentences: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {escape(sentence)}" for sentence in sentences)] if sentences else []


def _card_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        [escape(cell) for cell in header],
        ["---"] * len(header),
        *([escape(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
