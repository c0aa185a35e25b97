"""Output that is there whole or not at all, and never in the place of somebody's other files."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairgrad.cli import trees

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder beside the one to be written, which takes its place when all went well.

    Whatever happens before that, be it an error, Ctrl-C or a crash, leaves the old one as it was.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        beside.chmod(0o755)
        yield beside
        _replace(folder, beside)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


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


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside the one to be written, which takes its place when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:50]}.", dir=path.parent))
    try:
        yield folder / path.name  # the ending tells writers the format
        (folder / path.name).replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_above(path: Path) -> None:
    """Refuses a place that cannot be made, before the work and not after it."""
    above = next(parent for parent in path.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ValueError(f"{path} cannot be written: {above} is no folder that may be written to")


def _replace(folder: Path, beside: Path) -> None:
    """Puts the new folder in place; the old one is gone only after that."""
    if not folder.exists():
        beside.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    folder.rename(old)
    try:
        beside.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
