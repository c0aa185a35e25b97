"""What the program prints: tables that fit the terminal, or JSON."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from fairgrad.cli.folder import audit_values
from fairgrad.text import Block, Paragraph, on_terminal, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pandas as pd

    from fairgrad.audit import Audit
    from fairgrad.cli.training import AuditedModel

WIDTH = 80
FIGURES = ("accuracy", "unfairness")


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
    # An unbuffered stream loses the rest of a long text without an error if its reader is gone.
    # At most 4096 bytes are written whole or not at all.
    sys.stdout.writelines(f"{text}\n"[i : i + 1024] for i in range(0, len(text) + 1, 1024))


def is_quiet() -> bool:
    """Whether `fairgrad --quiet` was asked for."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("quiet"))


def shows_progress() -> bool:
    """Whether a person is looking: on a terminal, without --quiet."""
    return sys.stderr.isatty() and not is_quiet()


def inform(message: str) -> None:
    """Says on the error output what was done; results go to the standard output."""
    if not is_quiet():
        Console(stderr=True, highlight=False).print(Text(printable(message), style="dim"))


def progress(message: str) -> None:
    """Says on a terminal what is being done."""
    if shows_progress():
        inform(message)


@contextmanager
def progress_bar(total: float | None) -> Iterator[Callable[..., None]]:
    """A bar on a terminal: what is being done, since when, and how long it will take.

    Args:
        total: what there is to do, in any unit; None if that is not known.

    Yields:
        A function to call with what is being done, and `completed` or `advance`.
    """
    if not shows_progress():
        yield lambda *_, **__: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    left = () if total is None else (TextColumn("left:"), TimeRemainingColumn())
    with Progress(*columns, *left, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda words, **done: shown.update(task, description=printable(words), **done)


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


def show_audit(audit: Audit, *, explain: bool = False) -> None:
    """Prints the conclusion, the rates of every group and warnings: one screen for two groups.

    Args:
        audit: what to show.
        explain: print all sections, with definitions and methods.
    """
    screen().print(on_terminal(audit.sections, explain=explain))


def points_table(points: pd.DataFrame, chosen: int | None) -> Block:
    """The models of a frontier; which is chosen, and which others dominate."""
    figures = [*FIGURES, "cost"] if "validation_cost" in points else list(FIGURES)
    columns = [f"{rows}_{figure}" for rows in ("validation", "test") for figure in figures]
    lines = []
    for position, row in enumerate(points.to_dict(orient="records")):
        remark = "chosen" if position == chosen else "" if row["on_frontier"] else "dominated"
        epsilon = "plain" if row["epsilon"] == float("inf") else f"{row['epsilon']:.4f}"
        lines.append([epsilon, *(f"{row[name]:.4f}" for name in columns), remark])
    heads = ["epsilon", *figures, *(f"test {figure}" for figure in figures), ""]
    return Block("Accuracy and unfairness (mean |F|) on validation and test rows", heads, lines)


def desirable_line(outcome: AuditedModel) -> str:
    """Which value of the target was taken as desirable."""
    target, value = outcome.prepared.columns.target, outcome.prepared.desirable
    return f"Desirable value of {target}: {'none named' if value is None else value}"


def cost_sentence(costs: dict[str, float]) -> str:
    """What predictions cost on the test rows."""
    plain = f", with the plain model {costs['plain']:.4f}" if "plain" in costs else ""
    return f"Mean cost of a prediction: {costs['fair']:.4f}{plain}."


def show_outcome(outcome: AuditedModel) -> None:
    """Prints what is wrong with the model, the certificate, what it costs, and its audit."""
    notes(outcome.notes)
    for fault in outcome.faults:
        say_paragraph(f"! {fault}", style="bold red")
    _say_certified(outcome)
    show_audit(outcome.audit)
    if outcome.mean_costs:
        say_paragraph(cost_sentence(outcome.mean_costs))


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
        "verdict": outcome.audit.verdict,
        "conclusion": audit.conclusion,
        "certificate": None if outcome.certificate is None else outcome.certificate.to_dict(),
        "notes": list(outcome.notes),
        "faults": list(outcome.faults),
        "audit": audit_values(audit, outcome.source),
    }
