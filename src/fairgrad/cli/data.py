"""``fairgrad data``: data sets to try things on, and a description of your own table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group(short_help="List, download and describe data sets.")
def data() -> None:
    """List, download and describe the paper's data sets; describe your own tables."""


@data.command("list", short_help="List the data sets and where they are.")
@options.json_option
def list_all(as_json: bool) -> int:
    """List the data sets, their licences, and where a copy of each is."""
    from fairgrad import datasets  # noqa: PLC0415 - keeps --help quick
    from fairgrad.audit.text import FittedTable  # noqa: PLC0415 - as above
    from fairgrad.cli import terminal  # noqa: PLC0415 - as above

    entries = datasets.overview()
    if as_json:
        listed = [asdict(entry) for entry in entries]
        terminal.show_json({"schema": "fairgrad.data", "datasets": listed})
        return 0
    rows = [
        [entry.name, entry.title, entry.licence, entry.place or _how(entry.fetchable)]
        for entry in entries
    ]
    heads = ["name", "description", "licence", "location"]
    table = FittedTable("Data sets", heads, rows, texts=4)
    terminal.screen().print(table)
    return 0


def _how(fetchable: bool) -> str:
    return "can be fetched" if fetchable else "obtain it yourself"


@data.command(short_help="Download a data set into the cache.")
@click.argument("name")
@click.option("--carrier", help="Source to download from, such as publisher [default: try all].")
@options.json_option
def fetch(name: str, carrier: str | None, as_json: bool) -> int:
    """Download the data set NAME into the cache; its hash is checked."""
    from fairgrad import datasets  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli import terminal  # noqa: PLC0415 - as above

    lines: list[str] = []
    files = datasets.fetch(name, carrier=carrier, show=lines.append if as_json else terminal.inform)
    paths = [str(path) for path in files]
    if as_json:
        terminal.show_json({"schema": "fairgrad.data.fetch", "files": paths, "notes": lines})
    else:
        terminal.say("\n".join(paths))
    return 0


@data.command(cls=options.Command, short_help="Describe a data set, or your own table.")
@click.argument("name", metavar="NAME|TABLE")
@options.people_options(required=False)
@options.json_option
@options.reading_options("bins", "drop", "keep", "categorical")
def describe(**params: Any) -> int:
    """Describe a data set, or your own TABLE: rows, labels, groups, groups too small to trust.

    For a table, --target and --sensitive are needed.
    """
    from fairgrad import datasets  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli import terminal  # noqa: PLC0415 - as above

    name = params["name"]
    is_table = name not in datasets.names() and ("." in name or name == "-" or Path(name).exists())
    text = _describe_table(params) if is_table else datasets.describe(name)
    if params["as_json"]:
        terminal.show_json({"schema": "fairgrad.data.describe", "name": name, "description": text})
    else:
        terminal.say(text)
    return 0


def _describe_table(params: Mapping[str, Any]) -> str:
    from fairgrad.cli.request import read_columns, read_options  # noqa: PLC0415 - keeps --help quick
    from fairgrad.datasets.dataset import labelled_dataset  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import (  # noqa: PLC0415 - as above
        column_names,
        read_table,
        table_name,
    )

    path, reading = params["name"], read_options(params)
    names, title = column_names(path, reading), table_name(path)
    for option in ("target", "sensitive"):
        if not params[option]:
            raise ValueError(
                f"--{option} is missing; the columns of {title} are {', '.join(names)}"
            )
    columns = read_columns(params)
    columns.check(names)
    wanted = [name for name in names if name not in columns.drop]
    table = columns.without_drop().apply(read_table(path, wanted, options=reading))
    return labelled_dataset(table, title).describe()
