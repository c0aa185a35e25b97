"""``fairgrad audit``: how fair predictions are, and how sure that is."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.command(short_help="Audit a model, or predictions of any system.")
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", required=False, metavar="[TABLE]", type=click.Path())
@options.people_options(required=False)
@click.option(
    "--prediction", metavar="COLUMN", help="Column of predictions, if the table holds them."
)
@click.option(
    "--baseline", metavar="COLUMN", help="Column of another system's predictions, to compare with."
)
@click.option(
    "--score",
    metavar="COLUMN",
    help="Column of probabilities of the desirable value, to check the threshold.",
)
@click.option("--weight", metavar="COLUMN", help="Column of sample weights.")
@click.option(
    "--measure",
    type=click.Choice(options.MEASURES),
    metavar="MEASURE",
    multiple=True,
    help=f"Measure to judge by, of {', '.join(options.MEASURES)}; repeat it for several "
    "[default: all but the last].",
)
@options.tolerance_option()
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    default=0.95,
    show_default=True,
    help="Of every interval and verdict.",
)
@click.option("--report", metavar="FILE", help="Write the report, an HTML file.")
@click.option("-o", "--out", metavar="FILE", help="Write the audit as a JSON file.")
@options.force_option
@options.fail_on_option
@options.json_option
def audit(**given: Any) -> int:
    """Audit a model on a table, or a table that already has predictions of any system.

    \b
      fairgrad audit model/ new.csv
      fairgrad audit scored.csv --target y --prediction y_hat --sensitive sex

    With a model, target and sensitive columns are those it was fitted with, unless --sensitive
    names others, and --fail-on looks at the measure it was trained for, unless --measure names
    others.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli.work import audit as work  # noqa: PLC0415 - keeps --help quick

    return work.run(given)
