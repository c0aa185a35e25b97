"""The README: short, and its examples and commands run as they stand there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
MOST_LINES, MOST_WORDS = 130, 700


@pytest.fixture(scope="module")
def names():
    """What the examples take for granted: a table, labels, groups, predictions, and a network."""
    rng = np.random.default_rng(0)
    n = 6000
    sex = pd.Series(rng.choice(["F", "M"], n))
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + (sex == "M") + rng.normal(size=n) > 0.5).astype(int).to_numpy()
    predicted = np.where(rng.random(n) < 0.8, y, 1 - y)
    table = {"sex": sex, "X": X, "X_new": X[:5], "y": y, "y_true": y, "y_pred": predicted}
    x, y_train = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    s_train = torch.tensor((sex == "M").to_numpy(dtype=np.int64))
    rows = torch.utils.data.TensorDataset(x, y_train, s_train)
    model = torch.nn.Linear(3, 2)
    return table | {
        "y_train": y_train,
        "s_train": s_train,
        "data_loader": torch.utils.data.DataLoader(rows, batch_size=512),
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters()),
    }


def test_it_is_short():
    assert len(README.splitlines()) <= MOST_LINES
    assert len(README.split()) <= MOST_WORDS


def test_there_are_examples():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"README example {number}", "exec"), dict(names))  # noqa: S102 - our own text


@pytest.fixture
def tables(names, tmp_path):
    """The files that the commands name."""
    yes = {0: "no", 1: "yes"}
    people = pd.DataFrame(names["X"], columns=["age", "hours", "years"])
    people = people.assign(sex=names["sex"], income=pd.Series(names["y"]).map({0: "<", 1: ">"}))
    people[:2000].to_csv(tmp_path / "people.csv", index=False)
    people[2000:].to_csv(tmp_path / "new.csv", index=False)
    repaid, decision = (pd.Series(names[key]).map(yes) for key in ("y_true", "y_pred"))
    decisions = pd.DataFrame({"sex": names["sex"], "repaid": repaid, "decision": decision})
    decisions.to_csv(tmp_path / "decisions.csv", index=False)
    return tmp_path


def test_commands(tables):
    said = README.partition("## A table: one command")[2].partition("\n## ")[0]
    block = re.search(r"```\n(.*?)```", said, re.DOTALL)[1].splitlines()
    commands = [*block, *re.findall(r"`(fairgrad [^`]+ --[^`]+)`", said)]
    assert len(commands) == 4
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "fairgrad", *shlex.split(command)[1:]],
            cwd=tables,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
        allowed = {0, 1} if "--fail-on" in command else {0}
        assert done.returncode in allowed, (command, done.stderr)
    assert {"model", "predictions.csv"} <= {path.name for path in tables.iterdir()}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
