"""What a published table is made of: data, splits, methods and gaps, each as its authors have it.

A source is one paper or notebook. It has several cells, such as Adult by sex, and measures. A fit
is a function of a split and a measure that returns the predicted labels of the test rows; fits that
do not use the measure are made once and judged by all of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from fairgrad_bench.datasets.places import CorruptFileError, DataNotFoundError, places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

THEIRS, OURS, BASELINE = "theirs", "ours", "baseline"
BLIND, AWARE = "blind", "aware"
"""Whether a model needs the sensitive value to predict."""

FILES = {
    "acs_income_ca_2018_subset.csv.gz": "85ae10be",
    "acs_income_us_2018_subset.parquet": "18d9fa7f",
    "adult.csv.gz": "020e9376",
    "communities_crime.csv.gz": "8f15366e",
    "compas-scores-two-years.csv.gz": "10aa9937",
    "german_credit.csv.gz": "44aeb492",
    "utkface_64px.zip": "9b9c4c24",
}
"""The data files, and how their SHA-256 begins."""


class Rows(NamedTuple):
    """Features, labels 0, 1, ... and groups 0, 1, ... of some rows."""

    X: Any
    y: Any
    s: Any

    def take(self, places: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.X[places], self.y[places], self.s[places])


class Split(NamedTuple):
    """Rows to learn from, rows to choose by (none if all are to learn from), and test rows."""

    train: Rows
    validation: Rows | None
    test: Rows


@dataclass(frozen=True, eq=False)
class Method:
    """A row of a table that is computed here.

    Attributes:
        fit: from a split, a measure and a seed to the predicted labels of the test rows.
        whose: `THEIRS`, `OURS` or `BASELINE`.
        inputs: `BLIND` or `AWARE`.
        is_default: whether no option but the measure was set.
        uses_measure: whether there is one model per measure.
        version: raised by hand when its results change.
    """

    fit: Callable[[Split, str, int], Any]
    whose: str = OURS
    inputs: str = BLIND
    is_default: bool = False
    uses_measure: bool = True
    version: int = 1


@dataclass(frozen=True, eq=False)
class Source:
    """A published table and how to make its rows.

    Attributes:
        name: of the source, as on the command line.
        cells: data sets and sensitive attributes.
        measures: that models are made fair by; the gap of each is a column of the table.
        seeds: how many splits the protocol has.
        split: from the name of a cell and a seed to the rows.
        gaps: from test rows and predicted labels to the gap of every measure.
        methods: rows by their names.
    """

    name: str
    cells: tuple[str, ...]
    measures: tuple[str, ...]
    seeds: int
    split: Callable[[str, int], Split]
    gaps: Callable[[Rows, Any], Mapping[str, float]]
    methods: Mapping[str, Method]


def data_file(name: str) -> Path:
    """The path of a data file, in the folder that ``FAIRGRAD_DATA`` names or in the cache.

    Raises:
        DataNotFoundError: if it is nowhere.
        CorruptFileError: if it has unexpected content.
    """
    for _, folder in places():
        path = None if folder is None else folder / name
        if path is not None and path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if not digest.startswith(FILES[name]):
                raise CorruptFileError(f"{path} has the SHA-256 {digest}, not {FILES[name]}...")
            return path
    raise DataNotFoundError(f"no file {name}; put it into the folder that FAIRGRAD_DATA names.")


def split_test_first(rows: Rows, seed: int, test: float, validation: float) -> Split:
    """Splits off the test rows, then a share of the other rows for validation.

    Args:
        rows: all rows.
        seed: of both splits.
        test: the share of the test rows.
        validation: the share of the other rows; 0 for no validation rows.
    """
    train, held_out = train_test_split(np.arange(len(rows.y)), test_size=test, random_state=seed)
    if validation == 0:
        return Split(rows.take(train), None, rows.take(held_out))
    train, after = train_test_split(train, test_size=validation, random_state=seed)
    return Split(rows.take(train), rows.take(after), rows.take(held_out))


def split_train_first(rows: Rows, seed: int, rest: float, strata: Any) -> Split:
    """Splits off the training rows, then halves the rest into test and validation rows.

    Args:
        rows: all rows.
        seed: of both splits.
        rest: the share of the rows that are not for training.
        strata: (n,) values whose shares all parts have.
    """
    every, both = np.arange(len(rows.y)), {"random_state": seed}
    train, other = train_test_split(every, test_size=rest, stratify=strata, **both)
    test, validation = train_test_split(other, test_size=0.5, stratify=strata[other], **both)
    return Split(rows.take(train), rows.take(validation), rows.take(test))


@lru_cache(maxsize=4)
def read_table(name: str, **options: Any) -> Any:
    """A data file as a frame. Copy it before you change it."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    path = data_file(name)
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, **options)


def propublica() -> Any:
    """COMPAS with the usual filter: 6,172 defendants."""
    people = read_table("compas-scores-two-years.csv.gz", index_col=0)
    is_kept = people["days_b_screening_arrest"].between(-30, 30) & (people["is_recid"] != -1)
    return people[is_kept & (people["c_charge_degree"] != "O")]


def rates(selected: Any, s: Any) -> Any:
    """(G,) the share of selected rows in each group that has rows."""
    count = np.bincount(s)
    sums = np.bincount(s, weights=np.asarray(selected, dtype=np.float64))
    return sums[count > 0] / count[count > 0]


def largest_gap(selected: Any, s: Any) -> float:
    """The largest difference of the groups' shares of selected rows."""
    shares = rates(selected, s)
    return float(shares.max() - shares.min())


def with_group(rows: Rows) -> Any:
    """The features with the group as one more column."""
    return np.column_stack([rows.X, rows.s])


def logistic(split: Split, _: str, __: int, features: Callable[[Rows], Any] = with_group) -> Any:
    """An unconstrained model of several authors; it learns from the training rows."""
    model = LogisticRegression(max_iter=10000).fit(features(split.train), split.train.y)
    return model.predict(features(split.test))


def label_gaps(test: Rows, predicted: Any) -> list[float]:
    """The largest gaps of the shares predicted 1, among rows labelled 0 and labelled 1."""
    return [largest_gap(predicted[test.y == y], test.s[test.y == y]) for y in (0, 1)]
