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

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from fairgrad.torch.cells import CellLookup, LookupTable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_cpu(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Lets a function make its tensors on the CPU, whatever ``torch.set_default_device`` said.

    The context is entered only if it is needed, as it makes every operation slower.
    """

    @wraps(function)
    def there(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if torch.get_default_device().type == "cpu":
            return function(*args, **kwargs)
        with torch.device("cpu"):
            return function(*args, **kwargs)

    return there


def _load() -> Any:
    """The compiled module, unless it is older than the C files beside it, as after a pull."""
    try:
        module = import_module("fairgrad.torch._step")
    except ImportError:  # there was no compiler
        return None
    files = [Path(__file__).with_name(name) for name in ("_step.c", "_linear.h")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files if file.is_file()))
    if not files[0].is_file() or digest.hexdigest() == module.BUILT_FROM:
        return module
    warnings.warn(
        f"The compiled step {module.__file__} was built from another version of _step.c, so it is "
        "not used and training is slower. Install the package again to build it: "
        "pip install -e . in the folder of the source, or make.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


compiled_code: Any = _load()

is_compiled = compiled_code is not None
"""Whether steps on the CPU are compiled code; if not, they are tensor operations."""


class CompiledStep:
    """`fairgrad.dual.step` for one problem, on tensors of the CPU in double precision."""

    def __init__(self, constants: dual.Constants, lookup: CellLookup | None = None) -> None:
        n_sides, n_levels = constants.bound.shape
        n_cells = len(constants.per_share)
        least = -math.inf if constants.least_weight is None else constants.least_weight

        def expand(setting: Any, size: int) -> Tensor:
            one = torch.as_tensor(setting, dtype=torch.float64, device="cpu")
            return one.expand(size).contiguous()

        arrays = (
            constants.c0,
            constants.value,
            constants.share,
            constants.bound,
            constants.floor,
            constants.ceiling,
            constants.per_share,
            expand(constants.fairness_rate, n_levels),
            expand(constants.proportional_rate, n_levels),
            expand(constants.error_memory, n_cells),
            expand(least, n_cells),
            constants.row,
            constants.cell,
            constants.block,
        )
        # Their memory stays as it is even if the buffers get other memory.
        tables = [] if lookup is None else [table.detach() for table in lookup.buffers()]
        self._alive = (arrays, tables)  # the problem holds nothing but their addresses
        auto = constants.auto
        rates = (0.0, 1.0, 1.0) if auto is None else (auto.per_rows, auto.horizon, auto.pool)
        self.problem = compiled_code.prepare(
            (
                n_cells,
                n_cells if lookup is None else lookup.n_slots,
                n_levels,
                n_sides,
                len(constants.row),
                constants.n_blocks,
                constants.n_label_rows,
                constants.n_problems,
                0 if lookup is None else lookup.n_columns,
            ),
            (dual.TINY, dual.BORROWED, dual.LEAST_LOSS, *rates),
            tuple(0 if array is None else array.data_ptr() for array in arrays),
            () if lookup is None else _tables(lookup),
        )

    def run(
        self,
        label: Tensor,
        s: Tensor,
        sample_weight: Tensor | None,
        scores: Tensor,
        wrong: Tensor | None,
        losses: Tensor | None,
        places: tuple[int, ...],
        factors: Tensor,
        mean: bool = True,
        update: bool = True,
        by_class: bool = False,
    ) -> float | None:
        """One step on a batch: writes each row's factor, gives what to add to the weighted sum.

        All tensors are contiguous and on the CPU.

        Args:
            label: (N,) labels.
            s: (N,) sensitive values, or (N, columns).
            sample_weight: (N,) in double precision, or None for ones.
            scores: (N, classes) in single precision, whose highest entry is the prediction.
            wrong: (N,) which predictions are wrong, as bytes; instead of scores.
            losses: (N,) log losses in single precision, if rows of negative weight are opposed.
                Or, `by_class`, (N, classes) log-probabilities.
            places: the memory of the state, in the order of `dual.State`; changed in place.
            factors: (N,) in single precision; `by_class` (N, classes) of the log-probabilities.
            mean: whether factors are divided by the weight of the rows not ignored.
            update: whether the state changes.
            by_class: see above.

        Returns:
            None if a value was never seen, a label has no score or all are to be ignored. Nothing
            has changed then.
        """
        offset: float | None = compiled_code.step(
            self.problem,
            label.shape[0],
            scores.shape[1] if wrong is None else 0,
            mean,
            update,
            label.data_ptr(),
            s.data_ptr(),
            scores.data_ptr() if wrong is None else 0,
            0 if wrong is None else wrong.data_ptr(),
            0 if sample_weight is None else sample_weight.data_ptr(),
            0 if losses is None else losses.data_ptr(),
            *places,
            factors.data_ptr(),
            by_class,
        )
        return offset


def is_single(tensor: Tensor) -> bool:
    """Whether compiled code can read it; subclasses may have no memory of their own."""
    return type(tensor) is torch.Tensor and tensor.dtype is torch.float32 and tensor.is_contiguous()


def _tables(lookup: CellLookup) -> tuple[tuple[int, int, int], ...]:
    def table(entry: LookupTable | None) -> tuple[int, int, int]:
        if entry is None:
            return 0, 0, 0
        entries = lookup.get_buffer(entry.name)
        return entry.first, len(entries), entries.data_ptr()

    return tuple(map(table, (lookup.label, lookup.joint, *lookup.columns)))
