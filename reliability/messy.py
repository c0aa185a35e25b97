"""Messy files with known content: are they read correctly or refused, but never misread?

Each file is a table of people, written in some dialect, with titles, footers, sentinels, spellings
of one value and copies of rows, as chance has it. ``python -m reliability.messy 2000`` reads 2,000.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.tables.reading import read_table
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

N_ROWS = 120
TITLES = (
    (),
    (("People of 2024",),),
    (("People of 2024",), ()),
    (("Report",), ("Printed on", "2024-05-01"), ()),
)
FOOTERS = (
    (),
    (("Total", "", "123456"),),
    ((), ("Source: census of 2020",)),
    (("", "", ""), ("* preliminary figures",)),
    (("Grand total", "", "99"), (), ("Note: without towns",)),
)
SPELLINGS = {"yes": ("Yes", "YES"), "no": ("NO", "No"), "f": ("F",), "m": ("M",)}


@dataclass
class MessyFile:
    """A file and what it means.

    Attributes:
        path: of the file.
        truth: its table, with sentinels as the values they are and one spelling of each value.
        has_spellings: whether a value has several spellings.
        sentinels: by column, values that may mean a missing one.
        n_copies: rows that are copies of another.
        how: what was done to it, for messages.
    """

    path: Path
    truth: pd.DataFrame
    has_spellings: bool
    sentinels: dict[str, str] = field(default_factory=dict)
    n_copies: int = 0
    how: dict[str, Any] = field(default_factory=dict)


def messy_file(seed: int, folder: Path) -> MessyFile:
    """Writes the file of a seed into a folder."""
    chance = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": chance.integers(18, 80, N_ROWS),
            "wage": (chance.gamma(2, 900, N_ROWS) + 1).round(2),
            "start": np.datetime64("2001-01-01") + chance.integers(0, 7000, N_ROWS),
            "city": chance.choice(["Rome", "São Paulo", "Den, Haag", 'the "Hague"'], N_ROWS),
            "sex": chance.choice(["f", "m"], N_ROWS),
            "hired": chance.choice(["no", "yes"], N_ROWS),
        }
    )
    sentinels = {}
    if chance.random() < 0.4:
        table.loc[chance.random(N_ROWS) < 0.1, "wage"] = -99.0
        table.loc[:4, "wage"] = -99.0
        sentinels["wage"] = "-99"
    if chance.random() < 0.3:
        table.loc[chance.random(N_ROWS) < 0.1, "city"] = "Refused"
        table.loc[0, "city"] = "Refused"
        sentinels["city"] = "Refused"
    if chance.random() < 0.3:
        table.loc[chance.random(N_ROWS) < 0.1, "start"] = pd.Timestamp("1900-01-01")
        table.loc[:4, "start"] = pd.Timestamp("1900-01-01")
        sentinels["start"] = "1900-01-01"
    table["wage"] = table["wage"].mask(chance.random(N_ROWS) < 0.1)
    n_copies = int(chance.integers(1, 5)) if chance.random() < 0.3 else 0
    table = pd.concat([table, table.head(n_copies)], ignore_index=True)
    written = table.copy()
    has_spellings = chance.random() < 0.3
    if has_spellings:
        column = str(chance.choice(["hired", "sex"]))
        for place in chance.permutation(len(table))[:30]:
            value = str(table.loc[place, column])
            written.loc[place, column] = str(chance.choice(SPELLINGS[value]))
    how = {
        "sep": str(chance.choice([",", ";", "\t", "|"])),
        "encoding": str(chance.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])),
        "end": str(chance.choice(["\n", "\r\n"])),
        "quoting": int(chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        "gap": str(chance.choice(["", "NA", "null"])),
        "titles": TITLES[int(chance.integers(len(TITLES)))],
        "footer": FOOTERS[int(chance.integers(len(FOOTERS)))],
        "dates": str(chance.choice(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])),
        "thousands": bool(chance.random() < 0.3),
        "spaced": bool(chance.random() < 0.2),
        "padded": bool(chance.random() < 0.5),
        "ending": str(chance.choice([".csv", ".txt", ".csv.gz", ".zip", ".xlsx"])),
    }
    how["decimal"] = str(chance.choice([".", ","])) if how["sep"] != "," else "."
    path = folder / f"people{how['ending']}"
    cells = [[_text(value, how) for value in row] for row in written.to_numpy(object)]
    if how["ending"] == ".xlsx":
        _write_excel(path, table.columns, written, how)
    else:
        _write_text(path, [list(table.columns), *cells], how)
    return MessyFile(path, table, has_spellings, sentinels, n_copies, how)


def _text(value: Any, how: dict[str, Any]) -> str:
    if pd.isna(value):
        return str(how["gap"])
    if isinstance(value, pd.Timestamp):
        return value.strftime(how["dates"])
    if isinstance(value, float):
        text = f"{value:{',' if how['thousands'] else ''}.2f}"
        return text if how["decimal"] == "." else text.translate(str.maketrans(".,", ",."))
    return f" {value} " if how["spaced"] else str(value)


def _write_text(path: Path, rows: Sequence[Sequence[str]], how: dict[str, Any]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(
        text, delimiter=how["sep"], lineterminator=how["end"], quoting=how["quoting"]
    )
    width = len(rows[0])
    for row in (*how["titles"], *rows, *how["footer"]):
        writer.writerow([*row, *[""] * (width - len(row))] if how["padded"] and row else row)
    content = text.getvalue().encode(how["encoding"])
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("people.csv", content)
    else:
        path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)


def _write_excel(
    path: Path, names: Sequence[str], table: pd.DataFrame, how: dict[str, Any]
) -> None:
    import openpyxl  # noqa: PLC0415 - an extra

    book = openpyxl.Workbook()
    for row in (*how["titles"], names, *table.to_numpy(object).tolist(), *how["footer"]):
        book.active.append([None if pd.isna(value) or value == "" else value for value in row])
    book.save(path)


def misread(file: MessyFile) -> str:
    """What is wrong about how a file is read; empty if nothing is."""
    frame = read_table(file.path)
    roles = ColumnRoles("hired", ("sex",), ignore_case=file.has_spellings)
    problems = [
        *(_of_spellings(frame) if file.has_spellings else ()),
        *_of_content(roles.merged(frame), file.truth),
        *_of_hints(" ".join(roles.apply(frame).notes), file),
    ]
    return "; ".join(problems)


def _of_spellings(frame: pd.DataFrame) -> Iterator[str]:
    try:
        ColumnRoles("hired", ("sex",)).apply(frame)
    except ValueError as error:
        if "differ in spelling alone" not in str(error):
            yield f"refused for another reason: {error}"
    else:
        yield "spellings of one value are several values"


def _of_content(read: pd.DataFrame, truth: pd.DataFrame) -> Iterator[str]:
    if list(read) != list(truth) or len(read) != len(truth):
        yield f"{read.shape} and {list(read)} instead of {truth.shape}"
        return
    for name in ("age", "wage"):
        if not np.allclose(read[name].astype(float), truth[name], equal_nan=True):
            yield f"{name} has other numbers"
    if (pd.to_datetime(read["start"]) != truth["start"]).any():
        yield "start has other dates"
    for name, same in (("city", str.strip), ("sex", str.casefold), ("hired", str.casefold)):
        own = read[name].astype(str)
        if (own.map(same) != truth[name]).any() or own.nunique() != truth[name].nunique():
            yield f"{name} has other texts"


def _of_hints(notes: str, file: MessyFile) -> Iterator[str]:
    for name, text in file.sentinels.items():
        if f"{name}: {text} (" not in notes:
            yield f"no hint of {text} in {name}"
    if file.n_copies and "of another row" not in notes:
        yield "no hint of copies"


def main(n: int) -> int:
    """Reads as many files; gives the number of those that are misread."""
    n_bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(n):
            file = messy_file(seed, Path(folder))
            try:
                problems = misread(file)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is to be shown
                problems = f"{type(error).__name__}: {error}"
            if problems:
                n_bad += 1
                sys.stdout.write(f"{seed}: {problems}; {file.how}\n")
    sys.stdout.write(f"{n:,} files, {n_bad:,} misread or refused.\n")
    return n_bad


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]))))
