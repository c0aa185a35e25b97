"""The search for the worst subgroup, against counting every conjunction, timed in one thread.

    python benchmarks/subgroup_search.py [--rows 100000] [--columns 20] [--k 3]

Columns have 2 to 12 values; one conjunction of three has an extra gap. Processor time,
as other programs may run beside.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from fairgrad.audit import Audit
from fairgrad.audit.subgroups import search

if TYPE_CHECKING:
    from collections.abc import Callable


def make_data(rows: int, columns: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Predictions that are right four times out of five, less often in one subgroup."""
    rng = np.random.default_rng(0)
    sizes = [2 + place % 11 for place in range(columns)]
    frame = pd.DataFrame({f"c{i}": rng.integers(size, size=rows) for i, size in enumerate(sizes)})
    bad = ((frame["c0"] == 1) & (frame["c3"] == 2) & (frame["c5"] == 0)).to_numpy()
    y = rng.integers(2, size=rows)
    pred = np.where(rng.random(rows) < np.where(bad, 0.55, 0.8), y, 1 - y)
    return frame, y, pred


def count_all(codes: list[np.ndarray], hit: np.ndarray, k: int, least: int) -> float:
    """The largest gap by counting every conjunction of every set of columns."""
    best = 0.0
    for depth in range(1, k + 1):
        for chosen in combinations(range(len(codes)), depth):
            joint = np.zeros(len(hit), dtype=np.int64)
            for place in chosen:
                joint = joint * (codes[place].max() + 1) + codes[place]
            n, h = np.bincount(joint), np.bincount(joint, hit)
            enough = n >= least
            best = max(best, float(np.abs(h[enough] / n[enough] - hit.mean()).max(initial=0.0)))
    return best


def main() -> None:
    """Prints processor seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("--rows", 100_000), ("--columns", 20), ("--k", 3)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    frame, y, pred = make_data(options.rows, options.columns)
    codes, hit = [frame[name].to_numpy() for name in frame], pred == y
    table = Table("what", "seconds", "largest gap, or first found")

    def timed(what: str, run: Callable[[], Any], describe: Callable[[Any], str]) -> None:
        start = time.process_time()
        result = run()
        table.add_row(what, f"{time.process_time() - start:.2f}", describe(result))

    noise = 5 * np.sqrt(hit.mean() * (1 - hit.mean()))
    timed(
        "count every conjunction, 30 rows",
        lambda: count_all(codes, hit, options.k, 30),
        lambda gap: f"{gap:.3f}",
    )
    for least, penalty, name in (
        (30, 0.0, "search, largest gap, 30 rows"),
        (1000, 0.0, "search, largest gap, 1,000 rows"),
        (30, noise, "search, gap less noise, 30 rows"),
    ):
        timed(
            name,
            lambda least=least, penalty=penalty: search(
                codes, hit, k=options.k, least=least, noise=penalty, most=10
            ),
            lambda found: f"{found[0].quality:.3f}",
        )
    audit = Audit(y, pred, frame["c0"])
    timed(
        "Audit.worst_subgroups, 4 measures",
        lambda: audit.worst_subgroups(frame.drop(columns="c0"), k=options.k),
        lambda found: f"{found.subgroups[0].name}, {found.subgroups[0].gap:+.3f}",
    )
    console = Console()
    console.print(f"{options.rows:,} rows, {options.columns} columns, up to {options.k} conditions")
    console.print(table)


if __name__ == "__main__":
    main()
