"""`fairgrad monitor`: batches in a state file, and a verdict that sets the exit code."""

import json

import numpy as np
import pandas as pd


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
    assert "with true label" in " ".join(ran.out.split())


def test_a_day_may_lack_groups_labels_and_rows(here, tmp_path):
    """A quiet day is no reason to refuse: the verdict is about all days together."""
    state = tmp_path / "state.json"
    call = ("--prediction", "hired", "--sensitive", "sex", "--state", state)
    days = {
        "women.csv": ["F,no"] * 40,
        "one.csv": ["M,yes"],
        "unknown.csv": [",no"] * 3,
        "two.csv": ["M,yes", "F,no"],
    }
    for name, rows in days.items():
        (tmp_path / name).write_text("\n".join(["sex,hired", *rows]))
        here("monitor", tmp_path / name, *call).check()
    here("monitor", write_day(tmp_path / "full.csv", 0, 0.2), *call, "--fail-on", "unfair").check(1)
    known = json.loads(state.read_text())
    assert known["y_desirable"] is None  # the first day did not tell
    assert [sum(line[-1] for line in day["counts"]) for day in known["batches"]] == [
        40, 1, 3, 2, 1500,
    ]  # fmt: skip


def test_a_quiet_day_of_a_model_and_of_true_values(here, tmp_path):
    state = tmp_path / "state.json"
    call = ("--prediction", "hired", "--target", "good", "--sensitive", "sex", "--state", state)
    rows = {"quiet.csv": ["F,yes,no"] * 35, "day.csv": ["F,yes,no", "M,no,yes", "M,yes,yes"] * 40}
    for name, lines in rows.items():
        (tmp_path / name).write_text("\n".join(["sex,hired,good", *lines]))
        here("monitor", tmp_path / name, *call, "--desirable", "yes").check()
    assert json.loads(state.read_text())["y_desirable"] == "yes"


def test_folders_and_counts_of_a_warehouse_say_the_same_as_rows(here, tmp_path):
    table = pd.read_csv(write_day(tmp_path / "day.csv", 0, 0.3))
    (tmp_path / "parts").mkdir()
    for i, part in enumerate((table[:700], table[700:])):
        part.to_csv(tmp_path / "parts" / f"{i}.csv", index=False)
    counts = table.value_counts().reset_index(name="n_rows")
    counts.to_csv(tmp_path / "counts.csv", index=False)
    found = []
    for name in ("day.csv", "parts", "counts.csv"):
        state = tmp_path / f"{name}.json"
        call = ("--prediction", "hired", "--sensitive", "sex", "--state", state)
        more = ("--counts",) if name == "counts.csv" else ()
        here("monitor", tmp_path / name, *call, *more, "--batch", "monday").check()
        (batch,) = json.loads(state.read_text())["batches"]
        found.append([sorted(batch["counts"]), batch["levels"], batch["verdict"]])
    assert found[0] == found[1] == found[2]
