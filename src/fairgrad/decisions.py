"""The best response to the multipliers: from the probabilities of the cells to fair decisions.

For fixed multipliers the Lagrangian ``sum_k p_k w_k e_k`` is minimised exactly by

    h(x) = argmax_l  sum_r w_(l,r) P(y = l, s = r | x),      w_k = 1 + (C' lambda)_k / p_k,

so that any model of the cells' probabilities becomes a fair classifier by J numbers, with negative
weights and many labels for free. Attributes that are constrained apart add up:

    h(x) = argmax_l  P(y = l | x) + sum_a sum_r (w_a(l,r) - 1) P(y = l, s_a = r | x).

For constraints on what is predicted the multipliers put a cost on every label in every cell, and

    h(x) = argmin_l  sum_k a[k, l] P(k | x),      a[k, l] = cost[y_k, l] + (C' lambda)[k, l] / p_k.

`solve` finds the best decision by a linear program over a few decisions. A column is the decision
of some multipliers: its error and its levels on the labelled rows. The program mixes columns so
that all levels are within their bounds at the least error, and its dual values are the multipliers
of the next columns. The optimum mixes at most J + 1 decisions. Where one decision alone keeps the
bounds at about the same cost, it is the answer.

Along ``scores + t * slopes`` decisions are constant but for the points where a row changes its
label. `best_on_line` finds these by sorting, so that the best t is found exactly.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from fairgrad.checks import relative_costs
from fairgrad.constraints import Coefficients, times, times_transposed, warn_of_undefined
from fairgrad.groups import GroupedRows, count_rows
from fairgrad.measures import LargeGroups, constraints_of, on_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Ints

TOLERANCE = 1e-3
"""Exact fairness, on rows that can be counted, is a level of at most this; or of one row, where one
row moves a level by more."""

ROUNDING = 1e-12

POINTS = 256
"""Points of a line that are looked at first; all those around the best of them follow."""

MOST_COUNTS, LEAST_POINTS = 2**20, 32
"""Numbers that are counted at once, one for each cell at each point: with thousands of cells fewer
points are looked at, but not fewer than these."""

SMALLEST_SLOPE = 1e-14
"""Scores whose slopes differ by less are parallel."""

GAP = 1e-9
"""Rows that change their label closer together than that change it at once: so no row lies on the
border, whichever machine computes it."""

RAY_LENGTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Lengths of the first multipliers, in the largest change of a cell's weight."""

MOST_RAYS = 300
"""Columns on rays. With many constraints fewer lengths are tried."""

MIXTURE_PRICES = (0.3, 1.0, 3.0, 100.0)
"""Error that the linear program accepts to reduce the largest violation by 1, one after the other.
A price bounds the multipliers, so that the first columns are moderate ones."""

MOST_ROUNDS, QUIET_ROUNDS = 12, 2
"""Rounds of column generation at each price, and rounds without improvement that end them."""

NEIGHBOURS, MOST_PAIRS, FIRST_RADIUS, SHRINKING = 4, 8, 0.3, 0.7
"""Random neighbours of the multipliers and midpoints of mixed columns in each round, and how far
away the neighbours are."""

LEAST_GAIN = 1e-5
"""An improvement below is none."""

SEARCH_PENALTIES, SEARCH_SWEEPS = (10.0, 100.0, 1000.0), 3
"""Factors of the squared violations in the search for a single decision, one after the other, and
how often it goes along all lines for each."""

VIOLATION_PRICE = 10.0
"""Error that reducing the largest violation by 1 is worth, in the choice of a single decision."""

WORTH = {False: 0.02, True: 0.002}
"""A decision within the bounds is used if it costs at most this much more than the mixture: without
a lottery, and with one."""

LEAST_USE = 0.001
"""A decision is useful if it is more accurate than one label for everybody by more than this."""

MOST_PULL = 100.0
"""Largest change of a cell's weight. A larger one lets the decisions of everybody depend on small
differences in how likely they are in a rare group, which models memorize of their own rows."""

LEAST_SHARE = 1e-9
"""Columns with smaller shares are not in the mixture."""


def judged_apart(
    measure: Any, rows: GroupedRows, *, epsilon: Any = 0.0, y_desirable: Any = None
) -> list[tuple[Constraints, GroupedRows]]:
    """Each of one or several measures: its constraints, and the rows by its own attributes.

    These are the constraints of `fairgrad.measures.constraints_of`, in the same order, but written
    for the groups of each measure's own attributes, not for all combinations of attributes. Those
    that are not defined on these groups are left out, with a warning. A level of few rows gets the
    slack that its sampling error explains (`fairgrad.constraints.Constraints.slacken_for`).

    Args:
        measure: as `fairgrad.measures.constraints_of` takes it.
        rows: labels and groups of all attributes.
        epsilon: slack of all constraints, or one per constraint.
        y_desirable: the desirable labels, for measures that ask for them.

    Raises:
        ValueError: if the measure is not known or does not fit the groups.
    """
    large = measure if isinstance(measure, LargeGroups) else None
    grouped = []
    for on in on_groups(measure if large is None else large.measure, rows.groups.attributes):
        attributes = (*on.compared, *on.strata)
        coarse, parents = rows.groups.merged(*attributes)
        among = on if large is None else replace(large, measure=on)
        constraints = constraints_of(among, coarse, y_desirable=y_desirable)
        grouped.append(
            (constraints, GroupedRows(coarse, rows.label, parents[rows.group], rows.weight))
        )
    if not grouped:
        raise ValueError("fairness_measure: expected at least one measure, got an empty list.")
    ends = np.cumsum([len(constraints.c0) for constraints, _ in grouped])
    try:
        slack = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (ends[-1],))
    except (TypeError, ValueError):
        raise ValueError(
            f"epsilon: expected a number or one per constraint ({ends[-1]}), got {epsilon!r}."
        ) from None
    warn_of_undefined([constraints for constraints, _ in grouped])
    return [
        (constraints.slacken_for(people, room).drop_undefined(warns=False), people)
        for (constraints, people), room in zip(grouped, np.split(slack, ends[:-1]), strict=True)
    ]


class Figures(NamedTuple):
    """Of m decisions: the error, the sum of squares and the largest of what is beyond bounds."""

    error: Floats
    squares: Floats
    worst: Floats

    def penalised(self, penalty: float) -> Floats:
        """(m,) what to minimise."""
        return self.error + penalty * self.squares


class DecisionProblem:
    """Labelled rows and constraints: what is decided on the rows can be counted and judged.

    With the probabilities of the cells, multipliers decide.

    Args:
        measured: one or several sets of constraints, all of them defined. Each comes with the rows,
            by the groups that it speaks of; labels and weights are the same in all.
        probabilities: of each set (L, G, n) ``P(y = l, s = r | x)``, r among its groups; none if
            only given decisions are judged.
        cost_matrix: (L, L) of each prediction (columns) of each true label (rows); None for errors.
        room: how far from a level of 0 exact fairness is; None for `TOLERANCE`, or one row where
            one row moves a level by more.

    Attributes:
        cells: of each set, (n,) the cell of each row.
        starts: where the counts of each set begin.
        lower: (J,) bounds to keep; where both are equal, or nearly so, what can be told apart.
        upper: (J,) likewise.
        base: (L, n) the scores of the plain decision, if there are probabilities.
    """

    def __init__(
        self,
        measured: Sequence[tuple[Constraints, GroupedRows]],
        probabilities: Sequence[Floats] = (),
        cost_matrix: Any = None,
        *,
        room: float | None = None,
    ) -> None:
        self.measured, rows = measured, measured[0][1]
        self.label, n_labels = rows.label, len(rows.groups.labels)
        self.costs = None if cost_matrix is None else relative_costs(cost_matrix, n_labels)
        weight = np.ones(len(rows.label)) if rows.weight is None else rows.weight
        self.weight = weight / weight.sum()
        matrices = [constraints.coefficients for constraints, _ in measured]
        C = self.coefficients = Coefficients.concatenate(matrices, apart=True)
        self.c0: Floats = np.concatenate([constraints.c0 for constraints, _ in measured])
        self.starts = np.cumsum([0, *(matrix.n_cells for matrix in matrices[:-1])])
        self.cells = [rows.cell(constraints.by_label) for constraints, rows in measured]
        of_cells = []
        for (constraints, rows), cell in zip(measured, self.cells, strict=True):
            mass = rows.groups.cell_mass(constraints.by_label)
            per_mass, per_share, heaviest = np.zeros((3, len(mass)))
            np.divide(1.0, mass / rows.groups.mass.sum(), out=per_mass, where=mass > 0)
            np.divide(mass.sum(), mass, out=per_share, where=mass > 0)
            np.maximum.at(heaviest, cell, self.weight)
            of_cells.append(np.tile([per_mass, per_share, heaviest], constraints.n_outcomes))
        self.per_mass, per_share, heaviest = np.concatenate(of_cells, axis=1)
        self._pull = C.value * per_share[C.cell]
        lower = np.concatenate([constraints.lower for constraints, _ in measured])
        upper = np.concatenate([constraints.upper for constraints, _ in measured])
        rooms = np.full(len(lower), TOLERANCE if room is None else room)
        if room is None:
            one_row = heaviest * self.per_mass
            np.maximum.at(rooms, C.row, np.abs(C.value) * one_row[C.cell])
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2
        is_two_sided = np.isfinite(middle)
        self.lower = np.where(is_two_sided, np.minimum(lower, middle - rooms), lower) - ROUNDING
        self.upper = np.where(is_two_sided, np.maximum(upper, middle + rooms), upper) + ROUNDING
        self.probabilities = [np.ascontiguousarray(p, dtype=np.float64) for p in probabilities]
        if probabilities:
            self.base = weighted_scores(self.probabilities, (), self.costs)

    def widened(self, width: float) -> DecisionProblem | None:
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

    def judged(self, decided: Ints) -> tuple[Floats, float]:
        """What is counted of decided labels, and what they cost.

        Returns:
            (K,) the wrong rows of the cells of each measure; for measures of what is predicted
            L * K numbers, the rows of each cell that get each label. And the share of the rows
            decided wrongly, or the mean of their costs.
        """
        wrong = np.where(decided != self.label, self.weight, 0.0)
        counts = []
        for (constraints, _), cell in zip(self.measured, self.cells, strict=True):
            n_cells, n_outcomes = constraints.n_cells, constraints.n_outcomes
            if n_outcomes == 1:
                counts.append(count_rows(cell, n_cells, wrong))
            else:
                place = decided * n_cells + cell
                counts.append(count_rows(place, n_outcomes * n_cells, self.weight))
        cost = wrong if self.costs is None else self.weight * self.costs[self.label, decided]
        return np.concatenate(counts), float(cost.sum())

    def levels(self, counts: Floats) -> Floats:
        """(J,) levels of all measures where these were counted; of (K, m), (m, J)."""
        levels: Floats = self.c0 + times(self.coefficients, counts.T * self.per_mass)
        return levels

    def figures(self, levels: Floats, error: Any) -> Figures:
        """Figures of m decisions, from their levels, (m, J), or of one, from (J,)."""
        off = np.maximum(np.maximum(levels - self.upper, self.lower - levels), 0.0)
        return Figures(error, (off**2).sum(-1), off.max(-1))

    def pulls(self, net: Floats) -> list[Floats]:
        """Of each measure (L, G) the weights less 1; (L, L, G) what the costs of labels grow by."""
        n_labels, pulls = len(self.base), []
        added = times_transposed(self.coefficients, self._pull, net)
        of_measures = zip(self.measured, np.split(added, self.starts[1:]), strict=True)
        for (constraints, rows), pull in of_measures:
            if constraints.n_outcomes > 1:
                pulls.append(pull.reshape(n_labels, n_labels, -1))
                continue
            weights = 1.0 + pull.reshape(-1, rows.groups.n_groups)
            pulls.append(np.tile(weights - 1.0, (n_labels // len(weights), 1)))
        return pulls

    def decide(self, net: Floats, constant: int | None = None) -> Decision:
        """The decisions of these multipliers, judged on the labelled rows.

        Args:
            net: (J,) net multipliers of all constraints.
            constant: a label for everybody instead. It is written as weights that give all other
                labels scores below any.
        """
        pulls = self.pulls(net)
        if constant is None:
            decided = largest(self.base + added_scores(0.0, self.probabilities, pulls))
        else:
            decided = np.full(len(self.label), constant)
            pulls = [np.zeros_like(pull) for pull in pulls]
            far, others = 2.0, np.arange(len(self.base)) != constant
            if self.costs is not None:  # weights reach only labels that may be true
                far, pulls[0] = far + float(np.ptp(self.costs)), as_costs(pulls[0])
            pulls[0][others] = -far if pulls[0].ndim == 2 else far
        counts, error = self.judged(decided)
        levels = self.levels(counts)
        beyond = float(self.figures(levels, error).worst)
        return Decision(net, pulls, levels, error, beyond, constant)


def best_on_line(
    problem: DecisionProblem,
    scores: Floats,
    slopes: Floats,
    penalty: float,
    *,
    most_error: float,
    window: tuple[float, float],
) -> list[tuple[float, Figures]]:
    """The best of all decisions along ``scores + t * slopes``, t any number.

    Each t lies in the middle between the last row that has changed its label and the next one.

    Args:
        problem: of which the scores are.
        scores: (L, n) at t = 0.
        slopes: (L, n).
        penalty: of the squared violations.
        most_error: points of more error, such as one label for everybody, come last in the first.
        window: the least and the largest t to look at: few rows change their label between two
            models that are alike.

    Returns:
        The t of the smallest violation, then error, and that of the least penalised error.
    """
    start, t, row, old, new = crossings(scores, slopes, window)
    order = np.argsort(t)
    t, row, old, new = t[order], row[order], old[order], new[order]
    counts, error = problem.judged(start)
    weight, label, costs = problem.weight[row], problem.label[row], problem.costs
    wrong = weight * ((new != label).astype(np.float64) - (old != label))
    changes: list[tuple[Ints, Floats]] = []  # which count, and by how much
    of_measures = zip(problem.measured, problem.cells, problem.starts, strict=True)
    for (constraints, _), cells, begin in of_measures:
        cell, n_cells = begin + cells[row], constraints.n_cells
        leaves, enters = (old * n_cells + cell, -weight), (new * n_cells + cell, weight)
        changes += [(cell, wrong)] if constraints.n_outcomes == 1 else [leaves, enters]
    more = wrong if costs is None else weight * (costs[label, new] - costs[label, old])
    errors = np.concatenate([[error], np.cumsum(more) + error])

    apart = np.diff(t) > GAP * (1.0 + np.abs(t[1:]))
    # Decisions after so many changes are looked at: some first, then those around the best.
    places = np.flatnonzero(np.concatenate([[True], apart, [True]]) if len(t) else [True])
    most = max(LEAST_POINTS, MOST_COUNTS // len(counts))
    near = [(places, 0, counts)]
    for is_last, n_points in enumerate((min(POINTS, most), most)):
        looked = []
        for around, first, before in near:
            m = min(len(around), n_points)
            points = around[np.linspace(0, len(around) - 1, m).astype(np.int64)]
            passed = slice(first, int(points[-1]))
            step = np.repeat(np.arange(m), points - np.concatenate([[first], points[:-1]]))
            sums = np.zeros(len(before) * m)
            for place, change in changes:
                sums += np.bincount(place[passed] * m + step, change[passed], len(sums))
            counts = before[:, None] + sums.reshape(len(before), m).cumsum(1)
            looked.append((points, *problem.figures(problem.levels(counts), errors[points])))
        points, *columns = (np.concatenate(column) for column in zip(*looked, strict=True))
        figures = Figures(*columns)
        fairest = np.lexsort((figures.error, figures.worst, figures.error > most_error))[0]
        chosen = [int(fairest), int(figures.penalised(penalty).argmin())]
        if is_last or len(points) == len(places):
            break
        near = []
        for i in sorted(set(chosen)):
            first, last = max(i - 1, 0), min(i + 1, len(points) - 1)
            ends = np.searchsorted(places, [points[first], points[last] + 1])
            near.append((places[slice(*ends)], int(points[first]), counts[:, first]))
    low = high = np.clip(0.0, *window)
    if len(t):
        low = max(window[0], float(t[0]) - 1.0 - abs(float(t[0])))
        high = min(window[1], float(t[-1]) + 1.0 + abs(float(t[-1])))
    t = np.concatenate([[low], t, [high]])
    middles = 0.5 * (t[points[chosen]] + t[points[chosen] + 1])
    return [
        (middle, Figures(*(column[i] for column in figures)))
        for middle, i in zip(middles.tolist(), chosen, strict=True)
    ]


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


def largest(scores: Floats) -> Ints:
    """(n,) the index of the label with the largest score, the first of equal ones.

    Args:
        scores: (L, n), or (n,) margins of two labels, above 0 for the second.
    """
    if scores.ndim == 1:
        return (scores > 0).astype(np.int64)
    is_two = len(scores) == 2  # much faster
    decided: Ints = (scores[1] > scores[0]).astype(np.int64) if is_two else scores.argmax(0)
    return decided


def added_scores(scores: Any, probabilities: Sequence[Floats], pulls: Sequence[Floats]) -> Floats:
    """(L, n) scores with ``sum_a sum_r (w_a(l,r) - 1) P(y = l, s_a = r | x)`` added.

    Costs of predicted labels take from them: ``-sum_(y,r) pull[l, y, r] P(y, s = r | x)``.

    Args:
        scores: (L, n), or 0.
        probabilities: of each set of attributes (L, G, n) of the cells.
        pulls: of each of the first sets, (L, G) the weights less 1, or (L, L, G) what is added to
            the costs of predicting each label (the first axis) in each cell.
    """
    for probability, pull in zip(probabilities, pulls, strict=False):
        if pull.ndim == 3:
            by_cell = probability.reshape(-1, probability.shape[-1])
            scores = scores - pull.reshape(len(pull), -1) @ by_cell
        else:
            pairs = zip(pull, probability, strict=True)
            scores = scores + np.stack([weights @ cells for weights, cells in pairs])
    return np.asarray(scores)


def as_costs(pull: Floats) -> Floats:
    """(L, L, G) what weights, (L, G) less 1, add to costs: being right costs so much less."""
    if pull.ndim == 3:
        return pull
    costs = np.zeros((len(pull), *pull.shape))
    diagonal = np.arange(len(pull))
    costs[diagonal, diagonal] = -pull
    return costs


def weighted_scores(
    probabilities: Sequence[Floats], pulls: Sequence[Floats], costs: Floats | None = None
) -> Floats:
    """(L, n) ``P(y = l | x) + sum_a sum_r (w_a(l,r) - 1) P(y = l, s_a = r | x)``.

    The first term is the mean of what the attributes' models say of it; with costs, minus what the
    label is expected to cost.

    Args:
        probabilities: of each set of attributes (L, G, n).
        pulls: what the weights add, of each of the first sets.
        costs: (L, L) of each prediction (columns) of each true label (rows), or None.
    """
    mean: Floats = np.mean([probability.sum(1) for probability in probabilities], axis=0)
    return added_scores(mean if costs is None else -(costs.T @ mean), probabilities, pulls)


class Decision(NamedTuple):
    """Multipliers, and how the rows they were found on fare.

    Attributes:
        multipliers: (J,) net multipliers of all constraints.
        pulls: of each measure, (L, G) the weights of its cells less 1; (L, L, G) what the costs of
            each label grow by in each cell, for measures of what is predicted.
        levels: (J,) of the labelled rows.
        error: the share of these rows that is decided wrongly, or the mean of their costs.
        beyond: by how much the worst level is beyond its bounds; 0 if all are kept.
        constant: the index of the label that everybody gets, if that is the best decision; the
            multipliers are then 0.
        lottery: the share and the pulls of each decision of a mixture; empty for a single one.
            Multipliers, levels and error are then means, and `pulls` those of the largest share.
    """

    multipliers: Floats
    pulls: list[Floats]
    levels: Floats
    error: float
    beyond: float
    constant: int | None = None
    lottery: Sequence[tuple[float, list[Floats]]] = ()


def solve(problem: DecisionProblem, *, lottery: bool = False) -> Decision:
    """Finds the decision with the least error that keeps the bounds on the labelled rows.

    If the plain decision keeps them, it is the answer. If no useful single decision keeps them,
    the answer is the decision with the best balance of error and violation, and its `beyond` is
    what it misses. The result does not depend on chance.

    Args:
        problem: what to solve.
        lottery: whether several decisions may be mixed. The levels and the error are then expected
            values.

    Example:
        >>> from fairgrad.groups import group_rows
        >>> from fairgrad.measures import constraints_of
        >>> rng = np.random.default_rng(0)
        >>> s, x = rng.integers(0, 2, 4000), rng.normal(size=4000)
        >>> y = (x + s + rng.normal(size=4000) > 0.5).astype(int)
        >>> rows = group_rows(y, s)
        >>> near = np.exp(-0.5 * (x - np.array([[-0.5, -0.8], [0.5, 0.3]])[:, :, None]) ** 2)
        >>> probability = rows.groups.mass[:, :, None] * near
        >>> probability /= probability.sum((0, 1))
        >>> constraints = constraints_of("demographic_parity", rows.groups, epsilon=0.02)
        >>> decision = solve(DecisionProblem([(constraints, rows)], [probability]))
        >>> bool(np.abs(decision.levels).max() <= 0.02)
        True
    """
    columns = Columns(problem)
    plain = columns.add(np.zeros(len(problem.lower)))
    if not plain.beyond:
        return plain
    columns.add_rays(plain)
    cost, mixture = columns.generate()
    columns.search(mixture)
    tried, _, figures = columns.tried()
    is_useful = figures.error < columns.most_useful
    useful = np.where(is_useful, figures.error, np.inf) if is_useful.any() else figures.error
    # One label for everybody may be the answer if the mixture costs no less.
    allowed = figures.error if cost > columns.most_useful else useful
    keeps = np.where(figures.worst > 0, np.inf, allowed)
    if keeps.min() <= cost + WORTH[lottery]:
        return tried[int(keeps.argmin())]
    if not lottery:
        return tried[int((useful + VIOLATION_PRICE * figures.worst).argmin())]
    shares, mixed = zip(*mixture, strict=True)
    share = np.array(shares) / np.sum(shares)
    levels = share @ np.array([column.levels for column in mixed])
    error = float(share @ np.array([column.error for column in mixed]))
    return Decision(
        share @ np.array([column.multipliers for column in mixed]),
        mixed[int(share.argmax())].pulls,
        levels,
        error,
        float(problem.figures(levels, error).worst),
        lottery=[(float(p), column.pulls) for p, column in zip(share, mixed, strict=True)],
    )


class Columns:
    """Decisions that were tried, judged on the labelled rows; each is a column of the program."""

    def __init__(self, problem: DecisionProblem) -> None:
        self.problem = problem
        self.has_upper, self.has_lower = np.isfinite(problem.upper), np.isfinite(problem.lower)
        self.is_bounded = self.has_upper | self.has_lower
        binds = np.eye(len(problem.lower))[self.is_bounded]
        self.directions = [bind / self._size(bind) for bind in binds]
        self._tried: dict[bytes, Decision] = {}  # by their figures
        self.most_useful = np.inf
        """A decision of at most this error is more useful than one label for everybody."""

    def add(self, multipliers: Floats, constant: int | None = None) -> Decision:
        """Judges the decision of some multipliers; returns an earlier one if it decides alike."""
        limit = min(1.0, MOST_PULL / max(self._size(multipliers), 1.0))
        decision = self.problem.decide(multipliers * limit, constant)
        key = (np.round(np.append(decision.levels, decision.error), 9) + 0.0).tobytes()
        return self._tried.setdefault(key, decision)

    def add_rays(self, plain: Decision) -> None:
        """Adds the constants, and multipliers that push one level or all that are violated."""
        level, problem = plain.levels, self.problem
        for label in range(len(problem.base)):
            self.add(np.zeros_like(level), label)
        constants = [rule.error for rule in self._tried.values() if rule.constant is not None]
        self.most_useful = min(constants) - LEAST_USE
        off = level - np.clip(level, problem.lower, problem.upper)
        together = off / self._size(off)
        step = 1 + 2 * len(self.directions) * len(RAY_LENGTHS) // MOST_RAYS
        for length in RAY_LENGTHS:
            self.add(length * together)
        for direction in self.directions:
            for length in RAY_LENGTHS[::step]:
                self.add(length * direction)
                self.add(-length * direction)

    def generate(self) -> tuple[float, list[tuple[float, Decision]]]:
        """Adds columns until the mixture improves no more: its cost, and its columns' shares.

        New columns have multipliers near the dual values, and between the columns of the mixture.
        """
        chance = np.random.default_rng(0)
        for price in MIXTURE_PRICES:
            cost, quiet, radius = np.inf, 0, FIRST_RADIUS
            for turn in range(MOST_ROUNDS + 1):
                before, (cost, dual_values, mixture) = cost, self._mix(price)
                quiet = quiet + 1 if cost > before - LEAST_GAIN else 0
                if quiet == QUIET_ROUNDS or turn == MOST_ROUNDS:
                    break
                mixed = [(share, d.multipliers) for share, d in mixture if d.constant is None]
                mixed = mixed[:MOST_PAIRS]
                mean = sum((share * net for share, net in mixed), start=np.zeros_like(dual_values))
                between = 0.5 * (dual_values + mean)
                new = [dual_values, mean, between, 0.8 * dual_values, 1.2 * dual_values]
                new += [0.5 * (first + second) for (_, first), (_, second) in pairwise(mixed)]
                for _ in range(NEIGHBOURS):
                    step = np.where(self.is_bounded, chance.normal(size=len(mean)), 0.0)
                    step = radius * (step / self._size(step))
                    new += [dual_values + step, mean + step]
                for multipliers in new:
                    self.add(multipliers)
                radius *= SHRINKING
        return cost, mixture

    def _mix(self, price: float) -> tuple[float, Floats, list[tuple[float, Decision]]]:
        """Solves the linear program: its value, the net multipliers, and the columns' shares.

        The last variable is the largest violation, so that there always is a solution.
        """
        problem, (tried, levels, figures) = self.problem, self.tried()
        n, levels = len(tried), levels.T
        rows = np.concatenate([levels[self.has_upper], -levels[self.has_lower]])
        solution: Any = linprog(
            np.append(figures.error, price),
            A_ub=np.column_stack([rows, -np.ones(len(rows))]),
            b_ub=np.concatenate([problem.upper[self.has_upper], -problem.lower[self.has_lower]]),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            method="highs",
        )
        net = np.zeros(len(levels))
        above, below = np.split(-solution.ineqlin.marginals, [int(self.has_upper.sum())])
        net[self.has_upper] += above
        net[self.has_lower] -= below
        pairs = zip(solution.x[:n].tolist(), tried, strict=True)
        return float(solution.fun), net, [pair for pair in pairs if pair[0] > LEAST_SHARE]

    def search(self, mixture: Sequence[tuple[float, Decision]]) -> None:
        """Adds single decisions: the best points of lines that start at the best column.

        A line changes the multiplier of one constraint, or leads to a decision of the mixture. All
        its decisions are judged exactly.
        """
        problem = self.problem
        mixed = [rule.multipliers for _, rule in mixture if rule.constant is None][:MOST_PAIRS]
        for penalty in SEARCH_PENALTIES:
            tried, _, figures = self.tried()
            merit = figures.penalised(penalty)
            merit[[rule.constant is not None for rule in tried]] = np.inf
            least, net = float(merit.min()), tried[int(merit.argmin())].multipliers
            for _ in range(SEARCH_SWEEPS):
                before = least
                for direction in [*self.directions, *(other - net for other in mixed)]:
                    start, end = net, MOST_PULL / self._size(direction)
                    scores, slopes = (
                        added_scores(0.0, problem.probabilities, problem.pulls(point))
                        for point in (start, direction)
                    )
                    line = best_on_line(
                        problem,
                        problem.base + scores,
                        slopes,
                        penalty,
                        most_error=self.most_useful,
                        window=(-end, end),
                    )
                    for t, _ in line:
                        point = self.add(start + t * direction)
                        here = problem.figures(point.levels, point.error)
                        merit_here = float(here.penalised(penalty))
                        if point.constant is None and merit_here < least - LEAST_GAIN:
                            net, least = point.multipliers, merit_here
                if least > before - LEAST_GAIN:
                    break

    def tried(self) -> tuple[list[Decision], Floats, Figures]:
        """All columns, (columns, J) their levels, and their figures."""
        tried = list(self._tried.values())
        levels = np.array([rule.levels for rule in tried])
        errors = np.array([rule.error for rule in tried])
        return tried, levels, self.problem.figures(levels, errors)

    def _size(self, multipliers: Floats) -> float:
        """The largest change of a cell's weight, or a tiny number if none changes."""
        sizes = [float(np.abs(pull).max()) for pull in self.problem.pulls(multipliers)]
        return max(*sizes, LEAST_SHARE)
