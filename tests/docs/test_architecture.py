"""The map of the code is that of the code: its rooms, and every stop of its walks."""

import pkgutil
import re
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import fairgrad
from fairgrad.cli import main
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.torch import CrossEntropyLoss, is_compiled

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LIBRARY = Path(fairgrad.__file__).parent
WALK = re.compile(r"^### (.+?)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
STOP = re.compile(r"^\d+\. (.*?)(?=^\d+\. |\n\n|\Z)", re.MULTILINE | re.DOTALL)
FIRST_COLUMN = re.compile(r"^\| (`.*?) \|", re.MULTILINE)
WALKS = dict(WALK.findall(TEXT.partition("## Five walks")[2]))


def test_every_room_is_on_the_map():
    table = TEXT.partition("| room | what it is for | needs |")[2].partition("\n\n")[0]
    named = {name for row in FIRST_COLUMN.findall(table) for name in re.findall(r"`(\w+)`", row)}
    assert named == {module.name for module in pkgutil.iter_modules(fairgrad.__path__)}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+\.(?:py|c|h))`", TEXT))))
def test_every_file_exists(name):
    assert (LIBRARY / name).is_file()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 2400
    sex = rng.choice(["F", "M"], n)
    x = rng.normal(size=(n, 3)) + np.outer(sex == "M", [1, 0.5, 0])
    return x, np.where(x[:, 0] + rng.normal(size=n) > 0.7, "yes", "no"), sex


@pytest.fixture
def calls(rows, tmp_path, monkeypatch):
    """What each walk follows, by its title."""
    x, y, sex = rows
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(x, columns=list("abc")).assign(sex=sex, hired=y)
    frame.to_csv("people.csv", index=False)
    frame.assign(guess=np.where(x[:, 0] > 0.5, "yes", "no")).to_csv("decided.csv", index=False)
    labels, groups = torch.tensor(y == "yes").long(), torch.tensor(sex == "M").long()
    loss = CrossEntropyLoss(labels, groups, "equalized_odds")
    named = ["--target", "hired", "--sensitive", "sex"]
    return {
        "`fairgrad fit`": lambda: main(["fit", "people.csv", *named, "--out", "model"]),
        "A batch through a loss": lambda: loss(torch.zeros(len(y), 2), labels, groups),
        "`FairGradClassifier.fit`": lambda: FairGradClassifier("equalized_odds").fit(
            x, y, sensitive_features=sex
        ),
        "`FairDecisionClassifier.fit`": lambda: FairDecisionClassifier(
            LogisticRegression(), "equalized_odds"
        ).fit(x, y, sensitive_features=sex),
        "`fairgrad audit`": lambda: main(["audit", "decided.csv", *named, "--prediction", "guess"]),
    }


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_visits_its_stops(title, calls):
    if "loss" in title and not is_compiled:
        pytest.skip("the walk is that of the compiled step")
    visited = set()

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(LIBRARY)):
            file = Path(frame.f_code.co_filename).relative_to(LIBRARY).as_posix()
            visited.update({file, (file, frame.f_code.co_qualname)})

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        with suppress(SystemExit):  # how the program ends; its stops say whether it worked
            calls[title]()
    finally:
        sys.setprofile(before)
    stops = STOP.findall(WALKS[title])
    assert len(stops) >= 3
    for stop in stops:
        for file, function in re.findall(r"`([\w/]+\.py)`(?: `([\w.]+)`)?", stop):
            assert ((file, function) if function else file) in visited, (file, function)
