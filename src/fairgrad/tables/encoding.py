"""Features -> the matrix a model sees, fitted on training rows and applied to any later table.

At prediction time columns may stand in another order, and columns the model does not use are
passed over. A category never seen in training counts as none of the known ones (as one of the
merged rare ones, where there were such); a missing value as the training rows had it: a category
of its own if some were missing there, else none of the known ones, and for numbers the median.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.tables.roles import cut_numbers
from fairgrad.tables.values import (
    MISSING_TEXTS,
    OTHER,
    DatePart,
    as_days,
    as_numbers,
    column_kind,
    counted,
    parse_numbers,
    value_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from sklearn.compose import ColumnTransformer

MISSING = "(missing)"
"""Name of the one-hot column of missing values."""

UNSEEN = "(never seen)"
"""Stands for values the encoder does not know; it gives them zeros."""

PIECE = 20_000
"""Rows encoded at a time: copies on the way stay small."""


def feature_encoder(frame: pd.DataFrame, *, scale: bool = True) -> ColumnTransformer:
    """An unfitted transformer for frames with the columns of this one.

    Categories become one 0/1 column per value, in the order of the column's categories; a value
    never seen there gives zeros. Numbers are scaled to [-1, 1] by the smallest and largest value
    seen in ``fit``. Where this frame has missing values, a categorical column gets one more 0/1
    column for them, and a missing number becomes the median, with one more column that marks it.
    """
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - slow to import, as those below
    from sklearn.impute import SimpleImputer  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import (  # noqa: PLC0415
        FunctionTransformer,
        MinMaxScaler,
        OneHotEncoder,
    )

    def one_hot(names: list[str], *more: str) -> OneHotEncoder:
        values = [[*frame[name].cat.categories, *more] for name in names]
        options = {"handle_unknown": "ignore", "sparse_output": False, "dtype": np.float32}
        return OneHotEncoder(categories=values, **options)

    columns: dict[str, list[str]] = defaultdict(list)
    for name in frame:
        is_named = isinstance(frame[name].dtype, pd.CategoricalDtype)
        state = "incomplete" if frame[name].isna().any() else "complete"
        columns[f"{'categorical' if is_named else 'numeric'} {state}"].append(str(name))
    named, gappy = columns["categorical complete"], columns["categorical incomplete"]
    filled = SimpleImputer(strategy="constant", fill_value=MISSING)
    median = SimpleImputer(strategy="median", add_indicator=True)
    scaler = MinMaxScaler((-1, 1)) if scale else FunctionTransformer(feature_names_out="one-to-one")
    steps = {
        "categorical complete": one_hot(named),
        "categorical incomplete": make_pipeline(filled, one_hot(gappy, MISSING)),
        "numeric complete": scaler,
        "numeric incomplete": make_pipeline(median, scaler),
    }
    used = [(name, step, columns[name]) for name, step in steps.items() if columns[name]]
    return ColumnTransformer(used, verbose_feature_names_out=False)


@dataclass(frozen=True)
class TrainedFeature:
    """One feature as it was in training: what is needed to read a later table.

    Attributes:
        name: of the column.
        kind: "number", "date" or "category".
        values: the categories.
        numbers: whether the categories are numbers by nature.
        median: of a column of numbers (days since 1970 for dates).
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainedFeature:
        """The inverse of `dataclasses.asdict`, also after JSON."""
        date = values.get("date")
        return cls(
            **{
                **values,
                "values": tuple(values["values"]),
                "date": None if date is None else DatePart(**date),
            }
        )


def describe_features(
    features: pd.DataFrame,
    original: pd.DataFrame,
    rows: NDArray[Any] | None = None,
    dates: Mapping[str, DatePart] | None = None,
) -> list[TrainedFeature]:
    """What is to be remembered of the features of the training table.

    Only the numbers of `rows` count, so that nothing is learnt from rows held out.

    Args:
        features: the features.
        original: the table they were made of.
        rows: numbers of the rows that count; None for all.
        dates: which features are made of dates.
    """
    dates = dates or {}
    return [
        replace(_describe(features[name], "number", rows), date=dates[name])
        if name in dates
        else _describe(features[name], column_kind(original[name]), rows)
        for name in map(str, features)
    ]


def _describe(column: pd.Series, kind: str, rows: NDArray[Any] | None) -> TrainedFeature:
    name, has_gaps = str(column.name), bool(column.isna().any())
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = tuple(str(value) for value in column.cat.categories)
        return TrainedFeature(name, "category", values, numbers=kind == "number", has_gaps=has_gaps)
    known = (column if rows is None else column.iloc[rows]).dropna()
    known = known if len(known) else pd.Series([0.0])
    median, low, high = (float(f()) for f in (known.median, known.min, known.max))
    return TrainedFeature(name, kind, median=median, low=low, high=high, has_gaps=has_gaps)


def fitted_encoder(features: Sequence[TrainedFeature]) -> ColumnTransformer:
    """The encoder, fitted to a handful of rows that stand for all of them.

    It learns of a column of numbers the smallest, the largest and the median, and of categories
    their names: five rows with these give it what a million rows would, without a copy of them.
    """
    frame = pd.DataFrame({feature.name: _example(feature) for feature in features})
    return feature_encoder(frame).fit(frame)


def _example(feature: TrainedFeature) -> Any:
    """Five values: the ends, the median twice (so that it is the median), a gap if there is one."""
    if feature.kind == "category":
        codes = np.array([0, 0, 0, 0, -1 if feature.has_gaps else 0])
        return pd.Categorical.from_codes(codes, categories=pd.Index(feature.values))
    middle = [feature.median] * 2
    last = np.nan if feature.has_gaps else feature.median
    return np.array([feature.low, *middle, feature.high, last])


def encode_rows(
    encoder: ColumnTransformer, features: pd.DataFrame, rows: NDArray[Any] | None = None
) -> NDArray[np.float32]:
    """(n, columns) the matrix of some rows, or of all, made a piece at a time."""
    n = len(features) if rows is None else len(rows)
    matrix = np.empty((n, len(encoder.get_feature_names_out())), dtype=np.float32)
    for start in range(0, n, PIECE):
        part = slice(start, start + PIECE)
        matrix[part] = encoder.transform(features.iloc[part if rows is None else rows[part]])
    return matrix


def read_features(
    frame: pd.DataFrame, features: Sequence[TrainedFeature], missing: Sequence[str] = ()
) -> tuple[pd.DataFrame, Oddities]:
    """A later table as the model's features, and what was odd about it.

    Args:
        frame: the table.
        features: of the model.
        missing: texts that mean a missing value, besides the usual ones.

    Raises:
        ValueError: if a column is missing, or holds texts in place of numbers.
    """
    check_columns(frame.columns, features)
    reader = _LaterTable(frame, missing)
    columns = {feature.name: reader.feature(feature) for feature in features}
    return pd.DataFrame(columns), reader.odd


def describe_groups(
    groups: pd.DataFrame, original: pd.DataFrame, cut: Iterable[str] = ()
) -> list[TrainedFeature]:
    """What an aware model remembers of the sensitive columns; those in `cut` are numbers."""
    described = describe_features(groups, original)
    return [
        replace(one, kind="number", values=(), has_gaps=True) if one.name in cut else one
        for one in described
    ]


def read_groups(
    frame: pd.DataFrame,
    groups: Sequence[TrainedFeature],
    bins: Mapping[str, Any],
    missing: Sequence[str] = (),
) -> tuple[pd.DataFrame, Oddities]:
    """The sensitive values of a later table as an aware model takes them; strangers are missing.

    Args:
        frame: the table.
        groups: what the model remembers of the sensitive columns.
        bins: where columns of numbers are cut.
        missing: texts that mean a missing value, besides the usual ones.

    Raises:
        ValueError: if a column is missing, or holds texts in place of numbers.
    """
    values, odd = read_features(frame, groups, missing)
    for name in values:
        if name in bins:
            values[name] = cut_numbers(values[name].to_numpy(dtype=np.float64), bins[str(name)])
        else:
            values[name] = values[name].cat.remove_categories([UNSEEN])
    return values, odd


def check_columns(names: Iterable[Any], features: Sequence[TrainedFeature]) -> None:
    """Refuses a table that lacks columns the model needs."""
    known = {str(name).strip() for name in names}
    missing = dict.fromkeys(f.column for f in features if f.column.strip() not in known)
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
        # Older models have names with spaces around them, which files lose when they are read.
        self.columns = {str(name).strip(): frame[name] for name in frame}
        self.columns |= {str(name): frame[name] for name in frame}
        self.decimal = str(frame.attrs.get("decimal", "."))
        self.missing = tuple(missing)
        self.gaps = MISSING_TEXTS | set(missing)
        self.odd = Oddities()
        self._days: dict[str, NDArray[np.float64]] = {}

    def feature(self, feature: TrainedFeature) -> Any:
        """The values of a feature."""
        column = self.columns.get(feature.column, self.columns.get(feature.column.strip()))
        assert column is not None  # noqa: S101 - `check_columns` has seen it
        if feature.date is not None:
            column = feature.date.values(self._dates(column, feature.date.form))
        if feature.kind == "category":
            return self._category(column, feature)
        numbers = self._dates(column, "") if feature.kind == "date" else self._numbers(column)
        self._check_range(numbers, feature)
        gaps = np.isnan(numbers)
        if gaps.any() and not feature.has_gaps:
            self._count(feature, "missing, taken as the median", gaps)
            numbers = np.where(gaps, feature.median, numbers)
        return numbers

    def _count(self, feature: TrainedFeature, what: str, rows: NDArray[Any]) -> None:
        """Of the parts of a date only one is counted: they are missing together."""
        if feature.date is None or feature.date.part == "age in days":
            self.odd[feature.column, what] += int(rows.sum())

    def _check_range(self, numbers: NDArray[np.float64], feature: TrainedFeature) -> None:
        """Counts numbers farther outside the training range than that range is wide."""
        width = feature.high - feature.low
        if width <= 0 or feature.kind == "date":
            return
        far = (numbers < feature.low - width) | (numbers > feature.high + width)
        if far.any():
            ends = f"{feature.low:,.6g} to {feature.high:,.6g}"
            unit = "" if feature.date is None else " days of age"
            what = f"far outside the range of the training rows ({ends}{unit})"
            self._count(feature, what, far)

    def _numbers(self, column: pd.Series) -> NDArray[np.float64]:
        if column_kind(column) == "number":
            numbers = as_numbers(column)
            given, _ = parse_numbers(self.missing, self.decimal)
            return np.where(np.isin(numbers, given[~np.isnan(given)]), np.nan, numbers)
        codes, values = pd.factorize(column)
        texts = [str(value).strip() for value in values]
        numbers, _ = parse_numbers(texts, self.decimal)
        for place in np.flatnonzero(np.isnan(numbers)).tolist():
            if texts[place] not in self.gaps:
                raise ValueError(
                    f"the column {column.name!r} holds {values[place]!r}, but the model was fitted "
                    "to numbers there"
                )
        numbers[[text in self.gaps for text in texts]] = np.nan
        return as_numbers(pd.Series(np.append(numbers, np.nan)[codes], name=column.name))

    def _dates(self, column: pd.Series, form: str) -> NDArray[np.float64]:
        key = str(column.name)
        if key not in self._days:
            texts = column.astype(object)
            if column_kind(column) != "date":
                texts = texts.map(lambda value: value.strip() if isinstance(value, str) else value)
                texts = texts.where(~texts.isin(self.gaps))
            try:
                self._days[key] = as_days(texts if column_kind(column) != "date" else column, form)
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"the column {key!r} holds values that are not dates as in training, but the "
                    "model was fitted to dates there"
                ) from error
        return self._days[key]

    def _category(self, column: pd.Series, feature: TrainedFeature) -> Any:
        """Known values keep their name; looked up once per distinct value, not per row."""
        codes, values = pd.factorize(column)
        n_known = len(feature.values)
        place = {name: code for code, name in enumerate(feature.values)}
        # Older models have values with spaces around them, too.
        place = {name.strip(): code for name, code in place.items()} | place
        found = [self._place(value, feature, place) for value in values]
        rows = np.array([*found, -1], dtype=np.int64)[codes]
        strangers = rows == n_known
        what = "never seen in training, taken as none of the known"
        if OTHER in place:
            what = f"rare or never seen in training, taken as {OTHER}"
        if strangers.any():
            self.odd[feature.name, what] += int(strangers.sum())
        rows[strangers] = place.get(OTHER, n_known)
        if not feature.has_gaps and (rows < 0).any():
            self._count(feature, "missing, taken as none of the known", rows < 0)
        return pd.Categorical.from_codes(rows, categories=pd.Index([*feature.values, UNSEEN]))

    def _place(self, value: Any, feature: TrainedFeature, place: Mapping[str, int]) -> int:
        """The code of a value: -1 for a missing one, one more than the last for a stranger."""
        if pd.isna(value) or value_name(value) in self.missing:
            return -1
        names = [str(value), value_name(value)]
        if isinstance(value, str) and feature.numbers:
            number = float(parse_numbers([value.strip()], self.decimal)[0][0])
            names.append(value_name(number))
        if set(feature.values) <= {"True", "False"}:
            names.append(value_name(value).capitalize())
        known = next((place[name] for name in names if name in place), None)
        if known is not None:  # also "None", where it is the name of a category
            return known
        return -1 if value_name(value) in self.gaps else len(feature.values)
