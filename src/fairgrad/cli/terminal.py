"""What the program prints: tables that fit the terminal, or JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from fairgrad.audit import words
from fairgrad.audit.layout import FittedTable, Paragraph
from fairgrad.audit.text import (
    BESIDE,
    MOST_LABELS,
    group_table,
    more_labels,
    short_verdict,
    shown_groups,
    verdict_line,
)
from fairgrad.audit.words import OVERALL, printable
from fairgrad.cli.provenance import audit_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from fairgrad.audit import Audit, Finding
    from fairgrad.audit.layout import Cell
    from fairgrad.cli.outcome import AuditedModel

WIDTH = 80
FIGURES = ("accuracy", "unfairness")
RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "accuracy": "accuracy",
}


def screen() -> Console:
    """Where results go; a pipe gets 80 columns, or as many as COLUMNS says."""
    console = Console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, width=WIDTH)


def show_json(found: dict[str, Any]) -> None:
    """Prints plain values as JSON; in ASCII where the output cannot hold every letter."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    text = json.dumps(found, ensure_ascii=not is_unicode, indent=2, allow_nan=False)
    sys.stdout.write(text + "\n")


def progress(message: str) -> None:
    """Says on the error output what is done now; results go to the standard output."""
    Console(stderr=True, highlight=False).print(Text(printable(message), style="dim"))


def no_progress(_: str) -> None:
    """No output with --json."""


def say(text: str) -> None:
    """Prints lines of the result; long ones, such as paths, are not broken."""
    lines = "\n".join(printable(line) for line in text.splitlines())
    screen().print(lines, markup=False, soft_wrap=True)


def say_paragraph(text: str, style: str = "") -> None:
    """Prints a sentence of the result, wrapped to the width of the screen."""
    screen().print(Paragraph(text, style))


def notes(sentences: Iterable[str]) -> None:
    """Says on the error output what the reader should know about the data."""
    console = Console(stderr=True, highlight=False)
    for sentence in sentences:
        console.print(Paragraph(f"Note: {sentence}", "yellow"))


def gains_table(audit: Audit) -> FittedTable:
    """Rates of every group under the plain model and now, in %."""
    view = " x ".join(audit.attributes)
    changes = audit.to_frame("changes")
    rows = changes[changes["attribute"] == view].to_dict(orient="records")
    cells = {(row["group"], row["rate"], row["label"]): _arrow(row) for row in rows}
    columns = _rate_columns(audit)

    def line(shown: str, group: str, size: float) -> list[Cell]:
        return [shown, f"{int(size):,}", *(cells[group, rate, label] for rate, label in columns)]

    return group_table(
        f"Who gained what by {view}: plain model → fair model, in %",
        ["Group", "rows", *columns.values()],
        audit,
        view,
        [line(*group) for group in shown_groups(audit, view)],
        line(OVERALL, OVERALL, audit.views[view].n_rows),
        more_labels(audit, MOST_LABELS) if len(audit.labels) > 2 else "",
    )


def verdict_table(title: str, audit: Audit, *, asked: bool) -> FittedTable:
    """What the measures asked for, or the others, say of the plain and the fair model."""
    audits = {"plain": audit.baseline, "fair": audit} if audit.baseline else {"fair": audit}
    heads = [heading for name in audits for heading in (name, "")]
    lines: list[Sequence[Cell]] = []
    for findings in zip(*(one.findings for one in audits.values()), strict=True):
        if findings[0].is_asked == asked:
            cells = [cell for finding in findings for cell in _verdict_cells(finding)]
            lines.append([words.title(findings[0].measure), findings[0].attribute, *cells])
    return FittedTable(title, ["Measure", "Groups by", *heads], lines, texts=2)


def points_table(points: pd.DataFrame, chosen: int | None) -> FittedTable:
    """The models of a frontier; which is chosen, and which others dominate."""
    figures = [*FIGURES, "cost"] if "validation_cost" in points else list(FIGURES)
    parts = ("validation", "test")
    columns = [f"{part}_{figure}" for part in parts for figure in figures]
    lines: list[Sequence[Cell]] = []
    for position, row in enumerate(points.to_dict(orient="records")):
        epsilon = row["epsilon"]
        remark = "chosen" if position == chosen else "" if row["on_frontier"] else "dominated"
        style = "bold" if position == chosen else "" if row["on_frontier"] else "dim"
        cells = [
            "plain" if epsilon == float("inf") else f"{epsilon:.4f}",
            *(f"{row[name]:.4f}" for name in columns),
        ]
        lines.append([*(Text(cell, style=style) for cell in cells), Text(remark, style="bold")])
    heads = ["epsilon", *figures, *(f"test {figure}" for figure in figures), ""]
    title = "Accuracy and unfairness (mean |F|) on validation and test rows"
    return FittedTable(title, heads, lines)


def desirable_line(outcome: AuditedModel) -> str:
    """Which value of the target was taken as desirable."""
    target, value = outcome.prepared.columns.target, outcome.prepared.desirable
    return f"Desirable value of {target}: {'none named' if value is None else value}"


def cost_sentence(costs: dict[str, float]) -> str:
    """What predictions cost on the test rows."""
    plain = f", with the plain model {costs['plain']:.4f}" if "plain" in costs else ""
    return f"Mean cost of a prediction: {costs['fair']:.4f}{plain}."


def show_outcome(outcome: AuditedModel) -> None:
    """Prints the verdict, who gained what, how unfair the model is, and the verdict again."""
    console, audit = screen(), outcome.audit
    notes(outcome.notes)
    console.print(verdict_line(audit))
    for fault in outcome.faults:
        say_paragraph(f"! {fault}", style="bold red")
    _say_certified(outcome)
    if outcome.mean_costs:
        say_paragraph(cost_sentence(outcome.mean_costs))
    if audit.baseline is not None:
        say_paragraph(words.impact(audit))
        console.print(gains_table(audit))
    figures = list(dict.fromkeys(words.figure(finding)[0] for finding in audit.asked))
    title = f"Verdict, with the {words.conjoined(figures)}"
    console.print(verdict_table(title, audit, asked=True))
    if audit.others:
        console.print(verdict_table(BESIDE, audit, asked=False))
    console.print(Text(""))
    for change in audit.changes:
        if change.after.is_asked and change.direction.any():
            say_paragraph(f"{words.heading(change.after)}: {words.who_gained(change)}")
    for notice in audit.warnings:
        say_paragraph(f"! {notice.message}", style="yellow")
    console.print(Text(""))
    console.print(verdict_line(audit))
    _say_certified(outcome)


def _say_certified(outcome: AuditedModel) -> None:
    """Whether the model is certified, if that was asked for."""
    certificate = outcome.certificate
    if certificate is not None:
        style = "bold green" if certificate.is_certified else "bold red"
        say_paragraph(certificate.sentence, style)
        if not certificate.is_certified:
            say_paragraph("No model is written.", style)


def outcome_json(outcome: AuditedModel, out: str, files: list[str]) -> dict[str, Any]:
    """A model and its audit as plain values."""
    audit, totals = outcome.audit, outcome.prepared.totals
    return {
        "schema": "fairgrad.fit",
        "schema_version": 1,
        "out": out,
        "files": files,
        "rows": {
            "training_and_validation": totals.training + totals.validation,
            "test": totals.test,
            "folds": totals.folds,
        },
        "desirable": outcome.prepared.desirable,
        "accuracy": audit.accuracy,
        "plain_accuracy": None if audit.baseline is None else audit.baseline.accuracy,
        "mean_costs": outcome.mean_costs,
        "settings": outcome.model.settings,
        "verdict": outcome.verdict,
        "conclusion": audit.conclusion,
        "certificate": None if outcome.certificate is None else outcome.certificate.to_dict(),
        "notes": list(outcome.notes),
        "faults": list(outcome.faults),
        "audit": audit_values(audit, outcome.source),
    }


def _verdict_cells(finding: Finding) -> tuple[str, Text]:
    name, value = words.figure(finding)
    own = "" if name == "mean |F|" else f" {name}"
    return f"{value:.3f}{own}", short_verdict(finding.verdict)


def _rate_columns(audit: Audit) -> dict[tuple[str, Any], str]:
    """Of two labels the rates of the desirable one; of more the accuracy and the recalls."""
    labels = [audit.label_value(index) for index in audit.shown_labels]
    if len(labels) == 1:
        return {(rate, None if rate == "accuracy" else labels[0]): RATES[rate] for rate in RATES}
    shown = labels[:MOST_LABELS]
    recalls = {("true_positive_rate", label): f"recall {label}" for label in shown}
    return {("accuracy", None): "accuracy", **recalls}


def _arrow(row: dict[Any, Any]) -> str:
    if math.isnan(row["change"]):
        return "-"
    return f"{_percent(row['before'])}→{_percent(row['after'])}"


def _percent(share: float) -> str:
    """In %, with one digit but for 100, which has no room for it."""
    return "100" if share > 0.9995 else f"{100 * share:.1f}"
