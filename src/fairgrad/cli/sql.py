"""``fairgrad sql``: queries that run where the rows are."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.group(short_help="Print SQL queries that count or draw rows in a warehouse.")
def sql() -> None:
    """Print SQL queries for a warehouse, so that its rows stay there."""


@sql.command(cls=options.Command, short_help="Print the query that counts rows for an audit.")
@click.argument("table")
@options.dialect_option
@options.people_options(required=False)
@options.prediction_options
@options.column_option("--baseline", "Column of another system's predictions to compare with.")
@options.column_option("--weight", "Column of sample weights.")
@options.time_options
@options.reading_options("bins")
def counts(table: str, dialect: str, **params: Any) -> int:
    """Print the query that counts the rows of TABLE for an audit.

    \b
      fairgrad sql counts bank.decisions --dialect postgres --target repaid --prediction decision
          --sensitive sex
      fairgrad audit --counts answer.csv --target repaid --prediction decision --sensitive sex

    TABLE is the name of the table in the warehouse, or a file that duckdb reads. The answer to the
    query has one row for each combination of values; `fairgrad audit --counts` audits it. Without
    predictions the query counts labels and groups, for `fairgrad sql sample`.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli.counted import printed_query  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import AuditRequest  # noqa: PLC0415 - as above

    request = AuditRequest.from_options(params, table=(table,))
    if request.prediction or request.score or not (request.target and request.sensitive):
        request.check_columns()
    click.echo(printed_query(request, dialect), nl=False)
    return 0


@sql.command(cls=options.Command, short_help="Print the query that draws rows to train on.")
@click.argument("table")
@options.dialect_option
@options.people_options()
@click.option(
    "--counts",
    metavar="FILE",
    help="Answer of `fairgrad sql counts` for the same target and sensitive columns.",
)
@options.train_rows_option
@options.number_option(
    "--test-size",
    "Share of the rows that are not drawn, to audit the model on [default: 0.2].",
    click.FloatRange(0, 1, max_open=True),
    default=0.2,
)
@options.number_option(
    "--seed", "Seed of the sample.", click.IntRange(0), default=0, show_default=True
)
@options.reading_options("bins", "key")
def sample(table: str, dialect: str, **params: Any) -> int:
    """Print the query that draws a sample of TABLE to train on.

    \b
      fairgrad sql counts bank.loans --dialect postgres --target repaid --sensitive sex
      fairgrad sql sample bank.loans --dialect postgres --target repaid --sensitive sex
          --key id --counts answer.csv

    The query draws all rows of rare groups and a share of the others: the rows that `fairgrad fit`
    draws from the same table with the same --key, --seed and --test-size. The column
    fairgrad_weight says how many rows each row stands for.

    TABLE is the name of the table in the warehouse, which needs --counts, or a file that duckdb
    reads.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli.counted import printed_sample  # noqa: PLC0415 - keeps --help quick

    click.echo(printed_sample(table, dialect, params), nl=False)
    return 0
