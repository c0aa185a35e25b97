"""Scores of all rows -> gradients and hessians, weighted so that the levels become fair.

Each round is one step of the method on all rows (`fairgrad.dual.step`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

from fairgrad import dual
from fairgrad.checks import check_number
from fairgrad.constraints import on_outcomes
from fairgrad.decisions import largest
from fairgrad.groups import Groups, count_rows, group_rows
from fairgrad.measures import among_large, check_several_groups, constraints_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, GroupedRows, Ints

RATE, HORIZON, PROPORTIONAL, GAIN, MOST = 0.1, 100.0, 0.1, 5.0, 10.0
"""The automatic rate: its step in a round, the rounds after which it starts to decay, and the rest
of `fairgrad.dual.AutoRate`. It counts rounds instead of rows: each round sees all of them.

Scores follow the weights only after some rounds, so multipliers alone overshoot and come back. The
proportional term falls with the level itself, before the multipliers turn: it damps. With more of
it, trees that know small groups flip them from one side to the other in every round.
"""


CLEAR_LEAD = 0.3
"""By how much the weights of a cell favour its own label if there is no doubt."""

MEMORIZED, MEMORIZED_OF_CONSTANT = 0.02, 0.2
"""Trees with at most this error on rows without doubt have memorized them, if it is also at most
this share of the error of a constant there."""


class BoostingObjective:
    """The log loss with fairness: a function of scores that keeps the multipliers.

    Each call is one round: error rates of the cells from the scores, one step of the multipliers,
    and gradients and hessians multiplied by the weights of the cells.

    Args:
        y: (n,) labels of the training rows; or `Groups`, and then no sensitive_features, if no
            process has all rows.
        sensitive_features: (n,) sensitive values, or one column per attribute; missing values and
            -1 are unknown and in no constraint.
        fairness_measure: as in `fairgrad.torch.FairLoss`.
        epsilon: slack of the constraints; 0 is exact fairness.
        y_desirable: the desirable labels, for measures that use them; by default the second of two
            labels in sorted order.
        fairness_rate: step size of the multipliers in a round. "auto" lowers it for small groups,
            decays, and damps swings; a number is the paper's constant rate.
        cost_matrix: what it costs to predict each label (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake.
        min_group: groups with fewer rows are in no constraint; below 1 a share of all rows.
        sample_weight: (n,) non-negative weights.

    Attributes:
        groups: labels, groups and frequencies of the rows.
        rows: labels and groups of the training rows; None without them.
        measure: the measure, among the groups of enough rows.
        constraints: on the cells of the groups.
        weights: (K,) of the cells, in the last round; (L * K,) of each label for measures of what
            is predicted.
        n_rounds: rounds so far.
        predicted: (n,) the indices of the labels predicted before the last round.

    Raises:
        ValueError: if an argument is not allowed.

    Example:
        >>> objective = BoostingObjective([0, 1, 0, 1], [0, 0, 1, 1], "accuracy_parity",
        ...                               fairness_rate=0.5)
        >>> gradient, hessian = objective.gradients(np.array([-1.0, 1.0, 1.0, 1.0]))
        >>> objective.levels
        array([ 0.25, -0.25])
        >>> objective.weights
        array([0.75, 1.25])
    """

    def __init__(
        self,
        y: Any,
        sensitive_features: Any = None,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.0,
        y_desirable: Any = None,
        fairness_rate: float | str = "auto",
        cost_matrix: Any = None,
        min_group: float = 0,
        sample_weight: Any = None,
    ) -> None:
        self.rows: GroupedRows | None = None
        self.measure: Any = fairness_measure
        argument = "groups" if isinstance(y, Groups) else "sensitive_features"
        if not isinstance(y, Groups):
            arguments = ("y", "sensitive_features", "sample_weight")
            self.rows = group_rows(y, sensitive_features, sample_weight, arguments=arguments)
            self.measure = among_large(fairness_measure, self.rows, min_group)
        self.groups: Groups = y if self.rows is None else self.rows.groups
        check_several_groups(fairness_measure, self.groups, argument)
        constraints = constraints_of(
            self.measure, self.groups, epsilon=epsilon, y_desirable=y_desirable
        ).drop_undefined()
        if cost_matrix is not None:
            constraints = on_outcomes(constraints, self.groups)
        self.constraints = constraints
        is_auto = dual.is_auto_rate(fairness_rate)
        rate = 0.0 if is_auto else check_number("fairness_rate", fairness_rate)
        self.constants = dual.make_constants(
            constraints, self.groups, fairness_rate=rate, cost_matrix=cost_matrix
        )
        if is_auto:
            n = float(self.groups.mass.sum())
            auto = dual.AutoRate(RATE, n, n * HORIZON, n, PROPORTIONAL, GAIN, MOST)
            self.constants = dual.with_auto_rate(self.constants, auto)
        self._state = dual.start(self.constants, len(self.groups.labels))
        self.weights: Floats = dual.cell_weights(self.constants, self._state.multipliers)
        self.n_rounds = 0
        self.predicted: Ints | None = None
        self._cell = None if self.rows is None else self.rows.cell(constraints.by_label)
        self._has_checked_labels = False

    def gradients(self, scores: Any, loss_weight: Any = None) -> tuple[Floats, Floats]:
        """Takes one step with the scores before a round, gives what its trees are to fit.

        Args:
            scores: (n,) margins for two classes, above 0 for the second; (n, L) for L classes.
            loss_weight: (n,) weights of the rows in the loss; by default the sample weights.
                Class weights belong here: they change the loss, not the frequencies of the cells.

        Returns:
            Gradients and hessians, of the shape of the scores.

        Raises:
            ValueError: if there are not as many scores as rows and classes.
        """
        rows, cell, scores = self.rows, self._cell, np.asarray(scores)
        assert rows is not None and cell is not None  # noqa: S101, PT018 - else see subclasses
        n_labels = len(self.groups.labels)
        shape = (len(rows),) if n_labels == 2 else (len(rows), n_labels)
        if scores.shape != shape:
            raise ValueError(
                f"scores: expected shape {shape} for {len(rows)} rows of {n_labels} classes, got "
                f"{scores.shape}; the rows must be those the objective was made for."
            )
        self.predicted = largest(scores.T)
        self.take(self.count(self.predicted, rows.label, cell, rows.weight))
        weight = rows.weight if loss_weight is None else loss_weight
        return self.weighted(scores, rows.label, cell, weight)

    def count(
        self, predicted: Ints, label: Ints, cell: Ints, sample_weight: Floats | None = None
    ) -> Floats:
        """(2, K) rows of each cell that are predicted rightly and wrongly.

        For measures of what is predicted: (1 + L, K) rows of each predicted label, after none.

        Args:
            predicted: (n,) indices of the classes.
            label: (n,) indices of the classes.
            cell: (n,) the cell of each row.
            sample_weight: (n,), or None for ones.
        """
        n_outcomes = self.constants.n_outcomes
        outcome = predicted != label if n_outcomes == 1 else 1 + predicted
        n_cells = len(self.constants.per_share)
        counts: Floats = count_rows(
            cell + n_cells * outcome, (1 + n_outcomes) * n_cells, sample_weight
        )
        return counts.reshape(1 + n_outcomes, n_cells)

    def take(self, counts: Floats) -> None:
        """Takes one step with the counts of all rows before a round."""
        self._state, self.weights = dual.step(self.constants, self._state, counts)
        self.n_rounds += 1

    def weighted(
        self, scores: Floats, label: Ints, cell: Ints, loss_weight: Any
    ) -> tuple[Floats, Floats]:
        """Gradients and hessians of rows, multiplied by the weights of their cells.

        Args:
            scores: (n,) margins of the second of two classes, or (n, L).
            label: (n,) indices of the classes.
            cell: (n,) the cell of each row.
            loss_weight: (n,) non-negative weights of the rows themselves, or None for ones.
        """
        weights = self.weights.astype(scores.dtype)
        own_weight = 1.0 if loss_weight is None else loss_weight
        if self.constants.n_outcomes > 1:
            targets = weights.reshape(self.constants.n_outcomes, -1).T[cell]
            return soft_gradients(scores, targets, own_weight)
        is_opposed = weights[cell] < 0 if weights.min() < 0 else None
        return weigh(*log_loss_gradients(scores, label, is_opposed), weights[cell], own_weight)

    def is_memorized(self) -> bool:
        """Whether the trees have memorized the training rows, so that levels there mean little.

        A fair model gives many rows another label than their own, so its accuracy does not tell.
        Rows of cells whose weights clearly favour their own label are the ones to look at.
        """
        rows, cell, predicted = self.rows, self._cell, self.predicted
        if rows is None or cell is None or predicted is None:
            return False
        if self.constants.n_outcomes == 1:
            lead = self.weights[cell]
        else:
            targets = self.weights.reshape(self.constants.n_outcomes, -1).T[cell]
            own = np.arange(targets.shape[1]) == rows.label[:, None]
            lead = targets[own] - np.where(own, -np.inf, targets).max(axis=1)
        is_clear = lead > CLEAR_LEAD
        if not is_clear.any():
            return False
        label = rows.label[is_clear]
        constant_error = 1.0 - float(np.bincount(label).max()) / len(label)
        error = float(np.mean(predicted[is_clear] != label))
        return constant_error > 0 and error <= min(
            MEMORIZED, MEMORIZED_OF_CONSTANT * constant_error
        )

    def check_labels(self, label: Any) -> None:
        """Makes sure, once, that the library's data set has the labels this was made for.

        Args:
            label: (n,) of the data set, numbered from 0.

        Raises:
            ValueError: if they differ.
        """
        if self._has_checked_labels or self.rows is None:
            return
        if not np.array_equal(np.asarray(label), self.rows.label):
            raise ValueError(
                "y: expected the labels of the training data set, in its order and numbered from "
                f"0 ({len(label)} rows); the objective was made for {len(self.rows)} rows with "
                f"labels {self.groups.labels.tolist()}."
            )
        self._has_checked_labels = True

    @property
    def levels(self) -> Floats:
        """(J,) the estimate of the levels of fairness before the last round."""
        levels: Floats = dual.levels(self.constants, self._state.errors)
        return levels

    @property
    def net_multipliers(self) -> Floats:
        """(J,) one multiplier per constraint, lambda - delta."""
        net: Floats = dual.net_multipliers(self.constants, self._state.multipliers)
        return net

    def state(self) -> dict[str, Any]:
        """All that changes from round to round, as plain lists and numbers for JSON."""
        return {
            "rounds": self.n_rounds,
            "constraints": list(self.constraints.names),
            "multipliers": self._state.multipliers.ravel().tolist(),
            "weights": self.weights.tolist(),
            "remembered_rows": self._state.rows.tolist(),
            "remembered_errors": self._state.errors.tolist(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of the same problem.

        Raises:
            ValueError: if the state is of other constraints or cells.
        """
        ours = list(self.constraints.names)
        if list(state["constraints"]) != ours:
            raise ValueError(
                f"state: expected multipliers of the constraints {ours}, got those of "
                f"{list(state['constraints'])}."
            )
        names = ("multipliers", "weights", "remembered_rows", "remembered_errors")
        loaded = [np.asarray(state[name], dtype=np.float64) for name in names]
        rows, errors, multipliers, _ = self._state
        current = (multipliers.ravel(), self.weights, rows, errors)
        for name, new, old in zip(names, loaded, current, strict=True):
            if new.shape != old.shape:
                raise ValueError(f"state: expected {name} of shape {old.shape}, got {new.shape}.")
        self.n_rounds, self.weights = int(state["rounds"]), loaded[1]
        seen = self.n_rounds * float(self.groups.mass.sum()) if self.constants.auto else 0.0
        self._state = dual.State(loaded[2], loaded[3], loaded[0].reshape(multipliers.shape), seen)


def probabilities(scores: Floats) -> Floats:
    """(n,) of the second class from (n,) margins, or (n, L) from (n, L) scores."""
    p: Floats = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
    return p


def log_loss_gradients(
    scores: Floats, label: Ints, is_opposed: NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """First and second derivatives of each row's log loss in its scores.

    Two classes: ``p - y`` and ``p (1 - p)``. L classes: ``p_l - [l = y]`` and
    ``L / (L - 1) p_l (1 - p_l)``, the diagonal with the factor that makes up for taking the scores
    of the classes one by one (LightGBM's own rule).

    An opposed row should get any label but its own: its loss is ``-log(1 - p_y)``. With two classes
    that is the log loss of the other one; with L the derivatives are ``p_y`` for its own class and
    ``-p_y p_l / (1 - p_y)`` for the others. The second derivatives of these may be negative, so
    those of the log loss are used instead.

    Args:
        scores: (n,) margins of the second of two classes, or (n, L).
        label: (n,) indices of the classes.
        is_opposed: (n,) rows whose label is to be avoided; None for none.
    """
    p = probabilities(scores)
    if scores.ndim == 1:
        wanted = label if is_opposed is None else label ^ is_opposed
        return np.subtract(p, wanted, dtype=p.dtype, casting="same_kind"), p * (1.0 - p)
    n_labels = scores.shape[1]
    hessian = n_labels / (n_labels - 1) * p * (1.0 - p)
    gradient = p.copy()
    gradient[np.arange(len(label)), label] -= 1.0
    if is_opposed is not None:
        # from the derivatives of -log p_y to those of -log(1 - p_y)
        p_label = np.take_along_axis(p[is_opposed], label[is_opposed, None], axis=1)
        gradient[is_opposed] *= -p_label / np.maximum(1.0 - p_label, np.finfo(p.dtype).tiny)
    return gradient, hessian


def soft_gradients(
    scores: Floats, targets: Floats, loss_weight: Any = 1.0
) -> tuple[Floats, Floats]:
    """Derivatives of each row's ``sum_l t_l (-log p_l)`` in its scores.

    ``T p_l - t_l`` and ``max(T, 1)`` times the second derivative of the log loss, T the sum of the
    weights t: as in `weigh`, rows of small weight stay in the denominator of their leaf.

    Args:
        scores: (n,) margins of the second of two classes, or (n, L).
        targets: (n, L) the weight of each label.
        loss_weight: (n,) non-negative weights of the rows themselves, factors of both.
    """
    p, total = probabilities(scores), targets.sum(axis=1)
    if scores.ndim == 1:
        gradient, hessian = total * p - targets[:, 1], np.maximum(total, 1.0) * p * (1.0 - p)
        return loss_weight * gradient, loss_weight * hessian
    n_labels, total = scores.shape[1], total[:, None]
    row_weight = np.asarray(loss_weight)
    row_weight = row_weight[:, None] if row_weight.ndim else row_weight
    hessian = n_labels / (n_labels - 1) * np.maximum(total, 1.0) * p * (1.0 - p)
    return row_weight * (total * p - targets), row_weight * hessian


def weigh(
    gradient: Floats, hessian: Floats, weight: Floats, loss_weight: Any = 1.0
) -> tuple[Floats, Floats]:
    """Multiplies each row's gradient by ``|w|``, w its weight, and its hessian by ``max(|w|, 1)``.

    A leaf moves by ``-sum |w| g / sum max(|w|, 1) h``. The error that FairGrad weighs by w is
    ``w [h(x) != y]``, which for w < 0 is ``w + |w| [h(x) = y]``: a row of negative weight is one
    to be predicted wrongly. So it is opposed (see `log_loss_gradients`) and weighs ``|w|``. With
    the log loss times w instead, the pull on such rows would grow without end the more wrongly
    they are predicted; trees would then memorize these very rows, and new rows of their cell
    would stay as they were. The floor at 1 keeps rows of small weight in the denominator: when the
    weight of a cell passes 0 on its way to negative values, ``|w|`` alone would leave leaves full
    of that cell to the few other rows in them. With the floor no row of two classes ever moves its
    leaf further than in plain boosting.

    Args:
        gradient: (n,) or (n, L), of the loss that the sign of the weight asks for.
        hessian: of the same shape.
        weight: (n,) weights of the cells the rows are in.
        loss_weight: (n,) non-negative weights of the rows themselves, factors of both.
    """
    size = np.abs(weight)
    factor, size = loss_weight * size, loss_weight * np.maximum(size, 1.0)
    if gradient.ndim == 2:
        factor, size = factor[:, None], size[:, None]
    return factor * gradient, size * hessian
