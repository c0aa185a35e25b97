"""Constants of the cost model: what a fair step costs, as a function of rows and cells.

    python benchmarks/cost_model.py [--repeats 60] [--out results/cost_model.csv]

The extra time of a step is fitted as ``t = a + b B + c K``: a fixed part (calls and small tensors),
one per row of the batch (B) and one per cell (K). It is that of the compiled step where there is
one; `compiled` shows it.
Plain and fair losses are timed in turns on the same logits in one thread: processor time, the least
of several. Memory is that of the state and constants of the loss; the all-reduce is timed
between two processes on this machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

from fairgrad.files import write_whole
from fairgrad.torch import CrossEntropyLoss, is_compiled

if TYPE_CHECKING:
    from collections.abc import Callable

BATCHES = (64, 256, 1024, 4096, 16384, 65536)
CELLS = (4, 16, 64, 256, 1024, 4096, 20_000)
WORKER = """
import sys, time, torch
from torch import distributed
distributed.init_process_group("gloo")
torch.set_num_threads(1)
counts = torch.zeros(int(sys.argv[1]), dtype=torch.float64)
times = []
for _ in range(300):
    started = time.perf_counter()
    distributed.all_reduce(counts)
    times.append(time.perf_counter() - started)
if distributed.get_rank() == 0:
    print(min(times))
distributed.destroy_process_group()
"""


def problem(rows: int, n_cells: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits, labels and groups of a batch in which all cells occur equally often."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 2
    s = (torch.arange(rows) // 2) % (n_cells // 2)
    return torch.randn(rows, 2, generator=generator), y, s


def extra_seconds(rows: int, n_cells: int, repeats: int) -> tuple[float, CrossEntropyLoss]:
    """Time by which a fair loss with its backward pass is longer than a plain one."""
    logits, y, s = problem(rows, n_cells)
    _, all_y, all_s = problem(4 * n_cells, n_cells)
    fair, plain = CrossEntropyLoss(all_y, all_s, "equalized_odds"), torch.nn.CrossEntropyLoss()
    steps = max(3, int(1e5 / (rows + 200 + 5 * n_cells)))
    times: dict[str, list[float]] = {"plain": [], "fair": []}
    for _ in range(repeats + 1):
        for name, loss in {"plain": lambda x: plain(x, y), "fair": lambda x: fair(x, y, s)}.items():
            taken = _seconds(lambda x, loss=loss: loss(x).backward(), logits, steps)
            times[name].append(taken / steps)
    # The smallest of several times is that of an idle machine.
    return min(times["fair"]) - min(times["plain"]), fair


def _seconds(step: Callable[[torch.Tensor], None], logits: torch.Tensor, steps: int) -> float:
    started = time.process_time()  # of this process alone, whatever else the machine does
    for _ in range(steps):
        step(logits.clone().requires_grad_())
    return time.process_time() - started


def state_bytes(loss: CrossEntropyLoss) -> tuple[int, int]:
    """Bytes of everything the loss holds, and of what a checkpoint of it holds."""
    held = sum(t.numel() * t.element_size() for t in loss.buffers())
    return held, sum(t.numel() * t.element_size() for t in loss.state_dict().values())


def all_reduce_seconds(numbers: int) -> float:
    """The least time to sum so many numbers over two processes of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        worker = Path(folder) / "worker.py"
        worker.write_text(WORKER, encoding="utf-8")
        command = ["torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        done = subprocess.run(
            [sys.executable, "-m", *command, str(worker), str(numbers)],
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout.split()[-1])


def measured(repeats: int) -> pd.DataFrame:
    """One row per batch size and number of cells."""
    cases = [(rows, 4) for rows in BATCHES]
    cases += [(4096, n_cells) for n_cells in CELLS if (4096, n_cells) not in cases]
    rows = []
    for batch, n_cells in cases:
        seconds, loss = extra_seconds(batch, n_cells, repeats)
        held, saved = state_bytes(loss)
        rows.append(
            {
                "batch": batch,
                "cells": n_cells,
                "compiled": is_compiled,
                "extra_microseconds": seconds * 1e6,
                "bytes_held": held,
                "bytes_in_checkpoint": saved,
                "numbers_all_reduced": 2 * n_cells,
            }
        )
    return pd.DataFrame(rows)


def constants(frame: pd.DataFrame) -> pd.DataFrame:
    """The fit ``t = a + b B + c K``, weighted so that small and large cases count alike."""
    t = frame["extra_microseconds"].to_numpy()
    design = np.stack([np.ones(len(frame)), frame["batch"], frame["cells"]], axis=1)
    fit, *_ = np.linalg.lstsq(design / t[:, None], np.ones(len(t)), rcond=None)
    error = np.abs(design @ fit / t - 1)
    return pd.DataFrame(
        {
            "constant": ["a, per step", "b, per row", "c, per cell", "error of the fit"],
            "value": [fit[0], 1e3 * fit[1], 1e3 * fit[2], 100 * float(np.median(error))],
            "unit": ["microseconds", "nanoseconds", "nanoseconds", "percent (median)"],
        }
    )


def communication() -> pd.DataFrame:
    """What an all-reduce costs between two processes here."""
    records = [(numbers, all_reduce_seconds(numbers)) for numbers in (8, 2048, 1_000_000)]
    return pd.DataFrame(
        [
            {"numbers": numbers, "bytes": 8 * numbers, "microseconds": seconds * 1e6}
            for numbers, seconds in records
        ]
    )


def show(title: str, frame: pd.DataFrame) -> None:
    """Prints a table."""
    table = Table(*frame.columns, title=title)
    for row in frame.itertuples(index=False):
        table.add_row(
            *(f"{value:,.4g}" if isinstance(value, float) else str(value) for value in row)
        )
    Console().print(table)


def main() -> None:
    """Measures, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--out", type=Path, help="CSV file; the two other tables go beside it")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    steps = measured(arguments.repeats)
    tables = {"": steps, "_constants": constants(steps), "_all_reduce": communication()}
    for name, frame in tables.items():
        show(f"cost model{name.replace('_', ' ')}", frame)
        if arguments.out is not None:
            path = arguments.out.with_stem(arguments.out.stem + name)
            write_whole(path, frame.round(4).to_csv(index=False))


if __name__ == "__main__":
    main()
