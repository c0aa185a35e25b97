"""Units on this machine, in as many processes as asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from fairgrad.bench.execute import execute, failure
from fairgrad.bench.record import Record
from fairgrad.bench.sources import code_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.bench.unit import Unit


def on_this_machine(units: Sequence[Unit], jobs: int = 1) -> Iterator[Record]:
    """The record of every unit, as each is finished.

    A process that dies (for want of memory, say) takes the pool with it. The units that were in
    work are then tried again one by one, so that the guilty one is found, and the rest goes on.
    """
    if jobs == 1:
        yield from map(execute, units)
        return
    waiting = list(units)
    while waiting:
        try:
            for record in _in_processes(waiting, jobs):
                waiting.remove(record.unit)
                yield record
        except TerminatedWorkerError:  # noqa: PERF203 - once per dead process, not per unit
            suspects, waiting = waiting[:jobs], waiting[jobs:]
            yield from map(_alone, suspects)


def _in_processes(units: Sequence[Unit], jobs: int) -> Iterator[Record]:
    # No more are handed out than can be worked on: then those in work are the first ones waiting.
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
    yield from pool(delayed(execute)(unit) for unit in units)


def _alone(unit: Unit) -> Record:
    try:
        record: Record = get_reusable_executor(max_workers=1).submit(execute, unit).result()
    except TerminatedWorkerError as error:
        return Record(unit, code_version(unit), **failure(error))
    return record
