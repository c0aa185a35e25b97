"""Files and folders that are there whole or not at all.

Each is written beside its place and renamed, so that nobody ever sees half of it: whatever happens
before that, be it an error, Ctrl-C or a crash, leaves the old one as it was. Folders on the way are
made if need be.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file at once; an existing file is replaced.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder) / "note.txt", "all of it")
        ...     (Path(folder) / "note.txt").read_text()
        'all of it'
    """
    with whole_file(path) as beside:
        beside.write_bytes(
            content.encode(errors="replace") if isinstance(content, str) else content
        )


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write, in a folder beside; it takes its place when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A folder, not a file of another name: the ending tells writers the format.
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:50]}.", dir=path.parent))
    try:
        with naming(path):
            yield folder / path.name
            (folder / path.name).replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, beside the one to be written; it takes its place when all went well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:50]}.", dir=folder.parent))
    try:
        beside.chmod(0o755)
        with naming(folder):
            yield beside
            _replace(folder, beside)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """A full disk says what could not be written, which the system's own error does not."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, f"{path} cannot be written: {error.strerror}") from error


def _replace(folder: Path, beside: Path) -> None:
    """Puts the new folder in place; the old one is gone only after that."""
    if not folder.exists():
        beside.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name[:50]}.old.", dir=folder.parent))
    folder.rename(old)
    try:
        beside.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
