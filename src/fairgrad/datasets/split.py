"""Train, validation and test rows: the paper's seeded split, and a stratified one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from fairgrad.datasets.dataset import Encoded

#: Seeds of the paper's five repetitions.
PAPER_SEEDS = (10, 20, 30, 40, 50)


class SplitRows(NamedTuple):
    """Row numbers of the three parts; ``train, validation, test = indices`` unpacks them.

    Example:
        >>> train, validation, test = paper_indices(10)
        >>> len(train), len(validation), len(test)
        (6, 2, 2)
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


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
    """Shuffle with the seed; the last 20 % are test, the last 25 % of the rest validation.

    Examples:
        >>> parts = paper_indices(10, seed=10)
        >>> len(parts.train), len(parts.validation), len(parts.test)
        (6, 2, 2)
    """
    _check_rows(rows)
    order = _shuffled(rows, seed)
    rest = int(0.8 * rows)
    fit = int(0.75 * rest)
    return SplitRows(order[:fit], order[fit:rest], order[rest:])


def stratified_indices(
    strata: np.ndarray, seed: int = 10, *, test: float = 0.2, validation: float = 0.2
) -> SplitRows:
    """A random split in which every stratum has its share in every part, to within one row.

    The rows are shuffled and sorted by stratum; then parts are dealt out at equal steps. Strata of
    a single row are welcome.

    Args:
        strata: Number of each row's stratum, such as its cell of label and group.
        seed: Seed of the shuffle.
        test: Share of the rows in the test part.
        validation: Share of the rows in the validation part.

    Raises:
        ValueError: There are fewer than five rows, or the shares leave no room for training.

    Examples:
        >>> strata = np.array([0] * 20 + [1] * 5)
        >>> train, validation, test = stratified_indices(strata)
        >>> np.bincount(strata[test]).tolist(), np.bincount(strata[train]).tolist()
        ([4, 1], [12, 3])
    """
    _check_rows(len(strata))
    if not (0 < test < 1 and 0 < validation < 1 and test + validation < 1):
        raise ValueError(
            f"test is {test} and validation {validation}; "
            "both must be positive, with room for training"
        )
    order = _shuffled(len(strata), seed)
    order = order[np.argsort(strata[order], kind="stable")]
    in_test = _every(len(order), test)
    rest = order[~in_test]
    in_validation = _every(len(rest), validation / (1 - test))
    return SplitRows(rest[~in_validation], rest[in_validation], order[in_test])


def paper_split(data: Encoded, seed: int = 10) -> Split:
    """The paper's split of encoded data, standardised by the training rows alone.

    Example:
        >>> from fairgrad.datasets import load
        >>> train, _, _ = paper_split(load("german").encode(), seed=20)
        >>> abs(float(train.X.mean())) < 1e-6
        True
    """
    return standardised(data, paper_indices(len(data), seed))


def stratified_split(
    data: Encoded, seed: int = 10, *, test: float = 0.2, validation: float = 0.2
) -> Split:
    """A split in which every label of every group has its share in every part; standardised.

    Example:
        >>> from fairgrad.datasets import load
        >>> parts = stratified_split(load("german").encode())
        >>> [round(float(part.y.mean()), 2) for part in parts]
        [0.7, 0.7, 0.7]
    """
    strata = data.y * (len(data.group_names) + 1) + data.s
    parts = stratified_indices(strata, seed, test=test, validation=validation)
    return standardised(data, parts)


def standardised(data: Encoded, parts: SplitRows) -> Split:
    """Cut into parts and give every feature mean 0 and variance 1 over the training rows.

    A feature that is constant over the training rows is only centred.
    """
    split = cut(data, parts)
    mean = split.train.X.mean(axis=0, dtype=np.float64)
    scale = split.train.X.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    return Split(*(_scaled(part, mean, scale) for part in split))


def cut(data: Encoded, parts: SplitRows) -> Split:
    """Cut into parts and leave the features as they are."""
    return Split(*(data.rows(index) for index in parts))


def _scaled(part: Encoded, mean: np.ndarray, scale: np.ndarray) -> Encoded:
    return replace(part, X=((part.X - mean) / scale).astype(part.X.dtype))


def _shuffled(rows: int, seed: int) -> np.ndarray:
    # The legacy generator, as its stream is frozen: a seed means the same rows for ever.
    return np.random.RandomState(seed).permutation(rows)


def _every(rows: int, share: float) -> np.ndarray:
    """Marks at equal steps: any run of rows holds its share of marks, to within one."""
    # Half a step of offset, so that a stratum's first row is not always left out.
    steps = np.floor(np.arange(rows + 1) * share + 0.5)
    marks: np.ndarray = np.diff(steps) > 0
    return marks


def _check_rows(rows: int) -> None:
    if rows < 5:
        raise ValueError(f"{rows} rows cannot be split into train, validation and test")
