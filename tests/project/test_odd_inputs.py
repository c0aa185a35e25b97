"""A short run of the harness that feeds odd inputs to everything that takes data."""

import pytest
from reliability.fuzz import TARGETS, fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_odd_inputs_are_used_or_refused_by_a_sentence(name):
    tally = fuzz(name, 8 if name == "fairgrad fit, predict" else 60)
    assert tally.faults == []
    assert tally.accepted
    assert tally.refused
