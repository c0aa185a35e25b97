"""``fairgrad fit``: from a table to a fair, audited model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairgrad.cli import options


@click.command(short_help="Train a fair model on a table, and audit it.")
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.people_options()
@options.feature_options()
@options.reading_options()
@options.judging_options(folds=True)
@options.training_options()
@options.number_option(
    "--epsilon",
    "Largest |F| allowed in training [default: 0, exact fairness].",
    click.FloatRange(0, 1),
)
@options.frontier_options("Number of models for --max-unfairness or --min-accuracy.")
@click.option(
    "--grid",
    type=click.Choice(["paper"]),
    help="Train the paper's 6 combinations and select one by the paper's rule.",
)
@click.option("--no-plain", is_flag=True, help="Do not train a plain model for comparison.")
@options.tolerance_option
@options.certify_option
@options.min_group_option
@click.option("-o", "--out", metavar="FOLDER", required=True, help="Folder to write.")
@options.force_option
@options.fail_on_option
@options.json_option
def fit(**given: Any) -> int:
    """Train a fair model on TABLE: one or more CSV, TSV, Parquet or Excel files, or a folder.

    A dash (-) stands for the standard input.

    The rows are split at random, with the same share of every label of every group: 60 % for
    training, 20 % for validation (to choose the model) and 20 % for the test (to audit it).
    Boosted trees also train on the validation rows, unless --max-unfairness or --min-accuracy
    chooses among them. Tables under 2,000 rows are audited by cross-validation (see --folds).

    With --certify the model is chosen on the validation rows among many, so that it is likely to
    pass, and the test rows, which nothing has looked at, decide once whether it is certified.

    Writes the model, the audit (JSON), the rows it was judged on (CSV), MODEL_CARD.md and
    report.html into a folder. Sensitive columns are not features, and are not needed to predict,
    unless --use-sensitive is given.
    """
    from fairgrad.cli.request import (  # noqa: PLC0415 - keeps --help quick
        UNFAIR_CODE,
        exit_code,
        read_request,
    )

    columns, settings, target = read_request(given)
    assert target is not None  # noqa: S101 - the option is required
    from fairgrad.cli import terminal  # noqa: PLC0415 - after the quick checks
    from fairgrad.cli.card import write_outcome  # noqa: PLC0415 - as above
    from fairgrad.cli.folder import REPORT  # noqa: PLC0415 - as above
    from fairgrad.cli.outcome import fit_table  # noqa: PLC0415 - PyTorch
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import table_name  # noqa: PLC0415 - as above

    progress = terminal.no_progress if given["as_json"] else terminal.progress
    outcome = fit_table(given, columns, settings, progress=progress)
    with whole_folder(target) as folder:
        write_outcome(outcome, folder, table_name(given["table"]))
        files = sorted(file.name for file in folder.iterdir())
    if given["as_json"]:
        terminal.show_json(terminal.outcome_json(outcome, given["out"], files))
    else:
        terminal.show_outcome(outcome)
        terminal.say(f"\nWritten to {given['out']}: {', '.join(files)}")
        terminal.say(f"Open {Path(given['out']) / REPORT} in a browser.")
    if outcome.certificate is not None and not outcome.certificate.is_certified:
        return UNFAIR_CODE
    return exit_code(outcome.verdict, given["fail_on"])
