"""Writes what a training gave into a folder: model, audit, card, report, and the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.cli.card import model_card
from fairgrad.cli.folder import AUDIT, CARD, POINTS, REPORT
from fairgrad.cli.history import history_frame
from fairgrad.report import Report

if TYPE_CHECKING:
    from pathlib import Path

    from fairgrad.cli.training import AuditedModel


def write_outcome(outcome: AuditedModel, folder: Path, table: str, title: str = "") -> None:
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


def report_of(outcome: AuditedModel, table: str, title: str = "") -> Report:
    """The report of a training."""
    trained, columns = outcome.trained, outcome.prepared.columns
    frontier: Any = None
    if trained.frontier is not None:
        frontier = trained.frontier.report_data("test", trained.chosen)
    asked = {
        "Table": f"{table}, {len(outcome.prepared.rest) + len(outcome.prepared.test):,} rows",
        "Predicted": columns.target,
        **outcome.settings.in_words(list(columns.sensitive)),
        "Audited on": f"{len(outcome.prepared.test):,} rows held out",
    }
    asked |= {f"Note {i}": note for i, note in enumerate(outcome.notes, start=1)}
    return Report(
        outcome.audit,
        frontier=frontier,
        history=history_frame(trained.fair),
        title=title or f"Fairness of predicting {columns.target}",
        asked=asked,
    )
