"""Plans: what they make, and what they refuse."""

from io import StringIO

import pytest
from rich.console import Console

from fairgrad_bench import (
    PLANS,
    ExperimentPlan,
    Unit,
    UnitRecord,
    named_plan,
    program,
    run,
)
from fairgrad_bench.methods import methods
from fairgrad_bench.running import RunProgress, cost


def test_commands_name_the_plans_there_are():
    assert set(program.PLANS) == set(PLANS)
    with pytest.raises(ValueError, match="plan: expected one of"):
        named_plan("nothing")


@pytest.mark.parametrize("name", PLANS)
def test_plans_ask_only_for_what_there_is(name):
    plan = named_plan(name)
    units = plan.units()
    assert len(units) == len({unit.name(1) for unit in units})
    for unit in units:
        assert unit.method in methods()
        if plan.varies:
            assert all(plan.varies in settings for settings in plan.combinations)


def test_the_papers_plan_has_a_unit_per_measure_only_where_it_matters():
    units = ExperimentPlan().narrowed(datasets=("adult",), models=("linear",)).units()
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
        ExperimentPlan(**choices)


def test_a_plan_with_its_own_combinations_takes_no_grid():
    with pytest.raises(ValueError, match="grid: the plan 'epsilon' defines its combinations"):
        named_plan("epsilon").narrowed(grid="quick")


def test_the_time_left_is_estimated_by_the_work_left():
    names = ("german", "celeba", "gaussian:rows=4000")
    small, large, middle = (cost(Unit(name, "linear", "fairgrad", "x")) for name in names)
    assert small < middle < large
    console = Console(file=StringIO(), width=200)
    units = [Unit(name, "linear", "fairgrad", "x") for name in ("dutch", "german", "celeba")]
    progress = RunProgress(units, console)
    progress.started -= 60.42
    progress.step(UnitRecord(units[0], 1, "finished"))
    progress.step(UnitRecord(units[1], 1, "failed", "no luck"))
    first, second = console.file.getvalue().splitlines()
    # A thousand rows a second, and 2,000 (what small data cost at least) and 202,599 to go.
    assert first.endswith("about 3 min 25 s left")
    assert second.endswith("failed, no luck; about 3 min 23 s left")


def test_options_of_data_sets_reach_them(tmp_path):
    plan = ExperimentPlan(
        datasets=("gaussian:rows=500:seed=3",), models=("linear",), methods=("constant",)
    )
    (found,) = run(plan, tmp_path).new
    assert sum(found.rows[10]["test"]) == 100
