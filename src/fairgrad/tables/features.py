"""Which columns of a table are features, and how the same columns of later tables are read.

At prediction, columns may be in another order, and columns that the model does not use are ignored.
A category that was not in the training rows is treated as unknown (or as one of the merged rare
ones, if there are any). A missing number is replaced by the median. A missing category is a
separate category if some were missing in training, else it is treated as unknown.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import counted
from fairgrad.tables.column import (
    MISSING_TEXTS,
    MOST_VALUES,
    ReadingReport,
    as_categories,
    as_numbers,
    checked_column,
    column_kind,
    cut_numbers,
    named_days,
    parse_numbers,
    value_name,
    why_left_out,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

MISSING = "(missing)"
"""The name of the 0/1 column that marks missing values."""

UNSEEN = "(never seen)"
"""Stands for values the encoder does not know; it gives them zeros."""

OTHER = "(other)"
"""Name of the values merged because they are rare."""

_NO_NAME = re.compile(r"Unnamed: \d+")
"""What pandas calls a column without a name."""


@dataclass(frozen=True)
class DatePart:
    """A feature made of a date.

    Attributes:
        column: of the dates.
        part: "year", "month", "weekday" or "age in days".
        form: how texts of dates are written, as `pandas.to_datetime` takes it; empty if not known.
        reference: the day, counted from 1970, that ages are counted to.
    """

    column: str
    part: str
    form: str = ""
    reference: float = 0.0

    def values(self, days: NDArray[np.float64]) -> pd.Series:
        """This part of dates given as days since 1970; missing stays missing."""
        if self.part == "age in days":
            return pd.Series(self.reference - np.floor(days))
        dates = pd.Series(pd.to_datetime(np.floor(days), unit="D", errors="coerce"))
        if self.part == "year":
            return dates.dt.year.astype("float64")
        names = dates.dt.month_name() if self.part == "month" else dates.dt.day_name()
        return names.astype(object)


DATE_PARTS = ("year", "month", "weekday", "age in days")
CALENDAR: dict[str, Any] = {"month": calendar.month_name, "weekday": calendar.day_name}


@dataclass(frozen=True)
class TableFeature:
    """One feature as it was in training: what is needed to read a later table.

    Attributes:
        name: of the column.
        kind: "number" or "category".
        values: the categories.
        numbers: whether the categories are numbers by nature.
        median: of a column of numbers.
        low: the smallest number.
        high: the largest number.
        has_gaps: whether values were missing in training.
        date: the date it is made of, if it is.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    numbers: bool = False
    median: float = 0.0
    low: float = 0.0
    high: float = 0.0
    has_gaps: bool = False
    date: DatePart | None = None

    @property
    def column(self) -> str:
        """The column of the table that it is read from."""
        return self.name if self.date is None else self.date.column


def choose_features(
    frame: pd.DataFrame, categorical: Sequence[str] = (), keep: Sequence[str] = (), prefix: str = ""
) -> tuple[pd.DataFrame, list[TableFeature], dict[str, str], tuple[str, ...]]:
    """Which columns of a table are features, and how each is encoded.

    Returns:
        Columns of numbers and named categories; what to remember of each, except medians and
        ranges; the reason for each column that is not a feature; and notes for the reader.

    Raises:
        ValueError: if a column mixes kinds, or none is left.
    """
    report = ReadingReport.of(frame)
    columns: dict[str, pd.Series] = {}
    features: list[TableFeature] = []
    left_out: dict[str, str] = {}
    dates, merged = [], []
    gaps: dict[str, list[str]] = {"number": [], "category": []}
    for name, (column, reason) in _usable(frame, categorical, keep, prefix).items():
        kind, numbers = column_kind(column), column_kind(frame[name]) == "number"
        derived: dict[str, tuple[pd.Series, DatePart | None]] = {}
        if kind == "date":
            derived = _date_features(column, report.forms.get(name, ""), frame.columns)
        elif kind == "number":
            known = pd.Series(as_numbers(column))  # also refuses infinite numbers
            derived = {name: (known if column.isna().any() else column, None)}
        elif not reason:
            named = column if name in categorical else as_categories(column)
            n = len(named.cat.categories)
            if n > MOST_VALUES:
                named = merge_rare(named)
                merged.append(f"{name}: {n:,} different values, the rarest merged into {OTHER}.")
            derived = {name: (named, None)}
        if reason or not derived:
            left_out[name] = reason or "one value only"
            continue
        dates += [name] if kind == "date" else []
        n_missing = int(column.isna().sum())
        if n_missing:
            listed = f"{name} {n_missing:,}{report.gap_words(name)}"
            gaps["category" if kind == "category" else "number"].append(listed)
        for title, (values, date) in derived.items():
            is_named = isinstance(values.dtype, pd.CategoricalDtype)
            columns[title] = values
            features.append(
                TableFeature(
                    title,
                    "category" if is_named else "number",
                    tuple(map(str, values.cat.categories)) if is_named else (),
                    numbers=is_named and (numbers or date is not None),
                    has_gaps=bool(values.isna().any()),
                    date=date,
                )
            )
    if not columns:
        raise ValueError("no column is left to use as a feature")
    reasons = "; ".join(f"{name} ({reason})" for name, reason in left_out.items())
    told = {
        "Left out as features": reasons,
        "Dates become year, month, weekday and age in days before the latest date": dates,
        "Missing numbers are replaced by the median and marked": gaps["number"],
        "Missing values are a separate category": gaps["category"],
    }
    notes = [
        f"{what}: {names if isinstance(names, str) else ', '.join(names)}."
        for what, names in told.items()
        if names
    ]
    return pd.DataFrame(columns), features, left_out, (*notes, *merged)


def _usable(
    frame: pd.DataFrame, categorical: Sequence[str], keep: Sequence[str], prefix: str
) -> dict[str, tuple[pd.Series, str]]:
    """Each column, and why it is not used as a feature; empty if it is.

    Raises:
        ValueError: if columns mix kinds; all of them are named.
    """
    usable, faults = {}, {}
    for name in map(str, frame.columns):
        column, reason = frame[name], ""
        if column.isna().all():
            reason = "no values"
        elif _NO_NAME.fullmatch(name):
            reason = "no name in the file"
        else:
            try:
                column = checked_column(frame, name, categorical, prefix)
                reason = "" if name in keep else why_left_out(column)
            except ValueError as error:
                faults[name] = error
        usable[name] = column, reason
    if faults:
        first, *others = faults
        more = f". The same is true of {', '.join(map(repr, others))}" if others else ""
        raise ValueError(f"{faults[first]}{more}") from faults[first]
    return usable


def _date_features(
    column: pd.Series, form: str, taken: Collection[str]
) -> dict[str, tuple[pd.Series, DatePart | None]]:
    """Year, month, weekday and age of dates; a part that never differs is left out."""
    days = as_days(column)
    latest = float(np.floor(np.nanmax(days)))
    derived: dict[str, tuple[pd.Series, DatePart | None]] = {}
    for part in DATE_PARTS:
        made = DatePart(str(column.name), part, form, latest)
        values = made.values(days)
        if values.nunique() < 2:
            continue
        title = f"{column.name} ({part})"
        while title in taken:
            title += "'"
        if part in CALENDAR:
            order = [name for name in CALENDAR[part] if (values == name).any()]
            values = pd.Series(pd.Categorical(values, categories=pd.Index(order, dtype=object)))
        derived[title] = values.rename(title), made
    return derived


def as_days(column: pd.Series, form: str = "") -> NDArray[np.float64]:
    """Dates, or texts of dates, as days since 1970 in UTC; NaN where a value is missing."""
    is_text = form and column_kind(column) != "date"
    dates = pd.to_datetime(column, utc=True, format=form if is_text else None)
    since = dates - pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray(since / pd.Timedelta(days=1), dtype=np.float64)


def merge_rare(column: pd.Series) -> pd.Series:
    """A categorical column with the rarest values merged, so that ``MOST_VALUES`` remain."""
    counts = column.value_counts()
    frequent = set(counts.index[: MOST_VALUES - 1])
    kept = [name for name in column.cat.categories if name in frequent]
    merged = column.cat.add_categories(OTHER).where(column.isin(kept) | column.isna(), OTHER)
    return merged.cat.set_categories([*kept, OTHER])


def read_features(
    frame: pd.DataFrame, features: Sequence[TableFeature], missing: Sequence[str] = ()
) -> tuple[pd.DataFrame, Oddities]:
    """A later table as the model's features, and what was odd about it.

    Raises:
        ValueError: if a column is missing, or holds texts instead of numbers.
    """
    check_columns(frame.columns, features)
    reader = _LaterTable(frame, missing)
    columns = {feature.name: reader.feature(feature) for feature in features}
    return pd.DataFrame(columns), reader.odd


def describe_groups(
    groups: pd.DataFrame, original: pd.DataFrame, cut: Collection[str] = ()
) -> list[TableFeature]:
    """What an aware model remembers of the sensitive columns; those in `cut` are numbers."""
    return [
        TableFeature(name, "number", has_gaps=True)
        if name in cut
        else TableFeature(
            name,
            "category",
            tuple(map(str, groups[name].cat.categories)),
            numbers=column_kind(original[name]) == "number",
            has_gaps=bool(groups[name].isna().any()),
        )
        for name in map(str, groups)
    ]


def read_groups(
    frame: pd.DataFrame,
    groups: Sequence[TableFeature],
    bins: Mapping[str, Any],
    missing: Sequence[str] = (),
) -> tuple[pd.DataFrame, Oddities]:
    """The sensitive values of a later table as an aware model takes them; unseen ones are missing.

    Raises:
        ValueError: if a column is missing, or holds texts instead of numbers.
    """
    values, odd = read_features(frame, groups, missing)
    for name in values:
        if name in bins:
            values[name] = cut_numbers(values[name].to_numpy(dtype=np.float64), bins[str(name)])
        else:
            values[name] = values[name].cat.remove_categories([UNSEEN])
    return values, odd


def check_columns(names: Iterable[Any], features: Sequence[TableFeature]) -> None:
    """Refuses a table that lacks columns the model needs."""
    known = {str(name) for name in names}
    missing = dict.fromkeys(f.column for f in features if f.column not in known)
    if missing:
        word = "column" if len(missing) == 1 else "columns"
        listed = ", ".join(repr(name) for name in missing)
        raise ValueError(f"the table lacks the {word} {listed}, which the model needs to predict")


class Oddities(Counter[tuple[str, str]]):
    """How many values of a column were never seen, or missing where none were in training."""

    def sentences(self) -> list[str]:
        """In words."""
        return [f"{column}: {counted(n, 'value')} {what}." for (column, what), n in self.items()]


class _LaterTable:
    """A table whose columns are read as the model's features were."""

    def __init__(self, frame: pd.DataFrame, missing: Sequence[str]) -> None:
        self.columns = {str(name): frame[name] for name in frame}
        self.decimal = str(frame.attrs.get("decimal", "."))
        self.missing = tuple(missing)
        self.gaps = MISSING_TEXTS | set(missing)
        self.odd = Oddities()

    def feature(self, feature: TableFeature) -> Any:
        """The values of a feature."""
        column = self.columns[feature.column]
        if feature.date is not None:
            column = feature.date.values(self._days(column, feature.date.form))
        if feature.kind == "category":
            return self._category(column, feature)
        numbers = self._numbers(column)
        width, unit = feature.high - feature.low, "" if feature.date is None else " days of age"
        far = (numbers < feature.low - width) | (numbers > feature.high + width)
        if width > 0:
            ends = f"{feature.low:,.6g} to {feature.high:,.6g}{unit}"
            self._count(feature, f"far outside the range of the training rows ({ends})", far)
        if not feature.has_gaps:
            gaps = np.isnan(numbers)
            self._count(feature, "missing, taken as the median", gaps)
            numbers = np.where(gaps, feature.median, numbers)
        return numbers

    def _count(self, feature: TableFeature, what: str, rows: NDArray[Any]) -> None:
        """Of the parts of a date only one is counted: they are missing together."""
        if rows.any() and (feature.date is None or feature.date.part == "age in days"):
            self.odd[feature.column, what] += int(rows.sum())

    def _numbers(self, column: pd.Series) -> NDArray[np.float64]:
        if column_kind(column) == "number":
            numbers = as_numbers(column)
            missing = parse_numbers(self.missing, self.decimal)
            return np.where(np.isin(numbers, missing[~np.isnan(missing)]), np.nan, numbers)
        codes, values = pd.factorize(column)
        texts = ["" if str(value).strip() in self.gaps else str(value).strip() for value in values]
        numbers = parse_numbers(texts, self.decimal)
        wrong = [
            value
            for value, text, n in zip(values, texts, numbers, strict=True)
            if text and np.isnan(n)
        ]
        if wrong:
            raise ValueError(
                f"the column {column.name!r} holds {wrong[0]!r}, but the model was trained "
                "on numbers"
            )
        return as_numbers(pd.Series(np.append(numbers, np.nan)[codes], name=column.name))

    def _days(self, column: pd.Series, form: str) -> NDArray[np.float64]:
        if column_kind(column) == "date":
            for text in self.missing:
                column = column.mask(named_days(column, text))
        else:
            column = column.astype(object)
            column = column.map(lambda value: value.strip() if isinstance(value, str) else value)
            column = column.where(~column.isin(self.gaps))
        try:
            return as_days(column, form)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"the column {column.name!r} holds values that are not dates as in training"
            ) from error

    def _category(self, column: pd.Series, feature: TableFeature) -> Any:
        """Known values keep their name; looked up once per distinct value, not per row."""
        codes, values = pd.factorize(column)
        n_known = len(feature.values)
        place = {name: code for code, name in enumerate(feature.values)}
        places = []
        for value in values:
            name = value_name(value)
            names = [str(value), name]
            if isinstance(value, str) and feature.numbers:
                names.append(value_name(float(parse_numbers([name], self.decimal)[0])))
            if set(feature.values) <= {"True", "False"}:
                names.append(name.capitalize())
            # "None" may also be the name of a category.
            unknown = -1 if name in self.gaps else n_known
            known = next((place[n] for n in names if n in place), unknown)
            places.append(-1 if name in self.missing else known)
        rows = np.array([*places, -1], dtype=np.int64)[codes]
        unseen = rows == n_known
        if unseen.any():
            what = "never seen in training, taken as none of the known"
            if OTHER in place:
                what = f"rare or never seen in training, taken as {OTHER}"
            self.odd[feature.name, what] += int(unseen.sum())
            rows[unseen] = place.get(OTHER, n_known)
        if not feature.has_gaps:
            self._count(feature, "missing, taken as none of the known", rows < 0)
        return pd.Categorical.from_codes(rows, categories=pd.Index([*feature.values, UNSEEN]))
