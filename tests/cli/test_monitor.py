"""`fairgrad monitor`: batches in a state file, and a verdict that sets the exit code."""

import json

import numpy as np


def write_day(path, seed, women, n=1500):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    hired = np.where(rng.random(n) < np.where(sex == "F", women, 0.6), "yes", "no")
    lines = [f"{a},{b}" for a, b in zip(sex, hired, strict=True)]
    path.write_text("\n".join(["sex,hired", *lines]))
    return path


def test_a_state_file_collects_days(program, tmp_path):
    state, report = tmp_path / "state.json", tmp_path / "page.html"
    call = ("--prediction", "hired", "--sensitive", "sex", "--state", state)
    first = write_day(tmp_path / "monday.csv", 0, 0.2)
    program("monitor", first, *call, "--fail-on", "unfair").check(1)
    before = state.read_bytes()
    again = program("monitor", first, *call).check(2)
    assert "'monday.csv' has been counted before" in again.err
    assert state.read_bytes() == before
    second = write_day(tmp_path / "tuesday.csv", 1, 0.2)
    shown = program("monitor", second, *call, "--batch", "day 2", "--report", report).check(0)
    assert "since monday.csv" in " ".join(shown.out.split())
    assert [one["name"] for one in json.loads(state.read_text())["batches"]] == [
        "monday.csv",
        "day 2",
    ]
    assert 'id="monitor-0"' in report.read_text()


def test_either_a_state_or_dates(program, tmp_path):
    table = write_day(tmp_path / "monday.csv", 0, 0.6)
    ran = program("monitor", table, "--prediction", "hired", "--sensitive", "sex").check(2)
    assert "--state is missing" in ran.err


def test_labels_may_come_late(program, tmp_path):
    state, table = tmp_path / "state.json", tmp_path / "monday.csv"
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.choice(['F', 'M'])},{rng.choice(['no', 'yes'])},{rng.choice(['no', 'yes'])}"
        for _ in range(300)
    ]
    table.write_text("\n".join(["sex,hired,good", *rows]))
    call = ("--prediction", "hired", "--sensitive", "sex", "--state", state)
    program("monitor", table, *call, "--measure", "equalized_odds").check()
    ran = program("monitor", table, *call, "--target", "good").check()
    assert "Equalized odds" in " ".join(ran.out.split())
