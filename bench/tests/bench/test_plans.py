"""Plans, what they refuse, and the version of the code that names records."""

import os
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from fairgrad.bench import (
    PLANS,
    Plan,
    Record,
    Unit,
    narrowed,
    plan_of,
    run,
    units_of,
)
from fairgrad.bench.cost import cost_of
from fairgrad.bench.progress import RunProgress
from fairgrad.bench.version import reached_from
from fairgrad.cli.commands import bench as bench_module
from fairgrad.methods import methods


def test_commands_name_the_plans_there_are():
    assert set(bench_module.PLANS) == set(PLANS)
    with pytest.raises(ValueError, match="plan: expected one of"):
        plan_of("nothing")


@pytest.mark.parametrize("name", PLANS)
def test_plans_ask_only_for_what_there_is(name):
    plan = plan_of(name)
    units = units_of(plan)
    assert len(units) == len({unit.name("") for unit in units})
    for unit in units:
        assert unit.method in methods()
        if plan.varies:
            assert all(plan.varies in settings for settings in plan.combinations)


def test_the_papers_plan_has_a_unit_per_measure_only_where_it_matters():
    units = units_of(narrowed(Plan(), datasets=("adult",), models=("linear",)))
    for name, method in methods().items():
        expected = 4 if method.uses_measure else 1
        assert sum(unit.method == name for unit in units) == expected


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"datasets": ("atlantis",)}, "dataset: got 'atlantis'"),
        ({"datasets": ("gaussian:rows",)}, "write options as name:option=value"),
        ({"methods": ("magic",)}, "method: got 'magic'"),
        ({"methods": ("nowhere:METHOD",)}, "cannot be imported"),
        ({"methods": ("bench_methods:STRENGTHS",)}, "got tuple"),
        ({"measures": ("justice",)}, "measures: expected some of"),
        ({"grid": "huge"}, "grid: expected some of"),
    ],
)
def test_wrong_names_are_refused_before_anything_runs(choices, message):
    with pytest.raises(ValueError, match=message):
        Plan(**choices)


def test_a_plan_with_its_own_combinations_takes_no_grid():
    with pytest.raises(ValueError, match="grid: the plan 'epsilon' has combinations of its own"):
        narrowed(plan_of("epsilon"), grid="quick")


def test_the_time_left_is_estimated_by_the_work_left():
    names = ("german", "celeba", "gaussian:rows=4000")
    small, large, middle = (cost_of(Unit(name, "linear", "fairgrad", "x")) for name in names)
    assert small < middle < large
    console = Console(file=StringIO(), width=200)
    units = [Unit(name, "linear", "fairgrad", "x") for name in ("dutch", "german", "celeba")]
    progress = RunProgress(units, console)
    progress.started -= 60.42
    progress.step(Record(units[0], "", "finished"))
    progress.step(Record(units[1], "", "failed", "no luck"))
    first, second = console.file.getvalue().splitlines()
    # A thousand rows a second, and 2,000 (what small data cost at least) and 202,599 to go.
    assert first.endswith("about 3 min 25 s left")
    assert second.endswith("failed, no luck; about 3 min 23 s left")


def test_options_of_data_sets_reach_them(tmp_path):
    plan = Plan(datasets=("gaussian:rows=500:seed=3",), models=("linear",), methods=("constant",))
    (found,) = run(plan, tmp_path).new
    assert sum(found.rows[10]["test"]) == 100


def version_of(text, folder):
    """The version of a module with this text; in a process of its own, as modules are cached."""
    (folder / "probe.py").write_text(text)
    program = "from fairgrad.bench.version import digest_of; print(digest_of(['probe']))"
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
        check=True,
    ).stdout


def test_versions_follow_the_code_and_not_its_words(tmp_path):
    plain = '"""Doc."""\ndef f():\n    """Doc."""\n    return 1\n'
    words = '"""Other."""\n\n# Why.\ndef f():\n    """Other."""\n    return 1\n'
    assert version_of(plain, tmp_path) == version_of(words, tmp_path)
    assert version_of(plain, tmp_path) != version_of(plain.replace("1", "2"), tmp_path)
    imports = "from fairgrad.groups import Groups\n"
    assert version_of(plain, tmp_path) != version_of(plain + imports, tmp_path)


def test_versions_depend_on_what_trains_and_not_on_what_draws():
    reached = reached_from(["fairgrad.methods.fairgrad"])
    assert {"fairgrad.dual", "fairgrad.measures", "fairgrad.training.trainer"} <= reached
    assert not any(name.startswith(("fairgrad.report", "fairgrad.cli")) for name in reached)
