"""``fairgrad monitor``: a verdict on a running system that may be looked at every day."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options
from fairgrad.cli.audit import PREDICTIONS, decided_people

if TYPE_CHECKING:
    from fairgrad.audit import Monitor
    from fairgrad.cli.audit import DecidedPeople
    from fairgrad.cli.request import AuditRequest


@click.command(cls=options.Command, short_help="Watch a running system, batch after batch.")
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
@options.takes(
    "target", "sensitive", "desirable", *PREDICTIONS, "state", "batch", "time", "period", "judged",
    "tolerance", "min_group", "confidence", "report", "out", "force", "fail_on", "json",
    reading=("bins", "map", "ignore_case", "counts"),
    out="JSON file to write the monitor's counts to.",
    confidence="Confidence level of the verdict over the whole life of the system.",
)  # fmt: skip
def monitor(**params: Any) -> int:
    """Judge all decisions so far, as often as you like.

    \b
      fairgrad monitor model/ monday.csv --state state.json --fail-on unfair
      fairgrad monitor decided.csv --prediction hired --sensitive sex --state state.json
      fairgrad monitor decided.csv --prediction hired --sensitive sex --time day --period week

    Each call adds a batch to the counts in the state file and judges the average since the start.
    "Unfair" and "fair" are wrong with at most 5 % probability in the whole life of the system,
    however often you look. A batch is counted once. Measures that compare errors need true values:
    add them later by another call with the same batch and --target.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.audit import Monitor  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli import output  # noqa: PLC0415 - as above
    from fairgrad.cli.people import usual_measures  # noqa: PLC0415 - as above
    from fairgrad.cli.request import AuditRequest, exit_code  # noqa: PLC0415 - as above

    request = AuditRequest.from_options(params)
    if request.state is None and request.time is None:
        raise ValueError(
            "--state is missing: name the file that keeps the counts, or a column of dates (--time)"
        )
    decided = decided_people(request)
    people = decided.people
    has_labels = decided.further.get("has_labels", True)
    how: dict[str, Any] = {
        "tolerance": request.tolerance,
        "confidence": request.confidence,
        "min_group": request.min_group,
    }
    # What is not asked for is as it was when the state was started.
    is_new = request.state is None or not request.state.exists()
    if decided.judged or is_new:
        usual = usual_measures(people.desirable, has_labels=has_labels)
        how["measures"] = [getattr(one, "measure", one) for one in decided.judged] or usual
    # A day with a single label does not tell which one is desirable by default.
    if request.model or request.desirable or (is_new and len(people.labels) > 1):
        how["y_desirable"] = people.desirable
    opened = (
        nullcontext(Monitor(**how)) if not request.state else Monitor.opened(request.state, **how)
    )
    with opened as watched:
        add_batches(watched, decided, request, has_labels=has_labels)
    output.notes(people.notes)
    if "out" in request.outputs:
        watched.to_json(request.outputs["out"])
    if "report" in request.outputs:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        title = f"Fairness of predicting {people.columns.target} over time"
        Report(watched, asked=decided.asked, title=title).save(request.outputs["report"])
    if request.as_json:
        output.show_json({"verdict": watched.verdict, **watched.to_dict()})
    else:
        output.screen().print(watched)
        for path in request.outputs.values():
            output.inform(f"Written: {path}")
    return exit_code(watched.verdict, request.fail_on)


def add_batches(
    watched: Monitor, decided: DecidedPeople, request: AuditRequest, *, has_labels: bool
) -> None:
    """Adds the rows of a table, as one batch or one per period."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick

    people = decided.people
    name = request.batch or people.table
    batches = np.full(len(people.frame), name)
    if request.time:
        batches = people.periods(request.time, request.period)
    groups = replace(people.columns, is_part=True).groups(people.frame, people.times)
    truth = people.truth().to_numpy() if has_labels else None
    for batch in sorted(set(batches)):
        chosen = batches == batch
        watched.update(
            None if truth is None else truth[chosen],
            decided.predicted[chosen],
            {column: values[chosen] for column, values in groups.items()},
            batch=str(batch),
            count=None if people.times is None else people.times[chosen],
        )
