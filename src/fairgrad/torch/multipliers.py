"""The state of the method as buffers of a module: error estimates, multipliers, weights."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Groups


class Multipliers(nn.Module):
    """Keeps the multipliers of the constraints and gives each cell its weight.

    Everything that changes is a buffer, so it is saved, restored, copied and moved with the module
    it belongs to. It stays in float32 whatever the precision of the network.

    Args:
        groups: of the training set.
        constraints: on the cells of these groups, all of them defined.
        fairness_rate: step size of the multipliers.
        proportional_rate: how strongly the weights react to what is broken in this batch alone.
        error_memory: share of the rows of earlier batches kept in the error estimates.
        negative_weights: whether weights may be negative; if not they are clipped at 0.
        n_ignored: extra cells at the end that are in no constraint and have weight 1.
    """

    c0: Tensor
    C: Tensor
    sign: Tensor
    remembered: Tensor
    multipliers: Tensor
    weights: Tensor
    fingerprint: Tensor

    def __init__(
        self,
        groups: Groups,
        constraints: Constraints,
        *,
        fairness_rate: float = 0.01,
        proportional_rate: float = 0.0,
        error_memory: float = 0.0,
        negative_weights: bool = True,
        n_ignored: int = 0,
    ) -> None:
        super().__init__()
        self.fairness_rate = fairness_rate
        self.proportional_rate = proportional_rate
        self.error_memory = error_memory
        self.negative_weights = negative_weights
        self.n_cells = constraints.C.shape[1]
        self.n_label_rows = (len(groups.labels) if constraints.by_label else 1) + bool(n_ignored)

        C = np.pad(constraints.C, [(0, 0), (0, n_ignored)])
        lower, upper = np.asarray(constraints.lower), np.asarray(constraints.upper)
        sides = dual.sides(constraints.c0, C, lower, upper)
        mass = np.pad(groups.cell_mass(constraints.by_label), (0, n_ignored))
        constants = {
            "c0": constraints.c0,
            "C": constraints.C,
            "a0": sides.a0,
            "A": sides.A,
            "A_over_p": dual.over_shares(sides.A, mass / mass.sum()),
            "floor": sides.floor,
            "sign": sides.sign,
            "pool": dual.pool(np.eye(C.shape[1]), self.n_label_rows),
        }
        for name, value in constants.items():
            self.register_buffer(name, _float32(value), persistent=False)
        state = {
            "remembered": dual.nothing_remembered(C.shape[1], len(groups.labels)),
            "multipliers": np.zeros(len(sides.a0)),
            "weights": np.ones(C.shape[1]),
        }
        for name, value in state.items():
            self.register_buffer(name, _float32(value))
        data = (groups.labels, groups.ids, mass, constraints.c0, constraints.C, lower, upper)
        self.register_buffer("fingerprint", _fingerprint(*data))

    def step(self, cell: Tensor, wrong: Tensor, sample_weight: Tensor | None) -> Tensor:
        """Takes in the predictions of a batch, updates the state, gives the new weights of cells.

        Args:
            cell: (N,) the cell of each row.
            wrong: (N,) whether its prediction is wrong.
            sample_weight: (N,) float32, or None for ones.
        """
        own = self._buffers  # attributes of modules are slow to find, and this is the hot path
        counts = self.count(cell, wrong, sample_weight) @ own["pool"]
        errors, remembered = dual.estimate_errors(own["remembered"], counts, self.error_memory)
        violation = dual.violations(own["a0"], own["A"], errors)
        multipliers = dual.ascend(own["multipliers"], violation, own["floor"], self.fairness_rate)
        used = multipliers
        if self.proportional_rate:
            used = dual.with_proportional(used, violation, own["floor"], self.proportional_rate)
        weights = dual.cell_weights(own["A_over_p"], used)
        if not self.negative_weights:
            weights = weights.clip(min=0)
        own["remembered"].copy_(remembered)
        own["multipliers"].copy_(multipliers)
        own["weights"].copy_(weights)
        return weights

    def count(self, cell: Tensor, wrong: Tensor, sample_weight: Tensor | None) -> Tensor:
        """(2, K) rows of the batch predicted rightly and wrongly in each cell."""
        n = self._buffers["weights"].shape[0]
        counts = torch.zeros(2 * n, device=cell.device)
        rows = counts.new_ones(cell.shape) if sample_weight is None else sample_weight
        return counts.index_add_(0, torch.add(cell, wrong, alpha=n), rows).view(2, n)

    @property
    def errors(self) -> Tensor:
        """(K,) the current estimate of the cells' error rates."""
        right, wrong = self.remembered[:, : self.n_cells]
        return wrong / (right + wrong)

    @property
    def levels(self) -> Tensor:
        """(J,) the current estimate of the levels of fairness."""
        level: Tensor = dual.levels(self.c0, self.C, self.errors)
        return level

    @property
    def net(self) -> Tensor:
        """(J,) one multiplier per constraint, lambda - delta."""
        multipliers: Tensor = dual.net_multipliers(self.multipliers, self.sign)
        return multipliers

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Multipliers:
        """Follows its parent to another device but not to another precision."""

        def move(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        super()._apply(move, recurse)  # type: ignore[no-untyped-call]
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        found = state_dict.get(prefix + "fingerprint")
        if found is not None and not torch.equal(found.cpu(), self.fingerprint.cpu()):
            raise ValueError(
                "state_dict: these multipliers were trained on another problem: the training data, "
                "the fairness measure or its bounds differ from those of this loss."
            )
        super()._load_from_state_dict(state_dict, prefix, *args)


def _float32(array: Any) -> Tensor:
    return torch.as_tensor(np.asarray(array), dtype=torch.float32)


def _fingerprint(*arrays: Any) -> Tensor:
    """128 bits that change whenever the data, the measure or the bounds do."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.round(array, 6).tobytes())  # the last bits may differ between machines
    return torch.from_numpy(np.frombuffer(digest.digest(), dtype=np.int64).copy())
