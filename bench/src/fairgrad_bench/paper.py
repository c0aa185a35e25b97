"""The figures that the paper prints, as data."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

MAX_MIN_ARE_ABSOLUTE = ("constant", "constrained")
"""Methods whose maxima and minima the paper prints as absolute values: they do not compare."""

NOT_COMPARABLE = {
    "folktables": "another label: incomes above 50,000 here, above 25,000 in the paper",
}
"""Data sets under the paper's name that are not the paper's data, and why."""

SAME_AS = {"folktables:threshold=25000": "folktables"}
"""Data sets with options that are the paper's after all."""

UNCONSTRAINED_CELEBA_LINEAR = {
    "accuracy": 0.8532,
    "equalized_odds": 0.0499,
    "accuracy_parity": 0.0204,
    "equality_of_opportunity": 0.0387,
}
"""The unconstrained model beside the paper's figure over epsilon: accuracy and unfairness."""


@cache
def paper_results() -> pd.DataFrame:
    """The paper's 433 results.

    Example:
        >>> len(paper_results())
        433
    """
    return _read("paper_results.csv")


@cache
def paper_batch_sizes() -> pd.DataFrame:
    """The paper's figures over the batch size: CelebA, linear, equalized odds."""
    return _read("paper_batch_size.csv")


@cache
def paper_overhead() -> pd.DataFrame:
    """The paper's seconds per epoch on Adult, plain and fair, with the networks' hidden layers."""
    return _read("paper_overhead.csv")


def paper_name(dataset: str) -> str | None:
    """What the paper calls a data set of a plan, or None if it is not among the paper's."""
    name = SAME_AS.get(dataset, dataset)
    return name if name in set(paper_results()["dataset"]) else None


def _read(name: str) -> pd.DataFrame:
    with files("fairgrad.bench").joinpath(name).open(encoding="utf-8") as file:
        return pd.read_csv(file)
