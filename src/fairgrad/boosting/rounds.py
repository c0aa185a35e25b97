"""One step of the method per boosting round: the state that `fairgrad.dual.step` moves on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups, Ints


class Rounds:
    """Error estimates, multipliers and cell weights, moved on by one step per boosting round.

    Args:
        groups: of the training rows.
        constraints: on the cells of these groups, all of them defined.
        **settings: the rates and whether weights may be negative, as in `BoostingObjective`.

    Attributes:
        constraints: as given.
        dual_state: what is known of the cells' errors, and the multipliers.
        weights: (K,) of the cells, in the last round.
        n_rounds: rounds so far.
    """

    def __init__(self, groups: Groups, constraints: Constraints, **settings: Any) -> None:
        self.constraints = constraints
        self.constants = dual.make_constants(constraints, groups, **settings)
        self.dual_state = dual.start(self.constants, len(groups.labels))
        self.weights: Floats = np.ones(constraints.n_cells)
        self.n_rounds = 0

    def step(self, cell: Ints, wrong: Any, sample_weight: Floats | None = None) -> Floats:
        """Takes in the predictions of all rows before a round, gives the weights of the cells.

        Args:
            cell: (n,) the cell of each row.
            wrong: (n,) whether its prediction is wrong.
            sample_weight: (n,), or None for ones.
        """
        n_cells = len(self.weights)
        counts = np.bincount(cell + n_cells * wrong, sample_weight, minlength=2 * n_cells)
        self.dual_state, self.weights = dual.step(
            self.constants, self.dual_state, counts.astype(np.float64).reshape(2, n_cells)
        )
        self.n_rounds += 1
        return self.weights

    @property
    def errors(self) -> Floats:
        """(K,) the estimate of the cells' error rates before the last round."""
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
        rows, errors, multipliers = self.dual_state
        current = (multipliers.ravel(), self.weights, rows, errors)
        for name, new, old in zip(names, loaded, current, strict=True):
            if new.shape != old.shape:
                raise ValueError(f"state: expected {name} of shape {old.shape}, got {new.shape}.")
        self.dual_state = dual.State(loaded[2], loaded[3], loaded[0].reshape(multipliers.shape))
        self.weights, self.n_rounds = loaded[1], int(state["rounds"])
