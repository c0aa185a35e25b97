"""The rules by which benchmarks/equal_unfairness.py compares frontiers."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "equal_unfairness.py"
COLUMNS = ["method", "validation_accuracy", "validation_unfairness", "accuracy", "unfairness"]


@pytest.fixture(scope="module")
def rules():
    """The benchmark as a module."""
    pytest.importorskip("fairlearn")
    pytest.importorskip("lightgbm")
    spec = importlib.util.spec_from_file_location("equal_unfairness", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its data classes look for their types
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_frontiers_are_compared_between_models_only(rules):
    ours = np.array([[0.01, 0.80], [0.05, 0.84]])
    other = np.array([[0.03, 0.81], [0.05, 0.83], [0.09, 0.95]])
    # from .03, the other's fairest, to .05, our least fair: .82 to .84 beside .81 to .83
    assert rules.advantage(ours, other) == pytest.approx(0.01)


def test_models_are_chosen_on_validation_rows_and_plain_stays(rules):
    rows = [
        ("plain", 0.84, 0.05, 0.70, 0.09),  # beaten there, and kept
        ("weights", 0.85, 0.04, 0.60, 0.08),
        ("weights", 0.80, 0.04, 0.99, 0.00),  # beaten there, however good on test rows
    ]
    points = rules.frontier(pd.DataFrame(rows, columns=COLUMNS))
    assert points.tolist() == [[0.08, 0.60], [0.09, 0.70]]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.0009, 0.0009], "level"),
        ([0.004, 0.006], "ahead"),
        ([-0.004, -0.006], "behind"),
        ([-0.012, 0.002], "level"),
    ],
)
def test_level_is_a_thousandth_or_a_standard_error_over_seeds(rules, differences, expected):
    assert rules.verdict(differences)["verdict"] == expected
