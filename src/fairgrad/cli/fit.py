"""``fairgrad fit``, ``certify``, ``frontier`` and ``demo``: from a table to an audited model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from fairgrad.cli.outcome import AuditedModel
    from fairgrad.cli.request import FitRequest

FRONTIER, FRONTIER_VERSION = "fairgrad.frontier", 1
HOW_TO_READ = (
    "Models are chosen by their figures on the validation rows; the test rows only judge them. "
    "baseline: trained for accuracy alone. dominated: another model is at least as good in both "
    "figures, and better in one."
)


DEMO_POINTS = 12
DEMO_MEASURE = "demographic_parity"
"""The measure for which this number of rows settles the verdict of both models."""

DEMO_TITLE = "Who earns more than 50,000 dollars? A plain and a fair model of census data"
DEMO_NEXT = """\
A model that is fair by one measure can be unfair by another: choose the measure first.

Open {report} in a browser: the frontier, the rates of every group, who gained.
Next:
  fairgrad predict {folder} {sample} -o predictions.csv
  fairgrad audit {folder} {sample}
  fairgrad fit your.csv --target COLUMN --sensitive COLUMN --out model"""


@click.command(cls=options.Command, short_help="Train a fair model on a table, and audit it.")
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.people_options()
@options.training_options
@options.tolerance_option
@click.option(
    "--exact",
    is_flag=True,
    help="Train for exact fairness (epsilon 0), whatever it costs in accuracy.",
)
@options.min_group_option
@options.test_options
@options.folds_option
@click.option(
    "--no-baseline", is_flag=True, help="Do not compare with a model trained for accuracy alone."
)
@options.out_option("FOLDER", "Folder to write the model, its audit and report to.", required=True)
@options.force_option
@options.fail_on_option
@options.json_option
@options.reading_options("bins", "drop", "keep", "categorical", "key")
def fit(**params: Any) -> int:
    """Train a fair model on TABLE: one or more CSV, TSV, Parquet or Excel files, or a folder.

    A dash (-) stands for the standard input.

    Trains several models, from exactly fair to unconstrained, and returns the most accurate one
    that is likely to be judged fair within --tolerance on new rows. --exact returns the exactly
    fair one.

    The rows are split at random, with the same share of every label of every group: 60 % to train,
    20 % to choose the model (validation) and 20 % to audit it (test). Tables under 2,000 rows are
    audited by cross-validation (see --folds).

    If TABLE has more rows than --train-rows, the models are trained on a sample: all rows of rare
    groups, and a share of the others, with weights that correct for it. The audit still counts all
    rows held out.

    Writes the model, the audit (JSON), the rows it was judged on (CSV), MODEL_CARD.md and
    report.html into a folder. Sensitive columns are not features, and are not needed to predict,
    unless you use --use-sensitive.
    """
    from fairgrad.cli.request import FitRequest, exit_code  # noqa: PLC0415 - keeps --help quick

    request = FitRequest.from_options(params)
    outcome = _train(request)
    _show(outcome, request, _write(outcome, request))
    return exit_code(outcome.verdict, request.fail_on)


@click.command(
    cls=options.Command, short_help="Train a model that is certified to be fair, or none."
)
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.people_options()
@options.training_options
@options.tolerance_option
@options.min_group_option
@options.test_options
@options.points_option
@options.out_option("FOLDER", "Folder to write the certified model to.", required=True)
@options.force_option
@options.json_option
@options.reading_options("bins", "drop", "keep", "categorical", "key")
def certify(**params: Any) -> int:
    """Train models on TABLE, and keep one only if it is certified to be fair on new people.

    Trains many models, from exactly fair to unconstrained, and chooses on the validation rows the
    most accurate one that is likely to pass. The test rows, which nothing has used before, then
    decide once: the model is certified if it is fair within --tolerance with 95 % confidence.

    If it is not certified, only the audit and the report are written, and the exit code is 1.
    """
    from fairgrad.cli.request import UNFAIR_CODE, FitRequest  # noqa: PLC0415 - keeps --help quick

    request = FitRequest.from_options(params, certify=True)
    outcome = _train(request)
    _show(outcome, request, _write(outcome, request))
    certificate = outcome.certificate
    return 0 if certificate is not None and certificate.is_certified else UNFAIR_CODE


@click.command(cls=options.Command, short_help="Show what fairness costs in accuracy.")
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.people_options()
@options.training_options
@options.tolerance_option
@options.min_group_option
@options.test_options
@options.points_option
@options.bound_options
@options.out_option("FOLDER", "Folder to write the chosen model, frontier.csv and the report to.")
@options.force_option
@options.json_option
@options.reading_options("bins", "drop", "keep", "categorical", "key")
def frontier(**params: Any) -> int:
    """Train models on TABLE from exactly fair to unconstrained, and show what each one costs.

    The chosen model is the one that `fairgrad fit` chooses: the most accurate one that is likely to
    be judged fair within --tolerance. --max-unfairness or --min-accuracy choose by another bound.
    """
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import FitRequest  # noqa: PLC0415 - as above

    request = FitRequest.from_options(params)
    outcome = _train(request)
    _write(outcome, request)
    if request.as_json:
        terminal.show_json(_points_json(outcome, request.out))
        return 0
    doubts = (one.message for one in outcome.audit.warnings if one.kind == "desirable")
    terminal.notes((*outcome.notes, *doubts))
    terminal.say(terminal.desirable_line(outcome))
    terminal.screen().print(terminal.points_table(outcome.points, outcome.trained.chosen))
    terminal.say_paragraph(HOW_TO_READ)
    _say_report(request)
    return 0


@click.command(short_help="Try it on census data, in less than a minute.")
@options.out_option("FOLDER", "Folder to write.", default="fairgrad-demo", show_default=True)
@options.force_option
@options.json_option
def demo(out: str, force: bool, as_json: bool) -> int:
    """Train a plain and a fair model on census data, and show who gains what.

    Needs no network and less than a minute. An earlier demo in the same folder is replaced.
    """
    from fairgrad import datasets  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli import terminal  # noqa: PLC0415 - as above
    from fairgrad.cli.card import write_outcome  # noqa: PLC0415 - as above
    from fairgrad.cli.folder import REPORT, SAMPLE, check_folder  # noqa: PLC0415 - as above
    from fairgrad.cli.outcome import audit_models  # noqa: PLC0415 - as above
    from fairgrad.cli.prepared import prepare  # noqa: PLC0415 - as above
    from fairgrad.cli.request import ModelSettings  # noqa: PLC0415 - as above
    from fairgrad.cli.training import train  # noqa: PLC0415 - as above
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above
    from fairgrad.tables.roles import ColumnRoles  # noqa: PLC0415 - as above

    place = Path(out)
    is_earlier_demo = (place / SAMPLE).is_file()
    folder = check_folder(out, force=force or is_earlier_demo)
    settings = ModelSettings((DEMO_MEASURE,), points=DEMO_POINTS)
    terminal.progress("Adult (US census of 1994): who earns more than 50,000 dollars?")
    data = datasets.load("adult")
    table = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    prepared = prepare(table, ColumnRoles("income", ("sex",)), settings)
    trained = train(prepared, settings, terminal.progress)
    terminal.progress(
        "Auditing the most accurate model that is likely to be fair, on the test rows"
    )
    outcome = audit_models(prepared, settings, trained)
    with whole_folder(folder) as beside:
        write_outcome(outcome, beside, "adult", DEMO_TITLE)
        table.iloc[prepared.test_rows].to_csv(beside / SAMPLE, index=False)
        files = sorted(file.name for file in beside.iterdir())
    if as_json:
        terminal.show_json(terminal.outcome_json(outcome, out, files))
    else:
        terminal.show_outcome(outcome)
        names = {"folder": place, "report": place / REPORT, "sample": place / SAMPLE}
        terminal.say(DEMO_NEXT.format(**names))
    return 0


def _train(request: FitRequest) -> AuditedModel:
    """Trains and audits, with progress on the error output."""
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.outcome import fit_table  # noqa: PLC0415 - PyTorch

    return fit_table(request, terminal.progress)


def _write(outcome: AuditedModel, request: FitRequest) -> list[str]:
    """Writes the result into its folder, if there is one, and gives the names of the files."""
    from fairgrad.cli.card import write_outcome  # noqa: PLC0415 - charts, where they are asked for
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import table_name  # noqa: PLC0415 - as above

    if request.folder is None:
        return []
    with whole_folder(request.folder) as folder:
        write_outcome(outcome, folder, table_name(request.table))
        return sorted(file.name for file in folder.iterdir())


def _show(outcome: AuditedModel, request: FitRequest, files: list[str]) -> None:
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick

    if request.as_json:
        terminal.show_json(terminal.outcome_json(outcome, str(request.out), files))
        return
    terminal.show_outcome(outcome)
    terminal.say(f"\nWritten to {request.out}: {', '.join(files)}")
    _say_report(request)


def _say_report(request: FitRequest) -> None:
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import REPORT  # noqa: PLC0415 - as above

    if request.out is not None:
        terminal.say(f"Open {Path(request.out) / REPORT} in a browser.")


def _points_json(outcome: AuditedModel, out: str | None) -> dict[str, Any]:
    shown = []
    for row in outcome.points.to_dict(orient="records"):
        # JSON has no infinity, which stands for the baseline here.
        is_plain = row["epsilon"] == float("inf")
        shown.append({**row, "epsilon": None if is_plain else row["epsilon"], "plain": is_plain})
    return {
        "schema": FRONTIER,
        "schema_version": FRONTIER_VERSION,
        "out": out,
        "desirable": outcome.prepared.desirable,
        "chosen": outcome.trained.chosen,
        "points": shown,
    }
