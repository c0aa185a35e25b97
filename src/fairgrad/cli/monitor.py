"""``fairgrad monitor``: a verdict on a running system that may be looked at every day."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import Monitor
from fairgrad.cli import output
from fairgrad.cli.audit import decided_people
from fairgrad.cli.request import AuditRequest, exit_code, usual_measures

if TYPE_CHECKING:
    from fairgrad.cli.people import AuditedPeople


def monitor(params: dict[str, Any]) -> int:
    """Adds a batch to the counts so far, and judges the average since the start."""
    request = AuditRequest.from_options(params)
    if request.state is None and request.time is None:
        raise ValueError(
            "--state is missing: name the file that keeps the counts, or a column of dates (--time)"
        )
    people = decided_people(request)
    how: dict[str, Any] = {
        "tolerance": request.tolerance,
        "confidence": request.confidence,
        "min_group": request.min_group,
    }
    # What is not asked for is as it was when the state was started.
    is_new = request.state is None or not request.state.exists()
    if people.judged or is_new:
        usual = usual_measures(people.desirable, has_labels=people.has_labels)
        how["measures"] = [getattr(one, "measure", one) for one in people.judged] or usual
    # A day with a single label does not tell which one is desirable by default.
    if request.model or people.columns.y_desirable or (is_new and len(people.labels) > 1):
        how["y_desirable"] = people.desirable
    opened = (
        nullcontext(Monitor(**how)) if not request.state else Monitor.opened(request.state, **how)
    )
    with opened as watched:
        add_batches(watched, people, request)
    output.notes(people.notes)
    values = watched.to_dict()
    title = f"Fairness of predicting {people.columns.target} over time"
    shown = {"verdict": watched.verdict, **values}
    output.finish(request, watched, values, title, people.asked, shown=shown)
    return exit_code(watched.verdict, request.fail_on)


def add_batches(watched: Monitor, people: AuditedPeople, request: AuditRequest) -> None:
    """Adds the rows of a table, as one batch or one per period."""
    batches = np.full(len(people.frame), request.batch or people.table)
    if request.time:
        batches = people.periods(request.time, request.period)
    groups = replace(people.columns, is_part=True).groups(people.frame, people.times)
    truth = people.truth().to_numpy() if people.has_labels else None
    for batch in sorted(set(batches)):
        chosen = batches == batch
        watched.update(
            None if truth is None else truth[chosen],
            people.predicted[chosen],
            {column: values[chosen] for column, values in groups.items()},
            batch=str(batch),
            count=None if people.times is None else people.times[chosen],
        )
