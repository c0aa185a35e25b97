"""A column of a table: what it holds, and its texts as numbers, dates or categories.

A column has one kind for the whole table: numbers, dates or booleans if all its values are, else
texts. In a column of numbers, dates or booleans "NA" and the like mean a missing value. In a column
of texts they are texts, unless the user decides otherwise.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Times = NDArray[np.int64] | None
    """How many rows each row of a table of counts stands for; None for rows that are rows."""

READING = "fairgrad.reading"
"""Where a frame keeps the notes on how it was read."""

_DECORATED = re.compile(r"[^\d.,eE+-]|\d{1,3}(?:[.,]\d{3})+(?:[.,]|$)")
"""Numbers with more than digits, or with marks between thousands."""

MISSING_TEXTS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "."}
)
"""Texts that mean a missing value among numbers, dates or booleans (those of pandas, and the point
of SAS and Stata).

In a column of texts they are texts: "None" is an answer to a question about religion.
"""

MOST_VALUES = 50
"""More classes, or more groups of one attribute, are taken for a mistake."""

_IDENTIFYING_SHARE = 0.5
"""A text column with more distinct values than this share of its rows identifies rows."""

_MOST_CODES = 20
"""More distinct whole numbers than this look like a quantity, not like codes."""

_MOST_SHOWN = 3

_FEWEST_COLLISIONS = 10.0
"""Equal pairs that drawn numbers would have at least; none at all means they were assigned."""

IDENTIFIER = re.compile(
    r"(?i:(?:^|.*[\W_])(?:id|ids|nr|no|num|number|key|uuid|guid|ssn|index|idx))|.*[a-z](?:ID|Id|Nr|No|Key)"
)
"""Names of columns such as customer_id, PersonID, Account Number."""

_MARKS = r"[$\u20ac\u00a3\u00a5]"
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DAYS = ("%m/%d/%{}", "%d/%m/%{}", "%d-%m-%{}", "%m-%d-%{}", "%d.%m.%{}")
_WRITTEN = ("%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y", "%d %B %Y", "%B %d, %Y", "%d-%b-%y")
_NUMERIC = ("%Y/%m/%d", *(day.format(year) for day in _DAYS for year in "Yy"))
DATE_FORMATS = ("ISO8601", *(day + time for day in _NUMERIC for time in _TIMES), *_WRITTEN)
"""How dates are written, the likelier ones first."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")


def column_kind(column: pd.Series) -> str:
    """``"number"``, ``"date"`` or ``"category"``; True and False are categories."""
    kinds = pd.api.types
    if kinds.is_datetime64_any_dtype(column.dtype):
        return "date"
    is_number = kinds.is_numeric_dtype(column.dtype) and not kinds.is_bool_dtype(column.dtype)
    return "number" if is_number else "category"


def as_numbers(column: pd.Series) -> np.ndarray:
    """A column of numbers as floats; NaN where a value is missing.

    Raises:
        ValueError: if a number is infinite.
    """
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        n = counted(infinite, "infinite number")
        raise ValueError(f"the column {column.name!r} holds {n}")
    return numbers


def parse_numbers(texts: Sequence[str], decimal: str = ".") -> NDArray[np.float64]:
    """Texts as numbers, NaN where one is none.

    Besides plain numbers: ``1,042`` and ``1 042`` with marks between thousands, ``93%`` (as 93),
    ``$5`` and ``5 \u20ac``.
    """
    plain = pd.Series(list(texts), dtype=object)
    if decimal != ".":  # a point is no decimal point there
        plain = plain.where(~plain.str.contains(".", regex=False), "")
        plain = plain.str.replace(decimal, ".", regex=False)
    numbers = np.array(pd.to_numeric(plain, errors="coerce"), dtype=np.float64)
    between = r"[,\x20\u00a0\u202f']" if decimal == "." else r"[.\x20\u00a0\u202f']"
    pattern = re.compile(
        rf"(?P<sign>[+-]?){_MARKS}?\s?(?P<whole>\d{{1,3}}(?P<mark>{between})\d{{3}}(?:(?P=mark)\d{{3}})*|\d+)"
        rf"(?P<part>{re.escape(decimal)}\d+)?\s?(%|{_MARKS})?"
    )
    for place in np.flatnonzero(np.isnan(numbers)).tolist():
        match = pattern.fullmatch(texts[place])
        if match:
            digits = re.sub(r"\D", "", match["whole"])
            numbers[place] = float(f"{match['sign']}{digits}.{(match['part'] or '0').lstrip('.,')}")
    return numbers


def kind_of_texts(texts: Sequence[str], decimal: str = ".") -> tuple[str, NDArray[Any] | None]:
    """What the distinct texts of a column are, and their numbers where they are numbers.

    Returns:
        "number", "truth" or "text"; and for numbers an array, with NaN for texts that mean a
        missing value.
    """
    is_gap = np.array([text in MISSING_TEXTS for text in texts], dtype=bool)
    if is_gap.all():
        return "text", None
    known = [text for text, gap in zip(texts, is_gap, strict=True) if not gap]
    if all(text.lower() in {"true", "false"} for text in known):
        return "truth", None
    # Most texts are known by the first few.
    if np.isnan(parse_numbers(known[:_MOST_CODES], decimal)).any():
        return "text", None
    parsed = parse_numbers(known, decimal)
    if np.isnan(parsed).any() or len({text.endswith("%") for text in known}) > 1:
        return "text", None
    numbers = np.full(len(texts), np.nan)
    numbers[~is_gap] = parsed
    return "number", numbers


def date_format(texts: Sequence[str]) -> tuple[str, str]:
    """How all of these texts are dates, and another way that fits; empty if they are none."""
    if not texts or not any(character.isdigit() for character in texts[0]):
        return "", ""
    first, second, *_ = [*(form for form in DATE_FORMATS if _fits(texts, form)), "", ""]
    return first, second


def _fits(texts: Sequence[str], form: str) -> bool:
    if form == "ISO8601" and not all(_ISO.fullmatch(text) for text in texts):
        return False
    if form != "ISO8601":
        try:
            datetime.strptime(texts[0], form)  # noqa: DTZ007 - most forms do not fit the first text
        except ValueError:
            return False
    dates = pd.to_datetime(pd.Series(texts), format=form, errors="coerce", utc=True)
    return bool(dates.notna().all())


def named_days(dates: pd.Series, text: str) -> NDArray[Any]:
    """(n,) which dates are the day of a text such as 1900-01-01, if it is one."""
    day = pd.to_datetime(text, format="%Y-%m-%d", errors="coerce", utc=True)
    return (pd.to_datetime(dates, utc=True).dt.normalize() == day).to_numpy()


def is_quantity(column: pd.Series) -> bool:
    """Whether the column holds a quantity: fractions, or many different whole numbers."""
    if column_kind(column) != "number":
        return False
    known = column.dropna().to_numpy(dtype=np.float64)
    fractions = bool((known != np.round(known)).any())
    return len(np.unique(known)) > (2 if fractions else _MOST_CODES)


def identifies_rows(column: pd.Series, rows: int | None = None) -> bool:
    """Whether a text column has a different value in most rows, as names and numbers do."""
    known = column.dropna()
    n = len(known) if rows is None else rows
    return n > _MOST_CODES and known.nunique() > _IDENTIFYING_SHARE * n


def why_left_out(column: pd.Series) -> str:
    """Why a column cannot help to predict: one value, or names of the rows; empty if it can.

    Whole numbers name rows rather than measure them if no two are equal although n numbers drawn
    from their range of R would have ``n (n - 1) / 2 R`` equal pairs or more, and that is 10 at
    least; or if the column has such a name, and most of them differ.
    """
    if not column.isna().any() and column.nunique() == 1:  # noqa: PD101 - also of categories
        return "one value only"
    kind = column_kind(column)
    if kind == "category" and identifies_rows(column):
        return "its texts differ in most rows"
    known = column.dropna().to_numpy(dtype=np.float64) if kind == "number" else np.empty(0)
    n, distinct = len(known), len(np.unique(known))
    if n <= _MOST_CODES or not np.isfinite(known).all():
        return ""
    if n == len(column) and (np.diff(known) == 1).all():
        return "it numbers the rows"
    is_named = distinct > _IDENTIFYING_SHARE * n and IDENTIFIER.fullmatch(str(column.name).strip())
    span = float(known.max() - known.min()) + 1.0
    is_assigned = distinct == n and n * (n - 1) / (2 * span) >= _FEWEST_COLLISIONS
    is_whole = bool((known == np.round(known)).all())
    return "it looks like an identifier" if is_whole and (is_named or is_assigned) else ""


def texts_among_numbers(column: pd.Series) -> str:
    """Some texts of a column that mixes texts and numbers, to be shown; empty if it does not.

    Mixed columns are nearly always faulty: "unknown" or "> 90" in a column of numbers.
    """
    if column_kind(column) != "category":
        return ""
    is_named = isinstance(column.dtype, pd.CategoricalDtype)
    distinct = pd.Series(column.cat.categories if is_named else column.dropna().unique())
    if distinct.empty:
        return ""
    numeric = pd.to_numeric(distinct.astype(str), errors="coerce").notna()
    python_types = {type(value) for value in distinct}
    if numeric.all() and len(python_types) == 1:
        return ""
    if numeric.mean() >= 0.5 or (len(python_types) > 1 and not numeric.all()):
        texts = sorted(distinct[~numeric], key=lambda text: text in MISSING_TEXTS)[:_MOST_SHOWN]
        return ", ".join(map(repr, texts)) or "numbers in quotes"
    return ""


def other_decimal(column: pd.Series, used: str) -> bool:
    """Whether texts of a file would be numbers if points and commas had each other's meaning."""
    if not isinstance(column.dtype, pd.CategoricalDtype) or not len(column.cat.categories):
        return False
    texts = [str(text) for text in column.cat.categories if str(text) not in MISSING_TEXTS]
    other = "," if used == "." else "."
    if not texts or not all(other in text for text in texts[:1]):
        return False
    return kind_of_texts(texts, other)[0] == "number"


def value_name(value: object) -> str:
    """The value as text, without spaces around it; whole numbers without a decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def as_categories(column: pd.Series) -> pd.Series:
    """The column as named categories, in natural order; what is missing stays missing."""
    codes, values = pd.factorize(column)
    names = dict.fromkeys(value_name(value) for value in sorted(values, key=_natural))
    place = {name: code for code, name in enumerate(names)}
    # The extra last entry is where the code -1 of a missing value points.
    lookup = np.array([*(place[value_name(value)] for value in values), -1])
    categories = pd.Index(list(place), dtype=object)
    named = pd.Categorical.from_codes(lookup[codes], categories=categories)
    return pd.Series(named, index=column.index, name=column.name)


def _natural(value: object) -> tuple[int, float, str]:
    """Numbers by size, then texts by alphabet."""
    if isinstance(value, int | float | np.number | np.bool_):
        return (0, float(value), "")
    return (1, 0.0, str(value))


def cut_numbers(values: NDArray[np.float64], edges: Sequence[float]) -> Any:
    """Numbers as named groups, such as "25 to under 60"; missing ones are in none."""
    codes = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))
    return pd.Categorical.from_codes(codes, categories=pd.Index(cut_names(edges)))


def cut_names(edges: Sequence[float]) -> list[str]:
    """The names of the groups between edges, in their order."""
    names = [value_name(float(edge)) for edge in edges]
    middle = [f"{low} to under {high}" for low, high in itertools.pairwise(names)]
    return [f"under {names[0]}", *middle, f"{names[-1]} and over"]


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
        named = self._removed(as_categories(column).array, {"", *self.report.missing})
        names = [str(name) for name in named.categories]
        if not names:
            return np.full(len(column), np.nan)
        kind, numbers = (
            ("text", None) if self.as_text else kind_of_texts(names, self.report.decimal)
        )
        if kind == "truth":
            named = self._removed(named, MISSING_TEXTS)
            spelt = pd.Series(named).astype(object).str.capitalize()
            return as_categories(spelt).array
        if numbers is not None:
            gaps = [name for name, n in zip(names, numbers, strict=True) if np.isnan(n)]
            self._removed(named, gaps)
            for name, number in zip(names, numbers, strict=True):
                if not np.isnan(number) and _DECORATED.search(name):
                    as_read = f"numbers such as {name!r} are read as {number:g}"
                    self.report.written[self.name] = as_read
                    break
            read = np.append(numbers, np.nan)[named.codes]
            is_whole = bool((np.abs(read) < 2**53).all() and (read == np.round(read)).all())
            return np.asarray(read, dtype=np.int64 if is_whole else np.float64)
        form, other = "", ""
        if kind == "text" and not self.as_text:
            form, other = date_format([name for name in names if name not in MISSING_TEXTS])
        if other:
            self.report.written[self.name] = (
                f"dates read as {_form_in_words(form)}; {_form_in_words(other)} would fit as well"
            )
        if form:
            self.report.forms[self.name] = form
            named = self._removed(named, MISSING_TEXTS)
            dates = pd.to_datetime(pd.Series(named.categories, dtype=object), format=form, utc=True)
            lookup = np.append(dates.to_numpy(dtype="datetime64[ns]"), np.datetime64("NaT", "ns"))
            return np.asarray(lookup[named.codes])
        for text in (name for name in names if name in MISSING_TEXTS):
            self._count(text, named == text, self.report.named)
        return named

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
