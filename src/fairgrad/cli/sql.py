"""``fairgrad sql``: queries that run where the rows are."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.group(short_help="Print SQL queries that count rows in a warehouse.")
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
    query has one row for each combination of values; `fairgrad audit --counts` audits it.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli.counted import printed_query  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import AuditRequest  # noqa: PLC0415 - as above

    request = AuditRequest.from_options(params, table=(table,))
    request.check_columns()
    click.echo(printed_query(request, dialect), nl=False)
    return 0
