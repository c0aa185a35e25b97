"""A linear program over a few decisions, and the single decision nearest to its solution.

A column is the decision of some multipliers: its error and its levels on the labelled rows. The
program mixes columns so that all levels are within their bounds at the least error, and its dual
values are the multipliers of the next columns. The optimum mixes at most J + 1 decisions. Where one
decision alone keeps the bounds at about the same cost, it is the answer.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from fairgrad import dual
from fairgrad.constraints import warn_of_undefined
from fairgrad.decisions.judging import DecisionLine, JudgedCells, JudgedDecisions, largest
from fairgrad.groups import GroupedRows
from fairgrad.measures import LargeGroups, On, constraints_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.groups import Floats, Ints

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
) -> list[JudgedCells]:
    """Each of one or several measures with the constraints on the cells of its own attributes.

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
    for one in _flat(measure if large is None else large.measure):
        is_on = isinstance(one, On)
        attributes = (*one.compared, *one.strata) if is_on else rows.groups.attributes
        coarse = rows.groups.marginal(*attributes)
        group = rows.groups.parents(*attributes)[rows.group]
        among = one if large is None else replace(large, measure=one)
        constraints = constraints_of(among, coarse, y_desirable=y_desirable)
        grouped.append((constraints, GroupedRows(coarse, rows.label, group, rows.weight)))
    ends = np.cumsum([len(constraints.c0) for constraints, _ in grouped])
    try:
        slack = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (ends[-1],))
    except (TypeError, ValueError):
        raise ValueError(
            f"epsilon: expected a number or one per constraint ({ends[-1]}), got {epsilon!r}."
        ) from None
    warn_of_undefined([constraints for constraints, _ in grouped])
    return [
        JudgedCells(constraints.slacken_for(people, room).select(constraints.is_defined), people)
        for (constraints, people), room in zip(grouped, np.split(slack, ends[:-1]), strict=True)
    ]


def _flat(measure: Any) -> Iterator[Any]:
    if not isinstance(measure, list):
        yield measure
        return
    if not measure:
        raise ValueError("fairness_measure: expected at least one measure, got an empty list.")
    for one in measure:
        yield from _flat(one)


def added_scores(probability: Floats, pull: Floats) -> Floats:
    """(L, n) ``sum_r (w_(l,r) - 1) P(y = l, s = r | x)``: what weights add to the labels' scores.

    Costs of predicted labels take from them: ``-sum_(y,r) pull[l, y, r] P(y, s = r | x)``.

    Args:
        probability: (L, G, n) of the cells.
        pull: (L, G) the weights less 1, or (L, L, G) what is added to the costs of predicting each
            label (the first axis) in each cell.
    """
    if pull.ndim == 3:
        n_labels, n_groups, n = probability.shape
        by_cell = probability.reshape(n_labels * n_groups, n)
        return -(pull.reshape(n_labels, n_labels * n_groups) @ by_cell)
    return np.stack([weights @ cells for weights, cells in zip(pull, probability, strict=True)])


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
    scores = mean if costs is None else -(costs.T @ mean)
    for probability, pull in zip(probabilities, pulls, strict=False):
        scores = scores + added_scores(probability, pull)
    return scores


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
    pulls: tuple[Floats, ...]
    levels: Floats
    error: float
    beyond: float
    constant: int | None = None
    lottery: tuple[tuple[float, tuple[Floats, ...]], ...] = ()


class DecisionProblem(JudgedDecisions):
    """Labelled rows, the probabilities of their cells, and the constraints.

    Args:
        label: (n,) the index of each row's label.
        weight: (n,) sample weights, or None.
        measured: one or several sets of constraints.
        probabilities: of each of them (L, G, n) ``P(y = l, s = r | x)``, r among its groups.
        costs: (L, L) of each prediction (columns) of each true label (rows); None for errors.
    """

    def __init__(
        self,
        label: Ints,
        weight: Floats | None,
        measured: Sequence[JudgedCells],
        probabilities: Sequence[Floats],
        costs: Floats | None = None,
    ) -> None:
        super().__init__(label, weight, measured, costs)
        self.probabilities = [np.ascontiguousarray(one, dtype=np.float64) for one in probabilities]
        self.base = weighted_scores(self.probabilities, (), costs)
        self._constants = [
            dual.make_constants(one.constraints, one.groups, fairness_rate=0.0) for one in measured
        ]
        self._cuts = np.cumsum([len(single.lower) for single in measured])[:-1]

    def pulls(self, net: Floats) -> tuple[Floats, ...]:
        """Of each measure (L, G) the weights less 1; (L, L, G) what the costs of labels grow by."""
        n_labels, pulls = len(self.base), []
        nets = np.split(net, self._cuts)
        for cells, constants, multiplier in zip(self.measured, self._constants, nets, strict=True):
            if cells.n_outcomes > 1:
                pull = dual.net_pulls(constants, multiplier).reshape(n_labels, n_labels, -1)
            else:
                pull = dual.net_weights(constants, multiplier) - 1.0
                by_label = cells.constraints.by_label
                pull = np.tile(
                    pull.reshape(-1, cells.groups.n_groups), (1 if by_label else n_labels, 1)
                )
            pulls.append(pull)
        return tuple(pulls)

    def added(self, net: Floats) -> Floats:
        """(L, n) what net multipliers add to the scores."""
        pairs = zip(self.probabilities, self.pulls(net), strict=True)
        return sum((added_scores(*pair) for pair in pairs), start=np.zeros_like(self.base))

    def scores(self, net: Floats) -> Floats:
        """(L, n) the scores whose argmax is the decision."""
        return self.base + self.added(net)

    def decide(self, net: Floats) -> Decision:
        """The decisions of these multipliers, judged on the labelled rows."""
        return self._decision(net, self.pulls(net), largest(self.scores(net)))

    def decide_constant(self, label: int) -> Decision:
        """One label for everybody, written as weights: all others get scores below any."""
        net = np.zeros(len(self.lower))
        pulls = tuple(np.zeros_like(pull) for pull in self.pulls(net))
        far = 2.0 if self.costs is None else 2.0 + float(np.ptp(self.costs))
        others = np.arange(len(self.base)) != label
        if self.costs is not None:  # weights reach only labels that may be true
            pulls = (as_costs(pulls[0]), *pulls[1:])
        pulls[0][others] = -far if pulls[0].ndim == 2 else far
        return self._decision(net, pulls, np.full(len(self.label), label), constant=label)

    def _decision(
        self, net: Floats, pulls: tuple[Floats, ...], decided: Ints, constant: int | None = None
    ) -> Decision:
        counted, error = self.judged(decided)
        levels = self.levels(counted)
        return Decision(net, pulls, levels, error, float(self.violations(levels).max()), constant)


def solve(problem: DecisionProblem, *, lottery: bool = False) -> Decision:
    """Finds the decision with the least error that keeps the bounds on the labelled rows.

    If the plain decision keeps them, it is the answer. If no useful single decision keeps them,
    the answer is the one with the best balance of error and violation, and its `beyond` says what
    it misses. The result does not depend on chance.

    Args:
        problem: what to solve.
        lottery: whether several decisions may be mixed. The levels and the error are then expected
            values.

    Example:
        >>> from fairgrad.decisions.judging import JudgedCells
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
        >>> cells = JudgedCells(constraints, rows)
        >>> decision = solve(DecisionProblem(y, None, [cells], [probability]))
        >>> bool(np.abs(decision.levels).max() <= 0.02)
        True
    """
    columns = Columns(problem)
    plain = columns.add(np.zeros(len(problem.lower)))
    if not plain.beyond:
        return plain
    columns.add_rays(plain)
    cost, shares = columns.generate()
    columns.search(shares)
    keeps = columns.best_within(cost, WORTH[lottery])
    if keeps is not None:
        return keeps
    return columns.mixture(shares) if lottery else columns.best()


class Columns:
    """Decisions that were tried, judged on the labelled rows; each is a column of the program."""

    def __init__(self, problem: DecisionProblem) -> None:
        self.problem, self.lower, self.upper = problem, problem.lower, problem.upper
        self.has_upper, self.has_lower = np.isfinite(self.upper), np.isfinite(self.lower)
        binds = np.eye(len(self.lower))[self.has_upper | self.has_lower]
        self.directions = [self._scaled(bind) for bind in binds]
        self.tried: list[Decision] = []
        self._places: dict[bytes, int] = {}

    def add(self, multipliers: Floats) -> Decision:
        """Judges the decision of some multipliers; returns an earlier one if it decides alike."""
        limit = min(1.0, MOST_PULL / max(self._size(multipliers), 1.0))
        return self._known(self.problem.decide(multipliers * limit))

    def _known(self, decision: Decision) -> Decision:
        key = (np.round(np.append(decision.levels, decision.error), 9) + 0.0).tobytes()
        place = self._places.setdefault(key, len(self.tried))
        if place == len(self.tried):
            self.tried.append(decision)
        return self.tried[place]

    @property
    def errors(self) -> Floats:
        """(columns,) the share of the rows decided wrongly, or the mean of their costs."""
        return np.array([one.error for one in self.tried])

    def violations(self) -> Floats:
        """(columns, J) by how much levels are beyond their bounds."""
        return self.problem.violations(np.array([one.levels for one in self.tried]))

    def add_rays(self, plain: Decision) -> None:
        """Adds the constants, and multipliers that push one level or all that are violated."""
        for label in range(len(self.problem.base)):
            self._known(self.problem.decide_constant(label))
        level = plain.levels
        together = self._scaled(level - np.clip(level, self.lower, self.upper))
        step = 1 + 2 * len(self.directions) * len(RAY_LENGTHS) // MOST_RAYS
        for length in RAY_LENGTHS:
            self.add(length * together)
        for direction in self.directions:
            for length in RAY_LENGTHS[::step]:
                self.add(length * direction)
                self.add(-length * direction)

    def generate(self) -> tuple[float, Floats]:
        """Adds columns until the mixture improves no more: its cost, and the columns' shares."""
        chance = np.random.default_rng(0)
        cost, shares = np.inf, np.ones(0)
        for price in MIXTURE_PRICES:
            cost, shares, dual = self._mix(price)
            quiet, radius = 0, FIRST_RADIUS
            for _ in range(MOST_ROUNDS):
                for multipliers in self._candidates(shares, dual, radius, chance):
                    self.add(multipliers)
                before, radius = cost, radius * SHRINKING
                cost, shares, dual = self._mix(price)
                quiet = quiet + 1 if cost > before - LEAST_GAIN else 0
                if quiet == QUIET_ROUNDS:
                    break
        return cost, shares

    def _candidates(
        self, shares: Floats, dual: Floats, radius: float, chance: np.random.Generator
    ) -> Iterator[Floats]:
        """Multipliers near the dual values, and between the columns of the mixture."""
        mixed = self._mixed(shares)
        mean = sum((share * multiplier for multiplier, share in mixed), start=np.zeros_like(dual))
        yield from (dual, mean, 0.5 * (dual + mean), 0.8 * dual, 1.2 * dual)
        for (one, _), (two, _) in pairwise(mixed):
            yield 0.5 * (one + two)
        for _ in range(NEIGHBOURS):
            step = radius * self._scaled(chance.normal(size=len(dual)))
            yield from (dual + step, mean + step)

    def _mixed(self, shares: Floats) -> list[tuple[Floats, float]]:
        """Multipliers and shares of the first columns of the mixture, constants left out."""
        mixed = [
            (one.multipliers, float(share))
            for one, share in zip(self.tried, shares, strict=False)
            if one.constant is None and share > LEAST_SHARE
        ]
        return mixed[:MOST_PAIRS]

    def _mix(self, price: float) -> tuple[float, Floats, Floats]:
        """Solves the linear program: its value, the columns' shares, and the net multipliers.

        The last variable is the largest violation, so that there always is a solution.
        """
        levels = np.array([one.levels for one in self.tried]).T
        rows = np.concatenate([levels[self.has_upper], -levels[self.has_lower]])
        n = levels.shape[1]
        solution: Any = linprog(
            np.append(self.errors, price),
            A_ub=np.column_stack([rows, -np.ones(len(rows))]),
            b_ub=np.concatenate([self.upper[self.has_upper], -self.lower[self.has_lower]]),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            method="highs",
        )
        net = np.zeros(len(levels))
        above, below = np.split(-solution.ineqlin.marginals, [int(self.has_upper.sum())])
        net[self.has_upper] += above
        net[self.has_lower] -= below
        return float(solution.fun), solution.x[:n], net

    def search(self, shares: Floats) -> None:
        """Adds single decisions: the best points of lines that start at the best column.

        A line changes the multiplier of one constraint, or leads to a decision of the mixture. All
        its decisions are judged exactly.
        """
        problem, limit, mixed = self.problem, self._most_useful(), self._mixed(shares)
        for penalty in SEARCH_PENALTIES:
            merit = self.errors + penalty * (self.violations() ** 2).sum(1)
            merit[[one.constant is not None for one in self.tried]] = np.inf
            least, net = float(merit.min()), self.tried[int(merit.argmin())].multipliers
            for _ in range(SEARCH_SWEEPS):
                before = least
                for direction in [*self.directions, *(other - net for other, _ in mixed)]:
                    slopes, end = problem.added(direction), MOST_PULL / self._size(direction)
                    line = DecisionLine(problem, problem.scores(net), slopes, (-end, end))
                    start = net
                    for t, _ in line.best(penalty, limit):
                        point = self.add(start + t * direction)
                        off = problem.violations(point.levels)
                        merit_here = point.error + penalty * float((off**2).sum())
                        if point.constant is None and merit_here < least - LEAST_GAIN:
                            net, least = point.multipliers, merit_here
                if least > before - LEAST_GAIN:
                    break

    def best_within(self, cost: float, worth: float) -> Decision | None:
        """The most accurate column that keeps the bounds, if it costs little more than the mixture.

        One label for everybody may be the answer if the mixture costs no less.
        """
        error = self.errors if cost > self._most_useful() else self._useful_error()
        error = np.where(self.violations().any(1), np.inf, error)
        place = int(error.argmin())
        return self.tried[place] if error[place] <= cost + worth else None

    def best(self) -> Decision:
        """The column with the best balance of error and largest violation."""
        merit = self._useful_error() + VIOLATION_PRICE * self.violations().max(1)
        return self.tried[int(merit.argmin())]

    def _most_useful(self) -> float:
        """The error below which a decision is more useful than one label for everybody."""
        return min(one.error for one in self.tried if one.constant is not None) - LEAST_USE

    def _useful_error(self) -> Floats:
        """(columns,) errors; infinite for columns that are not useful, unless none is."""
        is_useful = self.errors < self._most_useful()
        return np.where(is_useful, self.errors, np.inf) if is_useful.any() else self.errors

    def mixture(self, shares: Floats) -> Decision:
        """Several columns as a lottery, with expected levels and error."""
        places = np.flatnonzero(shares > LEAST_SHARE)
        share = shares[places] / shares[places].sum()
        mixed = [self.tried[int(place)] for place in places]
        levels = share @ np.array([column.levels for column in mixed])
        return Decision(
            share @ np.array([column.multipliers for column in mixed]),
            mixed[int(share.argmax())].pulls,
            levels,
            float(share @ [column.error for column in mixed]),
            float(self.problem.violations(levels).max()),
            lottery=tuple((float(p), column.pulls) for p, column in zip(share, mixed, strict=True)),
        )

    def _scaled(self, multipliers: Floats) -> Floats:
        """Multipliers of binding constraints, so that the largest change of a weight is 1."""
        bounded = np.where(self.has_upper | self.has_lower, multipliers, 0.0)
        scaled: Floats = bounded / self._size(bounded)
        return scaled

    def _size(self, multipliers: Floats) -> float:
        """The largest change of a cell's weight, or a tiny number if none changes."""
        sizes = [float(np.abs(pull).max()) for pull in self.problem.pulls(multipliers)]
        return max(*sizes, LEAST_SHARE)
