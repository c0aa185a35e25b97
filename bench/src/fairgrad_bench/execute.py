"""A unit -> its record: load the data, train, count. Never raises: what goes wrong is recorded."""

from __future__ import annotations

import platform
import threading
import time
import traceback
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no types

from fairgrad.bench.counts import Cells
from fairgrad.bench.record import FAILED, FINISHED, SKIPPED, Kept, Record
from fairgrad.bench.sources import code_version, find_method, splits_of
from fairgrad.methods import Candidate, Method, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fairgrad.bench.unit import Unit
    from fairgrad.datasets import Split

# Units seed PyTorch's one generator: two of them in one process would disturb each other.
_ONE_AT_A_TIME = threading.Lock()


def execute(unit: Unit, code: str | None = None) -> Record:
    """Trains a unit and counts what its candidates get wrong.

    Args:
        unit: what to train.
        code: the version of the code it is to be done with; a machine of a cluster that holds
            another one says so instead of mixing results.
    """
    start = time.process_time()  # a busy machine makes no method look slow
    code = code_version(unit) if code is None else code
    try:
        with _ONE_AT_A_TIME, one_thread():
            _check_version(code_version(unit), code)
            found = _outcome(unit)
    except Exception as error:  # noqa: BLE001 - whatever a method raises must not stop the rest
        found = failure(error)
    seconds = round(time.process_time() - start, 3)
    return Record(unit, code, seconds=seconds, finished_at=time.time(), **found)


def failure(error: BaseException) -> dict[str, Any]:
    """The fields of a record that say what went wrong."""
    reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
    trace = "".join(traceback.format_exception(error))
    return {"status": FAILED, "reason": reason, "trace": trace}


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for PyTorch and BLAS: faster on small networks, and the same sums everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _outcome(unit: Unit) -> dict[str, Any]:
    method, splits = find_method(unit.method), splits_of(unit.dataset, unit.seeds)
    task = Task(
        splits=splits,
        model=unit.model,
        measure=unit.measure,
        grid=unit.grid,
        epochs=unit.epochs,
        combinations=unit.combinations,
    )
    reason = method.unsupported(task)
    if reason is not None:
        return {"status": SKIPPED, "reason": reason}
    return {
        "full_grid": _is_full(method, unit),
        **_counted(method, method.train(task), splits),
    }


def _is_full(method: Method, unit: Unit) -> bool:
    """Whether the paper's combinations are trained; some methods have no others."""
    if unit.combinations is not None:
        return False
    return method.settings(unit.model, unit.grid) == method.settings(unit.model, "paper")


def _counted(
    method: Method, candidates: Iterable[Candidate], splits: Mapping[int, Split]
) -> dict[str, Any]:
    """Counts candidates one after the other, so that a method may yield them without a list."""
    cells = Cells.of(splits.values())
    kept = [_kept(cells, found, splits[found.seed]) for found in candidates]
    missing = set(splits) - {candidate.seed for candidate in kept}
    if missing:
        raise ValueError(f"{method.name} gave no model for the seeds {sorted(missing)}.")
    return {
        "status": FINISHED,
        "needs_s_to_predict": method.needs_s_to_predict,
        "environment": _environment(),
        "cells": cells,
        "rows": {seed: _rows(cells, split) for seed, split in splits.items()},
        "kept": kept,
    }


def _kept(cells: Cells, found: Candidate, split: Split) -> Kept:
    rate = found.test_positive_rate
    expected = None if rate is None else cells.expected_wrong(split.test, rate).tolist()
    return Kept(
        seed=found.seed,
        settings=dict(found.settings),
        epoch=int(found.epoch),
        validation=cells.wrong(split.validation, found.validation, "validation").tolist(),
        test=cells.wrong(split.test, found.test, "test").tolist(),
        expected=expected,
    )


def _rows(cells: Cells, split: Split) -> dict[str, list[float]]:
    parts = {"validation": split.validation, "test": split.test}
    return {name: cells.count(part.y, part.s).tolist() for name, part in parts.items()}


def _check_version(here: str, wanted: str) -> None:
    if here != wanted:
        raise RuntimeError(
            f"this worker holds version {here} of the code, the run asks for {wanted}: "
            "install the same version everywhere."
        )


def _environment() -> dict[str, str]:
    packages = ("fairgrad", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
