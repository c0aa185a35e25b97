"""Processor seconds of what a new process costs: imports, and the program on small tables.

Every command runs in a separate process, one thread, in turns; medians. The model and the table
are those of `fairgrad demo`. With --out the table is also written there, as cold_start.csv. With
--before, the folder `src` of an earlier version, its commands are measured in the same turns.

    python benchmarks/cold_start.py [--repeats 3] [--before FOLDER] [--out results]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import pandas as pd

from fairgrad.files import write_whole

AUDITED_ROWS = 10_000
PREDICTED_ROWS = 100


def commands(folder: Path) -> dict[str, list[str]]:
    """What is measured; the first of the program's commands writes the model of the others."""
    program = ["-m", "fairgrad"]
    model = str(folder / "demo")
    return {
        "import torch": ["-c", "import torch"],
        "import fairgrad.torch": ["-c", "import fairgrad.torch"],
        "import fairgrad.audit": ["-c", "import fairgrad.audit"],
        "import fairgrad.sklearn": ["-c", "import fairgrad.sklearn"],
        "fairgrad --help": [*program, "--help"],
        "fairgrad demo": [*program, "demo", "--force", "--out", model],
        f"fairgrad predict, {PREDICTED_ROWS} rows": [
            *program, "predict", model, str(folder / "few.csv"),
        ],
        f"fairgrad audit, {AUDITED_ROWS:,} rows": [
            *program, "audit", str(folder / "many.csv"),
            "--target", "income", "--prediction", "prediction", "--sensitive", "sex",
        ],
    }  # fmt: skip


def seconds(arguments: list[str], source: Path | None = None) -> float:
    """Processor seconds of a Python process, with the package in a folder, if it is passed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if source:
        environment["PYTHONPATH"] = str(source.resolve())
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make_tables(folder: Path) -> None:
    """The demo's model, and tables to predict and to audit."""
    own = commands(folder)
    seconds(own["fairgrad demo"])
    people = pd.read_csv(folder / "demo" / "people.csv")
    people.head(PREDICTED_ROWS).to_csv(folder / "few.csv", index=False)
    many = pd.concat([people, people], ignore_index=True).head(AUDITED_ROWS)
    many["prediction"] = many["income"].sample(frac=1, random_state=0).to_numpy()
    many.to_csv(folder / "many.csv", index=False)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=Path, help="the folder src of an earlier version")
    parser.add_argument("--out", type=Path, help="folder to write cold_start.csv into")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_tables(folder)
        sources = [options.before, None] if options.before else [None]
        rows = []
        for name, arguments in commands(folder).items():
            turns = [[seconds(arguments, s) for s in sources] for _ in range(options.repeats)]
            medians = [median(taken) for taken in zip(*turns, strict=True)]
            row: dict[str, object] = {"what": name}
            if options.before:
                row["before"] = round(medians[0], 2)
            row["processor_seconds"] = round(medians[-1], 2)
            if options.before:
                row["times_faster"] = round(median(old / new for old, new in turns), 1)
            rows.append(row)
            print(pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1), flush=True)
            if options.out:
                table = pd.DataFrame(rows).to_csv(index=False)
                write_whole(options.out / "cold_start.csv", table)


if __name__ == "__main__":
    main()
