"""Fetch a data set's file into the user's cache, from the first carrier that works."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fairgrad.datasets import convert
from fairgrad.datasets.carriers import download
from fairgrad.datasets.errors import FetchError
from fairgrad.datasets.loading import schema_of
from fairgrad.datasets.places import cache_folder, record_hash, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fairgrad.datasets.schema import Carrier, Schema


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
    return fetch_schema(schema_of(name), carrier=carrier, show=show)


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


def converted(carrier: Carrier) -> bytes:
    """Download what a carrier holds and turn it into the data file."""
    members = download(carrier)
    function: Callable[..., bytes] = getattr(convert, carrier.convert)
    try:
        return function(members, **carrier.options)
    except ValueError as error:
        raise FetchError(f"the download cannot be read ({error})") from error


def checked(schema: Schema, carrier: Carrier) -> bytes:
    """The converted file, if its SHA-256 is the expected one or none is known."""
    content = converted(carrier)
    digest = hashlib.sha256(content).hexdigest()
    expected = {file.sha256 for file in schema.files if file.name == carrier.makes} - {""}
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
        except FetchError as error:  # noqa: PERF203 - a handful of downloads
            reasons.append(f"\n  - {carrier.kind} {carrier.address}: {error}")
    raise FetchError(f"{schema.name} could not be fetched:{''.join(reasons)}")


def _write(schema: Schema, carrier: Carrier, content: bytes, show: Callable[[str], object]) -> Path:
    path = cache_folder() / carrier.makes
    write_whole(path, content)
    if not any(file.sha256 for file in schema.files if file.name == carrier.makes):
        record_hash(path, hashlib.sha256(content).hexdigest())
    show(f"Fetched from {carrier.address} into {path}")
    return path
