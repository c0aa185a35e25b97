"""The step of the method as compiled code, if there was a compiler when the package was built."""

from __future__ import annotations

import hashlib
import math
import warnings
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from fairgrad import dual
    from fairgrad.torch.cells import CellLookup, LookupTable
    from fairgrad.torch.multipliers import LossBatch


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_cpu(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Lets a function make its tensors on the CPU, whatever ``torch.set_default_device`` said.

    Compiled code and NumPy read them there. The context is entered only if it is needed, as it
    makes every operation slower.
    """

    @wraps(function)
    def there(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if torch.get_default_device().type == "cpu":
            return function(*args, **kwargs)
        with torch.device("cpu"):
            return function(*args, **kwargs)

    return there


def is_built_from(module: Any, source: Path) -> bool:
    """Whether a compiled module is that of a source file, as far as this can be told.

    A module that is older than the file beside it, as after a pull into an editable install, would
    compute something else than the Python code expects.
    """
    if not source.is_file():
        return True
    parts = [part for part in (source, source.with_name("_linear.h")) if part.is_file()]
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
    return bool(getattr(module, "BUILT_FROM", None) == digest)


def _load() -> Any:
    try:
        module = import_module("fairgrad.torch._step")
    except ImportError:  # there was no compiler
        return None
    if is_built_from(module, Path(__file__).with_name("_step.c")):
        return module
    warnings.warn(
        f"The compiled step {module.__file__} was built from another version of _step.c, so it is "
        "not used and training is slower. Install the package again to build it: "
        "pip install -e . in the folder of the source, or make.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _no_step(*_: Any) -> None:
    """What `usual_step` does where it cannot be used."""


_step: Any = _load()

is_compiled = _step is not None
"""Whether steps on the CPU are compiled code; if not, they are tensor operations."""

reads_tensors = is_compiled and _step.use_tensors(torch.Tensor)
"""Whether compiled code can look at tensors by itself, as PyTorch's newer versions let it."""

usual_step: Callable[..., Tensor | int | None] = _step.usual_step if reads_tensors else _no_step
"""`CompiledStep.factors` in the usual case, with an update; see the C file."""

MAX_COLUMNS = 8
"""Sensitive columns that the compiled step can look up."""

N_SPARE, MOST_SPARE = 16, 4096
"""For how many batches memory is asked for at once, and the rows of the largest such batch."""


class CompiledStep:
    """`fairgrad.dual.step` for one problem, on tensors of the CPU in double precision.

    Args:
        constants: of the problem, as such tensors.
        lookup: of the cells of a batch's rows; needed for `factors` only.

    Attributes:
        problem: as compiled code takes it.
        spare: tensors for the factors of batches to come, as `refill` makes them.
    """

    def __init__(self, constants: dual.Constants, lookup: CellLookup | None = None) -> None:
        n_sides, n_levels = constants.bound.shape
        n_cells = len(constants.per_share)
        least = -math.inf if constants.least_weight is None else constants.least_weight

        def expand(setting: Any, size: int) -> Tensor:
            one = torch.as_tensor(setting, dtype=torch.float64, device="cpu")
            return one.expand(size).contiguous()

        doubles = (
            constants.c0,
            constants.value,
            constants.share,
            constants.bound,
            constants.floor,
            constants.per_share,
            expand(constants.fairness_rate, n_levels),
            expand(constants.proportional_rate, n_levels),
            expand(constants.error_memory, n_cells),
            expand(least, n_cells),
        )
        integers = (constants.row, constants.cell, constants.block)
        # Their memory stays as it is even if the buffers get other memory.
        tables = [] if lookup is None else [table.detach() for table in lookup.buffers()]
        self._alive = (doubles, integers, tables)  # the problem holds nothing but their addresses
        self.spare: list[Tensor] = []
        self._n_rows = 0
        ignored = None if lookup is None else lookup.ignore_index
        self.problem = _step.prepare(
            (
                n_cells,
                n_levels,
                n_sides,
                len(constants.row),
                constants.n_blocks,
                constants.n_label_rows,
                int(ignored is not None),
                ignored or 0,
                0 if lookup is None else lookup.n_columns,
            ),
            tuple(0 if part is None else part.data_ptr() for part in doubles),
            tuple(part.data_ptr() for part in integers),
            () if lookup is None else _tables(lookup),
        )

    def update(self, state: dual.State, counts: Tensor) -> Tensor:
        """One step: the state changes in place; gives the weights of the cells.

        Args:
            state: tensors in double precision, contiguous.
            counts: (2, K) rows predicted rightly, and wrongly, in double precision.
        """
        counts = counts.contiguous()
        weights = torch.empty(counts.shape[1], dtype=torch.float64, device="cpu")
        pointers = (part.data_ptr() for part in (counts, *state, weights))
        _step.update(self.problem, *pointers)
        return weights

    def refill(self, n: int) -> None:
        """Makes room for the factors of batches of n rows in `spare`, for `usual_step`.

        Memory for several batches is asked for at once, as that takes long for a small tensor. Each
        part of it is given away once only: graphs that wait for their backward pass keep theirs.
        """
        n_parts = N_SPARE if n == self._n_rows and n <= MOST_SPARE else 1
        self._n_rows = n
        room = torch.empty(n_parts, n, dtype=torch.float32, device="cpu")
        self.spare = list(room.unbind())

    def factors(
        self, batch: LossBatch, scores: Tensor | None, wrong: Tensor | None, state: dual.State
    ) -> Tensor | None:
        """One step on a batch: each row's factor, or None if a row's values were never seen.

        Predictions are read off `scores`, (N, classes) in single precision, or else `wrong` flags
        those that are wrong.
        """
        label, s, sample_weight, mean, update = batch
        n = label.shape[0]
        label, s = label.contiguous(), s.contiguous()
        factors = torch.empty(n, dtype=torch.float32, device="cpu")
        rows, errors, multipliers = state
        is_known = _step.step(
            self.problem,
            n,
            label.data_ptr(),
            s.data_ptr(),
            0 if scores is None else scores.data_ptr(),
            0 if scores is None else scores.shape[1],
            0 if wrong is None else wrong.data_ptr(),
            0 if sample_weight is None else sample_weight.data_ptr(),
            mean,
            update,
            rows.data_ptr(),
            errors.data_ptr(),
            multipliers.data_ptr(),
            factors.data_ptr(),
        )
        return factors if is_known else None


def linear_models(
    step: CompiledStep, sizes: Sequence[int], arrays: Sequence[Tensor | None]
) -> tuple[Any, ...]:
    """Linear models for `run_epoch`; sizes and arrays as ``prepare_models`` in the C file says."""
    contiguous = [None if array is None else array.contiguous() for array in arrays]
    addresses = tuple(0 if array is None else array.data_ptr() for array in contiguous)
    models = _step.prepare_models(step.problem, tuple(map(int, sizes)), addresses)
    return models, contiguous, step  # the first holds nothing but addresses of the others


def run_epoch(
    models: tuple[Any, ...], epoch: int, place: int, rows: Tensor, factors: Tensor
) -> bool:
    """Trains linear models for an epoch; whether all numbers are finite.

    Args:
        models: as `linear_models` gives them.
        epoch: its number, from 0.
        place: where to write how good the models were after the last epoch, on these rows; -1 for
            nowhere.
        rows: row numbers in the order of the epoch.
        factors: of the learning rate in each step.
    """
    finite: bool = _step.epoch(
        models[0], epoch, place, rows.data_ptr(), rows.shape[0], factors.data_ptr()
    )
    return finite


def judge_models(models: tuple[Any, ...], place: int) -> bool:
    """Writes to a place how good the models are after the last epoch; whether that is finite."""
    finite: bool = _step.judge_models(models[0], place)
    return finite


@on_cpu
def column_moments(X: Any, weight: Any) -> tuple[Any, Any]:
    """Mean and variance of each column of an array, in double precision.

    Args:
        X: (n, d) NumPy array in single or double precision, of rows that lie one after the other.
        weight: (n,) array in double precision, or None.
    """
    n, d = X.shape
    found = torch.empty(4, d, dtype=torch.float64)  # the last two are scratch
    address = 0 if weight is None else weight.ctypes.data
    places = [part.data_ptr() for part in found[:3]]
    _step.moments(n, d, X.dtype.itemsize == 4, X.ctypes.data, address, *places)
    return found[0].numpy(), found[1].numpy()


class CompiledLayer:
    """Batch norm, ReLU and dropout of one hidden layer of a stack, in single precision on the CPU.

    Args:
        bias: (M, units), as are `scale` and `shift`; views of the stack's parameters.
        scale: of batch norm.
        shift: of batch norm.
        mean: (M, units) of batch norm, as is `variance`; changed in place.
        variance: of batch norm.
        dropout: share of units dropped.
        momentum: of the running statistics.
        eps: added to variances.
    """

    def __init__(
        self,
        bias: Tensor,
        scale: Tensor,
        shift: Tensor,
        mean: Tensor,
        variance: Tensor,
        *,
        dropout: float,
        momentum: float,
        eps: float,
    ) -> None:
        self._alive = (bias, scale, shift, mean, variance)
        self._numbers = (1 / (1 - dropout), momentum, eps)
        self._inverse, self._slope = (torch.empty(mean.shape) for _ in range(2))
        self._strides = (bias.stride(0), mean.stride(0))
        self._layer: tuple[Any, ...] = ()

    @classmethod
    def fits(cls, *tensors: Tensor) -> bool:
        """Whether the layer of these parameters and statistics can be compiled code."""
        return is_compiled and all(
            part.dtype == torch.float32 and part.device.type == "cpu" and part.stride(1) == 1
            for part in tensors
        )

    def forward(self, centred: Tensor, h: Tensor, masks: Tensor | None) -> None:
        """From ``W x`` (M, units, B), which is centred in place, to activations h."""
        n_members, n_units, n_rows = centred.shape
        n_streams, mask_stride = (1, 0) if masks is None else (len(masks), masks.stride(0))
        sizes = (n_members, n_units, n_rows, n_streams, *self._strides, mask_stride)
        made = (centred, h, self._inverse, self._slope)
        addresses = [part.data_ptr() for part in (*self._alive, *made)]
        addresses.append(0 if masks is None else masks.data_ptr())
        self._layer = (sizes, self._numbers, tuple(addresses))
        _step.activate(*self._layer)

    def backward(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients by scale and shift; that by h, g, becomes that by ``W x``."""
        by_scale, by_shift = torch.empty_like(self._slope), torch.empty_like(self._slope)
        own = (g.data_ptr(), by_scale.data_ptr(), by_shift.data_ptr())
        _step.deactivate(*self._layer, *own)
        return by_scale, by_shift


def _tables(lookup: CellLookup) -> tuple[tuple[int, int, int], ...]:
    def table(found: LookupTable | None) -> tuple[int, int, int]:
        if found is None:
            return 0, 0, 0
        entries = lookup.get_buffer(found.name)
        return found.first, len(entries), entries.data_ptr()

    return tuple(map(table, (lookup.label, lookup.joint, *lookup.columns)))
