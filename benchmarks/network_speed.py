"""Processor seconds of an epoch of stacks with hidden layers, against an earlier version.

128-64-32 units with batch norm and dropout, as the paper's networks, 52 features, equalized odds;
5 and 30 members, batches of 64 and 512. Both versions run in processes of their own, one thread, in
turns; minima, because whatever disturbs adds time. With --out the table is also written there, as
network_speed.csv.

    python benchmarks/network_speed.py --before FOLDER [--repeats 3] [--out results]

FOLDER is `src` of the earlier version, with its compiled module beside its source.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from fairgrad.files import write_whole
from fairgrad.training import Member, TrainingPlan, TrainingTable, train

ROWS, FEATURES = 6_000, 52
CASES = ((5, 64), (5, 512), (30, 64), (30, 512))
MEASURED = "--measured"
PAPER = {"clip_norm": 0.05, "fairness_rate": 0.01}


def seconds() -> list[float]:
    """Processor seconds of an epoch in each case: the least of a few."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, ROWS)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    X[:, 0] += s
    y = (X[:, :5].sum(1) + rng.normal(size=ROWS) > 0).astype(int)
    table = TrainingTable.from_data(X, y, s)
    seconds_of = []
    for n_members, batch_size in CASES:
        members = [Member(epsilon=e, **PAPER) for e in np.linspace(0, 0.1, n_members)]
        plan = TrainingPlan(
            hidden=(128, 64, 32),
            dropout=0.2,
            batch_size=batch_size,
            epochs=1,
            fairness_measure="equalized_odds",
        )
        taken = []
        for _ in range(3):
            started = time.process_time()
            train(table, members, plan)
            taken.append(time.process_time() - started)
        seconds_of.append(min(taken))
    return seconds_of


def in_a_process(source: Path | None) -> list[float]:
    """The same in a new process, with the package in a folder, if it is passed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if source:
        environment["PYTHONPATH"] = str(source.resolve())
    command = [sys.executable, __file__, MEASURED]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    seconds_of: list[float] = json.loads(done.stdout)
    return seconds_of


def main() -> None:
    """Prints the table."""
    if MEASURED in sys.argv:
        print(json.dumps(seconds()))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="src of an earlier version")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder to write network_speed.csv into")
    options = parser.parse_args()
    turns = [[in_a_process(s) for s in (options.before, None)] for _ in range(options.repeats)]
    before, now = np.min(turns, axis=0)
    rows = [
        {
            "members": n_members,
            "batch": batch,
            "before": round(old, 3),
            "seconds": round(new, 3),
            "times_faster": round(old / new, 2),
        }
        for (n_members, batch), old, new in zip(CASES, before, now, strict=True)
    ]
    frame = pd.DataFrame(rows)
    print(frame.to_string(index=False))
    if options.out:
        write_whole(options.out / "network_speed.csv", frame.to_csv(index=False))


if __name__ == "__main__":
    main()
