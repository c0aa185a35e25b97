"""A short run of the harness that feeds odd inputs to everything that takes data."""

import numpy as np
import pytest
from reliability.fuzz import TARGETS, fuzz
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
