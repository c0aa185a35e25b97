"""Methods at equal unfairness."""

import numpy as np
import pandas as pd
import pytest

from fairgrad_bench import Unit, UnitRecord
from fairgrad_bench.frontiers import (
    accuracy_at,
    advantage,
    at_equal_unfairness,
    chosen_points,
    compared_frontiers,
    kept_points,
    not_beaten,
    with_earlier,
)
from fairgrad_bench.records import CountedCells, KeptModel


def points(method, *figures, seed=10):
    """Models whose validation figures are those of the test rows."""
    key = {"dataset": "adult", "model": "linear", "measure": "equalized_odds", "method": method}
    names = ("validation_unfairness", "validation_accuracy", "unfairness", "accuracy")
    rows = [key | {"seed": seed} | dict(zip(names, 2 * own, strict=True)) for own in figures]
    return pd.DataFrame(rows)


def test_between_two_models_there_are_lotteries():
    frontier = np.array([[0.3, 0.9], [0.1, 0.7], [0.2, 0.6]])
    found = accuracy_at(frontier, np.array([0.05, 0.1, 0.2, 0.3, 0.9]))
    np.testing.assert_allclose(found, [np.nan, 0.7, 0.8, 0.9, 0.9])


def test_frontiers_are_compared_where_both_have_models():
    ours, other = np.array([[0.0, 0.5], [0.2, 0.9]]), np.array([[0.1, 0.6], [0.2, 0.8]])
    assert advantage(ours, other) == pytest.approx(0.1)
    assert advantage(np.array([[0.3, 0.9]]), other) == pytest.approx(0.1)
    assert advantage(ours, np.array([[0.1, 0.7]])) == pytest.approx(0.0)


def test_the_models_of_a_frontier_are_chosen_by_validation_rows():
    found = points("decision", (0.0, 0.5), (0.1, 0.4), (0.2, 0.8), (0.2, 0.7))
    assert not_beaten(found)["accuracy"].tolist() == [0.5, 0.8]


def test_the_better_way_is_taken_and_judged_over_seeds():
    seeds = [
        points(method, *figures, seed=seed)
        for seed, shift in ((10, 0.0), (20, 0.02))
        for method, figures in {
            "fairgrad": [(0.0, 0.6)],
            "decision": [(0.0, 0.7 + shift)],
            "reduction": [(0.0, 0.65)],
        }.items()
    ]
    (row,) = at_equal_unfairness(pd.concat(seeds)).to_dict(orient="records")
    assert (row["difference"], row["standard_error"]) == (0.06, 0.01)
    assert (row["verdict"], row["by_decisions"], row["seeds"]) == ("ahead", 2, 2)
    (row,) = at_equal_unfairness(pd.concat(seeds), "decision", [["fairgrad"]]).to_dict("records")
    assert (row["verdict"], row["by_decisions"]) == ("behind", 2)


def test_records_and_kept_results_are_put_together():
    unit = Unit("adult", "linear", "decision", "accuracy_parity", seeds=(10,))
    wrong = {"fair": [10.0, 10, 10, 10], "unfair": [0.0, 20, 0, 10]}
    kept = [KeptModel(10, {"epsilon": i}, 0, w, w) for i, w in enumerate(wrong.values())]
    rows = {10: {"validation": [100.0] * 4, "test": [100.0] * 4}}
    record = UnitRecord(
        unit, 1, "finished", cells=CountedCells((0, 1), (0, 1)), rows=rows, kept=kept
    )
    found = kept_points([record])
    assert found["accuracy"].tolist() == [0.9, 0.925]
    assert found["unfairness"].tolist() == [0.0, pytest.approx(0.075)]
    key = {"dataset": "adult", "model": "linear", "measure": "accuracy_parity", "seed": 10}
    figures = {"accuracy": 0.1, "mean_abs_fairness": 0.1}
    figures |= {"validation_accuracy": 0.8, "validation_mean_abs_fairness": 0.0}
    figures |= {"expected_accuracy": 0.8, "expected_mean_abs_fairness": 0.0}
    seeds = pd.DataFrame([{**key, **figures, "method": name} for name in ("reduction", "decision")])
    assert chosen_points(seeds)["accuracy"].tolist() == [0.8, 0.8]
    (row,) = compared_frontiers([record], seeds).to_dict(orient="records")
    assert (row["difference"], row["verdict"]) == (0.1, "ahead")
    assert row["other_models"] == 1  # one was chosen, the rest is not kept
    (row,) = compared_frontiers([record], seeds, "decision").to_dict(orient="records")
    assert (row["difference"], row["verdict"], row["other_models"]) == (0.0, "level", 2)


def test_cells_without_a_record_are_those_of_before():
    def table(*rows):
        return pd.DataFrame(rows, columns=["dataset", "model", "measure", "difference"])

    adult, german = (
        ("adult", "linear", "accuracy_parity"),
        ("german", "linear", "accuracy_parity"),
    )
    unit = Unit("german", "linear", "reduction", "accuracy_parity")
    records = [UnitRecord(unit, 1, "finished"), UnitRecord(Unit(*adult[:2], "decision"), 1, "x")]
    found = with_earlier(
        table((*adult, 0.1), (*german, 0.1)),
        table((*adult, 0.2), (*german, 0.2)),
        records,
        "reduction",
    )
    assert found["difference"].tolist() == [0.2, 0.1]
