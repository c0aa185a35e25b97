"""Two predictions for the same rows: who changes sides, and which rates the change moves.

The rows are the same, so most of their noise is, too: what counts are the rows whose prediction
differs. A rate changes by ``up - down``, the shares of its rows that get and lose what it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad.audit.counts import CountTable, RowCounts, rate_masks
from fairgrad.audit.intervals import Interval, Proportion, paired_difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats, GroupedRows, Ints

UP, DOWN = 0, 1


class Moves(NamedTuple):
    """Rows whose prediction changes, by group, true label and the label they get or lose.

    Attributes:
        up: the rows that get each label.
        down: the rows that lose it.
    """

    up: CountTable
    down: CountTable

    @classmethod
    def from_rows(cls, rows: GroupedRows, times: Floats, before: Ints, after: Ints) -> Moves:
        """Counts the rows, each so many times, whose predicted label was one and is another."""
        changed = before != after
        weight = None if rows.weight is None else rows.weight[changed]
        rows = replace(rows, label=rows.label[changed], group=rows.group[changed], weight=weight)
        counts = RowCounts(times[changed])
        tables = (
            CountTable.from_rows(rows, predicted[changed], counts=counts)
            for predicted in (after, before)
        )
        # Counts of unknown groups may be below 0 by chance.
        return cls(*(replace(t, rows=t.rows.clip(0), mass=t.mass.clip(0)) for t in tables))

    def _of_hits(self, hits: NDArray[np.bool_], *, people: bool) -> Floats:
        """(2, R, G) the rows, or their weights, by which rates with these hits go up and down."""
        moved = np.stack([table.rows if people else table.mass for table in self])
        counted: Floats = np.einsum("wgyl,ryl->wrg", moved, hits.astype(np.float64))
        return counted

    def of_rate(self, rate: str, label: int = -1, *, people: bool = False) -> Floats:
        """(2, G) the rows, or their weights, by which a rate of each group goes up and down.

        Args:
            rate: "accuracy", "selection_rate", "true_positive_rate" or "false_positive_rate".
            label: the label the rate is about; -1 for none.
            people: rows, whatever their weights.
        """
        hits, _ = rate_masks(self.up.n_labels)[rate]
        return self._of_hits(hits[[max(label, 0)]], people=people)[:, 0]

    def of_cells(self, comparison: Comparison, *, people: bool = False) -> Floats:
        """(2, K) the same for the cells of a comparison.

        Of a rate of several labels, rows that change from one of them to another count both ways:
        its interval is rather too wide than too narrow.
        """
        by_row = self._of_hits(comparison.hits, people=people)
        rate = comparison.block % len(comparison.hits)
        by_cell: Floats = by_row[:, rate, comparison.cell_group]
        return by_cell


def change_interval(moved: Floats, rate: Proportion, alpha: float) -> Interval:
    """The interval of each rate's change, (2, K) rows up and down; [-1, 1] without rows."""
    total = np.where(rate.total > 0, rate.total, 1.0)
    trials = np.where(rate.total > 0, rate.trials, 0.0)
    return paired_difference(moved[UP] / total, moved[DOWN] / total, trials, alpha)


def accuracy_change(audit: Audit) -> tuple[float, float, float, int]:
    """By how much the accuracy differs from the baseline's, with its interval, and in people.

    NaN without a baseline or true labels.
    """
    if audit.baseline is None or audit.moves is None or not audit.has_labels:
        return float("nan"), float("nan"), float("nan"), 0
    everyone = audit.table.together().rates["accuracy"]
    moves = Moves(*(table.together() for table in audit.moves))
    ends = change_interval(moves.of_rate("accuracy"), everyone, audit.alpha)
    change = audit.accuracy - audit.baseline.accuracy
    up, down = moves.of_rate("accuracy", people=True)[:, 0]
    return change, float(ends.low[0]), float(ends.high[0]), int(up - down)


@dataclass(frozen=True, eq=False)
class Change:
    """One finding before (the baseline's predictions) and after (those audited).

    Attributes:
        before: on the baseline's predictions.
        after: on the audited predictions.
        moves: the rows whose prediction differs, by the groups of the finding.
    """

    before: Finding
    after: Finding
    moves: Moves

    @cached_property
    def interval(self) -> Interval:
        """(K,) by how much each rate changes; all by which people gain or lose at once."""
        comparison = self.after.comparison
        n_rates = int(((comparison.good != 0) & (comparison.cells.total > 0)).sum())
        alpha = self.after.alpha / max(n_rates, 1)
        return change_interval(self.moves.of_cells(comparison), comparison.cells, alpha)

    @cached_property
    def direction(self) -> NDArray[np.int64]:
        """(K,) 1 where people are surely better off, -1 where worse off, 0 where neither is sure.

        Sure is what the interval says: all of it lies on one side of 0.
        """
        low, high = self.interval
        way = np.where(low > 0, 1, np.where(high < 0, -1, 0))
        return (way * np.sign(self.after.comparison.good)).astype(np.int64)

    @property
    def is_fairer(self) -> bool:
        """Whether the figure of this measure came down (a ratio: went up)."""
        before, after = self.before, self.after
        if after.tolerance.kind == "level":
            return after.unfairness < before.unfairness
        sign = -1.0 if after.tolerance.kind == "ratio" else 1.0
        return sign * after.judgement.value < sign * before.judgement.value

    @property
    def is_levelling_down(self) -> bool:
        """Fairer though no group is surely better off and some group surely is worse off."""
        return bool(self.is_fairer and (self.direction <= 0).all() and (self.direction < 0).any())

    def gained(self) -> list[str]:
        """The groups that surely gained in one of their rates and lost in none."""
        return self._groups(1)

    def lost(self) -> list[str]:
        """The groups that surely lost in one of their rates and gained in none."""
        return self._groups(-1)

    def _groups(self, way: int) -> list[str]:
        ways: dict[int, set[int]] = {}
        for group, direction in zip(self.after.comparison.cell_group, self.direction, strict=True):
            ways.setdefault(int(group), set()).add(int(direction))
        names = self.after.table.groups.names
        return [names[g] for g in sorted(ways) if ways[g] - {0} == {way}]
