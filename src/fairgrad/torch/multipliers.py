"""The state of the method as buffers of a module, and its step on a batch."""

from __future__ import annotations

import hashlib
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import dual
from fairgrad.compiled import compiled_code, is_compiled, prepare
from fairgrad.groups import count_rows
from fairgrad.torch.cells import CellLookup
from fairgrad.torch.monitor import Watch
from fairgrad.torch.reading import best_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Groups
    from fairgrad.torch.processes import Processes
    from fairgrad.torch.reading import Reading


class Multipliers(nn.Module):
    """Keeps the multipliers of the constraints and gives each row of a batch its factor.

    Everything that changes is a buffer, so it is saved, restored, copied and moved with the module
    it belongs to. It is kept in double precision whatever the precision of the network (in single
    precision on devices that have no other). In a single process on the CPU the step is compiled
    code, if there was a compiler when the package was built; else it is tensor operations.
    """

    rows: Tensor
    errors: Tensor
    multipliers: Tensor
    seen: Tensor
    label_classes: Tensor

    def __init__(
        self,
        groups: Sequence[Groups],
        constraints: Sequence[Constraints],
        reading: Reading,
        *,
        ignore_index: int | None,
        processes: Processes,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.processes, self.reading, by_label = processes, reading, constraints[0].by_label
        self.lookup = CellLookup(
            groups[0], by_label=by_label, ignore_index=ignore_index, n_outputs=len(groups)
        )
        problems = [
            dual.make_constants(each, counted, **settings)
            for each, counted in zip(constraints, groups, strict=True)
        ]
        # As arrays they are out of reach of those who cast or move buffers.
        self._arrays = constants = problems[0] if len(groups) == 1 else dual.side_by_side(problems)
        self._constants = constants.convert(torch.from_numpy)
        self.n_outcomes = constants.n_outcomes
        for name, array in dual.start(constants, len(groups[0].labels))._asdict().items():
            self.register_buffer(name, torch.from_numpy(array))
        if self.n_outcomes > 1:
            labels = torch.from_numpy(groups[0].labels.astype(np.int64))
            self.register_buffer("label_classes", labels, persistent=False)
        self.is_compiled = is_compiled and self.n_outcomes == len(groups) == 1
        self.reads_scores = reading.predict is best_class
        self.problem: Any = None  # for the compiled step, once it is needed
        self._memory: Any = None  # what the problem reads
        self._known_places: tuple[int, ...] = ()
        self.watch = Watch(groups, is_auto=constants.auto is not None, ignore_index=ignore_index)
        bounds = ("c0", "lower", "upper")
        self.fingerprint = _fingerprint(
            groups[0].labels,
            groups[0].ids,
            np.concatenate([counted.cell_mass(by_label) for counted in groups]),
            *(np.concatenate([getattr(each, name) for each in constraints]) for name in bounds),
            *(getattr(constants, name) for name in ("row", "cell", "value", "block", "share")),
            *(() if constants.cost is None else (constants.cost,)),
        )

    def set_rate(self, rate: float) -> None:
        """Changes the constant rate."""
        self._arrays = replace(self._arrays, fairness_rate=rate)
        self._place_constants()

    def take_over(
        self, other: Multipliers, names: dict[str, list[str]], own_names: dict[str, list[str]]
    ) -> None:
        """Takes the entries of another problem's state that have the same names."""
        self.seen.copy_(other.seen)
        self.watch.take_over(other.watch)
        for buffer, wanted in own_names.items():
            place = {name: i for i, name in enumerate(names[buffer])}
            pairs = [(i, place[name]) for i, name in enumerate(wanted) if name in place]
            to, source = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
            old: Tensor = getattr(other, buffer)
            new: Tensor = getattr(self, buffer)
            new.view(-1)[to.to(new.device)] = old.view(-1)[source.to(old.device)]

    @property
    def settings(self) -> dict[str, Any]:
        """By name, all that has an effect on a step besides the batch and the state."""
        constants = self._arrays
        rate = "auto" if constants.auto is not None else repr(constants.fairness_rate)
        digest = bytes(self.fingerprint.to(torch.uint8).tolist()).hex()
        return {
            "fairness_rate": rate,
            "proportional_rate": repr(constants.proportional_rate),
            "error_memory": constants.error_memory,
            "negative_weights": bool(np.isneginf(constants.least_weight).all()),
            "fairness_measure, epsilon, y_desirable or cost_matrix": f"those of digest {digest}",
        }

    def factors(
        self,
        label: Tensor,
        s: Tensor,
        sample_weight: Tensor | None,
        scores: Tensor,
        losses: Tensor | None,
        mean: bool,
        update: bool,
    ) -> tuple[Tensor, Tensor | float]:
        """Takes in the predictions of a batch, updates the state, gives each row's factor.

        Args:
            label: (N,) labels.
            s: (N,) sensitive values, or (N, columns).
            sample_weight: (N,) in double precision, or None for ones.
            scores: the input of the loss, which has the predictions.
            losses: (N,) log losses, if rows of negative weight are opposed (`dual.opposed`).
            mean: whether factors are divided by the weight of the rows not ignored.
            update: whether the state changes.

        Returns:
            (N,) the weight of each row's cell times its sample weight; (N, L) of each label for
            constraints on predicted labels. And what opposed rows add to the sum of the losses.
        """
        if not torch.compiler.is_compiling():
            if update and self.watch.is_due():
                self.watch.look(self, label, s, sample_weight, scores)
            if (
                type(label) is type(s) is Tensor
                and label.is_cpu
                and s.is_cpu
                and (sample_weight is None or sample_weight.is_cpu)
                and (places := self.readable_places()) is not None
            ):
                label, s, wrong = label.contiguous(), s.contiguous(), None
                if not (self.reads_scores and _is_single(scores) and scores.ndim == 2):
                    wrong = self._outcome(scores, label).to(torch.uint8).contiguous()
                read = losses if losses is not None and _is_single(losses) else None
                factors = torch.empty(label.shape, dtype=torch.float32, device="cpu")
                offset: float | None = compiled_code.step(
                    self.problem,
                    len(label),
                    scores.shape[1] if wrong is None else 0,
                    mean,
                    update,
                    label.data_ptr(),
                    s.data_ptr(),
                    scores.data_ptr() if wrong is None else 0,
                    0 if wrong is None else wrong.data_ptr(),
                    0 if sample_weight is None else sample_weight.data_ptr(),
                    0 if read is None else read.data_ptr(),
                    *places,
                    factors.data_ptr(),
                    False,  # noqa: FBT003 - losses and factors are of rows, not of classes
                )
                if offset is None:  # a label or sensitive value was never seen
                    raise ValueError(self.lookup.explain(label, s))
                if losses is None or read is not None:
                    return factors, offset
                return _oppose(factors, losses)
            self._mend()
            self.check_devices(label, s, sample_weight)
        device = label.device.type
        # Counts and multipliers need all their digits.
        is_autocast = torch.is_autocast_enabled(device)
        with torch.autocast(device, enabled=False) if is_autocast else nullcontext():
            wrong = self._outcome(scores, label)
            factors = self._tensor_factors(label, s, sample_weight, wrong, mean, update)
            return (factors, 0.0) if losses is None else _oppose(factors, losses)

    def readable_places(self) -> tuple[int, ...] | None:
        """Where the state is in memory; None if the compiled step cannot be taken now."""
        if (
            torch.compiler.is_compiling()
            or not (self.is_compiled and self.processes.is_alone)
            or _graph_task() != NO_GRAPH_TASK
            or _transform() is not None
        ):
            return None
        held: Any = self._buffers  # module attributes are slow to find in the hot path
        places = (
            held["rows"].data_ptr(), held["errors"].data_ptr(), held["multipliers"].data_ptr(),
            held["seen"].data_ptr(),
        )  # fmt: skip
        # Memory at the same address as in the last step is the same buffer.
        if places != self._known_places:  # frameworks may replace buffers
            if not all(
                type(buffer) is Tensor
                and buffer.is_cpu
                and buffer.dtype is torch.float64
                and buffer.is_contiguous()
                for buffer in self.state
            ):
                return None
            self.problem, self._memory = prepare(self._arrays, self.lookup)
            self._known_places = places
        return places

    def _outcome(self, scores: Tensor, label: Tensor) -> Tensor:
        """(N,) whether predictions are wrong, or what is predicted (`CellLookup.outcome`)."""
        predicted = self.reading.predict(scores).reshape(-1)
        if type(predicted) is not Tensor and not torch.compiler.is_compiling():
            kind = type(predicted).__name__
            raise TypeError(f"input: expected a torch.Tensor, got {kind}.")
        if predicted.shape != label.shape:
            raise ValueError(
                f"predict: expected a label for each of {len(label)} rows, got the shape "
                f"{tuple(self.reading.predict(scores).shape)}."
            )
        return predicted != label if self.n_outcomes == 1 else self.lookup.outcome(predicted)

    def _tensor_factors(
        self,
        label: Tensor,
        s: Tensor,
        sample_weight: Tensor | None,
        wrong: Tensor,
        mean: bool,
        update: bool,
    ) -> Tensor:
        """The factors by tensor operations, before rows are opposed."""
        lookup, constants = self.lookup, self._constants
        cell = lookup(label, s)
        rows = constants.per_share.new_ones(()).expand(cell.shape)
        if sample_weight is not None:
            rows = sample_weight.to(rows.dtype)
        counted = torch.ones_like(rows)
        if lookup.ignore_index is not None:
            counted = label.ne(lookup.ignore_index).to(rows.dtype)
        divisor = (rows * counted).sum()
        n_rows = (counted * (rows > 0)).sum() / lookup.n_outputs  # of each of them
        # Weights that only the host could refuse spoil the loss of this batch, but no later one.
        finite = rows if sample_weight is None else rows.nan_to_num(0, 0, 0).clamp(min=0)
        n_counted = 1 + self.n_outcomes
        place = cell + lookup.n_slots * wrong.long()
        try:
            counts = count_rows(place, n_counted * lookup.n_slots, finite)
        except (IndexError, RuntimeError) as error:
            problem = self.lookup.explain(label, s)
            if problem is None:
                raise
            raise ValueError(problem) from error
        counts = counts.view(n_counted, -1)[:, : lookup.n_cells]
        if update:
            counts = torch.cat([counts.reshape(-1), n_rows.reshape(1)])
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
        """A step with counts by outcome and cell, and the number of rows; gives the weights."""
        weights: Tensor
        if not self.processes.is_alone:
            # Before the first sum, as the processes may have started after this loss was made.
            if not self.processes.is_checked and not torch.compiler.is_compiling():
                self.processes.check_settings(self.settings)
            self.processes.sum(counts)
        by_cell, n_rows = counts[:-1].view(-1, self.lookup.n_cells), counts[-1]
        with nullcontext() if torch.compiler.is_compiling() else _UPDATE:
            state, weights = dual.step(
                self._constants, self.state, by_cell, n_rows if is_weighted else None
            )
            for name, tensor in state._asdict().items():
                self._buffers[name].copy_(tensor)  # type: ignore[union-attr]
        return weights

    def step_without_rows(self) -> None:
        """A step of a process that has no rows, but whose twins may have."""
        if not self.processes.is_alone:
            size = (1 + self.n_outcomes) * self.lookup.n_cells + 1
            self._update(self._constants.per_share.new_zeros(size))

    def _mend(self) -> None:
        """Undoes what a framework did to the buffers: casts, and moves without the constants."""
        for name, kept in self.state._asdict().items():
            if type(kept) is not Tensor:
                raise TypeError(
                    f"criterion: its buffers have become {type(kept).__name__}s; keep the loss out "
                    "of the module that is distributed or converted."
                )
            self._buffers[name] = kept.to(self._precision)
        if self._constants.per_share.device != self.rows.device:
            self._place_constants()

    @property
    def _precision(self) -> torch.dtype:
        return torch.float32 if self.rows.device.type == "mps" else torch.float64

    def _place_constants(self) -> None:
        """Makes the constants anew, beside the state."""

        def exact(array: Any) -> Tensor:
            tensor = torch.from_numpy(array)
            tensor = tensor.to(self._precision) if tensor.is_floating_point() else tensor
            return tensor.to(self.rows.device)

        self._constants = self._arrays.convert(exact)
        self._known_places = ()

    def check_devices(
        self,
        label: Tensor,
        s: Tensor,
        sample_weight: Tensor | None = None,
        scores: Tensor | None = None,
    ) -> None:
        """Raises a ValueError if a batch and the state are not on one device."""
        ours, theirs = self.rows.device, label.device
        for name, tensor in {"input": scores, "s": s, "sample_weight": sample_weight}.items():
            if tensor is not None and tensor.device != theirs:
                raise ValueError(
                    f"{name}: on {tensor.device}, but the target is on {theirs}; move it there."
                )
        if ours != theirs:
            raise ValueError(
                f"target: on {theirs}, but the loss is on {ours}; call "
                f"criterion.to({str(theirs)!r}) once, as for any module."
            )

    @property
    def state(self) -> dual.State:
        """What changes from step to step."""
        held = self._buffers  # module attributes are slow to find in the hot path
        return dual.State(held["rows"], held["errors"], held["multipliers"], held["seen"])

    @property
    def cell_weights(self) -> Tensor:
        """(K,) the current weights of the cells; (L * K,) of each predicted label."""
        weights: Tensor = dual.current_weights(self._constants, self.state)
        return weights.float()

    def levels_of(self, errors: Tensor) -> Tensor:
        """(J,) the levels of fairness that errors give, such as the current estimates."""
        levels: Tensor = dual.levels(self._constants, errors)
        return levels.float()

    @property
    def net(self) -> Tensor:
        """(J,) one multiplier per constraint, lambda - delta."""
        net: Tensor = dual.net_multipliers(self._constants, self.multipliers)
        return net.float()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "problem": None, "_memory": None, "_known_places": ()}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Multipliers:
        """Follows its parent to another device but not to another precision."""

        def move(tensor: Tensor) -> Tensor:
            try:
                moved = fn(tensor)
            except TypeError:  # a device without double precision
                return fn(tensor.float())
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        super()._apply(move, recurse)  # type: ignore[no-untyped-call]
        self._place_constants()
        return self

    def get_extra_state(self) -> Tensor:
        """The fingerprint: it travels with the state, but is no buffer to be averaged or cast."""
        return self.fingerprint

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing to do: it was compared before anything was loaded."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        extra = state_dict.get(f"{prefix}_extra_state")
        if extra is not None and not torch.equal(extra.cpu().float().round(), self.fingerprint):
            raise ValueError(
                "state_dict: these multipliers were trained on another problem: the training data, "
                "the fairness measure or its bounds differ from those of this loss."
            )
        # A checkpoint without a fair loss does not change the multipliers.
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
TRANSFORMED = (
    "torch.func: the multipliers cannot be updated inside of a transform (grad, vmap); call the "
    "loss outside of it, or after criterion.eval(), which gives the plain loss."
)

_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # of PyTorch 2.7
_graph_task = torch._C._current_graph_task_id  # noqa: SLF001 - no public twin
_transform = torch._C._functorch.peek_interpreter_stack  # noqa: SLF001 - as above
NO_GRAPH_TASK = -1
"""What it gives outside of ``backward()``."""

_UPDATE = threading.Lock()  # threads may share a loss


def check_can_update() -> None:
    """Raises a RuntimeError if PyTorch transforms the call so that an update has no meaning."""
    if torch.compiler.is_compiling():
        if _is_exporting():
            raise RuntimeError(EXPORTED)
    elif _graph_task() != NO_GRAPH_TASK:
        raise RuntimeError(IN_BACKWARD)
    elif _transform() is not None:
        raise RuntimeError(TRANSFORMED)


def _is_single(tensor: Tensor) -> bool:
    """Whether compiled code can read it; subclasses may have no memory of their own."""
    return type(tensor) is Tensor and tensor.dtype is torch.float32 and tensor.is_contiguous()


def _oppose(factors: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    """`dual.opposed` of rows in a sum."""
    factors, offset = dual.opposed(factors, losses.detach().to(factors.dtype))
    return factors, offset.sum()


def _fingerprint(*arrays: Any) -> Tensor:
    """16 small numbers that change whenever the data, the measure or the bounds do.

    They are whole floats, so that they survive a cast, and averages of equal checkpoints.
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.round(array, 6).tobytes())  # the last bits may differ between machines
    return torch.tensor(list(digest.digest()), dtype=torch.float32, device="cpu")
