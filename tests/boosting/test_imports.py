"""Boosting works without importing PyTorch, which would only cost time."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("leaf", ["lightgbm", "xgboost"])
def test_a_leaf_loads_no_torch_and_not_the_other_leaf(leaf):
    other = {"lightgbm": "xgboost", "xgboost": "lightgbm"}[leaf]
    code = (
        f"import sys, fairgrad.{leaf}; print([m for m in ('torch', '{other}') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
