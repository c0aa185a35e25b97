"""A progress bar for work that may take long."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

PATIENCE = 2.0
"""Seconds of work before a progress bar appears."""


class ProgressBar:
    """Shows how much work is done, how long the rest will take, and a text of the caller.

    `enabled`: True shows the bar at once, False never, None on a terminal if the work takes long.
    """

    def __init__(self, total: float, *, enabled: bool | None, unit: str = "epochs") -> None:
        self.total, self.enabled, self.unit = total, enabled, unit
        self.text = ""
        self._started = time.monotonic()
        self._bar: Progress | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the bar is shown already."""
        return self._bar is not None

    def __iter__(self) -> Iterator[int]:
        try:
            for place in range(int(self.total)):
                yield place
                self.update(place + 1)
        finally:
            self.__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: float) -> None:
        """Shows how much is done; 0 if that is not known."""
        took = time.monotonic() - self._started
        if self._bar is None and (took > PATIENCE if self.enabled is None else self.enabled):
            self._show()
        if self._bar is not None:
            left = timedelta(seconds=round(took / done * (self.total - done))) if done > 0 else ""
            text = f"{left} left {self.text}" if done > 0 else self.text
            self._bar.update(self._bar.task_ids[0], completed=done, text=text)

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - loaded only where a bar is shown
        from rich.progress import Progress  # noqa: PLC0415

        console = Console(stderr=True)
        if self.enabled is None and not console.is_terminal:
            self.enabled = False
            return
        # Rich's column for the remaining time has no estimate before the second unit.
        columns = Progress.get_default_columns()[:-1]
        self._bar = Progress(*columns, "{task.fields[text]}", console=console)
        self._bar.add_task(self.unit, total=self.total, text=self.text)
        self._bar.start()
