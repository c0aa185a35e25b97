"""The benchmark, a cluster and several processes of PyTorch, some of which die.

Finished work stays, damaged work is repeated, and no process waits for a dead one for ever.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import torch
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend.context import set_start_method

from fairgrad_bench import ExperimentPlan, read_records, run
from fairgrad_bench.program import main
from reliability.faults import Forked, Trials, start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PLAN = ExperimentPlan(
    datasets=("german",), models=("nonlinear",), methods=("constant", "unconstrained", "fairgrad"),
    seeds=(10,), grid="quick", epochs=10,
)  # fmt: skip
UNITS = (
    "--datasets", *PLAN.datasets, "--models", *PLAN.models, "--methods", ",".join(PLAN.methods),
    "--seeds", "10", "--grid", "quick", "--epochs", "10",
)  # fmt: skip
SECONDS = 120
"""Seconds after which a process that waits for a dead one counts as hanging."""

RANKS = """
import os, sys, time, torch
from torch import distributed
from fairgrad.files import whole_file
from fairgrad.torch import CrossEntropyLoss
from pathlib import Path
distributed.init_process_group("gloo")
rank, folder = distributed.get_rank(), Path(sys.argv[1])
(folder / f"rank {rank}").write_text(str(os.getpid()))
y, s = torch.arange(64) % 2, torch.arange(64) // 2 % 2
criterion, layer = CrossEntropyLoss(y, s, "equalized_odds"), torch.nn.Linear(1, 2)
for step in range(10_000):
    criterion(layer(torch.randn(64, 1)), y, s).backward()
    if rank == 0:
        with whole_file(folder / "state.pt") as path:
            torch.save(criterion.state_dict(), path)
    time.sleep(0.01)
"""


def bench(folder: Path) -> Forked:
    """`fairgrad-bench run --jobs 2`. Its workers are forked, too, and spend no time on imports."""

    def work() -> None:
        set_start_method("fork", force=True)
        sys.argv[1:] = ["run", *UNITS, "--jobs", "2", "--records", str(folder)]
        try:
            main()
        finally:  # a forked process skips what Python does at its end
            get_reusable_executor().shutdown(wait=True)

    return start(work)


def finished(folder: Path) -> dict[str, str]:
    """The records that are there, each read as a whole."""
    if not folder.exists():
        return {}
    return {record.name: record.status for record in read_records(folder)}


def bench_killed(folder: Path, n: int) -> dict[str, Trials]:
    """The benchmark with two workers, killed with all of them; the next run resumes."""
    results, chance = Trials(), random.Random(2)  # noqa: S311 - moments, not secrets
    began = time.monotonic()
    code, output = bench(folder / "whole").end()
    took, everything = time.monotonic() - began, finished(folder / "whole")
    results.check(f"a run: {output[-200:]}", lambda: code == 0 and len(everything) > 0)
    place, before = folder / "records", dict[str, str]()
    for i in range(n):
        running = bench(place)
        time.sleep(chance.uniform(0, took))
        running.end(signal.SIGKILL, everyone=True)

        def kept(before: dict[str, str] = before, place: Path = place) -> bool | None:
            now = finished(place)
            return before.items() <= now.items() if now else None

        results.check(f"kill {i}", kept)
        before = finished(place)
        if before.keys() == everything.keys():  # all is done: from the start, elsewhere
            place, before = folder / f"records {i}", {}
    last, output = bench(place).end()
    results.check(
        f"the last run: {output[-200:]}", lambda: last == 0 and finished(place) == everything
    )
    return {"bench run --jobs 2, kill -9": results}


def one_store(folder: Path, n: int) -> dict[str, Trials]:
    """Two benchmarks that write the same records; and records that are damaged."""
    both, damaged = Trials(), Trials()
    for i in range(n):
        place = folder / f"store {i}"
        running = [bench(place), bench(place)]
        codes, output = zip(*(process.end() for process in running), strict=True)
        statuses = set(finished(place).values())
        is_done = codes == (0, 0) and bool(statuses)
        both.check(f"two at once: {codes} {output}"[:300], lambda is_done=is_done: is_done)
        record = sorted(place.glob("*.json"))[i % len(list(place.glob("*.json")))]
        content = record.read_bytes()
        record.write_bytes(content[: len(content) // 2])
        code, error = bench(place).end()
        damaged.check(
            f"half a record: {code} {error[-200:]}",
            lambda code=code, place=place, statuses=statuses: (
                code == 0 and set(finished(place).values()) == statuses
            ),
        )
    return {"two benchmarks, one store": both, "a damaged record": damaged}


def dead_worker(folder: Path, n: int) -> dict[str, Trials]:
    """A worker of a dask cluster is killed while units run there: others do its work."""
    from dask.distributed import LocalCluster  # noqa: PLC0415 - slow to import

    results = Trials()
    chance = random.Random(3)  # noqa: S311 - moments, not secrets
    for i in range(n):
        with LocalCluster(  # type: ignore[no-untyped-call]  # dask publishes no types
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            victim = next(iter(cluster.workers.values())).pid
            killer = threading.Timer(chance.uniform(0.1, 3.0), os.kill, (victim, signal.SIGKILL))
            killer.start()
            outcome = run(PLAN, folder / f"cluster {i}", cluster=cluster.scheduler_address)
            killer.join()
        results.check(f"worker {i}: {outcome.describe()}", lambda o=outcome: not o.failed)
    return {"a dead dask worker": results}


def dead_rank(folder: Path, n: int) -> dict[str, Trials]:
    """One of two processes under torchrun is killed: the run ends, and its state is whole."""
    results = Trials()
    (folder / "ranks.py").write_text(RANKS, encoding="utf-8")
    for i in range(n):
        place = folder / f"run {i}"
        place.mkdir()
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                   "--nproc-per-node", "2", str(folder / "ranks.py"), str(place)]  # fmt: skip
        running = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        _wait_for(lambda place=place: (place / "state.pt").exists())
        os.kill(int((place / "rank 1").read_text(encoding="utf-8")), signal.SIGKILL)
        try:
            code: Any = running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = "it hangs"
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()

        def ended(code: Any = code, place: Path = place) -> bool:
            state = torch.load(place / "state.pt", weights_only=True)
            return code not in {0, "it hangs"} and len(state) > 0

        results.check(f"torchrun: {code}", ended)
    return {"a dead torchrun rank": results}


def _wait_for(there: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not there():
        if time.monotonic() > end:
            raise TimeoutError("the processes did not start")
        time.sleep(0.05)


KINDS: Sequence[tuple[Callable[[Path, int], dict[str, Trials]], float]] = (
    (bench_killed, 1.0),
    (one_store, 0.04),
    (dead_worker, 0.06),
    (dead_rank, 0.06),
)
"""What is tried, and how often compared with what is killed."""
