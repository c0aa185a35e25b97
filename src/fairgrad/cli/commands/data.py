"""``fairgrad data``: data sets to try things on, and one's own table in words."""

from __future__ import annotations

from typing import Any

import click

from fairgrad.cli import options


@click.group(short_help="List, fetch and describe data sets.")
def data() -> None:
    """Data sets of the paper: what there is, fetching it, describing it; also your own tables."""


@data.command("list", short_help="List the data sets and where they lie.")
@options.json_option
def list_all(as_json: bool) -> int:
    """List the data sets, their licences, and where a copy lies."""
    from fairgrad.cli.work import data as work  # noqa: PLC0415 - keeps --help quick

    return work.list_all(as_json=as_json)


@data.command(short_help="Fetch a data set into the cache.")
@click.argument("name")
@click.option("--carrier", help="Where to fetch it from, such as publisher [default: all in turn].")
@options.json_option
def fetch(name: str, carrier: str | None, as_json: bool) -> int:
    """Fetch the data set NAME into the cache; what arrives is checked by its hash."""
    from fairgrad.cli.work import data as work  # noqa: PLC0415 - keeps --help quick

    return work.fetch(name, carrier, as_json=as_json)


@data.command(short_help="Describe a data set, or your own table.")
@click.argument("name", metavar="NAME|TABLE")
@options.people_options(required=False)
@options.feature_options()
@options.json_option
def describe(**given: Any) -> int:
    """Describe a data set, or your own TABLE: rows, labels, groups, groups too small to trust.

    For a table name --target and --sensitive.
    """
    from fairgrad.cli.work import data as work  # noqa: PLC0415 - keeps --help quick

    return work.describe(given)
