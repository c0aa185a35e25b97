"""All decisions along a line of multipliers, judged exactly on labelled rows.

Along ``scores + t * slopes`` decisions are constant but for the points where a row changes its
label. These are found by sorting, so that the best t is found exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.decisions.problem import Figures

if TYPE_CHECKING:
    from fairgrad.decisions.problem import JudgedDecisions
    from fairgrad.groups import Floats, Ints

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
        for cells in problem.parts:
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
        """(K, m) what is counted in each part's cells at some places, from that at a start."""
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
