"""Records belong to their inputs and to their method's version: moving code recomputes nothing."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest

from fairgrad_bench import PLANS, BenchResults, ExperimentPlan, Unit, read_records, run
from fairgrad_bench.methods import methods
from fairgrad_bench.records import find_record

ROOT = Path(__file__).parents[2]
OLD_PLAN = ExperimentPlan(
    datasets=("german",),
    models=("linear",),
    methods=("constant", "fairgrad"),
    measures=("equalized_odds",),
    seeds=(10,),
    grid="quick",
    epochs=5,
)


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        (
            Unit("german", "linear", "fairgrad", "equalized_odds"),
            "german-linear-fairgrad-equalized_odds-4f7e7f54e0a1",
        ),
        (
            PLANS["epsilon"].units()[0],
            "celeba-linear-fairgrad_epsilon-accuracy_parity-epsilon-f081db953515",
        ),
    ],
)
def test_names_are_the_same_wherever_the_code_lies_and_whatever_runs_it(unit, name):
    assert unit.name(1) == name


def test_records_made_when_the_code_lay_elsewhere_are_found(tmp_path):
    """These were written by ``fairgrad.bench``, before it became ``fairgrad_bench``."""
    folder = copytree(Path(__file__).parent / "records_of_schema_1", tmp_path / "records")
    outcome = run(OLD_PLAN, folder)
    assert outcome.new == []
    assert [record.version for record in outcome.kept] == [1, 1]
    assert all(record.kept for record in outcome.kept)


def test_records_of_the_old_format_hold_what_is_trained_today(tmp_path):
    old = read_records(Path(__file__).parent / "records_of_schema_1")
    new = run(OLD_PLAN, tmp_path).new
    for one, other in zip(old, new, strict=True):
        assert one.unit == other.unit
        assert [kept.test for kept in one.kept] == [kept.test for kept in other.kept]


def test_raising_the_version_of_a_method_makes_its_units_anew(tmp_path, monkeypatch, tiny):
    bench_methods = import_module("bench_methods")
    plan = ExperimentPlan(methods=("bench_methods:PLAIN", "constant"), **tiny)
    first, _ = run(plan, tmp_path).new
    monkeypatch.setattr(bench_methods, "PLAIN", replace(bench_methods.PLAIN, version=2))
    again = run(plan, tmp_path)
    assert [record.unit.method for record in again.kept] == ["constant"]
    assert [record.version for record in again.new] == [2]
    assert find_record(tmp_path, first.unit, 1).to_json() == first.to_json()
    assert BenchResults.from_records(read_records(tmp_path)).settings["methods"] == {
        "bench_methods:PLAIN": [2],
        "constant": [1],
    }


def test_the_committed_results_say_which_versions_made_them():
    units = pd.read_csv(ROOT / "results" / "units.csv")
    for method, own in units.groupby("method"):
        assert own["version"].between(1, methods()[method].version).all()
    settings = BenchResults.from_folder(ROOT / "results").settings
    done = units[units["status"] == "finished"].groupby("method")["version"].unique()
    assert settings["methods"] == {name: sorted(found.tolist()) for name, found in done.items()}


def test_the_committed_pages_are_made_of_the_committed_results(tmp_path):
    copytree(ROOT / "docs" / "pictures", tmp_path / "pictures")
    written = BenchResults.from_folder(ROOT / "results").write_pages(tmp_path / "reproduction.md")
    for path in written:
        assert (ROOT / "docs" / path.name).read_bytes() == path.read_bytes()
    assert len(written[0].read_text(encoding="utf-8").splitlines()) <= 100
