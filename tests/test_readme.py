"""The README's examples run as they stand there."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def names():
    """What the examples take for granted: a table, its labels, groups and predictions."""
    rng = np.random.default_rng(0)
    n = 6000
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], n), "race": rng.choice(["A", "B"], n)})
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + (frame["sex"] == "M") + rng.normal(size=n) > 0.5).astype(int).to_numpy()
    predicted = np.where(rng.random(n) < 0.8, y, 1 - y)
    return {
        "frame": frame, "sex": frame["sex"], "X": X, "X_new": X[:5], "y": y, "y_true": y,
        "y_pred": predicted,
    }  # fmt: skip


def test_there_are_examples():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    earlier = "import torch\nfrom fairgrad.torch import CrossEntropyLoss\n" if number == 1 else ""
    exec(compile(earlier + BLOCKS[number], f"README example {number}", "exec"), dict(names))  # noqa: S102 - our own text
