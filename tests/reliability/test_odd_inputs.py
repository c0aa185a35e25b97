"""A short run of the harness that feeds odd inputs to everything that takes data."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reliability.fuzz import TARGETS, fuzz
from reliability.harness import COLUMNS
from reliability.library import check_levels

FEW = {"fairgrad fit, predict": 8, "fairgrad audit": 30, "fairgrad predict": 30}


@pytest.mark.parametrize("name", TARGETS)
def test_odd_inputs_are_used_or_refused_by_a_sentence(name):
    tally = fuzz(name, FEW.get(name, 60))
    assert tally.faults == []
    assert tally.accepted
    assert tally.refused or name in FEW  # few may all be fine


def test_a_wrong_figure_would_be_found():
    y, h, s = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1])
    check_levels("here", [0.25, -0.25], "accuracy_parity", y, h, s)
    with pytest.raises(AssertionError, match="in truth"):
        check_levels("here", [0.25, -0.2], "accuracy_parity", y, h, s)


def test_a_fault_is_counted(monkeypatch):
    def wrong(_):
        raise KeyError("inside")

    monkeypatch.setitem(TARGETS, "Audit", (wrong, 1.0))
    tally = fuzz("Audit", 3)
    assert tally.faults
    assert not tally.accepted + tally.refused


def test_the_harness_runs_in_processes_and_keeps_the_rows_of_others(tmp_path):
    other = pd.DataFrame([["faults", "fit, kill -9", 50, 50, 0, 0, 9.0]], columns=COLUMNS)
    other.to_csv(tmp_path / "reliability.csv", index=False)
    asked = ["fuzz", "--only", "Constraints", "--inputs", "200", "--jobs", "1", "--out", tmp_path]
    subprocess.run(
        [sys.executable, "-m", "reliability", *map(str, asked)],
        cwd=Path(__file__).parents[2],
        check=True,
    )
    found = pd.read_csv(tmp_path / "reliability.csv").set_index("tried on")
    assert sorted(found.index) == ["Constraints", "fit, kill -9"]
    assert found.loc["Constraints", ["trials", "broken"]].tolist() == [20, 0]
    assert found.loc["fit, kill -9", "trials"] == 50
