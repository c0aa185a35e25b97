"""The best response as a linear program over a few decisions, solved by column generation.

A column is the decision ``argmax_l sum_r w_(l,r) P(y = l, s = r | x)`` of some multipliers, with
the levels and the error it has on the labelled rows. The linear program mixes columns so that all
levels are within their bounds at the least error. Its dual values are multipliers again: they and
their neighbours are the next columns, until the mixture improves no more.

A mixture is a lottery: each row is decided by one of its columns, drawn at random. Without a
lottery one decision is used, the best of all columns after a local search.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog

from fairgrad.decisions.problem import Decision, largest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.decisions.problem import DecisionProblem
    from fairgrad.groups import Floats, Ints

RAY_LENGTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Lengths of the first multipliers, in the largest change of a cell's weight."""

MOST_RAYS = 300
"""Columns on rays. With many constraints fewer lengths are tried."""

MOST_ROUNDS, QUIET_ROUNDS = 12, 2
"""Rounds of column generation at each price, and rounds without improvement that end them."""

NEIGHBOURS, MOST_PAIRS, FIRST_RADIUS, SHRINKING = 4, 8, 0.3, 0.7
"""Random neighbours of the multipliers and midpoints of mixed columns in each round, and how far
away the neighbours are."""

LEAST_GAIN = 1e-5
"""An improvement of the linear program below is none."""

MIXTURE_PRICES = (0.3, 1.0, 3.0, 100.0)
"""Error that the linear program accepts to reduce the largest violation by 1, one after the other.
A price bounds the multipliers, so that the first columns are moderate ones."""

SEARCH_PRICES = (1.0, 10.0)
"""The same for single decisions in the local search, and for the sum of their violations."""

VIOLATION_PRICE = 10.0
"""The same for the single decision that is chosen."""

SEARCH_STEPS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
"""Steps of the local search for a single decision, in the largest change of a cell's weight."""

BETWEEN = 16
"""Steps between two columns of the mixture."""

SEARCH_SWEEPS = 4
"""How often the local search goes over all constraints at each price."""

WORTH = {False: 0.02, True: 0.002}
"""A decision within the bounds is used if it costs at most this much more than the mixture: without
a lottery, and with one."""

LEAST_USE = 0.001
"""A decision is useful if it is more accurate than one label for everybody by more than this."""

LEAST_SHARE = 1e-9
"""Columns with smaller shares are not in the mixture."""


def solve(
    problem: DecisionProblem, columns: Columns | None = None, *, lottery: bool = False
) -> Decision:
    """Finds the decision with the least error that keeps the bounds on the labelled rows.

    If the plain decision keeps them, it is the answer. If no useful single decision keeps them,
    the answer is the one with the best balance of error and violation, and its `beyond` says what
    it misses. The result does not depend on chance.

    Args:
        problem: what to solve.
        columns: of the same problem with other bounds, to reuse the decisions tried there.
        lottery: whether several decisions may be mixed. The levels and the error are then expected
            values.

    Example:
        >>> from fairgrad.decisions import ConstrainedCells, DecisionProblem
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
        >>> cells = ConstrainedCells(constraints, rows, probability)
        >>> decision = solve(DecisionProblem(y, None, [cells]))
        >>> bool(np.abs(decision.levels).max() <= 0.02)
        True
    """
    columns = Columns() if columns is None else columns
    columns.use(problem)
    plain = columns.add(np.zeros(problem.n_levels))
    if not columns.violations(plain).any():
        return columns.decision(plain)
    columns.add_rays(plain)
    cost, shares = columns.generate()
    columns.search(shares)
    keeps = columns.best_within(cost, WORTH[lottery])
    if keeps is not None:
        return columns.decision(keeps)
    return columns.mixture(shares) if lottery else columns.decision(columns.best())


class Columns:
    """Decisions that were tried, with their errors and levels on the labelled rows.

    Attributes:
        multipliers: of each column; None for one label for everybody.
        constant: of each column the label for everybody, or None.
        levels: of each column, (J,).
        error: of each column.
    """

    def __init__(self) -> None:
        self.multipliers: list[Floats | None] = []
        self.constant: list[int | None] = []
        self.levels: list[Floats] = []
        self.error: list[float] = []
        self._places: dict[bytes, int] = {}

    def use(self, problem: DecisionProblem) -> None:
        """Takes the bounds of a problem."""
        self.problem = problem
        self.lower, self.upper, self.binds = (
            np.concatenate([getattr(part, name) for part in problem.parts])
            for name in ("lower", "upper", "binds")
        )

    def add(self, multipliers: Floats | None, constant: int | None = None) -> int:
        """Judges a decision and returns the place of its column, which may be an earlier one."""
        if multipliers is None:
            decided = np.full(len(self.problem.label), constant)
        else:
            decided = largest(self.problem.scores(multipliers))
        return self._judge(decided, multipliers, constant)

    def _judge(self, decided: Ints, multipliers: Floats | None, constant: int | None = None) -> int:
        counted, error = self.problem.judged(decided)
        levels = self.problem.levels(counted)
        key = (np.round(np.append(levels, error), 9) + 0.0).tobytes()
        place = self._places.setdefault(key, len(self.error))
        if place == len(self.error):
            self.multipliers.append(multipliers)
            self.constant.append(constant)
            self.levels.append(levels)
            self.error.append(error)
        return place

    def violations(self, place: int | slice = slice(None)) -> Floats:
        """(columns, J) by how much levels are beyond their bounds, or (J,) of one column."""
        levels = np.asarray(self.levels[place])
        off: Floats = np.maximum(np.maximum(levels - self.upper, self.lower - levels), 0.0)
        return off

    def add_rays(self, plain: int) -> None:
        """Adds the constants, and multipliers that push one level or all that are violated."""
        for label in range(len(self.problem.base)):
            self.add(None, label)
        level = self.levels[plain]
        together = self._scaled(level - np.clip(level, self.lower, self.upper))
        directions = [*self._directions(), *(-own for own in self._directions())]
        step = 1 + len(directions) * len(RAY_LENGTHS) // MOST_RAYS
        lengths = RAY_LENGTHS[::step]
        for length in RAY_LENGTHS:
            self.add(length * together)
        for direction in directions:
            for length in lengths:
                self.add(length * direction)

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
        mean = sum((share * own for own, share in mixed), start=np.zeros_like(dual))
        yield from (dual, mean, 0.5 * (dual + mean), 0.8 * dual, 1.2 * dual)
        for (one, _), (two, _) in pairwise(mixed[:MOST_PAIRS]):
            yield 0.5 * (one + two)
        for _ in range(NEIGHBOURS):
            step = radius * self._scaled(chance.normal(size=len(dual)))
            yield from (dual + step, mean + step)

    def _mixed(self, shares: Floats) -> list[tuple[Floats, float]]:
        """The multipliers of the mixture, constants left out, and their shares."""
        return [
            (own, float(share))
            for own, share in zip(self.multipliers, shares, strict=False)
            if own is not None and share > LEAST_SHARE
        ]

    def _mix(self, price: float) -> tuple[float, Floats, Floats]:
        """Solves the linear program: its value, the columns' shares, and the net multipliers.

        The last variable is the largest violation, so that there always is a solution.
        """
        levels = np.array(self.levels).T
        has_upper, has_lower = (self.binds & np.isfinite(own) for own in (self.upper, self.lower))
        rows = np.concatenate([levels[has_upper], -levels[has_lower]])
        n = levels.shape[1]
        found: Any = linprog(
            np.append(self.error, price),
            A_ub=np.column_stack([rows, -np.ones(len(rows))]),
            b_ub=np.concatenate([self.upper[has_upper], -self.lower[has_lower]]),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            method="highs",
        )
        net = np.zeros(len(levels))
        above, below = np.split(-found.ineqlin.marginals, [int(has_upper.sum())])
        net[has_upper] += above
        net[has_lower] -= below
        return float(found.fun), found.x[:n], net

    def search(self, shares: Floats) -> None:
        """Looks for single decisions: between the columns of the mixture, then around the best.

        Around the best it goes along the multiplier of one constraint at a time.
        """
        mixed = [own for own, _ in self._mixed(shares)]
        for one, two in pairwise(mixed[: MOST_PAIRS + 1]):
            for part in np.arange(1, BETWEEN) / BETWEEN:
                self.add((1.0 - part) * one + part * two)
        movable = [i for i, net in enumerate(self.multipliers) if net is not None]
        directions = self._directions()
        for first_price in SEARCH_PRICES:
            best = min(movable, key=lambda place: self._merit(place, first_price))
            for price in SEARCH_PRICES[SEARCH_PRICES.index(first_price) :]:
                for _ in range(SEARCH_SWEEPS):
                    before = best
                    for direction in directions:
                        best = self._search_line(best, direction, price)
                    if best == before:
                        break

    def _search_line(self, place: int, direction: Floats, price: float) -> int:
        """The best column among steps along a direction, or the one it starts from."""
        net = self.multipliers[place]
        assert net is not None  # noqa: S101 - for type checkers
        scores, slopes = self.problem.scores(net), self.problem.added(direction)
        steps = [sign * size for size in SEARCH_STEPS for sign in (1.0, -1.0)]
        tried = [
            self._judge(largest(scores + step * slopes), net + step * direction) for step in steps
        ]
        return min([place, *tried], key=lambda place: self._merit(place, price))

    def _merit(self, place: int, price: float) -> float:
        """The error and the priced sum of the violations of a column."""
        return self.error[place] + price * float(self.violations(place).sum())

    def best_within(self, cost: float, worth: float) -> int | None:
        """The most accurate column that keeps the bounds, if it is worth it.

        Args:
            cost: of the mixture. If one label for everybody costs no more, it may be the answer.
            worth: how much more a single decision may cost; None if all cost more.
        """
        error = np.array(self.error) if cost > self._most_useful() else self._useful_error()
        error = np.where(self.violations().any(1), np.inf, error)
        place = int(error.argmin())
        return place if error[place] <= cost + worth else None

    def best(self) -> int:
        """The column with the best balance of error and largest violation."""
        merit = self._useful_error() + VIOLATION_PRICE * self.violations().max(1)
        return int(merit.argmin())

    def _most_useful(self) -> float:
        """The error below which a decision is more useful than one label for everybody."""
        constants = [i for i, label in enumerate(self.constant) if label is not None]
        return min(self.error[i] for i in constants) - LEAST_USE

    def _useful_error(self) -> Floats:
        """(columns,) errors; infinite for columns that are not useful, unless none is."""
        error = np.array(self.error)
        is_useful = error < self._most_useful()
        return np.where(is_useful, error, np.inf) if is_useful.any() else error

    def decision(self, place: int) -> Decision:
        """One column as a decision."""
        multipliers, constant = self.multipliers[place], self.constant[place]
        if multipliers is None:
            assert constant is not None  # noqa: S101 - for type checkers
            return self.problem.decide_constant(constant)
        return self.problem.decide(multipliers)

    def mixture(self, shares: Floats) -> Decision:
        """Several columns as a lottery, with expected levels and error."""
        places = np.flatnonzero(shares > LEAST_SHARE)
        share = shares[places] / shares[places].sum()
        parts = [self.decision(int(place)) for place in places]
        levels = share @ np.array([part.levels for part in parts])
        off = np.maximum(np.maximum(levels - self.upper, self.lower - levels), 0.0)
        return Decision(
            share @ np.array([part.multipliers for part in parts]),
            parts[int(share.argmax())].pulls,
            levels,
            float(share @ [part.error for part in parts]),
            float(off.max()),
            lottery=tuple((float(p), part.pulls) for p, part in zip(share, parts, strict=True)),
        )

    def _directions(self) -> list[Floats]:
        """(J,) the multiplier of each constraint that can be violated."""
        return [self._scaled(own) for own in np.eye(len(self.binds))[self.binds]]

    def _scaled(self, multipliers: Floats) -> Floats:
        """Multipliers of binding constraints, so that the largest change of a weight is 1."""
        own = np.where(self.binds, multipliers, 0.0)
        size = max(float(np.abs(pull).max()) for pull in self.problem.pulls(own))
        scaled: Floats = own / size if size > 0 else own
        return scaled
