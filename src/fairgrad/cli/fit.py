"""``fairgrad fit``, ``frontier`` and ``demo``: from a table to an audited model in a folder.

The folder has the model, its audit, report and frontier, and MODEL_CARD.md. The card opens with the
YAML that the Hugging Face Hub reads, so that it can be the README.md of a model there.

PyTorch is imported after all quick checks.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import fairgrad
from fairgrad.cli import output
from fairgrad.cli.folder import (
    AUDIT,
    CARD,
    POINTS,
    REPORT,
    ROWS,
    SAMPLE,
    as_json,
    check_folder,
    provenance_words,
)
from fairgrad.cli.request import FitRequest, exit_code
from fairgrad.columns import without_formulas
from fairgrad.files import whole_folder, write_whole
from fairgrad.tables.reading import table_name
from fairgrad.tables.roles import ColumnRoles
from fairgrad.text import Block, Paragraph, escape, opening

if TYPE_CHECKING:
    import pandas as pd

    from fairgrad.audit import Audit
    from fairgrad.cli.training import AuditedModel

FRONTIER, FRONTIER_VERSION = "fairgrad.frontier", 1
HOW_TO_READ = (
    "The first lines judge the chosen model on the test rows. It is chosen by the figures on the "
    "validation rows. plain: trained for accuracy alone. dominated: another model is at least as "
    "good in both figures, and better in one."
)

DEMO_POINTS = 12
DEMO_MEASURE = "demographic_parity"
"""The measure for which this number of rows settles the verdict of both models."""

DEMO_TITLE = "Who earns more than 50,000 dollars? A plain and a fair model of census data"
DEMO_NEXT = """\
A model that is fair by one measure can be unfair by another: choose the measure first.

Open {report} in a browser: the frontier, the rates of every group, who gained.
Next:
  fairgrad predict {folder} {sample} -o predictions.csv
  fairgrad audit {folder} {sample}
  fairgrad fit your.csv --target COLUMN --sensitive COLUMN --out model"""

FIGURES = ("accuracy", "unfairness")
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
- A category that was not in the training table is treated as unknown (as `(other)`, where rare
  values were merged).
- A missing category is a separate category if values were missing in training, else it is treated
  as unknown. A missing number is replaced by the median; if values were missing in
  training, the model is also told that it was missing.
- Dates must be written as in the training table.
"""


def fit(params: dict[str, Any]) -> int:
    """Trains a fair model, audits it, and writes both into a folder."""
    outcome = _trained(params)
    request = outcome.settings
    assert request.folder is not None  # noqa: S101 - required
    files = sorted(file.name for file in request.folder.iterdir())
    if request.as_json:
        output.show_json(outcome_json(outcome, str(request.out), files))
    else:
        show_outcome(outcome)
        output.say(f"\nWritten to {request.out}: {', '.join(files)}")
        output.say(f"Open {Path(str(request.out)) / REPORT} in a browser.")
    return exit_code(outcome.audit.verdict, request.fail_on)


def frontier(params: dict[str, Any]) -> int:
    """Trains models from exactly fair to unconstrained, and shows what each one costs."""
    outcome = _trained(params, opening="trade-off")
    request = outcome.settings
    points = outcome.trained.frontier.points_  # type: ignore[union-attr] # it has --points
    target, value = outcome.prepared.columns.target, outcome.prepared.desirable
    if request.as_json:
        records = points.to_dict(orient="records")
        for row in records:  # JSON has no infinity, which stands for the plain model here
            row["plain"] = row["epsilon"] == float("inf")
            row["epsilon"] = None if row["plain"] else row["epsilon"]
        values = {
            "schema": FRONTIER,
            "schema_version": FRONTIER_VERSION,
            "out": request.out,
            "desirable": value,
            "chosen": outcome.trained.chosen,
            "verdict": outcome.audit.verdict,
            "conclusion": outcome.audit.conclusion,
            "faults": list(outcome.trained.faults),
            "points": records,
        }
        output.show_json(values)
        return 0
    doubts = (warning.message for warning in outcome.audit.warnings if warning.kind == "desirable")
    output.notes((*outcome.notes, *doubts))
    output.screen().print(*_faults(outcome), opening(outcome.audit.brief), "")
    output.say(f"Desirable value of {target}: {'none named' if value is None else value}")
    output.screen().print(points_table(points, outcome.trained.chosen))
    output.screen().print(Paragraph(HOW_TO_READ))
    if request.out is not None:
        output.say(f"Open {Path(request.out) / REPORT} in a browser.")
    return 0


def demo(params: dict[str, Any]) -> int:
    """Trains a plain and a fair model on census data."""
    place = Path(params["out"])
    is_earlier_demo = (place / SAMPLE).is_file()
    folder = check_folder(place, force=params["force"] or is_earlier_demo)
    roles = ColumnRoles("income", ("sex",))
    request = FitRequest(columns=roles, measures=(DEMO_MEASURE,), points=DEMO_POINTS)
    output.progress("Adult (US census of 1994): who earns more than 50,000 dollars?")
    from fairgrad import datasets  # noqa: PLC0415 - after all quick checks
    from fairgrad.cli.training import fit_prepared, prepare  # noqa: PLC0415 - as above

    data = datasets.load("adult")
    table = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    prepared = prepare(table, request)
    outcome = fit_prepared(prepared, request)
    with whole_folder(folder) as beside:
        write_outcome(outcome, beside, "adult", DEMO_TITLE)
        table.iloc[prepared.test_rows].to_csv(beside / SAMPLE, index=False)
        files = sorted(file.name for file in beside.iterdir())
    if params["as_json"]:
        output.show_json(outcome_json(outcome, params["out"], files))
    else:
        show_outcome(outcome)
        names = {"folder": place, "report": place / REPORT, "sample": place / SAMPLE}
        output.say(DEMO_NEXT.format(**names))
    return 0


def _trained(params: dict[str, Any], opening: str = "summary") -> AuditedModel:
    """Trains and audits, and writes the result into its folder, if there is one."""
    request = FitRequest.from_options(params)
    from fairgrad.cli.training import (  # noqa: PLC0415 - PyTorch, after all quick checks
        fit_prepared,
        read_prepared,
    )

    output.progress(f"Reading {table_name(request.table)}")
    with tempfile.TemporaryDirectory(prefix="fairgrad-") as beside:
        outcome = fit_prepared(read_prepared(request, Path(beside)), request)
    if request.folder is not None:
        with whole_folder(request.folder) as folder:
            write_outcome(outcome, folder, table_name(request.table), opening=opening)
    return outcome


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
    output.notes(outcome.notes)
    output.screen().print(*_faults(outcome), outcome.audit)
    costs = outcome.mean_costs
    if costs:
        fair, plain = (f"{costs[name]:.4f}" for name in ("fair", "plain"))
        cost = f"Mean cost of a prediction: {fair}, with the plain model {plain}."
        output.screen().print(Paragraph(cost))


def _faults(outcome: AuditedModel) -> list[Paragraph]:
    return [Paragraph(f"! {fault}", "bold red") for fault in outcome.trained.faults]


def outcome_json(outcome: AuditedModel, out: str, files: list[str]) -> dict[str, Any]:
    """A model and its audit as plain values."""
    audit, prepared = outcome.audit, outcome.prepared
    return {
        "schema": "fairgrad.fit",
        "schema_version": 1,
        "out": out,
        "files": files,
        "rows": {
            "training_and_validation": len(prepared.training.y) + len(prepared.validation.y),
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
        "audit": {**audit.to_dict(), "provenance": outcome.model.provenance},
    }


def model_card(outcome: AuditedModel, table: str, facts: dict[str, str]) -> str:
    """The card of a model, in Markdown; `table` is what the table is called."""
    from fairgrad.audit import words  # noqa: PLC0415 - predictions need no SciPy

    audit, target = outcome.audit, outcome.prepared.columns.target
    measures = words.conjoined([name.replace("_", " ") for name in outcome.settings.measures])
    features = ", ".join(f"{escape(f.name)} ({f.kind})" for f in outcome.prepared.encoder.features_)
    sections = [
        hub_header(audit, f"classifier of {target}", table),
        f"# A classifier of {escape(target)}",
        f"Trained by fairgrad {fairgrad.__version__} on {escape(table)} for {measures}.",
        *(f"**{escape(fault)}**" for fault in outcome.trained.page_faults),
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
    n_training, n_validation = len(prepared.training.y), len(prepared.validation.y)
    return {
        "Table": f"{table}, {prepared.n_rows:,} rows: {n_training:,} for training and "
        f"{n_validation:,} to choose the model",
        "Audited on": f"{prepared.n_test:,} rows, {judged}; {named}",
        "Predicted": f"{columns.target}: {', '.join(prepared.labels)}; desirable: "
        f"{prepared.desirable or 'none named'}",
        "Sensitive": f"{', '.join(columns.sensitive)}; {needed}",
        **outcome.settings.in_words(),
        **{f"Note {i}": note for i, note in enumerate(outcome.notes, start=1)},
        **provenance_words(outcome.model.provenance),
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
    values = {**outcome.audit.to_dict(), "provenance": outcome.model.provenance}
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
        faults=trained.page_faults,
        opening=opening,
    )
    report.save(folder / REPORT)
