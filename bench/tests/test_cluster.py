"""The same units on a dask cluster, one of whose workers is killed in the middle of its work."""

import os
import signal
import threading
import time

import pytest

from fairgrad_bench import MEASURES, ExperimentPlan, read_records, run

distributed = pytest.importorskip("dask.distributed", reason="needs the extra bench")


def counts(records):
    return {
        str(record.unit): [
            (kept.seed, kept.settings, kept.validation, kept.test) for kept in record.kept
        ]
        for record in records
    }


def kill_the_first_to_start(folder, killed):
    while not (found := list(folder.glob("*.started"))):
        time.sleep(0.01)
    killed.append(int(found[0].name.split("-")[1]))
    os.kill(killed[0], signal.SIGKILL)
    (folder / "continue").touch()


def test_results_are_complete_and_equal_though_a_worker_is_killed(tmp_path, monkeypatch, tiny):
    started = tmp_path / "started"
    started.mkdir()
    monkeypatch.setenv("BENCH_TEST_FOLDER", str(started))
    plan = ExperimentPlan(methods=("bench_methods:TELLS",), **tiny)
    alone = run(plan, tmp_path / "alone")
    for path in started.iterdir():
        path.unlink()
    monkeypatch.setenv("BENCH_TEST_WAITS", "1")
    killed = []
    killer = threading.Thread(target=kill_the_first_to_start, args=(started, killed), daemon=True)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        killer.start()
        outcome = run(plan, tmp_path / "cluster", cluster=cluster.scheduler_address)
        killer.join()
    attempts = [path.name.split("-")[:2] for path in started.glob("*.started")]
    lost = [measure for measure, pid in attempts if int(pid) == killed[0]]
    assert len(lost) == 1
    assert sum(measure == lost[0] for measure, _ in attempts) == 2
    assert len(outcome.new) == len(MEASURES)
    assert not outcome.failed
    assert counts(read_records(tmp_path / "cluster")) == counts(alone.new)
