"""The plug-in rule of LinearPost's kind (Xian and Zhao, 2024): post-processing by a linear program.

The probabilities ``P(y = l, s = r | x)`` of a plain model are taken as true. On the training rows
the most accurate randomised decisions that are fair by them solve a linear program,

    minimise    mean over rows of P(y = 0 | x) d + P(y = 1 | x) (1 - d)
    subject to  |F_j(d)| <= epsilon for every level F_j, and 0 <= d <= 1,

with one unknown d per row, the probability of label 1. Its dual prices give a rule for new rows:
label 1 where it has the lower reduced cost. As published, labels of the rows are not looked at once
the model is fitted. That is where it differs from our fair decisions (`decision`), which have the
same form: those are tuned until they are fair by the labels. LinearPost bounds differences between
groups, here the levels are bounded, as everywhere in this benchmark; ties go to label 0, without
its random perturbation of the scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog

from fairgrad.groups import Groups
from fairgrad.measures import constraints_of
from fairgrad_bench.methods import decision, support
from fairgrad_bench.methods.interface import Candidate, Method, MethodTask
from fairgrad_bench.methods.models import expected_warnings, learner

if TYPE_CHECKING:
    from fairgrad.constraints import Constraints
    from fairgrad.datasets import Encoded
    from fairgrad.groups import Floats, Ints


class CellProbabilities:
    """A plain classifier of the (label, group) cells.

    Args:
        model: an unfitted classifier with `predict_proba`.
        part: rows to fit it to; labels 0 and 1.
        n_groups: how many groups there are.
    """

    def __init__(self, model: Any, part: Encoded, n_groups: int) -> None:
        self.n_groups = n_groups
        self.model = model.fit(part.X.astype(np.float64), part.y * n_groups + part.s)

    def of(self, part: Encoded) -> Floats:
        """(n, 2, G) the probability of each label and group; 0 for cells that were never seen."""
        probabilities = np.zeros((len(part), 2 * self.n_groups))
        probabilities[:, self.model.classes_] = self.model.predict_proba(part.X.astype(np.float64))
        return probabilities.reshape(-1, 2, self.n_groups)


class PlugInRule:
    """Decisions that are fair if the probabilities are true.

    Args:
        probabilities: (n, 2, G) of the rows to be fair on.
        constraints: on the errors of the cells.
        epsilon: bound of the levels.

    Attributes:
        prices: (J,) of the levels, positive where an upper bound binds.
    """

    def __init__(self, probabilities: Floats, constraints: Constraints, epsilon: float) -> None:
        self.constraints = constraints
        self.totals = self._cells(probabilities).sum(axis=0)
        slope = self._slopes(probabilities)
        nobody = constraints.c0 + constraints.C @ self._errors_of_label_0()
        self.n_rows = len(probabilities)
        solution = linprog(
            self._costs(probabilities),
            A_ub=np.concatenate([slope.T, -slope.T]),
            b_ub=np.concatenate([epsilon - nobody, epsilon + nobody]),
            bounds=(0, 1),
            method="highs",
        )
        if solution.x is None:
            raise RuntimeError(f"plug_in: the linear program was not solved: {solution.message}")
        upper, lower = np.split(-solution.ineqlin.marginals, 2)
        self.prices: Floats = upper - lower

    def __call__(self, probabilities: Floats) -> Ints:
        """(n,) label 1 where its reduced cost is lower."""
        reduced = self._costs(probabilities) + self._slopes(probabilities) @ self.prices
        return (reduced < 0).astype(np.int64)

    def _cells(self, probabilities: Floats) -> Floats:
        """(n, 2, cells) how likely a row is in each cell and of each label."""
        n, _, n_groups = probabilities.shape
        if not self.constraints.by_label:
            return probabilities
        cells = np.zeros((n, 2, 2, n_groups))
        for label in (0, 1):
            cells[:, label, label] = probabilities[:, label]
        return cells.reshape(n, 2, -1)

    def _errors_of_label_0(self) -> Floats:
        """(cells,) the share of label 1 in each cell: its error if everybody gets label 0."""
        rates: Floats = self.totals[1] / np.maximum(self.totals.sum(axis=0), 1e-300)
        return rates

    def _slopes(self, probabilities: Floats) -> Floats:
        """(n, J) by how much a row's label 1 moves each level."""
        cells = self._cells(probabilities)
        errors = (cells[:, 0] - cells[:, 1]) / np.maximum(self.totals.sum(axis=0), 1e-300)
        moves: Floats = errors @ self.constraints.C.T
        return moves

    def _costs(self, probabilities: Floats) -> Floats:
        """(n,) what a row's label 1 adds to the error rate of the rows that were fitted."""
        by_label = probabilities.sum(axis=-1)
        costs: Floats = (by_label[:, 0] - by_label[:, 1]) / self.n_rows
        return costs


def _train(task: MethodTask) -> list[Candidate]:
    candidates = []
    for seed, split in task.splits.items():
        groups = Groups.from_data(split.train.y, split.train.s)
        constraints = constraints_of(task.measure, groups, y_desirable=task.y_desirable)
        with expected_warnings():
            model = CellProbabilities(
                learner(task.model, seed, task.epochs), split.train, groups.n_groups
            )
        train, validation, test = (model.of(part) for part in split)
        for own in METHOD.combinations(task):
            rule = PlugInRule(train, constraints, own["epsilon"])
            candidates.append(Candidate(seed, dict(own), 0, rule(validation), rule(test)))
    return candidates


def _unsupported(task: MethodTask) -> str | None:
    return (
        support.unfit_measure(task)
        or support.more_labels(task)
        or support.unknown_groups(task)
        or support.one_label_in_a_group(task)
    )


METHOD = Method(
    name="plug_in",
    version=1,
    description="Decisions of a linear program that takes a plain model's probabilities as true.",
    unsupported=_unsupported,
    settings=decision.METHOD.settings,
    train=_train,
)
