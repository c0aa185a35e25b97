"""Softened decisions, ``softmax(scores / T)``: problems with a gradient.

`solve_dual` takes the probabilities at their word, which makes a concave problem; `soften` looks at
the labels of the rows, which does not, and needs a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.decisions.problem import DecisionProblem
    from fairgrad.groups import Floats

DUAL_STEPS, SOFT_STEPS = 60, 100

PIECE = 4096
"""Rows whose derivatives are computed at a time."""


def solve_dual(
    problem: DecisionProblem, temperatures: Sequence[float], *, max_iter: int = DUAL_STEPS
) -> tuple[Floats, float]:
    """Net multipliers that solve the dual, and its value: the least error there is to have.

    Of the problem in which the probabilities are true, softened with an entropy,

        min over d  E[sum_l (P(y != l | x) d_l(x) + T d_l log d_l)]  subject to the bounds on F(d),

    where d(x) is a distribution over the labels, the dual is

        D(lambda) = sum_k p_k w_k + lambda' c0 - bounds - T E[logsumexp(scores / T)],

    concave, with the levels of ``d = softmax(scores / T)`` less the bounds as its gradient. At T
    near 0 its maximum is the error of the best randomised decisions that keep the bounds.

    Args:
        problem: whose labels are not looked at, but for the frequencies of the cells.
        temperatures: T, one after the other: each starts where the last ended.
        max_iter: steps of L-BFGS for each.
    """
    mass = [part.probability @ problem.weight for part in problem.parts]
    shapes = [part.constants.bound.shape for part in problem.parts]
    cuts = np.cumsum([np.prod(shape) for shape in shapes], dtype=np.int64)[:-1]
    total = 0.0 if problem.costs is not None else float((problem.base @ problem.weight).sum())

    def sides(flat: Floats) -> list[Floats]:
        return [own.reshape(s) for own, s in zip(np.split(flat, cuts), shapes, strict=True)]

    def net_of(flat: Floats) -> Floats:
        pairs = zip(problem.parts, sides(flat), strict=True)
        return np.concatenate([dual.net_multipliers(part.constants, own) for part, own in pairs])

    def value(flat: Floats, temperature: float) -> tuple[float, Floats]:
        net = net_of(flat)
        scores = problem.scores(net) / temperature
        level = logsumexp(scores, axis=0)
        chosen = np.exp(scores - level)
        refused = problem.weight * (1.0 - chosen)  # (L, n)
        found = total - temperature * float(problem.weight @ level)
        slopes = []
        pieces = zip(problem.parts, sides(flat), mass, problem.pulls(net), strict=True)
        for part, own, sums, pull in pieces:
            own_mass = np.where(part.mass > 0, part.mass, 1)
            if part.n_outcomes > 1:
                by_cell = part.probability.reshape(len(own_mass), -1)
                rates = ((problem.weight * chosen) @ by_cell.T / own_mass).ravel()
            else:
                missed = np.matmul(part.probability, refused[:, :, None])[:, :, 0]
                rates = part.per_cell(missed) / own_mass
                found += float((sums * pull).sum())
            slopes.append(dual.violations(part.constants, rates).ravel())
            found += float(dual.net_multipliers(part.constants, own) @ part.constraints.c0)
            found -= float((own * part.constants.bound).sum())
        return -found, -np.concatenate(slopes)

    floors = [
        np.full(shape, -np.inf) if part.constants.floor is None else part.constants.floor
        for part, shape in zip(problem.parts, shapes, strict=True)
    ]
    least = np.concatenate([floor.ravel() for floor in floors])
    multipliers, best = np.maximum(least, 0.0), np.nan
    for temperature in temperatures:
        solved = minimize(
            value,
            multipliers,
            args=(temperature,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(low, None) for low in least],
            options={"maxiter": max_iter, "maxfun": 10 * max_iter},
        )
        multipliers, best = solved.x, -float(solved.fun)
    return net_of(multipliers), best


def soften(problem: DecisionProblem, net: Floats, temperature: float, penalty: float) -> Floats:
    """Net multipliers of less penalised error on the labelled rows, decisions being softened.

    Minimises ``error + penalty * sum of squares of what levels are beyond their bounds``. The
    derivative of that by the decision of a row is the row's weight under the multipliers
    ``2 * penalty * (what is beyond)``: the method's own weights once more.

    Args:
        problem: what to solve.
        net: (J,) where to start.
        temperature: T.
        penalty: of unfairness.
    """
    matrices = [own.reshape(-1, problem.n_levels) for own in problem.pull_matrices]
    size = np.max([np.abs(own).max(0) for own in matrices], axis=0)
    moves = size > 0
    scale = moves / np.where(moves, size, 1.0)  # a step of 1 then moves a weight by about 1

    def value(scaled: Floats) -> tuple[float, Floats]:
        soft = softmax(problem.scores(scaled * scale) / temperature, axis=0)
        right = np.take_along_axis(soft, problem.label[None], axis=0)[0]
        wrong = problem.weight * (1.0 - right)
        found, row_weight = float(wrong.sum()), np.ones(len(wrong))
        costs = None  # of each label of each row, by the multipliers; only if weights do not do
        if problem.has_outcomes or problem.costs is not None:
            costs = _plain_costs(problem)
            found = float((problem.weight * soft * costs).sum())
        for part in problem.parts:
            beyond = part.beyond(part.levels(part.count_soft(soft, wrong, problem.weight)))[:, 0]
            found += penalty * float(beyond @ beyond)
            pull = dual.net_pulls(part.constants, 2.0 * penalty * beyond)
            if costs is None:
                row_weight += pull[part.cell]
            elif part.n_outcomes > 1:
                costs += pull.reshape(len(soft), -1)[:, part.cell]
            else:
                costs[problem.label, np.arange(len(wrong))] -= pull[part.cell]
        if costs is None:
            slopes = _score_slopes(problem, soft, right * row_weight / temperature)
        else:
            slopes = problem.weight * soft * (costs - (soft * costs).sum(0)) / temperature
        return found, _by_net(problem, slopes) * scale

    solved = minimize(
        value,
        net / np.where(moves, scale, 1.0),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": SOFT_STEPS, "maxcor": 20},
    )
    moved: Floats = solved.x * scale
    return moved


def _plain_costs(problem: DecisionProblem) -> Floats:
    """(L, n) what each label costs each labelled row, without multipliers."""
    if problem.costs is not None:
        costs: Floats = problem.costs.T[:, problem.label].copy()
        return costs
    labels = np.arange(len(problem.base))[:, None]
    wrong: Floats = (labels != problem.label).astype(np.float64)
    return wrong


def _by_net(problem: DecisionProblem, slopes: Floats) -> Floats:
    """(J,) derivatives by the net multipliers, from those by the scores, (L, n)."""
    found = []
    for part in problem.parts:
        per_share = part.constants.per_share
        if part.n_outcomes > 1:
            by_cell = part.probability.reshape(len(per_share), -1)
            pulls = (-(slopes @ by_cell.T) * per_share).ravel()
        else:
            own = np.matmul(part.probability, slopes[:, :, None])[:, :, 0]
            pulls = per_share * part.per_cell(own)
        found.append(part.times(pulls[:, None])[:, 0])
    return np.concatenate(found)


def level_slopes(problem: DecisionProblem, scores: Floats, temperature: float) -> Floats:
    """(J, J) derivatives of the levels of softened decisions by the net multipliers."""
    n = len(problem.label)
    soft = softmax(scores / temperature, axis=0)
    if problem.has_outcomes:
        return _outcome_slopes(problem, soft, temperature)
    right = np.take_along_axis(soft, problem.label[None], axis=0)[0]
    slopes = _score_slopes(problem, soft, right / temperature)
    found = []
    for part in problem.parts:
        member = csr_array((np.ones(n), (part.cell, np.arange(n))), shape=(len(part.mass), n))
        wrong = np.zeros((len(part.mass), problem.n_levels))
        for other, matrix in zip(problem.parts, problem.pull_matrices, strict=True):
            for label, probability in enumerate(other.probability):
                wrong += member @ (probability * slopes[label]).T @ matrix[label]
        found.append(part.levels(wrong) - part.constraints.c0[:, None])
    return np.concatenate(found)


def _outcome_slopes(problem: DecisionProblem, soft: Floats, temperature: float | Floats) -> Floats:
    """The same where some of the levels are of what is decided; piece by piece, to save memory."""
    shapes = [len(part.mass) * part.n_outcomes for part in problem.parts]
    counts = [np.zeros((size, problem.n_levels)) for size in shapes]
    share = problem.weight / temperature
    for first in range(0, len(problem.label), PIECE):
        rows = slice(first, first + PIECE)
        own, label = soft[:, rows], problem.label[rows]
        slopes = np.zeros((len(own), own.shape[1], problem.n_levels))  # of scores by multipliers
        for part, matrix in zip(problem.parts, problem.pull_matrices, strict=True):
            probability = part.probability[:, :, rows]
            if part.n_outcomes > 1:
                slopes -= np.einsum("lyrj,yrn->lnj", matrix, probability)
            else:
                slopes += np.einsum("lrj,lrn->lnj", matrix, probability)
        mean = np.einsum("ln,lnj->nj", own, slopes)
        slopes = (own * share[rows])[:, :, None] * (slopes - mean)  # of decisions
        for part, found in zip(problem.parts, counts, strict=True):
            cell, n_cells = part.cell[rows], len(part.mass)
            if part.n_outcomes > 1:
                for decided, change in enumerate(slopes):
                    np.add.at(found, decided * n_cells + cell, change)
            else:
                np.subtract.at(found, cell, slopes[label, np.arange(len(label))])
    pairs = zip(problem.parts, counts, strict=True)
    return np.concatenate([part.levels(own) - part.constraints.c0[:, None] for part, own in pairs])


def _score_slopes(problem: DecisionProblem, soft: Floats, factor: Floats) -> Floats:
    """(L, n) derivatives of the weights of wrong rows by the scores, times a factor per row.

    That of ``weight_i (1 - d_(y_i))`` by score l is ``weight_i d_(y_i) (d_l - [l = y_i]) / T``; the
    factor is to hold ``d_(y_i) / T``.
    """
    factor = factor * problem.weight
    slopes: Floats = soft * factor
    np.put_along_axis(
        slopes,
        problem.label[None],
        np.take_along_axis(slopes, problem.label[None], axis=0) - factor,
        axis=0,
    )
    return slopes
