"""A short run of the harness that kills, stops and starves the program."""

import os

import pytest
from reliability import faults

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.mark.parametrize("kind", [kind for kind, _ in faults.KINDS], ids=lambda kind: kind.__name__)
def test_nothing_is_lost_or_half_written(kind, tmp_path):
    for name, found in kind(tmp_path, 2).items():
        assert found.faults == [], name
        assert found.trials >= 2


def test_half_a_model_would_be_found(tmp_path):
    found = faults.Trials()
    (tmp_path / "model").mkdir()
    found.check("half", lambda: faults.whole_model(tmp_path / "model"))
    assert found.faults
