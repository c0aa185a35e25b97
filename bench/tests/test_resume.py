"""A killed run can be resumed; failures do not stop it."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from fairgrad_bench import MEASURES, ExperimentPlan, read_records, run
from fairgrad_bench.records import write_record

PROGRAM = """
import sys
from fairgrad_bench import ExperimentPlan, run
run(ExperimentPlan(datasets=("german",), models=("linear",), seeds=(10, 20),
         methods=("bench_methods:TELLS",)), sys.argv[1])
"""


def by_unit(records):
    return {str(record.unit): [asdict(kept) for kept in record.kept] for record in records}


def test_killed_run_loses_only_the_unit_in_hand(tmp_path, monkeypatch, tiny):
    records, started = tmp_path / "records", tmp_path / "started"
    started.mkdir()
    monkeypatch.setenv("BENCH_TEST_FOLDER", str(started))
    slow = os.environ | {"BENCH_TEST_WAITS": "2"}
    command = [sys.executable, "-c", PROGRAM, str(records)]
    process = subprocess.Popen(command, env=slow, start_new_session=True)
    while len(list(started.iterdir())) < 2:  # one unit is finished and another one is in hand
        assert process.poll() is None, "the run ended before its second unit"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path.name: path.read_bytes() for path in records.glob("*.json")}
    assert 1 <= len(before) < len(MEASURES)
    for path in started.iterdir():
        path.unlink()
    plan = ExperimentPlan(methods=("bench_methods:TELLS",), **tiny)
    outcome = run(plan, records)
    again = [path.name.split("-")[0] for path in started.iterdir()]
    assert len(outcome.kept) == len(before)
    assert sorted(again) == sorted(set(MEASURES) - {r.unit.measure for r in outcome.kept})
    assert all((records / name).read_bytes() == content for name, content in before.items())
    untouched = run(plan, tmp_path / "fresh")
    assert by_unit(read_records(records)) == by_unit(untouched.new)


def test_failures_are_recorded_and_tried_again(tmp_path, tiny):
    plan = ExperimentPlan(methods=("bench_methods:FAILS", "bench_methods:PLAIN"), **tiny)
    outcome = run(plan, tmp_path)
    assert len(outcome.failed) == len(MEASURES)
    for record in outcome.failed:
        assert record.reason == f"RuntimeError: no luck with {record.unit.measure}"
        assert "_fails" in record.trace
    again = run(plan, tmp_path)
    assert [record.unit.method for record in again.kept] == ["bench_methods:PLAIN"]
    assert len(again.failed) == len(MEASURES)


def test_a_seed_without_a_model_is_a_failure(tmp_path, tiny):
    (record,) = run(ExperimentPlan(methods=("bench_methods:FORGETS",), **tiny), tmp_path).new
    assert record.reason == "ValueError: forgets gave no model for the seeds [20]."


def test_data_that_are_not_there_are_a_failure_with_a_reason(tmp_path, monkeypatch, tiny):
    monkeypatch.setenv("FAIRGRAD_DATA", str(tmp_path))
    monkeypatch.setenv("FAIRGRAD_CACHE", str(tmp_path))
    plan = ExperimentPlan(
        **tiny | {"datasets": ("dutch", "german")}, methods=("bench_methods:PLAIN",)
    )
    failed, finished = run(plan, tmp_path / "records").new
    assert failed.status == "failed"
    assert "DataNotFoundError" in failed.reason
    assert finished.status == "finished"


def test_what_a_method_cannot_do_is_skipped_for_good(tmp_path, tiny):
    plan = ExperimentPlan(methods=("bench_methods:CANNOT",), **tiny)
    (record,) = run(plan, tmp_path).new
    assert (record.status, record.reason) == ("skipped", "it knows no linear models")
    assert run(plan, tmp_path).new == []


def test_processes_give_the_results_of_one(tmp_path, tiny):
    plan = ExperimentPlan(
        methods=("bench_methods:PLAIN", "constant", "unconstrained"), epochs=6, **tiny
    )
    one = run(plan, tmp_path / "one")
    two = run(plan, tmp_path / "two", jobs=2)
    assert len(one.new) == 3
    assert by_unit(one.new) == by_unit(two.new)


@pytest.mark.filterwarnings("ignore:A worker stopped:UserWarning")
def test_a_process_that_dies_fails_its_unit_alone(tmp_path, tiny):
    measures = ("equalized_odds", "accuracy_parity")
    outcome = run(
        ExperimentPlan(methods=("bench_methods:DIES",), measures=measures, **tiny), tmp_path, jobs=2
    )
    status = {record.unit.measure: record.status for record in outcome.new}
    assert status == {"accuracy_parity": "finished", "equalized_odds": "failed"}
    assert "TerminatedWorkerError" in outcome.failed[0].reason


def test_other_inputs_or_versions_have_other_names(tiny):
    (unit,) = ExperimentPlan(methods=("constant",), **tiny).units()
    others = [
        replace(unit, **{name: value})
        for name, value in {
            "dataset": "adult", "model": "nonlinear", "method": "fairgrad", "grid": "quick",
            "measure": "equalized_odds", "seeds": (10,), "epochs": 3, "combinations": ({"a": 1},),
        }.items()
    ]  # fmt: skip
    names = [unit.name(1), unit.name(2), *(other.name(1) for other in others)]
    assert len(set(names)) == len(names)
    assert unit.name(1) == replace(unit).name(1)


def test_records_survive_json(tmp_path, tiny):
    (record,) = run(ExperimentPlan(methods=("bench_methods:PLAIN",), **tiny), tmp_path / "a").new
    (read,) = read_records(tmp_path / "a")
    assert read.to_json() == record.to_json()
    assert read.unit == record.unit
    (tmp_path / "b").mkdir()
    assert write_record(read, tmp_path / "b").name == f"{record.name}.json"


def test_strange_files_are_named(tmp_path):
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(ValueError, match="notes.json: not a record"):
        read_records(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        read_records(tmp_path / "nowhere")


def test_a_damaged_record_is_done_again(tmp_path, tiny):
    plan = ExperimentPlan(methods=("bench_methods:PLAIN",), **tiny)
    (record,) = run(plan, tmp_path).new
    (path,) = tmp_path.glob("*.json")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="not a record.*; its unit is done again"):
        (again,) = run(plan, tmp_path).new
    assert [kept.test for kept in again.kept] == [kept.test for kept in record.kept]
    assert [read.status for read in read_records(tmp_path)] == ["finished"]


def test_jobs_must_be_positive(tmp_path, tiny):
    with pytest.raises(ValueError, match="jobs: expected at least 1, got 0"):
        run(ExperimentPlan(methods=("constant",), **tiny), tmp_path, jobs=0)
