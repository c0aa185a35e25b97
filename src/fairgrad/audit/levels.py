"""From rates to levels of fairness: linear maps, and what they do to intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray  # noqa: TC002 - a dataclass's fields are read at run time

from fairgrad.audit.proportions import Interval
from fairgrad.groups import Floats  # noqa: TC001 - a dataclass's fields are read at run time


class LevelMap(Protocol):
    """A linear map from the rates of the cells (K,) to the levels (J,)."""

    def levels(self, rate: Floats) -> Floats:
        """The levels of these rates; NaN where they are not defined."""

    def enclose(self, rate: Interval) -> Interval:
        """The range of each level when every rate lies anywhere in its own interval."""


@dataclass(frozen=True, eq=False)
class GapToMean:
    """``F_(l,r) = x_(l,r) - factor * sum_r' share_(l,r') x_(l,r')``, the library's own measures.

    Attributes:
        share: (R, G) the weight of each group in the mean of each row of rates; 0 for a group
            without rows, whose level is not defined.
        applies: (R,) whether a row is constrained; the levels of the others are 0.
        factor: 1, or 0.8 for the four-fifths rule.
    """

    share: Floats
    applies: NDArray[np.bool_]
    factor: float = 1.0

    def levels(self, rate: Floats) -> Floats:
        """(R * G,) the levels."""
        x = np.where(self.share > 0, rate.reshape(self.share.shape), 0.0)
        gap = x - self.factor * (self.share * x).sum(axis=1, keepdims=True)
        return self._defined(gap)

    def enclose(self, rate: Interval) -> Interval:
        """Interval arithmetic: a group's own rate counts once, with what is left of it.

        ``F_r = (1 - factor share_r) x_r - factor sum_(r' != r) share_r' x_r'``.
        """
        low, high = (np.where(self.share > 0, end.reshape(self.share.shape), 0.0) for end in rate)
        weight = self.factor * self.share
        others_low, others_high = (
            (weight * end).sum(axis=1, keepdims=True) - weight * end for end in (low, high)
        )
        return Interval(
            self._defined((1 - weight) * low - others_high),
            self._defined((1 - weight) * high - others_low),
        )

    def _defined(self, gap: Floats) -> Floats:
        gap = np.where(self.share > 0, gap, np.nan)
        return np.where(self.applies[:, None], gap, 0.0).ravel()


@dataclass(frozen=True, eq=False)
class Matrix:
    """``F = c0 + C e``: any constraints on the error rates of the cells.

    Attributes:
        c0: (J,) constants, NaN where a level is not defined.
        C: (J, K) coefficients.
    """

    c0: Floats
    C: Floats

    def levels(self, rate: Floats) -> Floats:
        """(J,) the levels."""
        levels: Floats = self.c0 + self.C @ np.nan_to_num(rate)
        return levels

    def enclose(self, rate: Interval) -> Interval:
        """Interval arithmetic: rises with the rates of positive coefficients, falls with others."""
        rising, falling = np.maximum(self.C, 0.0), np.minimum(self.C, 0.0)
        return Interval(
            self.c0 + rising @ rate.low + falling @ rate.high,
            self.c0 + rising @ rate.high + falling @ rate.low,
        )
