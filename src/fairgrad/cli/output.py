"""What the program prints and writes: tables that fit the terminal, JSON, and a model's folder.

The folder has the model, its audit, report and frontier, and MODEL_CARD.md. The card opens with the
YAML that the Hugging Face Hub reads, so that it can be the README.md of a model there.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.text import Text

import fairgrad
from fairgrad.cli.folder import AUDIT, CARD, POINTS, REPORT, ROWS, as_json, provenance_words
from fairgrad.columns import without_formulas
from fairgrad.files import write_whole
from fairgrad.progress import ProgressBar
from fairgrad.text import Block, Paragraph, escape, printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pandas as pd

    from fairgrad.audit import Audit, AuditComparison, ImpactTable, Monitor
    from fairgrad.cli.request import AuditRequest
    from fairgrad.cli.training import AuditedModel

WIDTH = 80
FIGURES = ("accuracy", "unfairness")


def screen() -> Console:
    """Where results go; a pipe gets 80 columns, or as many as COLUMNS says."""
    console = Console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, width=WIDTH)


def show_json(values: dict[str, Any]) -> None:
    """Prints plain values as JSON; in ASCII where the output cannot hold every letter."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    text = json.dumps(values, ensure_ascii=not is_unicode, indent=2, allow_nan=False)
    # An unbuffered stream loses the rest of a long text without an error if its reader is gone.
    # At most 4096 bytes are written whole or not at all.
    sys.stdout.writelines(f"{text}\n"[i : i + 1024] for i in range(0, len(text) + 1, 1024))


def is_quiet() -> bool:
    """Whether `fairgrad --quiet` was asked for."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("quiet"))


def shows_progress() -> bool:
    """Whether a person is looking: on a terminal, without --quiet."""
    return sys.stderr.isatty() and not is_quiet()


def inform(message: str) -> None:
    """Says on the error output what was done; results go to the standard output."""
    if not is_quiet():
        Console(stderr=True, highlight=False).print(Text(printable(message), style="dim"))


def progress(message: str) -> None:
    """Says on a terminal what is being done."""
    if shows_progress():
        inform(message)


def progress_bar(total: float, unit: str) -> ProgressBar:
    """A bar on a terminal, if the work lasts: what is being done, and how long it will take."""
    return ProgressBar(total, enabled=None if shows_progress() else False, unit=unit)


def say(text: str) -> None:
    """Prints lines of the result; long ones, such as paths, are not broken."""
    lines = "\n".join(printable(line) for line in text.splitlines())
    screen().print(lines, markup=False, soft_wrap=True)


def say_paragraph(text: str, style: str = "") -> None:
    """Prints a sentence of the result, wrapped to the width of the screen."""
    screen().print(Paragraph(text, style))


def notes(sentences: Iterable[str]) -> None:
    """Says on the error output what the reader should know about the data."""
    console = Console(stderr=True, highlight=False)
    for sentence in sentences:
        console.print(Paragraph(f"Note: {sentence}", "yellow"))


def finish(
    request: AuditRequest,
    result: Audit | AuditComparison | ImpactTable | Monitor,
    values: dict[str, Any],
    title: str,
    asked: dict[str, str],
    *,
    source: dict[str, Any] | None = None,
    shown: dict[str, Any] | None = None,
) -> None:
    """Writes a result to the files that were asked for, and prints it, or JSON.

    Args:
        request: what was asked.
        result: an audit, a comparison, an impact table or a monitor.
        values: the result as plain values; --out writes them, or CSV where it is a table.
        title: of the page (--report).
        asked: what was asked, for people.
        source: what the result rests on, for the page.
        shown: what --json prints, if not the values.
    """
    for kind, path in request.outputs.items():
        if kind == "report":
            from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

            asked |= {} if source is None else provenance_words(source)
            Report(result, asked=asked, title=title).save(path)
        elif path.suffix == ".csv" and hasattr(result, "to_csv"):
            result.to_csv(path)
        else:
            write_whole(path, as_json(values))
    if request.as_json:
        show_json(shown or values)
        return
    screen().print(result.on_terminal(explain=request.explain))
    for path in request.outputs.values():
        inform(f"Written: {path}")


def points_table(points: pd.DataFrame, chosen: int) -> Block:
    """The models of a frontier; which is chosen, and which others dominate."""
    figures = [*FIGURES, "cost"] if "validation_cost" in points else list(FIGURES)
    columns = [f"{rows}_{figure}" for rows in ("validation", "test") for figure in figures]
    lines = []
    for position, row in enumerate(points.to_dict(orient="records")):
        remark = "chosen" if position == chosen else "" if row["on_frontier"] else "dominated"
        epsilon = "plain" if row["epsilon"] == float("inf") else f"{row['epsilon']:.4f}"
        lines.append([epsilon, *(f"{row[name]:.4f}" for name in columns), remark])
    heads = ["epsilon", *figures, *(f"test {figure}" for figure in figures), ""]
    return Block("Accuracy and unfairness (mean |F|) on validation and test rows", heads, lines)


def show_outcome(outcome: AuditedModel) -> None:
    """Prints what is wrong with the model, what it costs, and its audit."""
    notes(outcome.notes)
    for fault in outcome.trained.faults:
        say_paragraph(f"! {fault}", style="bold red")
    screen().print(outcome.audit)
    costs = outcome.mean_costs
    if costs:
        plain = f", with the plain model {costs['plain']:.4f}" if "plain" in costs else ""
        say_paragraph(f"Mean cost of a prediction: {costs['fair']:.4f}{plain}.")


def outcome_json(outcome: AuditedModel, out: str, files: list[str]) -> dict[str, Any]:
    """A model and its audit as plain values."""
    audit, prepared = outcome.audit, outcome.prepared
    return {
        "schema": "fairgrad.fit",
        "schema_version": 1,
        "out": out,
        "files": files,
        "rows": {
            "training_and_validation": len(prepared.rest.y),
            "test": prepared.n_test,
            "folds": len(prepared.folds),
        },
        "desirable": prepared.desirable,
        "accuracy": audit.accuracy,
        "plain_accuracy": None if audit.baseline is None else audit.baseline.accuracy,
        "mean_costs": outcome.mean_costs,
        "settings": outcome.model.settings,
        "verdict": outcome.audit.verdict,
        "conclusion": audit.conclusion,
        "notes": list(outcome.notes),
        "faults": list(outcome.trained.faults),
        "audit": {**audit.to_dict(), "provenance": outcome.source},
    }


HUB_TASK = "tabular-classification"

USE = """\
- Audit it again on the people it is used for: `fairgrad audit FOLDER new.csv`.
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
- A missing category is a separate category if values were missing in training, else it counts as
  none of the known ones. A missing number is replaced by the median; if values were missing in
  training, the model is also told that it was missing.
- Dates must be written as in the training table.
"""


def model_card(outcome: AuditedModel, table: str, facts: dict[str, str]) -> str:
    """The card of a model, in Markdown; `table` is what the table is called."""
    from fairgrad.audit import words  # noqa: PLC0415 - predictions need no SciPy

    audit, target = outcome.audit, outcome.prepared.columns.target
    measures = words.conjoined([name.replace("_", " ") for name in outcome.settings.measures])
    features = ", ".join(f"{escape(f.name)} ({f.kind})" for f in outcome.prepared.encoder.features_)
    sections = [
        hub_header(audit, f"classifier of {target}", table),
        f"# A fair classifier of {escape(target)}",
        f"Trained by fairgrad {fairgrad.__version__} on {escape(table)} for {measures}.",
        *(f"**{escape(fault)}**" for fault in outcome.trained.plain_faults),
        audit.to_markdown().rstrip(),
        "## Use it with care",
        USE.rstrip(),
        "## Bias, risks and limitations",
        "\n".join(f"- {escape(risk)}" for risk in audit.risks),
        "## Data and options",
        "\n".join(f"- {name}: {escape(text)}" for name, text in facts.items()),
        "## What a table needs for predictions",
        TABLES.rstrip(),
        f"Features: {features}.",
    ]
    return "\n\n".join(sections) + "\n"


def hub_header(audit: Audit, name: str, table: str) -> str:
    """What the Hub asks of a card: task, tags, and the figures of the audit.

    It is JSON, which is YAML as well. The publisher of the model adds the licence.
    """
    figures = [("accuracy", "accuracy", audit.accuracy)] + [
        ("unfairness", f"mean |F|, {finding.measure}, {finding.attribute}", finding.unfairness)
        for finding in audit.findings
        if np.isfinite(finding.unfairness)
    ]
    result = {
        "task": {"type": HUB_TASK},
        "dataset": {"type": "tabular", "name": table, "split": "test"},
        "metrics": [
            {"type": kind, "name": named, "value": float(f"{value:.6g}")}
            for kind, named, value in figures
        ],
    }
    header = {
        "library_name": "fairgrad",
        "pipeline_tag": HUB_TASK,
        "tags": ["fairgrad", "fairness", HUB_TASK],
        "metrics": ["accuracy"],
        "model-index": [{"name": name, "results": [result]}],
    }
    return f"---\n{json.dumps(header, ensure_ascii=False, indent=2)}\n---"


def run_facts(outcome: AuditedModel, table: str) -> dict[str, str]:
    """Data, options and origin of a model, for its card and its report."""
    prepared, columns = outcome.prepared, outcome.prepared.columns
    judged = "held out" if outcome.settings.test is None else "of another table"
    if prepared.folds:
        judged = f"each predicted by one of {len(prepared.folds)} models not trained on it"
    named = f"{ROWS} lists them, counted from 1 below the header, with their predictions"
    if outcome.judged is None:  # there may be a billion of them
        named = "`fairgrad audit --held-out` finds them again in the same files"
    needed = "the model uses them to predict" if columns.use_sensitive else "not needed to predict"
    return {
        "Table": f"{table}, {prepared.n_rows:,} rows: {prepared.n_training:,} for training and "
        f"{len(prepared.validation.y):,} to choose the model",
        "Audited on": f"{prepared.n_test:,} rows, {judged}; {named}",
        "Predicted": f"{columns.target}: {', '.join(prepared.labels)}; desirable: "
        f"{prepared.desirable or 'none named'}",
        "Sensitive": f"{', '.join(columns.sensitive)}; {needed}",
        **outcome.settings.in_words(columns.sensitive),
        **{f"Note {i}": note for i, note in enumerate(outcome.notes, start=1)},
        **provenance_words(outcome.source),
    }


def write_outcome(
    outcome: AuditedModel, folder: Path, table: str, title: str = "", opening: str = "summary"
) -> None:
    """Writes the model, its card, and the audit, report and frontier.

    Args:
        outcome: the model and its audit.
        folder: where to write.
        table: what the table is called.
        title: of the report.
        opening: what the report opens with, see `Report`.
    """
    trained, facts = outcome.trained, run_facts(outcome, table)
    values = {**outcome.audit.to_dict(), "provenance": outcome.source}
    outcome.model.save(folder)
    (folder / CARD).write_text(model_card(outcome, table, facts), encoding="utf-8")
    write_whole(folder / AUDIT, as_json(values))
    if outcome.judged is not None:
        # Scores of one model can be computed again; those of cross-validation are nowhere else.
        digits = None if "fold" in outcome.judged else "%.6f"
        rows = without_formulas(outcome.judged)
        rows.to_csv(folder / ROWS, index=False, float_format=digits)
    if trained.frontier is not None:
        without_formulas(trained.frontier.points_).to_csv(folder / POINTS, index=False)
    from fairgrad.report import Report  # noqa: PLC0415 - charts are loaded where one is drawn

    report = Report(
        outcome.audit,
        frontier=trained.frontier,
        history=trained.fair,
        chosen=trained.chosen,
        title=title or f"Fairness of predicting {outcome.prepared.columns.target}",
        asked=facts,
        faults=trained.plain_faults,
        opening=opening,
    )
    report.save(folder / REPORT)
