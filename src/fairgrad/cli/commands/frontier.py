"""``fairgrad frontier``: what fairness costs in accuracy, from exact to none."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.command(short_help="Show what fairness costs in accuracy.")
@click.argument("table", type=click.Path())
@options.people_options()
@options.feature_options()
@options.training_options()
@options.bound_options()
@click.option(
    "--points",
    type=click.IntRange(3),
    metavar="NUMBER",
    default=16,
    show_default=True,
    help="Models to train.",
)
@options.tolerance_option()
@click.option("--out", metavar="FOLDER", help="Folder to write frontier.csv and report.html into.")
@options.force_option
@options.json_option
def frontier(**given: Any) -> int:
    """Train models from exact fairness to none at all on TABLE, and show what each step costs.

    With --max-unfairness or --min-accuracy the model that fits is marked, by its figures on
    validation rows; else the fairest within 3 points of the best accuracy. The report audits that
    one. To keep a model, give `fairgrad fit` the same options.
    """
    from fairgrad.cli.work.request import request_of  # noqa: PLC0415 - keeps --help quick

    request = request_of(given)
    from fairgrad.cli.work import frontier as work  # noqa: PLC0415 - torch, which no mistake waits for

    return work.run(request)
