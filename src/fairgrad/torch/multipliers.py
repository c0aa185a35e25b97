"""The state of the method as buffers of a module: error estimates, multipliers, weights."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import dual
from fairgrad.torch.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Groups


FEW_CELLS = 64
"""Up to so many cells a product with the pooling matrices is faster than pooling step by step."""


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
        ranks: the processes that share one set of multipliers.
    """

    c0: Tensor
    C: Tensor
    sign: Tensor
    rows: Tensor
    wrong: Tensor
    multipliers: Tensor
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
        ranks: Ranks | None = None,
    ) -> None:
        super().__init__()
        self.ranks = ranks or Ranks(None)
        self.fairness_rate = float(fairness_rate)
        self.proportional_rate = float(proportional_rate)
        self.error_memory = error_memory
        self.negative_weights = negative_weights
        self.n_cells = constraints.C.shape[1]
        self.n_label_rows = (len(groups.labels) if constraints.by_label else 1) + bool(n_ignored)

        C = np.pad(constraints.C, [(0, 0), (0, n_ignored)])
        lower, upper = np.asarray(constraints.lower), np.asarray(constraints.upper)
        sides = dual.sides(constraints.c0, C, lower, upper)
        mass = np.pad(groups.cell_mass(constraints.by_label), (0, n_ignored))
        n_cells = len(mass)
        self.has_few_cells = n_cells <= FEW_CELLS
        pooling = dual.pooling(n_cells, self.n_label_rows) if self.has_few_cells else (None, None)
        # Rows look their weights up by slot: cells of right predictions, then those of wrong ones.
        copies = 2 if self.has_few_cells else 1
        start = dual.nothing_remembered(n_cells, len(groups.labels))
        constants = {
            "c0": constraints.c0,
            "C": constraints.C,
            "A": sides.A,
            "influence": np.tile(dual.influence(sides.A, mass / mass.sum()), (copies, 1)),
            "floor": None if np.isneginf(sides.floor).all() else sides.floor,
            "sign": sides.sign,
            "ones": np.ones(copies * n_cells),
            "zeros": np.zeros(2 * n_cells),
            "pool_rows": pooling[0],
            "pool_wrong": pooling[1],
        }
        for name, value in constants.items():
            self.register_buffer(name, _float32(value), persistent=False)
        multipliers = np.zeros(len(sides.A))
        state = {"rows": start.rows, "wrong": start.wrong, "multipliers": multipliers}
        for name, value in state.items():
            self.register_buffer(name, _float32(value))
        data = (groups.labels, groups.ids, mass, constraints.c0, constraints.C, lower, upper)
        self.register_buffer("fingerprint", _fingerprint(*data))
        self._ones: dict[int, Tensor] = {}
        self._is_settled = False
        self._may_settle = not error_memory  # what is kept from batch to batch changes for ever
        self._n_occurring = int((mass > 0).sum()) + 1  # the constant cell is among the rows

    def step(self, slot: Tensor, sample_weight: Tensor | None, scale: float = 1.0) -> Tensor:
        """Takes in the predictions of a batch, updates the state, gives the new weights.

        Nothing leaves the device, and it compiles into one graph.

        Args:
            slot: (N,) the slot of each row, its cell and whether its prediction is wrong.
            sample_weight: (N,) float32, or None for ones.
            scale: what the weights are multiplied by.

        Returns:
            (2 K,) the weight of each slot, which is that of its cell.
        """
        own: dict[str, Any] = self._buffers  # module attributes are slow to find in the hot path
        rows = self._row_counts(slot) if sample_weight is None else sample_weight
        counts = own["zeros"].index_add(0, slot, rows)
        if not self.ranks.is_alone:
            counts = self.ranks.sum(counts)
        errors, (own["rows"], own["wrong"]) = dual.estimate_errors(
            (own["rows"], own["wrong"]),
            (own["pool_rows"], own["pool_wrong"]) if self.has_few_cells else self.n_label_rows,
            counts,
            self.error_memory,
            is_settled=self._is_settled,
        )
        if self._may_settle and slot.is_cpu and not torch.compiler.is_compiling():
            self._settle(own["rows"])
        own["multipliers"] = dual.ascend(
            own["multipliers"], own["A"], errors, own["floor"], self.fairness_rate
        )
        return self._weights(errors, scale)

    def _settle(self, rows: Tensor) -> None:
        """Notes when every cell that occurs has been seen."""
        if int((rows >= dual.TINY).sum()) >= self._n_occurring:
            self._is_settled, self._may_settle = True, False

    def _row_counts(self, slot: Tensor) -> Tensor:
        """Ones, one per row: made once, as batches are mostly of one size."""
        n = slot.shape[0]
        if n in self._ones:
            return self._ones[n]
        ones = torch.ones(n, device=slot.device)
        if not torch.compiler.is_compiling():
            self._ones = {n: ones}
        return ones

    def _weights(self, errors: Tensor, scale: float) -> Tensor:
        own: dict[str, Any] = self._buffers
        multipliers = own["multipliers"]
        if self.proportional_rate:
            multipliers = dual.with_proportional(
                multipliers, own["A"], errors, own["floor"], self.proportional_rate
            )
        weights: Tensor = dual.cell_weights(own["ones"], own["influence"], multipliers, scale)
        if not self.negative_weights:
            weights = weights.clip(min=0)
        return weights if self.has_few_cells else weights.repeat(2)

    @property
    def weights(self) -> Tensor:
        """(2 K,) the current weights of the slots; the first half are those of the cells."""
        return self._weights(self.wrong / self.rows, 1.0)

    @property
    def errors(self) -> Tensor:
        """(K,) the current estimate of the cells' error rates."""
        return (self.wrong / self.rows)[: self.n_cells]

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

        self._ones = {}
        super()._apply(move, recurse)  # type: ignore[no-untyped-call]
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        found = state_dict.get(prefix + "fingerprint")
        if found is not None and not torch.equal(found.cpu(), self.fingerprint.cpu()):
            raise ValueError(
                "state_dict: these multipliers were trained on another problem: the training data, "
                "the fairness measure or its bounds differ from those of this loss."
            )
        self._is_settled, self._may_settle = False, not self.error_memory
        super()._load_from_state_dict(state_dict, prefix, *args)


def _float32(array: Any) -> Tensor | None:
    return None if array is None else torch.as_tensor(np.asarray(array), dtype=torch.float32)


def _fingerprint(*arrays: Any) -> Tensor:
    """128 bits that change whenever the data, the measure or the bounds do."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.round(array, 6).tobytes())  # the last bits may differ between machines
    return torch.from_numpy(np.frombuffer(digest.digest(), dtype=np.int64).copy())
