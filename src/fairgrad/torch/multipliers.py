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
from fairgrad.torch.compiled import MAX_COLUMNS, CompiledStep, is_compiled, usual_step
from fairgrad.torch.predictions import best_class
from fairgrad.torch.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups, Ints


ONES = np.ones(2**12)
"""What the rows of a batch count without weights; counts are in double precision then."""

LABELS = np.dtype(np.int64)
"""The type of labels and sensitive values in the usual case."""


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


class ArrayBatch(NamedTuple):
    """A batch as arrays, which share the memory of its tensors.

    Attributes:
        label: (N,) labels.
        s: (N,) sensitive values, or (N, columns).
        outcome: (N,) which predictions are wrong, or which label is predicted.
        weight: (N,) sample weights, or None for ones.
    """

    label: Ints
    s: Ints
    outcome: Any
    weight: Floats | None


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
        # As arrays they are out of reach of those who cast or move buffers.
        constants = dual.make_constants(constraints, groups, **settings)
        self._arrays = constants = replace(constants, is_dense=True)
        self._constants = constants.convert(torch.from_numpy)
        self.n_outcomes = constants.n_outcomes
        for name, tensor in self._tensors().items():
            self.register_buffer(name, tensor, persistent=False)
        for name, array in dual.start(constants, len(groups.labels))._asdict().items():
            self.register_buffer(name, torch.from_numpy(array))
        self.is_compiled = (
            is_compiled and self.lookup.n_columns <= MAX_COLUMNS and self.n_outcomes == 1
        )
        self._compiled: CompiledStep | None = None
        self._hot = (self.lookup,)  # modules find their submodules slowly
        self._views: tuple[tuple[int, ...], dual.State] | None = None
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
    def fairness_rate(self) -> float:
        """The step size of the multipliers; it may be changed between steps."""
        return float(self._arrays.fairness_rate)

    @fairness_rate.setter
    def fairness_rate(self, rate: float) -> None:
        self._arrays = self._arrays.in_same_order(fairness_rate=float(rate))
        self._constants = self._constants.in_same_order(fairness_rate=float(rate))
        self._compiled = None

    @property
    def settings(self) -> dict[str, Any]:
        """By name, all that has an effect on a step besides the batch and the state."""
        constants = self._arrays
        digest = bytes(self.fingerprint.to(torch.uint8).tolist()).hex()
        return {
            "fairness_rate": constants.fairness_rate,
            "proportional_rate": constants.proportional_rate,
            "error_memory": constants.error_memory,
            "negative_weights": constants.least_weight is None,
            "fairness_measure, epsilon, y_desirable or cost_matrix": f"those of digest {digest}",
        }

    def factors(
        self, batch: LossBatch, wrong: Callable[[], Tensor], scores: Tensor | None = None
    ) -> Tensor:
        """Takes in the predictions of a batch, updates the state, gives each row's factor.

        Args:
            batch: labels, sensitive values and weights of the rows.
            wrong: a function that gives (N,) which predictions are wrong; for constraints on
                predicted labels, which label is predicted, as `CellLookup.outcome` says it.
            scores: (N, classes) whose highest entry is the prediction, if that is how it is read.

        Returns:
            (N,) the weight of each row's cell times its sample weight; (N, L) of each label for
            constraints on predicted labels.

        Raises:
            ValueError: if a label or sensitive value was never seen, or is on another device.
            RuntimeError: if PyTorch transforms the call in a way that leaves the update without
                meaning. Nothing has changed then, either.
        """
        label, s, sample_weight, _, update = batch
        if torch.compiler.is_compiling():
            if update and _is_exporting():
                raise RuntimeError(EXPORTED)
            return self._tensor_factors(batch, wrong())
        if update and _graph_task() != NO_GRAPH_TASK:
            raise RuntimeError(IN_BACKWARD)
        state = self.state
        if not (
            self._is_on_cpu
            and self.processes.is_alone
            and type(label) is type(s) is Tensor
            and label.is_cpu
            and s.is_cpu
            and (sample_weight is None or sample_weight.is_cpu)
            and _is_plain(state)
        ):
            self._mend()
            self.check_devices(label, s, sample_weight)
            return self._tensor_factors(batch, wrong())
        try:
            if self.is_compiled:
                return self._compiled_factors(batch, wrong, scores, state)
            return self._array_factors(batch, wrong())
        except RuntimeError:  # what torch.func transforms has no memory to be read
            given = (label, s, sample_weight, wrong())
            if all(part is None or _has_memory(part) for part in given):
                raise
            below: Any = _BelowTransforms.apply
            factors: Tensor = below(self, *given, batch.mean, update)
            return factors

    def usual_factors(
        self, label: Tensor, s: Tensor | None, scores: Tensor, losses: Any, plain: Tensor
    ) -> Tensor | None:
        """As `factors` with an update, in the usual case, and with as few operations as possible.

        The usual case are plain tensors on the CPU, contiguous and in PyTorch's usual types, with
        one sensitive value per row, in a single process; with compiled code, after a first step.
        Then the sum of the losses and their number are written to `plain`.

        Args:
            label: (N,) labels.
            s: (N,) sensitive values.
            scores: (N, classes) whose highest entry is the prediction.
            losses: (N,) of the rows.
            plain: (2,) in double precision.

        Returns:
            None if this is not the usual case; then nothing has changed.
        """
        if _graph_task() != NO_GRAPH_TASK:
            return None
        compiled = self._compiled
        if compiled is None:
            return None if self.is_compiled else self._usual_arrays(label, s, scores, losses)
        own = self._buffers  # module attributes are slow to find
        rows, errors, multipliers = own["rows"], own["errors"], own["multipliers"]
        while True:
            found = usual_step(
                compiled.problem,
                compiled.spare,
                label,
                s,
                scores,
                losses,
                rows,
                errors,
                multipliers,
                plain,
            )
            if not isinstance(found, int):
                return found
            compiled.refill(found)  # another thread may empty it again

    def _compiled_factors(
        self,
        batch: LossBatch,
        wrong: Callable[[], Tensor],
        scores: Tensor | None,
        state: dual.State,
    ) -> Tensor:
        if self._compiled is None:
            self._compiled = CompiledStep(self._arrays.convert(torch.from_numpy), self.lookup)
        flags = None
        if (
            type(scores) is not Tensor  # subclasses may have no memory of their own
            or scores.dtype is not torch.float32
            or not scores.is_contiguous()
        ):
            scores, flags = None, _plain(wrong()).to(torch.uint8).contiguous()
        factors = self._compiled.factors(batch, scores, flags, state)
        if factors is None:
            raise ValueError(self.lookup.explain(batch.label, batch.s))
        return factors

    def _usual_arrays(
        self, label: Tensor, s: Tensor | None, scores: Tensor, losses: Tensor
    ) -> Tensor | None:
        """`usual_factors` with NumPy; what has no memory of its own to be read is an error."""
        if s is None or not (
            type(label) is type(s) is type(scores) is type(losses) is Tensor
            and losses.dtype is torch.float32
            and self._is_on_cpu
            and self.processes.is_alone
        ):
            return None
        state = self._state_arrays()
        labels, values, outputs = label.numpy(), s.numpy(), scores.detach().numpy()
        if (
            state is None
            or not labels.size
            or outputs.ndim != 2
            or not (labels.dtype is values.dtype is LABELS)
            or not (labels.shape == values.shape == outputs.shape[:1] == losses.shape)
        ):
            return None
        batch = ArrayBatch(labels, values, best_class(outputs) != labels, None)
        return self._from_arrays(batch, state)

    def _state_arrays(self) -> dual.State | None:
        """The state as arrays that share its memory; None if they would not be in double precision.

        Memory that is at the same place as in the last step is the same, as the arrays keep it.
        """
        state = rows, errors, multipliers = self.state
        places = rows.data_ptr(), errors.data_ptr(), multipliers.data_ptr()
        if self._views is None or self._views[0] != places:
            if not _is_plain(state):
                return None
            self._views = places, dual.State(*(part.numpy() for part in state))
        return self._views[1]

    def _array_factors(self, batch: LossBatch, wrong: Tensor) -> Tensor:
        """With NumPy, whose small operations cost a fraction of PyTorch's on the CPU."""
        label, s, sample_weight, mean, update = batch
        weight = None if sample_weight is None else sample_weight.numpy()
        arrays = ArrayBatch(label.numpy(), s.numpy(), _plain(wrong).numpy(), weight)
        state = self._state_arrays()
        assert state is not None  # noqa: S101 - `factors` has made sure
        try:
            return self._from_arrays(arrays, state, mean=mean, update=update)
        except KeyError:
            raise ValueError(self.lookup.explain(label, s)) from None

    def _from_arrays(
        self, batch: ArrayBatch, state: dual.State, *, mean: bool = True, update: bool = True
    ) -> Tensor:
        (lookup,) = self._hot
        label, s, outcome, weight = batch
        n = len(label)
        n_outcomes = self.n_outcomes
        counted = weight
        if counted is None:
            counted = ONES[:n] if n <= len(ONES) else np.ones(n)
        slot, counts, n_more = lookup.count(label, s, outcome, 1 + n_outcomes, counted)
        if update:
            with self._lock:
                found, weights = dual.step(self._arrays, state, counts)
                for part, new in zip(state, found, strict=True):
                    part[...] = new  # the buffers' own memory
        else:
            weights = dual.current_weights(self._arrays, state)
        if n_outcomes > 1:  # targets to be ignored have no label to learn
            weights = np.pad(weights.reshape(n_outcomes, -1).T, [(0, n_more), (0, 0)])
            weight = None if weight is None else weight[:, None]
        elif n_more:
            weights = np.append(weights, np.ones(n_more))
        factors = weights.take(slot, 0, mode="wrap")
        if weight is not None:
            factors *= weight
        if mean:
            factors /= n if weight is None and not n_more else counts.sum()
        return torch.from_numpy(factors.astype(np.float32))

    def _tensor_factors(self, batch: LossBatch, wrong: Tensor) -> Tensor:
        with _full_precision(batch.label.device.type):
            return self._tensor_factors_as_they_are(batch, wrong)

    def _tensor_factors_as_they_are(self, batch: LossBatch, wrong: Tensor) -> Tensor:
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
        # Weights that only the host could refuse spoil the loss of this batch, but no later one.
        counted = rows if sample_weight is None else rows.nan_to_num(0, 0, 0).clamp(min=0)
        n_counted = 1 + self.n_outcomes
        counts = rows.new_zeros(n_counted * lookup.n_slots)
        try:
            counts = counts.index_add(0, cell + lookup.n_slots * wrong.long(), counted)
        except (IndexError, RuntimeError) as error:
            problem = self.lookup.explain(label, s)
            if problem is None:
                raise
            raise ValueError(problem) from error
        counts = counts.view(n_counted, -1)[:, : lookup.n_cells]
        if update:
            if not self.processes.is_alone:
                counts = counts.contiguous()
                self._compare_settings()
                self.processes.sum(counts)
            weights = self._update(counts)
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

    def _update(self, counts: Tensor) -> Tensor:
        """A step with these counts, in the memory of the buffers; gives the weights."""
        weights: Tensor
        with nullcontext() if torch.compiler.is_compiling() else self._lock:
            state, weights = dual.step(self._constants, self.state, counts)
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
            counts = self._constants.per_share.new_zeros(1 + self.n_outcomes, self.lookup.n_cells)
            self._compare_settings()
            self.processes.sum(counts)
            self._update(counts)

    def start_without_rows(self) -> Callable[[], None]:
        """Starts such a step.

        Returns:
            A function that waits for the others' counts and takes them in.
        """
        counts = self._constants.per_share.new_zeros(1 + self.n_outcomes, self.lookup.n_cells)
        wait = self.processes.start_sum(counts)

        def finish() -> None:
            wait()
            self._update(counts)

        return finish

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
            self._buffers.update(self._tensors())
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
        return dual.State(own["rows"], own["errors"], own["multipliers"])

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

    def _tensors(self) -> dict[str, Tensor]:
        given = self._constants.given
        return {name: value for name, value in given.items() if isinstance(value, Tensor)}

    def __getstate__(self) -> dict[str, Any]:
        kept = {**self.__dict__, "_compiled": None, "_views": None}  # addresses
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
        moved: dict[str, Any] = {name: self._buffers[name] for name in self._tensors()}
        self._constants = self._constants.in_same_order(**moved)
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
        mean: bool,
        update: bool,
    ) -> Tensor:
        return state.factors(LossBatch(label, s, sample_weight, mean, update), lambda: wrong)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)
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
    rows, errors, multipliers = state
    return (
        type(rows) is type(errors) is type(multipliers) is Tensor
        and rows.dtype is errors.dtype is multipliers.dtype is torch.float64
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
