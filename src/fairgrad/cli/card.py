"""What a training leaves in its folder: model, audit, report, frontier, and MODEL_CARD.md.

The card says what the model is, what it is for, how fair it is and how to use it.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from fairgrad.audit import words
from fairgrad.audit.text import escape
from fairgrad.cli.folder import AUDIT, CARD, POINTS, REPORT

if TYPE_CHECKING:
    from pathlib import Path

    from fairgrad.cli.training import AuditedModel

USE = """\
- The figures below hold for people like those in the table, and for decisions taken exactly as the
  model predicts. Audit it again on the people it is used for: `fairgrad audit FOLDER new.csv`.
- Group fairness compares averages of groups. It promises nothing to a single person, nothing about
  groups that were not named, and nothing about whether the target itself was recorded fairly.
- A model can become fair by treating one group worse, not only by treating another better; the
  audit says who gained and who lost.
- Sensitive data is protected by law in many places. This model needed it for training and for the
  audit; check that you may use it for that.
"""

TABLES = """\
- Columns may be in any order; columns that the model does not use are ignored.
- If a column that the model needs is missing, an error names it.
- A category never seen in training counts as none of the known ones (as `(other)`, where rare
  values were merged).
- A missing category is a category of its own if values were missing in training, else it counts as
  none of the known ones. A missing number is replaced by the median; if values were missing in
  training, the model is also told that it was missing.
"""


def model_card(outcome: AuditedModel, table: str) -> str:
    """The card of a model, in Markdown."""
    target = escape(outcome.prepared.columns.target)
    asked = outcome.settings.in_words(outcome.prepared.columns.sensitive)
    features = ", ".join(f"{escape(f.name)} ({f.kind})" for f in outcome.prepared.features)
    parts = [
        f"# A fair classifier of {target}",
        _opening(outcome, table),
        "## Use it with care",
        USE.rstrip(),
        "## What was asked",
        "\n".join(f"- {name}: {escape(value)}" for name, value in asked.items()),
        "## Data",
        _data(outcome, table),
        "## What a table needs for predictions",
        TABLES.rstrip(),
        f"Features: {features}.",
        outcome.audit.to_markdown().rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def _opening(outcome: AuditedModel, table: str) -> str:
    audit = outcome.audit
    measures = words.conjoined([name.replace("_", " ") for name in outcome.settings.measures])
    said = [
        f"Trained by fairgrad {version('fairgrad')} on {escape(table)} for {measures}.",
        f"**{words.SIGNS[audit.verdict]} {escape(audit.conclusion)}**",
        escape(words.impact(audit)),
    ]
    return " ".join(part for part in said if part)


def _data(outcome: AuditedModel, table: str) -> str:
    prepared, columns = outcome.prepared, outcome.prepared.columns
    n_rest, n_test = len(prepared.rest), len(prepared.test)
    n_training, n_validation = prepared.n_training, n_rest - prepared.n_training
    if outcome.settings.grows_trees and outcome.trained.frontier is None:
        n_training, n_validation = n_rest, 0
    rows = (
        f"{escape(table)}: {n_rest + n_test:,} rows: {n_training:,} for training, "
        f"{n_validation:,} for validation (to choose the model) and {n_test:,} for the test (the "
        "audit below); every label of every group has its share in each."
    )
    target = (
        f"Target {escape(columns.target)}: {', '.join(escape(v) for v in prepared.labels)}; "
        f"desirable: {escape(prepared.desirable or 'none named')}."
    )
    names = ", ".join(escape(name) for name in columns.sensitive)
    sensitive = (
        f"Sensitive: {names}; also features, so predictions need them."
        if columns.use_sensitive
        else f"Sensitive: {names}; not features, and not needed to predict."
    )
    lines = [rows, target, sensitive, *(escape(note) for note in outcome.notes)]
    return "\n".join(f"- {line}" for line in lines)


def write_outcome(outcome: AuditedModel, folder: Path, table: str, title: str = "") -> None:
    """Writes the model, its card and all that was found."""
    outcome.model.save(folder)
    (folder / CARD).write_text(model_card(outcome, table), encoding="utf-8")
    write_findings(outcome, folder, table, title)


def write_findings(outcome: AuditedModel, folder: Path, table: str, title: str = "") -> None:
    """Writes the audit, the report, and the frontier if there is one."""
    from fairgrad.report import Report  # noqa: PLC0415 - charts are loaded where one is drawn

    outcome.audit.to_json(folder / AUDIT)
    if outcome.trained.frontier is not None:
        outcome.points.to_csv(folder / POINTS, index=False)
    trained, columns = outcome.trained, outcome.prepared.columns
    asked = {
        "Table": f"{table}, {len(outcome.prepared.rest) + len(outcome.prepared.test):,} rows",
        "Predicted": columns.target,
        **outcome.settings.in_words(list(columns.sensitive)),
        "Audited on": f"{len(outcome.prepared.test):,} rows held out",
    }
    asked |= {f"Note {i}": note for i, note in enumerate(outcome.notes, start=1)}
    report = Report(
        outcome.audit,
        frontier=trained.frontier,
        history=trained.fair,
        chosen=trained.chosen,
        title=title or f"Fairness of predicting {columns.target}",
        asked=asked,
    )
    report.save(folder / REPORT)
