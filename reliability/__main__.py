"""Tries what the project promises when inputs are odd and machines fail; prints a table.

    python -m reliability [fuzz] [faults] [--inputs 20000] [--trials 50] [--out results]

Without names everything is tried. The exit code is 1 if anything ended otherwise than promised.
With --out the table is also written there, as reliability.csv.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairgrad.files import write_whole
from reliability import faults, fuzz

KINDS = ("fuzz", "faults")


def main() -> int:
    """Runs the harness."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=" or ".join(KINDS))
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    kinds = given.kinds or KINDS
    if not set(kinds) <= set(KINDS):
        parser.error(f"kind: expected {' or '.join(KINDS)}, got {' '.join(kinds)}")
    rows, wrong = [], []
    if "fuzz" in kinds:
        for name, tally in fuzz.fuzz_all(given.inputs).items():
            rows.append(("odd inputs", name, tally.inputs, tally.accepted, len(tally.faults)))
            wrong += [f"{name}: {fault}" for fault in tally.faults]
    if "faults" in kinds:
        for tried in (faults.killed, faults.stopped, faults.no_room, faults.at_once):
            with tempfile.TemporaryDirectory() as folder:
                for name, found in tried(Path(folder), given.trials).items():
                    rows.append(("faults", name, found.trials, found.written, len(found.faults)))
                    wrong += found.faults
    frame = pd.DataFrame(rows, columns=["what", "tried on", "trials", "completed", "broken"])
    table = Table(*frame.columns, title="Odd inputs and faults")
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for cell in row))
    console = Console(width=100)
    console.print(table)
    for fault in dict.fromkeys(wrong):
        console.print(fault, markup=False)
    if given.out:
        write_whole(given.out / "reliability.csv", frame.to_csv(index=False))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
