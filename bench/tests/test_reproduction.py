"""Everything in one run, and what the page says of who made its tables."""

import pandas as pd
import pytest

from fairgrad_bench import ExperimentPlan
from fairgrad_bench.provenance import estimated_cost, made_by_plan, made_by_runs, outdated
from fairgrad_bench.reproduction import STAGES, narrowed_stages, reproduce
from fairgrad_bench.results import BenchResults


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Two small stages, run twice: the folder, and what the two runs did."""
    place = tmp_path_factory.mktemp("reproduction")
    shared = {"datasets": ("german",), "models": ("linear",), "seeds": (10,), "epochs": 2}
    fair = {"measures": ("equalized_odds",), "methods": ("fairgrad", "reduction"), "grid": "quick"}
    stages = [
        ExperimentPlan(name="plain", methods=("constant",), **shared),
        ExperimentPlan(name="fair", **fair, **shared),
    ]
    paths = (place / "records", place / "results", place / "page.md")
    outcomes = [reproduce(*paths, epochs=0, stages=stages) for _ in range(2)]
    return place, outcomes


def test_a_second_run_has_nothing_to_do(done):
    _, (first, second) = done
    assert [len(outcome.new) for outcome in first] == [1, 2]
    assert [len(outcome.new) for outcome in second] == [0, 0]
    assert not any(outcome.failed for outcome in first)


def test_all_results_are_written(done):
    place, _ = done
    written = {path.name for path in (place / "results").iterdir()}
    assert {"comparison.csv", "units.csv", "settings.json"} <= written


def test_the_page_says_who_made_a_table(done):
    place, _ = done
    page = (place / "page_figures.md").read_text(encoding="utf-8")
    units = pd.read_csv(place / "results" / "units.csv")
    assert made_by_runs(units, "german", "linear") in page
    assert "`fairgrad-bench run --datasets german --models linear`" in page
    assert "with `--grid quick` for some rows" in page
    assert "methods of version 1, reduction version 2; " in page
    assert "fairgrad 1." in page
    assert page == BenchResults.from_folder(place / "results").figures_page()


def test_the_stages_cover_every_method_on_linear_models():
    first, *_ = STAGES
    assert first.methods == ()
    assert first.models == ("linear",)
    narrowed, *_ = narrowed_stages(["dutch", "celeba"], [10])
    assert narrowed.datasets == ("dutch", "celeba")
    assert {stage.seeds for stage in narrowed_stages(None, [10])} == {(10,)}


def unit(dataset, seconds, **changed):
    own = {"model": "nonlinear", "method": "bifair", "measure": "equalized_odds", "grid": "quick"}
    rest = {"varies": None, "status": "finished", "version": 1, "environment": "python 3"}
    return {"dataset": dataset, "seconds": seconds, **own, **rest, **changed}


def test_costs_follow_the_rows_of_the_largest_unit_like_it():
    units = pd.DataFrame(
        [
            unit("german", 900.0),
            unit("gaussian", 500.0),
            unit("gaussian", 300.0),
            unit("celeba", 1.0, grid="paper"),
            unit("celeba", 1.0, status="failed"),
        ]
    )
    found = estimated_cost(units, "celeba", "nonlinear", "bifair", "quick")
    assert found == "16 min 53 s"  # 500 s for 100,000 rows
    assert estimated_cost(units, "celeba", "linear", "bifair", "quick") == ""
    earlier = units.assign(version=0)
    assert estimated_cost(earlier, "celeba", "nonlinear", "bifair", "quick") == ""


def test_an_experiment_names_its_plan():
    of_plan = {"varies": "batch_size", "method": "fairgrad", "model": "linear"}
    units = pd.DataFrame([unit("celeba", 90.0, **of_plan)])
    assert made_by_plan(units, "batch_size") == (
        "Made by `fairgrad-bench run --plan batch-size` in 1 min 30 s of processor time; "
        "methods of version 1; python 3."
    )


def test_units_of_earlier_versions_are_named():
    units = pd.DataFrame(
        [
            unit("german", 1.0, method="reduction", version=1),
            unit("crime", 1.0, method="reduction", version=2),
            unit("crime", 1.0, method="module:OWN", version=1),
        ]
    )
    found = outdated(units)
    assert found[["dataset", "version", "now"]].to_numpy().tolist() == [["german", 1, 2]]
    assert outdated(units[1:]).empty
