"""The example that trains on Parquet files in two processes: killed, resumed, audited."""

import importlib.util
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import torch

pytest.importorskip("pyarrow")
SCRIPT = Path(__file__).parents[2] / "examples" / "parquet_ddp.py"
TWO_RANKS = Path(__file__).parents[1] / "two_ranks.py"
NAMED = ("--target", "hired", "--desirable", "yes", "--sensitive", "sex", "--batch", "50")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Men are hired far more often, for a reason that the features show."""
    rng, place = np.random.default_rng(0), tmp_path_factory.mktemp("parquet")
    for kind, n_files in {"train": 4, "test": 3}.items():
        (place / kind).mkdir()
        for i in range(n_files):
            sex, job = rng.choice(["f", "m"], 500), rng.choice(["clerk", "cook"], 500)
            x = rng.normal(size=500) + 1.2 * (sex == "m")
            hired = np.where(x + (job == "cook") + rng.normal(size=500) > 1, "yes", "no")
            frame = pd.DataFrame({"x": x, "job": job, "sex": sex, "hired": hired})
            frame.to_parquet(place / kind / f"{i}.parquet", row_group_size=250, index=False)
    return place


def command(folder, out, *options):
    return [str(one) for one in (SCRIPT, folder / "train", folder / "test", out, *NAMED, *options)]


def in_two_processes(folder, out, *options):
    """What torchrun does, without torchrun."""
    modules = "pyarrow.parquet,fairgrad.torch,fairgrad.report,fairgrad.audit"
    ranks = [sys.executable, str(TWO_RANKS), modules, *command(folder, out, *options)]
    subprocess.run(ranks, check=True)


def workers(launcher):
    children = psutil.Process(launcher.pid).children(recursive=True)
    return [child for child in children if str(SCRIPT) in " ".join(child.cmdline())]


@pytest.fixture(scope="module")
def resumed(folder):
    """A run that was killed under torchrun and continued, and the epochs it took."""
    out = folder / "resumed"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    endless = command(folder, out, "--epochs", 10**6, "--save-every", 3)
    with subprocess.Popen([*launcher, *endless], stderr=subprocess.DEVNULL) as running:
        while not (out / "checkpoint.pt").exists():
            assert running.poll() is None, "the run ended before its first checkpoint"
            time.sleep(0.05)
        workers(running)[-1].kill()
        assert running.wait() != 0
    epochs = state(out)["epoch"] + 14
    in_two_processes(folder, out, "--epochs", epochs)
    return out, epochs


def state(out):
    return torch.load(out / "checkpoint.pt", weights_only=True)


def test_a_killed_run_continues_to_the_same_model(folder, resumed):
    out, epochs = resumed
    in_two_processes(folder, folder / "whole", "--epochs", epochs)
    ours, whole = state(out), state(folder / "whole")
    assert (ours["epoch"], ours["step"]) == (whole["epoch"], whole["step"]) == (epochs, 0)
    for part in ("network", "criterion"):
        for name, value in whole[part].items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(ours[part][name], value), name


def test_the_audit_counts_all_test_rows_and_the_model_is_fair(folder, resumed):
    rows = pd.read_parquet(folder / "test")
    counts = pd.read_csv(resumed[0] / "counts.csv")
    assert counts["count"].sum() == len(rows) == 1500
    # The features, standardised here from all training rows at once.
    train = pd.read_parquet(folder / "train")
    x = (rows["x"] - train["x"].mean()) / train["x"].std(ddof=0)
    inputs = np.column_stack([x, rows["job"] == "clerk", rows["job"] == "cook"])
    network = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    network.load_state_dict(state(resumed[0])["network"])
    predicted = network(torch.tensor(inputs).float()).argmax(1).numpy()
    by_sex = pd.Series(predicted).groupby(rows["sex"].to_numpy())
    shares = by_sex.mean()
    labels = (rows["hired"] == "yes").groupby(rows["sex"]).mean()
    assert abs(shares["m"] - shares["f"]) < 0.5 * abs(labels["m"] - labels["f"])
    selected = counts[counts["prediction"] == 1].groupby("sex")["count"].sum()
    assert selected.to_dict() == by_sex.sum().to_dict()
    assert (resumed[0] / "report.html").stat().st_size > 10_000


def test_batches_after_an_interruption_are_those_that_were_left(folder):
    spec = importlib.util.spec_from_file_location("parquet_ddp", SCRIPT)
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example  # dataclasses look their module up
    spec.loader.exec_module(example)
    shard = example.Shard.of_process(folder / "train", 1, 2)
    whole = list(shard.batches(60, 3, 0))
    assert len(whole) == shard.n_batches(60) == 4 * 4
    for first in (0, 1, 4, 5, 15, 16):
        left = list(shard.batches(60, 3, first))
        assert len(left) == 16 - first
        assert all(one.equals(other) for one, other in zip(left, whole[first:], strict=True))
    rows = Counter(value for frame in whole for value in frame["x"])
    assert max(rows.values()) == 1
