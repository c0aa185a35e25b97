"""Raw files of a publisher or carrier -> one plain CSV table, as bytes that never vary.

The tables are written field by field, without a number ever being parsed and printed again, so
the SHA-256 of the result is the same on every machine and with every version of every library.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Row = list[str]


def unchanged(members: Sequence[bytes]) -> bytes:
    """The one file as it is."""
    (content,) = members
    return content


def table_without_header(
    members: Sequence[bytes],
    *,
    columns: Sequence[str],
    delimiter: str = ",",
    skip: str = "",
    strip_end: str = "",
) -> bytes:
    """Headerless files, one after the other, under the given column names."""
    lines = (line for member in members for line in member.decode("utf-8").splitlines())
    kept = (line for line in lines if line.strip() and not (skip and line.startswith(skip)))
    rows = [[field.strip() for field in line.strip().split(delimiter)] for line in kept]
    for row in rows:
        row[-1] = row[-1].removesuffix(strip_end)
    return _csv_bytes(columns, rows)


def table_with_header(
    members: Sequence[bytes],
    *,
    rename: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> bytes:
    """One CSV file with some columns renamed, dropped or alone kept.

    A name that occurs a second time gets the ending ``.1``, as pandas does.
    """
    (content,) = members
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    _check_known((*(rename or {}), *drop, *keep), header)
    chosen = [i for i, name in enumerate(header) if name not in drop and (not keep or name in keep)]
    names = _distinct([(rename or {}).get(header[i], header[i]) for i in chosen])
    _check_width(rows, len(header))
    return _csv_bytes(names, ([row[i] for i in chosen] for row in rows))


def table_from_arff(members: Sequence[bytes], *, rename: Mapping[str, str]) -> bytes:
    """An ARFF file with plain comma-separated rows."""
    (content,) = members
    lines = [line.strip() for line in content.decode("utf-8").splitlines()]
    start = [line.lower() for line in lines].index("@data")
    declared = [line.split()[1] for line in lines[:start] if line.lower().startswith("@attribute")]
    names = [rename.get(name, name) for name in declared]
    return _csv_bytes(names, [line.split(",") for line in lines[start + 1 :] if line])


def _distinct(names: Sequence[str]) -> list[str]:
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}.{n}" if n else name for name, n in zip(names, before, strict=True)]


def _check_known(names: Iterable[str], header: Sequence[str]) -> None:
    absent = [name for name in names if name not in header]
    if absent:
        raise ValueError(f"the file has no column {', '.join(absent)}")


def _check_width(rows: Iterable[Row], width: int) -> None:
    for number, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"row {number} of the file has {len(row)} fields instead of {width}")


def _csv_bytes(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    rows = list(rows)
    _check_width(rows, len(columns))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")
