"""Where the bytes of a data set may lie on this machine, and what writes them safely."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

#: Environment variable naming a folder with data files.
FOLDER_VARIABLE = "FAIRGRAD_DATA"
#: Environment variable naming the cache folder, instead of the platform's usual one.
CACHE_VARIABLE = "FAIRGRAD_CACHE"


def package_folder() -> Path:
    """Folder of the files that are part of the package."""
    return Path(__file__).with_name("files")


def user_folder() -> Path | None:
    """Folder named by the environment variable ``FAIRGRAD_DATA``, if it is set."""
    named = os.environ.get(FOLDER_VARIABLE, "")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Folder of fetched files: ``FAIRGRAD_CACHE``, or the platform's usual place for caches."""
    named = os.environ.get(CACHE_VARIABLE, "")
    if named:
        return Path(named).expanduser()
    import pooch  # noqa: PLC0415 - slow to import and needed for this line alone

    return Path(pooch.os_cache("fairgrad"))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it, so that no half-written file is ever seen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
