"""``fairgrad fit``, ``certify``, ``frontier`` and ``demo``: from a table to an audited model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fairgrad.cli import options

if TYPE_CHECKING:
    from fairgrad.cli.request import FitRequest
    from fairgrad.cli.training import AuditedModel

FRONTIER, FRONTIER_VERSION = "fairgrad.frontier", 1
HOW_TO_READ = (
    "Models are chosen by their figures on the validation rows; the test rows only judge them. "
    "plain: trained for accuracy alone. dominated: another model is at least as good in both "
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

PEOPLE = ("target!", "sensitive!", "desirable", "weight")
TRAINING = (
    "measure", "tolerance", "separate", "within", "cost", "use_sensitive", "model", "layers",
    "epochs", "seed", "train_rows", "min_group", "test", "test_size",
)  # fmt: skip
JUDGING = {
    "table", "sensitive", "weight", "measure", "tolerance", "within", "min_group", "ignore_case",
    "as_json", *options.FILE_OPTIONS,
}  # fmt: skip
"""Options of `certify` that have an effect on a model that is trained already."""

READING = ("bins", "drop", "keep", "categorical", "key", "map", "ignore_case")


def folder_out(words: str) -> dict[str, Any]:
    """The option of a command that writes a folder."""
    return {"metavar": "FOLDER", "help": f"Folder to write {words} to."}


@click.command(cls=options.Command, short_help="Train a fair model on a table, and audit it.")
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.takes(
    *PEOPLE, "out!", *TRAINING, "exact", "folds", "force", "fail_on", "json",
    reading=READING, out=folder_out("the model, its audit and report"),
)  # fmt: skip
def fit(**params: Any) -> int:
    """Train a fair model on TABLE, audit it, and write both into a folder.

    \b
      fairgrad fit people.csv --target income --sensitive sex --out model

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, or - for the standard
    input.

    The program trains several models, from exactly fair to unconstrained. It keeps the most
    accurate one that is likely to be judged fair within --tolerance on new rows. --exact keeps the
    exactly fair one. Sensitive columns are not features, and are not needed to predict, unless you
    use --use-sensitive.

    The rows are split at random: 60 % train the models, 20 % choose one (validation) and 20 % audit
    it (test). Tables under 2,000 rows are audited by cross-validation (--folds). If TABLE has more
    rows than --train-rows, models are trained on a weighted sample with all rows of rare groups,
    and the audit counts all rows held out.

    The folder contains the model, the audit (audit.json), the rows of the audit (test_rows.csv),
    MODEL_CARD.md and report.html.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli.request import exit_code  # noqa: PLC0415 - keeps --help quick

    outcome = _trained(params)
    _show(outcome)
    return exit_code(outcome.audit.verdict, outcome.settings.fail_on)


@click.command(
    cls=options.Command, short_help="Train a model that is certified to be fair, or none."
)
@click.argument("table", metavar="[MODEL] TABLE...", nargs=-1, required=True, type=click.Path())
@options.takes(
    "target", "sensitive", *PEOPLE[2:], "out", *TRAINING, "points", "force", "json",
    reading=READING, out=folder_out("the certified model"),
)  # fmt: skip
@click.pass_context
def certify(context: click.Context, /, **params: Any) -> int:
    """Train models on TABLE, and keep one only if it is certified to be fair on new people.

    \b
      fairgrad certify people.csv --target income --sensitive sex --out model
      fairgrad certify model/ new.csv

    The program trains many models, from exactly fair to unconstrained. The validation rows choose
    the most accurate one that is likely to pass. The test rows, which nothing has used before, then
    decide once: the model is certified if it is fair within --tolerance with 95 % confidence.

    If it is not certified, only the audit and the report are written, and the exit code is 1.

    With the folder of a MODEL, no model is trained: this one is judged on TABLE, whose rows must be
    new. Rows of the training table are recognized and refused. The folder records each look, and
    all looks together are wrong with at most 5 % probability.
    """  # noqa: D301 - as above
    from fairgrad.cli.folder import MARK  # noqa: PLC0415 - keeps --help quick

    if (Path(params["table"][0]).expanduser() / MARK).is_file():
        from fairgrad.cli.certify import certify_model  # noqa: PLC0415 - as above

        for name in (name for name in params if name not in JUDGING):
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} has no effect with a model, which is trained already")
        return certify_model({name: params[name] for name in JUDGING})
    for name in ("target", "sensitive", "out"):
        if not params[name]:
            raise click.UsageError(f"Missing option '--{name}'.", context)
    outcome = _trained(params, certify=True)
    _show(outcome)
    certificate = outcome.certificate
    return 0 if certificate is not None and certificate.is_certified else 1


@click.command(cls=options.Command, short_help="Show what fairness costs in accuracy.")
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.takes(
    *PEOPLE, "out", *TRAINING, "points", "max_unfairness", "min_accuracy", "force", "json",
    reading=READING, out=folder_out("the chosen model, frontier.csv and the report"),
)  # fmt: skip
def frontier(**params: Any) -> int:
    """Train models on TABLE from exactly fair to unconstrained, and show what each one costs.

    \b
      fairgrad frontier people.csv --target income --sensitive sex --out folder

    The chosen model is the one that `fairgrad fit` chooses: the most accurate one that is likely to
    be judged fair within --tolerance. --max-unfairness or --min-accuracy choose by another bound.
    """  # noqa: D301 - as above
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick

    outcome = _trained(params, opening="trade-off")
    request = outcome.settings
    if request.as_json:
        output.show_json(_points_json(outcome))
        return 0
    doubts = (one.message for one in outcome.audit.warnings if one.kind == "desirable")
    output.notes((*outcome.notes, *doubts))
    output.say(output.desirable_line(outcome))
    output.screen().print(output.points_table(outcome.points, outcome.trained.chosen))
    output.say_paragraph(HOW_TO_READ)
    _say_report(request)
    return 0


@click.command(short_help="Try it on census data, in less than a minute.")
@options.takes(
    "out", "force", "json", reading=None,
    out={**folder_out("everything"), "default": "fairgrad-demo", "show_default": True},
)  # fmt: skip
def demo(out: str, force: bool, as_json: bool) -> int:
    """Train a plain and a fair model on census data, and show who gains what.

    Needs no network and less than a minute. An earlier demo in the same folder is replaced.
    """
    from fairgrad import datasets  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli import output  # noqa: PLC0415 - as above
    from fairgrad.cli.folder import REPORT, SAMPLE, Provenance, check_folder  # noqa: PLC0415 - as above
    from fairgrad.cli.output import write_outcome  # noqa: PLC0415 - as above
    from fairgrad.cli.prepared import prepare  # noqa: PLC0415 - as above
    from fairgrad.cli.request import FitRequest  # noqa: PLC0415 - as above
    from fairgrad.cli.training import fit_prepared  # noqa: PLC0415 - as above
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above
    from fairgrad.tables.roles import ColumnRoles  # noqa: PLC0415 - as above

    place = Path(out)
    is_earlier_demo = (place / SAMPLE).is_file()
    folder = check_folder(out, force=force or is_earlier_demo)
    roles = ColumnRoles("income", ("sex",), prefix="--")
    request = FitRequest(columns=roles, measures=(DEMO_MEASURE,), points=DEMO_POINTS)
    output.progress("Adult (US census of 1994): who earns more than 50,000 dollars?")
    data = datasets.load("adult")
    table = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    prepared = prepare(table, request)
    outcome = fit_prepared(prepared, request, output.progress, Provenance.of(()))
    with whole_folder(folder) as beside:
        write_outcome(outcome, beside, "adult", DEMO_TITLE)
        table.iloc[prepared.test_rows].to_csv(beside / SAMPLE, index=False)
        files = sorted(file.name for file in beside.iterdir())
    if as_json:
        output.show_json(output.outcome_json(outcome, out, files))
    else:
        output.show_outcome(outcome)
        names = {"folder": place, "report": place / REPORT, "sample": place / SAMPLE}
        output.say(DEMO_NEXT.format(**names))
    return 0


def _trained(
    params: dict[str, Any], *, certify: bool = False, opening: str = "summary"
) -> AuditedModel:
    """Trains and audits, and writes the result into its folder, if there is one."""
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import FitRequest  # noqa: PLC0415 - as above

    request = FitRequest.from_options(params, certify=certify)
    from fairgrad.cli.output import write_outcome  # noqa: PLC0415 - PyTorch, after all quick checks
    from fairgrad.cli.training import fit_table  # noqa: PLC0415 - as above
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import table_name  # noqa: PLC0415 - as above

    outcome = fit_table(request, output.progress)
    if request.folder is not None:
        with whole_folder(request.folder) as folder:
            write_outcome(outcome, folder, table_name(request.table), opening=opening)
    return outcome


def _show(outcome: AuditedModel) -> None:
    """What `fit` and `certify` print."""
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick

    request = outcome.settings
    assert request.folder is not None  # noqa: S101 - required
    files = sorted(file.name for file in request.folder.iterdir())
    if request.as_json:
        output.show_json(output.outcome_json(outcome, str(request.out), files))
        return
    output.show_outcome(outcome)
    output.say(f"\nWritten to {request.out}: {', '.join(files)}")
    _say_report(request)


def _say_report(request: FitRequest) -> None:
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import REPORT  # noqa: PLC0415 - as above

    if request.out is not None:
        output.say(f"Open {Path(request.out) / REPORT} in a browser.")


def _points_json(outcome: AuditedModel) -> dict[str, Any]:
    shown = []
    for row in outcome.points.to_dict(orient="records"):
        # JSON has no infinity, which stands for the plain model here.
        is_plain = row["epsilon"] == float("inf")
        shown.append({**row, "epsilon": None if is_plain else row["epsilon"], "plain": is_plain})
    return {
        "schema": FRONTIER,
        "schema_version": FRONTIER_VERSION,
        "out": outcome.settings.out,
        "desirable": outcome.prepared.desirable,
        "chosen": outcome.trained.chosen,
        "points": shown,
    }
