"""Runs a plan: what is done already is kept, the rest is trained and written unit by unit.

Units run in this process, in several processes of this machine or on a dask cluster. A unit never
raises: what goes wrong is recorded.
"""

from __future__ import annotations

import platform
import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no types

from fairgrad_bench.methods import Candidate, Method, MethodTask
from fairgrad_bench.plan import ExperimentPlan, find_method, load_splits, parse_dataset
from fairgrad_bench.records import (
    FAILED,
    FINISHED,
    SKIPPED,
    CountedCells,
    KeptModel,
    UnitRecord,
    find_record,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fairgrad.datasets import Split
    from fairgrad_bench.plan import Unit

# Units seed PyTorch's one generator: two of them in one process would disturb each other.
_ONE_AT_A_TIME = threading.Lock()

ROWS = {
    "adult": 45_222,
    "adult_multigroup": 45_222,
    "celeba": 202_599,
    "compas": 6_172,
    "crime": 1_994,
    "dutch": 60_420,
    "folktables": 78_266,
    "gaussian": 100_000,
    "german": 1_000,
    "twitter": 200_000,
    "utkface": 23_708,
}
OTHER_ROWS, LEAST_ROWS = 10_000, 2_000
AT_ALL_AND_EACH = {"linear": (45, 1), "nonlinear": (160, 110), "lightgbm": (0, 10)}
"""What a row costs, and what it costs more for each combination: networks are trained together.

As measured on Adult: 6 and 30 combinations of linear models, 2 and 6 of nonlinear ones.
"""


@dataclass(frozen=True, eq=False)
class Work:
    """What is done with the units of a run, wherever they run.

    Attributes:
        execute: from a unit to its record, which has it as `unit`; never raises.
        failed: the record of a unit whose process died.
        key: the name of a unit on a cluster.
        arguments: of `execute` on a cluster, where other versions may be installed.
    """

    execute: Callable[[Any], Any]
    failed: Callable[[Any, BaseException], Any]
    key: Callable[[Any], str]
    arguments: Callable[[Any], tuple[Any, ...]] = lambda unit: (unit,)


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """What a run did.

    Attributes:
        kept: records that were there already.
        new: records of this run.
    """

    kept: list[UnitRecord] = field(default_factory=list)
    new: list[UnitRecord] = field(default_factory=list)

    @property
    def failed(self) -> list[UnitRecord]:
        """Units that could not be done, with their reasons."""
        return [record for record in self.new if record.status == FAILED]

    def describe(self) -> str:
        """What a run did, in a few lines."""
        counts = [
            f"{sum(record.status == status for record in self.new)} {status}"
            for status in (FINISHED, SKIPPED, FAILED)
        ]
        total = len(self.kept) + len(self.new)
        first = f"{total} units: {', '.join(counts)}, {len(self.kept)} were there already"
        return "\n".join([first, *(f"failed: {r.unit}: {r.reason}" for r in self.failed)])


def run(
    plan: ExperimentPlan | Sequence[Unit],
    folder: str | Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    console: Console | None = None,
) -> RunOutcome:
    """Trains every unit of a plan that has no record yet.

    An interrupted or killed run resumes where it stopped when it is started again; units
    that failed are tried again.

    Args:
        plan: what to run; or the units themselves.
        folder: of the records; made if it is not there.
        jobs: processes on this machine.
        cluster: the address of a dask scheduler; the units run there instead.
        console: to report progress to.

    Raises:
        ValueError: if jobs is not positive.

    Example:
        >>> import tempfile
        >>> plan = ExperimentPlan(datasets=("german",), models=("linear",), methods=("constant",),
        ...                       seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(run(plan, folder).describe())
        1 units: 1 finished, 0 skipped, 0 failed, 0 were there already
    """
    if jobs < 1:
        raise ValueError(f"jobs: expected at least 1, got {jobs}.")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    outcome, todo = RunOutcome(), []
    for unit in plan.units() if isinstance(plan, ExperimentPlan) else plan:
        record = find_record(place, unit, find_method(unit.method).version)
        if record is None or record.status == FAILED:
            todo.append(unit)
        else:
            outcome.kept.append(record)
    work = Work(
        execute,
        failed=lambda unit, error: UnitRecord(unit, _version(unit), **_failure(error)),
        key=lambda unit: unit.name(_version(unit)),
        arguments=lambda unit: (unit, _version(unit)),
    )
    records = on_cluster(todo, cluster, work) if cluster else on_this_machine(todo, jobs, work)
    progress = RunProgress(todo, Console(stderr=True) if console is None else console)
    with progress.bar:
        for record in records if todo else ():
            write_record(record, place)
            outcome.new.append(record)
            progress.step(record)
    return outcome


def _version(unit: Unit) -> int:
    return find_method(unit.method).version


def on_this_machine(units: Sequence[Any], jobs: int, work: Work) -> Iterator[Any]:
    """The record of every unit, as each is finished.

    A process that dies, for example because memory is short, ends the pool. The units in work are
    then tried again one by one, so that the unit that fails is identified and the others run.
    """
    if jobs == 1:
        yield from map(work.execute, units)
        return
    waiting = list(units)
    while waiting:
        try:
            # No more are handed out than can be worked on: those in work are the first waiting.
            pool = Parallel(
                n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs, batch_size=1
            )
            for record in pool(delayed(work.execute)(unit) for unit in list(waiting)):
                waiting.remove(record.unit)
                yield record
        except TerminatedWorkerError:
            suspects, waiting = waiting[:jobs], waiting[jobs:]
            for unit in suspects:
                alone = get_reusable_executor(max_workers=1)
                try:
                    yield alone.submit(work.execute, unit).result()
                except TerminatedWorkerError as error:
                    yield work.failed(unit, error)
                finally:  # joblib's pools cannot continue with this pool
                    alone.shutdown()


def on_cluster(units: Sequence[Any], address: str, work: Work) -> Iterator[Any]:
    """The record of every unit, as each is finished on a dask.distributed cluster.

    The scheduler gives the work of a machine that is lost to another one. Workers find the data
    where they run; records come back to this process, which alone writes files.

    Args:
        units: what to train.
        address: of the scheduler, such as "tcp://10.0.0.1:8786".
        work: what to do with a unit.
    """
    from dask.distributed import Client, as_completed  # noqa: PLC0415 - slow to import

    with Client(address) as client:  # type: ignore[no-untyped-call]  # dask publishes no types
        submitted = {
            client.submit(work.execute, *work.arguments(unit), key=work.key(unit), pure=False): unit
            for unit in units
        }
        for future in as_completed(submitted):  # type: ignore[no-untyped-call]  # as above
            try:
                yield future.result()
            except Exception as error:  # noqa: BLE001 - a unit may kill every worker it meets
                yield work.failed(submitted[future], error)


def execute(unit: Unit, wanted: int | None = None) -> UnitRecord:
    """Trains a unit and counts what its candidates get wrong.

    Args:
        unit: what to train.
        wanted: the version of the method it is to be done with; a machine of a cluster that holds
            another version raises an error instead of mixing results.
    """
    start = time.process_time()  # a busy machine makes no method look slow
    here = 0
    try:
        with _ONE_AT_A_TIME, one_thread():
            method = find_method(unit.method)
            here = method.version
            if wanted not in (None, here):
                raise RuntimeError(  # noqa: TRY301 - recorded as whatever else goes wrong
                    f"this worker holds version {here} of the method, the run asks for {wanted}: "
                    "install the same version of fairgrad-bench everywhere."
                )
            found = _trained(method, unit)
    except Exception as error:  # noqa: BLE001 - whatever a method raises must not stop the rest
        found = _failure(error)
    seconds = round(time.process_time() - start, 3)
    made_by = here if wanted is None else wanted
    return UnitRecord(unit, made_by, seconds=seconds, finished_at=time.time(), **found)


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


def _failure(error: BaseException) -> dict[str, Any]:
    """The fields of a record that describe the error."""
    reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
    trace = "".join(traceback.format_exception(error))
    return {"status": FAILED, "reason": reason, "trace": trace}


def _trained(method: Method, unit: Unit) -> dict[str, Any]:
    """The fields of a record of a unit that was trained, or skipped with a reason."""
    splits = load_splits(unit.dataset, unit.seeds)
    task = MethodTask(
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
    # Some methods have no other combinations than the paper's.
    full = method.settings(unit.model, unit.grid) == method.settings(unit.model, "paper")
    return {
        "full_grid": unit.combinations is None and full,
        **_counted(method, method.train(task), splits),
    }


def _counted(
    method: Method, candidates: Iterable[Candidate], splits: Mapping[int, Split]
) -> dict[str, Any]:
    """Counts candidates one after the other, so that a method may yield them without a list."""
    cells = CountedCells.from_splits(splits.values())
    kept = [_kept(cells, found, splits[found.seed]) for found in candidates]
    missing = set(splits) - {candidate.seed for candidate in kept}
    if missing:
        raise ValueError(f"{method.name} gave no model for the seeds {sorted(missing)}.")
    packages = ("fairgrad", "torch", "numpy", "scikit-learn")
    return {
        "status": FINISHED,
        "needs_s_to_predict": method.needs_s_to_predict,
        "environment": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "cells": cells,
        "rows": {
            seed: {
                name: cells.count(part.y, part.s).tolist()
                for name, part in (("validation", split.validation), ("test", split.test))
            }
            for seed, split in splits.items()
        },
        "kept": kept,
    }


def _kept(cells: CountedCells, candidate: Candidate, split: Split) -> KeptModel:
    rate = candidate.test_positive_rate
    return KeptModel(
        seed=candidate.seed,
        settings=dict(candidate.settings),
        epoch=int(candidate.epoch),
        validation=cells.counted(split.validation, candidate.validation, "validation").tolist(),
        test=cells.counted(split.test, candidate.test, "test").tolist(),
        expected=None if rate is None else cells.expected_wrong(split.test, rate).tolist(),
    )


class RunProgress:
    """Shows the progress of a run: a line per unit, the time left, a bar on terminals.

    The estimate takes the work that is left to cost as much as the work done so far. Units that
    were skipped or failed say nothing about that.

    Args:
        units: to be run.
        console: to speak to.
    """

    def __init__(self, units: Sequence[Unit], console: Console) -> None:
        self.total, self.done, self.started = len(units), 0, time.monotonic()
        self.work_done, self.work_left = 0.0, sum(map(cost, units))
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(
            *columns, console=console, disable=not console.is_terminal, transient=True
        )
        self.task = self.bar.add_task("units", total=self.total)

    def step(self, record: UnitRecord) -> None:
        """Tells of one more unit."""
        own = cost(record.unit)
        self.done, self.work_left = self.done + 1, self.work_left - own
        self.work_done += own if record.status == FINISHED else 0.0
        left = self._time_left()
        self.bar.update(self.task, completed=self.done, description=left or "units")
        detail = duration(record.seconds) if record.status == FINISHED else record.reason
        self.bar.console.print(
            f"{self.done}/{self.total} {record.unit}: {record.status}, {detail}"
            + (f"; {left}" if left else ""),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def _time_left(self) -> str:
        if self.done == self.total or self.work_done == 0:
            return ""
        passed = time.monotonic() - self.started
        return f"about {duration(passed / self.work_done * self.work_left)} left"


def cost(unit: Unit) -> float:
    """A rough measure of a unit's work, in no unit of time, whatever the method."""
    name, options = parse_dataset(unit.dataset)
    rows = max(options.get("rows", ROWS.get(name, OTHER_ROWS)), LEAST_ROWS)
    settings = unit.combinations or find_method(unit.method).settings(unit.model, unit.grid)
    at_all, each = AT_ALL_AND_EACH[unit.model]
    return float(rows) * (at_all + each * len(settings))


def duration(seconds: float) -> str:
    """A time span for people.

    Example:
        >>> duration(8.2), duration(95), duration(7500)
        ('8 s', '1 min 35 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
