"""Writes files and folders completely or not at all.

Each is written under a temporary name and then renamed, so that it is never half written: an error,
Ctrl-C or a crash before that leaves the old version unchanged. Missing parent folders are created.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


SEALED, CHECKSUM = "sealed", "checksum"
"""Names under which `sealed_json` stores the kind of checksum, and the checksum. If one is damaged,
the other still shows that there was a checksum."""


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Writes a file at once; a private file, with rows about people, only its owner can read."""
    with whole_file(path, private=private) as beside:
        beside.write_bytes(
            content.encode(errors="replace") if isinstance(content, str) else content
        )


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary file to write, which is renamed to `path` if no error occurs.

    Raises:
        IsADirectoryError: if there is a folder of that name.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected the name of a file to write.")
    with _beside(path) as beside:
        yield beside
        if private:
            beside.chmod(0o600)
        beside.replace(path)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill, which is renamed to `folder` if no error occurs."""
    with _beside(folder) as beside:
        beside.mkdir()
        yield beside
        while True:  # a folder that another process puts there in the meantime is replaced, too
            # The old folder is removed with the temporary folder around the new one.
            old = Path(tempfile.mkdtemp(dir=beside.parent)) / folder.name
            try:
                with suppress(FileNotFoundError):
                    folder.rename(old)
                beside.rename(folder)
            except BaseException as error:
                if old.exists() and not folder.exists():
                    old.rename(folder)
                if getattr(error, "errno", None) not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            else:
                return


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """The same name in a new temporary folder beside `path`, which is removed at the end.

    The name is kept because writers infer the format from it. Only the owner can read the folder;
    files in it get the permissions that umask allows.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    around = tempfile.TemporaryDirectory(
        prefix=f".{path.name[:50]}.", dir=path.parent, ignore_cleanup_errors=True
    )
    with around as folder, naming(path):
        yield Path(folder) / path.name


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps other processes that call it with the same path waiting.

    The lock is on a file beside it, which stays; the system releases it when a process ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("a+b") as file:
        if os.name == "nt":
            import msvcrt  # noqa: PLC0415 - on Windows only

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sealed_json(values: Mapping[str, Any]) -> str:
    """Values as JSON, with a checksum of the text at its end, for `read_sealed`."""
    sealed = {SEALED: "sha256", **values, CHECKSUM: ""}
    text = json.dumps(sealed, ensure_ascii=False, indent=2, allow_nan=False)
    head, quote, tail = text.rpartition('"')
    return f"{head}{_sha256(text)}{quote}{tail}"


def read_sealed(text: str) -> dict[str, Any]:
    """The values of a text from `sealed_json`, or of an older text without a checksum.

    Raises:
        ValueError: if it is not such a text, or has changed since it was made.
    """
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError(f"expected names and values, got a {type(values).__name__}")  # noqa: TRY004 - of a file
    seal = values.pop(SEALED, None), values.pop(CHECKSUM, None)
    bare = text.rstrip().replace(str(seal[1]), "")
    if seal not in {(None, None), ("sha256", _sha256(bare))}:
        raise ValueError("it has changed since it was written: its checksum differs")
    return values


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Names the file in the error about a full disk, which the system does not name."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, f"{path} cannot be written: {error.strerror}") from error


def cache_folder() -> Path:
    """The folder of downloaded files: ``FAIRGRAD_CACHE``, or the platform's default for caches."""
    named = os.environ.get("FAIRGRAD_CACHE", "")
    if named:
        return Path(named).expanduser()
    usual = {"win32": "~/AppData/Local", "darwin": "~/Library/Caches"}.get(sys.platform, "~/.cache")
    place = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(place or usual).expanduser() / "fairgrad"
