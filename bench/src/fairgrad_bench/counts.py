"""Predictions -> how many rows of each cell they get wrong.

Every measure is a function of the cells' error rates, so these counts are all that is kept of a
trained model: small, and enough for measures that nobody has thought of yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.groups import Floats, Groups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairgrad.datasets import Encoded, Split


@dataclass(frozen=True)
class Cells:
    """The labels and groups that rows are counted by; cell = label position * groups + group's.

    Attributes:
        labels: the L labels.
        groups: the G groups; -1, rows of unknown group, comes last.

    Example:
        >>> Cells((0, 1), (0, 1)).count([0, 0, 1], [1, 1, 0])
        array([0., 2., 1., 0.])
    """

    labels: tuple[int, ...]
    groups: tuple[int, ...]

    @classmethod
    def of(cls, splits: Iterable[Split]) -> Cells:
        """All labels and groups of all parts."""
        parts = [part for split in splits for part in split]
        labels = np.unique(np.concatenate([part.y for part in parts])).tolist()
        groups = np.unique(np.concatenate([part.s for part in parts])).tolist()
        return cls(tuple(labels), tuple(sorted(groups, key=lambda group: (group < 0, group))))

    def count(self, y: Any, s: Any, weight: Any = None) -> Floats:
        """(L G,) rows, or the sum of their weights, in each cell."""
        place = np.empty(max(self.groups) + 2, dtype=np.int64)
        place[np.add(self.groups, 1)] = np.arange(len(self.groups))
        cell = np.searchsorted(self.labels, y) * len(self.groups) + place[np.add(s, 1)]
        size = len(self.labels) * len(self.groups)
        return np.bincount(cell, weight, minlength=size).astype(np.float64)

    def wrong(self, part: Encoded, predicted: Any, what: str) -> Floats:
        """(L G,) rows of each cell with another prediction than their label.

        Raises:
            ValueError: if there is not one prediction per row.
        """
        found = np.asarray(predicted)
        if found.shape != part.y.shape:
            raise ValueError(
                f"{what}: expected one prediction per row ({len(part.y)}), got {found.shape}."
            )
        return self.count(part.y, part.s, found != part.y)

    def expected_wrong(self, part: Encoded, positive_rate: Any) -> Floats:
        """(L G,) what randomised predictions of two labels get wrong on average."""
        rate = np.asarray(positive_rate, dtype=np.float64)
        return self.count(part.y, part.s, np.where(part.y == 1, 1 - rate, rate))

    def as_groups(self, rows: Any) -> Groups:
        """The groups of a part, from its rows per cell."""
        keys = [(label, group) for label in self.labels for group in self.groups]
        return Groups.from_counts(dict(zip(keys, np.asarray(rows).tolist(), strict=True)))
