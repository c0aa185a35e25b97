"""A short run of the harness that kills, stops and starves the program."""

import io
import os

import numpy as np
import pytest
from reliability import faults, forged

from fairgrad.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.mark.parametrize("kind", [kind for kind, _ in faults.KINDS], ids=lambda kind: kind.__name__)
def test_nothing_is_lost_or_half_written(kind, tmp_path):
    few = 1 if kind is faults.killed else 2  # ten commands are killed, and then run once more
    for name, found in kind(tmp_path, few).items():
        assert found.faults == [], name
        assert found.trials >= 2


def test_a_forged_model_is_used_or_refused_in_one_sentence(tmp_path):
    (found,) = forged.forged(tmp_path, 60).values()
    assert found.faults == []
    assert 0 < found.written < found.trials == 60


def test_weights_that_are_not_numbers(tmp_path, capsys):
    table = str(faults.people(tmp_path, 300))
    with pytest.raises(SystemExit):
        main(["fit", table, *faults.NAMED, "--out", str(tmp_path / "model")])

    def change(entries):
        for name in [name for name in entries if name.endswith(".npy")]:
            array = np.load(io.BytesIO(entries[name]))
            if array.dtype == np.float32:
                np.save(stream := io.BytesIO(), np.full_like(array, np.nan))
                entries[name] = stream.getvalue()
        return ""

    forged.rewrite(tmp_path / "model" / "model.skops", change)
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        main(["predict", str(tmp_path / "model"), table, "--out", str(tmp_path / "out.csv")])
    assert "weights are not numbers" in capsys.readouterr().err


def test_half_a_model_would_be_found(tmp_path):
    found = faults.Trials()
    (tmp_path / "model").mkdir()
    found.check("half", lambda: faults.whole_model(tmp_path / "model"))
    assert found.faults
