"""Verdicts on hand-made rows, and what is set beside the paper's figures."""

import pandas as pd
import pytest

from fairgrad_bench import paper_results, verdict
from fairgrad_bench.comparison import (
    beaten_by,
    compared,
    duel,
    pooled_deviation,
    tally,
    together,
)
from fairgrad_bench.paper import paper_batch_sizes


def row(accuracy, unfairness, deviation=0.001):
    return {
        "accuracy": accuracy,
        "mean_abs_fairness": unfairness,
        "mean_abs_fairness_std": deviation,
    }


PAPER = row(0.83, 0.02)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (row(0.84, 0.01), "better"),
        (row(0.8301, 0.02), "better"),
        (row(0.83, 0.0199), "better"),
        (row(0.95, 0.02), "better"),
        (row(0.83, 0.02), "reproduced"),  # nothing is better, nothing worse
        (row(0.81, 0.02), "reproduced"),  # 0.02 below is still within
        (row(0.8099, 0.02), "worse"),
        (row(0.83, 0.024), "reproduced"),  # two deviations of at least 0.002
        (row(0.83, 0.0241), "worse"),
        (row(0.84, 0.024), "reproduced"),  # a trade-off, but reproduced comes first
        (row(0.82, 0.016), "reproduced"),
        (row(0.84, 0.0241), "trade-off"),
        (row(0.82, 0.0159), "trade-off"),
        (row(0.8099, 0.0199), "trade-off"),
        (row(0.80, 0.03), "worse"),
        (row(0.84, 0.04, 0.02), "reproduced"),  # our own spread widens the range
    ],
)
def test_verdicts(ours, expected):
    assert verdict(ours, PAPER) == expected


def test_deviations_are_pooled():
    assert pooled_deviation(row(0, 0, 0.003), row(0, 0, 0.004)) == pytest.approx(12.5e-6**0.5)
    assert pooled_deviation(row(0, 0, 0.0), row(0, 0, 0.0)) == 0.002


FIGURES = {
    "accuracy": 0.8,
    "mean_abs_fairness": 0.01,
    "max_fairness": 0.02,
    "min_fairness": -0.02,
}


def summary_of(*cases):
    rest = FIGURES | {f"{name}_std": 0.001 for name in FIGURES} | {"needs_s_to_predict": False}
    keys = ("dataset", "model", "method", "measure")
    return pd.DataFrame([dict(zip(keys, case, strict=True)) | rest for case in cases])


def test_the_papers_figures_stand_beside_ours():
    case = ("adult", "linear", "fairgrad", "equalized_odds")
    (found,) = compared(summary_of(case)).to_dict(orient="records")
    assert found["paper_accuracy"] == 0.8284
    assert found["paper_mean_abs_fairness_std"] == 0.0021
    assert found["paper_max_fairness"] == 0.0078
    assert found["verdict"] == "worse"


@pytest.mark.parametrize("method", ["constant", "constrained"])
def test_absolute_maxima_and_minima_are_not_compared(method):
    case = ("adult", "linear", method, "accuracy_parity")
    (found,) = compared(summary_of(case)).to_dict(orient="records")
    assert found["paper_accuracy"] > 0
    for name in ("paper_max_fairness", "paper_max_fairness_std", "paper_min_fairness"):
        assert found[name] is None


def test_rows_that_cannot_be_compared_say_so():
    found = compared(
        summary_of(
            ("folktables", "linear", "fairgrad", "equalized_odds"),
            ("folktables:threshold=25000", "linear", "fairgrad", "equalized_odds"),
            ("gaussian:rows=2000", "linear", "fairgrad", "equalized_odds"),
            ("adult", "linear", "fairgrad", "demographic_parity"),
        )
    )
    first, second, *others = found["verdict"]
    assert first == "not comparable"
    assert second in {"better", "reproduced", "trade-off", "worse"}
    assert others == ["not in the paper"] * 2


def test_the_papers_data_are_all_there():
    results = paper_results()
    assert len(results) == 433
    assert not results.duplicated(["dataset", "model", "method", "measure"]).any()
    assert results.notna().all().all()
    assert (results["method"] == "fairgrad").sum() == 60
    assert paper_batch_sizes()["batch_size"].tolist() == [2**k for k in range(3, 12)]


def test_the_pareto_front_leaves_out_who_needs_the_sensitive_value_and_own_variants():
    keys = ("method", "accuracy", "mean_abs_fairness", "needs_s_to_predict")
    rows = pd.DataFrame(
        [
            ("fairgrad", 0.80, 0.02, False),
            ("same", 0.80, 0.02, False),
            ("fairer", 0.79, 0.01, False),
            ("both", 0.80, 0.01, False),
            ("cheats", 0.90, 0.00, True),
            ("fairgrad_stable", 0.90, 0.00, False),
            ("decision", 0.91, 0.00, False),
        ],
        columns=keys,
    )
    assert beaten_by(rows, "fairgrad") == ["both"]
    assert beaten_by(rows, "both") == []
    assert beaten_by(rows, "fairer") == ["both"]


def test_own_rows_are_on_the_front_together():
    cell = {"dataset": "adult", "model": "linear", "measure": "equalized_odds"}
    keys = ("method", "accuracy", "mean_abs_fairness", "needs_s_to_predict")
    figures = [
        ("fairgrad", 0.80, 0.02, False),
        ("decision_aware", 0.99, 0.00, True),
        ("other", 0.81, 0.01, False),
    ]
    rows = pd.DataFrame([cell | dict(zip(keys, own, strict=True)) for own in figures])
    assert together(rows).startswith("In 0 of 1 cells, ")
    assert together(rows).endswith("Exceptions: Adult linear EOdds.")
    better = cell | dict(zip(keys, ("decision", 0.79, 0.0, False), strict=True))
    assert together(pd.concat([rows, pd.DataFrame([better])])).startswith("In 1 of 1 cells, ")
    assert together(rows[rows["method"] == "other"]) is None
    assert together(rows, trees=True) is None
    of_trees = rows.assign(model="lightgbm")
    assert together(of_trees) is None
    assert together(of_trees, trees=True).startswith("With boosted trees, in 0 of")


def test_the_tally_counts_cells():
    cases = [("adult", "linear", name, "equalized_odds") for name in ("fairgrad", "unconstrained")]
    cases.append(("dutch", "linear", "fairgrad", "demographic_parity"))
    summary = summary_of(*cases)
    summary.loc[1, "accuracy"] = 0.9
    found = tally(compared(summary))
    assert found.verdicts == {"worse": 1, "not in the paper": 1}
    assert found.on_front == ["Dutch linear DP"]
    assert found.beaten == {"Adult linear EOdds": ["Unconstrained"]}
    first, second = found.sentences()
    assert "its 1 results of FairGrad" in first
    assert "1 worse" in first
    assert "In 1 of 2 cells" in second


def test_a_method_that_was_not_measured_has_no_tally():
    case = ("adult", "linear", "constant", "equalized_odds")
    assert tally(compared(summary_of(case))).sentences() == []


def test_a_duel_counts_the_cells_won_and_lost_in_both_figures():
    figures = {"won": (0.9, 0.01), "lost": (0.7, 0.03), "traded": (0.9, 0.03), "same": (0.8, 0.02)}
    rows = [
        {"dataset": name, "model": "linear", "measure": "m", "method": method}
        | dict(zip(("accuracy", "mean_abs_fairness"), found, strict=True))
        for name, own in figures.items()
        for method, found in (("fairgrad_stable", own), ("fairgrad", (0.8, 0.02)))
    ]
    rows.append({**rows[0], "dataset": "alone"})
    sentence = duel(pd.DataFrame(rows))
    assert "in 2 of 4 cells" in sentence
    assert "beaten in 1" in sentence
    assert duel(pd.DataFrame(rows[-1:])) is None
