"""What a run says while it goes: a line per unit, the time left, a bar on terminals."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fairgrad.bench.cost import cost_of
from fairgrad.bench.record import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.bench.record import Record
    from fairgrad.bench.unit import Unit


@contextmanager
def progress_of(units: Sequence[Unit], console: Console | None = None) -> Iterator[RunProgress]:
    """Shows progress while units are run."""
    progress = RunProgress(units, Console(stderr=True) if console is None else console)
    with progress.bar:
        yield progress


class RunProgress:
    """Counts finished units and estimates when the rest is done.

    The estimate takes the work that is left to cost as much as the work done so far. Units that
    were skipped or failed say nothing about that.

    Args:
        units: to be run.
        console: to speak to.
    """

    def __init__(self, units: Sequence[Unit], console: Console) -> None:
        self.total, self.done, self.started = len(units), 0, time.monotonic()
        self.work_done, self.work_left = 0.0, sum(map(cost_of, units))
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(
            *columns, console=console, disable=not console.is_terminal, transient=True
        )
        self.task = self.bar.add_task("units", total=self.total)

    def step(self, record: Record) -> None:
        """Tells of one more unit."""
        cost = cost_of(record.unit)
        self.done, self.work_left = self.done + 1, self.work_left - cost
        self.work_done += cost if record.status == FINISHED else 0.0
        left = self._time_left()
        self.bar.update(self.task, completed=self.done, description=left or "units")
        detail = duration(record.seconds) if record.status == FINISHED else record.reason
        self.bar.console.print(
            f"{self.done}/{self.total} {record.unit}: {record.status}, {detail}"
            + (f"; {left}" if left else ""),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def _time_left(self) -> str:
        if self.done == self.total or self.work_done == 0:
            return ""
        passed = time.monotonic() - self.started
        return f"about {duration(passed / self.work_done * self.work_left)} left"


def duration(seconds: float) -> str:
    """A time span for people.

    Example:
        >>> duration(8.2), duration(95), duration(7500)
        ('8 s', '1 min 35 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
