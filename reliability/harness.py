"""Tries what the project promises when inputs are odd, machines fail and data is large.

    python -m reliability [fuzz] [faults] [load] [supply] [--inputs 20000] [--trials 50]
                          [--only WORD] [--largest] [--jobs 2] [--out results]
                          [--records FILE]
    python -m reliability --again build/reliability/Audit-1.txt

Without names odd inputs and faults are tried. The exit code is 1 if anything ended otherwise than
promised. With --out the tables are also written there: reliability.csv, load.csv, supply.csv. With
--only those targets and faults are tried whose name holds a word. If not all are tried, their rows
in reliability.csv are replaced and all others stay. Rows are written as they are finished.

Every odd input that breaks something is kept in build/reliability, with its traceback; --again
tries one again. Finished loads are kept in the file of --records and not repeated.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KINDS = ("fuzz", "faults", "load", "supply")
BROKEN = Path("build", "reliability")
"""Where inputs that break something are kept."""

COLUMNS = ["what", "tried on", "trials", "completed", "refused or none", "broken", "seconds"]


def try_inputs(name: str, inputs: int) -> tuple[list[list[Any]], list[str]]:
    """One target of the odd inputs: a row of the table, and what is wrong."""
    from reliability import fuzz  # noqa: PLC0415 - takes seconds, which a list of licences can save

    began, tally = time.process_time(), fuzz.fuzz(name, fuzz.share_of(name, inputs))
    took = round(time.process_time() - began, 1)
    row = ["odd inputs", name, tally.inputs, tally.accepted, tally.refused, len(tally.faults), took]
    wrong = []
    for i, fault in enumerate(tally.faults, start=1):
        path = BROKEN / f"{name.replace(', ', '-').replace(' ', '-')}-{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, fault.to_text(name))
        wrong.append(f"{name}: {fault.said} ({path})")
    return [row], wrong


def try_faults(place: int, trials: int) -> tuple[list[list[Any]], list[str]]:
    """One kind of faults: rows of the table, and what is wrong."""
    from reliability import faults, forged, machines  # noqa: PLC0415 - as above

    kind, share = (*faults.KINDS, *forged.KINDS, *machines.KINDS)[place]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = kind(Path(folder), max(2, round(share * trials)))
    took = round((time.monotonic() - began) / len(results), 1)
    rows = [
        ["faults", name, kept.trials, kept.written, kept.trials - kept.written - len(kept.faults),
         len(kept.faults), took]
        for name, kept in results.items()
    ]  # fmt: skip
    return rows, [fault for kept in results.values() for fault in kept.faults]


def all_tried(work: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[Any, Any]]:
    """Rows of the table and what is wrong, of each as it is finished in some process."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(*job) for job in work]):
            try:
                yield done.result()
            except Exception as error:  # noqa: BLE001 - the others continue
                yield [], ["".join(traceback.format_exception(error))]


def with_rows(old: pd.DataFrame, rows: list[list[Any]]) -> pd.DataFrame:
    """The table with some rows instead of those of the same name."""
    new = pd.DataFrame(rows, columns=COLUMNS)
    both = pd.concat([new, old]) if len(old) else new
    both = both.drop_duplicates(["what", "tried on"])
    return both.sort_values(["what", "tried on"], ignore_index=True)


def _chosen(kinds: Sequence[str], options: argparse.Namespace) -> list[tuple[Any, ...]]:
    """The work that was asked for: what to call, with what."""
    work: list[tuple[Any, ...]] = []
    if "faults" in kinds:
        from reliability import faults, forged, machines  # noqa: PLC0415 - as above

        for place, (kind, _) in enumerate((*faults.KINDS, *forged.KINDS, *machines.KINDS)):
            if options.only in kind.__name__:
                work.append((try_faults, place, options.trials))
    if "fuzz" in kinds:
        from reliability import fuzz  # noqa: PLC0415 - as above

        work += [
            (try_inputs, name, options.inputs) for name in fuzz.TARGETS if options.only in name
        ]
    return work


def _tables(
    kinds: Sequence[str], options: argparse.Namespace
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Everything that was asked for, tried; and what is wrong."""
    tables: dict[str, pd.DataFrame] = {}
    wrong: list[str] = []
    kept = options.out and options.out / "reliability.csv"
    is_part = options.only or not {"fuzz", "faults"} <= set(kinds)
    frame = pd.DataFrame()
    for rows, faulty in all_tried(_chosen(kinds, options), options.jobs):
        if is_part and kept and kept.is_file():  # which others may have written in the meantime
            frame = pd.read_csv(kept)
        frame = with_rows(frame, rows)
        wrong += faulty
        if kept:
            write_whole(kept, frame.to_csv(index=False))
        tables["reliability"] = frame
    if "load" in kinds:
        from reliability.load import load  # noqa: PLC0415 - as above

        tables["load"] = load(largest=options.largest, records=options.records)
    if "supply" in kinds:
        from reliability.supply import supply  # noqa: PLC0415 - as above

        tables["supply"] = supply()
    return tables, wrong


def _tried_again(path: Path, console: Console) -> int:
    """One input that broke something, tried again."""
    from reliability import fuzz  # noqa: PLC0415 - as above

    tally = fuzz.again(path.read_text(encoding="utf-8"))
    for fault in tally.faults:
        console.print(fault.trace, fault.said, markup=False)
    if not tally.faults:
        console.print("accepted" if tally.accepted else next(iter(tally.sentences)), markup=False)
    return int(bool(tally.faults))


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
    parser.add_argument("--records", type=Path, metavar="FILE", help="keeps loads that are done")
    parser.add_argument("--again", type=Path, metavar="FILE", help="an input that broke something")
    options = parser.parse_args()
    kinds = options.kinds or KINDS[:2]
    if not set(kinds) <= set(KINDS):
        parser.error(f"kind: expected {' or '.join(KINDS)}, got {' '.join(kinds)}")
    console = Console(width=110)
    if options.again is not None:
        return _tried_again(options.again, console)
    tables, wrong = _tables(kinds, options)
    for name, table in tables.items():
        shown = Table(*table.columns, title=name)
        for row in table.astype(object).where(table.notna(), "").itertuples(index=False):
            shown.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
        console.print(shown)
        if options.out:
            write_whole(options.out / f"{name}.csv", table.to_csv(index=False))
    for fault in dict.fromkeys(wrong):
        console.print(fault, markup=False)
    return int(bool(wrong))
