"""The state of the method as buffers of a module, and its step on a batch."""

from __future__ import annotations

import hashlib
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import dual
from fairgrad.torch.cells import CellLookup
from fairgrad.torch.compiled import CompiledStep, is_compiled
from fairgrad.torch.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

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
    precision on devices that have no other). In a single process on the CPU the step is compiled
    code, if there was a compiler when the package was built; else it is tensor operations.

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
    seen: Tensor

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
        # As arrays they are out of reach of those who cast or move buffers.
        self._arrays = constants = dual.make_constants(constraints, groups, **settings)
        self._constants = constants.convert(torch.from_numpy)
        self.n_outcomes = constants.n_outcomes
        for name, tensor in self._constants.arrays(Tensor).items():
            self.register_buffer(f"constant_{name}", tensor, persistent=False)
        for name, array in dual.start(constants, len(groups.labels))._asdict().items():
            self.register_buffer(name, torch.from_numpy(array))
        self.is_compiled = is_compiled and self.n_outcomes == 1
        self._compiled: CompiledStep | None = None
        self._known_places: tuple[int, ...] = ()
        self._is_on_cpu = True
        self._lock = threading.Lock()  # threads may share a loss
        self.fingerprint = _fingerprint(
            groups.labels,
            groups.ids,
            groups.cell_mass(constraints.by_label),
            *(getattr(constraints, name) for name in ("c0", "lower", "upper")),
            *(getattr(constants, name) for name in ("row", "cell", "value", "block", "share")),
            *(() if constants.cost is None else (constants.cost,)),
        )

    @property
    def fairness_rate(self) -> float | str:
        """The step size of the multipliers, or "auto"; it may be changed between steps."""
        return "auto" if self._arrays.auto is not None else float(self._arrays.fairness_rate)

    @fairness_rate.setter
    def fairness_rate(self, rate: float) -> None:
        if self._arrays.auto is not None:
            raise ValueError(
                "fairness_rate: this loss has the automatic rate, which cannot be changed after it "
                f"was made; make it with a number, got {rate!r}."
            )
        self._arrays = replace(self._arrays, fairness_rate=float(rate))
        self._constants = replace(self._constants, fairness_rate=float(rate))
        self._compiled = None

    @property
    def settings(self) -> dict[str, Any]:
        """By name, all that has an effect on a step besides the batch and the state."""
        constants = self._arrays
        digest = bytes(self.fingerprint.to(torch.uint8).tolist()).hex()
        return {
            "fairness_rate": self.fairness_rate,
            "proportional_rate": repr(constants.proportional_rate),
            "error_memory": constants.error_memory,
            "negative_weights": constants.least_weight is None,
            "fairness_measure, epsilon, y_desirable or cost_matrix": f"those of digest {digest}",
        }

    def factors(
        self,
        batch: LossBatch,
        wrong: Callable[[], Tensor],
        scores: Tensor | None = None,
        losses: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | float]:
        """Takes in the predictions of a batch, updates the state, gives each row's factor.

        Args:
            batch: labels, sensitive values and weights of the rows.
            wrong: a function that gives (N,) which predictions are wrong; for constraints on
                predicted labels, which label is predicted, as `CellLookup.outcome` says it.
            scores: (N, classes) whose highest entry is the prediction, if that is how it is read.
            losses: (N,) log losses, if rows of negative weight are opposed (`dual.opposed`).

        Returns:
            (N,) the weight of each row's cell times its sample weight; (N, L) of each label for
            constraints on predicted labels. And what opposed rows add to the sum of the losses.

        Raises:
            ValueError: if a label or sensitive value was never seen, or is on another device.
            RuntimeError: if PyTorch transforms the call in a way that leaves the update without
                meaning. Nothing has changed then, either.
        """
        label, s, sample_weight, _, update = batch
        if torch.compiler.is_compiling():
            if update and _is_exporting():
                raise RuntimeError(EXPORTED)
            return self._tensor_factors(batch, wrong(), losses)
        if update and _graph_task() != NO_GRAPH_TASK:
            raise RuntimeError(IN_BACKWARD)
        try:
            if (
                self.is_compiled
                and self._is_on_cpu
                and type(label) is type(s) is Tensor
                and label.is_cpu
                and s.is_cpu
                and (sample_weight is None or sample_weight.is_cpu)
                and self.processes.is_alone
                and (places := self._places()) is not None
            ):
                return self._compiled_factors(batch, wrong, scores, losses, places)
            self._mend()
            self.check_devices(label, s, sample_weight)
            return self._tensor_factors(batch, wrong(), losses)
        except RuntimeError:  # what torch.func transforms has no memory to be read
            losses = None if losses is None else losses.detach()
            given = (label, s, sample_weight, wrong(), losses)
            if all(part is None or _has_memory(part) for part in given):
                raise
            below: Any = _BelowTransforms.apply
            factors: Tensor
            offset: Tensor
            factors, offset = below(self, *given, batch.mean, update)
            return factors, offset

    def _places(self) -> tuple[int, ...] | None:
        """Where the state is in memory; None if compiled code could not read it there.

        Memory at the same place as in the last step is the same: nobody else can have got it.
        """
        own: Any = self._buffers  # module attributes are slow to find in the hot path
        rows, errors, multipliers, seen = (
            own["rows"], own["errors"], own["multipliers"], own["seen"]
        )  # fmt: skip
        places = rows.data_ptr(), errors.data_ptr(), multipliers.data_ptr(), seen.data_ptr()
        if places != self._known_places:
            if not _is_plain(self.state):
                return None
            self._known_places = places
        return places

    def _compiled_factors(
        self,
        batch: LossBatch,
        wrong: Callable[[], Tensor],
        scores: Tensor | None,
        losses: Tensor | None,
        places: tuple[int, ...],
    ) -> tuple[Tensor, Tensor | float]:
        if self._compiled is None:
            self._compiled = CompiledStep(self._arrays.convert(torch.from_numpy), self.lookup)
        flags = None
        if scores is None or not (_is_single(scores) and scores.ndim == 2):
            scores, flags = None, _plain(wrong()).to(torch.uint8).contiguous()
        read = losses if losses is None or _is_single(losses) else None
        found = self._compiled.factors(batch, scores, flags, read, places)
        if found is None:
            raise ValueError(self.lookup.explain(batch.label, batch.s))
        if losses is not read and losses is not None:
            return _oppose(found[0], losses)
        return found

    def _tensor_factors(
        self, batch: LossBatch, wrong: Tensor, losses: Tensor | None
    ) -> tuple[Tensor, Tensor | float]:
        with _full_precision(batch.label.device.type):
            factors = self._cell_factors(batch, wrong)
            return (factors, 0.0) if losses is None else _oppose(factors, losses)

    def _cell_factors(self, batch: LossBatch, wrong: Tensor) -> Tensor:
        label, s, sample_weight, mean, update = batch
        lookup, constants = self.lookup, self._constants
        cell = lookup(label, s)
        rows = constants.per_share.new_ones(()).expand(cell.shape)
        if sample_weight is not None:
            rows = sample_weight.to(rows.dtype)
        counted = torch.ones_like(rows)
        if lookup.ignore_index is not None:
            counted = label.ne(lookup.ignore_index).to(rows.dtype)
        divisor, n_rows = (rows * counted).sum(), (counted * (rows > 0)).sum()
        # Weights that only the host could refuse spoil the loss of this batch, but no later one.
        finite = rows if sample_weight is None else rows.nan_to_num(0, 0, 0).clamp(min=0)
        n_counted = 1 + self.n_outcomes
        counts = rows.new_zeros(n_counted * lookup.n_slots)
        try:
            counts = counts.index_add(0, cell + lookup.n_slots * wrong.long(), finite)
        except (IndexError, RuntimeError) as error:
            problem = self.lookup.explain(label, s)
            if problem is None:
                raise
            raise ValueError(problem) from error
        counts = counts.view(n_counted, -1)[:, : lookup.n_cells]
        if update:
            counts = torch.cat([counts.reshape(-1), n_rows.reshape(1)])
            if not self.processes.is_alone:
                self._compare_settings()
                self.processes.sum(counts)
            weights = self._update(counts, is_weighted=sample_weight is not None)
        else:
            weights = dual.current_weights(constants, self.state)
        n_more = lookup.n_slots - lookup.n_cells
        if self.n_outcomes > 1:  # targets to be ignored have no label to learn
            weights = weights.view(self.n_outcomes, -1).t()
            weights = torch.cat([weights, weights.new_zeros(n_more, self.n_outcomes)])
            rows = rows[:, None]
        elif n_more:
            weights = torch.cat([weights, weights.new_ones(n_more)])
        if mean:
            weights = weights / divisor
        factors: Tensor = weights.index_select(0, cell)
        return (factors if sample_weight is None else factors * rows).float()

    def _update(self, counts: Tensor, *, is_weighted: bool = True) -> Tensor:
        """A step with these counts, in the memory of the buffers; gives the weights.

        Args:
            counts: (outcomes * K + 1,) of each outcome and cell, and the number of rows.
            is_weighted: whether counts may be sums of sample weights.
        """
        weights: Tensor
        by_cell, n_rows = counts[:-1].view(-1, self.lookup.n_cells), counts[-1]
        with nullcontext() if torch.compiler.is_compiling() else self._lock:
            state, weights = dual.step(
                self._constants, self.state, by_cell, n_rows if is_weighted else None
            )
            for name, tensor in state._asdict().items():
                self._buffers[name].copy_(tensor)  # type: ignore[union-attr]
        return weights

    def _compare_settings(self) -> None:
        """Before the first sum: the processes may have started after this loss was made."""
        if not self.processes.is_checked and not torch.compiler.is_compiling():
            self.processes.check_settings(self.settings)

    def step_without_rows(self) -> None:
        """A step of a process that has no rows, but whose twins may have."""
        if not self.processes.is_alone:
            counts = self._no_counts()
            self._compare_settings()
            self.processes.sum(counts)
            self._update(counts)

    def start_without_rows(self) -> Callable[[], None]:
        """Starts such a step.

        Returns:
            A function that waits for the others' counts and takes them in.
        """
        counts = self._no_counts()
        wait = self.processes.start_sum(counts)

        def finish() -> None:
            wait()
            self._update(counts)

        return finish

    def _no_counts(self) -> Tensor:
        size = (1 + self.n_outcomes) * self.lookup.n_cells + 1
        counts: Tensor = self._constants.per_share.new_zeros(size)
        return counts

    def _mend(self) -> None:
        """Gives buffers that a framework has cast their precision back.

        Raises:
            TypeError: if they are not tensors of PyTorch's own.
        """
        for part in self.state:
            if type(part) is not Tensor:
                raise TypeError(
                    f"criterion: its buffers have become {type(part).__name__}s; keep the loss out "
                    "of the module that is distributed or converted."
                )
        precision = torch.float32 if self.rows.device.type == "mps" else torch.float64
        if any(part.dtype != precision for part in (*self.state, self._constants.per_share)):

            def exact(array: Any) -> Tensor:
                tensor = torch.from_numpy(array)
                tensor = tensor.to(precision) if tensor.is_floating_point() else tensor
                return tensor.to(self.rows.device)

            self._constants = self._arrays.convert(exact)
            fresh = self._constants.arrays(Tensor)
            self._buffers.update({f"constant_{name}": part for name, part in fresh.items()})
            self._buffers.update({k: v.to(precision) for k, v in self.state._asdict().items()})

    def check_devices(self, label: Tensor, s: Tensor, sample_weight: Tensor | None = None) -> None:
        """Sees to it that a batch and the state are on one device.

        Raises:
            ValueError: if they are not.
        """
        own, theirs = self.rows.device, label.device
        for name, part in {"s": s, "sample_weight": sample_weight}.items():
            if part is not None and part.device != theirs:
                raise ValueError(
                    f"{name}: on {part.device}, but the target is on {theirs}; move it there."
                )
        if own != theirs:
            raise ValueError(
                f"target: on {theirs}, but the loss is on {own}; call "
                f"criterion.to({str(theirs)!r}) once, as for any module."
            )

    @property
    def state(self) -> dual.State:
        """What changes from step to step."""
        own = self._buffers  # module attributes are slow to find in the hot path
        return dual.State(own["rows"], own["errors"], own["multipliers"], own["seen"])

    @property
    def cell_weights(self) -> Tensor:
        """(K,) the current weights of the cells; (L * K,) of each predicted label."""
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

    def __getstate__(self) -> dict[str, Any]:
        kept = {**self.__dict__, "_compiled": None, "_known_places": ()}  # addresses
        del kept["_lock"]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call] # PyTorch's
        self._lock = threading.Lock()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Multipliers:
        """Follows its parent to another device but not to another precision."""

        def move(tensor: Tensor) -> Tensor:
            try:
                moved = fn(tensor)
            except TypeError:  # a device without double precision
                return fn(tensor.float())
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        super()._apply(move, recurse)  # type: ignore[no-untyped-call]
        names = self._constants.arrays(Tensor)
        moved: dict[str, Any] = {name: self._buffers[f"constant_{name}"] for name in names}
        self._constants = replace(self._constants, **moved)
        self._compiled = None
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
        # A checkpoint without a fair loss leaves the multipliers as they are.
        if any(key.startswith(prefix) for key in state_dict):
            super()._load_from_state_dict(state_dict, prefix, *args)


EXPORTED = (
    "torch.export: the update of the multipliers would be lost in the exported program; export the "
    "model without its loss, or call criterion.eval() first, which gives the plain loss."
)
IN_BACKWARD = (
    "criterion: called while gradients are computed, as checkpointing does to compute a part anew: "
    "the multipliers would move twice. Checkpoint the model, and call the loss outside of it."
)
MAPPED = (
    "torch.func.vmap: the multipliers cannot be updated from many batches at once; call the loss "
    "outside of vmap, or after criterion.eval() inside of it, which gives the plain loss."
)

_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # of PyTorch 2.7
_graph_task = torch._C._current_graph_task_id  # noqa: SLF001 - no public twin
NO_GRAPH_TASK = -1
"""What it gives outside of ``backward()``."""


class _BelowTransforms(torch.autograd.Function):
    """The factors of a batch that ``torch.func.grad`` or its like has wrapped: constants to it."""

    @staticmethod
    def forward(
        state: Multipliers,
        label: Tensor,
        s: Tensor,
        sample_weight: Tensor | None,
        wrong: Tensor,
        losses: Tensor | None,
        mean: bool,
        update: bool,
    ) -> tuple[Tensor, Tensor]:
        batch = LossBatch(label, s, sample_weight, mean, update)
        factors, offset = state.factors(batch, lambda: wrong, None, losses)
        return factors, torch.as_tensor(offset, dtype=factors.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output)
        ctx.n_inputs = len(inputs)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        return (None,) * ctx.n_inputs

    @staticmethod
    def vmap(*_: Any) -> Any:
        raise RuntimeError(MAPPED)


def _has_memory(tensor: Tensor) -> bool:
    try:
        tensor.data_ptr()
    except RuntimeError:
        return False
    return True


def _full_precision(device: str) -> AbstractContextManager[Any]:
    """Switches autocast off, if it is on: counts and multipliers need all their digits."""
    if torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def _oppose(factors: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    """`dual.opposed` of rows in a sum."""
    factors, offset = dual.opposed(factors, losses.detach().to(factors.dtype))
    return factors, offset.sum()


def _is_single(tensor: Tensor) -> bool:
    """Whether compiled code can read it; subclasses may have no memory of their own."""
    return type(tensor) is Tensor and tensor.dtype is torch.float32 and tensor.is_contiguous()


def _plain(tensor: Tensor) -> Tensor:
    """A tensor with memory of its own.

    Raises:
        TypeError: if it is of a subclass.
    """
    if type(tensor) is not Tensor:
        raise TypeError(f"input: expected a torch.Tensor, got {type(tensor).__name__}.")
    return tensor


def _is_plain(state: dual.State) -> bool:
    """Whether its memory is what compiled code expects; frameworks may replace buffers."""
    rows, errors, multipliers, seen = state
    return (
        type(rows) is type(errors) is type(multipliers) is type(seen) is Tensor
        and rows.dtype is errors.dtype is multipliers.dtype is seen.dtype is torch.float64
        and rows.is_contiguous()
        and errors.is_contiguous()
        and multipliers.is_contiguous()
    )


def _fingerprint(*arrays: Any) -> Tensor:
    """16 small numbers that change whenever the data, the measure or the bounds do.

    They are whole floats, so that they survive a cast, and averages of equal checkpoints.
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.round(array, 6).tobytes())  # the last bits may differ between machines
    return torch.tensor(list(digest.digest()), dtype=torch.float32, device="cpu")
