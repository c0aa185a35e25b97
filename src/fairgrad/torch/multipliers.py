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
    from fairgrad.groups import Floats, Groups
    from fairgrad.torch.lookup import CellLookup


FEW_CELLS = 256
"""Up to so many cells a product with the pooling matrices is faster than pooling step by step."""


class Multipliers(nn.Module):
    """Keeps the multipliers of the constraints and gives each cell its weight.

    Everything that changes is a buffer, so it is saved, restored, copied and moved with the module
    it belongs to. It stays in float32 whatever the precision of the network.

    Args:
        groups: of the training set.
        constraints: on the cells of these groups, all of them defined.
        lookup: where rows are counted; cells beyond those of the constraints have weight 1.
        fairness_rate: step size of the multipliers.
        proportional_rate: how strongly the weights react to what is broken in this batch alone.
        error_memory: share of the rows of earlier batches kept in the error estimates.
        negative_weights: whether weights may be negative; if not they are clipped at 0.
        ranks: the processes that share one set of multipliers.
    """

    c0: Tensor
    C: Tensor
    sign: Tensor
    rows: Tensor
    errors: Tensor
    first_slot: Tensor
    multipliers: Tensor
    fingerprint: Tensor

    def __init__(
        self,
        groups: Groups,
        constraints: Constraints,
        lookup: CellLookup,
        *,
        fairness_rate: float = 0.01,
        proportional_rate: float = 0.0,
        error_memory: float = 0.0,
        negative_weights: bool = True,
        ranks: Ranks | None = None,
    ) -> None:
        super().__init__()
        self.ranks = ranks or Ranks(None)
        self.fairness_rate = float(fairness_rate)
        self.proportional_rate = float(proportional_rate)
        self.error_memory = error_memory
        self.negative_weights = negative_weights
        self.n_cells = constraints.C.shape[1]
        self.n_label_rows = lookup.n_cells // groups.n_groups
        self.has_few_cells = lookup.n_cells <= FEW_CELLS

        n_ignored = lookup.n_cells - self.n_cells
        C = np.pad(constraints.C, [(0, 0), (0, n_ignored)])
        lower, upper = np.asarray(constraints.lower), np.asarray(constraints.upper)
        sides = dual.sides(constraints.c0, C, lower, upper)
        mass = np.pad(groups.cell_mass(constraints.by_label), (0, n_ignored))
        constants = {
            "c0": constraints.c0,
            "C": constraints.C,
            "A": sides.A,
            "floor": None if np.isneginf(sides.floor).all() else sides.floor,
            "sign": sides.sign,
            "zeros": np.zeros(len(lookup.cell)),
            **self._by_slot(lookup, dual.influence(sides.A, mass / mass.sum())),
        }
        for name, value in constants.items():
            self.register_buffer(name, _tensor(value), persistent=False)
        start = dual.nothing_remembered(lookup.n_cells, len(groups.labels))
        state = {**start._asdict(), "multipliers": np.zeros(len(sides.A))}
        for name, value in state.items():
            self.register_buffer(name, _tensor(value))
        data = (groups.labels, groups.ids, mass, constraints.c0, constraints.C, lower, upper)
        self.register_buffer("fingerprint", _fingerprint(*data))
        self._ones: dict[int, Tensor] = {}
        self._is_settled = False
        self._may_settle = self._can_settle
        self._n_occurring = int((mass > 0).sum()) + 1  # the constant cell is among the rows

    def _by_slot(self, lookup: CellLookup, influence: Floats) -> dict[str, Any]:
        """Constants between slots and cells.

        Few cells have matrices that take slots in and give slots out. Many cells are pooled and
        weighted as cells, since such matrices would be large.
        """
        count = lookup.cell + lookup.n_cells * lookup.is_wrong
        first_slot = np.unique(lookup.cell, return_index=True)[1]
        if not self.has_few_cells:
            own = {"count_of_slot": count, "cell_of_slot": lookup.cell, "influence": influence}
            return own | {"ones": np.ones(lookup.n_cells), "first_slot": first_slot}
        rows, wrong = dual.pooling(lookup.n_cells, self.n_label_rows)
        own = {"pool_rows": rows[:, count], "pool_wrong": wrong[:, count]}
        own |= {"influence": influence[lookup.cell], "ones": np.ones(len(count))}
        return own | {"first_slot": first_slot}

    def step(self, slot: Tensor, sample_weight: Tensor | None, scale: float = 1.0) -> Tensor:
        """Takes in the predictions of a batch, updates the state, gives the new weights.

        Nothing leaves the device, and it compiles into one graph.

        Args:
            slot: (N,) the slot of each row, its cell and whether its prediction is wrong.
            sample_weight: (N,) float32, or None for ones.
            scale: what the weights are multiplied by.

        Returns:
            (slots,) the weight of each slot, which is that of its cell.
        """
        own: dict[str, Any] = self._buffers  # module attributes are slow to find in the hot path
        rows = sample_weight
        if rows is None:
            rows = self._ones.get(slot.shape[0])
            rows = self._new_ones(slot) if rows is None else rows
        counts = own["zeros"].index_add(0, slot, rows)
        if not self.ranks.is_alone:
            counts = self.ranks.sum(counts)
        if self._is_settled:
            errors = dual.settled_errors(own["errors"], own["rows"], self._pooling(), counts)
            own["errors"] = errors
        else:
            errors = self._estimate(counts)
        own["multipliers"] = dual.ascend(
            own["multipliers"], own["A"], errors, own["floor"], self.fairness_rate
        )
        return self._weights(errors, scale)

    def _pooling(self) -> tuple[Tensor, Tensor]:
        own: dict[str, Any] = self._buffers
        return own["pool_rows"], own["pool_wrong"]

    def _estimate(self, counts: Tensor) -> Tensor:
        """The errors after a batch, until every cell that occurs has been seen."""
        own: dict[str, Any] = self._buffers
        pooling: Any = self._pooling() if self.has_few_cells else self.n_label_rows
        if not self.has_few_cells:
            of_cells = counts.new_zeros(2 * len(own["ones"]))
            counts = of_cells.index_add(0, own["count_of_slot"], counts)
        errors: Tensor
        errors, (own["rows"], own["errors"]) = dual.estimate_errors(
            (own["rows"], own["errors"]), pooling, counts, self.error_memory
        )
        if self._may_settle and counts.is_cpu and not torch.compiler.is_compiling():
            self._settle(own["rows"])
        return errors

    def _settle(self, rows: Tensor) -> None:
        """Once every cell that occurs has been seen, all are remembered with the same weight."""
        if int((rows >= dual.TINY).sum()) >= self._n_occurring:
            self._is_settled, self._may_settle = True, False
            self._buffers["rows"] = torch.full_like(rows, dual.TINY)

    def _new_ones(self, slot: Tensor) -> Tensor:
        """Ones, one per row: kept, as batches are mostly of one size."""
        ones = torch.ones(slot.shape[0], device=slot.device)
        if not torch.compiler.is_compiling():
            self._ones = {slot.shape[0]: ones}
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
        return weights if self.has_few_cells else weights.index_select(0, own["cell_of_slot"])

    @property
    def _can_settle(self) -> bool:
        """Whether what is remembered weighs the same for ever once all cells have been seen."""
        return self.has_few_cells and not self.error_memory

    @property
    def weights(self) -> Tensor:
        """(slots,) the current weights of the slots."""
        return self._weights(self.errors, 1.0)

    @property
    def cell_weights(self) -> Tensor:
        """(K,) the current weights of the cells."""
        return self.weights.index_select(0, self.first_slot[: self.n_cells])

    @property
    def levels(self) -> Tensor:
        """(J,) the current estimate of the levels of fairness."""
        level: Tensor = dual.levels(self.c0, self.C, self.errors[: self.n_cells])
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
        self._is_settled, self._may_settle = False, self._can_settle
        super()._load_from_state_dict(state_dict, prefix, *args)


def _tensor(array: Any) -> Tensor | None:
    """Floats in single precision, integers as they are."""
    if array is None:
        return None
    tensor = torch.as_tensor(np.asarray(array))
    return tensor.float() if tensor.is_floating_point() else tensor


def _fingerprint(*arrays: Any) -> Tensor:
    """128 bits that change whenever the data, the measure or the bounds do."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.round(array, 6).tobytes())  # the last bits may differ between machines
    return torch.from_numpy(np.frombuffer(digest.digest(), dtype=np.int64).copy())
