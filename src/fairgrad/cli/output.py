"""What the program prints: results and JSON on the standard output, all else on the other one."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from fairgrad.progress import ProgressBar
from fairgrad.text import Paragraph, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 80


def screen() -> Console:
    """Where results go; a pipe gets 80 columns, or as many as COLUMNS says."""
    console = Console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, width=WIDTH)


def show_json(values: dict[str, Any]) -> None:
    """Prints plain values as JSON; in ASCII where the output cannot hold every letter."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    text = json.dumps(values, ensure_ascii=not is_unicode, indent=2, allow_nan=False)
    # An unbuffered stream loses the rest of a long text without an error if its reader is gone.
    # At most 4096 bytes are written whole or not at all.
    sys.stdout.writelines(f"{text}\n"[i : i + 1024] for i in range(0, len(text) + 1, 1024))


def is_quiet() -> bool:
    """Whether `fairgrad --quiet` was asked for."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("quiet"))


def shows_progress() -> bool:
    """Whether a person is looking: on a terminal, without --quiet."""
    return sys.stderr.isatty() and not is_quiet()


def inform(message: str) -> None:
    """Says on the error output what was done; results go to the standard output."""
    if not is_quiet():
        Console(stderr=True, highlight=False).print(Text(printable(message), style="dim"))


def progress(message: str) -> None:
    """Says on a terminal what is being done."""
    if shows_progress():
        inform(message)


def progress_bar(total: float, unit: str) -> ProgressBar:
    """A bar on a terminal, if the work lasts: what is being done, and how long it will take."""
    return ProgressBar(total, enabled=None if shows_progress() else False, unit=unit)


def say(text: str) -> None:
    """Prints lines of the result; long ones, such as paths, are not broken."""
    lines = "\n".join(printable(line) for line in text.splitlines())
    screen().print(lines, markup=False, soft_wrap=True)


def notes(sentences: Iterable[str]) -> None:
    """Says on the error output what the reader should know about the data."""
    console = Console(stderr=True, highlight=False)
    for sentence in sentences:
        console.print(Paragraph(f"Note: {sentence}", "yellow"))
