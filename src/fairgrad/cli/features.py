"""What a model needs to know of each feature to read any later table as the one it was fitted to.

At prediction time columns may stand in another order, and columns the model does not use are
passed over. A category never seen in training counts as none of the known ones (as one of the
merged rare ones, where there were such); a missing value as the training rows had it: a category
of its own if some were missing there, else none of the known ones, and for numbers the median.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.datasets.columns import OTHER, is_date, is_number, value_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

UNSEEN = "(never seen)"
"""Stands for values the encoder does not know; it gives them zeros."""

EMPTY_TEXTS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
"""Texts of a CSV file that mean a missing value, the same as in training."""


@dataclass(frozen=True)
class Feature:
    """One feature as it was in training.

    Attributes:
        name: of the column.
        kind: "number", "date" or "category".
        values: the categories.
        numbers: whether the categories are numbers by nature.
        median: of a column of numbers (days since 1970 for dates).
        low: the smallest number.
        high: the largest number.
        has_gaps: whether values were missing in training.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    numbers: bool = False
    median: float = 0.0
    low: float = 0.0
    high: float = 0.0
    has_gaps: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Feature:
        """The inverse of `to_dict`."""
        return cls(**{**values, "values": tuple(values["values"])})


def describe_features(
    features: pd.DataFrame, original: Mapping[str, str], rows: NDArray[Any] | None = None
) -> list[Feature]:
    """What is to be remembered of the features of the training table.

    Args:
        features: as `people_of` gives them.
        original: the kind of each column in the file, "number", "date" or "category".
        rows: the rows whose numbers count, so that nothing is learnt from those held out.
    """
    return [_describe(features[name], original[str(name)], rows) for name in features]


def original_kinds(frame: pd.DataFrame) -> dict[str, str]:
    """Of each column of a file, what it holds there."""
    return {str(name): _kind(frame[name]) for name in frame}


def read_features(
    frame: pd.DataFrame, features: Sequence[Feature]
) -> tuple[pd.DataFrame, Oddities]:
    """A later table as the model's features, and what was odd about it.

    Raises:
        ValueError: if a column is missing, or holds texts in place of numbers.
    """
    check_columns(frame.columns, features)
    odd = Oddities()
    columns = {}
    for feature in features:
        read = _read_category if feature.kind == "category" else _read_number
        columns[feature.name] = read(frame[feature.name], feature, odd)
    return pd.DataFrame(columns), odd


def check_columns(names: Iterable[Any], features: Sequence[Feature]) -> None:
    """Refuses a table that lacks columns the model needs.

    Raises:
        ValueError: naming them.
    """
    known = {str(name) for name in names}
    missing = [feature.name for feature in features if feature.name not in known]
    if missing:
        word = "column" if len(missing) == 1 else "columns"
        listed = ", ".join(repr(name) for name in missing)
        raise ValueError(f"the table lacks the {word} {listed}, which the model needs to predict")


class Oddities(dict[tuple[str, str], int]):
    """How many values of a column were never seen, or missing where none were in training."""

    def count(self, column: str, what: str, how_many: int) -> None:
        """Adds to a count."""
        if how_many:
            self[column, what] = self.get((column, what), 0) + int(how_many)

    def add(self, other: Oddities) -> None:
        """Adds the counts of another piece of the table."""
        for (column, what), how_many in other.items():
            self.count(column, what, how_many)

    def sentences(self) -> list[str]:
        """In words."""
        return [f"{column}: {n:,} {what}." for (column, what), n in self.items()]


def _describe(column: pd.Series, kind: str, rows: NDArray[Any] | None) -> Feature:
    name, has_gaps = str(column.name), bool(column.isna().any())
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = tuple(str(value) for value in column.cat.categories)
        return Feature(name, "category", values, numbers=kind == "number", has_gaps=has_gaps)
    known = (column if rows is None else column.iloc[rows]).dropna()
    known = known if len(known) else pd.Series([0.0])
    median, low, high = (float(f()) for f in (known.median, known.min, known.max))
    kind = "date" if kind == "date" else "number"
    return Feature(name, kind, median=median, low=low, high=high, has_gaps=has_gaps)


def _kind(column: pd.Series) -> str:
    if is_date(column):
        return "date"
    return "number" if is_number(column) else "category"


def _read_number(column: pd.Series, feature: Feature, odd: Oddities) -> NDArray[np.float64]:
    if feature.kind == "date":
        numbers = _days(column, feature.name)
    elif is_number(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = _parsed(column, feature.name)
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ValueError(
            f"the column {feature.name!r} holds {int(infinite.sum()):,} infinite numbers"
        )
    gaps = np.isnan(numbers)
    if gaps.any() and not feature.has_gaps:
        odd.count(feature.name, "values missing, taken as the median", gaps.sum())
        numbers = np.where(gaps, feature.median, numbers)
    return numbers


def _parsed(column: pd.Series, name: str) -> NDArray[np.float64]:
    texts = column.astype(object)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    doubtful = np.flatnonzero(np.isnan(numbers))
    for row in doubtful:
        value = texts.iloc[row]
        if not _is_gap(value):
            raise ValueError(
                f"the column {name!r} holds {value!r}, but the model was fitted to numbers there"
            )
    return numbers


def _days(column: pd.Series, name: str) -> NDArray[np.float64]:
    try:
        dates = pd.to_datetime(column.replace("", None), utc=True)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"the column {name!r} holds values that are no dates, but the model was fitted to dates"
        ) from error
    since = dates - pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray(since / pd.Timedelta(days=1), dtype=np.float64)


def _read_category(column: pd.Series, feature: Feature, odd: Oddities) -> Any:
    """Known values keep their name; looked up once per distinct value, not per row."""
    codes, values = pd.factorize(column)
    place = {name: code for code, name in enumerate(feature.values)}
    found = [_place(value, feature, place) for value in values]
    rows = np.array([*found, -1], dtype=np.int64)[codes]
    strangers = rows == len(place)
    what = "values never seen in training, taken as none of the known"
    if OTHER in place:
        what = f"values rare or never seen in training, taken as {OTHER}"
    odd.count(feature.name, what, strangers.sum())
    rows[strangers] = place.get(OTHER, len(place))
    if not feature.has_gaps:
        odd.count(feature.name, "values missing, taken as none of the known", (rows < 0).sum())
    return pd.Categorical.from_codes(rows, categories=pd.Index([*feature.values, UNSEEN]))


def _place(value: object, feature: Feature, place: Mapping[str, int]) -> int:
    """The code of a value: -1 for a missing one, one more than the last for a stranger."""
    if _is_gap(value):
        return -1
    return next((place[name] for name in _names(value, feature) if name in place), len(place))


def _names(value: object, feature: Feature) -> list[str]:
    """What a value may be called: as it is, and as a number or a truth where those are meant."""
    names = [value_name(value)]
    if isinstance(value, str) and feature.numbers:
        names += [value_name(number) for number in [pd.to_numeric(value, errors="coerce")]]
    if set(feature.values) <= {"True", "False"}:
        names.append(str(value).capitalize())
    return names


def _is_gap(value: Any) -> bool:
    return value in EMPTY_TEXTS if isinstance(value, str) else bool(pd.isna(value))
