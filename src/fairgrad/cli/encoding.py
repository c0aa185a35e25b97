"""Features -> the matrix a network sees, a piece of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.datasets.encode import feature_encoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from sklearn.compose import ColumnTransformer

    from fairgrad.cli.features import Feature

PIECE = 20_000
"""Rows encoded at a time: copies on the way stay small."""


def fitted_encoder(features: Sequence[Feature]) -> ColumnTransformer:
    """The library's encoder, fitted to a handful of rows that stand for all of them.

    It learns of a column of numbers the smallest, the largest and the median, and of categories
    their names: five rows with these give it what a million rows would, without a copy of them.
    """
    rows = {feature.name: _example(feature) for feature in features}
    frame = pd.DataFrame(rows)
    encoder = feature_encoder(frame)
    encoder.fit(frame)
    return encoder


def encode(
    encoder: ColumnTransformer, features: pd.DataFrame, rows: NDArray[Any] | None = None
) -> NDArray[np.float32]:
    """(n, columns) the matrix of some rows, or of all."""
    n = len(features) if rows is None else len(rows)
    matrix = np.empty((n, len(encoder.get_feature_names_out())), dtype=np.float32)
    for start in range(0, n, PIECE):
        part = slice(start, start + PIECE)
        matrix[part] = encoder.transform(features.iloc[part if rows is None else rows[part]])
    return matrix


def _example(feature: Feature) -> Any:
    """Five values: the ends, the median twice (so that it is the median), a gap if there is one."""
    if feature.kind == "category":
        codes = np.array([0, 0, 0, 0, -1 if feature.has_gaps else 0])
        return pd.Categorical.from_codes(codes, categories=pd.Index(feature.values))
    middle = [feature.median] * 2
    last = np.nan if feature.has_gaps else feature.median
    return np.array([feature.low, *middle, feature.high, last])
