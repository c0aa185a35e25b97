"""Where output goes: never in the place of somebody's other files."""

from __future__ import annotations

import os
from pathlib import Path

from fairgrad.cli import trees

MODEL, AUDIT, CARD, REPORT = "model.skops", "audit.json", "MODEL_CARD.md", "report.html"
POINTS, SAMPLE = "frontier.csv", "people.csv"
MARK = "fairgrad.json"
"""The file by which a folder of ours is known."""

OURS = frozenset({MARK, MODEL, AUDIT, CARD, REPORT, POINTS, SAMPLE, *trees.FILES})


def check_folder(folder: str | Path, *, force: bool) -> Path:
    """Refuses to write where something else is, before any work is done.

    Args:
        folder: to be written.
        force: whether an earlier output of this program may be replaced.

    Raises:
        ValueError: if the place is taken.
    """
    path = Path(folder).expanduser().absolute()
    if path.is_file():
        raise ValueError(f"{folder} is a file; name a folder to write to")
    _check_above(path)
    if not path.exists() or not any(path.iterdir()):
        return path
    strangers = sorted({entry.name for entry in path.iterdir()} - OURS)
    if strangers or not (path / MARK).is_file():
        found = f", such as {strangers[0]!r}" if strangers else ""
        raise ValueError(
            f"{folder} holds files that fairgrad did not write{found}; name another folder, as "
            "they would be lost"
        )
    if not force:
        raise ValueError(f"{folder} exists; use --force to replace it, or name another folder")
    return path


def check_file(file: str | Path, *, force: bool) -> Path:
    """Refuses to overwrite a file unless that was asked for.

    Raises:
        ValueError: if the place is taken.
    """
    path = Path(file).expanduser().absolute()
    if path.is_dir():
        raise ValueError(f"{file} is a folder; name a file to write to")
    _check_above(path)
    if path.exists() and not force:
        raise ValueError(f"{file} exists; use --force to overwrite it, or name another file")
    return path


def _check_above(path: Path) -> None:
    """Refuses a place that cannot be made, before the work and not after it."""
    above = next(parent for parent in path.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ValueError(f"{path} cannot be written: {above} is no folder that may be written to")
