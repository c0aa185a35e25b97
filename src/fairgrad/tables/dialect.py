"""How a file of text is written: encoding, separator, quotes, decimal mark; found or given.

What is found is said where it is not the usual (UTF-8, commas, decimal points), and the user may
say otherwise. A file that fits nothing is refused in a sentence.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
DECIMALS = {".": "point", ",": "comma"}

_BLOCK = 1 << 20
_SAMPLE, _SAMPLE_RECORDS = 1 << 18, 200
"""Characters and records that separator, quotes and decimal mark are found by."""

_MARKED = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_USUAL = {"utf-8", "utf-8-sig"}
_MOST_NULLS = 0.2


@dataclass(frozen=True)
class ReadingOptions:
    """What the user says about a file; None for what is found in it.

    Attributes:
        sep: one character between fields.
        decimal: the mark before decimals, a point or a comma.
        encoding: as Python knows it.
        missing: texts that mean a missing value in every column.
        prefix: of the options' names in errors; ``"--"`` in the program.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    prefix: str = ""

    def __post_init__(self) -> None:
        p = self.prefix
        named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
        object.__setattr__(self, "sep", named.get(str(self.sep), self.sep))
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\n\r'):
            raise ValueError(f"{p}sep is {self.sep!r}; one character is needed, such as ; or tab")
        if self.decimal not in {None, *DECIMALS}:
            raise ValueError(f"{p}decimal is {self.decimal!r}; allowed are . and ,")
        if self.decimal is not None and self.decimal == self.sep:
            raise ValueError(f"{p}decimal and {p}sep are both {self.sep!r}; they must differ")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"{p}encoding is {self.encoding!r}, which is not known; known are, for "
                    "example, utf-8, utf-16, cp1252 and latin-1"
                ) from None


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Attributes:
        encoding: as Python knows it.
        sep: between fields.
        decimal: the mark before decimals.
        quotechar: around fields.
        escapechar: before a quote inside of quotes; None if it is doubled.
        skipinitialspace: whether spaces follow separators.
        width: how many names are in the header.
        nameless: where rows have one field more than the header: "first", names of rows as R
            writes them, or "last", nothing after a last separator; empty if they have not.
    """

    encoding: str = "utf-8"
    sep: str = ","
    decimal: str = "."
    quotechar: str = '"'
    escapechar: str | None = None
    skipinitialspace: bool = False
    width: int = 2
    nameless: str = ""

    def options(self) -> dict[str, Any]:
        """As `pandas.read_csv` takes them."""
        return {
            **self.format(),
            "encoding": self.encoding,
            "sep": self.sep,
            "decimal": self.decimal,
        }

    def format(self) -> dict[str, Any]:
        """What pandas and the csv module call alike."""
        return {
            "quotechar": self.quotechar,
            "escapechar": self.escapechar,
            "skipinitialspace": self.skipinitialspace,
        }

    def sentence(self, name: str, ending: str = "") -> str:
        """What is unusual about it, in words; empty if nothing is."""
        usual = "\t" if ending in {".tsv", ".tab"} else ","
        said = []
        if self.sep != usual and self.width > 1:
            said.append(f"fields separated by {SEPARATORS.get(self.sep, repr(self.sep))}")
        if self.decimal != ".":
            said.append("numbers with a decimal comma")
        if self.quotechar != '"':
            said.append(f"texts in {self.quotechar}")
        if self.encoding not in _USUAL:
            said.append(f"encoding {self.encoding}")
        return f"{name} is read with {', '.join(said)}." if said else ""


def find_dialect(path: Path, options: ReadingOptions | None = None) -> Dialect:
    """How a file is written, as it is found or as the user says.

    Raises:
        ValueError: if the encoding is not recognised or wrong, or the separator does not fit.
        OSError: if the file cannot be read, or unpacked.
    """
    state = path.stat()
    return _find(path, options or ReadingOptions(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _find(path: Path, options: ReadingOptions, _time: int, _size: int) -> Dialect:
    encoding = _encoding(path, options)
    with opened(path) as file:
        text = io.TextIOWrapper(file, encoding=encoding, newline="")
        sample = text.read(_SAMPLE)
        text.detach()
    whole = sample if len(sample) < _SAMPLE else sample[: sample.rfind("\n") + 1]
    if not whole.strip("\ufeff\r\n \t"):
        raise ValueError(f"{path.name} is empty")
    dialect, records = _structure(whole, encoding, options, path.name.lower())
    width = len(records[0])
    nameless = _nameless(records)
    if not nameless:
        _check_width(path.name, dialect, records, options)
    return replace(
        dialect,
        decimal=options.decimal or _decimal(dialect, records),
        width=width,
        nameless=nameless,
    )


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked."""
    name = path.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as packed:
            members = [one for one in packed.namelist() if not one.startswith("__MACOSX/")]
            if len(members) != 1:
                raise ValueError(f"{path.name} holds {len(members)} files; one table is needed")
            with packed.open(members[0]) as file:
                yield file
        return
    unpack: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(
        path.suffix.lower(), open
    )
    with unpack(path, "rb") as file:
        yield file


def _encoding(path: Path, options: ReadingOptions) -> str:
    """The first encoding that the whole file is in."""
    with opened(path) as file:
        start = file.read(_BLOCK)
    if options.encoding is not None:
        _check_encoding(path, options.encoding, options.prefix)
        given = codecs.lookup(options.encoding).name
        return "utf-8-sig" if given == "utf-8" else given
    marked = next((name for mark, name in _MARKED.items() if start.startswith(mark)), None)
    nulls = [start[place::2].count(0) / max(1, len(start) / 2) for place in (0, 1)]
    if marked is None and max(nulls) > _MOST_NULLS:  # of every two bytes one is 0, in Latin texts
        marked = "utf-16-be" if nulls[0] > nulls[1] else "utf-16-le"
    for name in [marked] if marked else ["utf-8", "cp1252"]:
        if _first_fault(path, name) is None and (marked or b"\0" not in start):
            return name
    if b"\0" in start:
        raise ValueError(
            f"{path.name} cannot be read as a table: it contains NUL bytes. Export it again as CSV "
            f"or Parquet, or name its encoding ({options.prefix}encoding)"
        )
    raise ValueError(
        f"{path.name} cannot be read as a table: it is neither UTF-8 nor UTF-16 nor cp1252 text; "
        f"name its encoding ({options.prefix}encoding), or save it as UTF-8"
    )


def _check_encoding(path: Path, encoding: str, prefix: str) -> None:
    fault = _first_fault(path, encoding)
    if fault is not None:
        raise ValueError(
            f"{path.name} cannot be read as a table: byte {fault} is not {encoding}; leave out "
            f"{prefix}encoding to have it recognised, or name another"
        )


def _first_fault(path: Path, encoding: str) -> int | None:
    """Where the file is not in this encoding; None if it is, to its end."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    with opened(path) as file:
        while True:
            block = file.read(_BLOCK)
            try:
                decoder.decode(block, final=not block)
            except UnicodeError as error:
                return done + int(getattr(error, "start", 0))
            if not block:
                return None
            done += len(block)


def _structure(
    sample: str, encoding: str, options: ReadingOptions, name: str
) -> tuple[Dialect, list[list[str]]]:
    """Separator and quotes under which the records are alike, and the records."""
    separators = [options.sep] if options.sep else list(SEPARATORS)
    if name.endswith((".tsv", ".tsv.gz", ".tab")):
        separators.sort(key=lambda one: one != "\t")
    escape = "\\" if '\\"' in sample else None
    best: tuple[tuple[Any, ...], Dialect, list[list[str]]] | None = None
    for separator in separators:
        for quote in '"' if '"' in sample or "'" not in sample else "\"'":
            spaced = f"{separator} " in sample.split("\n", 1)[0]
            dialect = Dialect(encoding, separator, ".", quote, escape, spaced)
            records = _records(sample, dialect)
            widths = [len(record) for record in records]
            alike = sum(width == widths[0] for width in widths) / len(widths)
            # Single quotes are taken where they are around fields, and nowhere else.
            rank = 1 if quote == '"' else 2 * _all_quoted(sample, separator)
            fit = (widths[0] > 1, round(alike, 2), widths[0], rank)
            if best is None or fit > best[0]:
                best = fit, dialect, records
    assert best is not None  # noqa: S101 - there is a separator
    return best[1], best[2]


def _all_quoted(sample: str, separator: str) -> bool:
    """Whether single quotes stand around whole fields, and nowhere else: 'a','b'."""
    around = re.escape(separator)
    whole = re.findall(
        rf"(?:^|(?<={around}))'[^'\n]*'(?=$|{around}|\r)", sample, flags=re.MULTILINE
    )
    return bool(whole) and 2 * len(whole) == sample.count("'")


def _records(sample: str, dialect: Dialect) -> list[list[str]]:
    reader = csv.reader(
        io.StringIO(sample.lstrip("\ufeff"), newline=""), delimiter=dialect.sep, **dialect.format()
    )
    found: list[list[str]] = []
    try:
        for record in reader:
            if any(field.strip() for field in record):
                found.append(record)
            if len(found) >= _SAMPLE_RECORDS:
                break
    except csv.Error:  # a field without an end, or a stray zero
        pass
    return found or [[]]


def _nameless(records: Sequence[Sequence[str]]) -> str:
    """Where all rows have one field more than the header, if they do."""
    width, rows = len(records[0]), records[1:]
    if width == 1 or not rows or any(len(row) != width + 1 for row in rows):
        return ""
    if not any(row[-1].strip() for row in rows):
        return "last"
    first = [row[0].strip() for row in rows]
    return "first" if all(first) and len(set(first)) == len(first) else ""


def _check_width(
    name: str, dialect: Dialect, records: Sequence[Sequence[str]], options: ReadingOptions
) -> None:
    """Refuses a row longer than the header, of which pandas would make an index."""
    width = len(records[0])
    if options.sep and width == 1:
        other = max(SEPARATORS, key=records[0][0].count)
        if records[0][0].count(other):
            raise ValueError(
                f"{name} has a single column if its fields are separated by {options.sep!r} "
                f"({options.prefix}sep); it looks like {SEPARATORS[other]}"
            )
    for number, record in enumerate(records[1:], start=2):
        if len(record) > width:
            raise ValueError(
                f"{name} cannot be read as a table: Expected {width} fields in line {number}, saw "
                f"{len(record)}; if its fields are not separated by "
                f"{SEPARATORS.get(dialect.sep, repr(dialect.sep))}, give {options.prefix}sep"
            )


def _decimal(dialect: Dialect, records: Sequence[Sequence[str]]) -> str:
    """The decimal mark: which of point and comma stands before anything but three digits."""
    sure: Counter[str] = Counter()
    maybe: Counter[str] = Counter()
    for field in (field.strip() for record in records[1:] for field in record):
        match = re.fullmatch(r"[+-]?(\d+|\d{1,3}(?:[.,]\d{3})+)([.,])(\d+)%?", field)
        if match is None:
            continue
        whole, mark, part = match.groups()
        if mark in whole:  # 1,042,000: between thousands, unless it is no number at all
            sure[",."[mark == ","]] += len(part) == 3
        elif len(part) == 3 and re.fullmatch(r"[1-9]\d{0,2}", whole):  # 1,042: either
            maybe[mark] += 1
        else:
            sure[mark] += 1
    if sure[","] or sure["."]:
        return "," if sure[","] > sure["."] else "."
    return "," if dialect.sep != "," and maybe[","] > maybe["."] else "."
