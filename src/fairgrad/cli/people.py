"""A user's table -> who is to be judged: label, groups, features, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.datasets.attributes import label_column, sensitive_column
from fairgrad.datasets.columns import check_named, check_not_mixed, is_quantity
from fairgrad.datasets.split import stratified_indices
from fairgrad.datasets.table import feature_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Columns:
    """Which column plays which part.

    Attributes:
        target: what is to be predicted.
        sensitive: whose groups are to be treated alike.
        drop: not to be used.
        categorical: columns of numbers that are mere codes.
        bins: edges that cut a sensitive column of numbers into groups.
        positive: the desirable value of the target; None for the last in natural order.
        use_sensitive: whether the sensitive columns are features as well.
    """

    target: str
    sensitive: tuple[str, ...]
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    bins: Mapping[str, list[float]] = field(default_factory=dict)
    positive: str | None = None
    use_sensitive: bool = False

    def check(self, names: Sequence[str]) -> None:
        """Refuses names that the table lacks, or that contradict each other.

        Raises:
            ValueError: naming the option.
        """
        table = pd.DataFrame(columns=list(names))
        for option, wanted in self._by_option().items():
            check_named(wanted, table, option)
        if self.target in self.sensitive:
            raise ValueError(f"--target and --sensitive both name {self.target!r}")
        for name in self.drop:
            if name == self.target or name in self.sensitive:
                raise ValueError(
                    f"--drop names {name!r}, which --target or --sensitive needs; the target is "
                    "never a feature, and sensitive columns are none unless --use-sensitive is "
                    "given"
                )
        strangers = [name for name in self.bins if name not in self.sensitive]
        if strangers:
            raise ValueError(f"--bins names {strangers[0]!r}, which is not among --sensitive")

    def without_drop(self) -> Columns:
        """The same for a table whose dropped columns were not even read."""
        kept = tuple(name for name in self.categorical if name not in self.drop)
        return replace(self, drop=(), categorical=kept)

    def _by_option(self) -> dict[str, tuple[str, ...]]:
        return {
            "--target": (self.target,),
            "--sensitive": self.sensitive,
            "--drop": self.drop,
            "--categorical": self.categorical,
            "--bins": tuple(self.bins),
        }


@dataclass(frozen=True, eq=False)
class People:
    """The rows of a table, ready to be split and encoded.

    Attributes:
        label: what is to be predicted, as named categories, the desirable one last.
        sensitive: one column of named categories per attribute; missing is unknown.
        features: columns of numbers and of named categories.
        notes: what the reader should know about the table.
    """

    label: pd.Series
    sensitive: pd.DataFrame
    features: pd.DataFrame
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    @property
    def values(self) -> list[str]:
        """The values of the label, the desirable one last."""
        return [str(value) for value in self.label.cat.categories]

    def labels(self, rows: NDArray[Any]) -> pd.Series:
        """The labels of some rows as texts."""
        texts = np.asarray(self.label.iloc[rows], dtype=object)
        return pd.Series(texts, name=self.label.name, dtype=object)

    def groups(self, rows: NDArray[Any]) -> pd.DataFrame:
        """The sensitive values of some rows."""
        return self.sensitive.iloc[rows].reset_index(drop=True)

    def split(self, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Row numbers of 60 % for training, 20 % for validation and 20 % for the test.

        Every label of every group has its share in each.
        """
        cell = self.label.cat.codes.to_numpy(dtype=np.int64)
        for name in self.sensitive:
            codes = self.sensitive[name].cat
            cell = cell * (len(codes.categories) + 1) + codes.codes.to_numpy(dtype=np.int64) + 1
        train, validation, test = stratified_indices(cell, seed)
        return train, validation, test


def people_of(frame: pd.DataFrame, columns: Columns) -> People:
    """Label, groups and features of a table.

    Args:
        frame: as `read_table` gives it.
        columns: which column plays which part.

    Raises:
        ValueError: if a column cannot play its part; the message says why.
    """
    columns.check([str(name) for name in frame.columns])
    notes = []
    unlabelled = int(frame[columns.target].isna().sum())
    if unlabelled:
        frame = frame[frame[columns.target].notna()].reset_index(drop=True)
        notes.append(f"{unlabelled:,} rows are left out: they have no {columns.target}.")
    label = target_column(frame[columns.target], columns.positive)
    groups = {name: group_column(frame[name], columns.bins.get(name)) for name in columns.sensitive}
    for name, column in groups.items():
        unknown = int(column.isna().sum())
        if unknown:
            notes.append(f"{name} is unknown in {unknown:,} rows; they are kept, in no group.")
    others = [columns.target, *columns.drop]
    others += [] if columns.use_sensitive else columns.sensitive
    rest = frame.drop(columns=others)
    for other in rest:
        if str(other) not in columns.categorical:
            _check_texts(rest[other])
    features, more = feature_columns(rest, columns.categorical)
    return People(label, pd.DataFrame(groups), features, (*notes, *more))


def target_column(column: pd.Series, positive: str | None = None) -> pd.Series:
    """The target as named categories, the desirable one last.

    Raises:
        ValueError: if it has one value only, looks continuous, or lacks the desirable value.
    """
    _check_texts(column)
    label = label_column(column)
    if positive is None:
        return label
    names = list(label.cat.categories)
    if positive not in names:
        raise ValueError(
            f"--desirable is {positive!r}; the values of {column.name!r} are {', '.join(names)}"
        )
    return label_column(column, positive)


def group_column(column: pd.Series, edges: list[float] | None = None) -> pd.Series:
    """A sensitive column as named categories.

    Raises:
        ValueError: if its groups cannot be compared.
    """
    if edges is None and is_quantity(column):
        middle = f"{column.median():.4g}"
        raise ValueError(
            f"the sensitive column {column.name!r} has {column.nunique():,} different numbers; say "
            f'how to group them, for example --bins "{column.name}={middle}"'
        )
    _check_texts(column)
    return sensitive_column(column, edges)


def _check_texts(column: pd.Series) -> None:
    """Refuses a column that mixes numbers and texts, also one that is read as categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = pd.Series(column.cat.categories, name=column.name)
    check_not_mixed(column)
