"""``fairgrad fit``: from a table to a fair, audited model."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.command(short_help="Train a fair model on your table, and audit it.")
@click.argument("table", type=click.Path())
@options.people_options()
@options.feature_options()
@options.training_options()
@click.option(
    "--epsilon",
    type=click.FloatRange(0, 1),
    metavar="NUMBER",
    help="Slack of the constraints [default: 0, exact].",
)
@options.bound_options()
@click.option(
    "--points",
    type=click.IntRange(3),
    metavar="NUMBER",
    default=16,
    show_default=True,
    help="Models to choose from with --max-unfairness or --min-accuracy.",
)
@click.option(
    "--grid",
    type=click.Choice(["paper"]),
    help="Train the paper's 6 combinations and select as the paper does.",
)
@click.option("--no-plain", is_flag=True, help="Train no plain model to compare with.")
@options.tolerance_option()
@click.option("--out", metavar="FOLDER", required=True, help="Folder to write.")
@options.force_option
@options.fail_on_option
@options.json_option
def fit(**given: Any) -> int:
    """Train a fair model on TABLE, a CSV, TSV or Parquet file.

    A fifth of the rows is held out for the audit, another fifth chooses the model (boosted trees
    learn from it as well, unless they are chosen by a bound). Writes the model, the audit as JSON,
    MODEL_CARD.md and report.html into a folder. The sensitive columns
    are no features unless --use-sensitive is given, and are not needed to predict.
    """
    from fairgrad.cli.work.request import request_of  # noqa: PLC0415 - keeps --help quick

    request = request_of(given)
    from fairgrad.cli.work import fit as work  # noqa: PLC0415 - torch, which no mistake waits for

    return work.run(request)
