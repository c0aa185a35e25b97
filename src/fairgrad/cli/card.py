"""What a training leaves in its folder: model, audit, report, frontier, and MODEL_CARD.md.

The card says what the model is, what it is for, how fair it is and how to use it. It opens with the
YAML that the Hugging Face Hub reads, so that it can be the README.md of a model there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

import fairgrad
from fairgrad.audit import bias_and_risks, words
from fairgrad.cli.folder import (
    AUDIT,
    CARD,
    POINTS,
    REPORT,
    ROWS,
    audit_json,
    audit_values,
    write_mark,
)
from fairgrad.columns import without_formulas
from fairgrad.files import write_whole
from fairgrad.text import escape

if TYPE_CHECKING:
    from pathlib import Path

    from fairgrad.audit import Audit
    from fairgrad.cli.training import AuditedModel

NOT_CERTIFIED = "fairgrad.not_certified"
"""The schema of a folder that holds what was found about a model, and not the model."""

HUB_TASK = "tabular-classification"

USE = """\
- Audit it again on the people it is used for: `fairgrad audit FOLDER new.csv`.
- A model can become fair by treating one group worse, not only by treating another better; the
  audit says who gained and who lost.
- Sensitive data is protected by law in many places. This model needed it for training and for the
  audit; check that you may use it for that.
"""

ONCE = """\
The certificate holds for this model, for people like those in the table, and because nothing had
looked at these rows before. Another run on the same rows, with another seed or tolerance until one
passes, would not be one look: it needs new rows.
"""

TABLES = """\
- Columns may be in any order; columns that the model does not use are ignored.
- If a column that the model needs is missing, an error names it.
- A category never seen in training counts as none of the known ones (as `(other)`, where rare
  values were merged).
- A missing category is a category of its own if values were missing in training, else it counts as
  none of the known ones. A missing number is replaced by the median; if values were missing in
  training, the model is also told that it was missing.
- Dates must be written as in the training table.
"""


def model_card(outcome: AuditedModel, table: str) -> str:
    """The card of a model, in Markdown."""
    target = escape(outcome.prepared.columns.target)
    asked = outcome.settings.in_words(outcome.prepared.columns.sensitive)
    features = ", ".join(f"{escape(f.name)} ({f.kind})" for f in outcome.prepared.encoder.features_)
    parts = [
        hub_header(outcome.audit, f"classifier of {outcome.prepared.columns.target}", table),
        f"# A fair classifier of {target}",
        _opening(outcome, table),
        *(f"**{escape(fault)}**" for fault in outcome.faults),
        *_certified(outcome),
        "## Use it with care",
        USE.rstrip(),
        bias_and_risks(audit_values(outcome.audit, outcome.source)),
        "## What was asked",
        "\n".join(f"- {name}: {escape(value)}" for name, value in asked.items()),
        "## Data",
        _data(outcome, table),
        "## Where it comes from",
        "\n".join(f"- {name}: {escape(said)}" for name, said in outcome.source.in_words().items()),
        "## What a table needs for predictions",
        TABLES.rstrip(),
        f"Features: {features}.",
        outcome.audit.to_markdown().rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def hub_header(audit: Audit, name: str, table: str) -> str:
    """What the Hub asks of a card: task, tags, and the figures of the audit.

    Texts are quoted as JSON has it, which is YAML as well. The licence is left to whoever
    publishes the model.
    """
    figures = [("accuracy", "accuracy", audit.accuracy)] + [
        ("unfairness", f"mean |F|, {finding.measure}, {finding.attribute}", finding.unfairness)
        for finding in audit.findings
        if np.isfinite(finding.unfairness)
    ]
    lines = [
        "---",
        "library_name: fairgrad",
        f"pipeline_tag: {HUB_TASK}",
        f"tags: [fairgrad, fairness, {HUB_TASK}]",
        "metrics: [accuracy]",
        "model-index:",
        f"- name: {_quoted(name)}",
        "  results:",
        "  - task:",
        f"      type: {HUB_TASK}",
        "    dataset:",
        "      type: tabular",
        f"      name: {_quoted(table)}",
        "      split: test",
        "    metrics:",
    ]
    for kind, named, value in figures:
        lines += [
            f"    - type: {kind}",
            f"      name: {_quoted(named)}",
            f"      value: {value:.6g}",
        ]
    return "\n".join([*lines, "---"])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _opening(outcome: AuditedModel, table: str) -> str:
    audit = outcome.audit
    measures = words.conjoined([name.replace("_", " ") for name in outcome.settings.measures])
    trained = f"Trained by fairgrad {fairgrad.__version__} on {escape(table)} for {measures}."
    return f"{trained} **{words.SIGNS[audit.verdict]} {escape(audit.conclusion)}**"


def _certified(outcome: AuditedModel) -> list[str]:
    """What was certified, on which rows."""
    certificate = outcome.certificate
    if certificate is None:
        return []
    return ["## Certificate", escape(certificate.sentence), ONCE.rstrip()]


def _data(outcome: AuditedModel, table: str) -> str:
    prepared, columns = outcome.prepared, outcome.prepared.columns
    n_rows, n_training, n_validation, n_test, n_folds, from_file = prepared.totals
    test = f"{n_test:,} for the test (the audit below)"
    if from_file:
        test = f"the {n_test:,} of another table for the test (the audit below)"
    if n_folds:
        test = f"no other for the test: the audit below is a {n_folds}-fold cross-validation"
    share = "every label of every group has its share in each."
    judged = (
        f"Rows of the audit: {ROWS} names them, counted from 1 below the header, with what was "
        "predicted."
    )
    if outcome.judged is None:  # there may be a billion of them
        share = "they are drawn by a hash of their place in the files."
        judged = (
            "Rows of the audit: `fairgrad audit --held-out` finds them again in the same files; "
            "they were counted, so there is no section of scores."
        )
    rows = (
        f"{escape(table)}: {n_rows:,} rows: {n_training:,} for training, "
        f"{n_validation:,} for validation (to choose the model) and {test}; {share}"
    )
    target = (
        f"Target {escape(columns.target)}: {', '.join(escape(v) for v in prepared.labels)}; "
        f"desirable: {escape(prepared.desirable or 'none named')}."
    )
    names = ", ".join(escape(name) for name in columns.sensitive)
    sensitive = (
        f"Sensitive: {names}; the model looks at them, so predictions need them."
        if columns.use_sensitive
        else f"Sensitive: {names}; not features, and not needed to predict."
    )
    lines = [rows, judged, target, sensitive, *(escape(note) for note in outcome.notes)]
    return "\n".join(f"- {line}" for line in lines)


def _audited_on(outcome: AuditedModel) -> str:
    totals = outcome.prepared.totals
    n = f"{totals.test:,} rows"
    if totals.folds:
        return f"{n}, each predicted by one of {totals.folds} models not trained on it"
    return f"{n} of another table" if totals.from_file else f"{n} held out"


def write_outcome(
    outcome: AuditedModel, folder: Path, table: str, title: str = "", opening: str = "summary"
) -> None:
    """Writes the model, its card, and the audit, report and frontier.

    A model that was to be certified and is not is not written.

    Args:
        outcome: the model and its audit.
        folder: where to write.
        table: what the table is called.
        title: of the report.
        opening: what the report opens with, see `Report`.
    """
    certificate = outcome.certificate
    if certificate is not None and not certificate.is_certified:
        write_mark(folder, NOT_CERTIFIED, 1, {"settings": outcome.model.settings})
    else:
        outcome.model.save(folder)
        (folder / CARD).write_text(model_card(outcome, table), encoding="utf-8")
    from fairgrad.report import Report  # noqa: PLC0415 - charts are loaded where one is drawn

    write_whole(folder / AUDIT, audit_json(outcome.audit, outcome.source, outcome.certificate))
    if outcome.judged is not None:
        # Scores of one model can be computed again; those of cross-validation are nowhere else.
        digits = None if "fold" in outcome.judged else "%.6f"
        rows = without_formulas(outcome.judged)
        rows.to_csv(folder / ROWS, index=False, float_format=digits)
    if outcome.trained.frontier is not None:
        without_formulas(outcome.points).to_csv(folder / POINTS, index=False)
    trained, columns = outcome.trained, outcome.prepared.columns
    asked = {
        "Table": f"{table}, {outcome.prepared.totals.table:,} rows",
        "Predicted": columns.target,
        **outcome.settings.in_words(list(columns.sensitive)),
        "Audited on": _audited_on(outcome),
    }
    asked |= {f"Note {i}": note for i, note in enumerate(outcome.notes, start=1)}
    asked |= outcome.source.in_words()
    report = Report(
        outcome.audit,
        frontier=trained.frontier,
        history=trained.fair,
        chosen=trained.chosen,
        title=title or f"Fairness of predicting {columns.target}",
        asked=asked,
        certificate=outcome.certificate,
        faults=outcome.faults,
        opening=opening,
    )
    report.save(folder / REPORT)
