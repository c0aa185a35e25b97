"""What ``fairgrad data`` does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from fairgrad import datasets
from fairgrad.cli import show
from fairgrad.cli.work.request import columns_of
from fairgrad.datasets.dataset import labelled_dataset
from fairgrad.tables.reading import column_names, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.tables.roles import ColumnRoles


def list_all(*, as_json: bool) -> int:
    """Every data set with its licence and where it lies."""
    entries = datasets.overview()
    if as_json:
        show.show_json(
            {"schema": "fairgrad.data", "datasets": [asdict(entry) for entry in entries]}
        )
        return 0
    table = show.simple_table()
    for name in ("name", "what it is", "licence", "where"):
        table.add_column(name, overflow="fold")
    for entry in entries:
        way = "can be fetched" if entry.fetchable else "to be got by hand"
        table.add_row(*(Text(cell) for cell in _row(entry, way)))
    show.screen().print(table)
    return 0


def fetch(name: str, carrier: str | None, *, as_json: bool) -> int:
    """Fetches into the cache."""
    lines: list[str] = []
    say = lines.append if as_json else show.tell
    files = datasets.fetch(name, carrier=carrier, show=say)
    if as_json:
        paths = [str(path) for path in files]
        show.show_json({"schema": "fairgrad.data.fetch", "files": paths, "notes": lines})
    else:
        for path in files:
            show.say(str(path))
    return 0


def describe(given: Mapping[str, Any]) -> int:
    """A data set of the library, or the user's own table."""
    name = given["name"]
    is_table = name not in datasets.names() and ("." in name or Path(name).exists())
    text = _describe_table(given) if is_table else datasets.describe(name)
    if given["as_json"]:
        show.show_json({"schema": "fairgrad.data.describe", "name": name, "description": text})
    else:
        show.say(text)
    return 0


def _describe_table(given: Mapping[str, Any]) -> str:
    for option in ("target", "sensitive"):
        if not given[option]:
            names = ", ".join(column_names(given["name"]))
            raise ValueError(
                f"--{option} is missing; the columns of {Path(given['name']).name} are {names}"
            )
    columns = columns_of(given)
    columns.check(column_names(given["name"]))
    return _dataset(given["name"], columns).describe()


def _dataset(path: str, columns: ColumnRoles) -> datasets.Dataset:
    wanted = [name for name in column_names(path) if name not in columns.drop]
    table = columns.without_drop().apply(read_table(path, wanted))
    return labelled_dataset(table, Path(path).name)


def _row(entry: datasets.Overview, way: str) -> tuple[str, str, str, str]:
    return entry.name, entry.title, entry.licence, entry.place or way
