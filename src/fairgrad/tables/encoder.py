"""`TableEncoder`: a data frame as it is -> the numbers that a model sees."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fairgrad.columns import as_pandas
from fairgrad.tables.column import READING, ReadingReport
from fairgrad.tables.features import MISSING, Oddities, TableFeature, choose_features, read_features
from fairgrad.tables.reading import check_distinct, plain_frame, typed_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REFUSED_SIGNS = str.maketrans(dict.fromkeys('[]{}<",:', "_"))
"""What LightGBM and XGBoost refuse in names of features."""


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no stubs
    """Encodes data frames with columns of any kind: numbers, texts, dates, booleans.

    Each column is read for what its values are. Numbers are scaled to [-1, 1]. Categories become
    one 0/1 column per value, the rarest of more than 50 values together. Dates become year, month,
    weekday and age in days. A missing number becomes the median, with a column that marks it, and
    a missing category is one more 0/1 column. Columns that cannot help are left out: identifiers,
    row numbers, texts that differ in most rows, and columns of one value.

    Later tables are read as the table of `fit` was. Their columns may be in another order. A value
    that `fit` has not seen is treated as unknown, or as one of the rare ones.

    It is what ``fairgrad fit`` stores in a model, and a step for pipelines, `fairgrad.persistence`
    and `fairgrad.onnx`.

    Args:
        categorical: columns of numbers that are codes of categories.
        keep: columns to encode although they look like identifiers or have a single value.
        missing: texts or numbers that mean a missing value, such as "?" or "-99".

    Attributes:
        features_: what is known of each feature.
        left_out_: the reason for each column that is not encoded.
        notes_: what the reader should know about the columns, in sentences.
        feature_names_in_: names of the columns of the table.
        n_features_in_: how many there are.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [20, 40, 60], "city": ["Rome", "Bonn", None]})
        >>> TableEncoder().fit_transform(table)
           city_Bonn  city_Rome  city_(missing)  age
        0        0.0        1.0             0.0 -1.0
        1        1.0        0.0             0.0  0.0
        2        0.0        0.0             1.0  1.0
    """

    def __init__(
        self,
        *,
        categorical: Sequence[str] = (),
        keep: Sequence[str] = (),
        missing: Sequence[str] = (),
    ) -> None:
        self.categorical = categorical
        self.keep = keep
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> TableEncoder:  # noqa: ARG002 - pipelines give it
        """Finds out what each column holds.

        Args:
            X: a data frame of pandas, polars or Arrow.
            y: not used.

        Raises:
            TypeError: if X is not a data frame.
            ValueError: if a column mixes kinds, or none can be encoded.
        """
        frame = _data_frame(X)
        check_distinct(frame.columns, "X")
        if not len(frame):
            raise ValueError("X: expected some rows, got none.")
        frame = plain_frame(frame.reset_index(drop=True))
        frame.columns = pd.Index([str(name) for name in frame.columns])
        if READING not in frame.attrs:  # then texts that are numbers or dates become these
            report = ReadingReport(missing=tuple(map(str, self.missing)))
            frame = typed_table(frame.items(), report)
        self.fit_features(frame)
        return self

    def fit_features(self, frame: pd.DataFrame, prefix: str = "") -> pd.DataFrame:
        """Fits a table that `read_table` has read, and gives its features.

        Returns:
            Columns of numbers and of named categories.
        """
        columns, features, self.left_out_, self.notes_ = choose_features(
            frame, tuple(self.categorical), tuple(self.keep), prefix
        )
        self.feature_names_in_ = np.array([str(name) for name in frame.columns], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.features_: list[TableFeature] = features
        self.features_ = self.narrowed(columns).features_
        return columns

    def narrowed(self, features: pd.DataFrame, rows: NDArray[Any] | None = None) -> TableEncoder:
        """The same encoder, with the medians and ranges of some rows, or of all."""
        narrow, kept = copy.copy(self), []
        for feature in self.features_:
            if feature.kind == "category":
                kept.append(feature)
                continue
            column = features[feature.name]
            known = (column if rows is None else column.iloc[rows]).dropna()
            known = known if len(known) else pd.Series([0.0])
            median, low, high = (float(f()) for f in (known.median, known.min, known.max))
            kept.append(replace(feature, median=median, low=low, high=high))
        narrow.features_ = kept
        return narrow

    @property
    def columns_(self) -> list[str]:
        """The columns that `transform` needs."""
        check_is_fitted(self, "features_")
        return list(dict.fromkeys(feature.column for feature in self.features_))

    @property
    def date_columns_(self) -> list[str]:
        """Those that hold dates, which are read as texts."""
        dates = [feature.column for feature in self.features_ if feature.date is not None]
        return list(dict.fromkeys(dates))

    def transform(self, X: Any) -> pd.DataFrame:
        """The numbers of a table, one column per feature name.

        Args:
            X: a data frame with the columns of the table of `fit`, in any order.

        Raises:
            sklearn.exceptions.NotFittedError: if the encoder is not fitted.
            TypeError: if X is not a data frame.
            ValueError: if a column is missing, or holds texts instead of numbers.
        """
        check_is_fitted(self, "features_")
        frame = _data_frame(X)
        features, _ = self.read(plain_frame(frame))
        names = self.get_feature_names_out()
        return pd.DataFrame(self.encode(features), index=frame.index, columns=names, copy=False)

    def read(
        self, frame: pd.DataFrame, missing: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, Oddities]:
        """The features of a later table, and what was odd about it.

        Raises:
            ValueError: if a column is missing, or holds texts instead of numbers.
        """
        return read_features(frame, self.features_, (*map(str, self.missing), *missing))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns that `transform` gives, all different.

        Signs that LightGBM and XGBoost refuse, such as commas and brackets, become "_".

        Args:
            input_features: not used; the names are those of the table of `fit`.
        """
        check_is_fitted(self, "features_")
        del input_features
        names: dict[str, None] = {}
        for full in (name for feature in self.blocks() for name in feature.names):
            name = full.translate(REFUSED_SIGNS)
            while name in names:
                name += "_"
            names[name] = None
        return np.array([*names], object)

    def blocks(self) -> list[FeatureBlock]:
        """Which columns of the matrix belong to which feature, in their order."""
        # Categories before numbers, and those without gaps first.
        ordered = sorted(self.features_, key=lambda feature: (feature.kind, feature.has_gaps))
        gappy = [f for f in ordered if f.kind == "number" and f.has_gaps]
        blocks = [FeatureBlock(feature, feature.kind) for feature in ordered]
        return blocks + [FeatureBlock(feature, "missing") for feature in gappy]

    @staticmethod
    def scaling(feature: TableFeature) -> tuple[float, float]:
        """What the numbers of a feature are multiplied by, and what is added to them."""
        scale = 2.0 / ((feature.high - feature.low) or 1.0)
        return scale, -1.0 - feature.low * scale

    def encode(
        self, features: pd.DataFrame, rows: NDArray[Any] | None = None
    ) -> NDArray[np.float32]:
        """(n, columns) the matrix of some rows of features, or of all."""
        blocks, n = self.blocks(), len(features) if rows is None else len(rows)
        matrix = np.empty((n, sum(len(block.names) for block in blocks)), np.float32)
        place = 0
        for block in blocks:
            width = len(block.names)
            column = features[block.feature.name]
            chosen = column if rows is None else column.iloc[rows]
            matrix[:, place : place + width] = block.encode(chosen)
            place += width
        return matrix


def _data_frame(X: Any) -> pd.DataFrame:
    frame = as_pandas(X)
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"X: expected a data frame, got {type(X).__name__}.")
    return frame


class FeatureBlock(NamedTuple):
    """Some columns of the matrix that belong to one feature.

    Attributes:
        feature: the feature.
        kind: "category" for its values, "number", or "missing" for the mark of missing numbers.
    """

    feature: TableFeature
    kind: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        name, gap = self.feature.name, [MISSING] if self.feature.has_gaps else []
        if self.kind == "category":
            return [f"{name}_{value}" for value in (*self.feature.values, *gap)]
        return [name if self.kind == "number" else f"missingindicator_{name}"]

    def encode(self, column: pd.Series) -> NDArray[Any]:
        """(n, columns) of the feature's values."""
        feature, width = self.feature, len(self.names)
        if self.kind == "category":
            code, n_known = column.cat.codes.to_numpy(dtype=np.int64), len(feature.values)
            codes = np.where(code < 0, n_known if feature.has_gaps else width, code)
            codes[code >= n_known] = width  # never seen: in none of the columns
            return np.asarray(codes[:, None] == np.arange(width))
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if self.kind == "missing":
            return np.where(np.isnan(numbers), 1.0, -1.0)[:, None]
        scale, offset = TableEncoder.scaling(feature)
        filled = np.where(np.isnan(numbers), feature.median, numbers)
        return np.asarray(filled * scale + offset)[:, None]
