"""One step of the method per boosting round, with the NumPy functions of `fairgrad.dual`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups, Ints

FEW_CELLS = 64
"""Up to so many cells a product with the pooling matrices is faster than pooling step by step."""


class Rounds:
    """Error estimates, multipliers and cell weights, moved on by one step per boosting round.

    Args:
        groups: of the training rows.
        constraints: on the cells of these groups, all of them defined.
        fairness_rate: step size of the multipliers.
        proportional_rate: how strongly the weights react to what is broken in this round alone.
        error_memory: share of the rows of earlier rounds kept in the error estimates.
        negative_weights: whether weights may be negative; if not they are clipped at 0.

    Attributes:
        constraints: as given.
        memory: what is known of the cells' errors.
        multipliers: (M,) one per side of a constraint.
        weights: (K,) of the cells, in the last round.
        n_rounds: rounds so far.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
        >>> rounds = Rounds(groups, accuracy_parity(groups), fairness_rate=0.5)
        >>> rounds.step(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))
        array([0.75, 1.25])
        >>> rounds.levels
        array([ 0.25, -0.25])
    """

    def __init__(
        self,
        groups: Groups,
        constraints: Constraints,
        *,
        fairness_rate: float,
        proportional_rate: float = 0.0,
        error_memory: float = 0.0,
        negative_weights: bool = True,
    ) -> None:
        self.constraints = constraints
        self.fairness_rate = fairness_rate
        self.proportional_rate = proportional_rate
        self.error_memory = error_memory
        self.negative_weights = negative_weights
        lower, upper = np.asarray(constraints.lower), np.asarray(constraints.upper)
        self.sides = dual.sides(constraints.c0, constraints.C, lower, upper)
        mass = groups.cell_mass(constraints.by_label)
        self.influence = dual.influence(self.sides.A, mass / mass.sum())
        n_cells, n_label_rows = len(mass), len(groups.labels) if constraints.by_label else 1
        few = n_cells <= FEW_CELLS
        self.pooling: Any = dual.pooling(n_cells, n_label_rows) if few else n_label_rows
        self.memory = dual.nothing_remembered(n_cells, len(groups.labels))
        self.multipliers = np.zeros(len(self.sides.A))
        self.weights = np.ones(n_cells)
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
        errors, self.memory = dual.estimate_errors(
            self.memory, self.pooling, counts.astype(np.float64), self.error_memory
        )
        A, floor = self.sides.A, self.sides.floor
        self.multipliers = dual.ascend(self.multipliers, A, errors, floor, self.fairness_rate)
        used = self.multipliers
        if self.proportional_rate:
            used = dual.with_proportional(used, A, errors, floor, self.proportional_rate)
        weights = dual.cell_weights(np.ones(n_cells), self.influence, used)
        self.weights = weights if self.negative_weights else weights.clip(min=0.0)
        self.n_rounds += 1
        return self.weights

    @property
    def errors(self) -> Floats:
        """(K,) the estimate of the cells' error rates before the last round."""
        errors: Floats = self.memory.errors[:-1]
        return errors

    @property
    def levels(self) -> Floats:
        """(J,) the estimate of the levels of fairness before the last round."""
        levels: Floats = dual.levels(self.constraints.c0, self.constraints.C, self.errors)
        return levels

    @property
    def net_multipliers(self) -> Floats:
        """(J,) one multiplier per constraint, lambda - delta."""
        net: Floats = dual.net_multipliers(self.multipliers, self.sides.sign)
        return net

    def state(self) -> dict[str, Any]:
        """All that changes from round to round, as plain lists and numbers for JSON."""
        return {
            "rounds": self.n_rounds,
            "constraints": list(self.constraints.names),
            "multipliers": self.multipliers.tolist(),
            "weights": self.weights.tolist(),
            "remembered_rows": self.memory.rows.tolist(),
            "remembered_errors": self.memory.errors.tolist(),
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
        current = (self.multipliers, self.weights, *self.memory)
        for name, new, old in zip(names, loaded, current, strict=True):
            if new.shape != old.shape:
                raise ValueError(f"state: expected {name} of shape {old.shape}, got {new.shape}.")
        self.multipliers, self.weights = loaded[0], loaded[1]
        self.memory = dual.Memory(loaded[2], loaded[3])
        self.n_rounds = int(state["rounds"])
