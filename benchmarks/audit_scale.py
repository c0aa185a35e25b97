"""The audit of a hundred million rows in Parquet files, against the bare GROUP BY.

    python benchmarks/audit_scale.py [--rows 100000000] [--files 20] [--folder /tmp] [--out FILE]

duckdb writes the table (a label, a prediction, a baseline, two attributes, an age, a weight, a date
and four features that nobody asks for) into a temporary folder, which is removed at the end. Then,
in turns and each in a separate process: duckdb's GROUP BY of the columns that the audit needs,
and ``fairgrad audit`` from its start to its JSON. Counted are seconds, those of the processors (on
which other work on the machine has less effect), and the peak of the resident memory.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MADE = """
SELECT
  CASE WHEN h1 % 100 < 45 THEN 'F' WHEN h1 % 100 < 98 THEN 'M' END AS sex,
  ['asian', 'black', 'hispanic', 'other', 'white'][1 + (h1 // 100 % 5)::INT] AS race,
  (18 + h1 // 1000 % 72)::INT AS age,
  (h2 % 2)::INT AS repaid,
  CASE WHEN h2 // 2 % 100 < 80 THEN h2 % 2 ELSE h2 // 200 % 2 END::INT AS granted,
  (1 + h3 % 7) / 4.0 AS weight,
  DATE '2024-01-01' + (h3 // 100 % 366)::INT AS day,
  (h3 % 1000003) / 1000003.0 AS x1, (h2 % 1000033) / 1000033.0 AS x2,
  (h1 % 1000037) / 1000037.0 AS x3, (h3 % 1000039) / 1000039.0 AS x4
FROM (
  SELECT hash(range) AS h1, hash(range + 1e12::BIGINT) AS h2, hash(range + 2e12::BIGINT) AS h3
  FROM range({start}, {stop})
)
"""
BARE = {
    "two attributes": "SELECT repaid, granted, sex, race, count(*) FROM '{}' GROUP BY ALL",
    "an age cut in three, weights": (
        "SELECT repaid, granted, sex, CASE WHEN age < 25 THEN 0 WHEN age < 60 THEN 1 "
        "ELSE 2 END, count(*), sum(weight), sum(weight * weight) FROM '{}' GROUP BY ALL"
    ),
}
AUDITS = {
    "two attributes": "--sensitive sex --sensitive race",
    "an age cut in three, weights": (
        "--sensitive sex --sensitive age --bins age=25,60 --weight weight"
    ),
}


def write_rows(folder: Path, rows: int, files: int) -> None:
    """Writes the table."""
    for place in range(files):
        start, stop = place * rows // files, (place + 1) * rows // files
        query = f"COPY ({MADE.format(start=start, stop=stop)}) TO '{folder}/{place:03}.parquet'"
        watched([sys.executable, "-c", f"import duckdb; duckdb.execute({query!r})"])


def watched(command: list[str]) -> dict[str, float]:
    """Seconds, seconds of the processors and megabytes of a process.

    A process starts with the peak of the one that starts it, so nothing large is imported here.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = code
    if code:
        raise SystemExit(f"{command} ended with {code}")
    return {
        "seconds": time.perf_counter() - started,
        "CPU seconds": used.ru_utime + used.ru_stime,
        "MB": used.ru_maxrss / 1024,
    }


def main() -> None:
    """Prints and perhaps writes a table of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    records = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_rows(folder, options.rows, options.files)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        print(f"{options.rows:,} rows, {size:,.0f} MB in {options.files} files")
        for question, bare in BARE.items():
            query = bare.format(f"{folder}/*.parquet")
            program = f"import duckdb; duckdb.execute({query!r}).fetchall()"
            audit = ["audit", name, "--target", "repaid", "--prediction", "granted", "--json"]
            commands = {
                "GROUP BY": [sys.executable, "-c", program],
                "audit": [sys.executable, "-m", "fairgrad", *audit, *AUDITS[question].split()],
            }
            runs: dict[str, list[dict[str, float]]] = {name_of: [] for name_of in commands}
            for _ in range(options.repeats):
                for name_of, command in commands.items():
                    runs[name_of].append(watched(command))
            row: dict[str, Any] = {"question": question, "rows": options.rows}
            for unit in ("seconds", "CPU seconds", "MB"):
                both = [
                    statistics.median(run[unit] for run in runs[name_of]) for name_of in commands
                ]
                row |= {
                    f"{name_of}, {unit}": round(n, 1)
                    for name_of, n in zip(commands, both, strict=True)
                }
                row |= {} if unit == "MB" else {f"ratio of {unit}": round(both[1] / both[0], 2)}
            records.append(row)
            print(records[-1], flush=True)
    if options.out:
        with Path(options.out).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)


if __name__ == "__main__":
    main()
