"""What ``fairgrad fit`` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.audit.words import heading, printable, who_gained
from fairgrad.cli import show
from fairgrad.cli.card import overall_accuracy
from fairgrad.cli.files import write_outcome
from fairgrad.cli.outcome import fit, prepare
from fairgrad.cli.output import REPORT, whole_folder
from fairgrad.cli.reading import column_names, read_table
from fairgrad.cli.work.request import exit_code

if TYPE_CHECKING:
    from fairgrad.cli.outcome import Outcome, Prepared
    from fairgrad.cli.work.request import Request

SCHEMA, SCHEMA_VERSION = "fairgrad.fit", 1


def run(request: Request) -> int:
    """Reads, trains, audits, writes, shows."""
    assert request.out is not None  # noqa: S101 - the option is required
    assert request.folder is not None  # noqa: S101 - for the same reason
    tell = show.silence if request.as_json else show.tell
    tell(f"Reading {request.table}")
    prepared = read_and_prepare(request)
    outcome = fit(
        prepared,
        request.settings,
        tolerance=request.tolerance,
        with_plain=request.with_plain,
        show=tell,
    )
    with whole_folder(request.folder) as beside:
        write_outcome(outcome, beside, request.table_name)
        files = sorted(file.name for file in beside.iterdir())
    if request.as_json:
        show.show_json(as_json(outcome, request.out, files))
    else:
        show.notes(outcome.notes)
        show_outcome(outcome)
        show.say(f"\nWritten to {request.out}: {', '.join(files)}")
        show.say(f"Open {Path(request.out) / REPORT} in a browser.")
    return exit_code(outcome.verdict, request.fail_on)


def read_and_prepare(request: Request) -> Prepared:
    """Reads the columns that are needed, and keeps the table no longer than that takes."""
    columns = request.columns
    wanted = [name for name in column_names(request.table) if name not in columns.drop]
    return prepare(read_table(request.table, wanted), columns.without_drop(), request.settings)


def show_outcome(outcome: Outcome) -> None:
    """Who gained what, how unfair, and the verdict."""
    console, audit = show.screen(), outcome.audit
    if audit.baseline is not None:
        console.print(show.gains_table(audit))
    console.print(show.verdict_table(audit))
    for change in audit.changes:
        if change.after.measure == outcome.settings.measure:
            said = f"{heading(change.after)}: {who_gained(change)}"
            console.print(printable(said), markup=False)
    for notice in audit.warnings:
        console.print(f"! {printable(notice.message)}", markup=False, style="yellow")
    measure = outcome.settings.measure.replace("_", " ")
    console.print(f"Verdict on {measure}: {outcome.verdict}.", markup=False, style="bold")


def as_json(outcome: Outcome, out: str, files: list[str]) -> dict[str, Any]:
    """The outcome as plain values."""
    audit = outcome.audit
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "out": out,
        "files": files,
        "rows": {
            "training_and_validation": len(outcome.prepared.rest),
            "test": len(outcome.prepared.test),
        },
        "accuracy": overall_accuracy(audit),
        "plain_accuracy": None if audit.baseline is None else overall_accuracy(audit.baseline),
        "settings": outcome.model.settings,
        "verdict": outcome.verdict,
        "notes": list(outcome.notes),
        "audit": audit.to_dict(),
    }
