"""Decisions judged on labelled rows: one by one, and all those along a line of scores.

Along ``scores + t * slopes`` decisions are constant but for the points where a row changes its
label. These are found by sorting, so that the best t is found exactly.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.groups import count_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, GroupedRows, Ints

TOLERANCE = 1e-3
"""Exact fairness, on rows that can be counted, is a level of at most this; or of one row, where one
row moves a level by more."""

ROUNDING = 1e-12

POINTS = 256
"""Points of a line that are looked at first; all those around the best of them follow."""

MOST_COUNTS, LEAST_POINTS = 2**20, 32
"""Numbers that are counted at once, one for each cell at each point: with thousands of cells fewer
points are looked at, but not fewer than these."""

FARTHEST = 1e4
"""How far lines are followed."""

SMALLEST_SLOPE = 1e-14
"""Scores whose slopes differ by less are parallel."""

GAP = 1e-9
"""Rows that change their label closer together than that change it at once: so no row lies on the
border, whichever machine computes it."""


def largest(scores: Floats) -> Ints:
    """(n,) the label with the largest score, the first of equal ones; fast for two labels."""
    if len(scores) == 2:
        is_second: Ints = (scores[1] > scores[0]).astype(np.int64)
        return is_second
    decided: Ints = scores.argmax(0)
    return decided


class JudgedCells:
    """Constraints and the cells they speak of, to judge what is decided on labelled rows.

    Args:
        constraints: all of them defined.
        rows: labels and groups of the rows, with their frequencies.
        room: how far from a level of 0 exact fairness is; None for `TOLERANCE`, or one row where
            one row moves a level by more.
    """

    def __init__(
        self, constraints: Constraints, rows: GroupedRows, room: float | None = None
    ) -> None:
        self.constraints, self.groups = constraints, rows.groups
        self.n_outcomes = constraints.n_outcomes
        self.cell = rows.cell(constraints.by_label)
        self.mass = rows.groups.cell_mass(constraints.by_label) / rows.groups.mass.sum()
        self._per_mass = np.where(self.mass > 0, 1.0 / np.where(self.mass > 0, self.mass, 1.0), 0.0)
        self.lower, self.upper = self._bounds(rows, room)

    def _bounds(self, rows: GroupedRows, room: float | None) -> tuple[Floats, Floats]:
        """The bounds to keep; where they are equal, or nearly so, what can be told apart."""
        C, lower, upper = (
            self.constraints.coefficients,
            self.constraints.lower,
            self.constraints.upper,
        )
        rooms = np.full(len(lower), TOLERANCE if room is None else room)
        if room is None:
            weight = np.ones(len(rows)) if rows.weight is None else rows.weight
            heaviest = np.zeros(len(self.mass))
            np.maximum.at(heaviest, self.cell, weight / weight.sum())
            one_row = heaviest * self._per_mass
            np.maximum.at(rooms, C.row, np.abs(C.value) * one_row[C.cell % len(one_row)])
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2
        is_two_sided = np.isfinite(middle)
        return (
            np.where(is_two_sided, np.minimum(lower, middle - rooms), lower) - ROUNDING,
            np.where(is_two_sided, np.maximum(upper, middle + rooms), upper) + ROUNDING,
        )

    def count(self, decided: Ints, wrong: Floats, weight: Floats) -> Floats:
        """(K, 1) the weights of the wrong rows of each cell, or (L * K, 1) of each label decided.

        Args:
            decided: (n,) labels.
            wrong: (n,) the weights of rows decided wrongly, 0 of the others.
            weight: (n,) of all rows.
        """
        n_cells = len(self.mass)
        place, counted = self.cell, wrong
        if self.n_outcomes > 1:
            place, counted = decided * n_cells + self.cell, weight
        sums: Floats = count_rows(place, self.n_outcomes * n_cells, counted)
        return sums[:, None]

    def levels(self, counted: Floats) -> Floats:
        """(J, m) levels where such shares of all rows, (K, m) or (L * K, m), were counted."""
        rates = counted.T * np.tile(self._per_mass, self.n_outcomes)
        levels: Floats = self.constraints.levels(rates).T
        return levels


class Figures(NamedTuple):
    """Of m decisions: the error, the sum of squares and the largest of what is beyond bounds."""

    error: Floats
    squares: Floats
    worst: Floats

    def penalised(self, penalty: float) -> Floats:
        """(m,) what to minimise."""
        return self.error + penalty * self.squares


class JudgedDecisions:
    """Labelled rows and constraints: what is decided on them can be counted and judged.

    Args:
        label: (n,) the index of each row's label.
        weight: (n,) sample weights, or None.
        measured: one or several sets of constraints.
        costs: (L, L) of each prediction (columns) of each true label (rows); None for errors.
    """

    def __init__(
        self,
        label: Ints,
        weight: Floats | None,
        measured: Sequence[JudgedCells],
        costs: Floats | None = None,
    ) -> None:
        self.label, self.costs = label, costs
        weight = np.ones(len(label)) if weight is None else weight
        self.weight = weight / weight.sum()
        self.measured: tuple[JudgedCells, ...] = tuple(measured)
        self.lower = np.concatenate([cells.lower for cells in measured])
        self.upper = np.concatenate([cells.upper for cells in measured])

    def widened(self, width: float) -> JudgedDecisions | None:
        """The same rows with bounds at least so far from their middle; None if all are."""
        with np.errstate(invalid="ignore"):  # one side may be open
            middle = (self.lower + self.upper) / 2
            narrow = self.upper - middle < width
        if not narrow.any():
            return None
        wide = copy(self)
        wide.lower = np.where(narrow, middle - width, self.lower)
        wide.upper = np.where(narrow, middle + width, self.upper)
        return wide

    def judged(self, decided: Ints) -> tuple[list[Floats], float]:
        """What is counted of decided labels, and what they cost.

        Returns:
            (K, 1) for each measure the wrong rows of its cells, or (L * K, 1) those of each label.
            And the share of the rows decided wrongly, or the mean of their costs.
        """
        wrong = np.where(decided != self.label, self.weight, 0.0)
        counted = [cells.count(decided, wrong, self.weight) for cells in self.measured]
        cost = wrong if self.costs is None else self.weight * self.costs[self.label, decided]
        return counted, float(cost.sum())

    def levels(self, counted: Sequence[Floats]) -> Floats:
        """(J,) levels of all measures, from what was counted of decided labels."""
        pairs = zip(self.measured, counted, strict=True)
        return np.concatenate([cells.levels(wrong)[:, 0] for cells, wrong in pairs])

    def violations(self, levels: Floats) -> Floats:
        """(..., J) by how much levels are beyond their bounds; 0 for those that are within."""
        off: Floats = np.maximum(np.maximum(levels - self.upper, self.lower - levels), 0.0)
        return off

    def figures(self, wrong: Sequence[Floats], error: Floats) -> Figures:
        """Figures of m decisions, from what was counted, (K, m), in each measure's cells."""
        pairs = zip(self.measured, wrong, strict=True)
        off = self.violations(np.concatenate([cells.levels(errors) for cells, errors in pairs]).T)
        return Figures(error, (off**2).sum(1), off.max(1))


class DecisionLine:
    """The figures of all decisions along ``scores + t * slopes``, t any number.

    Args:
        problem: of which the scores are.
        scores: (L, n) at t = 0.
        slopes: (L, n).
        window: the least and the largest t to look at: few rows change their label between two
            models that are alike.
    """

    def __init__(
        self,
        problem: JudgedDecisions,
        scores: Floats,
        slopes: Floats,
        window: tuple[float, float] = (-FARTHEST, FARTHEST),
    ) -> None:
        self.problem, self.window = problem, window
        start, t, row, old, new = crossings(scores, slopes, window)
        order = np.argsort(t)
        self.t, row, old, new = t[order], row[order], old[order], new[order]
        self.first, error = problem.judged(start)
        weight, counts = problem.weight[row], problem.label[row]
        wrong = weight * ((new != counts).astype(np.float64) - (old != counts))
        self.changes: list[list[tuple[Ints, Floats]]] = []  # where, and by how much
        for cells in problem.measured:
            cell, n_cells = cells.cell[row], len(cells.mass)
            leaves, enters = (old * n_cells + cell, -weight), (new * n_cells + cell, weight)
            self.changes.append([(cell, wrong)] if cells.n_outcomes == 1 else [leaves, enters])
        costs = problem.costs
        more = wrong if costs is None else weight * (costs[counts, new] - costs[counts, old])
        self.error = np.empty(len(t) + 1)
        self.error[0] = error
        np.cumsum(more, out=self.error[1:])
        self.error[1:] += error
        apart = np.diff(self.t) > GAP * (1.0 + np.abs(self.t[1:]))
        places = np.flatnonzero(np.concatenate([[True], apart, [True]]) if len(t) else [True])
        self.places = places  # rows that have changed
        n_cells = sum(len(counts) for counts in self.first)
        self.most = max(LEAST_POINTS, MOST_COUNTS // n_cells)

    def middle(self, places: Any) -> Floats:
        """The t between the last row that has changed its label and the next one."""
        if not len(self.t):
            return np.full(len(places), np.clip(0.0, *self.window))
        first, last = float(self.t[0]), float(self.t[-1])
        low = max(self.window[0], first - 1.0 - abs(first))
        high = min(self.window[1], last + 1.0 + abs(last))
        t = np.concatenate([[low], self.t, [high]])
        middle: Floats = 0.5 * (t[places] + t[places + 1])
        return middle

    def best(self, penalty: float, most_error: float = np.inf) -> list[tuple[float, Figures]]:
        """The t of the smallest violation, then error, and that of the least penalised error.

        Points of more than `most_error`, such as one label for everybody, come last in the first.
        """
        places = self.places
        if not len(places):
            return []
        few = _spread(places, min(POINTS, self.most))
        wrong = self._wrong_at(few, 0, [one[:, 0] for one in self.first])
        figures = self.problem.figures(wrong, self.error[few])
        if len(few) < len(places):
            near = [
                self._around(few, i, wrong)
                for i in sorted(set(_best_places(figures, penalty, most_error)))
            ]
            few = np.concatenate([one for one, _ in near])
            columns = zip(*(one for _, one in near), strict=True)
            figures = Figures(*(np.concatenate(column) for column in columns))
        chosen = _best_places(figures, penalty, most_error)
        middles = self.middle(few[chosen]).tolist()
        return [
            (t, Figures(*(column[i] for column in figures)))
            for t, i in zip(middles, chosen, strict=True)
        ]

    def _wrong_at(self, places: Ints, start: int, before: list[Floats]) -> list[Floats]:
        """(K, m) what is counted in each measure's cells at some places, from that at a start."""
        m, window = len(places), slice(start, int(places[-1]))
        step = np.repeat(np.arange(m), places - np.concatenate([[start], places[:-1]]))
        wrong = []
        for changes, counted in zip(self.changes, before, strict=True):
            sums = np.zeros(len(counted) * m)
            for cell, change in changes:
                sums += np.bincount(cell[window] * m + step, change[window], len(counted) * m)
            wrong.append(counted[:, None] + sums.reshape(len(counted), m).cumsum(1))
        return wrong

    def _around(self, few: Ints, i: int, wrong: list[Floats]) -> tuple[Ints, Figures]:
        """All places between two neighbours of a place, and their figures.

        With thousands of cells so many of them as are soon counted.
        """
        before = max(i - 1, 0)
        low, high = few[before], few[min(i + 1, len(few) - 1)]
        left, right = np.searchsorted(self.places, [low, high + 1])
        places = self.places[left:right]
        places = _spread(places, self.most)
        wrong_here = self._wrong_at(places, int(low), [column[:, before] for column in wrong])
        return places, self.problem.figures(wrong_here, self.error[places])


def _spread(places: Ints, most: int) -> Ints:
    """The places, or so many of them, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]


def _best_places(figures: Figures, penalty: float, most_error: float) -> list[int]:
    fairest = int(np.lexsort((figures.error, figures.worst, figures.error > most_error))[0])
    return [fairest, int(figures.penalised(penalty).argmin())]


def crossings(
    scores: Floats, slopes: Floats, window: tuple[float, float]
) -> tuple[Ints, Floats, Ints, Ints, Ints]:
    """Where rows change their label as t grows from one end of a window to the other.

    The score of a row's label is the largest of L straight lines: it changes at most L - 1 times,
    to a steeper line each time.

    Returns:
        (n,) labels at the window's start; then of each change its t, its row, and the labels before
        and after it.
    """
    low, high = window
    n_labels, n = scores.shape
    if n_labels == 2:  # the same as below, but much faster
        margin, slope = scores[1] - scores[0], slopes[1] - slopes[0]
        row, start = np.flatnonzero(np.abs(slope) > SMALLEST_SLOPE), (margin > 0).astype(np.int64)
        t, slope = -margin[row] / slope[row], slope[row]
        start[row] = (slope < 0) ^ (t < low)
        inside = (t >= low) & (t <= high)
        t, row = t[inside], row[inside]
        return start, t, row, start[row], 1 - start[row]
    flattest = slopes.min(0) + SMALLEST_SLOPE
    label = np.where(slopes <= flattest, scores, -np.inf).argmax(0)
    start, row = label.copy(), np.arange(n)
    pieces: list[tuple[Any, ...]] = []
    for _ in range(n_labels - 1):
        steeper = slopes[:, row] - slopes[label, row]
        rises = steeper > SMALLEST_SLOPE
        behind = scores[label, row] - scores[:, row]
        t = np.where(rises, behind / np.where(rises, steeper, 1.0), np.inf)
        new = t.argmin(0)
        t = t[new, np.arange(len(row))]
        moves = np.isfinite(t)
        t, row, old, label = t[moves], row[moves], label[moves], new[moves]
        before = t < low  # changes of a row come in order
        start[row[before]] = label[before]
        inside = (t >= low) & (t <= high)
        pieces.append((t[inside], row[inside], old[inside], label[inside]))
    times, rows, before, after = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return start, times, rows, before, after
