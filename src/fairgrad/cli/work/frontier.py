"""What ``fairgrad frontier`` does."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.cli import show
from fairgrad.cli.files import report_of
from fairgrad.cli.outcome import outcome_of
from fairgrad.cli.output import AUDIT, MARK, POINTS, REPORT
from fairgrad.cli.training import chosen_of, fit_frontier
from fairgrad.cli.work.fit import read_and_prepare
from fairgrad.files import whole_folder

if TYPE_CHECKING:
    import pandas as pd

    from fairgrad.cli.outcome import Outcome
    from fairgrad.cli.work.request import Request

SCHEMA, SCHEMA_VERSION = "fairgrad.frontier", 1
HOW_TO_READ = (
    "Models are chosen by the validation rows (first figures); the test rows only judge. plain: no "
    "fairness asked. beaten: another model is as good in both and better in one."
)


def run(request: Request) -> int:
    """Trains, shows, writes."""
    settings = request.settings
    tell = show.silence if request.as_json else show.tell
    tell(f"Reading {request.table}")
    prepared = read_and_prepare(request)
    tell(f"Training {settings.points} models")
    frontier = fit_frontier(prepared.rest, prepared.test, settings, prepared.desirable)
    trained = chosen_of(frontier, settings)
    outcome = outcome_of(prepared, settings, trained, request.tolerance)
    if request.folder is not None:
        with whole_folder(request.folder) as beside:
            _write(outcome, beside, request.table_name)
    if request.as_json:
        show.show_json(_as_json(frontier.points_, trained.chosen, request.out))
        return 0
    show.notes(outcome.notes)
    show.screen().print(show.points_table(frontier.points_, trained.chosen))
    show.say(HOW_TO_READ)
    if request.out is not None:
        show.say(f"\nOpen {Path(request.out) / REPORT} in a browser.")
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
