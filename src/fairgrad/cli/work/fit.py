"""What ``fairgrad fit`` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.audit.names import printable
from fairgrad.audit.phrases import who_gained
from fairgrad.audit.wording import title
from fairgrad.cli import show
from fairgrad.cli.card import overall_accuracy
from fairgrad.cli.files import write_outcome
from fairgrad.cli.outcome import fit, prepare
from fairgrad.cli.output import REPORT, check_folder, whole_folder
from fairgrad.cli.reading import column_names, read_table
from fairgrad.cli.work.given import columns_of, exit_code, settings_of, tolerance_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.cli.outcome import Outcome, Prepared
    from fairgrad.cli.people import Columns
    from fairgrad.cli.settings import Settings

SCHEMA, SCHEMA_VERSION = "fairgrad.fit", 1


def run(given: Mapping[str, Any]) -> int:
    """Reads, trains, audits, writes; everything that can be refused is refused first."""
    settings, columns = settings_of(given), columns_of(given)
    folder = check_folder(given["out"], force=given["force"])
    tell = (lambda _: None) if given["as_json"] else show.tell
    columns.check(column_names(given["table"]))
    tell(f"Reading {given['table']}")
    prepared = read_and_prepare(given["table"], columns, settings)
    outcome = fit(
        prepared,
        settings,
        tolerance=tolerance_of(given),
        with_plain=not given["no_plain"],
        show=tell,
    )
    with whole_folder(folder) as beside:
        write_outcome(outcome, beside, Path(given["table"]).name)
        files = sorted(file.name for file in beside.iterdir())
    if given["as_json"]:
        show.show_json(as_json(outcome, given["out"], files))
    else:
        show.notes(outcome.notes)
        show_outcome(outcome)
        show.screen().print(f"\nWritten to {given['out']}: {', '.join(files)}", markup=False)
        show.screen().print(f"Open {Path(given['out']) / REPORT} in a browser.", markup=False)
    return exit_code(outcome.verdict, given["fail_on"])


def read_and_prepare(path: str, columns: Columns, settings: Settings) -> Prepared:
    """Reads the columns that are needed, and keeps the table no longer than that takes."""
    wanted = [name for name in column_names(path) if name not in columns.drop]
    return prepare(read_table(path, wanted), columns.without_drop(), settings)


def show_outcome(outcome: Outcome) -> None:
    """Who gained what, how unfair, and the verdict."""
    console, audit = show.screen(), outcome.audit
    if audit.baseline is not None:
        console.print(show.gains_table(audit))
    console.print(show.verdict_table(audit))
    for change in audit.changes:
        if change.after.measure == outcome.settings.measure:
            words = f"{title(change.after.measure)}, {change.after.attribute}: {who_gained(change)}"
            console.print(printable(words), markup=False)
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
