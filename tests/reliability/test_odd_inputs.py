"""A short run of the harness that feeds odd inputs to everything that takes data."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from reliability import library, odd
from reliability.fuzz import TARGETS, again, fuzz
from reliability.harness import COLUMNS
from reliability.library import check_levels

FEW = {"fairgrad fit, predict": 3, "fairgrad audit": 12, "fairgrad predict": 12}
SLOW = {"Audit": 25, "Audit.from_counts": 25}


@pytest.mark.parametrize("name", TARGETS)
def test_odd_inputs_are_used_or_refused_by_a_sentence(name):
    tally = fuzz(name, {**FEW, **SLOW}.get(name, 50))
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

    monkeypatch.setattr(library, "use_audit", wrong)
    tally = fuzz("Audit", 3)
    assert tally.faults
    assert not tally.accepted + tally.refused
    assert "KeyError: 'inside'" in tally.faults[0].trace


def test_a_broken_input_is_kept_and_tried_again(monkeypatch):
    given = []

    def wrong(data):
        n = data.draw(st.integers(0, 9))
        given.append((odd.column(data, n), odd.weights(data, n), odd.features(data, n)))
        return [np.nan]

    monkeypatch.setattr(library, "use_audit", wrong)
    faults = fuzz("Audit", 10).faults
    texts = [fault.to_text("Audit") for fault in faults]
    first = given.copy()
    given.clear()
    for text in texts:
        assert again(text).faults[0].said.startswith("not finite")
    assert repr(given) == repr(first)


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
    assert found.loc["Constraints", ["trials", "broken"]].tolist() == [30, 0]
    assert found.loc["fit, kill -9", "trials"] == 50
