"""Train, validation and test rows: the paper's seeded split, and a stratified one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.datasets.encode import Encoded

#: Seeds of the paper's five repetitions.
PAPER_SEEDS = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Indices:
    """Row numbers of the three parts."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Split:
    """The three parts of a data set; ``train, validation, test = split`` unpacks them."""

    train: Encoded
    validation: Encoded
    test: Encoded

    def __iter__(self) -> Iterator[Encoded]:
        """Yield train, validation and test."""
        return iter((self.train, self.validation, self.test))


def paper_indices(rows: int, seed: int) -> Indices:
    """Shuffle with the seed; the last 20 % are test, the last 25 % of the rest validation.

    Examples:
        >>> parts = paper_indices(10, seed=10)
        >>> len(parts.train), len(parts.validation), len(parts.test)
        (6, 2, 2)
    """
    # The legacy generator, as its stream is frozen: a seed means the same rows for ever.
    order = np.random.RandomState(seed).permutation(rows)
    rest = int(0.8 * rows)
    fit = int(0.75 * rest)
    return Indices(order[:fit], order[fit:rest], order[rest:])


def paper_split(data: Encoded, seed: int = 10) -> Split:
    """The paper's split, with the features standardised by the training rows alone."""
    return standardised(data, paper_indices(len(data), seed))


def standardised(data: Encoded, parts: Indices) -> Split:
    """Cut into parts and give every feature mean 0 and variance 1 over the training rows.

    A feature that is constant over the training rows is only centred.
    """
    train, validation, test = (data.rows(i) for i in (parts.train, parts.validation, parts.test))
    mean = train.X.mean(axis=0, dtype=np.float64)
    scale = train.X.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    return Split(*(_scaled(part, mean, scale) for part in (train, validation, test)))


def _scaled(part: Encoded, mean: np.ndarray, scale: np.ndarray) -> Encoded:
    return replace(part, X=((part.X - mean) / scale).astype(part.X.dtype))
