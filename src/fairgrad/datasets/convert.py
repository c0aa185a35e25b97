"""Raw files of a publisher or carrier -> one plain CSV table, as bytes that never vary.

The tables are written field by field, without a number ever being parsed and printed again, so
the SHA-256 of the result is the same on every machine and with every version of every library.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = list[str]


def table_without_header(
    members: Sequence[bytes],
    *,
    columns: Sequence[str],
    delimiter: str = ",",
    skip: str = "",
    strip_end: str = "",
) -> bytes:
    r"""Headerless files, one after the other, under the given column names.

    Args:
        members: Contents of the files.
        columns: Names of the columns.
        delimiter: Character between two fields; surrounding blanks are removed.
        skip: Lines that start with this text are comments.
        strip_end: Text removed from the end of the last field.

    Examples:
        >>> table_without_header([b"1, a.\n|note\n2, b\n"], columns=("n", "letter"),
        ...                      skip="|", strip_end=".")
        b'n,letter\n1,a\n2,b\n'
    """
    rows = []
    for member in members:
        for line in member.decode("utf-8").splitlines():
            if not line.strip() or (skip and line.startswith(skip)):
                continue
            fields = [field.strip() for field in line.split(delimiter)]
            fields[-1] = fields[-1].removesuffix(strip_end)
            rows.append(fields)
    _check_width(rows, len(columns))
    return _csv_bytes(columns, rows)


def _check_width(rows: Iterable[Row], width: int) -> None:
    for number, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"row {number} of the file has {len(row)} fields instead of {width}")


def _csv_bytes(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")
