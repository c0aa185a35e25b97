"""A progress bar for loops that may take long."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

PATIENCE = 2.0
"""Seconds of work before a progress bar appears."""


class ProgressBar:
    """Counts epochs, or other units of work, and shows what the caller says of each.

    `enabled` True shows the bar at once, False never, None on a terminal when the work lasts.
    """

    def __init__(self, total: int, *, enabled: bool | None, unit: str = "epochs") -> None:
        self.total, self.enabled, self.unit = total, enabled, unit
        self.text = ""
        self._bar: Progress | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the bar is there already."""
        return self._bar is not None

    def __iter__(self) -> Iterator[int]:
        started = time.monotonic()
        try:
            for place in range(self.total):
                yield place
                took, done = time.monotonic() - started, place + 1
                lasts = took > PATIENCE
                if self._bar is None and (lasts if self.enabled is None else self.enabled):
                    self._show()
                if self._bar is not None:
                    left = timedelta(seconds=round(took / done * (self.total - done)))
                    text = f"{left} left {self.text}"
                    self._bar.update(self._bar.task_ids[0], completed=done, text=text)
        finally:
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - loaded only where a bar is shown
        from rich.progress import Progress  # noqa: PLC0415

        console = Console(stderr=True)
        if self.enabled is None and not console.is_terminal:
            self.enabled = False
            return
        # Rich's own column of the time that is left has no estimate before the second unit.
        columns = Progress.get_default_columns()[:-1]
        self._bar = Progress(*columns, "{task.fields[text]}", console=console)
        self._bar.add_task(self.unit, total=self.total, text=self.text)
        self._bar.start()
