"""Features -> a matrix, with scikit-learn transformers: numbers scaled, categories one-hot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sklearn.compose import ColumnTransformer


@dataclass(frozen=True)
class Encoded:
    """Arrays ready for training; ``X, y, s = encoded`` unpacks the three that matter most.

    Attributes:
        X: Features, one row per example, float32.
        y: Labels 0, 1, ..., positions in ``label_names``.
        s: Groups 0, 1, ..., positions in ``group_names``; -1 is unknown.
        attributes: One column of codes per sensitive attribute; -1 is unknown.
        feature_names: Names of the columns of ``X``.
        label_names: Names of the labels.
        group_names: Names of the groups, such as "sex=Female, race=White".
        attribute_names: Values of each sensitive attribute, by its name.
    """

    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    attributes: np.ndarray
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    group_names: tuple[str, ...]
    attribute_names: dict[str, tuple[str, ...]]

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield X, y and s."""
        return iter((self.X, self.y, self.s))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    def rows(self, index: np.ndarray) -> Encoded:
        """The chosen rows."""
        return replace(
            self,
            X=self.X[index],
            y=self.y[index],
            s=self.s[index],
            attributes=self.attributes[index],
        )


def feature_encoder(frame: pd.DataFrame, dtype: type = np.float32) -> ColumnTransformer:
    """An unfitted transformer for the columns of a frame.

    Categories become one 0/1 column per value, in the order of the column's categories; numbers
    are scaled to [-1, 1] by the smallest and largest value seen in ``fit``.
    """
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - a second to import
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder  # noqa: PLC0415

    categorical = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    numeric = [name for name in frame if name not in categorical]
    one_hot = OneHotEncoder(
        categories=[list(frame[name].cat.categories) for name in categorical],
        sparse_output=False,
        dtype=dtype,
    )
    return ColumnTransformer(
        [("categorical", one_hot, categorical), ("numeric", MinMaxScaler((-1, 1)), numeric)],
        verbose_feature_names_out=False,
    )


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
