"""What ``fairgrad frontier`` does."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.cli import show
from fairgrad.cli.files import report_of
from fairgrad.cli.outcome import outcome_of
from fairgrad.cli.output import AUDIT, MARK, POINTS, REPORT, check_folder, whole_folder
from fairgrad.cli.reading import column_names
from fairgrad.cli.training import chosen_of, fit_frontier
from fairgrad.cli.work.fit import read_and_prepare
from fairgrad.cli.work.given import columns_of, settings_of, tolerance_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from fairgrad.cli.outcome import Outcome

SCHEMA, SCHEMA_VERSION = "fairgrad.frontier", 1


def run(given: Mapping[str, Any]) -> int:
    """Trains, shows, writes."""
    settings, columns = settings_of(given), columns_of(given)
    folder = None if given["out"] is None else check_folder(given["out"], force=given["force"])
    tell = (lambda _: None) if given["as_json"] else show.tell
    columns.check(column_names(given["table"]))
    tell(f"Reading {given['table']}")
    prepared = read_and_prepare(given["table"], columns, settings)
    tell(f"Training {settings.points} models")
    frontier = fit_frontier(prepared.rest, prepared.test, settings, prepared.desirable)
    trained = chosen_of(frontier, settings)
    outcome = outcome_of(prepared, settings, trained, tolerance_of(given))
    if folder is not None:
        with whole_folder(folder) as beside:
            _write(outcome, beside, Path(given["table"]).name)
    if given["as_json"]:
        show.show_json(_as_json(frontier.points_, trained.chosen, given["out"]))
        return 0
    show.notes(outcome.notes)
    show.screen().print(show.points_table(frontier.points_, trained.chosen))
    show.screen().print(
        "Models are chosen by the validation rows; the test rows only judge. plain: no fairness "
        "asked. beaten: another model is as good in both and better in one.",
        style="dim",
    )
    if folder is not None:
        show.screen().print(f"\nOpen {Path(given['out']) / REPORT} in a browser.", markup=False)
    return 0


def _write(outcome: Outcome, folder: Path, table: str) -> None:
    frontier = outcome.trained.frontier
    assert frontier is not None  # noqa: S101 - it was just trained
    frontier.points_.to_csv(folder / POINTS, index=False)
    outcome.audit.to_json(folder / AUDIT)
    report_of(outcome, table).save(folder / REPORT)
    known = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "fairgrad_version": version("fairgrad"),
    }
    text = json.dumps(known | {"settings": outcome.model.settings}, ensure_ascii=False, indent=2)
    (folder / MARK).write_text(text + "\n", encoding="utf-8")


def _as_json(points: pd.DataFrame, chosen: int | None, out: str | None) -> dict[str, Any]:
    rows = points.to_dict(orient="records")
    # JSON has no infinity, which stands for the plain model here.
    shown = [
        {**row, "epsilon": None, "plain": True}
        if row["epsilon"] == float("inf")
        else {**row, "plain": False}
        for row in rows
    ]
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "out": out,
        "chosen": chosen,
        "points": shown,
    }
