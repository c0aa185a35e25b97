"""Tries what the project promises when inputs are odd, machines fail and data is large.

    python -m reliability [fuzz] [faults] [load] [supply] [--inputs 20000] [--trials 50]
                          [--only WORD] [--largest] [--jobs 2] [--out results]

Without names odd inputs and faults are tried. The exit code is 1 if anything ended otherwise than
promised. With --out the tables are also written there: reliability.csv, load.csv, supply.csv. With
--only those targets and faults are tried whose name holds a word. If not all are tried, their rows
in reliability.csv are replaced and all others stay.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = ("fuzz", "faults", "load", "supply")
COLUMNS = ["what", "tried on", "trials", "completed", "refused or none", "broken", "seconds"]


def try_inputs(name: str, inputs: int) -> tuple[list[list[Any]], list[str]]:
    """One target of the odd inputs: a row of the table, and what is wrong."""
    from reliability import fuzz  # noqa: PLC0415 - takes seconds, which a list of licences can save

    began, tally = time.process_time(), fuzz.fuzz(name, fuzz.share_of(name, inputs))
    took = round(time.process_time() - began, 1)
    row = ["odd inputs", name, tally.inputs, tally.accepted, tally.refused, len(tally.faults), took]
    return [row], [f"{name}: {fault}" for fault in tally.faults]


def try_faults(place: int, trials: int) -> tuple[list[list[Any]], list[str]]:
    """One kind of faults: rows of the table, and what is wrong."""
    from reliability import faults, machines  # noqa: PLC0415 - as above

    kind, share = (*faults.KINDS, *machines.KINDS)[place]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = kind(Path(folder), max(2, round(share * trials)))
    took = round((time.monotonic() - began) / len(found), 1)
    rows = [
        ["faults", name, own.trials, own.written, own.trials - own.written - len(own.faults),
         len(own.faults), took]
        for name, own in found.items()
    ]  # fmt: skip
    return rows, [fault for own in found.values() for fault in own.faults]


def all_tried(work: Sequence[tuple[Any, ...]], jobs: int) -> tuple[list[list[Any]], list[str]]:
    """Everything, in several processes."""
    rows: list[list[Any]] = []
    wrong: list[str] = []
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(*one) for one in work]):
            found, faulty = done.result()
            rows += found
            wrong += faulty
    return rows, wrong


def _chosen(kinds: Sequence[str], given: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The work that was asked for: what to call, with what."""
    work: list[tuple[Any, ...]] = []
    if "faults" in kinds:
        from reliability import faults, machines  # noqa: PLC0415 - as above

        for place, (kind, _) in enumerate((*faults.KINDS, *machines.KINDS)):
            if given.only in kind.__name__:
                work.append((try_faults, place, given.trials))
    if "fuzz" in kinds:
        from reliability import fuzz  # noqa: PLC0415 - as above

        work += [(try_inputs, name, given.inputs) for name in fuzz.TARGETS if given.only in name]
    return work


def main() -> int:
    """Runs the harness."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="kind", help=" or ".join(KINDS))
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--only", default="", metavar="WORD", help="a part of a name")
    parser.add_argument("--largest", action="store_true", help="loads that take minutes, too")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    kinds = given.kinds or KINDS[:2]
    if not set(kinds) <= set(KINDS):
        parser.error(f"kind: expected {' or '.join(KINDS)}, got {' '.join(kinds)}")
    tables = {}
    rows, wrong = all_tried(_chosen(kinds, given), given.jobs)
    if rows:
        frame = pd.DataFrame(rows, columns=COLUMNS)
        is_part = given.only or not {"fuzz", "faults"} <= set(kinds)
        if is_part and given.out and (given.out / "reliability.csv").is_file():
            frame = pd.concat([frame, pd.read_csv(given.out / "reliability.csv")])
            frame = frame.drop_duplicates(["what", "tried on"])
        tables["reliability"] = frame.sort_values(["what", "tried on"], ignore_index=True)
    if "load" in kinds:
        from reliability.load import load  # noqa: PLC0415 - as above

        tables["load"] = load(largest=given.largest)
    if "supply" in kinds:
        from reliability.supply import supply  # noqa: PLC0415 - as above

        tables["supply"] = supply()
    console = Console(width=110)
    for name, table in tables.items():
        shown = Table(*table.columns, title=name)
        for row in table.astype(object).where(table.notna(), "").itertuples(index=False):
            shown.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
        console.print(shown)
        if given.out:
            write_whole(given.out / f"{name}.csv", table.to_csv(index=False))
    for fault in dict.fromkeys(wrong):
        console.print(fault, markup=False)
    return int(bool(wrong))
