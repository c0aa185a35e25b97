"""What the program prints: tables that fit a terminal of 80 columns, or JSON."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairgrad.audit import words
from fairgrad.audit.text import STYLES
from fairgrad.audit.words import OVERALL, printable
from fairgrad.cli.card import overall_accuracy
from fairgrad.cli.provenance import audit_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from fairgrad.audit import Audit, Finding
    from fairgrad.cli.training import AuditedModel

WIDTH, BETWEEN = 80, 2
MOST_GROUPS = 12
FIGURES = ("accuracy", "unfairness")
RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "accuracy": "accuracy",
}


def screen() -> Console:
    """Where results go; a pipe gets 80 columns, like a terminal of unknown width."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)


def show_json(found: dict[str, Any]) -> None:
    """Prints plain values as JSON."""
    sys.stdout.write(json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def progress(message: str) -> None:
    """Says on the error output what is done now; results go to the standard output."""
    Console(stderr=True, highlight=False).print(Text(printable(message), style="dim"))


def no_progress(_: str) -> None:
    """No output with --json."""


def say(text: str) -> None:
    """Prints lines of the result; long ones, such as paths, are not broken."""
    lines = "\n".join(printable(line) for line in text.splitlines())
    screen().print(lines, markup=False, soft_wrap=True)


def say_paragraph(text: str, style: str | None = None) -> None:
    """Prints a sentence of the result, wrapped to the width of the screen."""
    screen().print(printable(text), markup=False, style=style)


def notes(sentences: Iterable[str]) -> None:
    """Says on the error output what the reader should know about the data."""
    console = Console(stderr=True, highlight=False)
    for sentence in sentences:
        console.print(Text(f"Note: {printable(sentence)}", style="yellow"))


def gains_table(audit: Audit) -> Table:
    """Rates of every group under the plain model and now, in %."""
    view = " x ".join(audit.attributes)
    changes = audit.to_frame("changes")
    rows = changes[changes["attribute"] == view].to_dict(orient="records")
    cells = {(row["group"], row["rate"], row["label"]): _arrow(row) for row in rows}
    columns, groups = _rate_columns(audit), audit.views[view].groups
    sizes = audit.views[view].size
    shorts = words.short_names(groups)

    def line(shown: str, group: str, size: float) -> list[str]:
        return [shown, f"{int(size):,}", *(cells[group, rate, label] for rate, label in columns)]

    largest = np.argsort(-sizes)[:MOST_GROUPS]
    lines = [line(shorts[i], groups.names[i], sizes[i]) for i in largest]
    lines.append(line(OVERALL, OVERALL, sizes.sum()))
    title = f"Who gained what by {printable(view)}: plain model → fair model, in %"
    table = figures_table(title, ["Group"], ["rows", *columns.values()], lines)
    if len(sizes) > MOST_GROUPS:
        table.add_row(Text(f"... {len(sizes) - MOST_GROUPS} smaller groups", style="dim"))
    return table


def verdict_table(audit: Audit) -> Table:
    """Unfairness by every measure, of the plain and the fair model, with the verdicts."""
    audits = {"plain": audit.baseline, "fair": audit} if audit.baseline else {"fair": audit}
    names = [heading for name in audits for heading in (name, "")]
    lines = []
    for findings in zip(*(one.findings for one in audits.values()), strict=True):
        cells = [cell for finding in findings for cell in _verdict_cells(finding)]
        lines.append([words.title(findings[0].measure), findings[0].attribute, *cells])
    title = "Unfairness (mean |F|; 0 is fair) and verdict of each model"
    return figures_table(title, ["Measure", "Groups by"], names, lines)


def figures_table(
    title: str, texts: list[str], figures: list[str], lines: list[list[Any]]
) -> Table:
    """Columns of users' texts, which are shortened to fit, and of figures, which never are."""
    widths = [
        max(len(name), *(len(line[place]) for line in lines))
        for place, name in enumerate([*texts, *figures])
    ]
    room = WIDTH - sum(width + BETWEEN for width in widths[len(texts) :])
    table = simple_table(title)
    for place, name in enumerate(texts):
        most = room // (len(texts) - place) - BETWEEN
        most = max(most, room - sum(w + BETWEEN for w in widths[place + 1 : len(texts)]) - BETWEEN)
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=most)
        room -= min(widths[place], most) + BETWEEN
    for place, name in enumerate(figures, start=len(texts)):
        is_word = isinstance(lines[0][place], Text)
        table.add_column(
            printable(name),
            justify="left" if is_word else "right",
            no_wrap=True,
            min_width=widths[place],
        )
    for line in lines:
        table.add_row(*(c if isinstance(c, Text) else Text(printable(c)) for c in line))
    return table


def points_table(points: pd.DataFrame, chosen: int | None) -> Table:
    """The models of a frontier; which is chosen, and which others dominate."""
    table = simple_table("Accuracy and unfairness (mean |F|) on validation and test rows")
    for name in ("epsilon", "accuracy", "unfairness", "test accuracy", "test unfairness"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", ratio=1, no_wrap=True)
    columns = [f"{part}_{figure}" for part in ("validation", "test") for figure in FIGURES]
    for position, row in enumerate(points.to_dict(orient="records")):
        epsilon = row["epsilon"]
        remark = "chosen" if position == chosen else "" if row["on_frontier"] else "dominated"
        style = "bold" if position == chosen else None if row["on_frontier"] else "dim"
        table.add_row(
            "plain" if epsilon == float("inf") else f"{epsilon:.4f}",
            *(f"{row[name]:.4f}" for name in columns),
            remark,
            style=style,
        )
    return table


def desirable_line(outcome: AuditedModel) -> str:
    """Which value of the target was taken as desirable."""
    target, value = outcome.prepared.columns.target, outcome.prepared.desirable
    return f"Desirable value of {target}: {'none named' if value is None else value}"


def show_outcome(outcome: AuditedModel) -> None:
    """Prints who gained what, how unfair the model is, and the verdict."""
    console, audit, measure = screen(), outcome.audit, outcome.settings.measure
    notes(outcome.notes)
    say(desirable_line(outcome))
    if audit.baseline is not None:
        console.print(gains_table(audit))
    console.print(verdict_table(audit))
    for change in audit.changes:
        if change.after.measure == measure:
            say_paragraph(f"{words.heading(change.after)}: {words.who_gained(change)}")
    for notice in audit.warnings:
        say_paragraph(f"! {notice.message}", style="yellow")
    say_paragraph(f"Verdict on {measure.replace('_', ' ')}: {outcome.verdict}.", style="bold")


def outcome_json(outcome: AuditedModel, out: str, files: list[str]) -> dict[str, Any]:
    """A model and its audit as plain values."""
    audit = outcome.audit
    return {
        "schema": "fairgrad.fit",
        "schema_version": 1,
        "out": out,
        "files": files,
        "rows": {
            "training_and_validation": len(outcome.prepared.rest),
            "test": len(outcome.judged.rows),
            "folds": len(outcome.prepared.folds),
        },
        "desirable": outcome.prepared.desirable,
        "accuracy": overall_accuracy(audit),
        "plain_accuracy": None if audit.baseline is None else overall_accuracy(audit.baseline),
        "settings": outcome.model.settings,
        "verdict": outcome.verdict,
        "notes": list(outcome.notes),
        "audit": audit_values(audit, outcome.source),
    }


def simple_table(title: str | None = None) -> Table:
    """A table with one line below its heading."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _verdict_cells(finding: Finding) -> tuple[str, Text]:
    verdict = finding.verdict
    word = Text(f"{words.SIGNS[verdict]} {verdict.split()[0]}")
    word.stylize(STYLES.get(verdict, "yellow"))
    return f"{finding.unfairness:.3f}", word


def _rate_columns(audit: Audit) -> dict[tuple[str, Any], str]:
    """Of two labels the rates of the desirable one; of more the accuracy and three recalls."""
    labels = [audit.label_value(index) for index in audit.shown_labels]
    if len(labels) == 1:
        return {(rate, None if rate == "accuracy" else labels[0]): RATES[rate] for rate in RATES}
    recalls = {("true_positive_rate", label): f"TPR {str(label)[:8]}" for label in labels[:3]}
    return {("accuracy", None): "accuracy", **recalls}


def _arrow(row: dict[Any, Any]) -> str:
    if math.isnan(row["change"]):
        return "-"
    return f"{_percent(row['before'])}→{_percent(row['after'])}"


def _percent(share: float) -> str:
    """In %, with one digit but for 100, which has no room for it."""
    return "100" if share > 0.9995 else f"{100 * share:.1f}"
