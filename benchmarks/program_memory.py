"""How much memory the program needs for a large table, in multiples of that table.

Run ``python benchmarks/program_memory.py [kind [rows]]`` (mixed, a million rows; about two
minutes). It writes a CSV file of 20 columns into a temporary folder, and runs ``fairgrad fit``
(linear, 5 epochs) and ``fairgrad audit`` on it, each in a separate process. Counted is the peak
of the resident memory above that after the imports, divided by what pandas says of the loaded
table, ``memory_usage(deep=True)``. Kinds of tables: numbers and texts mixed, numbers alone, texts
in most columns.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from fairgrad.cli import main

LIMIT = 4.0
KINDS = {"mixed": 9, "numbers": 0, "texts": 15}
"""Columns of texts among the 18 features of each kind of table."""


def write_table(path: Path, rows: int, texts: int) -> None:
    """Writes 18 features, a target and a sensitive column."""
    rng = np.random.default_rng(0)
    piece = 100_000
    words = np.array(["Private", "Self-emp-inc", "Federal-gov", "State-gov", "Never-worked"])
    for start in range(0, rows, piece):
        n = min(piece, rows - start)
        numbers = rng.normal(size=(n, 18 - texts)).round(4)
        group = rng.choice(["Female", "Male"], n, p=[0.4, 0.6])
        score = numbers.sum(axis=1) / np.sqrt(18 - texts) + (group == "Male") * 0.8
        columns = {f"number {i}": numbers[:, i] for i in range(numbers.shape[1])}
        for i in range(texts):
            score = score + 0.1 * (chosen := rng.integers(len(words), size=n))
            columns[f"text {i}"] = words[chosen]
        noise = rng.normal(size=n)
        columns |= {"sex": group, "hired": np.where(score + noise > 1 + 0.2 * texts, "yes", "no")}
        frame = pd.DataFrame(columns)
        frame.to_csv(path, index=False, header=start == 0, mode="w" if start == 0 else "a")


def table_size(path: Path) -> int:
    """Bytes of the table as pandas loads it."""
    return int(pd.read_csv(path).memory_usage(deep=True).sum())


def measure(arguments: list[str]) -> None:
    """Runs the program in this process; prints the peak above the imports, and the seconds."""
    for name in ("cli.work.audit", "cli.work.fit", "persistence", "report"):
        importlib.import_module(f"fairgrad.{name}")  # beforehand: imports do not count
    process = psutil.Process()
    start = peak = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(arguments)
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    print(peak - start, seconds)


def run(arguments: list[str]) -> tuple[int, float]:
    """The same in a separate process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--run", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    peak, seconds = found.stdout.split()[-2:]
    return int(peak), float(seconds)


def compare(kind: str, rows: int) -> bool:
    """Prints the figures; says whether every peak is within the limit."""
    print(f"{rows:,} rows x 20 columns; limit {LIMIT:g}x")
    print(f"{'table':10}{'MB':>7}{'command':>10}{'peak MB':>10}{'ratio':>8}{'seconds':>10}")
    fits = True
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "table.csv", str(Path(folder) / "model")
        write_table(table, rows, KINDS[kind])
        size = table_size(table)
        people = ["--target", "hired", "--sensitive", "sex"]
        commands = {
            "fit": ["fit", str(table), *people, "--epochs", "5", "--out", model, "--json"],
            "audit": ["audit", model, str(table), "--json"],
        }
        for name, arguments in commands.items():
            peak, seconds = run(arguments)
            fits &= peak / size <= LIMIT
            figures = f"{peak / 1e6:10.0f}{peak / size:8.2f}{seconds:10.1f}"
            print(f"{kind:10}{size / 1e6:7.0f}{name:>10}{figures}")
    return fits


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["--run"]:
        measure(given[1:])
    elif not compare(given[0] if given else "mixed", int(given[1]) if given[1:] else 1_000_000):
        sys.exit("A peak is beyond the limit.")
