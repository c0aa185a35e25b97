"""One step of the method per boosting round: the state that `fairgrad.dual.step` moves on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups, Ints


FULL_GAIN = 10.0
"""A level of a group with a tenth of the rows changes their weight by so much times the rate. On
fewer rows it would change it by more, and few rows are known less well: the rates are lowered."""

CALMED, RECOVERED, CALMEST = 0.7, 1.1, 0.01
"""What the rates of a level are multiplied by when it has changed its side, and when it has not.

A round moves all scores of a leaf at once. Where the scores of a group are close together, as in
models that know the group, most of it changes its label in one round, and weights that react to it
swing from one side to the other for ever."""

MOST_WEIGHT = 10.0
"""By how much the multiplier of one constraint may change the weight of a cell. Where the level
does not answer, as there is nothing to learn that would change it, it would grow for ever."""


class Rounds:
    """Error estimates, multipliers and cell weights, moved on by one step per boosting round.

    Args:
        groups: of the training rows.
        constraints: on the cells of these groups, all of them defined.
        steady: whether the rates of constraints are lowered where groups are small or levels
            swing, and the multipliers bounded; without it a step is that of `fairgrad.dual`.
        **settings: the rates and whether weights may be negative, as in `BoostingObjective`.

    Attributes:
        constraints: as given.
        dual_state: what is known of the cells' errors, and the multipliers.
        weights: (K,) of the cells, in the last round; (L * K,) of each label for measures of what
            is predicted.
        n_rounds: rounds so far.
    """

    def __init__(
        self, groups: Groups, constraints: Constraints, *, steady: bool = True, **settings: Any
    ) -> None:
        self.constraints = constraints
        self.constants = dual.make_constants(constraints, groups, **settings)
        self.dual_state = dual.start(self.constants, len(groups.labels))
        self.weights: Floats = dual.net_weights(self.constants, np.zeros(len(constraints.c0)))
        self.n_rounds = 0
        self._n_cells = len(groups.cell_mass(constraints.by_label))
        self._steady = _Steady(self.constants) if steady else None

    def count_scores(
        self, scores: Floats, label: Ints, cell: Ints, sample_weight: Floats | None = None
    ) -> Floats:
        """(2, K) rows of each cell that scores predict rightly and wrongly.

        For measures of what is predicted: (1 + L, K) rows of each predicted label, after none.

        Args:
            scores: (n,) margins of the second of two classes, or (n, L).
            label: (n,) indices of the classes.
            cell: (n,) the cell of each row.
            sample_weight: (n,), or None for ones.
        """
        predicted, n_outcomes = predicted_labels(scores), self.constants.n_outcomes
        outcome = predicted != label if n_outcomes == 1 else 1 + predicted
        n_cells, n_counted = self._n_cells, 1 + n_outcomes
        counts = np.bincount(cell + n_cells * outcome, sample_weight, minlength=n_counted * n_cells)
        return counts.astype(np.float64).reshape(n_counted, n_cells)

    def take(self, outcomes: Floats) -> Floats:
        """Takes in the counts of all rows before a round, and gives the weights of the cells."""
        if self._steady is None:
            self.dual_state, self.weights = dual.step(self.constants, self.dual_state, outcomes)
        else:
            self.dual_state, self.weights = self._steady.step(self.dual_state, outcomes)
        self.n_rounds += 1
        return self.weights

    @property
    def errors(self) -> Floats:
        """(K,) the estimate of the cells' error rates before the last round.

        (L * K,) of the rates of each predicted label, for measures of these.
        """
        errors: Floats = self.dual_state.errors
        return errors

    @property
    def levels(self) -> Floats:
        """(J,) the estimate of the levels of fairness before the last round."""
        levels: Floats = dual.levels(self.constants, self.errors)
        return levels

    @property
    def net_multipliers(self) -> Floats:
        """(J,) one multiplier per constraint, lambda - delta."""
        net: Floats = dual.net_multipliers(self.constants, self.dual_state.multipliers)
        return net

    def state(self) -> dict[str, Any]:
        """All that changes from round to round, as plain lists and numbers for JSON."""
        return {
            "rounds": self.n_rounds,
            "constraints": list(self.constraints.names),
            "multipliers": self.dual_state.multipliers.ravel().tolist(),
            "weights": self.weights.tolist(),
            "remembered_rows": self.dual_state.rows.tolist(),
            "remembered_errors": self.dual_state.errors.tolist(),
            "calm": None if self._steady is None else self._steady.calm.tolist(),
            "violations": None if self._steady is None else self._steady.before.tolist(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state of the same problem.

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
        rows, errors, multipliers, _ = self.dual_state
        current = (multipliers.ravel(), self.weights, rows, errors)
        for name, new, old in zip(names, loaded, current, strict=True):
            if new.shape != old.shape:
                raise ValueError(f"state: expected {name} of shape {old.shape}, got {new.shape}.")
        self.dual_state = dual.State(loaded[2], loaded[3], loaded[0].reshape(multipliers.shape))
        self.weights, self.n_rounds = loaded[1], int(state["rounds"])
        if self._steady is not None and state.get("calm") is not None:  # not in older files
            shape = multipliers.shape
            self._steady.calm = np.asarray(state["calm"], dtype=np.float64).reshape(shape)
            self._steady.before = np.asarray(state["violations"], dtype=np.float64).reshape(shape)


def predicted_labels(scores: Floats) -> Ints:
    """(n,) the index of the class with the highest score."""
    found: Ints = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
    return found


class _Steady:
    """Steps of the method with rates for each constraint, lowered where the weights would swing.

    Args:
        constants: of the problem, with one rate for all.
    """

    def __init__(self, constants: dual.Constants) -> None:
        self.constants = constants
        gain = np.zeros(len(constants.c0))  # (J,) by how much a multiplier of 1 changes a weight
        n_cells = len(constants.per_share)
        change = np.abs(constants.value) * constants.per_share[constants.cell % n_cells]
        np.maximum.at(gain, constants.row, change)
        self.lowered = FULL_GAIN / np.maximum(gain, FULL_GAIN)
        self.most = np.divide(MOST_WEIGHT, gain, out=np.full(len(gain), np.inf), where=gain > 0)
        self.calm = np.ones(constants.bound.shape)
        self.before = np.zeros(constants.bound.shape)

    def step(self, state: dual.State, counts: Floats) -> tuple[dual.State, Floats]:
        """As `fairgrad.dual.step`."""
        constants = self.constants
        violation = dual.violations(constants, dual.estimate_errors(constants, state, counts)[1])
        changed = np.where(violation * self.before < 0, CALMED, RECOVERED)
        self.calm, self.before = np.clip(self.calm * changed, CALMEST, 1.0), violation
        rate = self.lowered * self.calm
        constants = replace(
            constants,
            fairness_rate=constants.fairness_rate * rate,
            proportional_rate=constants.proportional_rate * rate,
        )
        state, weights = dual.step(constants, state, counts)
        if (np.abs(state.multipliers) > self.most).any():
            held = np.clip(state.multipliers, -self.most, self.most)
            state = state._replace(multipliers=held)
            weights = dual.current_weights(constants, state)
        return state, weights
