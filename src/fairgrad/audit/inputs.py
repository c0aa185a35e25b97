"""Columns of labels, predictions and sensitive values -> the count table, or a clear error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit.table import Table
from fairgrad.columns import UNKNOWN, Codes, as_array, as_columns, encode
from fairgrad.groups import Floats, Groups, Ints, check_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of an audit as integers.

    Attributes:
        groups: who the groups are, unknown values included.
        truth: (N,) index of each row's label.
        group: (N,) index of each row's group.
        weight: (N,) sample weights, if any.
        empty: names of values a column declares (as a category) but no row has.
    """

    groups: Groups
    truth: Ints
    group: Ints
    weight: Floats | None
    empty: tuple[str, ...]

    def predictions(self, y_pred: Any, argument: str) -> Ints:
        """(N,) the index of each row's predicted label.

        Raises:
            ValueError: if lengths differ, a prediction is missing, or a label was never seen.
        """
        found = _encode_labels(y_pred, argument)[1]
        _check_length(len(found.codes), len(self.truth), argument)
        return _positions(found, self.groups.labels, argument)

    def table(self, predicted: Ints) -> Table:
        """The rows counted by group, true label and predicted label."""
        n_labels, n_groups = self.groups.mass.shape
        cell = (self.group * n_labels + self.truth) * n_labels + predicted
        shape = (n_groups, n_labels, n_labels)

        def count(weight: Floats | None) -> Floats:
            counts = np.bincount(cell, weight, minlength=n_groups * n_labels**2)
            return counts.reshape(shape).astype(np.float64)

        rows = count(None)
        if self.weight is None:
            return Table(self.groups, rows, rows, rows)
        return Table(self.groups, rows, count(self.weight), count(self.weight**2))


def read_rows(y_true: Any, sensitive_features: Any, sample_weight: Any, labels: Any) -> Rows:
    """Encodes the true labels and the sensitive values.

    Args:
        y_true: one label per row.
        sensitive_features: one column, or a table or mapping with one column per attribute.
        sample_weight: one non-negative weight per row, or None.
        labels: all labels there are; by default those in y_true.

    Raises:
        ValueError: if lengths differ, a label is missing, or a group cannot be compared.
    """
    label_name, truth = _encode_labels(y_true, "y_true")
    n_rows = len(truth.codes)
    if labels is not None:
        known = _encode_labels(labels, "labels")[1].values
        truth = Codes(_positions(truth, known, "y_true"), known)
    if len(truth.values) < 2:
        raise ValueError(
            f"y_true: expected at least two labels, got {truth.values.tolist()} alone; name all "
            "labels in labels= if the others happen not to occur."
        )
    columns = as_columns(sensitive_features, "sensitive_features")
    coded = {name: _encode_attribute(column, name, n_rows) for name, column in columns.items()}
    weight = check_weights(sample_weight, n_rows)
    groups, group = _join_attributes(coded, truth.values, label_name)
    cell = truth.codes * groups.n_groups + group
    mass = np.bincount(cell, weight, minlength=groups.mass.size).reshape(groups.mass.shape)
    empty = tuple(name for column, data in columns.items() for name in _unused(column, data))
    return Rows(replace(groups, mass=mass.astype(np.float64)), truth.codes, group, weight, empty)


def _encode_labels(data: Any, argument: str) -> tuple[str, Codes]:
    columns = as_columns(data, argument)
    if len(columns) != 1:
        raise ValueError(f"{argument}: expected one label per row, got {len(columns)} columns.")
    ((name, column),) = columns.items()
    found = encode(_series(column), argument, unknown=None)
    if len(found.codes) == 0:
        raise ValueError(f"{argument}: expected at least one row, got none.")
    if (found.codes == UNKNOWN).any():
        row = int(np.flatnonzero(found.codes == UNKNOWN)[0])
        raise ValueError(f"{argument}: every row needs a label; row {row} has none (or NaN).")
    return "y" if name.startswith(argument) else name, found


def _encode_attribute(column: Any, name: str, n_rows: int) -> Codes:
    found = encode(_series(column), f"sensitive_features ({name})")
    _check_length(len(found.codes), n_rows, f"sensitive_features ({name})")
    seen = len(np.unique(found.codes[found.codes != UNKNOWN]))
    if seen < 2:
        only = f"the value {found.values.tolist()[0]!r} alone" if seen else "unknown values alone"
        raise ValueError(
            f"sensitive_features ({name}): fairness compares at least two groups, got {only}."
        )
    return found


def _join_attributes(
    coded: dict[str, Codes], labels: NDArray[Any], label_name: str
) -> tuple[Groups, Ints]:
    """The combinations of values that occur, and which one each row has."""
    radix = [len(column.values) + 1 for column in coded.values()]
    # Unknown (-1) becomes the last value of its attribute.
    last = [np.where(c.codes == UNKNOWN, len(c.values), c.codes) for c in coded.values()]
    joint = last[0]
    for codes, size in zip(last[1:], radix[1:], strict=True):
        joint = joint * size + codes
    group, present = pd.factorize(joint, sort=True)
    codes = np.stack(np.unravel_index(present, tuple(radix)), axis=1).astype(np.int64)
    groups = Groups(
        labels=labels,
        attributes=tuple(coded),
        values=tuple(column.values for column in coded.values()),
        codes=np.where(codes == np.asarray(radix) - 1, UNKNOWN, codes),
        mass=np.zeros((len(labels), len(present))),
        label_name=label_name,
    )
    return groups, np.asarray(group, dtype=np.int64)


def _series(column: Any) -> Any:
    """A pandas object as it is, anything else as a series: its hashing beats sorting."""
    if isinstance(column, (pd.Series, pd.Index)):
        return column
    if hasattr(column, "factorize"):  # a bare pandas array
        return pd.Series(column)
    array = as_array(column)
    if array.ndim != 1:
        return array
    # Words stay Python's: turning them into another kind of string would cost a pass.
    return pd.Series(array, dtype=object if array.dtype.kind in "OU" else None)


def _unused(name: str, column: Any) -> list[str]:
    """Values of a categorical column that no row has."""
    if not isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        return []
    series = pd.Series(column)
    unused = series.cat.categories.difference(series.cat.remove_unused_categories().cat.categories)
    return [f"{name}={value}" for value in unused]


def _positions(found: Codes, labels: NDArray[Any], argument: str) -> Ints:
    place = {label: index for index, label in enumerate(labels.tolist())}
    table = np.asarray([place.get(value, UNKNOWN) for value in found.values.tolist()])
    positions: Ints = table[found.codes]
    if (positions == UNKNOWN).any():
        row = int(np.flatnonzero(positions == UNKNOWN)[0])
        stranger = found.values.tolist()[found.codes[row]]
        raise ValueError(
            f"{argument}: row {row} has the label {stranger!r}, which is not "
            f"among the labels {_listed(labels.tolist())}; name all labels in labels= if it is one."
        )
    return positions


def _listed(values: Sequence[Any], most: int = 10) -> str:
    shown = ", ".join(repr(value) for value in values[:most])
    return f"[{shown}]" if len(values) <= most else f"[{shown}, ... {len(values)} in all]"


def _check_length(got: int, expected: int, argument: str) -> None:
    if got != expected:
        raise ValueError(
            f"{argument}: expected one value per row of y_true ({expected}), got {got}."
        )
