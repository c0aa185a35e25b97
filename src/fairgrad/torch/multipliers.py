"""The state of the method as buffers of a module, and its step on a batch."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import dual
from fairgrad.torch.cells import NOWHERE, CellLookup
from fairgrad.torch.compiled import MAX_COLUMNS, CompiledStep, is_compiled
from fairgrad.torch.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Groups


class LossBatch(NamedTuple):
    """The rows of a batch, and what is to be done with them.

    Attributes:
        label: (N,) labels.
        s: (N,) sensitive values, or (N, columns).
        sample_weight: (N,) in double precision, or None for ones.
        mean: whether factors are divided by the weight of the rows not ignored.
        update: whether the state changes.
    """

    label: Tensor
    s: Tensor
    sample_weight: Tensor | None
    mean: bool
    update: bool


class Multipliers(nn.Module):
    """Keeps the multipliers of the constraints and gives each row of a batch its factor.

    Everything that changes is a buffer, so it is saved, restored, copied and moved with the module
    it belongs to. It is kept in double precision whatever the precision of the network (in single
    precision on devices that have no other). On the CPU the step is compiled code, or NumPy's if
    there was no compiler when the package was built; elsewhere, under ``torch.compile`` and with
    several processes it is tensor operations.

    Args:
        groups: of the training set.
        constraints: on the cells of these groups, all of them defined.
        ignore_index: a target that is in no cell, if the loss has one.
        processes: those that share one set of multipliers.
        settings: rates and others, as `fairgrad.dual.make_constants` takes them.

    Attributes:
        lookup: the cells of rows.
        is_compiled: whether the compiled step may be used.
    """

    rows: Tensor
    errors: Tensor
    multipliers: Tensor

    def __init__(
        self,
        groups: Groups,
        constraints: Constraints,
        *,
        ignore_index: int | None = None,
        processes: Processes | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.processes = processes or Processes(None)
        self.lookup = CellLookup(groups, by_label=constraints.by_label, ignore_index=ignore_index)
        constants = dual.make_constants(constraints, groups, **settings)
        self._constants = constants.convert(torch.from_numpy)
        for name, array in self._arrays().items():
            self.register_buffer(name, array, persistent=False)
        for name, array in dual.start(constants, len(groups.labels))._asdict().items():
            self.register_buffer(name, torch.from_numpy(array))
        self.is_compiled = is_compiled and self.lookup.n_columns <= MAX_COLUMNS
        self._compiled: CompiledStep | None = None
        self._as_arrays: dual.Constants | None = None
        self._is_on_cpu = True
        self.fingerprint = _fingerprint(
            groups.labels,
            groups.ids,
            groups.cell_mass(constraints.by_label),
            *(getattr(constraints, name) for name in ("c0", "lower", "upper")),
            *(getattr(constants, name) for name in ("row", "cell", "value", "block", "share")),
        )

    @property
    def fairness_rate(self) -> float:
        """The step size of the multipliers; it may be changed between steps."""
        return float(self._constants.fairness_rate)

    @fairness_rate.setter
    def fairness_rate(self, rate: float) -> None:
        self._set_constants(fairness_rate=float(rate))

    def _set_constants(self, **changed: Any) -> None:
        self._constants = replace(self._constants, **changed)
        self._compiled = self._as_arrays = None

    def factors(
        self, batch: LossBatch, wrong: Callable[[], Tensor], scores: Tensor | None = None
    ) -> Tensor:
        """Takes in the predictions of a batch, updates the state, gives each row's factor.

        Args:
            batch: labels, sensitive values and weights of the rows.
            wrong: a function that gives (N,) which predictions are wrong.
            scores: (N, classes) whose highest entry is the prediction, if that is how it is read.

        Returns:
            (N,) the weight of each row's cell times its sample weight.

        Raises:
            ValueError: if a label or sensitive value was never seen. Nothing has changed then.
        """
        if (
            torch.compiler.is_compiling()
            or not (batch.label.is_cpu and self._is_on_cpu)
            or not self.processes.is_alone
            or not all(map(_is_plain, self.state))
        ):
            return self._tensor_factors(batch, wrong())
        if self.is_compiled:
            return self._compiled_factors(batch, wrong, scores)
        return self._array_factors(batch, wrong())

    def _compiled_factors(
        self, batch: LossBatch, wrong: Callable[[], Tensor], scores: Tensor | None
    ) -> Tensor:
        if self._compiled is None:
            self._compiled = CompiledStep(self._constants, self.lookup)
        if scores is not None and not (scores.dtype == torch.float32 and scores.is_contiguous()):
            scores = None
        flags = wrong().to(torch.uint8).contiguous() if scores is None else None
        factors = self._compiled.factors(batch, scores, flags, self.state)
        if factors is None:
            raise ValueError(self.lookup.explain(batch.label, batch.s))
        return factors

    def _array_factors(self, batch: LossBatch, wrong: Tensor) -> Tensor:
        """With NumPy, whose small operations cost a fraction of PyTorch's on the CPU."""
        label, s, sample_weight, mean, update = batch
        lookup = self.lookup
        cell = lookup(label, s).numpy()
        if cell.max() >= NOWHERE:
            raise ValueError(lookup.explain(label, s))
        weight = None if sample_weight is None else sample_weight.numpy()
        slot, n_slots = cell + lookup.n_slots * wrong.numpy(), 2 * lookup.n_slots
        counts = np.bincount(slot, weight, minlength=n_slots).astype(np.float64)
        counts = counts.reshape(2, -1)[:, : lookup.n_cells]
        if self._as_arrays is None:
            self._as_arrays = self._constants.convert(Tensor.numpy, Tensor)
        constants = self._as_arrays
        state = dual.State(*(part.numpy() for part in self.state))
        if update:
            found, weights = dual.step(constants, state, counts)
            for own, new in zip(state, found, strict=True):
                own[:] = new  # the buffers' own memory
        else:
            weights = dual.current_weights(constants, state)
        factors = np.append(weights, np.ones(lookup.n_slots - lookup.n_cells))[cell]
        factors = factors if weight is None else factors * weight
        return torch.from_numpy((factors / (counts.sum() if mean else 1.0)).astype(np.float32))

    def _tensor_factors(self, batch: LossBatch, wrong: Tensor) -> Tensor:
        label, s, sample_weight, mean, update = batch
        lookup, constants = self.lookup, self._constants
        cell = lookup(label, s)
        rows = constants.per_share.new_ones(()).expand(cell.shape)
        if sample_weight is not None:
            rows = sample_weight.to(rows.dtype)
        if lookup.ignore_index is not None:
            counted = label.ne(lookup.ignore_index)
            divisor = (rows * counted).sum()
        else:
            divisor = rows.sum()
        counts = rows.new_zeros(2 * lookup.n_slots)
        try:
            counts = counts.index_add(0, cell + lookup.n_slots * wrong.long(), rows)
        except (IndexError, RuntimeError) as error:
            problem = self.lookup.explain(label, s)
            if problem is None:
                raise
            raise ValueError(problem) from error
        counts = counts.view(2, -1)[:, : lookup.n_cells]
        if update:
            if not self.processes.is_alone:
                counts = self.processes.sum(counts.contiguous())
            state, weights = dual.step(constants, self.state, counts)
            for name, tensor in state._asdict().items():
                self._buffers[name].copy_(tensor)  # type: ignore[union-attr]
        else:
            weights = dual.current_weights(constants, self.state)
        if lookup.n_slots > lookup.n_cells:
            weights = torch.cat([weights, weights.new_ones(lookup.n_groups)])
        if mean:
            weights = weights / divisor
        factors: Tensor = weights.index_select(0, cell)
        return (factors if sample_weight is None else factors * rows).float()

    @property
    def state(self) -> dual.State:
        """What changes from step to step."""
        own = self._buffers  # module attributes are slow to find in the hot path
        return dual.State(own["rows"], own["errors"], own["multipliers"])

    @property
    def cell_weights(self) -> Tensor:
        """(K,) the current weights of the cells."""
        weights: Tensor = dual.current_weights(self._constants, self.state)
        return weights.float()

    @property
    def levels(self) -> Tensor:
        """(J,) the current estimate of the levels of fairness."""
        levels: Tensor = dual.levels(self._constants, self.errors)
        return levels.float()

    @property
    def net(self) -> Tensor:
        """(J,) one multiplier per constraint, lambda - delta."""
        net: Tensor = dual.net_multipliers(self._constants, self.multipliers)
        return net.float()

    def _arrays(self) -> dict[str, Tensor]:
        found = {
            field.name: getattr(self._constants, field.name) for field in fields(dual.Constants)
        }
        return {name: value for name, value in found.items() if isinstance(value, Tensor)}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": None, "_as_arrays": None}  # views and addresses

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Multipliers:
        """Follows its parent to another device but not to another precision."""

        def move(tensor: Tensor) -> Tensor:
            try:
                moved = fn(tensor)
            except TypeError:  # a device without double precision
                return fn(tensor.float())
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        super()._apply(move, recurse)  # type: ignore[no-untyped-call]
        moved = {name: self._buffers[name] for name in self._arrays()}
        self._set_constants(**moved)
        self._is_on_cpu = self.rows.is_cpu
        return self

    def get_extra_state(self) -> Tensor:
        """The fingerprint: it travels with the state, but is no buffer to be averaged or cast."""
        return self.fingerprint

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing to do: it was compared before anything was loaded."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        found = state_dict.get(f"{prefix}_extra_state")
        if found is not None and not torch.equal(found.cpu().float().round(), self.fingerprint):
            raise ValueError(
                "state_dict: these multipliers were trained on another problem: the training data, "
                "the fairness measure or its bounds differ from those of this loss."
            )
        super()._load_from_state_dict(state_dict, prefix, *args)


def _is_plain(tensor: Tensor) -> bool:
    """Whether its memory is what compiled code expects; frameworks may replace buffers."""
    return tensor.dtype == torch.float64 and tensor.is_contiguous()


def _fingerprint(*arrays: Any) -> Tensor:
    """16 small numbers that change whenever the data, the measure or the bounds do.

    They are whole floats, so that they survive a cast, and averages of equal checkpoints.
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.round(array, 6).tobytes())  # the last bits may differ between machines
    return torch.tensor(list(digest.digest()), dtype=torch.float32)
