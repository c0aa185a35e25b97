"""Scores of all rows -> gradients and hessians, weighted so that the levels become fair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

from fairgrad.boosting.rounds import Rounds
from fairgrad.checks import check_number
from fairgrad.constraints import on_outcomes
from fairgrad.groups import group_rows
from fairgrad.measures import among_large, check_several_groups, constraints_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Groups, Ints

FAIRNESS_RATE, PROPORTIONAL_RATE = 0.1, 0.5
"""The default rates.

Scores follow the weights only after some rounds, so multipliers alone overshoot and come back.
The proportional term falls with the level itself, before the multipliers turn: it damps.
"""


class BoostingObjective:
    """The log loss with fairness: a function of scores that keeps the multipliers.

    Each call is one round: error rates of the cells from the scores, one step of the multipliers,
    and gradients and hessians multiplied by the weights of the cells.

    Args:
        y: (n,) labels of the training rows.
        sensitive_features: (n,) sensitive values, or one column per attribute; missing values and
            -1 are unknown and in no constraint.
        fairness_measure: as in `fairgrad.torch.FairLoss`.
        epsilon: slack of the constraints; 0 is exact fairness.
        y_desirable: the desirable labels, for measures that look at them; by default the second
            of two labels in sorted order.
        fairness_rate: step size of the multipliers.
        proportional_rate: how strongly the weights react to the violations of the current round.
        error_memory: share of earlier rounds kept in the error estimates.
        negative_weights: whether weights may be negative; if not they are clipped at 0.
        cost_matrix: what it costs to predict each label (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake.
        min_group: groups with fewer rows are in no constraint; below 1 a share of all rows.
        steady: whether the rates of constraints are lowered where groups are small or levels swing,
            and the multipliers bounded so that none changes a weight by more than 10.
        sample_weight: (n,) non-negative weights.

    Attributes:
        groups: labels, groups and frequencies of the rows.
        measure: the measure, among the groups of enough rows.
        label: (n,) indices of the labels.
        rounds: multipliers, weights and error estimates.

    Raises:
        ValueError: if an argument is not allowed.

    Example:
        >>> objective = BoostingObjective([0, 1, 0, 1], [0, 0, 1, 1], "accuracy_parity",
        ...                               fairness_rate=0.5)
        >>> gradient, hessian = objective.gradients(np.array([-1.0, 1.0, 1.0, 1.0]))
        >>> objective.rounds.levels
        array([ 0.25, -0.25])
        >>> objective.rounds.weights
        array([0.5, 1.5])
    """

    def __init__(
        self,
        y: Any,
        sensitive_features: Any,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.0,
        y_desirable: Any = None,
        fairness_rate: float = FAIRNESS_RATE,
        proportional_rate: float = PROPORTIONAL_RATE,
        error_memory: float = 0.0,
        negative_weights: bool = True,
        cost_matrix: Any = None,
        min_group: float = 0,
        steady: bool = True,
        sample_weight: Any = None,
    ) -> None:
        arguments = ("y", "sensitive_features", "sample_weight")
        rows = group_rows(y, sensitive_features, sample_weight, arguments=arguments)
        check_several_groups(fairness_measure, rows.groups, "sensitive_features")
        self.measure: Any = among_large(fairness_measure, rows, min_group)
        constraints = constraints_of(
            self.measure, rows.groups, epsilon=epsilon, y_desirable=y_desirable
        ).drop_undefined()
        if cost_matrix is not None:
            constraints = on_outcomes(constraints, rows.groups)
        self.groups: Groups = rows.groups
        self.label: Ints = rows.label
        self.rounds = Rounds(
            rows.groups,
            constraints,
            fairness_rate=check_number("fairness_rate", fairness_rate),
            proportional_rate=check_number("proportional_rate", proportional_rate),
            error_memory=check_number("error_memory", error_memory, below=1.0),
            negative_weights=negative_weights,
            cost_matrix=cost_matrix,
            steady=steady,
        )
        self.rows = rows
        self._weight = rows.weight
        self._cell = rows.cell(constraints.by_label)
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
        scores = self._check_scores(np.asarray(scores))
        counts = self.rounds.count_scores(scores, self.label, self._cell, self._weight)
        loss_weight = self._weight if loss_weight is None else loss_weight
        weights, n_outcomes = self.rounds.take(counts), self.rounds.constants.n_outcomes
        return weighted_gradients(scores, self.label, self._cell, weights, n_outcomes, loss_weight)

    def check_labels(self, label: Any) -> None:
        """Makes sure, once, that the library's data set has the labels this was made for.

        Args:
            label: (n,) of the data set, numbered from 0.

        Raises:
            ValueError: if they differ.
        """
        if self._has_checked_labels:
            return
        if not np.array_equal(label, self.label):
            raise ValueError(
                "y: expected the labels of the training data set, in its order and numbered from "
                f"0 ({len(label)} rows); the objective was made for {len(self.label)} rows with "
                f"labels {self.groups.labels.tolist()}."
            )
        self._has_checked_labels = True

    def _check_scores(self, scores: Any) -> Any:
        n_rows, n_labels = len(self.label), len(self.groups.labels)
        shape = (n_rows,) if n_labels == 2 else (n_rows, n_labels)
        if scores.shape != shape:
            raise ValueError(
                f"scores: expected shape {shape} for {n_rows} rows of {n_labels} classes, got "
                f"{scores.shape}; the rows must be those the objective was made for."
            )
        return scores


def weighted_gradients(
    scores: Floats,
    label: Ints,
    cell: Ints,
    cell_weights: Floats,
    n_outcomes: int,
    loss_weight: Any = None,
) -> tuple[Floats, Floats]:
    """Gradients and hessians of rows, multiplied by the weights of their cells.

    Args:
        scores: (n,) margins of the second of two classes, or (n, L).
        label: (n,) indices of the classes.
        cell: (n,) the cell of each row.
        cell_weights: (K,), or (L * K,) of each label for measures of what is predicted.
        n_outcomes: 1, or L for measures of what is predicted.
        loss_weight: (n,) non-negative weights of the rows themselves, or None for ones.
    """
    cell_weights = cell_weights.astype(scores.dtype)
    own_weight = 1.0 if loss_weight is None else loss_weight
    if n_outcomes > 1:
        return soft_gradients(scores, cell_weights.reshape(n_outcomes, -1).T[cell], own_weight)
    weights = cell_weights[cell]
    is_opposed = weights < 0 if cell_weights.min() < 0 else None
    return weigh(*log_loss_gradients(scores, label, is_opposed), weights, own_weight)


def probabilities(scores: Floats) -> Floats:
    """(n,) of the second class from (n,) margins, or (n, L) from (n, L) scores."""
    found: Floats = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
    return found


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
        own = np.take_along_axis(p[is_opposed], label[is_opposed, None], axis=1)
        gradient[is_opposed] *= -own / np.maximum(1.0 - own, np.finfo(p.dtype).tiny)
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
    own = np.asarray(loss_weight)
    own = own[:, None] if own.ndim else own
    hessian = n_labels / (n_labels - 1) * np.maximum(total, 1.0) * p * (1.0 - p)
    return own * (total * p - targets), own * hessian


def weigh(
    gradient: Floats, hessian: Floats, weight: Floats, loss_weight: Any = 1.0
) -> tuple[Floats, Floats]:
    """Multiplies each row's gradient by ``|w|``, w its weight, and its hessian by ``max(|w|, 1)``.

    A leaf moves by ``-sum |w| g / sum max(|w|, 1) h``. The error that FairGrad weighs by w is
    ``w [h(x) != y]``, which for w < 0 is ``w + |w| [h(x) = y]``: a row of negative weight is one
    to be predicted wrongly. So it is opposed (see `log_loss_gradients`) and weighs ``|w|``. With
    the log loss times w instead, the pull on such rows would grow without end the more wrongly
    they are predicted; trees would then learn these very rows by heart, and new rows of their cell
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
