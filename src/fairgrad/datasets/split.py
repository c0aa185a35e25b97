"""Train, validation and test rows: the paper's seeded split, and a stratified one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad.splitting import SplitRows, three_parts

if TYPE_CHECKING:
    from fairgrad.datasets.dataset import Dataset, Encoded

#: Seeds of the paper's five repetitions.
PAPER_SEEDS = (10, 20, 30, 40, 50)


class Split(NamedTuple):
    """The three parts of a data set; ``train, validation, test = split`` unpacks them.

    Example:
        >>> from fairgrad.datasets import load
        >>> split = load("german").split(seed=10)
        >>> [len(part) for part in split]
        [600, 200, 200]
    """

    train: Encoded
    validation: Encoded
    test: Encoded


def paper_indices(rows: int, seed: int = 10) -> SplitRows:
    """Shuffle with the seed; the last 20 % are test, the last 25 % of the rest validation."""
    _check_rows(rows)
    order = _shuffled(rows, seed)
    rest = int(0.8 * rows)
    fit = int(0.75 * rest)
    return SplitRows(order[:fit], order[fit:rest], order[rest:])


def stratified_indices(
    strata: np.ndarray, seed: int = 10, *, test: float = 0.2, validation: float = 0.2
) -> SplitRows:
    """A random split in which every stratum has its share in every part, to within one row.

    The rows are held out as everywhere in the library (`fairgrad.splitting.three_parts`).
    Strata of a single row are welcome: they stay in training.

    Raises:
        ValueError: There are fewer than five rows, or the shares leave no room for training.
    """
    _check_rows(len(strata))
    if not (0 < test < 1 and 0 < validation < 1 and test + validation < 1):
        raise ValueError(
            f"test is {test} and validation {validation}; "
            "both must be positive, with room for training"
        )
    share = validation / (1 - test)
    return three_parts(strata, seed, test=test, validation=share, may_be_empty=True)


def strata(data: Dataset | Encoded) -> np.ndarray:
    """Number of each row's label and group."""
    numbers: np.ndarray = data.y * (len(data.group_names) + 1) + data.s
    return numbers


def standardised(data: Encoded, parts: SplitRows) -> Split:
    """Cut into parts and give every feature mean 0 and variance 1 over the training rows.

    A feature that is constant over the training rows is only centred.
    """
    split = cut(data, parts)
    mean = split.train.X.mean(axis=0, dtype=np.float64)
    scale = split.train.X.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    scaled = (((part.X - mean) / scale).astype(part.X.dtype) for part in split)
    return Split(*(replace(part, X=X) for part, X in zip(split, scaled, strict=True)))


def cut(data: Encoded, parts: SplitRows) -> Split:
    """Cut into parts and leave the features as they are."""
    return Split(*(data.rows(index) for index in parts))


def _shuffled(rows: int, seed: int) -> np.ndarray:
    # The legacy generator, as its stream is frozen: a seed means the same rows for ever.
    return np.random.RandomState(seed).permutation(rows)


def _check_rows(rows: int) -> None:
    if rows < 5:
        raise ValueError(f"{rows} rows cannot be split into train, validation and test")
