"""What a run says while it goes: a line per unit, the time left, a bar on terminals."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fairgrad.bench.record import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.bench.record import Record


@contextmanager
def progress_of(total: int, console: Console | None = None) -> Iterator[RunProgress]:
    """Shows progress while units are run."""
    progress = RunProgress(total, Console(stderr=True) if console is None else console)
    with progress.bar:
        yield progress


class RunProgress:
    """Counts finished units and estimates when the rest is done.

    Args:
        total: units to be run.
        console: to speak to.
    """

    def __init__(self, total: int, console: Console) -> None:
        self.total, self.started = total, time.monotonic()
        self.outcomes: Counter[str] = Counter()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(
            *columns, console=console, disable=not console.is_terminal, transient=True
        )
        self.task = self.bar.add_task("units", total=total)

    def step(self, record: Record) -> None:
        """Tells of one more unit."""
        self.outcomes[record.status] += 1
        done = sum(self.outcomes.values())
        left = (time.monotonic() - self.started) / done * (self.total - done)
        self.bar.update(self.task, completed=done, description=f"{duration(left)} left")
        detail = duration(record.seconds) if record.status == FINISHED else record.reason
        remaining = f"; about {duration(left)} left" if done < self.total else ""
        self.bar.console.print(
            f"{done}/{self.total} {record.unit}: {record.status}, {detail}{remaining}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


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
