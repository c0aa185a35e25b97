"""Rows counted by group, true label and predicted label: every figure of an audit rests on this.

So rows can be counted where they are stored (`read_counts` reads such tables), and the counts of
several tables add up.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.audit.intervals import Proportion
from fairgrad.columns import as_columns, as_pandas
from fairgrad.groups import Floats, GroupedRows, Groups, Ints, count_rows, group_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.known import SoftCells

POSITIVES, FALSE_ALARMS = "true_positive_rate", "false_positive_rate"
OVERALL = "overall"
"""Stands for everyone where groups are listed."""


class RowCounts(NamedTuple):
    """What an audit gets instead of sample weights if its rows are those of a table of counts.

    Attributes:
        times: (N,) how many rows each row of the table stands for.
        weight: (N,) the sum of their sample weights; None without weights.
        squares: (N,) the sum of the squared weights; None without weights.
    """

    times: Floats
    weight: Floats | None = None
    squares: Floats | None = None


class ClusterCells(NamedTuple):
    """Rows of clusters, such as several of one person: what their variance rests on.

    Attributes:
        cluster: (N,) the number of each row's cluster.
        group: (N,) the index of its group.
        cell: (N,) its true and predicted label, as ``label * L + predicted``.
        mass: (N,) its weight.
    """

    cluster: Ints
    group: Ints
    cell: Ints
    mass: Floats

    def regrouped(self, index: Ints) -> ClusterCells:
        """The same with the group at each index; without rows whose new group is -1."""
        group = index[self.group]
        kept = group >= 0
        return ClusterCells(self.cluster[kept], group[kept], self.cell[kept], self.mass[kept])

    def sums(self, hit: NDArray[np.bool_], could: NDArray[np.bool_], n_groups: int) -> Any:
        """(3, G) sums over clusters of squares and products, as `Proportion` has them."""
        place, unit = np.unique(
            self.cluster.astype(np.int64) * n_groups + self.group, return_inverse=True
        )
        had, could_have = (
            count_rows(unit, len(place), self.mass * mask.ravel()[self.cell])
            for mask in (hit, could)
        )
        products = (could_have**2, had**2, had * could_have)
        group = place % n_groups
        return np.stack([count_rows(group, n_groups, product) for product in products])


@dataclass(frozen=True, eq=False)
class CountTable:
    """Rows by group, true label and predicted label.

    Attributes:
        groups: who the groups are.
        rows: (G, L, L) number of rows.
        mass: (G, L, L) sum of their sample weights; the same as `rows` without weights.
        squares: (G, L, L) sum of the squared weights; the same as `rows` without weights.
        has_labels: whether true labels are known; if not, they are filled in with the predicted
            ones, and only what looks at predictions alone is computed.
        clusters: rows that are not independent of each other; None if all are.
        others: rows of groups that are not compared, as one group; they count in overall rates.
        soft: how rows of unknown group are counted in the groups; None if they are in none. `rows`
            are those of known group then, and `mass` all rows.
    """

    groups: Groups
    rows: Floats
    mass: Floats
    squares: Floats
    has_labels: bool = True
    clusters: ClusterCells | None = None
    others: CountTable | None = None
    soft: SoftCells | None = None

    @classmethod
    def from_rows(
        cls,
        rows: GroupedRows,
        predicted: Ints,
        *,
        counts: RowCounts | None = None,
        has_labels: bool = True,
        cluster: Ints | None = None,
    ) -> CountTable:
        """Counts rows whose predicted labels are these; with `counts` each stands for many."""
        n_labels, n_groups = rows.groups.mass.shape
        label, group = rows.label.astype(np.int64), rows.group.astype(np.int64)
        cell = (group * n_labels + label) * n_labels + predicted
        weights: list[Floats | None] = [None if counts is None else counts.times]
        if rows.weight is not None:
            weights += [rows.weight, rows.weight**2 if counts is None else counts.squares]
        number, *weighted = (
            count_rows(cell, n_groups * n_labels**2, weight).reshape(n_groups, n_labels, n_labels)
            for weight in weights
        )
        mass, squares = weighted or (number, number)
        units = None
        if cluster is not None:
            weight = np.ones(len(rows)) if rows.weight is None else rows.weight
            units = ClusterCells(cluster, group, label * n_labels + predicted, weight)
        return cls(rows.groups, number, mass, squares, has_labels, units)

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.rows.shape[1])

    @cached_property
    def size(self) -> Floats:
        """(G,) rows of each group."""
        size: Floats = self.rows.sum(axis=(1, 2))
        return size

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return int(self.size.sum())

    def largest(self, most: int) -> list[int]:
        """The indices of the largest groups, by size, at most so many."""
        return (-self.size).argsort(kind="stable")[:most].tolist()  # type: ignore[no-any-return] # indices

    def view(self, *attributes: str, unknown: int = -1) -> CountTable:
        """The table by some of the attributes; rows of unknown value are in no group or in one."""
        return self._regrouped(*coarser(self.groups, attributes, unknown))

    def _regrouped(self, groups: Groups, index: Ints) -> CountTable:
        """The same rows in other groups, at each index; without those at -1."""
        kept, sums = index >= 0, np.zeros((groups.n_groups, 3, *self.rows.shape[1:]))
        np.add.at(sums, index[kept], np.stack([self.rows, self.mass, self.squares], axis=1)[kept])
        rows, mass, squares = np.ascontiguousarray(np.moveaxis(sums, 1, 0))
        clusters = None if self.clusters is None else self.clusters.regrouped(index)
        soft = None if self.soft is None else self.soft.regrouped(index, groups.n_groups)
        if soft is not None:
            squares = soft.squares
            soft = soft if soft.attribute in groups.attributes else None  # known for all rows
        return CountTable(groups, rows, mass, squares, self.has_labels, clusters, soft=soft)

    def take(self, chosen: NDArray[np.bool_]) -> CountTable:
        """The table of some of the groups, (G,)."""
        if chosen.all():
            return self
        codes, mass = self.groups.codes[chosen], self.groups.mass[:, chosen]
        groups = replace(self.groups, codes=codes, mass=mass)
        taken = self._regrouped(groups, np.where(chosen, np.cumsum(chosen) - 1, -1))
        return taken if self.soft is None else replace(taken, soft=self.soft.take(chosen))

    def compared(self, chosen: NDArray[np.bool_]) -> CountTable:
        """The table of the groups to compare, (G,); the others still count in overall rates."""
        left_out = ~chosen & (self.size > 0)
        if not left_out.any():
            return self.take(chosen)
        return replace(self.take(chosen), others=self.take(left_out).together())

    def together(self) -> CountTable:
        """The same rows as one single group, for the overall rates."""
        mass = self.groups.mass.sum(axis=1, keepdims=True)
        whole = replace(self.groups, codes=self.groups.codes[:1], mass=mass)
        return replace(self._regrouped(whole, np.zeros(len(self.rows), dtype=np.int64)), soft=None)

    def shares(self, hit: NDArray[np.bool_], could: NDArray[np.bool_] | None = None) -> Proportion:
        """(R, G) the share of the rows that could have a property, by label, which have it.

        Args:
            hit: (R, L, L) the true (first) and predicted labels that have it.
            could: (R, L, L) those that could have it; by default all true labels of which some do.
        """
        if could is None:
            could = np.broadcast_to(hit.any(axis=-1, keepdims=True), hit.shape)
        masks = [mask.reshape(len(hit), -1).astype(np.float64) for mask in (hit, could)]
        tables = [table.reshape(len(table), -1) for table in (self.mass, self.squares)]
        (hits, total), (hit_squares, squares) = (
            [mask @ table.T for mask in masks] for table in tables
        )
        if self.soft is not None:
            drift = self.soft.drift(hits, total, masks)
            return Proportion(hits, total, squares, hit_squares, hit_squares, *drift)
        if self.clusters is None:
            return Proportion(hits, total, squares, hit_squares, hit_squares)
        sums = [self.clusters.sums(a, b, len(self.rows)) for a, b in zip(hit, could, strict=True)]
        return Proportion(hits, total, *np.stack(sums, axis=1))

    @cached_property
    def rates(self) -> dict[str, Proportion]:
        """The rates of each group: accuracy (G,), all others (L, G), each label against the rest.

        base_rate ``P(y = l)``, selection_rate ``P(h = l)``, true_positive_rate
        ``P(h = l | y = l)``, false_positive_rate ``P(h = l | y != l)``, precision
        ``P(y = l | h = l)``. Without true labels the selection rate alone.
        """
        masks = rate_masks(self.n_labels).items()
        return {
            name: self.shares(*mask).row(0 if name == "accuracy" else -1)
            for name, mask in masks
            if self.has_labels or name == "selection_rate"
        }


@cache
def rate_masks(n_labels: int) -> dict[str, tuple[Any, Any]]:
    """By rate, (L, L, L) the true and predicted labels that have it, and that could have it.

    None for all true labels of which some have it; the accuracy is one rate, (1, L, L).
    """
    single = np.eye(n_labels, dtype=bool)
    everyone = np.ones((n_labels,) * 3, dtype=bool)
    is_true, is_predicted = everyone & single[:, :, None], everyone & single[:, None, :]
    return {
        "accuracy": (single[None], None),
        "base_rate": (is_true, everyone),
        "selection_rate": (is_predicted, None),
        POSITIVES: (is_true & is_predicted, None),
        FALSE_ALARMS: (is_predicted & ~is_true, None),
        "precision": (is_true & is_predicted, is_predicted),
    }


def coarser(groups: Groups, attributes: Sequence[str], unknown: int = -1) -> tuple[Groups, Ints]:
    """The groups that some of the attributes make, and the index of each group's among them.

    Rows of unknown value are left out (-1), or counted in the group `unknown`.
    """
    coarse, parents = groups.merged(*attributes)
    new = np.where(coarse.is_known, np.cumsum(coarse.is_known) - 1, unknown)
    return coarse.known(), new[parents]


def mean_costs(counts: Floats, costs: Floats) -> Floats:
    """(...) the mean cost of predictions, from counts (..., true labels, predicted labels)."""
    mean: Floats = (counts * costs).sum((-2, -1)) / counts.sum((-2, -1))
    return mean


def read_rows(
    y_true: Any, sensitive_features: Any, sample_weight: Any, labels: Any, argument: str
) -> GroupedRows:
    """True labels and sensitive values as integers; of at least two labels.

    Without true labels `y_true` has the predicted ones, and `argument` their name.
    """
    counts = sample_weight if isinstance(sample_weight, RowCounts) else None
    weight = sample_weight if counts is None else counts.weight
    rows = group_rows(
        y_true,
        as_columns(sensitive_features, "sensitive_features"),
        weight if counts is None or weight is not None else counts.times,
        labels=labels,
        arguments=(argument, "sensitive_features", "sample_weight"),
    )
    known = rows.groups.labels.tolist()
    if len(known) < 2:
        raise ValueError(
            f"{argument}: expected at least two labels, got {known} alone; name all labels in "
            "labels= if the others happen not to occur."
        )
    return rows if counts is None else replace(rows, weight=weight)


def predicted_labels(rows: GroupedRows, y_pred: Any, argument: str) -> Ints:
    """(N,) the index of each row's predicted label."""
    try:
        index = rows.groups.label_index(y_pred, argument)
    except ValueError as wrong:
        hint = "If y_true happens not to have some label, name all labels in labels=."
        raise ValueError(f"{wrong} {hint}") from wrong
    if len(index) != len(rows):
        raise ValueError(
            f"{argument}: expected one value per row of y_true ({len(rows)}), got {len(index)}."
        )
    return index


def read_counts(
    counts: Any,
    target: str | None,
    prediction: str,
    sensitive_features: str | Sequence[str],
    further: Mapping[str, str | None],
) -> dict[str, Any]:
    """The arguments of an audit of a table of counts; combinations without rows are left out.

    Args:
        counts: the table.
        target: the column of true labels, if they are known.
        prediction: the column of predicted labels.
        sensitive_features: one column or several.
        further: the columns "count", "weight", "squared_weight" and "baseline".

    Raises:
        TypeError: if it is no frame.
        ValueError: if it cannot be read; the message names the argument.
    """
    names: Any = sensitive_features
    several = list(names) if isinstance(names, (list, tuple, np.ndarray, pd.Index)) else [names]
    lacks = {name for name in ("weight", "squared_weight") if further[name] is None}
    if len(lacks) == 1:
        raise ValueError(
            f"{lacks.pop()}: expected a column; intervals of weighted rows rest on both the sum of "
            "the weights and the sum of their squares."
        )
    frame = as_pandas(counts)
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"counts: expected a frame with one row per combination, got a {type(counts).__name__}."
        )
    if not several:
        raise ValueError("sensitive_features: expected at least one column, got none.")
    columns = [("sensitive_features", name) for name in several]
    columns += [("prediction", prediction), ("target", target), *further.items()]
    for argument, name in columns:
        if name is None and argument in {"target", "weight", "squared_weight", "baseline"}:
            continue
        if not (isinstance(name, Hashable) and name in frame):
            raise ValueError(
                f"{argument}: got {name!r}, which is not a column of counts; the columns "
                f"are {[str(column) for column in frame.columns]}."
            )
    numbers: list[Any] = [
        None if further[name] is None else _numbers(frame[further[name]], name)
        for name in ("count", "weight", "squared_weight")
    ]
    times, weight, squares = numbers
    is_whole = times == np.floor(times)
    if not is_whole.all():
        raise ValueError(
            f"count: expected whole numbers of rows, got {times[~is_whole][0]:g}; sums of weights "
            "go into weight."
        )
    if not times.sum() > 0:
        raise ValueError("count: expected some rows, got none.")
    kept = times > 0
    frame = frame[kept].reset_index(drop=True)
    baseline = further["baseline"]
    weights = (None if array is None else array[kept] for array in (weight, squares))
    return {
        "y_true": None if target is None else frame[target],
        "y_pred": frame[prediction],
        "sensitive_features": {name: frame[name] for name in several},
        "baseline": None if baseline is None else frame[baseline],
        "sample_weight": RowCounts(times[kept], *weights),
    }


def _numbers(column: pd.Series, argument: str) -> Floats:
    numbers: Any = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        raise ValueError(
            f"{argument}: expected numbers of at least 0, got {column[wrong].iloc[0]!r} in "
            f"{column.name!r}."
        )
    return np.asarray(numbers, dtype=np.float64)


def counts_frame(audit: Audit) -> pd.DataFrame:
    """The rows of an audit, counted; in the order of groups, labels and predictions."""
    rows, groups = audit.rows, audit.table.groups
    keys: dict[str, Any] = {"target": rows.label} if audit.has_labels else {}
    keys["prediction"] = audit.predicted
    if audit.baseline is not None:
        keys["baseline"] = audit.baseline.predicted
    sums: dict[str, Any] = {"count": audit.times}
    if rows.weight is not None:
        squares = rows.weight**2 if audit.counts is None else audit.counts.squares
        sums |= {"weight": rows.weight, "squared_weight": squares}
    by = ["group", *keys]
    frame = pd.DataFrame({"group": rows.group, **keys, **sums})
    frame = frame.groupby(by, as_index=False)[list(sums)].sum().astype({"count": np.int64})
    columns: dict[str, Any] = {
        name: groups.column(place)[frame["group"]] for place, name in enumerate(groups.attributes)
    }
    for name in [*keys, *sums]:
        # Without true labels the target is what is predicted.
        free = audit.target if name == ("target" if audit.has_labels else "prediction") else name
        while free in columns:
            free += "_"
        columns[free] = audit.label_values[frame[name]] if name in keys else frame[name]
    return pd.DataFrame(columns)
