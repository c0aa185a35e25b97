"""Options as click gives them -> what the rest of the program takes, refused early if wrong.

Nothing here imports torch: who mistypes a name of a column learns it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.cli import trees
from fairgrad.cli.output import check_folder
from fairgrad.cli.settings import Settings
from fairgrad.tables.reading import column_names
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    from collections.abc import Mapping

UNFAIR = 1
"""The exit code of --fail-on."""


@dataclass(frozen=True)
class Request:
    """What is to be trained on what, and where it goes; checked.

    Attributes:
        table: path of the table.
        columns: which column plays which part.
        settings: how to train.
        tolerance: what the audit still calls fair.
        out: the folder as the user wrote it; None for none.
        folder: the same, absolute.
        as_json: whether to print JSON.
        with_plain: whether to train a plain model, too.
        fail_on: the verdict that means exit code 1.
    """

    table: str
    columns: ColumnRoles
    settings: Settings
    tolerance: Any
    out: str | None
    folder: Path | None
    as_json: bool
    with_plain: bool = True
    fail_on: str | None = None

    @property
    def table_name(self) -> str:
        """The file's name without its folders, which are nobody else's business."""
        return Path(self.table).name


def request_of(given: Mapping[str, Any]) -> Request:
    """Everything that can be refused before the table is read.

    Raises:
        ValueError: naming the option, and what to do.
    """
    settings, columns, out = settings_of(given), columns_of(given), given["out"]
    folder = None if out is None else check_folder(out, force=given["force"])
    if settings.grows_trees:
        trees.check_installed()
    columns.check(column_names(given["table"]))
    return Request(
        table=given["table"],
        columns=columns,
        settings=settings,
        tolerance=tolerance_of(given),
        out=out,
        folder=folder,
        as_json=given["as_json"],
        with_plain=not given.get("no_plain", False),
        fail_on=given.get("fail_on"),
    )


def columns_of(given: Mapping[str, Any]) -> ColumnRoles:
    """Which column plays which part."""
    return ColumnRoles(
        target=given["target"],
        sensitive=tuple(dict.fromkeys(given["sensitive"])),
        drop=tuple(given.get("drop", ())),
        categorical=tuple(given.get("categorical", ())),
        bins=dict(given.get("bins", ())),
        positive=given.get("positive"),
        use_sensitive=given.get("use_sensitive", False),
        prefix="--",
    )


def settings_of(given: Mapping[str, Any]) -> Settings:
    """How to train."""
    return Settings(
        measure=given["measure"],
        epsilon=given.get("epsilon"),
        max_unfairness=given.get("max_unfairness"),
        min_accuracy=given.get("min_accuracy"),
        separate=given["separate"],
        model=given["model"],
        hidden=given["hidden"],
        epochs=given["epochs"],
        batch_size=given["batch_size"],
        paper_grid=given.get("grid") == "paper",
        points=given["points"],
        seed=given["seed"],
    )


def tolerance_of(given: Mapping[str, Any]) -> Any:
    """As the audit takes it: the 80 % rule speaks of demographic parity alone."""
    tolerance = given["tolerance"]
    return {"demographic_parity": tolerance} if tolerance == "four_fifths" else tolerance


def exit_code(verdict: str, fail_on: str | None) -> int:
    """1 where the verdict is the one the user asked to fail on."""
    return UNFAIR if fail_on is not None and verdict == fail_on else 0
