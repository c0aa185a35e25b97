"""Two predictions for the same rows: who changes sides, and which rates the change moves.

The rows are the same, so most of their noise is, too: what counts are the rows whose prediction
differs. A rate changes by ``up - down``, the shares of its rows that get and lose what it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairgrad.audit.counts import CountTable, RowCounts, rate_masks
from fairgrad.audit.intervals import Interval, Proportion, paired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats, GroupedRows, Ints

UP, DOWN = 0, 1


def count_moves(rows: GroupedRows, times: Floats, before: Ints, after: Ints) -> list[CountTable]:
    """Counts the rows whose prediction changes: by the label they get, and by the one they lose.

    Args:
        rows: all rows.
        times: (N,) how many rows each of them stands for.
        before: (N,) the label that was predicted.
        after: (N,) the label that is predicted now.
    """
    changed = before != after
    weight = None if rows.weight is None else rows.weight[changed]
    rows = replace(rows, label=rows.label[changed], group=rows.group[changed], weight=weight)
    counts = RowCounts(times[changed])
    tables = [CountTable.from_rows(rows, to[changed], counts=counts) for to in (after, before)]
    # Counts of unknown groups may be below 0 by chance.
    return [replace(t, rows=t.rows.clip(0), mass=t.mass.clip(0)) for t in tables]


def moved(moves: Sequence[CountTable], hits: NDArray[np.bool_], *, people: bool = False) -> Floats:
    """(2, R, G) the rows by which rates go up and down in each group, or their weights.

    Args:
        moves: as `count_moves` has them.
        hits: (R, L, L) the true and predicted labels that count in each rate.
        people: rows, whatever their weights.
    """
    tables = np.stack([table.rows if people else table.mass for table in moves])
    counted: Floats = np.einsum("wgyl,ryl->wrg", tables, hits.astype(np.float64))
    return counted


def change_interval(rows: Floats, rate: Proportion, alpha: float) -> Interval:
    """The interval of each rate's change, (2, K) rows up and down; [-1, 1] without rows."""
    total = np.where(rate.total > 0, rate.total, 1.0)
    trials = np.where(rate.total > 0, rate.trials, 0.0)
    return paired_difference(rows[UP] / total, rows[DOWN] / total, trials, alpha)


def accuracy_change(audit: Audit) -> tuple[float, float, float, int]:
    """By how much the accuracy differs from the baseline's, with its interval, and in people.

    NaN without a baseline or true labels.
    """
    if audit.baseline is None or audit.moves is None or not audit.has_labels:
        return float("nan"), float("nan"), float("nan"), 0
    everyone = audit.table.together().rates["accuracy"]
    moves = [table.together() for table in audit.moves]
    is_right, _ = rate_masks(len(audit.labels))["accuracy"]
    ends = change_interval(moved(moves, is_right)[:, 0], everyone, audit.alpha)
    change = audit.accuracy - audit.baseline.accuracy
    up, down = moved(moves, is_right, people=True)[:, 0, 0]
    return change, float(ends.low[0]), float(ends.high[0]), int(up - down)


@dataclass(frozen=True, eq=False)
class Change:
    """One finding before (the baseline's predictions) and after (those audited).

    Attributes:
        before: on the baseline's predictions.
        after: on the audited predictions.
        moves: the rows whose prediction differs (`count_moves`), by the groups of the finding.
    """

    before: Finding
    after: Finding
    moves: Sequence[CountTable]

    def moved(self, *, people: bool = False) -> Floats:
        """(2, K) the rows by which each cell's rate goes up and down, or their weights.

        If a rate counts several labels, rows that change between these labels count both ways. Its
        interval is then rather too wide than too narrow.
        """
        comparison = self.after.comparison
        by_row, rate = moved(self.moves, comparison.hits, people=people), comparison.block
        by_cell: Floats = by_row[:, rate % len(comparison.hits), comparison.cell_group]
        return by_cell

    @cached_property
    def direction(self) -> NDArray[np.int64]:
        """(K,) 1 where people are surely better off, -1 where worse off, 0 where neither is sure.

        Sure of all rates by which people gain or lose at once: their intervals leave out 0.
        """
        comparison = self.after.comparison
        n_rates = int(((comparison.good != 0) & (comparison.cells.total > 0)).sum())
        return self._direction(self.after.alpha / max(n_rates, 1))

    def _direction(self, alpha: float) -> NDArray[np.int64]:
        comparison = self.after.comparison
        low, high = change_interval(self.moved(), comparison.cells, alpha)
        way = np.where(low > 0, 1, np.where(high < 0, -1, 0))
        return (way * np.sign(comparison.good)).astype(np.int64)

    @property
    def is_levelling_down(self) -> bool:
        """Fairer though no group is surely better off and some group surely is worse off.

        Fairer means that the figure of this measure came down (a ratio: went up). Gains count as
        the tables mark them: with intervals that each hold by themselves.
        """
        before, after = self.before, self.after
        if after.tolerance.kind == "level":
            is_fairer = after.unfairness < before.unfairness
        else:
            sign = -1.0 if after.tolerance.kind == "ratio" else 1.0
            is_fairer = sign * after.judgement.value < sign * before.judgement.value
        has_gain = (self._direction(after.alpha) > 0).any()
        return bool(is_fairer and not has_gain and (self.direction < 0).any())
