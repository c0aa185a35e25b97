"""``fairgrad predict``: a model's predictions for a table."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.command(short_help="Predict the rows of a table with a model.")
@click.argument("model", type=click.Path())
@click.argument("table", type=click.Path())
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    help="CSV, TSV or Parquet file to write [default: CSV on the standard output].",
)
@click.option(
    "--column",
    metavar="NAME",
    default="prediction",
    show_default=True,
    help="What to call the column of predictions.",
)
@options.force_option
@options.json_option
def predict(**given: Any) -> int:
    """Predict the rows of TABLE with MODEL, a folder that `fairgrad fit` has written.

    The output has all columns of the table as they are, one of predictions, and the probability of
    the desirable label (of every label, if there are more than two). Sensitive columns are not
    needed.

    Columns may stand in any order, and others are passed over. A column that the model needs and
    the table lacks is an error that names it. A category never seen in training counts as none of
    the known ones; so does a missing value, unless training had some; a missing number counts as
    the median.
    """
    from fairgrad.cli.work import predict as work  # noqa: PLC0415 - keeps --help quick

    return work.run(given)
