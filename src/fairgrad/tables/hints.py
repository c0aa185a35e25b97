"""Hints about a table: features that give away the target, or the sensitive values.

Each feature is asked how well it alone tells two kinds of rows apart, by the area under the ROC
curve (AUC): the chance that a row of one kind gets a higher score than one of the other, 0.5 for a
feature that tells nothing. The score of a row is the share of the one kind among rows with the same
value (of numbers: in the same of 32 parts of equal size), counted in the other half of the table,
so that a feature gains nothing from values that stand in few rows. Numbers are also scores
themselves, the higher AUC counts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from fairgrad.tables.values import as_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

LEAK, PROXY = 0.99, 0.8
"""AUC from which a feature is said to give away the target, or a sensitive value."""

MOST_ROWS = 20_000
"""Hints are found by a sample of so many rows."""

FEWEST_ROWS = 25
"""Of both kinds, for a hint; fewer are too few."""

_PARTS = 32
_MOST_LISTED = 5


def hints(
    label: pd.Series,
    sensitive: pd.DataFrame,
    features: pd.DataFrame,
    sources: Mapping[str, str],
    drop: str = "drop",
) -> list[str]:
    """What the reader should know of features that reveal too much.

    Args:
        label: named categories.
        sensitive: named categories, one column per attribute.
        features: columns of numbers and of named categories.
        sources: the column of the table that a feature was made of, if it has another name.
        drop: what the option that leaves a column out is called.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(label))[:MOST_ROWS])
    codes = {str(name): _Values.of(features[name].iloc[rows]) for name in features}
    said = []
    target = _kinds(label.iloc[rows])
    leaks = _revealing(codes, target, LEAK, min, sources)
    if leaks:
        listed = _listed(leaks)
        them = "it is" if len(leaks) == 1 else "they are"
        said.append(
            f"{listed} alone predicts {label.name} almost perfectly: if {them} known only "
            f"afterwards, leave {'it' if len(leaks) == 1 else 'them'} out ({drop})."
        )
    for name in sensitive:
        others = {feature: own for feature, own in codes.items() if feature != name}
        proxies = _revealing(others, _kinds(sensitive[name].iloc[rows]), PROXY, max, sources)
        if proxies:
            said.append(f"{name} can be told from {_listed(proxies)}.")
    return said


def auc(codes: NDArray[Any], is_one: NDArray[Any]) -> float:
    """How well values tell two kinds of rows apart; scores come from the other half of the rows.

    Args:
        codes: (n,) whole numbers from 0, equal where the values are.
        is_one: (n,) whether a row is of the one kind.
    """
    half, n = _halves(len(codes)), int(codes.max()) + 1
    place = codes + n * half
    rows = np.bincount(place, minlength=2 * n).reshape(2, n)
    ones = np.bincount(place, weights=is_one, minlength=2 * n).reshape(2, n)
    prior = ones.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
    score = ((ones + prior) / (rows + 1))[::-1]  # of the other half, for the rows of this one
    _, rank = np.unique(score.ravel(), return_inverse=True)
    n_ones = np.bincount(rank, weights=ones.ravel())
    n_zeros = np.bincount(rank, weights=(rows - ones).ravel())
    below = np.cumsum(n_zeros) - n_zeros / 2  # equal scores count one half
    return float((n_ones * below).sum() / (n_ones.sum() * n_zeros.sum()))


def rank_auc(numbers: NDArray[Any], is_one: NDArray[Any]) -> float:
    """The exact AUC of numbers as scores, in the better direction; missing ones come first."""
    rank = rankdata(np.where(np.isnan(numbers), -np.inf, numbers))
    n_ones = int(is_one.sum())
    pairs = n_ones * (len(is_one) - n_ones)
    found = (float(rank[is_one].sum()) - n_ones * (n_ones + 1) / 2) / pairs
    return max(found, 1 - found)


class _Values(NamedTuple):
    """The values of a feature.

    Attributes:
        codes: (n,) whole numbers from 0, equal where the values are alike.
        numbers: (n,) the numbers; None if they are categories.
    """

    codes: NDArray[Any]
    numbers: NDArray[Any] | None

    @classmethod
    def of(cls, column: pd.Series) -> _Values:
        is_named = isinstance(column.dtype, pd.CategoricalDtype)
        return cls(_parts(column), None if is_named else as_numbers(column))

    def auc(self, rows: NDArray[Any], is_one: NDArray[Any]) -> float:
        """How well they tell two kinds of some rows apart."""
        found = auc(self.codes[rows], is_one)
        if self.numbers is None:
            return found
        return max(found, rank_auc(self.numbers[rows], is_one))


@lru_cache(maxsize=8)
def _halves(n: int) -> NDArray[Any]:
    """0 for one half of the rows, 1 for the other, at random."""
    return np.random.default_rng(0).permutation(n) % 2


def _parts(column: pd.Series) -> NDArray[Any]:
    """Values as whole numbers from 0; numbers by the part of equal size they are in."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(dtype=np.int64) + 1
    numbers = as_numbers(column)
    known = numbers[~np.isnan(numbers)]
    if len(np.unique(known)) <= _PARTS:
        edges = np.unique(known)
    else:
        edges = np.unique(np.quantile(known, np.arange(1, _PARTS) / _PARTS))
    return np.where(np.isnan(numbers), 0, 1 + np.searchsorted(edges, numbers, side="right"))


def _kinds(column: pd.Series) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """By value: the known rows, and which of them have it; of two values the second alone."""
    codes = column.cat.codes.to_numpy()
    known = codes >= 0
    names = [str(name) for name in column.cat.categories]
    asked = range(1, 2) if len(names) == 2 else range(len(names))
    found = {names[code]: (known, codes[known] == code) for code in asked}
    return {
        name: (rows, own)
        for name, (rows, own) in found.items()
        if FEWEST_ROWS <= own.sum() <= len(own) - FEWEST_ROWS
    }


def _revealing(
    codes: Mapping[str, _Values],
    kinds: Mapping[str, tuple[NDArray[Any], NDArray[Any]]],
    least: float,
    choose: Any,
    sources: Mapping[str, str],
) -> dict[str, float]:
    """AUC of the features that reach the least, by `choose` of the values; the highest first."""
    found: dict[str, float] = {}
    for name, own in codes.items():
        figures = [own.auc(rows, is_one) for rows, is_one in kinds.values()]
        if figures and choose(figures) >= least:
            column = sources.get(name, name)
            found[column] = max(choose(figures), found.get(column, 0.0))
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _listed(found: Mapping[str, float]) -> str:
    shown = [f"{name} (AUC {figure:.2f})" for name, figure in list(found.items())[:_MOST_LISTED]]
    more = [f"{len(found) - _MOST_LISTED} more"] if len(found) > _MOST_LISTED else []
    shown += more
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
