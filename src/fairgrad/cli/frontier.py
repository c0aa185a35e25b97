"""``fairgrad frontier``: what fairness costs in accuracy, from exact fairness to none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from fairgrad.cli.outcome import AuditedModel

SCHEMA, SCHEMA_VERSION = "fairgrad.frontier", 1
HOW_TO_READ = (
    "Models are chosen by their figures on the validation rows; the test rows only judge them. "
    "plain: trained for accuracy alone. dominated: another model is at least as good in both "
    "figures, and better in one."
)


@click.command(short_help="Show what fairness costs in accuracy.")
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.people_options()
@options.feature_options()
@options.reading_options()
@options.judging_options(folds=False)
@options.training_options()
@options.frontier_options("Number of models to train.")
@options.tolerance_option
@options.min_group_option
@click.option(
    "-o", "--out", metavar="FOLDER", help="Folder to write frontier.csv and report.html to."
)
@options.force_option
@options.json_option
def frontier(**given: Any) -> int:
    """Train models on TABLE from exact fairness to none, and show what each step costs.

    With --max-unfairness or --min-accuracy the model that meets the bound on the validation rows
    is chosen, otherwise the fairest within 3 points of the best accuracy. The report contains the
    audit of the chosen model. To keep a model, run `fairgrad fit` with the same options.
    """
    from fairgrad.cli.request import read_request  # noqa: PLC0415 - keeps --help quick

    columns, settings, target = read_request(given)
    from fairgrad.cli import terminal  # noqa: PLC0415 - after the quick checks
    from fairgrad.cli.folder import REPORT  # noqa: PLC0415 - as above
    from fairgrad.cli.outcome import fit_table  # noqa: PLC0415 - PyTorch
    from fairgrad.tables.reading import table_name  # noqa: PLC0415 - as above

    out, as_json = given["out"], given["as_json"]
    progress = terminal.no_progress if as_json else terminal.progress
    outcome = fit_table(given, columns, settings, as_frontier=True, progress=progress)
    if target is not None:
        _write(outcome, target, table_name(given["table"]))
    if as_json:
        terminal.show_json(_as_json(outcome, out))
        return 0
    doubts = (one.message for one in outcome.audit.warnings if one.kind == "desirable")
    terminal.notes((*outcome.notes, *doubts))
    terminal.say(terminal.desirable_line(outcome))
    terminal.screen().print(terminal.points_table(outcome.points, outcome.trained.chosen))
    terminal.say_paragraph(HOW_TO_READ)
    if out is not None:
        terminal.say(f"\nOpen {Path(out) / REPORT} in a browser.")
    return 0


def _write(outcome: AuditedModel, target: Path, table: str) -> None:
    from fairgrad.cli.card import write_findings  # noqa: PLC0415 - charts, where they are asked for
    from fairgrad.cli.folder import write_mark  # noqa: PLC0415 - as above
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above

    with whole_folder(target) as folder:
        write_findings(outcome, folder, table)
        write_mark(folder, SCHEMA, SCHEMA_VERSION, {"settings": outcome.model.settings})


def _as_json(outcome: AuditedModel, out: str | None) -> dict[str, Any]:
    shown = []
    for row in outcome.points.to_dict(orient="records"):
        # JSON has no infinity, which stands for the plain model here.
        is_plain = row["epsilon"] == float("inf")
        shown.append({**row, "epsilon": None if is_plain else row["epsilon"], "plain": is_plain})
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "out": out,
        "desirable": outcome.prepared.desirable,
        "chosen": outcome.trained.chosen,
        "points": shown,
    }
