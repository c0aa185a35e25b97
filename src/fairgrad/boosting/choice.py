"""How many rounds to keep, and whether fairness pays at all: by rows no tree has learnt from.

Trees fit the rows they learn from better than new ones, and their fairness, too: on the training
rows accuracy and levels get better with every round, on new ones only up to a point. So the rows
are divided into folds; for each fold the same model is fitted to the rows of the others, and what
it predicts for the fold after some of its rounds is what new rows would get. Of all folds together
these predictions have an accuracy and levels, which decide.

Models that know the sensitive values have a last step: the scores of each group are shifted so that
the levels of the folds' rows keep their bounds, as fair decisions do with the probabilities of any
model (`fairgrad.decisions`). Weights of the training rows cannot do that, as the trees fit these
rows better than new ones.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from fairgrad.boosting.judged import JudgedRounds, by_margin, label_counts
from fairgrad.boosting.objective import predicted_labels, probabilities
from fairgrad.decisions import ConstrainedCells, DecisionProblem, solve
from fairgrad.evaluate import cell_rates, levels_of, unfairness
from fairgrad.groups import GroupedRows
from fairgrad.sklearn.rows import take_rows
from fairgrad.splitting import fold_of_rows
from fairgrad.usefulness import REACHED, worst_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairgrad.boosting.objective import BoostingObjective
    from fairgrad.groups import Floats, Ints

FOLDS = 3
MOST_ROWS = 50_000
"""Of larger tables trees know little by heart, and seven fits take long: nothing is compared."""

STAGES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
"""After which parts of the rounds a model is looked at."""

BY_HEART, PARTS = 0.98, 5
"""Accuracy on the training rows from which their levels say little of new rows, and parts that are
then left out in turn."""

NEARLY_AS_FAIR, OF_USE = 0.005, 0.1
"""Mean violations closer together than that are taken for equal. And what share of the accuracy to
be had beyond one label for everybody rounds must have: the first predict little else."""

LEAST_WEIGHT = 1e-6
"""Of a label in a group: a label that nobody of the group should get has a score that low."""

MOST_CELLS = 5e7
"""Probabilities of the cells that are held at once; with more of them scores are not shifted."""

DRAWS = 100
"""Of the rows, with which it is estimated how far figures could be off by chance."""

PLAIN = {"fairness_rate": 0.0, "proportional_rate": 0.0}
"""The settings with which all weights stay 1."""


class FoldedRows(NamedTuple):
    """The rows of a fit as its folds take them.

    Attributes:
        X: features, without sensitive values.
        y: labels.
        sensitive: one column per attribute.
        weight: sample weights, or None.
        options: further arguments of the fit, the same for all rows.
    """

    X: Any
    y: Any
    sensitive: Mapping[str, Any]
    weight: Any
    options: Mapping[str, Any]

    def fit(self, model: Any, rows: Ints) -> Any:
        """A model fitted to some of the rows."""
        X, y, values, weight = take_rows(self.X, self.y, self.sensitive, self.weight, rows)
        return model.fit(X, y, sample_weight=weight, sensitive_features=values, **self.options)

    def values(self, rows: Ints) -> dict[str, Any]:
        """Sensitive values of some of the rows."""
        return {name: _safe_indexing(column, rows) for name, column in self.sensitive.items()}


def can_fold(rows: GroupedRows, n_folds: int) -> bool:
    """Whether every fold leaves enough rows of all labels, and of two groups, to learn from."""
    labels = np.bincount(rows.label, minlength=len(rows.groups.labels))
    sizes = np.bincount(rows.group, minlength=rows.groups.n_groups)[rows.groups.is_known]
    return bool(labels.min() >= 2 * n_folds and (sizes >= 2 * n_folds).sum() > 1)


def rounds_to_try(
    model: Any, folded: FoldedRows, objective: BoostingObjective, n_folds: int, seed: int
) -> Iterator[JudgedRounds]:
    """What to fit to all rows, best first, by rows that trees have not learnt from.

    The best are the most accurate rounds that keep the bounds on these rows. If none do, the
    fairest; of these the most accurate. Rounds count as equally fair if their mean violations are
    within 0.005, and only if they are more than one label for everybody.
    If trees come to know their training rows by heart, the levels there steer nothing, so that
    trees which leave out a part of the rows in turn are tried as well. Of an aware model the best
    that was found, and the plain model, are also tried with scores shifted by group. The plain
    model comes last; and first, if what would come before it is not fairer by more than chance
    would do (one standard error of the difference), nor at least as good in both figures.

    Args:
        model: the classifier, whose parameters are taken.
        folded: all rows.
        objective: made for all rows.
        n_folds: how many folds.
        seed: of the folds.
    """
    trial = _Trial(model, folded, objective, fold_of_rows(objective.rows.cell(), n_folds, seed))
    parts = 0 if objective.bag is None else objective.bag.n_parts
    fair, learnt = trial.judge(parts)
    is_free = model.out_of_bag == "auto"
    if is_free and learnt >= BY_HEART and max(one.accuracy for one in fair) < BY_HEART:
        fair += trial.judge(PARTS)[0]
    found = [_fairest(fair, objective.rows)]
    plains = [one._replace(is_plain=True) for one in trial.judge(0, **PLAIN)[0]]
    plain = plains[-1]
    if model.use_sensitive and trial.can_shift:
        accurate = max(plains, key=lambda one: one.accuracy)
        shifted = [trial.shifted(one) for one in (found[0], accurate)]
        found += [one for one in shifted if one is not None]
    while found:
        best = _fairest(found, objective.rows)
        if not trial.is_worth_it(best, plain, seed):
            break
        yield best._replace(plain=plain, shares=trial.shares(best))
        found = [one for one in found if one is not best]
    yield plain


def _fairest(found: list[JudgedRounds], rows: GroupedRows) -> JudgedRounds:
    constant = float(rows.groups.mass.sum(axis=1).max() / rows.groups.mass.sum())
    gain = max(one.accuracy for one in found) - constant
    useful = [one for one in found if one.accuracy >= constant + OF_USE * gain] or found
    kept = [one for one in useful if one.beyond <= REACHED]
    if kept:
        return max(kept, key=lambda one: (one.accuracy, -one.violation))
    limit = min(one.violation for one in useful) + NEARLY_AS_FAIR
    fair = [one for one in useful if one.violation <= limit]
    return max(fair, key=lambda one: (one.accuracy, -one.violation))


class _Trial:
    """Models of the folds, judged together."""

    def __init__(
        self, model: Any, folded: FoldedRows, objective: BoostingObjective, fold: Ints
    ) -> None:
        self.model, self.folded, self.fold = model, folded, fold
        self.rows, self.constraints = objective.rows, objective.rounds.constraints
        self.measure = objective.measure  # small groups are those of all rows, not of a fold's
        self.fitted: dict[tuple[int, bool], list[tuple[Any, Ints]]] = {}

    def judge(self, parts: int, **changed: Any) -> tuple[list[JudgedRounds], float]:
        """The figures after each stage, and the mean accuracy on the training rows at the end."""
        n_rounds, accuracies = 0, []
        fitted = self.fitted[parts, changed == PLAIN] = []
        stages: Ints = np.zeros(0, dtype=np.int64)
        scores: Any = None  # (stages, n) or (stages, n, L)
        for i in range(int(self.fold.max()) + 1):
            asked = {"fairness_measure": self.measure, "n_folds": 0, "out_of_bag": parts}
            own = clone(self.model).set_params(**asked, **changed)
            own._is_trial = True  # noqa: SLF001 - of our own classifiers
            learnt, held = np.flatnonzero(self.fold != i), np.flatnonzero(self.fold == i)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of groups that a fold lacks, and rows by heart
                self.folded.fit(own, learnt)
                if not n_rounds:
                    n_rounds = own._n_rounds()  # noqa: SLF001 - of our own classifiers
                    stages = np.unique(np.ceil(np.array(STAGES) * n_rounds).astype(np.int64))
                X, values = _safe_indexing(self.folded.X, held), self.folded.values(held)
                for stage, margins in enumerate(own._staged_scores(X, values, stages)):  # noqa: SLF001 - as above
                    if scores is None:
                        scores = np.zeros((len(stages), len(self.fold), *margins.shape[1:]))
                    scores[stage, held] = margins
            fitted.append((own, learnt))
            accuracies.append(own._learnt)  # noqa: SLF001 - as above
        found = [
            self._judged(int(n), parts, margins) for n, margins in zip(stages, scores, strict=True)
        ]
        return found, float(np.mean(accuracies))

    def shares(self, one: JudgedRounds) -> Floats:
        """(L, G) the share of each group that gets each label where the folds' trees have learnt.

        Of the models of all folds together.
        """
        counts = np.zeros(self.rows.groups.mass.shape)
        for own, learnt in self.fitted[one.parts, one.is_plain]:
            rows, X = self.rows.take(learnt), _safe_indexing(self.folded.X, learnt)
            values, stages = self.folded.values(learnt), np.array([one.n_rounds])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of values that were hidden from the trees
                (scores,) = own._staged_scores(X, values, stages)  # noqa: SLF001 - as above
            counts += label_counts(rows, one.decided(scores, rows.group))
        found: Floats = counts / np.maximum(counts.sum(axis=0), 1.0)
        return found

    def _judged(self, n_rounds: int, parts: int, scores: Floats) -> JudgedRounds:
        rows, constraints, predicted = self.rows, self.constraints, predicted_labels(scores)
        accuracy = float(np.average(predicted == rows.label, weights=rows.weight))
        levels, violation = self._violation(rows, predicted)
        beyond = worst_of(constraints, levels)[1]
        return JudgedRounds(
            n_rounds,
            parts,
            accuracy,
            violation,
            levels,
            beyond=beyond,
            predicted=predicted,
            scores=scores,
        )

    def _violation(self, rows: GroupedRows, predicted: Ints) -> tuple[Floats, float]:
        """(J,) the levels of rows, and the mean of what they are beyond their bounds."""
        constraints = self.constraints
        levels = levels_of(constraints, cell_rates(constraints, rows, predicted)).values
        beyond = np.maximum(levels - constraints.upper, constraints.lower - levels)
        return levels, float(unfairness(np.maximum(beyond, 0.0)))

    @property
    def can_shift(self) -> bool:
        """Whether the bounds can be kept by shifts of scores: weights do it, costs do not."""
        size = len(self.rows.groups.labels) * self.rows.groups.n_groups * len(self.rows)
        return self.constraints.n_outcomes == 1 and size <= MOST_CELLS

    def shifted(self, one: JudgedRounds) -> JudgedRounds | None:
        """A model whose scores are shifted by group so that bounds are kept; None if that is vain.

        Fair decisions give label l in group r the score ``w_(l,r) P(y = l | x, s = r)``, of which
        the logarithm is the score of boosting, shifted by ``log w_(l,r)``.
        """
        rows, n = self.rows, len(self.rows)
        assert one.scores is not None  # noqa: S101 - it was judged here
        chance = probabilities(one.scores)
        by_label = np.stack([1.0 - chance, chance]) if chance.ndim == 1 else chance.T
        cells = np.zeros((*rows.groups.mass.shape, n))
        cells[:, rows.group, np.arange(n)] = by_label
        own = ConstrainedCells(self.constraints, rows, cells)
        decision = solve(DecisionProblem(rows.label, rows.weight, [own]))
        if decision.constant is not None:
            return None
        shifts = np.log(np.maximum(1.0 + decision.pulls[0], LEAST_WEIGHT))
        moved = one.scores + by_margin(shifts)[rows.group]
        judged = self._judged(one.n_rounds, one.parts, moved)
        return judged._replace(is_plain=one.is_plain, shifts=shifts)

    def is_worth_it(self, best: JudgedRounds, plain: JudgedRounds, seed: int) -> bool:
        """Whether a fair model is to be preferred to the plain one, on these very rows."""
        fairer, better = plain.violation - best.violation, best.accuracy - plain.accuracy
        if best.predicted is None or plain.predicted is None:
            return not best.is_dominated_by(plain)
        if min(fairer, better) >= 0:
            return max(fairer, better) > 0
        return fairer > self._chance(best.predicted, plain.predicted, seed)

    def _chance(self, first: Ints, second: Ints, seed: int) -> float:
        """The standard error of the difference of two models' violations, by drawing rows anew."""
        rows = self.rows
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        kinds, kind = np.unique(
            np.stack([rows.label, rows.group, first, second]), axis=1, return_inverse=True
        )
        share = np.bincount(kind.ravel(), weight) / weight.sum()
        drawn = np.random.default_rng(seed).multinomial(len(rows), share / share.sum(), DRAWS)
        found = []
        for counts in drawn:
            own = GroupedRows(rows.groups, kinds[0], kinds[1], counts.astype(np.float64))
            found.append(self._violation(own, kinds[2])[1] - self._violation(own, kinds[3])[1])
        return float(np.nanstd(found))
