"""Labels and sensitive values -> groups, cells, their names and frequencies.

A *group* is a combination of sensitive values, a *cell* a label within a group (or, for measures
that do not look at the label, the group itself). Cells are numbered label by label:
``cell = label_index * n_groups + group_index``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairgrad.columns import UNKNOWN, Codes, as_array, as_columns, encode

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Who is who in a data set: labels, sensitive groups, and how many rows each cell holds.

    Attributes:
        labels: the L label values, sorted.
        attributes: names of the A sensitive attributes.
        values: for each attribute its values, sorted.
        codes: (G, A) the value index of each group in each attribute, -1 where it is unknown.
        mass: (L, G) rows (the sum of their sample weights, if any) of each label in each group.
        label_name: what the label is called in names of cells.

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
    def from_data(cls, y: Any, s: Any, sample_weight: Any = None, *, suffix: str = "") -> Groups:
        """Groups of a data set.

        Args:
            y: one label per row.
            s: one sensitive value per row, or one column per attribute (a matrix, a data frame or
                a mapping of names to columns). Missing values and the integer -1 are unknown.
            sample_weight: one non-negative weight per row.
            suffix: what to add to the arguments' names in errors, such as "_train".

        Raises:
            ValueError: if lengths differ, a label is missing, or weights are not valid.
        """
        label_name, labels = _encode_labels(y, f"y{suffix}")
        columns = {
            name: encode(column, f"s{suffix}" if name == "s" else f"s{suffix} ({name})")
            for name, column in as_columns(s, "s").items()
        }
        for column in columns.values():
            _check_length(len(column.codes), len(labels.codes), f"s{suffix}", f"y{suffix}")
        weight = check_weights(sample_weight, len(labels.codes), suffix)
        radix = [len(column.values) + 1 for column in columns.values()]
        joint = _join([column.codes for column in columns.values()], radix)
        present, group = np.unique(joint, return_inverse=True)
        mass = np.zeros((len(labels.values), len(present)))
        np.add.at(mass, (labels.codes, group), 1.0 if weight is None else weight)
        return cls(
            labels=labels.values,
            attributes=tuple(columns),
            values=tuple(column.values for column in columns.values()),
            codes=_split(present, radix),
            mass=mass,
            label_name=label_name,
        )

    @classmethod
    def from_counts(cls, counts: Mapping[tuple[Hashable, ...], float] | Any) -> Groups:
        """Groups of data too large, or too scattered, to pass as columns.

        Args:
            counts: rows (or the sum of sample weights) of each ``(label, sensitive value, ...)``,
                as a mapping or as what ``frame.groupby(["label", "sex", "race"]).size()`` gives.

        Raises:
            ValueError: if the counts are not such a mapping.

        Example:
            >>> Groups.from_counts({(0, "F"): 30, (0, "M"): 20, (1, "F"): 10, (1, "M"): 40}).mass
            array([[30., 20.],
                   [10., 40.]])
        """
        items = list(counts.items()) if hasattr(counts, "items") else []
        keys = [key if isinstance(key, tuple) else (key,) for key, _ in items]
        if not items or len({len(key) for key in keys}) != 1 or len(keys[0]) < 2:
            raise ValueError(
                "counts: expected a mapping {(label, sensitive value, ...): rows} with keys of one "
                f"length, at least 2; got {counts!r}."
            )
        y, *s = (_plain_array(column) for column in zip(*keys, strict=True))
        names = _index_names(counts, len(s))
        groups = cls.from_data(
            y, dict(zip(names[1:], s, strict=True)), [float(rows) for _, rows in items]
        )
        return replace(groups, label_name=names[0])

    @classmethod
    def merge(cls, parts: Sequence[Groups]) -> Groups:
        """The groups of several shards together.

        Raises:
            ValueError: if the shards have different attributes.
        """
        attributes = {part.attributes for part in parts}
        if len(attributes) != 1:
            raise ValueError(f"shards: expected the same attributes, got {sorted(attributes)}.")
        y = np.concatenate([np.repeat(part.labels, part.n_groups) for part in parts])
        s = {
            name: np.concatenate([np.tile(part.column(a), len(part.labels)) for part in parts])
            for a, name in enumerate(parts[0].attributes)
        }
        merged = cls.from_data(y, s, np.concatenate([part.mass.ravel() for part in parts]))
        return replace(merged, label_name=parts[0].label_name)

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
        """The groups whose attributes are all known: those that measures speak of."""
        keep = self.is_known
        return (
            self if keep.all() else replace(self, codes=self.codes[keep], mass=self.mass[:, keep])
        )

    def marginal(self, *attributes: str) -> Groups:
        """The coarser groups that some of the attributes make."""
        columns = [self._attribute_index(name) for name in attributes]
        parent, present = self._merge(columns)
        mass = np.zeros((len(self.labels), len(present)))
        for own, fine in zip(mass, self.mass, strict=True):
            np.add.at(own, parent, fine)
        return replace(
            self,
            attributes=tuple(attributes),
            values=tuple(self.values[column] for column in columns),
            codes=present,
            mass=mass,
        )

    def parents(self, *attributes: str) -> Ints:
        """(G,) the index of each group's coarser group in ``marginal(*attributes)``."""
        return self._merge([self._attribute_index(name) for name in attributes])[0]

    def _merge(self, columns: list[int]) -> tuple[Ints, Ints]:
        radix = [len(self.values[column]) + 1 for column in columns]
        joint = _join([self.codes[:, column] for column in columns], radix)
        present, parent = np.unique(joint, return_inverse=True)
        return parent, _split(present, radix)

    def _attribute_index(self, name: str) -> int:
        if name not in self.attributes:
            raise ValueError(
                f"attribute: got {name!r}; the sensitive attributes are {list(self.attributes)}."
            )
        return self.attributes.index(name)

    @property
    def takes_integers(self) -> bool:
        """Whether all sensitive values are integers, so that rows can be named by them."""
        return all(values.dtype.kind == "i" for values in self.values)

    @property
    def ids(self) -> Ints:
        """(G, columns) the integers by which a row says to which group it belongs.

        The sensitive values themselves where they are integers (one column per attribute);
        otherwise one column with the group's number, as `encode` gives it, -1 for rows of which
        nothing is known.
        """
        if self.takes_integers:
            return np.stack([self.column(a) for a in range(len(self.attributes))], axis=1)
        nothing_known = (self.codes == UNKNOWN).all(axis=1)
        return np.where(nothing_known, UNKNOWN, np.arange(self.n_groups))[:, None]

    def encode(self, s: Any) -> Ints:
        """Sensitive values of any rows as the integers the losses take.

        Example:
            >>> Groups.from_data([0, 1, 1], ["F", "M", None]).encode(["M", None, "F"])
            array([ 1, -1,  0])
        """
        ids = self.ids[self.group_index(s)]
        return ids[:, 0] if ids.shape[1] == 1 else ids

    def group_index(self, s: Any) -> Ints:
        """(N,) the group of each row; sensitive values as in `from_data`.

        Raises:
            ValueError: if a row's combination of values was never seen.
        """
        columns = as_columns(s, "s")
        if len(columns) != len(self.attributes):
            raise ValueError(
                f"s: expected the attributes {list(self.attributes)}, got {list(columns)}."
            )
        if set(columns) == set(self.attributes):
            columns = {name: columns[name] for name in self.attributes}
        codes = [
            _recode(encode(column, f"s ({name})"), values, f"s ({name})")
            for (name, column), values in zip(columns.items(), self.values, strict=True)
        ]
        radix = [len(values) + 1 for values in self.values]
        known = _join(list(self.codes.T), radix)
        joint = _join(codes, radix)
        order = np.argsort(known)
        place = np.minimum(np.searchsorted(known[order], joint), len(known) - 1)
        group = order[place]
        unseen = known[group] != joint
        if unseen.any():
            row = int(np.flatnonzero(unseen)[0])
            raise ValueError(
                f"s: row {row} has a combination of values that was never seen; the known groups "
                f"are {list(self.names)}."
            )
        return group

    def label_index(self, y: Any) -> Ints:
        """(N,) the index of each row's label.

        Raises:
            ValueError: if a label was never seen.
        """
        return _recode(_encode_labels(y)[1], self.labels, "y")


def check_weights(sample_weight: Any, n_rows: int, suffix: str = "") -> Floats | None:
    """Sample weights as float64, or None; refused if they cannot be weights.

    Raises:
        ValueError: if their number differs, one is negative or not finite, or all are 0.

    Example:
        >>> check_weights([1, 2], 2)
        array([1., 2.])
        >>> check_weights([1, -2], 2)
        Traceback (most recent call last):
            ...
        ValueError: sample_weight: expected finite weights of at least 0 that do not sum to 0; ...
    """
    if sample_weight is None:
        return None
    weight = as_array(sample_weight).astype(np.float64)
    _check_length(
        len(weight) if weight.ndim == 1 else -1, n_rows, f"sample_weight{suffix}", f"y{suffix}"
    )
    if not np.all(np.isfinite(weight) & (weight >= 0)) or not weight.sum() > 0:
        raise ValueError(
            f"sample_weight{suffix}: expected finite weights of at least 0 that do not sum to 0; "
            f"got a minimum of {weight.min()} and a sum of {weight.sum()}."
        )
    return weight


def _encode_labels(y: Any, argument: str = "y") -> tuple[str, Codes]:
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


def _recode(found: Codes, values: NDArray[Any], argument: str) -> Ints:
    """The codes of a column among the values of another one, which must hold them all."""
    place = {value: index for index, value in enumerate(values.tolist())}
    table = [place.get(value, UNKNOWN) for value in found.values.tolist()]
    used = np.unique(found.codes[found.codes != UNKNOWN])
    strangers = [found.values[code] for code in used.tolist() if table[code] == UNKNOWN]
    if strangers:
        raise ValueError(
            f"{argument}: got {str(strangers[0])!r}, which was never seen; the known values are "
            f"{values.tolist()}."
        )
    recoded: Ints = np.append(np.asarray(table, dtype=np.int64), UNKNOWN)[found.codes]
    return recoded


def _join(codes: Sequence[Ints], radix: Sequence[int]) -> Ints:
    """One integer per row that names its combination; unknown counts as the last value."""
    joint = np.zeros(len(codes[0]), dtype=np.int64)
    for column, size in zip(codes, radix, strict=True):
        joint = joint * size + np.where(column == UNKNOWN, size - 1, column)
    return joint


def _split(joint: Ints, radix: Sequence[int]) -> Ints:
    """The inverse of `_join`: (rows, attributes)."""
    codes = np.stack(np.unravel_index(joint, tuple(radix)), axis=1).astype(np.int64)
    return np.where(codes == np.asarray(radix) - 1, UNKNOWN, codes)


def _check_length(got: int, expected: int, argument: str, other: str) -> None:
    if got != expected:
        raise ValueError(
            f"{argument}: expected one value per row of {other} ({expected}), got {got}."
        )


def _plain_array(values: Sequence[Any]) -> NDArray[Any]:
    """Integers as an integer array, anything else as objects, so that None stays None."""
    if all(isinstance(value, (int, np.integer)) for value in values):
        return np.asarray(values, dtype=np.int64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _index_names(counts: Any, n_attributes: int) -> list[str]:
    names = getattr(getattr(counts, "index", None), "names", None)
    if names is not None and all(name is not None for name in names):
        return [str(name) for name in names]
    return ["y", *(["s"] if n_attributes == 1 else [f"s{i}" for i in range(n_attributes)])]
