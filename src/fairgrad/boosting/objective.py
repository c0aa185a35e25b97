"""Scores of all rows -> gradients and hessians, weighted so that the levels become fair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.boosting.gradients import log_loss_gradients, predictions, weigh
from fairgrad.boosting.holdout import held_out_rows
from fairgrad.boosting.rounds import Rounds
from fairgrad.groups import Groups, check_weights
from fairgrad.measures import check_several_groups, constraints_of

if TYPE_CHECKING:
    from fairgrad.groups import Floats, Ints

RATE, PROPORTIONAL_RATE = 0.1, 0.5
"""The rates unless others are given.

Scores follow the weights only after some rounds, so multipliers alone run past their goal and back
again. The proportional term falls with the level itself, before the multipliers turn: it damps.
"""


class BoostingObjective:
    """The log loss with fairness: a function of scores that keeps the multipliers.

    Each call is one round: error rates of the cells from the scores, one step of the multipliers,
    and gradients and hessians multiplied by the weights of the cells.

    Args:
        y: (n,) labels of the training rows.
        s: (n,) sensitive values, or one column per attribute; missing values and -1 are unknown
            and in no constraint.
        fairness_measure: as `fairgrad.torch.FairLoss` takes it.
        epsilon: slack of the constraints; 0 is exact fairness.
        y_desirable: labels that equality of opportunity and the four-fifths rule speak of.
        fairness_rate: step size of the multipliers.
        proportional_rate: how strongly the weights react to what is broken now.
        error_memory: share of earlier rounds kept in the error estimates.
        negative_weights: whether weights may be negative; if not they are clipped at 0.
        held_out: share of the rows set aside for the multipliers. No tree learns from them, so
            their errors are those of new rows; 0 takes the errors of the rows that trees learn
            from.
        sample_weight: (n,) non-negative weights.
        seed: of the choice of rows held out.

    Attributes:
        groups: labels, groups and frequencies of the rows.
        label: (n,) indices of the labels.
        rounds: multipliers, weights and error estimates.
        is_held_out: (n,) which rows are held out.

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
        s: Any,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.0,
        y_desirable: Any = (1,),
        fairness_rate: float = RATE,
        proportional_rate: float = PROPORTIONAL_RATE,
        error_memory: float = 0.0,
        negative_weights: bool = True,
        held_out: float = 0.0,
        sample_weight: Any = None,
        seed: int = 0,
    ) -> None:
        groups = Groups.from_data(y, s, sample_weight)
        check_several_groups(fairness_measure, groups, "s")
        constraints = constraints_of(
            fairness_measure, groups, epsilon=epsilon, y_desirable=y_desirable
        ).drop_undefined()
        self.groups = groups
        self.label = groups.label_index(y)
        self.weight = check_weights(sample_weight, len(self.label))
        self.rounds = Rounds(
            groups,
            constraints,
            fairness_rate=_at_least_0(fairness_rate, "fairness_rate"),
            proportional_rate=_at_least_0(proportional_rate, "proportional_rate"),
            error_memory=_share(error_memory, "error_memory"),
            negative_weights=negative_weights,
        )
        group = groups.group_index(s)
        fine_cell = self.label * groups.n_groups + group
        self.cell: Ints = fine_cell if constraints.by_label else group
        self.is_held_out = held_out_rows(fine_cell, _share(held_out, "held_out"), seed)
        self._learns, self._judged = _roles(self.is_held_out)
        self._has_met_its_rows = False

    def gradients(self, scores: Any, loss_weight: Any = None) -> tuple[Floats, Floats]:
        """Takes one step with the scores before a round, gives what its trees are to fit.

        Args:
            scores: (n,) margins for two classes, above 0 for the second; (n, L) for L classes.
            loss_weight: (n,) weights of the rows in the loss; by default the sample weights.
                Class weights belong here: they change what is learnt, not who is treated how.

        Returns:
            Gradients and hessians, of the shape of the scores; 0 for rows held out.

        Raises:
            ValueError: if there are not as many scores as rows and classes.
        """
        scores = self._checked(np.asarray(scores))
        wrong = predictions(scores) != self.label
        rows = self._judged
        weight = None if self.weight is None else self.weight[rows]
        cell_weights = self.rounds.step(self.cell[rows], wrong[rows], weight)
        weights = cell_weights.astype(scores.dtype)[self.cell]
        loss_weight = self.weight if loss_weight is None else loss_weight
        if self._learns is not None:
            loss_weight = self._learns if loss_weight is None else loss_weight * self._learns
        is_opposed = weights < 0 if cell_weights.min() < 0 else None
        return weigh(
            *log_loss_gradients(scores, self.label, is_opposed),
            weights,
            1.0 if loss_weight is None else loss_weight,
        )

    def meet_rows(self, label: Any) -> None:
        """Makes sure, once, that the library's data set holds the rows this was made for.

        Raises:
            ValueError: if its labels are others.
        """
        if self._has_met_its_rows:
            return
        if not np.array_equal(label, self.label):
            raise ValueError(
                "y: expected the labels of the training data set, in its order and numbered from "
                f"0 ({len(label)} rows); the objective was made for {len(self.label)} rows with "
                f"labels {self.groups.labels.tolist()}."
            )
        self._has_met_its_rows = True

    def _checked(self, scores: Any) -> Any:
        n_rows, n_labels = len(self.label), len(self.groups.labels)
        shape = (n_rows,) if n_labels == 2 else (n_rows, n_labels)
        if scores.shape != shape:
            raise ValueError(
                f"scores: expected shape {shape} for {n_rows} rows of {n_labels} classes, got "
                f"{scores.shape}; the rows must be those the objective was made for."
            )
        return scores


def _roles(is_held_out: Any) -> tuple[Any, Any]:
    """Factors that take rows held out of the trees, and an index of the rows that are judged."""
    if not is_held_out.any():
        return None, slice(None)
    return (~is_held_out).astype(np.float64), np.flatnonzero(is_held_out)


def _at_least_0(value: Any, argument: str) -> float:
    if not _is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{argument}: expected a number of at least 0, got {value!r}.")
    return float(value)


def _share(value: Any, argument: str) -> float:
    if not _is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{argument}: expected a share from 0 to below 1, got {value!r}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
