"""Tables of counts: each row stands for many rows that are alike.

An audit needs no more of its rows than how many have which sensitive values, label and prediction.
So rows can be counted where they lie, and the counts of parts add up.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.columns import as_pandas
from fairgrad.groups import Floats, GroupedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit

_NEED_ROWS = ("sample_weight", "y_score")
"""Options of an audit that speak of single rows."""


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


class CountedTable(NamedTuple):
    """A table of counts as an audit takes it.

    Attributes:
        columns: true labels (None if they are not known), predictions and sensitive columns.
        baseline: predictions of another model, or None.
        counts: how many rows each row stands for.
    """

    columns: tuple[pd.Series | None, pd.Series, dict[str, pd.Series]]
    baseline: pd.Series | None
    counts: RowCounts


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

    def read(self, counts: Any, options: Mapping[str, Any]) -> CountedTable:
        """The table, without combinations that no row has.

        Raises:
            TypeError: if it is no frame.
            ValueError: if it cannot be read; the message names the argument.
        """
        unfit = [name for name in _NEED_ROWS if options.get(name) is not None]
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
        return CountedTable(
            (
                None if self.target is None else frame[self.target],
                frame[self.prediction],
                sensitive,
            ),
            None if self.baseline is None else frame[self.baseline],
            RowCounts(times, *weights),
        )

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
