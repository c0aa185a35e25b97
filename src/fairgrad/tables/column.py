"""A column of a file: what it holds, and its texts as numbers, dates or categories.

A column has one kind for the whole table: numbers, dates or booleans if all its values are, else
texts. Among numbers, dates and booleans "NA" and the like mean a missing value. In a column of
texts they are texts, unless the user says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.tables.values import (
    MISSING_TEXTS,
    as_categories,
    column_kind,
    counted,
    date_format,
    kind_of_texts,
    named_codes,
    named_days,
    other_decimal,
    parse_numbers,
    texts_among_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Times = NDArray[np.int64] | None
    """How many rows each row of a table of counts stands for; None for rows that are rows."""

READING = "fairgrad.reading"
"""Where a frame keeps the notes on how it was read."""

_DECORATED = re.compile(r"[^\d.,eE+-]|\d{1,3}(?:[.,]\d{3})+(?:[.,]|$)")
"""Numbers with more than digits, or with marks between thousands."""


@dataclass
class ReadingReport:
    """Notes on how a table was read.

    Attributes:
        files: sentences about the files.
        gaps: by column, how many values were taken as missing, by their text ("" if empty).
        named: by column, how often a text stands that would be missing among numbers.
        written: by column, how numbers or dates in texts were read.
        forms: by column, the format of its dates.
        decimal: the decimal mark.
        missing: texts that the user says mean a missing value.
    """

    files: list[str] = field(default_factory=list)
    gaps: dict[str, dict[str, int]] = field(default_factory=dict)
    named: dict[str, dict[str, int]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    decimal: str = "."
    missing: tuple[str, ...] = ()

    def __deepcopy__(self, _: Any) -> ReadingReport:
        """Itself: pandas copies what a frame keeps whenever a column is taken."""
        return self

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ReadingReport:
        """That of a frame; an empty one if it was not read from a file."""
        report = frame.attrs.get(READING)
        return report if isinstance(report, cls) else cls()

    def note_piece(self, piece: pd.DataFrame) -> None:
        """Takes down how the file of a piece of the table is written."""
        self.decimal = str(piece.attrs.get("decimal", "."))
        note = piece.attrs.get("note")
        if note and note not in self.files:
            self.files.append(note)

    def gap_words(self, name: str) -> str:
        """Which texts of a column were taken as missing, in brackets; nothing for empty fields."""
        texts = [repr(text) if text else "empty" for text in self.gaps.get(name, {})]
        return f" ({' or '.join(texts)})" if texts and texts != ["empty"] else ""

    def sentences(self, columns: Iterable[str], *, gaps: bool = False) -> list[str]:
        """How the files were read, and what was done to values of these columns."""
        known = list(dict.fromkeys(columns))
        told = list(self.files)
        for name in known if gaps else ():
            taken = {text: n for text, n in self.gaps.get(name, {}).items() if text}
            if taken:
                told.append(f"{name}: {_with_counts(taken)} taken as missing.")
        for name in (name for name in known if name in self.named):
            first = next(iter(self.named[name]))
            told.append(
                f"{name}: {_with_counts(self.named[name])} read as text; use --missing "
                f"{first} if it means that the value is missing."
            )
        return told + [f"{name}: {self.written[name]}." for name in known if name in self.written]


def _with_counts(texts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{text!r} ({counted(n, 'row')})" for text, n in texts.items())
    return f"{listed} {'is' if len(texts) == 1 else 'are'}"


@dataclass
class ColumnReader:
    """Decides what a column holds, and turns its texts into numbers, dates or categories.

    Attributes:
        name: of the column.
        report: gets the notes on the column.
        as_text: whether to leave it as texts, whatever they look like.
        times: how many rows each row stands for; None for rows that are rows.
    """

    name: str
    report: ReadingReport
    as_text: bool = False
    times: Times = None

    def read(self, column: pd.Series) -> Any:
        """The values as an array of numbers, dates or categories."""
        missing = column.isna().to_numpy()
        self._count("", missing, self.report.gaps)
        if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
            column = column.astype("float64")  # too large for pandas' integers
        kind = "number" if missing.all() else column_kind(column)
        if kind == "category":
            return self._read_texts(column)
        if kind == "date":
            column = pd.to_datetime(column, utc=True)
        texts = self.report.missing
        for text, number in zip(texts, parse_numbers(texts, self.report.decimal), strict=True):
            is_equal = named_days(column, text) if kind == "date" else column == number
            is_gap = pd.Series(is_equal).fillna(value=False).to_numpy(dtype=bool)
            if is_gap.any():
                self._count(text, is_gap, self.report.gaps)
                column = (column if kind == "date" else column.astype("float64")).mask(is_gap)
        if kind == "date":
            return column.to_numpy(dtype="datetime64[ns]")
        is_plain = isinstance(column.dtype, np.dtype) and column.dtype != object
        return np.asarray(column if is_plain else column.astype("float64"))

    def _count(self, text: str, rows: Any, notes: dict[str, dict[str, int]]) -> None:
        """Adds to some notes how many rows have a text."""
        n = int(np.sum(rows if self.times is None else self.times[np.asarray(rows)]))
        if n:
            counts = notes.setdefault(self.name, {})
            counts[text] = counts.get(text, 0) + n

    def _read_texts(self, column: pd.Series) -> Any:
        """What texts are, decided by the distinct ones; and their values."""
        named = self._removed(named_codes(*pd.factorize(column)), {"", *self.report.missing})
        names = [str(name) for name in named.categories]
        if not names:
            return np.full(len(column), np.nan)
        kind, numbers = (
            ("text", None) if self.as_text else kind_of_texts(names, self.report.decimal)
        )
        if kind == "truth":
            named = self._removed(named, MISSING_TEXTS)
            spelt = pd.Series(named).astype(object).str.capitalize()
            return pd.Categorical(as_categories(spelt).array)
        if numbers is not None:
            return self._numbers_of(named, names, numbers)
        form, other = "", ""
        if kind == "text" and not self.as_text:
            form, other = date_format([name for name in names if name not in MISSING_TEXTS])
        if form:
            return self._dates_of(named, form, other)
        for text in (name for name in names if name in MISSING_TEXTS):
            self._count(text, named == text, self.report.named)
        return named

    def _numbers_of(
        self, named: pd.Categorical, names: Sequence[str], numbers: NDArray[Any]
    ) -> NDArray[Any]:
        """The column as the numbers of its texts."""
        self._removed(named, [name for name, n in zip(names, numbers, strict=True) if np.isnan(n)])
        for name, number in zip(names, numbers, strict=True):
            if not np.isnan(number) and _DECORATED.search(name):
                as_read = f"numbers such as {name!r} are read as {number:g}"
                self.report.written[self.name] = as_read
                break
        read = np.append(numbers, np.nan)[named.codes]
        is_whole = bool((np.abs(read) < 2**53).all() and (read == np.round(read)).all())
        return np.asarray(read, dtype=np.int64 if is_whole else np.float64)

    def _dates_of(self, named: pd.Categorical, form: str, other: str) -> NDArray[Any]:
        """The column as the dates of its texts."""
        named = self._removed(named, MISSING_TEXTS)
        dates = pd.to_datetime(pd.Series(named.categories, dtype=object), format=form, utc=True)
        lookup = np.append(dates.to_numpy(dtype="datetime64[ns]"), np.datetime64("NaT", "ns"))
        self.report.forms[self.name] = form
        if other:
            self.report.written[self.name] = (
                f"dates read as {_form_in_words(form)}; {_form_in_words(other)} would fit as well"
            )
        return np.asarray(lookup[named.codes])

    def _removed(self, named: pd.Categorical, texts: Collection[str]) -> pd.Categorical:
        """Categories without those that mean a missing value."""
        gone = [str(name) for name in named.categories if name in texts]
        for name in gone:
            self._count(name, named == name, self.report.gaps)
        return named.remove_categories(gone) if gone else named


def _form_in_words(form: str) -> str:
    words = {"%d": "day", "%m": "month", "%Y": "year", "%y": "year"}
    for code, word in words.items():
        form = form.replace(code, word)
    return form.split(" %")[0]


def checked_column(
    frame: pd.DataFrame, name: str, categorical: Sequence[str] = (), prefix: str = ""
) -> pd.Series:
    """A column, as categories if the user names it in `categorical`.

    Raises:
        ValueError: if it mixes numbers and texts, or has another decimal mark than the file.
    """
    if name in categorical:
        return as_categories(frame[name])
    texts = texts_among_numbers(frame[name])
    if texts:
        raise ValueError(
            f"the column {name!r} mixes numbers and texts such as {texts}. Name the text in "
            f"{prefix}missing if it means a missing value, or the column in {prefix}categorical if "
            f"its values are names, or in {prefix}drop"
        )
    used = ReadingReport.of(frame).decimal
    if other_decimal(frame[name], used):
        mark = {".": "point", ",": "comma"}
        raise ValueError(
            f"the column {name!r} contains {frame[name].cat.categories[0]}, but the file is read "
            f"with a decimal {mark[used]}; use {prefix}decimal, or name the column in "
            f"{prefix}categorical if its values are names"
        )
    return frame[name]
