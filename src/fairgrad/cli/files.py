"""Writes what a training gave into a folder: model, audit, card, report, and the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.cli.card import model_card
from fairgrad.cli.output import AUDIT, CARD, POINTS, REPORT
from fairgrad.report import Report

if TYPE_CHECKING:
    from pathlib import Path

    from fairgrad.cli.outcome import Outcome


def write_outcome(outcome: Outcome, folder: Path, table: str, title: str = "") -> None:
    """Writes everything.

    Args:
        outcome: the model and its audit.
        folder: to write into.
        table: the name of the file it was trained on.
        title: of the report.
    """
    outcome.model.save(folder)
    outcome.audit.to_json(folder / AUDIT)
    (folder / CARD).write_text(model_card(outcome, table), encoding="utf-8")
    report_of(outcome, table, title).save(folder / REPORT)
    frontier = outcome.trained.frontier
    if frontier is not None:
        frontier.points_.to_csv(folder / POINTS, index=False)


def report_of(outcome: Outcome, table: str, title: str = "") -> Report:
    """The report of a training."""
    trained, columns = outcome.trained, outcome.prepared.columns
    asked = {
        "Table": f"{table}, {len(outcome.prepared.rest) + len(outcome.prepared.test):,} rows",
        "Predicted": columns.target,
        **outcome.settings.in_words(list(columns.sensitive)),
        "Audited on": f"{len(outcome.prepared.test):,} rows held out",
    }
    asked |= {f"Note {i}": note for i, note in enumerate(outcome.notes, start=1)}
    return Report(
        outcome.audit,
        frontier=trained.frontier,
        history=trained.fair,
        chosen=trained.chosen,
        title=title or f"Fairness of predicting {columns.target}",
        asked=asked,
    )
