"""An audit on the terminal."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fairgrad.audit import phrases, wording
from fairgrad.audit.frames import OVERALL
from fairgrad.audit.names import printable
from fairgrad.audit.verdicts import FAIR, UNFAIR

if TYPE_CHECKING:
    import pandas as pd

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.findings import Finding

MOST_GROUPS = 12
MOST_VIEWS = 3
MOST_FIGURES = 8
STYLES = {FAIR: "green", UNFAIR: "bold red"}
COLUMNS = {
    "base_rate": "base",
    "accuracy": "accuracy",
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "precision": "precision",
}


def as_text(audit: Audit, width: int = 80) -> str:
    """The summary as plain text of at most this width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(renderable(audit))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO given above
    return "\n".join(line.rstrip() for line in text.splitlines())


def renderable(audit: Audit) -> Group:
    """The summary for any rich console."""
    rates = audit.to_frame("rates")
    parts: list[Any] = [_heading(audit), _verdicts(audit)]
    parts += [_remark(finding) for finding in audit.findings]
    for name in audit.views:
        parts.append(_rates(audit, name, rates[rates["attribute"] == name]))
    parts.append(_figures(audit))
    parts += _against_baseline(audit)
    parts += [Text(f"! {printable(notice.message)}", style="yellow") for notice in audit.warnings]
    parts += [Text(sentence, style="dim") for sentence in _reading(audit)]
    return Group(*parts)


def _heading(audit: Audit) -> Text:
    labels = ", ".join(printable(label) for label in audit.labels)
    desirable = ", ".join(printable(label) for label in audit.desirable) or "none named"
    text = Text("Fairness audit", style="bold")
    rows = int(audit.table.size.sum())
    text.append(f"  {rows:,} rows; labels {labels} (desirable: {desirable})\n", style="not bold")
    sign = phrases.SIGNS[audit.verdict]
    text.append(f"{sign} {audit.verdict}", style=STYLES.get(audit.verdict, "bold yellow"))
    return text


def _verdicts(audit: Audit) -> Table:
    table = _table()
    table.add_column("Measure", ratio=2)
    table.add_column("Groups by", ratio=1)
    for name in ("mean |F|", "judged", "interval", "fair if"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("Verdict")
    for finding in audit.findings:
        table.add_row(*_verdict_row(finding))
    return table


def _verdict_row(finding: Finding) -> list[Text]:
    judgement, verdict = finding.judgement, finding.verdict
    figures = [
        f"{finding.unfairness:.3f}",
        f"{judgement.value:.3f}",
        f"{judgement.low:.3f}-{judgement.high:.3f}",
        phrases.limit(finding),
    ]
    return [
        Text(printable(wording.title(finding.measure))),
        Text(printable(finding.attribute)),
        *(Text(figure) for figure in figures),
        Text(f"{phrases.SIGNS[verdict]} {verdict}", style=STYLES.get(verdict, "yellow")),
    ]


def _remark(finding: Finding) -> Text:
    text = f"best off {phrases.extreme(finding.best)}, worst off {phrases.extreme(finding.worst)}."
    named = f"{wording.title(finding.measure)}, {finding.attribute}"
    return Text(printable(f"{named}: {text} {phrases.advice(finding)}".rstrip()))


def _rates(audit: Audit, attribute: str, frame: pd.DataFrame) -> Table:
    table = _table(f"Rates by {printable(attribute)}, in %")
    table.add_column("Group", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("rows", justify="right", no_wrap=True)
    wanted = _columns(audit)
    for _, _, title in wanted:
        table.add_column(title, justify="right", no_wrap=True)
    view = audit.views[attribute]
    order = (-view.size).argsort(kind="stable")[:MOST_GROUPS]
    shorts, cells = phrases.short_names(view.groups), _cells(frame)
    for g in order:
        row = [cells.get((view.groups.names[g], rate, label), "") for rate, label, _ in wanted]
        table.add_row(Text(printable(shorts[g])), f"{int(view.size[g]):,}", *row)
    if len(view.size) > MOST_GROUPS:
        table.add_row(Text(f"... {len(view.size) - MOST_GROUPS} more groups", style="dim"))
    row = [cells.get((OVERALL, rate, label), "") for rate, label, _ in wanted]
    table.add_row(Text(OVERALL, style="dim"), f"{int(view.size.sum()):,}", *row)
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


def _cells(frame: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Each rate with half the width of its interval (the wider side)."""
    cells = {}
    for row in frame.to_dict(orient="records"):
        value = row["value"]
        half = max(row["high"] - value, value - row["low"])
        text = "-" if math.isnan(value) else f"{100 * value:.1f}±{100 * half:.1f}"
        cells[row["group"], row["rate"], row["label"]] = text
    return cells


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
        label = f", {printable(audit.label_value(row[0].label))}" if several else ""
        table.add_row(Text(f"{row[0].name}{label}"), *(f"{figure.value:.3f}" for figure in row))
    if len(rows) > MOST_FIGURES:
        table.add_row(Text(f"... {len(rows) - MOST_FIGURES} more", style="dim"))
    return table


def _against_baseline(audit: Audit) -> list[Any]:
    if audit.baseline is None:
        return []
    table = _table("Against the baseline")
    table.add_column("Measure", ratio=2)
    table.add_column("Groups by", ratio=1)
    table.add_column("mean |F|", justify="right", no_wrap=True)
    table.add_column("verdict before")
    table.add_column("verdict now")
    for change in audit.changes:
        table.add_row(
            Text(printable(wording.title(change.after.measure))),
            Text(printable(change.after.attribute)),
            f"{change.before.unfairness:.3f} → {change.after.unfairness:.3f}",
            change.before.verdict,
            change.after.verdict,
        )
    said = {
        f"{wording.title(c.after.measure)}, {c.after.attribute}: {phrases.who_gained(c)}"
        for c in audit.changes
    }
    return [table, *(Text(printable(sentence)) for sentence in sorted(said))]


def _reading(audit: Audit) -> list[str]:
    sentences = [
        wording.LEVELS,
        wording.FIGURES_NOTE,
        *wording.intervals(audit.confidence, audit.is_weighted),
    ]
    return ["± is half an interval, its wider side.", *sentences]


def _table(title: str | None = None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        expand=True,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
