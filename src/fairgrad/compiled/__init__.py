"""The step of the method as compiled code, if there was a compiler when the package was built."""

from __future__ import annotations

import hashlib
import warnings
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import torch

from fairgrad import dual

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.groups import Ints
    from fairgrad.torch.cells import CellLookup

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_cpu(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Lets a function make its tensors on the CPU, whatever the default device is.

    The context is entered only if it is needed, as it makes every operation slower.
    """

    @wraps(function)
    def with_cpu(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if torch.get_default_device().type == "cpu":
            return function(*args, **kwargs)
        with torch.device("cpu"):
            return function(*args, **kwargs)

    return with_cpu


def _load() -> Any:
    """The compiled module; None if it was built from other C files than those beside it."""
    try:
        module = import_module("fairgrad.compiled._step")
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


def prepare(constants: dual.Constants, lookup: CellLookup | None = None) -> tuple[Any, Any]:
    """Prepares one problem for compiled steps and epochs, which compute `fairgrad.dual.step`.

    Args:
        constants: NumPy arrays.
        lookup: finds the cells of batches; linear epochs need none.

    Returns:
        The problem, and the memory that it reads; keep both while the problem is used.
    """
    n_sides, n_levels = constants.bound.shape
    n_cells, auto = len(constants.per_share), constants.auto
    # In this order, row and cell mostly grow by 1 from one entry to the next, so that loops over
    # such diagonals look up neither. Levels of a block are mostly adjacent, too.
    order = np.lexsort((constants.row, constants.cell - constants.row))
    row, cell, place = constants.row[order], constants.cell[order], np.arange(len(order))
    diagonals, blocks = _runs(row - place, cell - place), _runs(constants.block)
    n_slots, n_columns, tables, entries = n_cells, 0, [], []
    if lookup is not None:
        n_slots, n_columns = lookup.n_slots, len(lookup.columns)
        for table in (lookup.label, lookup.joint, *lookup.columns):
            # A detached buffer keeps its memory even if the buffer is replaced.
            values = torch.empty(0) if table is None else lookup.get_buffer(table.name).detach()
            tables.append((0 if table is None else table.first, len(values), values.data_ptr()))
            entries.append(values)
    floor = -np.inf if constants.floor is None else constants.floor
    ceiling = np.inf if constants.ceiling is None else constants.ceiling
    # These two are the same in all cells of a problem.
    error_memory = np.full(n_cells, constants.error_memory).reshape(constants.n_label_rows, -1)
    least_weight = np.full(n_cells, constants.least_weight).reshape(constants.n_problems, -1)
    arrays = [
        constants.value[order],
        constants.share,
        constants.room,
        np.full((n_sides, n_levels), floor),
        np.full(n_levels, ceiling),
        constants.per_share,
        np.full(n_levels, constants.fairness_rate),
        np.full(n_levels, constants.proportional_rate),
        error_memory[:, 0],
        least_weight[:, 0],
        np.column_stack([diagonals, row[diagonals[:, 0]], cell[diagonals[:, 0]]]),
        np.column_stack([blocks, constants.block[blocks[:, 0]]]),
        np.array(tables, dtype=np.int64),
    ]
    arrays = [np.ascontiguousarray(array) for array in arrays]
    rates = (0.0, 1.0, 1.0) if auto is None else (auto.per_rows, auto.horizon, auto.pool)
    problem = compiled_code.prepare(
        (
            n_cells,
            n_slots,
            n_levels,
            n_sides,
            len(diagonals),
            len(blocks),
            constants.n_blocks,
            constants.n_label_rows,
            constants.n_problems,
            n_columns,
        ),
        (dual.TINY, dual.BORROWED, dual.LEAST_LOSS, *rates),
        tuple(array.ctypes.data for array in arrays),
    )
    return problem, (arrays, entries)


def _runs(*keys: Ints) -> Ints:
    """(R, 2) the start and the length of each run in which no key changes."""
    starts = np.ones(len(keys[0]), dtype=bool)
    starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    first = np.flatnonzero(starts)
    return np.column_stack([first, np.append(first[1:], len(starts)) - first])
