"""Labels and sensitive values -> groups, cells, their names and frequencies.

A *group* is a combination of sensitive values, a *cell* a label within a group (or, for measures
that do not look at the label, the group itself). Cells are numbered label by label:
``cell = label_index * n_groups + group_index``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairgrad.checks import check_number
from fairgrad.columns import (
    UNKNOWN,
    Codes,
    as_array,
    as_column,
    as_columns,
    codes_among,
    distinct,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_GROUP = 30
"""Groups with fewer rows are not judged: 29 rows determine a rate to within 20 points only.

This is a number of rows, not a share, because the precision of a rate depends on the rows. A share,
such as the 2 % of New York's Local Law 144, would exclude 20,000 people of a million. The US
National Center for Health Statistics also requires 30 people to publish a proportion.
"""


@dataclass(frozen=True, eq=False)
class Groups:
    """The labels and sensitive groups of a data set, and how many rows each cell has.

    Attributes:
        labels: the L label values, sorted.
        attributes: names of the A sensitive attributes.
        values: for each attribute its values, sorted.
        codes: (G, A) the value index of each group in each attribute, -1 where it is unknown.
        mass: (L, G) rows (or the sum of their sample weights) of each label in each group.
        label_name: the name of the label column, used in the names of cells.

    Example:
        >>> groups = Groups.from_data(
        ...     y=[0, 1, 1, 0], s={"sex": ["F", "F", "M", None], "race": ["W", "B", "W", "W"]}
        ... )
        >>> groups.names
        ('sex=F, race=B', 'sex=F, race=W', 'sex=M, race=W', 'sex=?, race=W')
        >>> groups.mass
        array([[0., 1., 0., 1.],
               [1., 0., 1., 0.]])
        >>> groups.marginal("race").names
        ('race=B', 'race=W')
    """

    labels: NDArray[Any]
    attributes: tuple[str, ...]
    values: tuple[NDArray[Any], ...]
    codes: Ints
    mass: Floats
    label_name: str = "y"

    @classmethod
    def from_data(cls, y: Any, s: Any, sample_weight: Any = None) -> Groups:
        """Builds the groups of a data set.

        Args:
            y: one label per row.
            s: one sensitive value per row, or one column per attribute (a matrix, a data frame or
                a mapping of names to columns). Missing values and the integer -1 are unknown.
            sample_weight: one non-negative weight per row.

        Raises:
            ValueError: if lengths differ, a label is missing, or weights are not valid.
        """
        return group_rows(y, s, sample_weight).groups

    @classmethod
    def from_counts(cls, counts: Mapping[tuple[Hashable, ...], float] | Any) -> Groups:
        """Builds groups from counts, for data that are too large to pass as columns.

        Args:
            counts: rows (or the sum of sample weights) of each ``(label, sensitive value, ...)``,
                as a mapping or as the result of ``frame.groupby(["label", "sex", "race"]).size()``.

        Raises:
            ValueError: if the counts are not such a mapping.
        """
        items = list(counts.items()) if hasattr(counts, "items") else []
        keys = [key if isinstance(key, tuple) else (key,) for key, _ in items]
        if not items or len({len(key) for key in keys}) != 1 or len(keys[0]) < 2:
            raise ValueError(
                "counts: expected a mapping {(label, sensitive value, ...): rows} with keys of one "
                f"length, at least 2; got {counts!r}."
            )
        y, *s = (list(column) for column in zip(*keys, strict=True))
        rows = check_weights([n for _, n in items], len(items), "counts")
        names = getattr(getattr(counts, "index", None), "names", [None])
        if any(name is None for name in names):
            names = ["y", *(["s"] if len(s) == 1 else [f"s{i}" for i in range(len(s))])]
        names = [str(name) for name in names]
        groups = cls.from_data(y, dict(zip(names[1:], s, strict=True)), rows)
        return replace(groups, label_name=names[0])

    @classmethod
    def merge(cls, shards: Sequence[Groups]) -> Groups:
        """Combines the groups of several shards of a data set.

        Raises:
            ValueError: if the shards have different attributes.
        """
        attributes = {shard.attributes for shard in shards}
        if len(attributes) != 1:
            raise ValueError(f"shards: expected the same attributes, got {sorted(attributes)}.")
        y = np.concatenate([np.repeat(shard.labels, shard.n_groups) for shard in shards])
        s = {
            name: np.concatenate([np.tile(shard.column(a), len(shard.labels)) for shard in shards])
            for a, name in enumerate(shards[0].attributes)
        }
        merged = cls.from_data(y, s, np.concatenate([shard.mass.ravel() for shard in shards]))
        return replace(merged, label_name=shards[0].label_name)

    def column(self, attribute: int) -> NDArray[Any]:
        """(G,) the value of each group in an attribute, as `from_data` would read it."""
        values, codes = self.values[attribute], self.codes[:, attribute]
        if values.dtype.kind == "i":
            return np.append(values, UNKNOWN)[codes]
        return np.append(values.astype(object), [None])[codes]

    @property
    def n_groups(self) -> int:
        """G, groups with unknown values included."""
        return len(self.codes)

    @property
    def names(self) -> tuple[str, ...]:
        """A readable name per group: ``"sex=Female, race=White"``; unknown is ``?``."""
        return tuple(
            ", ".join(
                f"{attribute}={values[code] if code != UNKNOWN else '?'}"
                for attribute, values, code in zip(self.attributes, self.values, codes, strict=True)
            )
            for codes in self.codes
        )

    def cell_mass(self, by_label: bool) -> Floats:
        """(K,) rows per cell."""
        return self.mass.ravel() if by_label else self.mass.sum(axis=0)

    def cell_names(self, by_label: bool) -> tuple[str, ...]:
        """(K,) a readable name per cell: ``"y=1, sex=Female"``."""
        if not by_label:
            return self.names
        return tuple(
            f"{self.label_name}={label}, {name}" for label in self.labels for name in self.names
        )

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """(G,) whether every attribute of the group is known."""
        known: NDArray[np.bool_] = (self.codes != UNKNOWN).all(axis=1)
        return known

    def known(self) -> Groups:
        """The groups whose attributes are all known. Measures compare only these."""
        keep = self.is_known
        return replace(self, codes=self.codes[keep], mass=self.mass[:, keep])

    def without_labels(self, dropped: NDArray[np.bool_]) -> Groups:
        """The groups without the rows of some labels, (L,); empty groups are removed."""
        mass = self.mass[~dropped]
        kept = mass.sum(axis=0) > 0
        return replace(
            self, labels=self.labels[~dropped], codes=self.codes[kept], mass=mass[:, kept]
        )

    def marginal(self, *attributes: str) -> Groups:
        """The coarser groups that are formed by some of the attributes."""
        return self.merged(*attributes)[0]

    def parents(self, *attributes: str) -> Ints:
        """(G,) the index of each group's coarser group in ``marginal(*attributes)``."""
        return self.merged(*attributes)[1]

    def merged(self, *attributes: str) -> tuple[Groups, Ints]:
        """The coarser groups that are formed by some of the attributes, and `parents`.

        Raises:
            ValueError: if there is no such attribute.
        """
        for name in attributes:
            if name not in self.attributes:
                raise ValueError(
                    f"attribute: got {name!r}; the sensitive attributes are "
                    f"{list(self.attributes)}."
                )
        columns = [self.attributes.index(name) for name in attributes]
        codes, values = self.codes[:, columns], tuple(self.values[column] for column in columns)
        _, first, parent = np.unique(_join(codes.T, values), return_index=True, return_inverse=True)
        mass = count_rows(parent, len(first), self.mass)
        merged = replace(self, attributes=attributes, values=values, codes=codes[first], mass=mass)
        return merged, parent

    @property
    def takes_integers(self) -> bool:
        """Whether all sensitive values are integers, so that the losses can take them directly."""
        return all(values.dtype.kind == "i" for values in self.values)

    @property
    def ids(self) -> Ints:
        """(G, columns) the integers that identify a row's group in the losses.

        The sensitive values themselves where they are integers (one column per attribute);
        otherwise one column with the group's number, as `encode` returns it, or -1 if no attribute
        is known.
        """
        if self.takes_integers:
            return np.stack([self.column(a) for a in range(len(self.attributes))], axis=1)
        nothing_known = (self.codes == UNKNOWN).all(axis=1)
        return np.where(nothing_known, UNKNOWN, np.arange(self.n_groups))[:, None]

    def encode(self, s: Any) -> Ints:
        """Converts the sensitive values of any rows to the integers that the losses take."""
        ids = self.ids[self.group_index(s)]
        return ids[:, 0] if ids.shape[1] == 1 else ids

    def group_index(self, s: Any) -> Ints:
        """(N,) the group of each row; sensitive values as in `from_data`.

        Raises:
            ValueError: if a row's combination of values does not occur in these groups.
        """
        group = self._look_up(s, "s", warns=False)
        if (group == UNKNOWN).any():
            raise ValueError(
                f"s: row {int(np.argmin(group))} has an unknown combination of values; "
                f"the known groups are {list(self.names)}."
            )
        return group

    def find_groups(self, s: Any, argument: str = "s") -> Ints:
        """(N,) the group of each row, or -1 if it is unknown.

        The group is unknown if a value is missing or the combination of values is new. A new value
        counts as missing, with a warning.

        Args:
            s: sensitive values as in `from_data`.
            argument: the argument's name in messages.

        Raises:
            ValueError: if the attributes differ.
        """
        group = self._look_up(s, argument, warns=True)
        return np.where((group >= 0) & self.is_known[group], group, UNKNOWN)

    def _look_up(self, s: Any, argument: str, *, warns: bool) -> Ints:
        """(N,) the group of each row, -1 for combinations of values that do not occur.

        A new value is an error or, if `warns`, counts as missing.
        """
        columns = as_columns(s, argument)
        if len(columns) != len(self.attributes):
            raise ValueError(
                f"{argument}: expected the attributes {list(self.attributes)}, got {list(columns)}."
            )
        if set(columns) == set(self.attributes):
            columns = {name: columns[name] for name in self.attributes}
        codes = []
        for (name, column), values in zip(columns.items(), self.values, strict=True):
            title = f"{argument} ({name})"
            names = (argument, name) if warns else (title,)
            codes.append(codes_among(encode(column, title), values, *names))
        known, joint = _join(self.codes.T, self.values), _join(codes, self.values)
        order = np.argsort(known)
        group = order[np.minimum(np.searchsorted(known[order], joint), len(known) - 1)]
        return np.where(known[group] == joint, group, UNKNOWN)

    def place(self, y: Any, s: Any, sample_weight: Any = None) -> GroupedRows:
        """Assigns other rows, such as test rows, to these labels and groups.

        The result has the frequencies of the new rows.

        Raises:
            ValueError: if a label or a combination of sensitive values is unknown.
        """
        label, group = self.label_index(y), self.group_index(s)
        _check_length(len(group), len(label), "s", "y")
        weight = check_weights(sample_weight, len(label))
        return GroupedRows(self, label, group, weight).take(slice(None))

    def label_index(self, y: Any, argument: str = "y") -> Ints:
        """(N,) the index of each row's label; `argument` is the argument's name in errors.

        Raises:
            ValueError: if a label is unknown.
        """
        return codes_among(encode_labels(y, argument)[1], self.labels, argument)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The rows of a data set as integers: the label and the group of each row.

    Attributes:
        groups: the labels and groups, with the frequencies of these rows.
        label: (N,) the index of each row's label in ``groups.labels``.
        group: (N,) the index of each row's group.
        weight: (N,) sample weights, or None.
    """

    groups: Groups
    label: Ints
    group: Ints
    weight: Floats | None = None

    def __len__(self) -> int:
        return len(self.label)

    def cell(self, by_label: bool = True) -> Ints:
        """(N,) the cell of each row: ``label * n_groups + group``, or the group alone."""
        return self.label * self.groups.n_groups + self.group if by_label else self.group

    def sensitive_values(self) -> dict[str, NDArray[Any]]:
        """(N,) the sensitive values by attribute, as `Groups.from_data` would read them."""
        attributes = self.groups.attributes
        return {name: self.groups.column(a)[self.group] for a, name in enumerate(attributes)}

    def take(self, rows: Any) -> GroupedRows:
        """Selects rows by their numbers; the result has the frequencies of the selected rows."""
        weight = None if self.weight is None else self.weight[rows]
        chosen = GroupedRows(self.groups, self.label[rows], self.group[rows], weight)
        mass = count_rows(chosen.cell(), self.groups.mass.size, weight)
        mass = mass.reshape(self.groups.mass.shape)
        return replace(chosen, groups=replace(self.groups, mass=mass))


def group_rows(
    y: Any,
    s: Any,
    sample_weight: Any = None,
    *,
    labels: Any = None,
    arguments: tuple[str, str, str] = ("y", "s", "sample_weight"),
) -> GroupedRows:
    """Reads labels, sensitive values and weights, and assigns rows to groups.

    Args:
        y: one label per row.
        s: one sensitive value per row, or one column per attribute (a matrix, a data frame or a
            mapping of names to columns). Missing values and the integer -1 are unknown.
        sample_weight: one non-negative weight per row.
        labels: all possible labels, if some may have no rows; by default those of y.
        arguments: names of y, s and sample_weight in errors.

    Raises:
        ValueError: if lengths differ, a label is missing or not among `labels`, or weights are not
            valid.

    Example:
        >>> group_rows([0, 1, 1], ["F", "M", None]).groups.names
        ('s=F', 's=M', 's=?')
    """
    y_name, s_name, weight_name = arguments
    label_name, encoded = encode_labels(y, y_name)
    if labels is not None:
        known = encode_labels(labels, "labels")[1].values
        encoded = Codes(codes_among(encoded, known, y_name), known)
    n_rows = len(encoded.codes)
    columns = {
        name: encode(column, s_name if name == "s" else f"{s_name} ({name})")
        for name, column in as_columns(s, "s").items()
    }
    for column in columns.values():
        _check_length(len(column.codes), n_rows, s_name, y_name)
    weight = check_weights(sample_weight, n_rows, weight_name, y_name)
    values = tuple(column.values for column in columns.values())
    joint = _join([column.codes for column in columns.values()], values)
    present, group = distinct(joint)
    row = np.zeros(len(present), dtype=np.int64)
    row[group] = np.arange(n_rows)  # one of each group
    n_labels, n_groups = len(encoded.values), len(present)
    mass = count_rows(encoded.codes * n_groups + group, n_labels * n_groups, weight)
    groups = Groups(
        labels=encoded.values,
        attributes=tuple(columns),
        values=values,
        codes=np.stack([column.codes[row] for column in columns.values()], axis=1),
        mass=mass.reshape(n_labels, n_groups),
        label_name=label_name,
    )
    return GroupedRows(groups, encoded.codes, group, weight)


def count_rows(place: Any, size: int, weight: Any = None) -> Any:
    """(..., size) counts the rows of each cell, or sums their weights.

    Args:
        place: (N,) the number of each row's cell (or outcome, or group), from 0 to size - 1, as an
            array or a tensor.
        size: the number of cells.
        weight: (..., N) of the rows; required for tensors.
    """
    if not isinstance(place, np.ndarray):
        return weight.new_zeros(*weight.shape[:-1], size).index_add(-1, place, weight)
    if np.ndim(weight) < 2:
        return np.bincount(place, weight, minlength=size).astype(np.float64, copy=False)
    shape = weight.shape[:-1]
    sums_apart = place + size * np.arange(math.prod(shape))[:, None]
    sums = np.bincount(sums_apart.ravel(), weight.ravel(), minlength=size * len(sums_apart))
    return sums.astype(np.float64, copy=False).reshape(*shape, size)


def numbered(names: Iterable[str]) -> list[str]:
    """Names told apart: the second and later ones of a name have their number in brackets."""
    times: Counter[str] = Counter()
    distinct_names = []
    for name in names:
        times[name] += 1
        distinct_names.append(name if times[name] == 1 else f"{name} ({times[name]})")
    return distinct_names


def judged_groups(rows: Any, min_group: float = MIN_GROUP) -> NDArray[np.bool_]:
    """(G,) which groups have enough rows to be constrained and judged.

    The others are shown with their counts but not compared. If fewer than two groups have enough
    rows, all groups are compared.

    Args:
        rows: (G,) how many rows each group has (rows, not the sum of their weights).
        min_group: the least number of rows; below 1 a share of all rows, such as 0.02.

    Raises:
        ValueError: if `min_group` is not a number of at least 0.

    Example:
        >>> judged_groups([500, 40, 7])
        array([ True,  True, False])
        >>> judged_groups([500, 40, 7], min_group=0.1)  # 10 % of the rows: one group alone
        array([ True,  True,  True])
    """
    size = as_array(rows).astype(np.float64)
    enough = size >= least_rows(size.sum(), min_group)
    present = enough & (size > 0)
    return enough if present.sum() > 1 else np.ones(len(size), dtype=bool)


def least_rows(n_rows: float, min_group: float = MIN_GROUP) -> int:
    """The number of rows that `min_group` requires of a group in a table of `n_rows` rows.

    Raises:
        ValueError: if `min_group` is not a number of at least 0.
    """
    check_number("min_group", min_group)
    return int(np.ceil(min_group * n_rows if min_group < 1 else min_group))


def check_weights(
    sample_weight: Any, n_rows: int, argument: str = "sample_weight", other: str = "y"
) -> Floats | None:
    """Checks sample weights and converts them to float64; None stays None.

    Raises:
        ValueError: if their number differs, one is negative or not finite, or all are 0.
    """
    if sample_weight is None:
        return None
    try:
        weights = as_array(as_column(sample_weight))
        if np.iscomplexobj(weights):
            raise TypeError("complex numbers")  # noqa: TRY301 - NumPy only warns of the lost part
        weight = weights.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as wrong:
        raise ValueError(
            f"{argument}: expected numbers, one per row; got {sample_weight!r}."
        ) from wrong
    _check_length(len(weight) if weight.ndim == 1 else -1, n_rows, argument, other)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(weight.sum())
    if not np.all(np.isfinite(weight) & (weight >= 0)) or not 0 < total < np.inf:
        raise ValueError(
            f"{argument}: expected finite weights of at least 0 that do not sum to zero; "
            f"got a minimum of {weight.min(initial=np.inf)} and a sum of {total}."
        )
    return weight


def encode_labels(y: Any, argument: str = "y") -> tuple[str, Codes]:
    """The name of the labels, and their codes; refuses rows without a label, and mixed kinds."""
    columns = as_columns(y, "y")
    if len(columns) != 1:
        raise ValueError(f"{argument}: expected one label per row, got {len(columns)} columns.")
    ((name, column),) = columns.items()
    labels = encode(column, argument, unknown=None)
    if len(labels.codes) == 0:
        raise ValueError(f"{argument}: expected at least one row, got none.")
    if (labels.codes == UNKNOWN).any():
        row = int(np.flatnonzero(labels.codes == UNKNOWN)[0])
        raise ValueError(f"{argument}: every row needs a label; row {row} has none.")
    return name, labels


def check_labels(y: NDArray[Any]) -> NDArray[Any]:
    """The classes of labels to learn; refuses continuous values, mixed kinds and a single class."""
    if y.dtype == object:
        encode_labels(y)
    fractions = y[np.isfinite(y) & (np.mod(y, 1.0) != 0)] if y.dtype.kind == "f" else y[:0]
    if len(fractions):
        raise ValueError(
            f"y: Unknown label type: continuous values such as {fractions[0]:g}. Bin them into "
            "classes."
        )
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {classes.tolist()}.")
    return classes


def _join(codes: Iterable[Ints], values: Iterable[NDArray[Any]]) -> Ints:
    """One integer per combination of codes of these values; unknown counts as the last value."""
    radix = [len(known) + 1 for known in values]
    if math.prod(radix) > np.iinfo(np.int64).max:
        raise ValueError(
            f"sensitive_features: {len(radix)} attributes with {radix} values have more "
            "combinations than can be numbered. Use fewer attributes, or merge values."
        )
    joint = np.zeros(1, dtype=np.int64)
    for column, size in zip(codes, radix, strict=True):
        joint = joint * size + np.where(column == UNKNOWN, size - 1, column)
    return joint


def _check_length(got: int, expected: int, argument: str, other: str) -> None:
    if got != expected:
        raise ValueError(
            f"{argument}: expected one value per row of {other} ({expected}), got {got}."
        )
