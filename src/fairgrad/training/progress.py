"""A progress bar for long work, on terminals only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

PATIENCE = 2.0
"""Seconds of work before a bar appears."""


class EpochBar:
    """Counts epochs, or other units of work, and shows what the caller says of each.

    Args:
        n_epochs: how many there will be.
        enabled: True shows the bar at once, False never, None on a terminal when the work lasts.
        unit: what is counted.
    """

    def __init__(self, n_epochs: int, *, enabled: bool | None, unit: str = "epochs") -> None:
        self.n_epochs, self.enabled, self.unit = n_epochs, enabled, unit
        self.text = ""
        self._bar: Progress | None = None

    def __iter__(self) -> Iterator[int]:
        started = time.monotonic()
        try:
            for epoch in range(self.n_epochs):
                yield epoch
                if self._bar is None and self._is_due(time.monotonic() - started):
                    self._show()
                if self._bar is not None:
                    self._bar.update(self._bar.task_ids[0], completed=epoch + 1, text=self.text)
        finally:
            if self._bar is not None:
                self._bar.stop()

    def _is_due(self, seconds: float) -> bool:
        return self.enabled is True or (self.enabled is None and seconds > PATIENCE)

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - loaded only where a bar is shown
        from rich.progress import Progress  # noqa: PLC0415

        console = Console(stderr=True)
        if self.enabled is None and not console.is_terminal:
            self.enabled = False
            return
        self._bar = Progress(
            *Progress.get_default_columns(), "{task.fields[text]}", console=console
        )
        self._bar.add_task(self.unit, total=self.n_epochs, text=self.text)
        self._bar.start()
