"""The last step of a fit: the last layer is moved until the bounds are kept, at the least error.

Training ends near the bounds, not within them: steps are noisy, and a cell of few rows is rarely
seen. What counts are the labelled rows, so models are moved on these. Levels of softened decisions
have slopes by the parameters of the last layer, which say in which direction the levels come back
to their bounds; along a line of parameters decisions change only where a row changes its label, so
every line is searched exactly (`fairgrad.decisions`). Models that share their inputs, as
linear ones do, are also searched along the lines between them: from one that is fair towards one
that is accurate. What comes out is a model of the same kind as what was trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, softmax

from fairgrad.decisions import DecisionProblem, best_on_line, largest
from fairgrad.groups import count_rows
from fairgrad.usefulness import LEAST_GAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.decisions import Figures
    from fairgrad.groups import Floats, GroupedRows

LEAST_ROOM, MOST_ROOM = 0.001, 0.004
"""How far from 0 a level may be if exact fairness is requested: rows are whole, so it is one row of
the smallest cell, within these limits. The larger is less than `usefulness.REACHED`, so that
rounding of predictions does not matter."""

LARGEST_OFFSET = {"float32": 10.0, "float64": 1e4}
"""Of features in units of their scale; beyond, scaling them by way of the weights is not exact."""

PIECE = 8192
"""Rows scored at a time."""

PENALTY = 1e4
"""Of unfairness: the best model by it is where to start, and lines are searched by it."""

TEMPERATURES = (0.3, 0.15, 0.08)
"""Of softened decisions, in parts of the median margin; each for one step."""

DAMPING = 0.03
"""How much a step holds back where levels hardly move, in parts of where they move most."""

STEPS = 6
"""Towards the bounds, from each start."""

NEAR, INSIDE = 0.01, 0.002
"""Levels this close to a bound are looked after; and how far inside of it they are wanted."""

STEP, BETWEEN = (-1.0, 3.0), (-0.5, 1.5)
"""How far lines are followed: in parts of a step, and of the way between two models."""

ROUNDS = 2
"""Of lines between models."""

WIDENED = (0.03, 0.01)
"""Narrower bounds are first widened to these: from a model that keeps wide bounds, the way to one
that keeps narrow bounds is short, and fewer searches end at an inaccurate one."""

ENOUGH = 1e-12


class LayerInputs:
    """What the last layer of some models sees, as ``(X - offset) / scale``.

    Args:
        X: (n, d) array or CSR matrix, never copied.
        offset: (d,).
        scale: (d,).
    """

    def __init__(self, X: Any, offset: Floats | None = None, scale: Floats | None = None) -> None:
        self.X = X
        self.scale = np.ones(X.shape[1]) if scale is None else scale
        self.offset = np.zeros(X.shape[1]) if offset is None else offset
        largest = LARGEST_OFFSET.get(str(X.dtype), 0.0) * self.scale
        self.is_exact = isinstance(X, np.ndarray) and bool((np.abs(self.offset) <= largest).all())

    def scores(self, layers: Sequence[Floats]) -> list[Floats]:
        """(L, n) scores of the labels by each layer (outputs, d + 1), its last column the bias.

        All layers go over the rows at once, in the precision of the features if that is exact.
        """
        joined = np.concatenate(layers)
        weight = joined[:, :-1] / self.scale
        bias, n = joined[:, -1] - weight @ self.offset, self.X.shape[0]
        if self.is_exact:
            weight = weight.astype(self.X.dtype)
        outputs = np.empty((len(joined), n))
        for rows in (slice(start, start + PIECE) for start in range(0, n, PIECE)):
            outputs[:, rows] = (self.X[rows] @ weight.T + bias).T
        scores = np.split(outputs, len(layers))
        if len(scores[0]) > 1:
            return scores
        return [np.concatenate([np.zeros((1, n)), margin]) for margin in scores]

    def sums(self, weight: Floats, cell: Any, n_cells: int) -> Floats:
        """(K, d + 1) sums over the cells of weighted inputs, those of the bias last."""
        total = count_rows(cell, n_cells, weight)
        place = (cell, np.arange(len(cell)))
        by_cell = csr_array((weight, place), shape=(n_cells, len(cell)))
        summed = by_cell @ self.X
        sums = summed.toarray() if hasattr(summed, "toarray") else summed
        return np.column_stack([(sums - np.outer(total, self.offset)) / self.scale, total])


class MovedLayer(NamedTuple):
    """A last layer, its scores and how the rows fare.

    Attributes:
        layer: (outputs, d + 1).
        scores: (L, n).
        start: the number of the model that it was moved from.
        figures: of what it decides.
    """

    layer: Floats
    scores: Floats
    start: int
    figures: Figures


class LastLayers:
    """The last layers of trained models, judged on labelled rows.

    Args:
        rows: labels, groups and weights.
        constraints: on their cells, with slack.
        inputs: of the layer of each model; the same object for models that share them.
        layers: (outputs, d + 1) of each model.
        cost_matrix: what mistakes cost; None if all cost the same.

    Attributes:
        judged: the models as they were given, judged.
    """

    def __init__(
        self,
        rows: GroupedRows,
        constraints: Constraints,
        inputs: Sequence[LayerInputs],
        layers: Sequence[Floats],
        cost_matrix: Any = None,
    ) -> None:
        defined = constraints.drop_undefined(warns=False)
        cells = np.unique(defined.coefficients.cell % defined.n_cells)
        counts = count_rows(rows.cell(defined.by_label), defined.n_cells)[cells]
        smallest = counts[counts > 0].min(initial=len(rows))
        room = float(np.clip(1.0 / smallest, LEAST_ROOM, MOST_ROOM))
        self.problem = DecisionProblem([(defined, rows)], (), cost_matrix, room=room)
        self.inputs = inputs
        self.judged: list[MovedLayer] = []
        for seen, numbered in groupby(enumerate(layers), lambda pair: inputs[pair[0]]):
            starts, together = zip(*numbered, strict=True)
            for start, layer, scores in zip(starts, together, seen.scores(together), strict=True):
                self.judged.append(_judged(self.problem, layer, scores, start))

    def keep_bounds(self) -> MovedLayer:
        """The most accurate last layer that keeps the bounds; else the fairest useful layer.

        If the plain model, the last of all, keeps the bounds, it is the answer.
        """
        shape = self.judged[0].scores.shape
        one_label = [np.broadcast_to(scores[:, None], shape) for scores in np.eye(shape[0])]
        constants = [_judged(self.problem, scores, scores, 0).figures for scores in one_label]
        errors = [float(figures.error) - LEAST_GAIN - ENOUGH for figures in constants]
        pairs = zip(constants, errors, strict=True)
        limit = min((error for figures, error in pairs if figures.worst <= 0), default=np.inf)
        plain = self.judged[-1]
        if plain.figures.worst <= 0 and plain.figures.error <= limit:
            return plain
        best, useful = self._search(limit), min(errors)
        if best.figures.error <= useful:
            return best
        # Less accurate than one label for everybody, which is not fair: search again.
        other = self._search(useful)
        is_as_fair = other.figures.worst <= 0 or best.figures.worst > 0
        return other if other.figures.error <= useful and is_as_fair else best

    def _search(self, limit: float) -> MovedLayer:
        """The best model by `_rank` that a search from all models reaches."""
        problem, best_layers = self.problem, []
        for shared in {id(x): x for x in self.inputs}.values():  # linear models share theirs
            tried = [m for seen, m in zip(self.inputs, self.judged, strict=True) if seen is shared]
            for wide in filter(None, [*map(problem.widened, WIDENED), problem]):
                starts = [_judged(wide, m.layer, m.scores, m.start) for m in tried]
                tried = [*tried, _Search(wide, shared, limit, starts).run()]
            best_layers.append(tried[-1])
        return min(best_layers, key=lambda model: _rank(model, limit))


def _rank(model: MovedLayer, limit: float) -> tuple[bool, float, float]:
    """Useful models come first, then fair ones, then accurate ones."""
    error, worst = float(model.figures.error), float(model.figures.worst)
    return error > limit, worst, error


def _judged(problem: DecisionProblem, layer: Floats, scores: Floats, start: int) -> MovedLayer:
    counts, error = problem.judged(largest(scores))
    return MovedLayer(layer, scores, start, problem.figures(problem.levels(counts), error))


def _damped_step(slopes: Floats, change: Floats) -> Floats:
    """(P,) ``(S' S + d I)^-1 S' change``: about the least step that changes levels as wanted.

    By the smaller of the two Gram matrices; a singular value decomposition need not converge.
    """
    is_wide = slopes.shape[0] < slopes.shape[1]
    gram = slopes @ slopes.T if is_wide else slopes.T @ slopes
    largest_square = float(np.linalg.eigvalsh(gram)[-1])
    gram[np.diag_indices(len(gram))] += (DAMPING * max(largest_square**0.5, ENOUGH)) ** 2
    wanted = change if is_wide else slopes.T @ change
    solved = np.asarray(np.linalg.solve(gram, wanted), dtype=np.float64)
    return slopes.T @ solved if is_wide else solved


@dataclass(eq=False)
class _Search:
    """What was found so far among models that share their inputs, and the ways to find more."""

    problem: DecisionProblem
    inputs: LayerInputs
    limit: float
    starts: Sequence[MovedLayer]

    def run(self) -> MovedLayer:
        """The best that is found: towards the bounds, then on lines from the best to the others."""
        self.best = self.starts[0]
        for model in self.starts[1:]:
            self._offer(model)
        self._repair(min(self.starts, key=lambda model: model.figures.penalised(PENALTY)))
        for _ in range(ROUNDS):
            before = self.best
            for other in self.starts:
                best, figures = self.best, other.figures
                is_ahead = figures.worst < best.figures.worst or figures.error < best.figures.error
                if other is not best and is_ahead:
                    slopes = other.scores - best.scores
                    self._line(best, other.layer - best.layer, slopes, BETWEEN)
            if self.best is before:
                break
            if self.best.figures.worst > 0:
                self._repair(self.best)
        return self.best

    def _offer(self, model: MovedLayer) -> None:
        """Takes a model if it is better than the best so far."""
        rank, best = _rank(model, self.limit), _rank(self.best, self.limit)
        is_fairer, is_as_fair = rank[1] < best[1] - ENOUGH, rank[1] <= best[1] + ENOUGH
        is_better = is_fairer or (is_as_fair and rank[2] < best[2] - ENOUGH)
        if rank[0] < best[0] or (rank[0] == best[0] and is_better):
            self.best = model

    def _line(
        self, model: MovedLayer, step: Floats, slopes: Floats, window: tuple[float, float]
    ) -> MovedLayer:
        """Looks along a line; if the fairest or the cheapest there is better, it is the new best.

        Returns:
            The model of the least penalised error.
        """
        line = best_on_line(
            self.problem, model.scores, slopes, PENALTY, most_error=self.limit, window=window
        )
        for t, figures in line:
            moved = model._replace(
                layer=model.layer + t * step, scores=model.scores + t * slopes, figures=figures
            )
            self._offer(moved)
        return moved

    def _repair(self, model: MovedLayer) -> None:
        """Damped Newton steps towards the bounds, by the slopes of softened decisions.

        The length of each step is searched exactly, on the actual decisions.
        """
        problem, scores = self.problem, model.scores
        margin = np.abs(scores[1] - scores[0]) if len(scores) == 2 else np.ptp(scores, axis=0)
        size = float(np.median(margin))
        lower, upper = problem.lower, problem.upper
        inside = np.minimum(INSIDE, 0.25 * (upper - lower))
        for number in range(STEPS if size > 0 else 0):
            if model.figures.worst <= 0:
                return
            level = problem.levels(problem.judged(largest(model.scores))[0])
            change = np.clip(level, lower + inside, upper - inside) - level
            is_near = np.minimum(upper - level, level - lower) < NEAR
            temperature = size * TEMPERATURES[min(number, len(TEMPERATURES) - 1)]
            slopes = self._slopes(model.scores, temperature)[is_near]
            step = _damped_step(slopes, change[is_near]).reshape(model.layer.shape)
            (slopes,) = self.inputs.scores([step])
            moved = self._line(model, step, slopes, STEP)
            if moved.figures.penalised(PENALTY) >= model.figures.penalised(PENALTY) - ENOUGH:
                return
            model = moved

    def _slopes(self, scores: Floats, temperature: float) -> Floats:
        """(J, P) derivatives of the levels of softened decisions by the layer's parameters."""
        problem, n = self.problem, len(self.problem.label)
        if len(scores) == 2:  # much faster than softmax
            chance = expit((scores[1] - scores[0]) / temperature)
            soft = np.stack([1.0 - chance, chance])
        else:
            soft = softmax(scores / temperature, axis=0)
        right = soft[problem.label, np.arange(n)]
        outputs = [1] if len(scores) == 2 else range(len(scores))
        ((constraints, _),), (cell,) = problem.measured, problem.cells
        columns = []
        for label in outputs:
            if constraints.n_outcomes == 1:
                changes = [right * (soft[label] - (problem.label == label))]
            else:
                changes = [p * ((label == m) - soft[label]) for m, p in enumerate(soft)]
            sums = [
                self.inputs.sums(problem.weight * p / temperature, cell, constraints.n_cells)
                for p in changes
            ]
            columns.append(np.concatenate(sums))
        return (problem.levels(np.concatenate(columns, axis=1)) - problem.c0).T
