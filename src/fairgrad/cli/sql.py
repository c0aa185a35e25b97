"""``fairgrad sql``: queries that run where the rows are."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.group(
    cls=options.CommandGroup, short_help="Print SQL queries that count or draw rows in a warehouse."
)
def sql() -> None:
    """Print SQL queries for a warehouse, so that its rows stay there."""


@sql.command(cls=options.Command, short_help="Print the query that counts rows for an audit.")
@click.argument("table")
@options.takes(
    "dialect!", "target", "sensitive", "prediction", "score", "threshold", "baseline",
    "weight", "time", "period", "bins", reading=None,
)  # fmt: skip
def counts(table: str, dialect: str, **params: Any) -> int:
    """Print the query that counts the rows of TABLE for an audit.

    \b
      fairgrad sql counts bank.decisions --dialect postgres
          --target repaid --prediction decision --sensitive sex
      fairgrad audit --counts answer.csv
          --target repaid --prediction decision --sensitive sex

    TABLE is the name of the table in the warehouse. The answer to the query has one row for each
    combination of values; `fairgrad audit --counts` audits it. Without predictions the query counts
    labels and groups, for `fairgrad sql sample`.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli.counted import count_query  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import AuditRequest  # noqa: PLC0415 - as above
    from fairgrad.tables.scan import ScanError  # noqa: PLC0415 - as above

    request = AuditRequest.from_options(params, table=(table,))
    if request.prediction or request.score or not (request.target and request.sensitive):
        request.check_columns()
    try:
        click.echo(count_query(request).sql(table, dialect), nl=False)
    except ScanError as reason:
        raise ValueError(f"fairgrad sql: {reason}") from None
    return 0


@sql.command(cls=options.Command, short_help="Print the query that draws rows to train on.")
@click.argument("table")
@options.takes(
    "dialect!", "target!", "sensitive!", "answer!", "train_rows", "test_size", "seed",
    reading=("bins", "key"),
    train_rows="Maximum number of rows to draw.",
    test_size={
        "type": click.FloatRange(0, 1, max_open=True),
        "help": "Share of the rows that are not drawn, to audit the model on.",
        "default": 0.2,
        "show_default": True,
    },
)  # fmt: skip
def sample(table: str, dialect: str, **params: Any) -> int:
    """Print the query that draws a sample of TABLE to train on.

    \b
      fairgrad sql counts bank.loans --dialect postgres
          --target repaid --sensitive sex
      fairgrad sql sample bank.loans --dialect postgres
          --target repaid --sensitive sex --key id --counts answer.csv
      fairgrad fit sample.csv --target repaid --sensitive sex
          --drop id --weight fairgrad_weight --out model

    The query draws all rows of rare groups and a share of the others: the rows that `fairgrad fit`
    draws from the same table with the same --key, --seed and --test-size. The column
    fairgrad_weight says how many rows each row stands for.

    TABLE is the name of the table in the warehouse. --counts is the answer to the first query.
    """  # noqa: D301 - as above
    from fairgrad.cli.counted import read_counts  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import read_columns, read_options  # noqa: PLC0415 - as above
    from fairgrad.tables.sample import cell_query, planned  # noqa: PLC0415 - as above
    from fairgrad.tables.sql import SampleQuery  # noqa: PLC0415 - as above

    columns, key = read_columns(params), tuple(params["key"])
    if not key:
        raise ValueError("--key is missing; name the columns that identify a row")
    counted = (params["counts"],)
    answer = read_counts(counted, columns, {}, read_options(params, counted))
    hashed = {"key": key, "seed": params["seed"], "test": params["test_size"]}
    drawn = planned(
        SampleQuery(cell_query(columns), **hashed), answer, columns, params["train_rows"]
    )
    click.echo(drawn.sql(table, dialect), nl=False)
    return 0
