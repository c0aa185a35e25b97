"""Runs a plan: what is done already is kept, the rest is trained and written unit by unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fairgrad.bench.cluster import on_cluster
from fairgrad.bench.local import on_this_machine
from fairgrad.bench.plan import Plan, units_of
from fairgrad.bench.progress import progress_of
from fairgrad.bench.record import FAILED, FINISHED, SKIPPED, Record, read_record, write_record
from fairgrad.bench.sources import code_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from fairgrad.bench.unit import Unit


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run did.

    Attributes:
        kept: records that were there already.
        new: records of this run.

    Example:
        >>> Outcome().failed
        []
    """

    kept: list[Record] = field(default_factory=list)
    new: list[Record] = field(default_factory=list)

    @property
    def failed(self) -> list[Record]:
        """Units that could not be done, with their reasons."""
        return [record for record in self.new if record.status == FAILED]

    def describe(self) -> str:
        """What a run did, in a few lines.

        Example:
            >>> print(Outcome().describe())
            0 units: 0 finished, 0 skipped, 0 failed, 0 were there already
        """
        counts = [
            f"{sum(record.status == status for record in self.new)} {status}"
            for status in (FINISHED, SKIPPED, FAILED)
        ]
        total = len(self.kept) + len(self.new)
        first = f"{total} units: {', '.join(counts)}, {len(self.kept)} were there already"
        return "\n".join([first, *(f"failed: {r.unit}: {r.reason}" for r in self.failed)])


def run(
    plan: Plan | Sequence[Unit],
    folder: str | Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    console: Console | None = None,
) -> Outcome:
    """Trains every unit of a plan that has no record yet.

    A run that was stopped, however rudely, goes on where it was when it is started again; units
    that failed are tried again.

    Args:
        plan: what to run; or the units themselves.
        folder: of the records; made if it is not there.
        jobs: processes on this machine.
        cluster: the address of a dask scheduler; the units run there instead.
        console: to report progress to.

    Raises:
        ValueError: if jobs is not positive.

    Example:
        >>> import tempfile
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(run(plan, folder).describe())
        1 units: 1 finished, 0 skipped, 0 failed, 0 were there already
    """
    if jobs < 1:
        raise ValueError(f"jobs: expected at least 1, got {jobs}.")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    units = units_of(plan) if isinstance(plan, Plan) else list(plan)
    kept = [record for unit in units if (record := done_already(place, unit)) is not None]
    done = {record.name for record in kept}
    todo = [unit for unit in units if unit.name(code_version(unit)) not in done]
    outcome = Outcome(kept)
    records = on_cluster(todo, cluster) if cluster else on_this_machine(todo, jobs)
    with progress_of(todo, console) as progress:
        for record in records if todo else ():
            write_record(record, place)
            outcome.new.append(record)
            progress.step(record)
    return outcome


def done_already(folder: Path, unit: Unit) -> Record | None:
    """The record of a unit, if it was finished or skipped by this version of the code."""
    record = read_record(folder, unit.name(code_version(unit)))
    return None if record is None or record.status == FAILED else record
