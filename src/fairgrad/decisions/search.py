"""The search for multipliers whose decisions are fair, and as accurate as can be, on labelled rows.

Probabilities are never perfectly calibrated, and where features nearly reveal s all weights of a
group vanish at the optimum, so that the smallest differences decide. So the dual is only a start;
what counts are the levels and errors of labelled rows, along lines that are searched exactly
(`fairgrad.decisions.lines`). If the constraints leave one direction, as of two groups and one rate,
one line is all there is, and the answer is the best there is. Otherwise lines go in many directions
through the points where the weights of a group vanish: between them they cover all weights of that
group, at every scale.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.decisions.lines import DecisionLine
from fairgrad.decisions.problem import TOLERANCE
from fairgrad.decisions.smooth import level_slopes, soften, solve_dual

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.decisions.problem import Decision, DecisionProblem
    from fairgrad.groups import Floats

COOLING = (
    (0.1, 10.0),
    (0.05, 30.0),
    (0.02, 100.0),
    (0.01, 300.0),
    (0.005, 300.0),
    (0.002, 1000.0),
)
"""Temperatures of softened decisions and penalties of unfairness, one after the other."""

PENALTIES = (30.0, 1000.0)
"""Penalties of the first sweeps; the last is that of all others."""

FANS = ((10, 1.0), (5, 0.2), (5, 0.04))
"""Fans of lines: first all over, then closer and closer to the best; how many, and how wide."""

NEWTON_TEMPERATURES = (0.1, 0.03, 0.01)
"""Of softened decisions whose slopes are taken, in parts of the size of a row's scores."""

DAMPING = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""How much Newton's steps hold back where levels hardly move, in parts of where they move most."""

NEWTON_STEPS = 12
REPAIRS = (1e3, 1e6)
"""Penalties of steps towards the bounds; in the end the bounds are all that counts."""

NEAR = 0.005
"""Levels this close to a bound are looked after when others are moved."""

ROUNDS = {True: 6, False: 1}
"""Sweeps at the end, in a plane and in larger spaces; fewer if the bounds are kept and two of them
find nothing better."""

ENOUGH = 1e-12
"""Differences below are rounding."""


def solve(problem: DecisionProblem, near: Floats | None = None) -> Decision:
    """Multipliers whose decisions keep the bounds on the labelled rows, at the least error.

    If the plain decisions keep them, they are the answer. Otherwise it is the best that is found,
    by the largest violation of a bound, then by the error. Nothing of it is random. If one label
    for everybody is as fair and as accurate, and one of both is better, that is the answer.

    Args:
        problem: what to solve.
        near: (J,) the answer to the same problem with tighter bounds, to start from: the search is
            then a short one.

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
        >>> constraints = constraints_of("demographic_parity", rows.groups)
        >>> cells = ConstrainedCells(constraints, rows, probability)
        >>> decision = solve(DecisionProblem(y, None, [cells]))
        >>> bool(np.abs(decision.levels).max() <= 0.001)
        True
    """
    search = _Search(problem)
    if search.best.beyond <= 0 or not len(search.space):
        return search.best
    zero = np.zeros(problem.n_levels)
    if len(search.space) == 1:
        search.line(problem.base, zero, search.space[0], PENALTIES[-1])
        return search.found()
    if near is not None:
        net = search.repair(near)
        for penalty in PENALTIES:
            search.sweep(net, penalty)
            net = search.best.multipliers
        return search.found()
    in_plane = len(search.space) == 2
    net = zero
    if not in_plane:
        net = solve_dual(problem, [COOLING[0][0]])[0]
        for temperature, penalty in COOLING:
            net = soften(problem, net, temperature, penalty)
            search.value(net, penalty)
        net = search.repair(net)
    for penalty in PENALTIES:
        net = search.sweep(net, penalty)
    quiet = 0
    for _ in range(ROUNDS[in_plane]):
        before = search.best
        is_fair = before.beyond <= 0
        if is_fair and quiet == 2:
            break
        start = before.multipliers if is_fair else search.repair(before.multipliers)
        search.sweep(start, PENALTIES[-1])
        quiet = quiet + 1 if search.best is before else 0
    return search.found()


class _Search:
    """What was found so far, and the ways to find more."""

    def __init__(self, problem: DecisionProblem) -> None:
        self.problem = problem
        self.best = problem.decide(np.zeros(problem.n_levels))
        self.chance = np.random.default_rng(0)

    def found(self) -> Decision:
        """The best, judged as it is, not as the lines say; or a constant that dominates it."""
        best = self.problem.decide(self.best.multipliers)
        for label in range(len(self.problem.base)):
            constant = self.problem.decide_constant(label)
            as_good = constant.beyond <= best.beyond and constant.error <= best.error
            if as_good and (constant.beyond, constant.error) != (best.beyond, best.error):
                best = constant
        return best

    def offer(self, net: Floats, worst: float, error: float) -> None:
        """Keeps these multipliers if they are the best so far, by violation, then by error."""
        best = self.best
        fairer, as_fair = worst < best.beyond - ENOUGH, worst <= best.beyond + ENOUGH
        if fairer or (as_fair and error < best.error - ENOUGH):
            self.best = best._replace(multipliers=net, error=error, beyond=worst)

    def value(self, net: Floats, penalty: float) -> float:
        """The penalised error of multipliers, which are kept if they are the best so far."""
        cells, error = self.problem.judged(self.problem.scores(net).argmax(0))
        figures = self.problem.figures(cells, np.array([error]))
        self.offer(net, float(figures.worst[0]), error)
        return float(figures.penalised(penalty)[0])

    def line(
        self, scores: Floats, net: Floats, direction: Floats, penalty: float
    ) -> tuple[float, Floats]:
        """The least penalised error along a line, and its multipliers."""
        size = max(float(np.abs(pull).max()) for pull in self.problem.pulls(direction))
        if not size > 0:
            return np.inf, net
        direction = direction / size
        found = DecisionLine(self.problem, scores, self.problem.added(direction)).best(penalty)
        if not found:
            return np.inf, net
        (t, fairest), (moved, own) = found
        self.offer(net + t * direction, float(fairest.worst), float(fairest.error))
        return float(own.penalised(penalty)), net + moved * direction

    def sweep(self, net: Floats, penalty: float) -> Floats:
        """Goes over all groups once, from some multipliers to those of less penalised error."""
        old, value = net, self.value(net, penalty)
        for group in self.groups:
            value, net = self._fan(group.vanish(net), group.directions, penalty, value, net)
        anywhere = self.chance.normal(size=len(self.space)) @ self.space
        for direction in (net - old, anywhere):
            found, there = self.line(self.problem.scores(net), net, direction, penalty)
            if found < value - ENOUGH:
                value, net = found, there
        return net

    def _fan(
        self, centre: Floats, space: Floats, penalty: float, value: float, net: Floats
    ) -> tuple[float, Floats]:
        """The best of what there is and of lines through a centre, ever closer to the best."""
        scores = self.problem.scores(centre)
        best, least = np.zeros(len(space)), np.inf
        for n, spread in FANS if len(space) > 1 else [(1, 1.0)]:
            for direction in self._directions(len(space), n, best, spread):
                found, there = self.line(scores, centre, direction @ space, penalty)
                if found < least:
                    best, least = direction, found
                if found < value - ENOUGH:
                    value, net = found, there
        return value, net

    def _directions(self, m: int, n: int, best: Floats, spread: float) -> Floats:
        """(n, m) directions: all over the space, or near the best one."""
        if m == 1:
            return np.ones((1, 1))
        if m == 2:
            middle = np.arctan2(best[1], best[0]) if spread < 1 else 0.0
            angle = middle + np.pi * spread * ((np.arange(n) + self.chance.random()) / n - 0.5)
            return np.stack([np.cos(angle), np.sin(angle)], 1)
        found = self.chance.normal(size=(n, m))
        found = best + spread * found if spread < 1 else found
        directions: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
        return directions

    def repair(self, net: Floats) -> Floats:
        """Damped Newton steps towards the bounds, by the slopes of softened decisions.

        The length of each step is searched exactly, on the decisions as they are.
        """
        for penalty in REPAIRS:
            value = self.value(net, penalty)
            for _ in range(NEWTON_STEPS):
                before = value
                value, net = self._newton(net, penalty, value)
                if value > 0.99 * before:
                    break
        return net

    def _newton(self, net: Floats, penalty: float, value: float) -> tuple[float, Floats]:
        """The best of steps that are softened and damped more or less.

        Rows are softened by their own scale, the size of their scores: near a point where all
        weights of a group vanish, its rows have scores far smaller than those of other groups. And
        a multiplier is scaled by what it does to the levels.
        """
        scores = self.problem.scores(net)
        change, is_near = self._wanted(scores)
        if not is_near.any():
            return value, net
        best, size = net, np.abs(scores).max(0) + ENOUGH
        for temperature in NEWTON_TEMPERATURES:
            slopes = level_slopes(self.problem, scores, temperature * size)[is_near]
            norm = np.linalg.norm(slopes, axis=0)
            scale = (norm > ENOUGH) / np.where(norm > ENOUGH, norm, 1.0)
            left, stretch, right = np.linalg.svd(slopes * scale, full_matrices=False)
            along = left.T @ change[is_near]
            for damping in DAMPING if len(self.space) > 2 else DAMPING[-1:]:
                shrunk = stretch / (stretch**2 + (damping * max(stretch[0], ENOUGH)) ** 2)
                direction = scale * (right.T @ (shrunk * along))
                found, there = self.line(scores, net, direction, penalty)
                if found < value - ENOUGH:
                    value, best = found, there
        return value, best

    def _wanted(self, scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(J,) by how much levels should change, and which are beyond their bounds or near them.

        A level is to come a little inside its bounds, so that small moves of others do not break
        it at once.
        """
        problem = self.problem
        level = problem.levels(problem.judged(scores.argmax(0))[0])
        lower, upper = (
            np.concatenate([getattr(part, side) for part in problem.parts])
            for side in ("lower", "upper")
        )
        inside = np.minimum(0.5 * TOLERANCE, 0.25 * (upper - lower))
        change = np.clip(level, lower + inside, upper - inside) - level
        is_near = np.minimum(upper - level, level - lower) < NEAR
        return change, is_near

    @cached_property
    def groups(self) -> list[_GroupWeights]:
        """Of all groups whose weights can be moved."""
        found = []
        for part in self.problem.pull_matrices:
            by_group = np.moveaxis(part, -2, 0).reshape(part.shape[-2], -1, part.shape[-1])
            found += [
                _GroupWeights(matrix, are_costs=part.ndim > 3)
                for matrix in by_group
                if np.abs(matrix).max() > ENOUGH
            ]
        return found

    @cached_property
    def space(self) -> Floats:
        """(d, J) directions that between them move all that can be moved."""
        n_levels = self.problem.n_levels
        return _row_space(
            np.concatenate([own.reshape(-1, n_levels) for own in self.problem.pull_matrices])
        )


class _GroupWeights:
    """The weights of one group by the multipliers: ``1 + matrix @ lambda``, (L,).

    Costs of predicted labels never vanish together, so that lines go through where they start.
    """

    def __init__(self, matrix: Floats, *, are_costs: bool = False) -> None:
        self.matrix, self.are_costs = matrix, are_costs
        self.inverse: NDArray[Any] = np.linalg.pinv(matrix, rcond=1e-9)
        self.directions: NDArray[Any] = _row_space(matrix)
        if (
            len(self.directions) == len(matrix) and not are_costs
        ):  # each moves the weight of a label
            self.directions = self.inverse.T.copy()

    def vanish(self, net: Floats) -> Floats:
        """The multipliers nearest to these for which all weights of the group are 0."""
        if self.are_costs:
            return net
        there: Floats = net - self.inverse @ (1.0 + self.matrix @ net)
        return there


def _row_space(matrix: Floats) -> Floats:
    """(d, J) an orthonormal basis of the rows; none if all are 0."""
    _, size, across = np.linalg.svd(matrix, full_matrices=False)
    basis: Floats = across[size > max(1e-9 * float(size.max()), ENOUGH)]
    return basis
