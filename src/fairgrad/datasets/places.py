"""Where the bytes of a data set may lie on this machine, and what writes them safely."""

from __future__ import annotations

import os
from pathlib import Path

from fairgrad import files

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
    """Writes a file whole or not at all, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, content)


def record_hash(path: Path, digest: str) -> None:
    """Note the hash of a fetched file beside it, for files whose hash nobody has published."""
    write_whole(_record(path), f"{digest}\n".encode())


def recorded_hash(path: Path) -> str:
    """Hash noted when the file was fetched; empty if there is none."""
    record = _record(path)
    return record.read_text().strip() if record.is_file() else ""


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")
