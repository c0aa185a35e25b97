"""The data set as users see it: readable columns, and the matrix made from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from fairgrad.datasets.describe import description
from fairgrad.datasets.encode import Encoded, feature_encoder, joint_codes
from fairgrad.datasets.split import (
    Indices,
    Split,
    cut,
    paper_indices,
    standardised,
    stratified_indices,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from sklearn.compose import ColumnTransformer

    from fairgrad.datasets.images import Images


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows about people: features, what is to be predicted, and the groups to treat alike.

    Attributes:
        name: Short name, as given to ``load``.
        title: Readable name.
        frame: Features, with readable values; neither label nor sensitive columns are in it.
        label: What is to be predicted, as named categories.
        sensitive: One column per sensitive attribute, as named categories; missing is unknown.
        meanings: What each column says.
        left_out: Rows left out on the way, by reason.
        source: Where the data come from.
        licence: Terms of their use.
        citation: What to cite.
        notes: What else a reader should know.
        images: The images, where the features are images.
        own_split: The parts, where the data come with a split of their own; the features are
            then left as they are, and seeds change nothing.

    Example:
        >>> from fairgrad.datasets import load
        >>> load("german")
        <Dataset german: 1,000 rows, 19 features, label 'credit', sensitive ['sex']>
        >>> load("german").group_names
        ('sex=female', 'sex=male')
    """

    name: str
    title: str
    frame: pd.DataFrame
    label: pd.Series
    sensitive: pd.DataFrame
    meanings: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    licence: str = ""
    citation: str = ""
    notes: tuple[str, ...] = ()
    images: Images | None = None
    own_split: Indices | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.label)

    def __repr__(self) -> str:
        """Return one line with the name and the sizes."""
        return (
            f"<Dataset {self.name}: {len(self):,} rows, {self.frame.shape[1]} features, "
            f"label {self.label.name!r}, sensitive {list(self.sensitive)}>"
        )

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels; the position of a name is its code in ``y``."""
        return tuple(self.label.cat.categories)

    @property
    def attribute_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the values of each sensitive attribute, in the order of their codes."""
        return {str(name): tuple(self.sensitive[name].cat.categories) for name in self.sensitive}

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, one per combination of the sensitive attributes' values."""
        values = [[f"{name}={v}" for v in names] for name, names in self.attribute_names.items()]
        return tuple(", ".join(combination) for combination in product(*values))

    @property
    def y(self) -> np.ndarray:
        """Labels as codes 0, 1, ..., positions in ``label_names``."""
        return self.label.cat.codes.to_numpy(dtype=np.int64)

    @property
    def attributes(self) -> np.ndarray:
        """Codes of the sensitive attributes, one column each; -1 is unknown."""
        codes = [self.sensitive[name].cat.codes.to_numpy(dtype=np.int64) for name in self.sensitive]
        return np.stack(codes, axis=1)

    @property
    def s(self) -> np.ndarray:
        """Groups as codes 0, 1, ..., positions in ``group_names``; -1 is unknown."""
        return joint_codes(self.attributes, [len(v) for v in self.attribute_names.values()])

    def describe(self) -> str:
        """A readable summary: rows, labels, groups, groups too small to trust, terms of use."""
        return description(self)

    def encoder(self) -> ColumnTransformer:
        """An unfitted scikit-learn transformer from ``frame`` to the matrix, for pipelines."""
        return feature_encoder(self.frame, scale=self.own_split is None)

    def encode(self) -> Encoded:
        """The matrix of the paper's experiments, with labels and groups as codes.

        Categories become one 0/1 column per value, numbers are scaled to [-1, 1]; images stay
        undecoded until they are asked for.

        Examples:
            >>> from fairgrad.datasets import load
            >>> X, y, s = load("adult").encode()
            >>> X.shape, int(y.sum()), int(s.sum())
            ((45222, 52), 11208, 30527)
        """
        matrix, names = (self.images, ()) if self.images is not None else self._matrix()
        return Encoded(
            X=matrix,
            y=self.y,
            s=self.s,
            attributes=self.attributes,
            feature_names=names,
            label_names=self.label_names,
            group_names=self.group_names,
            attribute_names=self.attribute_names,
        )

    def indices(self, seed: int = 10, *, stratified: bool = False) -> Indices:
        """Row numbers of the train, validation and test parts, as ``split`` uses them."""
        if self.own_split is not None:
            return self.own_split
        if stratified:
            return stratified_indices(self.y * (len(self.group_names) + 1) + self.s, seed)
        return paper_indices(len(self), seed)

    def split(self, seed: int = 10, *, stratified: bool = False) -> Split:
        """The encoded data in three parts: 60 % train, 20 % validation, 20 % test.

        The features are standardised by the training rows alone.

        Args:
            seed: Seed of the shuffle; the paper's are 10, 20, 30, 40 and 50.
            stratified: Give every label of every group its share in every part, instead of the
                paper's plain shuffle: right for small data and small groups.

        Examples:
            >>> from fairgrad.datasets import load
            >>> train, validation, test = load("adult").split(seed=10)
            >>> len(train), len(validation), len(test)
            (27132, 9045, 9045)
        """
        parts = self.indices(seed, stratified=stratified)
        as_they_are = self.images is not None or self.own_split is not None
        return (cut if as_they_are else standardised)(self.encode(), parts)

    def _matrix(self) -> tuple[np.ndarray, tuple[str, ...]]:
        encoder = self.encoder()
        matrix = encoder.fit_transform(self.frame).astype(np.float32, copy=False)
        return matrix, tuple(encoder.get_feature_names_out())
