"""An audit as text: on the terminal, and as a section of a model card."""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fairgrad.audit import words
from fairgrad.audit.verdicts import FAIR, UNFAIR
from fairgrad.audit.words import OVERALL, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Finding

MOST_GROUPS, MOST_GROUPS_ON_CARD = 12, 50
MOST_VIEWS = 3
MOST_FIGURES = 8
STYLES = {FAIR: "green", UNFAIR: "bold red"}
COLUMNS = {
    "base_rate": "base",
    "accuracy": "accuracy",
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
}
"""Rates on the terminal: as many as leave room for the groups' names in 80 columns."""


def as_plain_text(audit: Audit, width: int = 80) -> str:
    """The summary as plain text of at most this width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(renderable(audit))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO given above
    return "\n".join(line.rstrip() for line in text.splitlines())


def renderable(audit: Audit) -> Group:
    """The summary for any rich console."""
    rates = audit.to_frame("rates")
    parts: list[Any] = [_opening(audit), _verdicts(audit)]
    parts += [_remark(finding) for finding in audit.findings]
    for name in audit.views:
        parts.append(_rates(audit, name, rates[rates["attribute"] == name]))
    parts.append(_figures(audit))
    parts += _against_baseline(audit)
    parts += [Text(f"! {printable(notice.message)}", style="yellow") for notice in audit.warnings]
    half = "± is half an interval, its wider side."
    reading = [half, words.LEVELS, words.FIGURES_NOTE, *words.intervals(audit)]
    return Group(*parts, *(Text(sentence, style="dim") for sentence in reading))


def _opening(audit: Audit) -> Text:
    labels = ", ".join(map(str, audit.labels))
    said = f"{audit.table.n_rows:,} rows; labels {labels} (desirable: {words.desirable(audit)})"
    text = Text("Fairness audit", style="bold")
    text.append(f"  {printable(said)}\n", style="not bold")
    text.append(words.signed(audit.verdict), style=STYLES.get(audit.verdict, "bold yellow"))
    return text


def _verdicts(audit: Audit) -> Table:
    judged = words.judged(audit.findings).replace("largest", "max")
    rows = []
    for finding in audit.findings:
        value, low, high, verdict = finding.judgement
        word = Text(f"{words.SIGNS[verdict]} {_short(verdict)}")
        word.stylize(STYLES.get(verdict, "yellow"))
        figures = [f"{finding.unfairness:.3f}", f"{value:.3f}", f"{low:.3f}-{high:.3f}"]
        rows.append([*figures, words.limit(finding), word])
    heads = ["unfairness", judged, "interval", "fair if"]
    return _by_measure(audit, "Verdicts", heads, ["verdict"], rows)


def _by_measure(
    audit: Audit, title: str, figures: list[str], texts: list[str], rows: list[list[Any]]
) -> Table:
    """A row per finding; of several ways of grouping each is named below the measure."""
    attributes = dict.fromkeys(finding.attribute for finding in audit.findings)
    by = f" by {printable(*attributes)}" if len(attributes) == 1 else ""
    table = _table(f"{title}{by}")
    table.add_column("Measure" if by else "Measure, groups by", ratio=1, overflow="ellipsis")
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    for name in texts:
        table.add_column(name, no_wrap=True)
    last = None
    for finding, row in zip(audit.findings, rows, strict=True):
        name = words.title(finding.measure)
        if not by:
            if name != last:
                table.add_row(Text(printable(name)))
            last, name = name, f"  {finding.attribute}"
        table.add_row(Text(printable(name)), *row)
    return table


def _short(verdict: str) -> str:
    return verdict.split(maxsplit=1)[0]


def _remark(finding: Finding) -> Text:
    best, worst = words.extreme(finding.best), words.extreme(finding.worst)
    said = f"{words.heading(finding)}: best off {best}, worst off {worst}. {words.advice(finding)}"
    return Text(printable(said.rstrip()))


def _rates(audit: Audit, attribute: str, frame: pd.DataFrame) -> Table:
    table = _table(f"Rates by {printable(attribute)}, in %")
    table.add_column("Group", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("rows", justify="right", no_wrap=True)
    wanted = _columns(audit)
    for _, _, title in wanted:
        table.add_column(title, justify="right", no_wrap=True)
    view, cells = audit.views[attribute], {key: _half(row) for key, row in _by_cell(frame).items()}

    def add(shown: Text, group: str, size: float) -> None:
        row = [cells.get((group, rate, label), "") for rate, label, _ in wanted]
        table.add_row(shown, f"{int(size):,}", *row)

    shorts = words.short_names(view.groups)
    for g in view.largest(MOST_GROUPS):
        add(Text(printable(shorts[g])), view.groups.names[g], view.size[g])
    if len(view.size) > MOST_GROUPS:
        table.add_row(Text(f"... {len(view.size) - MOST_GROUPS} more groups", style="dim"))
    add(Text(OVERALL, style="dim"), OVERALL, view.n_rows)
    return table


def _columns(audit: Audit) -> list[tuple[str, Any, str]]:
    """The rates to show: all of the desirable label, or each label's recall."""
    if len(audit.labels) == 2:
        label = audit.label_value(audit.shown_labels[0])
        return [(rate, None if rate == "accuracy" else label, t) for rate, t in COLUMNS.items()]
    recalls = [
        ("true_positive_rate", label, f"recall {printable(label)[:8]}") for label in audit.labels
    ]
    return [("accuracy", None, "accuracy"), *recalls[:3]]


def _by_cell(frame: pd.DataFrame) -> dict[tuple[Any, ...], Mapping[Any, Any]]:
    records = frame.to_dict(orient="records")
    return {(row["group"], row["rate"], row["label"]): row for row in records}


def _half(row: Mapping[Any, Any]) -> str:
    """A rate with half the width of its interval (the wider side)."""
    value = row["value"]
    half = max(row["high"] - value, value - row["low"])
    return "-" if math.isnan(value) else f"{100 * value:.1f}±{100 * half:.1f}"


def _figures(audit: Audit) -> Table:
    """The named differences and ratios of the first labels and ways of grouping."""
    table = _table("Differences and ratios between groups")
    table.add_column("Figure", no_wrap=True)
    views = list(audit.figures)[:MOST_VIEWS]
    for view in views:
        table.add_column(f"by {printable(view)}", justify="right", ratio=1)
    several = len(audit.labels) > 2
    rows = list(zip(*(audit.figures[view] for view in views), strict=True))
    for row in rows[:MOST_FIGURES]:
        shown = several and row[0].label >= 0
        label = f", {printable(audit.label_value(row[0].label))}" if shown else ""
        table.add_row(Text(f"{row[0].name}{label}"), *(f"{gap.value:.3f}" for gap in row))
    if len(rows) > MOST_FIGURES:
        table.add_row(Text(f"... {len(rows) - MOST_FIGURES} more", style="dim"))
    return table


def _against_baseline(audit: Audit) -> list[Any]:
    if audit.baseline is None:
        return []
    pairs = [(change.before, change.after) for change in audit.changes]
    rows: list[list[Any]] = [
        [f"{a.unfairness:.3f} → {b.unfairness:.3f}", _short(a.verdict), _short(b.verdict)]
        for a, b in pairs
    ]
    texts = ["verdict before", "verdict now"]
    table = _by_measure(audit, "Against the baseline", ["unfairness"], texts, rows)
    said = dict.fromkeys(f"{words.heading(c.after)}: {words.who_gained(c)}" for c in audit.changes)
    return [table, *(Text(printable(sentence)) for sentence in said)]


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        expand=True,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def to_markdown(audit: Audit) -> str:
    """Verdicts, rates per group, changes and how to read them, as a section of a model card."""
    measures = dict.fromkeys(finding.measure for finding in audit.findings)
    advices = [(finding, words.advice(finding)) for finding in audit.findings]
    reading = [words.LEVELS, *(f"{words.title(m)}: {words.convention(m)}" for m in measures)]
    rates = audit.to_frame("rates")
    parts = [
        "## Fairness audit",
        _card_opening(audit),
        "### Verdicts",
        _card_verdicts(audit),
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
        f"{audit.table.n_rows:,} rows; labels {labels}; desirable: "
        f"{escape(words.desirable(audit))}; {100 * audit.confidence:.4g} % confidence. Overall: "
        f"**{words.signed(audit.verdict)}**."
    )


def _card_verdicts(audit: Audit) -> str:
    header = "Measure", "Groups by", "Unfairness", "Judged", "Figure", "Interval", "Fair if"
    rows = [
        [
            words.title(finding.measure),
            finding.attribute,
            f"{finding.unfairness:.4f}",
            words.judged([finding]),
            f"{finding.judgement.value:.4f}",
            f"{finding.judgement.low:.4f} to {finding.judgement.high:.4f}",
            words.limit(finding),
            words.signed(finding.verdict),
        ]
        for finding in audit.findings
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
    header = ["Measure", "Groups by", "Unfairness before", "Now", "Who gained, who lost"]
    rows = []
    for change in audit.changes:
        before, after = change.before, change.after
        figures = [f"{before.unfairness:.4f}", f"{after.unfairness:.4f}"]
        named = [words.title(after.measure), after.attribute]
        rows.append([*named, *figures, words.who_gained(change)])
    return ["### Against the baseline", _card_table(header, rows)]


def _bullets(sentences: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {escape(sentence)}" for sentence in sentences)] if sentences else []


def _card_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        [escape(cell) for cell in header],
        ["---"] * len(header),
        *([escape(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
