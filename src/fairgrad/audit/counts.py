"""Rows counted by group, true label and predicted label: every figure of an audit rests on this.

An audit needs no more of its rows than how many have which sensitive values, label and prediction.
So rows can be counted where they are stored (`CountColumns` reads such tables), and the counts of
several tables add up.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from fairgrad.audit.intervals import Proportion, impact_ratios, largest_difference, smallest_ratio
from fairgrad.columns import as_columns, as_pandas
from fairgrad.groups import Floats, GroupedRows, Groups, Ints, group_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit

POSITIVES, FALSE_ALARMS = "true_positive_rate", "false_positive_rate"
GAP_RATES = {
    "demographic_parity": ("selection_rate",),
    "equalized_odds": (POSITIVES, FALSE_ALARMS),
    "equal_opportunity": (POSITIVES,),
    "accuracy": ("accuracy",),
}
"""Each family of named differences and ratios, and the rates whose worst gap it reports."""


OVERALL = "overall"
"""Stands for everyone where groups are listed."""
Columns: TypeAlias = tuple["pd.Series | None", pd.Series, dict[str, pd.Series]]
"""True labels (None if they are not known), predictions and sensitive columns."""
NEED_ROWS = ("sample_weight", "y_score", "cluster")
"""Options of an audit that speak of single rows, which a table of counts does not have."""


@dataclass(frozen=True, eq=False)
class CountedRows(GroupedRows):
    """Rows of a table of counts.

    Attributes:
        times: (N,) how many rows each stands for.
        squares: (N,) the sum of their squared weights; None without weights. `weight` is the sum.
    """

    times: Floats = field(default_factory=lambda: np.zeros(0))
    squares: Floats | None = None


def how_many(rows: GroupedRows, chosen: NDArray[np.bool_] | None = None) -> Floats:
    """How many rows each row, or each of those chosen, stands for."""
    times = rows.times if isinstance(rows, CountedRows) else np.ones(len(rows))
    return times if chosen is None else times[chosen]


class RowCounts(NamedTuple):
    """What an audit gets in place of sample weights if its rows are those of a table of counts.

    Attributes:
        times: (N,) how many rows each row of the table stands for.
        weight: (N,) the sum of their sample weights; None without weights.
        squares: (N,) the sum of the squared weights; None without weights.
    """

    times: Floats
    weight: Floats | None = None
    squares: Floats | None = None

    @property
    def mass(self) -> Floats:
        """(N,) what the frequencies of groups are counted by."""
        return self.times if self.weight is None else self.weight

    def of(self, rows: GroupedRows) -> CountedRows:
        """The rows, each as many as it stands for."""
        return CountedRows(
            rows.groups, rows.label, rows.group, self.weight, self.times, self.squares
        )


class Margins(NamedTuple):
    """Sums of a (G, L, L) table: all rows (G,), and by true, predicted, rightly predicted label."""

    total: Floats
    truth: Floats
    predicted: Floats
    hit: Floats


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
            np.bincount(unit, self.mass * mask.ravel()[self.cell], minlength=len(place))
            for mask in (hit, could)
        )
        products = (could_have**2, had**2, had * could_have)
        group = place % n_groups
        return np.stack([np.bincount(group, part, minlength=n_groups) for part in products])


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
    """

    groups: Groups
    rows: Floats
    mass: Floats
    squares: Floats
    has_labels: bool = True
    clusters: ClusterCells | None = None
    others: CountTable | None = None

    @classmethod
    def from_rows(
        cls,
        rows: GroupedRows,
        predicted: Ints,
        *,
        has_labels: bool = True,
        cluster: Ints | None = None,
    ) -> CountTable:
        """Counts rows whose predicted labels are these; of `CountedRows` each stands for many."""
        n_labels, n_groups = rows.groups.mass.shape
        label, group = rows.label.astype(np.int64), rows.group.astype(np.int64)
        cell = (group * n_labels + label) * n_labels + predicted

        def count(weight: Floats | None) -> Floats:
            counts = np.bincount(cell, weight, minlength=n_groups * n_labels**2)
            return counts.reshape(n_groups, n_labels, n_labels).astype(np.float64)

        number = count(rows.times if isinstance(rows, CountedRows) else None)
        units = None
        if cluster is not None:
            mass = np.ones(len(rows)) if rows.weight is None else rows.weight
            units = ClusterCells(cluster, group, label * n_labels + predicted, mass)
        if rows.weight is None:
            return cls(rows.groups, number, number, number, has_labels, units)
        squares = rows.squares if isinstance(rows, CountedRows) else rows.weight**2
        return cls(rows.groups, number, count(rows.weight), count(squares), has_labels, units)

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

    def view(self, *attributes: str) -> CountTable:
        """The table by some of the attributes, without the rows of unknown value."""
        parts = (self.rows, self.mass, self.squares)
        groups, rows, mass, squares = merged(self.groups, attributes, *parts)
        is_known = self.groups.marginal(*attributes).is_known
        new = np.where(is_known, np.cumsum(is_known) - 1, -1)
        units = self._regrouped(new[self.groups.parents(*attributes)])
        return CountTable(groups, rows, mass, squares, self.has_labels, units)

    def take(self, chosen: NDArray[np.bool_]) -> CountTable:
        """The table of some of the groups, (G,)."""
        if chosen.all():
            return self
        own = replace(
            self.groups, codes=self.groups.codes[chosen], mass=self.groups.mass[:, chosen]
        )
        rows, mass, squares = (part[chosen] for part in (self.rows, self.mass, self.squares))
        units = self._regrouped(np.where(chosen, np.cumsum(chosen) - 1, -1))
        return CountTable(own, rows, mass, squares, self.has_labels, units)

    def compared(self, chosen: NDArray[np.bool_]) -> CountTable:
        """The table of the groups to compare, (G,); the others still count in overall rates."""
        rest = ~chosen & (self.size > 0)
        if not rest.any():
            return self.take(chosen)
        return replace(self.take(chosen), others=self.take(rest).together())

    def together(self) -> CountTable:
        """The same rows as one single group, for the overall rates."""
        mass = self.groups.mass.sum(axis=1, keepdims=True)
        one = replace(self.groups, codes=self.groups.codes[:1], mass=mass)
        parts = (self.rows, self.mass, self.squares)
        rows, mass, squares = (part.sum(axis=0, keepdims=True) for part in parts)
        units = self._regrouped(np.zeros(len(self.rows), dtype=np.int64))
        return CountTable(one, rows, mass, squares, self.has_labels, units)

    def _regrouped(self, index: Ints) -> ClusterCells | None:
        return None if self.clusters is None else self.clusters.regrouped(index)

    def proportion(self, hit: NDArray[np.bool_], could: NDArray[np.bool_]) -> Proportion:
        """(R, G) the share of the rows that could have a property, by label, which have it.

        Args:
            hit: (R, L, L) the true (first) and predicted labels that have it.
            could: (R, L, L) those that could have it.
        """
        masks = [mask.reshape(len(hit), -1).astype(np.float64) for mask in (hit, could)]
        tables = [table.reshape(len(table), -1) for table in (self.mass, self.squares)]
        (hits, total), (hit_squares, squares) = (
            [mask @ table.T for mask in masks] for table in tables
        )
        if self.clusters is None:
            return Proportion(hits, total, squares, hit_squares, hit_squares)
        found = [self.clusters.sums(a, b, len(self.rows)) for a, b in zip(hit, could, strict=True)]
        return Proportion(hits, total, *np.stack(found, axis=1))

    @cached_property
    def rates(self) -> dict[str, Proportion]:
        """The rates of each group: accuracy (G,), all others (L, G), each label against the rest.

        base_rate ``P(y = l)``, selection_rate ``P(h = l)``, true_positive_rate
        ``P(h = l | y = l)``, false_positive_rate ``P(h = l | y != l)``, precision
        ``P(y = l | h = l)``. Without true labels the selection rate alone.
        """
        one = np.eye(self.n_labels, dtype=bool)
        everyone = np.ones((self.n_labels,) * 3, dtype=bool)
        is_true, is_predicted = everyone & one[:, :, None], everyone & one[:, None, :]
        selected = self.proportion(is_predicted, everyone)
        if not self.has_labels:
            return {"selection_rate": selected}
        right = is_true & is_predicted
        return {
            "accuracy": self.proportion(one[None], everyone[:1]).row(0),
            "base_rate": self.proportion(is_true, everyone),
            "selection_rate": selected,
            POSITIVES: self.proportion(right, is_true),
            FALSE_ALARMS: self.proportion(is_predicted & ~is_true, ~is_true),
            "precision": self.proportion(right, is_predicted),
        }


class ModelCounts(NamedTuple):
    """Rows by model, group, true label and predicted label: predictions of M models for them.

    Attributes:
        groups: who the groups are.
        parts: as in `CountTable`: rows, masses and squares, each (M, G, L, L).
    """

    groups: Groups
    parts: tuple[Floats, ...]

    @classmethod
    def from_rows(cls, rows: GroupedRows, predicted: Ints) -> ModelCounts:
        """Counts rows whose predicted labels are these, (M, N)."""
        n_models, groups = len(predicted), rows.groups
        first = np.arange(n_models)[:, None] * groups.n_groups
        every = GroupedRows(
            replace(groups, mass=np.tile(groups.mass, n_models)),
            np.tile(rows.label, n_models),
            (first + rows.group).ravel(),
            None if rows.weight is None else np.tile(rows.weight, n_models),
        )
        found = CountTable.from_rows(every, predicted.ravel())
        shape = (n_models, groups.n_groups, *found.rows.shape[1:])
        parts = (part.reshape(shape) for part in (found.rows, found.mass, found.squares))
        return cls(groups, tuple(parts))

    def view(self, *attributes: str, among: Groups) -> CountTable:
        """As `CountTable.view`, with the groups of all models, one model after the other.

        Args:
            attributes: that make the groups.
            among: of these groups only those here, which are judged.
        """
        by_group = (part.swapaxes(0, 1) for part in self.parts)
        groups, *found = merged(self.groups, attributes, *by_group)
        wanted = {tuple(codes) for codes in among.codes.tolist()}
        kept = np.array([tuple(codes) in wanted for codes in groups.codes.tolist()])
        shape = (-1, *self.parts[0].shape[2:])
        rows, mass, squares = (part[kept].swapaxes(0, 1).reshape(shape) for part in found)
        return CountTable(among, rows, mass, squares)

    def together(self) -> CountTable:
        """All rows of each model as one group."""
        rows, mass, squares = (part.sum(axis=1) for part in self.parts)
        return CountTable(self.groups, rows, mass, squares)


def merged(groups: Groups, attributes: Sequence[str], *fine: Floats) -> tuple[Any, ...]:
    """The groups that some of the attributes make, and sums of (G, ...) tables over them.

    Rows of unknown value are left out.
    """
    coarse, parent = groups.marginal(*attributes), groups.parents(*attributes)
    found = []
    for table in fine:
        sums = np.zeros((coarse.n_groups, *table.shape[1:]))
        np.add.at(sums, parent, table)
        found.append(sums[coarse.is_known])
    return coarse.known(), *found


def mean_costs(counts: Floats, costs: Floats) -> Floats:
    """(...) the mean cost of predictions, from counts (..., true labels, predicted labels)."""
    mean: Floats = (counts * costs).sum((-2, -1)) / counts.sum((-2, -1))
    return mean


def margins(table: Floats) -> Margins:
    """Sums of a (G, L, L) table; all but the first are (L, G)."""
    return Margins(
        total=table.sum(axis=(1, 2)),
        truth=table.sum(axis=2).T,
        predicted=table.sum(axis=1).T,
        hit=np.diagonal(table, axis1=1, axis2=2).T,
    )


def read_rows(
    y_true: Any, sensitive_features: Any, sample_weight: Any, labels: Any, argument: str = "y_true"
) -> GroupedRows:
    """True labels and sensitive values as integers; of at least two labels.

    Without true labels `y_true` are the predicted ones, and `argument` says so.
    """
    counts = sample_weight if isinstance(sample_weight, RowCounts) else None
    rows = group_rows(
        y_true,
        as_columns(sensitive_features, "sensitive_features"),
        sample_weight if counts is None else counts.mass,
        labels=labels,
        arguments=(argument, "sensitive_features", "sample_weight"),
    )
    known = rows.groups.labels.tolist()
    if len(known) < 2:
        raise ValueError(
            f"{argument}: expected at least two labels, got {known} alone; name all labels in "
            "labels= if the others happen not to occur."
        )
    return rows if counts is None else counts.of(rows)


def predicted_labels(rows: GroupedRows, y_pred: Any, argument: str, *, n_models: int = 1) -> Ints:
    """(N,) the index of each row's predicted label; of several models one after the other."""
    try:
        index = rows.groups.label_index(y_pred, argument)
    except ValueError as wrong:
        hint = "If y_true happens not to have some label, name all labels in labels=."
        raise ValueError(f"{wrong} {hint}") from wrong
    if len(index) != n_models * len(rows):
        raise ValueError(
            f"{argument}: expected one value per row of y_true ({len(rows)}), got {len(index)}."
        )
    return index


class GroupGap(NamedTuple):
    """A difference or ratio between groups that is known by name, with its interval.

    Groups are compared with each other (largest less smallest, smallest over largest), where levels
    compare each group with everyone: the two never agree, and should not be mixed.

    Attributes:
        name: as fairlearn calls it.
        label: index of the label it treats as positive, -1 for none.
        value: NaN if fewer than two groups have the rate.
        low: lower end of the interval.
        high: upper end.
        judged: its value among the groups that have enough rows to be judged.
    """

    name: str
    label: int
    value: float
    low: float
    high: float
    judged: float = float("nan")


def group_gaps(table: CountTable, labels: Sequence[int], alpha: float) -> list[GroupGap]:
    """All named differences and ratios, for each of these labels as the positive one."""
    found = []
    for family, names in GAP_RATES.items():
        if not table.rates.keys() >= set(names):  # needs true labels
            continue
        for label in [-1] if family == "accuracy" else labels:
            rows = [table.rates[name].row(label) for name in names]
            found += _worst_gaps(family, label, rows, alpha)
    return found


def _worst_gaps(family: str, label: int, rows: list[Proportion], alpha: float) -> list[GroupGap]:
    """The worst difference and the worst ratio over the rates of a family."""
    rows = [row for row in rows if (row.total > 0).sum() > 1]
    values = [row.value[row.total > 0] for row in rows]
    differences = [float(value.max() - value.min()) for value in values]
    # 0 / 0 says nothing: where nobody has the rate the ratio is not defined.
    rated = [row for row, value in zip(rows, values, strict=True) if value.max() > 0]
    ratios = [float(impact_ratios(value).min()) for value in values if value.max() > 0]
    unknown = float("nan"), 0.0, 1.0
    difference = (
        (max(differences), *map(float, largest_difference(rows, alpha / 2))) if rows else unknown
    )
    ratio = (min(ratios), *map(float, smallest_ratio(rated, alpha / 2))) if rated else unknown
    return [
        GroupGap(f"{family}_difference", label, *difference),
        GroupGap(f"{family}_ratio", label, *ratio),
    ]


@dataclass(frozen=True)
class CountColumns:
    """Which column of a table of counts plays which part; see `Audit.from_counts`."""

    target: str | None
    prediction: str
    sensitive: str | Sequence[str]
    count: str = "count"
    weight: str | None = None
    squared_weight: str | None = None
    baseline: str | None = None

    def read(
        self, counts: Any, options: Mapping[str, Any]
    ) -> tuple[Columns, pd.Series | None, RowCounts]:
        """The columns of an audit, the baseline and the counts; combinations without rows go.

        Raises:
            TypeError: if it is no frame.
            ValueError: if it cannot be read; the message names the argument.
        """
        unfit = [name for name in NEED_ROWS if options.get(name) is not None]
        if unfit:
            raise ValueError(f"{unfit[0]}: it speaks of single rows; counts have none.")
        if (self.weight is None) != (self.squared_weight is None):
            given, lacks = ("weight", "squared_weight")[:: 1 if self.weight else -1]
            raise ValueError(
                f"{lacks}: expected a column, as {given} names one; intervals of weighted rows "
                "rest on both the sum of the weights and the sum of their squares."
            )
        frame = self._frame(counts)
        times = _numbers(frame[self.count], "count")
        if (times != np.floor(times)).any():
            raise ValueError(
                "count: expected whole numbers of rows, got "
                f"{times[times != np.floor(times)][0]:g}; sums of weights go into weight."
            )
        if not times.sum() > 0:
            raise ValueError("count: expected some rows, got none.")
        kept = times > 0
        frame, times = frame[kept].reset_index(drop=True), times[kept]
        weights = [
            None if name is None else _numbers(frame[name], argument)
            for name, argument in (
                (self.weight, "weight"),
                (self.squared_weight, "squared_weight"),
            )
        ]
        sensitive = {name: frame[name] for name in self._sensitive}
        truth = None if self.target is None else frame[self.target]
        baseline = None if self.baseline is None else frame[self.baseline]
        columns = truth, frame[self.prediction], sensitive
        return columns, baseline, RowCounts(times, *weights)

    @property
    def _sensitive(self) -> list[str]:
        given: Any = self.sensitive
        return list(given) if isinstance(given, (list, tuple, np.ndarray, pd.Index)) else [given]

    def _frame(self, counts: Any) -> pd.DataFrame:
        frame = as_pandas(counts)
        if not isinstance(frame, pd.DataFrame):
            raise TypeError(
                f"counts: expected a frame with one row per combination, got a "
                f"{type(counts).__name__}."
            )
        if not self._sensitive:
            raise ValueError("sensitive_features: expected at least one column, got none.")
        wanted: dict[str, Sequence[str | None]] = {
            "target": [self.target],
            "prediction": [self.prediction],
            "sensitive_features": self._sensitive,
            "count": [self.count],
            "weight": [self.weight],
            "squared_weight": [self.squared_weight],
            "baseline": [self.baseline],
        }
        for argument, names in wanted.items():
            may_lack = argument not in {"prediction", "sensitive_features", "count"}
            asked = [name for name in names if not (may_lack and name is None)]
            lacking = [
                name for name in asked if not isinstance(name, Hashable) or name not in frame
            ]
            if lacking:
                raise ValueError(
                    f"{argument}: got {lacking[0]!r}, which is not a column of counts; the columns "
                    f"are {[str(name) for name in frame.columns]}."
                )
        return frame


def _numbers(column: pd.Series, argument: str) -> Floats:
    numbers: Any = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        raise ValueError(
            f"{argument}: expected numbers of at least 0, got {column[wrong].iloc[0]!r} in "
            f"{column.name!r}."
        )
    return np.asarray(numbers, dtype=np.float64)


def count_columns(audit: Audit) -> CountColumns:
    """What the columns of `counts_frame` are called."""
    taken = [*audit.attributes, audit.target]
    names: dict[str, Any] = {}
    for name in ("prediction", "baseline", "count", "weight", "squared_weight"):
        free = name
        while free in taken:
            free += "_"
        names[name] = free
        taken.append(free)
    names["target"] = audit.target + "_" * (audit.target in audit.attributes)
    if not audit.has_labels:  # what is predicted is then named after the predictions
        names |= {"target": None, "prediction": names["target"]}
    if not audit.is_weighted:
        names |= dict.fromkeys(("weight", "squared_weight"))
    if audit.baseline is None:
        names |= {"baseline": None}
    return CountColumns(**names, sensitive=audit.attributes)


def counts_frame(audit: Audit) -> pd.DataFrame:
    """The rows of an audit, counted; in the order of groups, labels and predictions."""
    rows, groups, given = audit.rows, audit.table.groups, count_columns(audit)
    keys = {"group": rows.group, "predicted": audit.predicted}
    if audit.has_labels:
        keys = {"group": rows.group, "label": rows.label, "predicted": audit.predicted}
    if audit.baseline is not None:
        keys["baseline"] = audit.baseline.predicted
    sums = {"count": how_many(rows)}
    if rows.weight is not None:
        squares = rows.squares if isinstance(rows, CountedRows) else None
        sums |= {"weight": rows.weight, "squares": rows.weight**2 if squares is None else squares}
    found = pd.DataFrame({**keys, **sums}).groupby(list(keys), as_index=False)[list(sums)].sum()
    labels = np.asarray([*audit.labels, None], dtype=object)[:-1]
    columns: dict[str, Any] = {
        name: groups.column(place)[found["group"]] for place, name in enumerate(groups.attributes)
    }
    if given.target is not None:
        columns[given.target] = labels[found["label"]]
    columns[given.prediction] = labels[found["predicted"]]
    if given.baseline is not None:
        columns[given.baseline] = labels[found["baseline"]]
    columns[given.count] = found["count"].astype(np.int64)
    if given.weight is not None and given.squared_weight is not None:
        columns |= {given.weight: found["weight"], given.squared_weight: found["squares"]}
    return pd.DataFrame(columns)


def all_counts(audits: Sequence[Audit]) -> pd.DataFrame:
    """The counts of several audits, one below the other."""
    return pd.concat([counts_frame(audit) for audit in audits], ignore_index=True)
