"""``fairgrad fit``, ``frontier`` and ``demo``: from a table to an audited model.

PyTorch is imported after all quick checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.cli import output
from fairgrad.cli.folder import REPORT, SAMPLE, check_folder
from fairgrad.cli.request import FitRequest, exit_code
from fairgrad.files import whole_folder
from fairgrad.tables.reading import table_name
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    from fairgrad.cli.training import AuditedModel

FRONTIER, FRONTIER_VERSION = "fairgrad.frontier", 1
HOW_TO_READ = (
    "Models are chosen by their figures on the validation rows; the test rows only judge them. "
    "plain: trained for accuracy alone. dominated: another model is at least as good in both "
    "figures, and better in one."
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


def fit(params: dict[str, Any]) -> int:
    """Trains a fair model, audits it, and writes both into a folder."""
    outcome = _trained(params)
    request = outcome.settings
    assert request.folder is not None  # noqa: S101 - required
    files = sorted(file.name for file in request.folder.iterdir())
    if request.as_json:
        output.show_json(output.outcome_json(outcome, str(request.out), files))
    else:
        output.show_outcome(outcome)
        output.say(f"\nWritten to {request.out}: {', '.join(files)}")
        _say_report(request)
    return exit_code(outcome.audit.verdict, request.fail_on)


def frontier(params: dict[str, Any]) -> int:
    """Trains models from exactly fair to unconstrained, and shows what each one costs."""
    outcome = _trained(params, opening="trade-off")
    request = outcome.settings
    points = outcome.trained.frontier.points_  # type: ignore[union-attr] # it has --points
    if request.as_json:
        output.show_json(_points_json(outcome, points.to_dict(orient="records")))
        return 0
    doubts = (one.message for one in outcome.audit.warnings if one.kind == "desirable")
    output.notes((*outcome.notes, *doubts))
    target, value = outcome.prepared.columns.target, outcome.prepared.desirable
    output.say(f"Desirable value of {target}: {'none named' if value is None else value}")
    output.screen().print(output.points_table(points, outcome.trained.chosen))
    output.say_paragraph(HOW_TO_READ)
    _say_report(request)
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
    from fairgrad.cli.prepared import prepare  # noqa: PLC0415 - as above
    from fairgrad.cli.training import fit_prepared  # noqa: PLC0415 - as above

    data = datasets.load("adult")
    table = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    prepared = prepare(table, request)
    outcome = fit_prepared(prepared, request)
    with whole_folder(folder) as beside:
        output.write_outcome(outcome, beside, "adult", DEMO_TITLE)
        table.iloc[prepared.test_rows].to_csv(beside / SAMPLE, index=False)
        files = sorted(file.name for file in beside.iterdir())
    if params["as_json"]:
        output.show_json(output.outcome_json(outcome, params["out"], files))
    else:
        output.show_outcome(outcome)
        names = {"folder": place, "report": place / REPORT, "sample": place / SAMPLE}
        output.say(DEMO_NEXT.format(**names))
    return 0


def _trained(params: dict[str, Any], opening: str = "summary") -> AuditedModel:
    """Trains and audits, and writes the result into its folder, if there is one."""
    request = FitRequest.from_options(params)
    from fairgrad.cli.training import fit_table  # noqa: PLC0415 - PyTorch, after all quick checks

    outcome = fit_table(request)
    if request.folder is not None:
        with whole_folder(request.folder) as folder:
            output.write_outcome(outcome, folder, table_name(request.table), opening=opening)
    return outcome


def _say_report(request: FitRequest) -> None:
    if request.out is not None:
        output.say(f"Open {Path(request.out) / REPORT} in a browser.")


def _points_json(outcome: AuditedModel, points: list[Any]) -> dict[str, Any]:
    for row in points:  # JSON has no infinity, which stands for the plain model here
        row["plain"] = row["epsilon"] == float("inf")
        row["epsilon"] = None if row["plain"] else row["epsilon"]
    return {
        "schema": FRONTIER,
        "schema_version": FRONTIER_VERSION,
        "out": outcome.settings.out,
        "desirable": outcome.prepared.desirable,
        "chosen": outcome.trained.chosen,
        "points": points,
    }
