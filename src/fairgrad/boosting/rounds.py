"""One step of the method per boosting round: the state that `fairgrad.dual.step` moves on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad import dual
from fairgrad.evaluate import unfairness

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

TOLERATED_LOSS, FIRST_ROUND, SMOOTHED = 0.03, 5, 5
"""What rounds may lose in accuracy against the best before the fairest of the others is taken; the
first to be looked at; over how many the figures are averaged."""


class RoundRecord(NamedTuple):
    """What was known before a round: how good the model was, and the state of the method.

    Rounds are chosen by the merit: the accuracy, or what costs make of it (`dual.cost_shares`).
    """

    accuracy: float
    merit: float
    unfairness: float
    dual_state: dual.State
    weights: Floats


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
        records: of each round since this was made.
    """

    def __init__(
        self, groups: Groups, constraints: Constraints, *, steady: bool = True, **settings: Any
    ) -> None:
        self.constraints = constraints
        self.constants = dual.make_constants(constraints, groups, **settings)
        self.dual_state = dual.start(self.constants, len(groups.labels))
        self.weights: Floats = dual.net_weights(self.constants, np.zeros(len(constraints.c0)))
        self.n_rounds = 0
        self.records: list[RoundRecord] = []
        self._share = groups.cell_mass(constraints.by_label) / groups.mass.sum()
        self._cost_shares = None
        if self.constants.n_outcomes > 1:  # [l, (y, r)], as the rates of predicted labels
            shares = dual.cost_shares(settings.get("cost_matrix"), len(groups.labels))
            self._cost_shares = np.repeat(shares.T, groups.n_groups, axis=1)
        self._steady = _Steady(self.constants) if steady else None

    def step(self, cell: Ints, wrong: Any, sample_weight: Floats | None = None) -> Floats:
        """Takes in the predictions of all rows before a round, gives the weights of the cells.

        Args:
            cell: (n,) the cell of each row.
            wrong: (n,) whether its prediction is wrong; for measures of what is predicted, 1 + the
                index of the label predicted.
            sample_weight: (n,), or None for ones.
        """
        return self.take(self.count(cell, wrong, sample_weight))

    def count(self, cell: Ints, wrong: Any, sample_weight: Floats | None = None) -> Floats:
        """(2, K) rows of each cell that are predicted rightly and wrongly; as in `step`.

        For measures of what is predicted: (1 + L, K) rows of each predicted label, after none.
        """
        n_cells, n_counted = len(self._share), 1 + self.constants.n_outcomes
        counts = np.bincount(cell + n_cells * wrong, sample_weight, minlength=n_counted * n_cells)
        return counts.astype(np.float64).reshape(n_counted, n_cells)

    def take(self, outcomes: Floats) -> Floats:
        """Takes in the counts of all rows, which several processes may have summed; as `step`."""
        if self._steady is None:
            self.dual_state, self.weights = dual.step(self.constants, self.dual_state, outcomes)
        else:
            self.dual_state, self.weights = self._steady.step(self.dual_state, outcomes)
        self.n_rounds += 1
        accuracy = 1.0 - float(self._share @ self._cell_errors())
        unfair = float(unfairness(self.constraints.gaps(self.levels)))
        merit = accuracy
        if self._cost_shares is not None:
            by_outcome = self.errors.reshape(len(self._cost_shares), -1)
            merit = 1.0 - float(self._share @ (self._cost_shares * by_outcome).sum(0))
        self.records.append(RoundRecord(accuracy, merit, unfair, self.dual_state, self.weights))
        return self.weights

    def best(self) -> int | None:
        """How many of the rounds to keep; None for all of them.

        All, if the last ones are within 3 points of the best accuracy: fairness is then at hand at
        a fair price. Else the fairest of those that are, so that no model comes out that fairness
        has made useless. Figures are means over 5 rounds, on the rows that levels are measured on.
        """
        n = len(self.records) - FIRST_ROUND - SMOOTHED + 1
        if n < 1:
            return None
        figures = np.array([(one.merit, one.unfairness) for one in self.records])[FIRST_ROUND:]
        means = np.cumsum(np.vstack([np.zeros(2), figures]), axis=0)
        merit, unfair = ((means[SMOOTHED:] - means[:-SMOOTHED]) / SMOOTHED).T
        within = merit >= merit.max() - TOLERATED_LOSS
        if within[-1]:
            return None
        return int(np.where(within, unfair, np.inf).argmin()) + FIRST_ROUND + SMOOTHED // 2

    def go_back(self, n_kept: int) -> None:
        """The state as it was when there were so many rounds since this was made."""
        record = self.records[n_kept]
        self.n_rounds -= len(self.records) - n_kept
        self.dual_state, self.weights = record.dual_state, record.weights

    def _cell_errors(self) -> Floats:
        """(K,) the error rates of the cells, of outcomes by ``e_k = 1 - q[k, y_k]``."""
        n_labels = self.constants.n_outcomes
        if n_labels == 1:
            return self.errors
        by_label = self.errors.reshape(n_labels, n_labels, -1)
        own: Floats = 1.0 - by_label[np.arange(n_labels), np.arange(n_labels)].ravel()
        return own

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
