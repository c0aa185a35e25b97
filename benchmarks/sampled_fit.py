"""``fairgrad fit`` on tables of any size: memory stays flat, and quality is that of all rows.

    python benchmarks/sampled_fit.py [--rows 5000000 50000000] [--train-rows 1000000]
        [--folder FOLDER] [--out FILE]

The table has three groups, of 60 %, 39.9 % and 0.1 % of the rows, 12 numbers, two categories and a
label. Files of a million rows are written into a folder, each from another seed; files that
exist are used again. Then the program trains a linear model, in a separate process, on a sample
and, where they fit into memory, on all rows. Measured are seconds, the seconds of the processors,
the peak of the resident memory, and accuracy and unfairness on all rows held out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FILE_ROWS = 1_000_000
MOST_IN_MEMORY = 5_000_000
ASK = ("--target", "hired", "--sensitive", "origin", "--measure", "demographic_parity", "--exact")


def write_file(path: Path, seed: int) -> None:
    """A million people."""
    rng = np.random.default_rng(seed)
    origin = rng.choice(3, FILE_ROWS, p=[0.6, 0.399, 0.001])
    shift = np.array([0.4, 0.0, -0.6])[origin]
    columns: dict[str, Any] = {
        f"x{j}": (rng.normal(size=FILE_ROWS) + shift * (j % 3 == 0)).astype(np.float32)
        for j in range(12)
    }
    score = sum(columns[f"x{j}"] for j in range(6)) + shift + rng.logistic(size=FILE_ROWS)
    names = {"region": list("ABCDEFGH"), "size": ["small", "middle", "large"]}
    for name, values in names.items():
        codes = rng.integers(0, len(values), FILE_ROWS)
        columns[name] = pd.Categorical.from_codes(codes, categories=values)
    columns["origin"] = pd.Categorical.from_codes(origin, categories=["a", "b", "c"])
    columns["hired"] = pd.Categorical.from_codes((score > 1).astype(int), categories=["no", "yes"])
    part = path.with_suffix(".part")
    pd.DataFrame(columns).to_parquet(part, index=False, row_group_size=125_000)
    part.rename(path)


def measure(folder: Path, train_rows: int) -> dict[str, Any]:
    """One run of the program."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "fairgrad", "fit", str(folder), *ASK, "--json"]
        command += ["--train-rows", str(train_rows), "-o", str(Path(place) / "model")]
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None  # noqa: S101 - for type checkers
            text = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
        seconds = time.perf_counter() - started
    if status:
        raise SystemExit("the program failed")
    found = json.loads(text)
    (finding,) = (one for one in found["audit"]["verdicts"] if one["asked"])
    return {
        "trained on": found["rows"]["training_and_validation"],
        "test rows": found["rows"]["test"],
        "seconds": round(seconds, 1),
        "CPU seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak MB": used.ru_maxrss // 1024,
        "accuracy": round(found["accuracy"], 4),
        "baseline accuracy": round(found["plain_accuracy"], 4),
        "mean |F|": round(finding["unfairness"], 4),
        "largest |F|": round(finding["judged"], 4),
    }


def main() -> None:
    """Writes the tables, runs the program, and prints or writes what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 50_000_000])
    parser.add_argument("--train-rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path("build/sampled_fit"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    measured = []
    for n_rows in options.rows:
        folder = options.folder / str(n_rows)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in range(n_rows // FILE_ROWS):
            path = folder / f"{seed:04}.parquet"
            if not path.exists():
                write_file(path, seed)
        wanted = [options.train_rows] + [n_rows] * (n_rows <= MOST_IN_MEMORY)
        for train_rows in wanted:
            measured.append({"rows": n_rows} | measure(folder, train_rows))
            print(measured[-1], flush=True)
    if options.out is not None:
        pd.DataFrame(measured).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
