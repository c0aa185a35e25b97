"""How many rounds to keep, and whether fairness pays at all: by rows no tree has learnt from.

Trees fit the rows they learn from better than new ones, and their fairness, too: on the training
rows accuracy and levels get better with every round, on new ones only up to a point. So the rows
are divided into folds; for each fold the same model is fitted to the rows of the others, and what
it predicts for the fold after some of its rounds is what new rows would get. Of all folds together
these predictions have an accuracy and levels, which decide.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from fairgrad.evaluate import cell_rates, levels_of, unfairness
from fairgrad.splitting import fold_of_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.boosting.objective import BoostingObjective
    from fairgrad.groups import Floats, GroupedRows, Ints

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

PLAIN = {"fairness_rate": 0.0, "proportional_rate": 0.0}
"""The settings with which all weights stay 1."""


class JudgedRounds(NamedTuple):
    """One model after so many rounds, on rows that its trees have not learnt from.

    Attributes:
        n_rounds: how many rounds.
        parts: of the rows that its trees leave out in turn.
        accuracy: of these rows.
        violation: the mean of what levels are beyond their bounds.
        levels: (J,) of these rows.
        is_plain: whether all weights were 1.
        plain: the model without weights that it was compared with, if there is one.

    Example:
        >>> fair = JudgedRounds(30, 0, accuracy=0.75, violation=0.01, levels=np.array([0.01]))
        >>> plain = JudgedRounds(100, 0, accuracy=0.74, violation=0.02, levels=np.array([0.02]))
        >>> plain.is_dominated_by(fair), fair.is_dominated_by(plain)
        (True, False)
    """

    n_rounds: int
    parts: int
    accuracy: float
    violation: float
    levels: Floats
    is_plain: bool = False
    plain: JudgedRounds | None = None

    def is_dominated_by(self, other: JudgedRounds) -> bool:
        """Whether the other is at least as good in both figures, and better in one."""
        own, theirs = (self.accuracy, -self.violation), (other.accuracy, -other.violation)
        return own != theirs and theirs[0] >= own[0] and theirs[1] >= own[1]


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
        weight = None if self.weight is None else _safe_indexing(self.weight, rows)
        return model.fit(
            _safe_indexing(self.X, rows),
            _safe_indexing(self.y, rows),
            sample_weight=weight,
            sensitive_features=self.values(rows),
            **self.options,
        )

    def values(self, rows: Ints) -> dict[str, Any]:
        """Sensitive values of some of the rows."""
        return {name: _safe_indexing(column, rows) for name, column in self.sensitive.items()}


def can_fold(rows: GroupedRows, n_folds: int) -> bool:
    """Whether every fold leaves enough rows of all labels, and of two groups, to learn from."""
    labels = np.bincount(rows.label, minlength=len(rows.groups.labels))
    sizes = np.bincount(rows.group, minlength=rows.groups.n_groups)[rows.groups.is_known]
    return bool(labels.min() >= 2 * n_folds and (sizes >= 2 * n_folds).sum() > 1)


def choose_rounds(
    model: Any, folded: FoldedRows, objective: BoostingObjective, n_folds: int, seed: int
) -> JudgedRounds:
    """The fairest rounds on rows that trees have not learnt from; of these the most accurate.

    Rounds count as equally fair if their mean violations are within 0.005, and only if they are
    more than one label for everybody.
    If trees come to know their training rows by heart, the levels there steer nothing, so that
    trees which leave out a part of the rows in turn are tried as well. If the plain model is at
    least as good in accuracy and in fairness as the best that was found, it is the choice.

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
    best = _fairest(fair, objective.rows)
    plain = trial.judge(0, **PLAIN)[0][-1]._replace(is_plain=True)
    return plain if best.is_dominated_by(plain) else best._replace(plain=plain)


def _fairest(found: list[JudgedRounds], rows: GroupedRows) -> JudgedRounds:
    constant = float(rows.groups.mass.sum(axis=1).max() / rows.groups.mass.sum())
    gain = max(one.accuracy for one in found) - constant
    useful = [one for one in found if one.accuracy >= constant + OF_USE * gain] or found
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

    def judge(self, parts: int, **changed: Any) -> tuple[list[JudgedRounds], float]:
        """The figures after each stage, and the mean accuracy on the training rows at the end."""
        n_rounds, accuracies = 0, []
        stages: Ints = np.zeros(0, dtype=np.int64)
        predicted: Ints = np.zeros((0, len(self.fold)), dtype=np.int64)
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
                    predicted = np.zeros((len(stages), len(self.fold)), dtype=np.int64)
                X, values = _safe_indexing(self.folded.X, held), self.folded.values(held)
                for stage, label in enumerate(own._staged_labels(X, values, stages)):  # noqa: SLF001 - as above
                    predicted[stage, held] = label
            accuracies.append(own._learnt)  # noqa: SLF001 - as above
        found = [
            self._judged(int(n), parts, labels) for n, labels in zip(stages, predicted, strict=True)
        ]
        return found, float(np.mean(accuracies))

    def _judged(self, n_rounds: int, parts: int, predicted: Ints) -> JudgedRounds:
        rows, constraints = self.rows, self.constraints
        levels = levels_of(constraints, cell_rates(constraints, rows, predicted)).values
        beyond = np.maximum(levels - constraints.upper, constraints.lower - levels)
        accuracy = float(np.average(predicted == rows.label, weights=rows.weight))
        violation = float(unfairness(np.maximum(beyond, 0.0)))
        return JudgedRounds(n_rounds, parts, accuracy, violation, levels)
