"""Names and labels made to harm: in a terminal, in a spreadsheet, and links where files belong."""

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fairgrad.persistence import load, save
from fairgrad.sklearn import FairGradClassifier

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\u2066"


def people(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "sex": rng.choice(["f", HOSTILE], n)})
    frame["y"] = np.where(frame["x"] + rng.normal(size=n) > 0, "=yes()", "-no")
    frame["h"] = np.where(rng.random(n) < 0.8, frame["y"], "-no")
    return frame


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "people.csv"
    people().to_csv(path, index=False)
    return path


def in_a_terminal(*arguments):
    """What the program writes to a terminal, byte by byte."""
    own, its = pty.openpty()
    command = [sys.executable, "-m", "fairgrad", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    running = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    read = []
    while True:
        try:
            read.append(os.read(own, 65536))
        except OSError:  # the other side is closed
            break
        if not read[-1]:
            break
    os.close(own)
    return running.wait(), b"".join(read).decode()


@pytest.mark.parametrize("wrong", [(), ("--desirable", HOSTILE)])
def test_a_name_cannot_steer_a_terminal(table, wrong):
    named = ("--target", "y", "--prediction", "h", "--sensitive", "sex", "--min-group", 0)
    code, said = in_a_terminal("audit", table, *named, *wrong)
    assert code == (2 if wrong else 0), said
    assert "evil" in said
    rest = COLOURS.sub("", said)
    assert not {"\x1b", "\x07", "\u202e", "\u2066"} & set(rest)


def test_a_label_is_no_formula_and_is_still_read_as_the_label(table, tmp_path):
    model, out = tmp_path / "model", tmp_path / "p.csv"
    named = ("--target", "y", "--sensitive", "sex")

    def run(*arguments):
        command = [sys.executable, "-m", "fairgrad", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        "fit",
        table,
        *named,
        "--drop",
        "h",
        "--epochs",
        2,
        "--folds",
        0,
        "-o",
        model,
    )
    run("predict", model, table, "-o", out)
    written = pd.read_csv(out)
    assert set(written["prediction"]) <= {"'=yes()", "'-no"}
    assert set(written["y"]) == {"=yes()", "-no"}  # the user's own column
    said = run("audit", out, *named, "--prediction", "prediction", "--min-group", 0, "--json")
    assert "'=yes()" not in said.partition('"levels"')[0].partition('"labels"')[2][:80]


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    X, y, s = np.eye(4).repeat(5, 0), [0, 0, 1, 1] * 5, [0, 1] * 10
    model = FairGradClassifier(fairness_rate=0.01, max_iter=1)
    model.fit(X, y, sensitive_features=s)
    secret, place = tmp_path / "secret", tmp_path / "model.skops"
    secret.write_text("not a model")
    place.symlink_to(secret)
    with pytest.raises(ValueError, match="is not a model saved by fairgrad"):
        load(place)
    save(model, place)
    assert not place.is_symlink()
    assert secret.read_text() == "not a model"
    assert (load(place).predict(X) == model.predict(X)).all()
