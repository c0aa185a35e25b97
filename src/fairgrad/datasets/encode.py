"""Features -> a matrix, with scikit-learn transformers: numbers scaled, categories one-hot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sklearn.compose import ColumnTransformer

#: Name of the one-hot column of unknown values.
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Encoded:
    """Arrays ready for training; ``X, y, s = encoded`` unpacks the three that matter most.

    Attributes:
        X: Features, one row per example: a float32 array, or ``Images``, which decode on demand.
        y: Labels 0, 1, ..., positions in ``label_names``.
        s: Groups 0, 1, ..., positions in ``group_names``; -1 is unknown.
        attributes: One column of codes per sensitive attribute; -1 is unknown.
        feature_names: Names of the columns of ``X``.
        label_names: Names of the labels.
        group_names: Names of the groups, such as "sex=Female, race=White".
        attribute_names: Values of each sensitive attribute, by its name.

    Example:
        >>> from fairgrad.datasets import load
        >>> encoded = load("german").encode()
        >>> encoded
        <Encoded: 1,000 rows, groups ['sex=female', 'sex=male']>
        >>> X, y, s = encoded
        >>> X.shape, encoded.rows(slice(10)).y.tolist()
        ((1000, 57), [1, 0, 1, 1, 0, 1, 1, 1, 1, 0])
    """

    X: Any
    y: np.ndarray
    s: np.ndarray
    attributes: np.ndarray
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    group_names: tuple[str, ...]
    attribute_names: Mapping[str, tuple[str, ...]]

    def __iter__(self) -> Iterator[Any]:
        """Yield X, y and s."""
        return iter((self.X, self.y, self.s))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    def __repr__(self) -> str:
        """Return one line with the sizes."""
        return f"<Encoded: {len(self):,} rows, groups {list(self.group_names)}>"

    def rows(self, index: np.ndarray | slice) -> Encoded:
        """The chosen rows: numbers, a mask or a slice."""
        chosen = np.arange(len(self))[index]
        return replace(
            self,
            X=self.X.take(chosen, axis=0),
            y=self.y[chosen],
            s=self.s[chosen],
            attributes=self.attributes[chosen],
        )


def feature_encoder(frame: pd.DataFrame, *, scale: bool = True) -> ColumnTransformer:
    """An unfitted transformer for frames with the columns of this one.

    Categories become one 0/1 column per value, in the order of the column's categories; a value
    never seen there gives zeros. Numbers are scaled to [-1, 1] by the smallest and largest value
    seen in ``fit``. Where this frame has unknown values, a categorical column gets one more 0/1
    column for them, and an unknown number becomes the median, with one more column that marks it.
    """
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - slow to import

    categorical = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    incomplete = [name for name in frame if frame[name].isna().any()]
    steps = []
    for kind, make in (("categorical", _one_hot), ("numeric", _scaler)):
        for state in ("complete", "incomplete"):
            columns = [
                name
                for name in frame
                if (name in categorical) == (kind == "categorical")
                and (name in incomplete) == (state == "incomplete")
            ]
            if columns:
                steps.append((f"{kind} {state}", make(frame[columns], state, scale), columns))
    return ColumnTransformer(steps, verbose_feature_names_out=False)


def _one_hot(frame: pd.DataFrame, state: str, _scale: bool) -> Any:
    from sklearn.impute import SimpleImputer  # noqa: PLC0415 - slow to import
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    extra = [MISSING] if state == "incomplete" else []
    one_hot = OneHotEncoder(
        categories=[[*frame[name].cat.categories, *extra] for name in frame],
        handle_unknown="ignore",
        sparse_output=False,
        dtype=np.float32,
    )
    if not extra:
        return one_hot
    return make_pipeline(SimpleImputer(strategy="constant", fill_value=MISSING), one_hot)


def _scaler(_frame: pd.DataFrame, state: str, scale: bool) -> Any:
    from sklearn.impute import SimpleImputer  # noqa: PLC0415 - slow to import
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import FunctionTransformer, MinMaxScaler  # noqa: PLC0415

    scaler = MinMaxScaler((-1, 1)) if scale else FunctionTransformer(feature_names_out="one-to-one")
    if state == "complete":
        return scaler
    return make_pipeline(SimpleImputer(strategy="median", add_indicator=True), scaler)


def joint_codes(codes: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """One group number per row from the codes of several attributes, the last varying fastest.

    A row with any unknown attribute is unknown.

    Examples:
        >>> joint_codes(np.array([[0, 1], [1, 0], [-1, 1]]), [2, 2]).tolist()
        [1, 2, -1]
    """
    joint = np.zeros(len(codes), dtype=np.int64)
    for place, size in enumerate(sizes):
        joint = joint * size + codes[:, place]
    return np.where((codes < 0).any(axis=1), -1, joint)
