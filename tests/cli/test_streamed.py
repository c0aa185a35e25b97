"""``fairgrad fit`` in passes: real folders, real processes, real kills."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from fairgrad import fairness_levels, persistence
from fairgrad.datasets import load
from fairgrad.splitting import hashed_parts, row_key

ASK = ("--target", "income", "--sensitive", "sex")
PASSES = (*ASK, "--stream", "--epochs", "20")
BOUNDED = 90
"""Seconds, on a machine however busy, after which processes must have noticed that one is gone."""


@pytest.fixture(scope="module")
def people():
    data = load("adult")
    frame = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    return frame.astype({"sex": object, "income": object})


def in_files(frame, folder, n_files=4, rows=500):
    folder.mkdir(parents=True)
    for place, part in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        path = folder / f"part-{place}.parquet"
        frame.iloc[part].to_parquet(path, row_group_size=rows, index=False)
    return folder


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    """Some of the people of Adult, in four files of three row groups."""
    return in_files(people.iloc[:6_000], tmp_path_factory.mktemp("adult") / "people")


@pytest.fixture(scope="module")
def model(program, folder, tmp_path_factory):
    """A model that was trained in passes, and nothing came between."""
    out = tmp_path_factory.mktemp("models") / "streamed"
    program("fit", folder, *PASSES, "--json", "-o", out).check()
    return out


def test_all_of_a_model_folder_is_there(model):
    names = {file.name for file in model.iterdir()}
    assert names == {"MODEL_CARD.md", "audit.json", "fairgrad.json", "model.skops", "report.html"}
    assert not model.with_name("streamed.checkpoint").exists()
    assert "never held in memory" in " ".join((model / "MODEL_CARD.md").read_text().split())


def predicted_rows(program, model, folder, out, part):
    """The rows of one part, found again by an independent hand, with what is predicted of them."""
    program("predict", model, folder, "-o", f"{out}/").check()
    rows = []
    for file in sorted(out.glob("*.parquet")):
        own = pd.read_parquet(file)
        rows.append(own[hashed_parts(row_key(file.name, 0), 0, len(own)) == part])
    return pd.concat(rows)


def test_the_audit_is_that_of_the_test_rows(program, folder, model, tmp_path):
    test = predicted_rows(program, model, folder, tmp_path / "predicted", part=2)
    known = json.loads((model / "audit.json").read_text())
    assert known["rows"] == len(test)
    assert 0.17 < len(test) / 6_000 < 0.23
    assert known["accuracy"] == pytest.approx((test["prediction"] == test["income"]).mean())
    again = program("audit", model, folder, "--held-out", "--json").check().json["audit"]
    assert again["rows"] == known["rows"]
    assert again["rates"] == known["rates"]
    assert again["levels"] == known["levels"]


def test_rows_that_are_counted_have_no_scores(here, folder, model):
    here("audit", model, folder, "--held-out", "--over", "age").refused("--over", "rows held out")


def test_a_table_that_fits_gives_what_the_fit_in_memory_gives(program, people, tmp_path):
    """Their test rows are others, so that they differ as seeds do: about .006 in accuracy."""
    table = in_files(people, tmp_path / "people", rows=5_000)
    streamed, held = (
        program("fit", table, *ASK, *more, "--json", "-o", tmp_path / f"model{len(more)}")
        .check()
        .json
        for more in (("--stream",), ())
    )
    assert streamed["rows"]["test"] != held["rows"]["test"]  # drawn by hashes, not by cells
    for name in ("accuracy", "plain_accuracy"):
        assert abs(streamed[name] - held[name]) < 0.02
    for found in (streamed, held):
        asked = [one for one in found["audit"]["verdicts"] if one["asked"]]
        assert asked[0]["unfairness"] < 0.03
    plain = [one for one in streamed["audit"]["baseline_verdicts"] if one["asked"]]
    assert plain[0]["unfairness"] > 0.03


def test_what_nobody_wants_is_said_first(program, tmp_path):
    """The worst level of the validation rows, found again by an independent hand; small groups."""
    rng = np.random.default_rng(0)
    s = rng.choice(["a", "b"], 4_000).astype(object)
    s[:12] = "c"
    x = (s == "b") + 0.4 * rng.normal(size=4_000)
    y = np.where(x + 0.3 * rng.normal(size=4_000) > 0.5, "yes", "no")
    table = in_files(pd.DataFrame({"x": x, "s": s, "y": y}), tmp_path / "people")
    out = tmp_path / "model"
    asked = ("--target", "y", "--sensitive", "s", "--stream", "--epochs", "1", "-o", out)
    said = program("fit", table, *asked, "--json").check().json["faults"]
    assert "people are in groups of too few rows" in said[0]  # those of the training rows
    assert "--min-group 0 includes them" in said[0]
    held = predicted_rows(program, out, table, tmp_path / "predicted", part=1)
    held = held[held["s"] != "c"]
    levels = fairness_levels(held["y"], held["prediction"], held["s"], "equalized_odds")
    worst = np.abs(levels.values).max()
    assert worst > 0.01
    assert said[1].startswith("--epsilon 0 is not kept: on the validation rows the worst level")
    shown = float(said[1].split("(max |F| ")[1].split(")")[0])
    assert shown == pytest.approx(worst, abs=6e-5)
    card = " ".join((out / "MODEL_CARD.md").read_text().split())
    assert card.index("is not kept") < card.index("## ")
    shown = program("fit", table, *asked, "--force").check().out
    assert "not kept" in " ".join(shown.split())[:900]


def started(folder, out, *more, processes=1, resume=False):
    """The program, on its way in one process or in several."""
    run = [sys.executable, "-m", "fairgrad"]
    if processes > 1:
        run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        run += ["--nproc-per-node", str(processes), "-m", "fairgrad"]
    command = [*run, "fit", folder, *PASSES, *more, "--json", "-o", out]
    command += ["--resume"] if resume else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def wait_for(path, process):
    for _ in range(12_000):
        if path.is_file():
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    pytest.fail(f"{path} has not come")


def the_models_of(folder):
    """What is in a model's folder but for dates and commands."""
    known = json.loads((folder / "audit.json").read_text())
    return known["rates"], persistence.load(folder / "model.skops")[-1].state_["network.parameters"]


def test_a_killed_training_goes_on_to_the_same_end(folder, model, tmp_path, here):
    out = tmp_path / "model"
    process = started(folder, out)
    wait_for(tmp_path / "model.checkpoint" / "state.safetensors", process)
    process.kill()
    process.communicate()
    assert not out.exists()
    here("fit", folder, *PASSES, "-o", out).refused("unfinished training", "--resume", "--force")
    here("fit", folder, *PASSES, "--seed", 1, "--resume", "-o", out).refused("--resume: settings")
    process = started(folder, out, resume=True)
    text, said = process.communicate()
    assert process.returncode == 0, said
    assert json.loads(text)["files"]
    rates, parameters = the_models_of(out)
    expected_rates, expected = the_models_of(model)
    np.testing.assert_array_equal(parameters, expected)
    assert rates == expected_rates
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_a_training_that_is_stopped_says_how_to_go_on(folder, tmp_path):
    process = started(folder, tmp_path / "model", "--epochs", 1000)
    wait_for(tmp_path / "model.checkpoint" / "state.safetensors", process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing was written" not in said
    assert f"{tmp_path / 'model.checkpoint'}; the same command with --resume goes on" in said


def test_two_processes_train_one_model(folder, model, tmp_path):
    """One is killed: the other says so and stops. Then both go on, to a model as good as one's."""
    out = tmp_path / "model"
    process = started(folder, out, processes=2)
    wait_for(tmp_path / "model.checkpoint" / "state.safetensors", process)
    workers = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
    )
    os.kill(int(workers.stdout.split()[-1]), signal.SIGKILL)
    began = time.monotonic()
    _, said = process.communicate(timeout=BOUNDED)
    assert time.monotonic() - began < BOUNDED
    assert process.returncode != 0
    assert "another process of this training has stopped" in said or "Stopped" in said
    assert not out.exists()
    assert (tmp_path / "model.checkpoint" / "survey.json").is_file()

    process = started(folder, out, processes=2, resume=True)
    text, said = process.communicate()
    assert process.returncode == 0, said
    found, alone = json.loads(text), json.loads((model / "audit.json").read_text())
    assert "2 processes" in " ".join(found["notes"])
    assert found["rows"]["test"] == alone["rows"]
    assert abs(found["accuracy"] - alone["accuracy"]) < 0.02
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_files_of_text_are_read_in_passes_too(program, people, tmp_path):
    """Many CSV files with a decimal comma, missing values, dates, and rows without a label."""
    rng = np.random.default_rng(0)
    frame = people.iloc[:4_000][["age", "education", "hours-per-week", "sex", "income"]].copy()
    frame["wage"] = [f"{w:.2f}".replace(".", ",") for w in rng.gamma(2, 900, len(frame))]
    frame.loc[rng.random(len(frame)) < 0.1, "wage"] = "NA"
    frame["since"] = pd.Series(rng.choice(pd.date_range("2020-01-01", "2022-12-31"), len(frame)))
    frame["since"] = frame["since"].dt.strftime("%d.%m.%Y")
    frame.loc[frame.index[::50], "income"] = ""
    for place, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_csv(tmp_path / f"{place}.csv", index=False, sep=";")
    out = tmp_path / "model"
    ran = program("fit", tmp_path / "*.csv", *PASSES, "--json", "-o", out).check()
    known = json.loads((out / "fairgrad.json").read_text())
    kinds = {one["name"]: one["kind"] for one in known["features"]}
    assert kinds["wage"] == "number"
    assert kinds["since (month)"] == "category"
    assert any("80 rows left out (no income)" in note for note in ran.json["notes"])
    assert sum(ran.json["rows"].values()) == 3_920
    held_out = program("audit", out, tmp_path / "*.csv", "--held-out", "--json").check().json
    assert held_out["audit"]["accuracy"] == pytest.approx(ran.json["accuracy"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--method", "decision"), ("--method decision", "--stream")),
        (("--certify",), ("--certify", "--stream")),
        (("--folds", "3"), ("--folds", "--stream")),
        (("--use-sensitive",), ("--use-sensitive",)),
        (("--drop", "agee"), ("--drop", "'agee'", "did you mean 'age'")),
        (("--resume",), ("--resume", "no unfinished training")),
    ],
)
def test_what_cannot_be_done_in_passes_is_said(here, folder, tmp_path, given, words):
    here("fit", folder, *PASSES, *given, "-o", tmp_path / "model").refused(*words)
    assert not list(tmp_path.iterdir())


def broken(people, folder, kind):
    part = people.iloc[:600].copy()
    folder.mkdir()
    if kind == "one label":
        part["income"] = "no"
    if kind == "no rows":
        part = part.iloc[:0]
    part.to_parquet(folder / "a.parquet", index=False)
    if kind == "another column":
        part.rename(columns={"age": "years"}).to_parquet(folder / "b.parquet", index=False)
    if kind == "another type":
        part.assign(age="old").to_parquet(folder / "b.parquet", index=False)
    if kind == "not Parquet":
        (folder / "b.parquet").write_bytes(b"PAR1 and no more")
    if kind == "lists":
        part.assign(jobs=[[1, 2]] * len(part)).to_parquet(folder / "a.parquet", index=False)
    if kind == "infinite":
        odd = np.where(np.arange(600) == 7, np.inf, np.arange(600.0))
        part.assign(x=odd).to_parquet(folder / "a.parquet", index=False)
    if kind == "empty":
        (folder / "a.parquet").unlink()
    if kind == "no tables":
        (folder / "a.parquet").rename(folder / "a.png")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("one label", ("'income'", "1 class")),
        ("no rows", ("has no rows",)),
        ("another column", ("b.parquet", "lacks the column 'age'")),
        ("another type", ("b.parquet", "'age'", "string", "int")),
        ("not Parquet", ("b.parquet", "cannot be read as a Parquet file")),
        ("lists", ("'jobs'", "--drop")),
        ("infinite", ("'x'", "1 infinite number")),
        ("empty", ("without tables",)),
        ("no tables", ("without tables",)),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_why(here, people, tmp_path, kind, words):
    broken(people, tmp_path / "data", kind)
    here("fit", tmp_path / "data", *PASSES, "-o", tmp_path / "model").refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_without_duckdb_the_way_to_it_is_said(here, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    ran = here("fit", folder, *PASSES, "-o", tmp_path / "model")
    ran.refused("needs duckdb", "pip install 'fairgrad[scale]'")
    assert not list(tmp_path.iterdir())
