"""How a text file is written: encoding, separator, quotes, decimal mark, and where its header is.

The program reports what it detects if it is not the default (UTF-8, commas, decimal points, a
header in the first row). Options override it. A file that fits nothing is refused in a sentence.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
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
_END = 1 << 16
"""Characters at the end of a file that a footer is looked for in."""

_TOTAL = re.compile(r"(?i)(?:grand |sub-?)?totals?:?|gesamt:?|insgesamt:?|summe:?")


@dataclass(frozen=True)
class ReadingOptions:
    """What the user says about a file; None for what is found in it.

    Attributes:
        sep: one character between fields.
        decimal: the mark before decimals, a point or a comma.
        encoding: as Python knows it.
        missing: texts that mean a missing value in every column.
        skip_rows: rows above the header.
        sheet: name of a sheet of an Excel file.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    skip_rows: int | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
        object.__setattr__(self, "sep", named.get(str(self.sep), self.sep))
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\n\r'):
            raise ValueError(f"--sep is {self.sep!r}; one character is needed, such as ; or tab")
        if self.decimal not in {None, *DECIMALS}:
            raise ValueError(f"--decimal is {self.decimal!r}; allowed are . and ,")
        if self.decimal is not None and self.decimal == self.sep:
            raise ValueError(f"--decimal and --sep are both {self.sep!r}; they must differ")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"--encoding is {self.encoding!r}, which is not known; use, for "
                    "example, utf-8, utf-16, cp1252 or latin-1"
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
        names: of the columns; empty where the header has none.
        above: rows before the first row of values, blank ones included.
        titles: rows above the header, if there are any titles.
        footer: rows at the end that are no values, such as totals and notes.
    """

    encoding: str = "utf-8"
    sep: str = ","
    decimal: str = "."
    quotechar: str = '"'
    escapechar: str | None = None
    skipinitialspace: bool = False
    names: tuple[str, ...] = ()
    above: int = 1
    titles: int = 0
    footer: tuple[str, ...] = ()

    def sentence(self, path: Path) -> str:
        """What is unusual about it, in words; empty if nothing is."""
        name, ending = path.name, "".join(path.suffixes[:1]).lower()
        usual = "\t" if ending in {".tsv", ".tab"} else ","
        details = []
        if self.sep != usual and len(self.names) > 1:
            details.append(f"fields separated by {SEPARATORS.get(self.sep, repr(self.sep))}")
        if self.decimal != ".":
            details.append("numbers with a decimal comma")
        if self.quotechar != '"':
            details.append(f"texts in {self.quotechar}")
        if self.encoding not in _USUAL:
            details.append(f"encoding {self.encoding}")
        how = f"{name} is read with {', '.join(details)}." if details else ""
        return " ".join(filter(None, [how, *layout_sentences(name, self.titles, self.footer)]))


def layout_sentences(name: str, titles: int, footer: Sequence[str]) -> list[str]:
    """Sentences on which row is the header, and which rows at the end are left out."""
    sentences = [f"{name}: using row {titles + 1} as the header."] if titles else []
    notes = [text for text in footer if text]
    if notes:
        listed = ", ".join(repr(text) for text in notes[:3])
        rows = "row is" if len(notes) == 1 else f"{len(notes)} rows are"
        sentences.append(f"{name}: the last {rows} left out as a footer ({listed}).")
    return sentences


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
    encoding, sample, end = _encoding(path, options)
    whole = sample if len(sample) < _SAMPLE else sample[: sample.rfind("\n") + 1]
    whole = whole.lstrip("\ufeff")
    if not whole.strip("\ufeff\r\n \t"):
        raise ValueError(f"{path.name} is empty")
    dialect, rows = _structure(whole, encoding, options, path.name.lower())
    rows = rows[options.skip_rows or 0 :]
    filled = [place for place, row in enumerate(rows) if any(field.strip() for field in row)]
    records = [rows[place] for place in filled]
    if not records:
        raise ValueError(f"{path.name} has no rows below --skip-rows")
    header, titles, n_above = find_header(records, is_named=options.skip_rows is not None)
    last = _rows(end, dialect, _SAMPLE)
    footer = find_footer(last[1:] if len(end) == _END else last, len(header))
    values = records[n_above:]
    values = values[: len(values) - len(footer)] if len(rows) < _SAMPLE_RECORDS else values
    names = _names_of(path.name, dialect, header, values, options)
    return replace(
        dialect,
        decimal=options.decimal or _decimal(dialect, values),
        names=tuple(name.strip() for name in names),
        above=(options.skip_rows or 0) + filled[n_above - 1] + 1,
        titles=(options.skip_rows or 0) + (filled[titles] if titles else 0),
        footer=footer,
    )


def find_header(
    records: Sequence[Sequence[str]], *, is_named: bool = False
) -> tuple[list[str], int, int]:
    """The header of a table: its first row, unless titles or merged cells are above it.

    A row is a title if at most half of its fields are filled, and a row of distinct texts that
    fills nearly all fields follows. Names in two rows, as merged cells leave them, are joined.

    Returns:
        The names, how many rows are above them, and how many are above the first row of values.
    """
    width = Counter(len(record) for record in records).most_common(1)[0][0]
    start = 0
    if not is_named and width > 1:
        filled = [sum(bool(field.strip()) for field in record) for record in records]
        first = next((i for i, n in enumerate(filled) if 2 * n > width), 0)
        if first and _are_names(records[first], width):
            start = first
    names = list(records[start])
    below = list(records[start + 1]) if len(records) > start + 2 else []
    gaps = [not name.strip() for name in names]
    if len(below) == len(names) and any(gaps) and not all(field.strip() for field in below):
        joined = [low.strip() or high.strip() for low, high in zip(below, names, strict=True)]
        is_split = all(below[i].strip() for i, gap in enumerate(gaps) if gap)
        if is_split and _are_names(joined, width) and not any(map(_is_number, below)):
            return joined, start, start + 2
    return names, start, start + 1


def find_footer(records: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    """The first field of each row at the end that is a total, a note, or empty."""
    footer: list[str] = []
    records = [record for record in records if record] if width > 1 else []
    before = [[field.strip() for field in record if field.strip()] for record in records]
    for place in range(len(before) - 1, 0, -1):
        filled = before[place]
        is_note = len(filled) == 1 and width > 2 and re.search(r"\s|^\*|:$", filled[0])
        is_total = bool(filled) and _TOTAL.fullmatch(filled[0])
        if is_total and any(row and row[0] == filled[0] for row in before[:place]):
            break  # a value of its column
        if filled and not is_note and not is_total:
            break
        footer.append(filled[0] if filled else "")
    return tuple(reversed(footer))


def _are_names(record: Sequence[str], width: int) -> bool:
    names = [field.strip() for field in record if field.strip()]
    is_full = len(names) >= width - 1 and len(record) in {width, width - 1}
    return is_full and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[\d.,]*\d[\d.,]*%?", text.strip()) is not None


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked."""
    unpack: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    file: IO[bytes] = unpack.get(path.suffix.lower(), open)(path, "rb")
    return file


def _encoding(path: Path, options: ReadingOptions) -> tuple[str, str, str]:
    """The first encoding that the whole file is in, and the start and the end of the text."""
    if options.encoding is not None:
        named = codecs.lookup(options.encoding).name
        fault, sample, end = _decoded(path, named)
        if fault is None:
            return "utf-8-sig" if named == "utf-8" else named, sample, end
        raise ValueError(
            f"{path.name} cannot be read as a table: byte {fault} is not {options.encoding}; "
            "omit --encoding to detect it, or name another"
        )
    with opened(path) as file:
        start = file.read(_BLOCK)
    marked = next((name for mark, name in _MARKED.items() if start.startswith(mark)), None)
    nulls = [start[place::2].count(0) / max(1, len(start) / 2) for place in (0, 1)]
    if marked is None and max(nulls) > _MOST_NULLS:  # of every two bytes one is 0, in Latin texts
        marked = "utf-16-be" if nulls[0] > nulls[1] else "utf-16-le"
    for name in [marked] if marked else ["utf-8", "cp1252"]:
        fault, sample, end = _decoded(path, name)
        if fault is None and (marked or b"\0" not in start):
            return name, sample, end
    why = (
        "contains NUL bytes. Export it again as CSV or Parquet, or name its encoding (--encoding)"
        if b"\0" in start
        else "is neither UTF-8 nor UTF-16 nor cp1252 text; name its encoding (--encoding), or save "
        "it as UTF-8"
    )
    raise ValueError(f"{path.name} cannot be read as a table: it {why}")


def _decoded(path: Path, encoding: str) -> tuple[int | None, str, str]:
    """Where the file is not in this encoding, None if it is; and the start and end of its text."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done, sample, end = 0, "", ""
    with opened(path) as file:
        while True:
            block = file.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                return done + int(getattr(error, "start", 0)), "", ""
            sample += text[: _SAMPLE - len(sample)]
            end = (end + text)[-_END:]
            if not block:
                return None, sample, end
            done += len(block)


def _structure(
    sample: str, encoding: str, options: ReadingOptions, name: str
) -> tuple[Dialect, list[list[str]]]:
    """Separator and quotes under which most rows have the same width, and the rows."""
    separators = [options.sep] if options.sep else list(SEPARATORS)
    if name.endswith((".tsv", ".tsv.gz", ".tab")):
        separators.sort(key=lambda sign: sign != "\t")
    escape = "\\" if '\\"' in sample else None
    lines = sample.split("\n", 10)[:10]
    candidates = []
    for separator in separators:
        usual = Counter(line.count(separator) for line in lines).most_common(1)[0][0]
        header = next(line for line in lines if line.count(separator) == usual)
        is_spaced = f"{separator} " in header
        for quote in '"' if '"' in sample or "'" not in sample else "\"'":
            dialect = Dialect(encoding, separator, ".", quote, escape, is_spaced)
            rows = _rows(sample, dialect)
            widths = Counter(len(row) for row in rows if any(field.strip() for field in row))
            width, n = widths.most_common(1)[0] if widths else (0, 0)
            alike = n / max(1, widths.total())
            # Single quotes are taken where they are around fields, and nowhere else.
            rank = 1 if quote == '"' else 2 * _all_quoted(sample, separator)
            candidates.append(((width > 1, round(alike, 2), width, rank), dialect, rows))
    _, dialect, rows = max(candidates, key=lambda candidate: candidate[0])
    return dialect, rows


def _all_quoted(sample: str, separator: str) -> bool:
    """Whether single quotes stand around whole fields, and nowhere else: 'a','b'."""
    around = re.escape(separator)
    whole = re.findall(
        rf"(?:^|(?<={around}))'[^'\n]*'(?=$|{around}|\r)", sample, flags=re.MULTILINE
    )
    return bool(whole) and 2 * len(whole) == sample.count("'")


def _rows(sample: str, dialect: Dialect, most: int = _SAMPLE_RECORDS) -> list[list[str]]:
    reader = csv.reader(
        io.StringIO(sample.lstrip("\ufeff"), newline=""),
        delimiter=dialect.sep,
        quotechar=dialect.quotechar,
        escapechar=dialect.escapechar,
        skipinitialspace=dialect.skipinitialspace,
    )
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a field without an end, or a stray zero
        rows.extend(itertools.islice(reader, most))
    return rows


def _names_of(
    name: str,
    dialect: Dialect,
    header: list[str],
    rows: Sequence[Sequence[str]],
    options: ReadingOptions,
) -> list[str]:
    """The header, with an empty name where all rows have one field more.

    It comes first for names of rows, as R writes them, and last for a separator at the end. Other
    rows longer than the header, of which pandas would make an index, are refused.
    """
    width = len(header)
    if width > 1 and rows and all(len(row) == width + 1 for row in rows):
        first = [row[0].strip() for row in rows]
        if not any(row[-1].strip() for row in rows):
            return [*header, ""]
        if all(first) and len(set(first)) == len(first):
            return ["", *header]
    if options.sep and width == 1:
        other = max(SEPARATORS, key=header[0].count)
        if header[0].count(other):
            raise ValueError(
                f"{name} has a single column with --sep {options.sep!r}; its fields seem to be "
                f"separated by {SEPARATORS[other]}"
            )
    for number, record in enumerate(rows, start=2):
        if len(record) > width:
            raise ValueError(
                f"{name} cannot be read as a table: Expected {width} fields in line {number}, saw "
                f"{len(record)}; if its fields are not separated by "
                f"{SEPARATORS.get(dialect.sep, repr(dialect.sep))}, use --sep"
            )
    return header


def _decimal(dialect: Dialect, rows: Sequence[Sequence[str]]) -> str:
    """The decimal mark: which of point and comma stands before anything but three digits."""
    sure: Counter[str] = Counter()
    maybe: Counter[str] = Counter()
    for field in (field.strip() for row in rows for field in row):
        match = re.fullmatch(r"[+-]?(\d+|\d{1,3}(?:[.,]\d{3})+)([.,])(\d+)%?", field)
        if match is None:
            continue
        whole, mark, decimals = match.groups()
        if mark in whole:  # 1,042,000: between thousands, unless it is no number at all
            sure[",."[mark == ","]] += len(decimals) == 3
        elif len(decimals) == 3 and re.fullmatch(r"[1-9]\d{0,2}", whole):  # 1,042: either
            maybe[mark] += 1
        else:
            sure[mark] += 1
    if sure[","] or sure["."]:
        return "," if sure[","] > sure["."] else "."
    return "," if dialect.sep != "," and maybe[","] > maybe["."] else "."
