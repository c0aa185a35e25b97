"""MODEL_CARD.md: what the model is, what it is for, how fair it is, how to use it."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from fairgrad.audit.text import escape

if TYPE_CHECKING:
    from fairgrad.audit import Audit
    from fairgrad.cli.outcome import Outcome

USE = """\
- The figures below hold for people like those in the table, and for decisions taken exactly as the
  model predicts. Audit it again on the people it is used for: `fairgrad audit FOLDER new.csv`.
- Group fairness compares averages of groups. It promises nothing to a single person, nothing about
  groups that were not named, and nothing about whether the target itself was recorded fairly.
- A fair model may have become so by treating some group worse, not only by treating another better;
  the audit says who gained and who lost.
- Sensitive data is protected by law in many places. This model needed it for training and for the
  audit; check that you may use it so.
"""

TABLES = """\
- Columns may stand in any order; columns the model does not use are passed over.
- A column that the model needs and the table lacks is an error that names it.
- A category never seen in training counts as none of the known ones (as `(other)`, where rare
  values were merged).
- A missing value counts as the training rows had it: a category of its own (a number: the median,
  and a mark) if values were missing there, else none of the known ones (a number: the median).
"""


def model_card(outcome: Outcome, table: str) -> str:
    """The card of a model, in Markdown.

    Args:
        outcome: the model and its audit.
        table: the name of the file it was trained on.
    """
    target = escape(outcome.prepared.columns.target)
    parts = [
        f"# A fair classifier of {target}",
        _opening(outcome, table),
        "## Use it with care",
        USE.rstrip(),
        "## What was asked",
        _asked(outcome),
        "## Data",
        _data(outcome, table),
        "## What a table must hold to predict",
        TABLES.rstrip(),
        _features(outcome),
        outcome.audit.to_markdown().rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def _opening(outcome: Outcome, table: str) -> str:
    audit, measure = outcome.audit, outcome.settings.measure.replace("_", " ")
    accuracy = overall_accuracy(audit)
    plain = ""
    if audit.baseline is not None:
        plain = f"; a plain model has {100 * overall_accuracy(audit.baseline):.1f} %"
    return (
        f"Trained by fairgrad {version('fairgrad')} on {escape(table)} for {measure}. On "
        f"{len(outcome.prepared.test):,} rows held out, {100 * accuracy:.1f} % of its predictions "
        f"are right{plain}. Verdict on {measure}: **{outcome.verdict}**."
    )


def overall_accuracy(audit: Audit) -> float:
    """The share of right predictions over all rows."""
    mass = audit.table.mass.sum(axis=0)
    return float(mass.trace() / mass.sum())


def _asked(outcome: Outcome) -> str:
    words = outcome.settings.in_words(outcome.prepared.columns.sensitive)
    return "\n".join(f"- {name}: {escape(value)}" for name, value in words.items())


def _data(outcome: Outcome, table: str) -> str:
    prepared = outcome.prepared
    columns = prepared.columns
    n_rest, n_test = len(prepared.rest), len(prepared.test)
    trains_on_all = outcome.settings.grows_trees and outcome.trained.frontier is None
    rows = (
        f"{escape(table)}: {n_rest + n_test:,} rows, of which {n_test:,} were held out for the "
        f"test and {'none' if trains_on_all else 'a quarter'} of the others for validation."
    )
    target = (
        f"Target {escape(columns.target)}: {', '.join(escape(v) for v in prepared.labels)}; "
        f"desirable: {escape(prepared.desirable or 'none named')}."
    )
    names = ", ".join(escape(name) for name in columns.sensitive)
    sensitive = (
        f"Sensitive: {names}; features as well, so predicting needs them."
        if columns.use_sensitive
        else f"Sensitive: {names}; no features, and not needed to predict."
    )
    lines = [rows, target, sensitive, *(escape(note) for note in outcome.notes)]
    return "\n".join(f"- {line}" for line in lines)


def _features(outcome: Outcome) -> str:
    listed = ", ".join(f"{escape(f.name)} ({f.kind})" for f in outcome.prepared.features)
    return f"Features: {listed}."
