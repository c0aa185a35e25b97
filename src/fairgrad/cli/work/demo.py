"""What ``fairgrad demo`` does: census data, a frontier from the plain to the fairest model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairgrad import datasets
from fairgrad.cli import show
from fairgrad.cli.files import write_outcome
from fairgrad.cli.outcome import outcome_of, prepare
from fairgrad.cli.output import REPORT, SAMPLE, check_folder
from fairgrad.cli.settings import Settings
from fairgrad.cli.training import chosen_of, fit_frontier
from fairgrad.cli.work.fit import as_json as outcome_json
from fairgrad.cli.work.fit import show_outcome
from fairgrad.files import whole_folder
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    import pandas as pd

POINTS = 12
# Of all measures the one on which rows of this number settle the verdict, before and after.
MEASURE = "demographic_parity"
COLUMNS = ColumnRoles(target="income", sensitive=("sex",))
TITLE = "Who earns more than 50,000 dollars? A plain and a fair model of census data"


def run(out: str, *, force: bool, as_json: bool) -> int:
    """Trains, shows, writes."""
    folder = check_folder(out, force=force or _is_demo(Path(out)))
    tell = show.silence if as_json else show.tell
    bar = sys.stderr.isatty() and not as_json
    settings = Settings(MEASURE, points=POINTS, verbose=bar or "auto")
    tell("Adult (census income): 45,222 people of 1994; who earns more than 50,000 dollars?")
    table = adult_table()
    prepared = prepare(table, COLUMNS, settings)
    tell(f"Training {POINTS} models as one, from plain to exactly fair (demographic parity)")
    frontier = fit_frontier(prepared.rest, prepared.test, settings, prepared.desirable)
    tell("Auditing the fairest that loses at most 3 points of accuracy, on people held out")
    outcome = outcome_of(prepared, settings, chosen_of(frontier, settings), tolerance=0.05)
    with whole_folder(folder) as beside:
        write_outcome(outcome, beside, "adult", TITLE)
        table.iloc[prepared.test_rows].to_csv(beside / SAMPLE, index=False)
        files = sorted(file.name for file in beside.iterdir())
    if as_json:
        show.show_json(outcome_json(outcome, out, files))
        return 0
    show_outcome(outcome)
    for line in _ends(out):
        show.say(line)
    return 0


def adult_table() -> pd.DataFrame:
    """The bundled data as a user's table would be."""
    data = datasets.load("adult")
    return data.frame.assign(sex=data.sensitive["sex"], income=data.label)


def _is_demo(folder: Path) -> bool:
    """Whether a folder holds nothing but an earlier demo: then nobody loses anything."""
    return (folder / SAMPLE).is_file()


def _ends(out: str) -> list[str]:
    folder = Path(out)
    return [
        "What is fair by one measure can be unfair by another: choose the measure first.",
        "",
        f"Open {folder / REPORT} in a browser: the frontier, every group's rates, who gained.",
        "Next:",
        f"  fairgrad predict {folder} {folder / SAMPLE} -o predictions.csv",
        f"  fairgrad audit {folder} {folder / SAMPLE}",
        "  fairgrad fit your.csv --target COLUMN --sensitive COLUMN --out model",
    ]
