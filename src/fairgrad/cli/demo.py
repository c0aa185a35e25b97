"""``fairgrad demo``: all of it on census data that come with the package."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fairgrad.cli import options

POINTS = 12
MEASURE = "demographic_parity"
"""Of all measures the one on which this number of rows settles the verdict, before and after."""

TITLE = "Who earns more than 50,000 dollars? A plain and a fair model of census data"
NEXT = """\
What is fair by one measure can be unfair by another: choose the measure first.

Open {report} in a browser: the frontier, the rates of every group, who gained.
Next:
  fairgrad predict {folder} {sample} -o predictions.csv
  fairgrad audit {folder} {sample}
  fairgrad fit your.csv --target COLUMN --sensitive COLUMN --out model"""


@click.command(short_help="Try it on census data, in less than a minute.")
@options.out_option("FOLDER", "Folder to write.", default="fairgrad-demo", show_default=True)
@options.force_option
@options.json_option
def demo(out: str, force: bool, as_json: bool) -> int:
    """Train a plain and a fair model on census data, and show who gains what.

    Needs no network and less than a minute. An earlier demo in the same folder is replaced.
    """
    from fairgrad import datasets  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli import terminal  # noqa: PLC0415 - as above
    from fairgrad.cli.card import write_outcome  # noqa: PLC0415 - as above
    from fairgrad.cli.folder import REPORT, SAMPLE, check_folder  # noqa: PLC0415 - as above
    from fairgrad.cli.outcome import audit_models  # noqa: PLC0415 - as above
    from fairgrad.cli.prepared import prepare  # noqa: PLC0415 - as above
    from fairgrad.cli.request import ModelSettings  # noqa: PLC0415 - as above
    from fairgrad.cli.training import train  # noqa: PLC0415 - as above
    from fairgrad.files import whole_folder  # noqa: PLC0415 - as above
    from fairgrad.tables.roles import ColumnRoles  # noqa: PLC0415 - as above

    place = Path(out)
    is_earlier_demo = (place / SAMPLE).is_file()
    folder = check_folder(out, force=force or is_earlier_demo)
    progress = terminal.no_progress if as_json else terminal.progress
    shows_bar = sys.stderr.isatty() and not as_json
    settings = ModelSettings((MEASURE,), points=POINTS, verbose=shows_bar or "auto")
    progress("Adult (US census of 1994): 45,222 people; who earns more than 50,000 dollars?")
    data = datasets.load("adult")
    table = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    prepared = prepare(table, ColumnRoles("income", ("sex",)), settings)
    trained = train(prepared, settings, progress)
    progress("Auditing the most accurate model that is likely to be fair, on the test rows")
    outcome = audit_models(prepared, settings, trained)
    with whole_folder(folder) as beside:
        write_outcome(outcome, beside, "adult", TITLE)
        table.iloc[prepared.test_rows].to_csv(beside / SAMPLE, index=False)
        files = sorted(file.name for file in beside.iterdir())
    if as_json:
        terminal.show_json(terminal.outcome_json(outcome, out, files))
    else:
        terminal.show_outcome(outcome)
        names = {"folder": place, "report": place / REPORT, "sample": place / SAMPLE}
        terminal.say(NEXT.format(**names))
    return 0
