"""``fairgrad fit`` on folders of Parquet files that grow: memory stays, time follows the rows.

    python benchmarks/fit_scale.py [--rows 5000000 20000000 50000000] [--epochs 1]
        [--folder FOLDER] [--out FILE]

The table has 20 columns: 14 fractions, three whole numbers, a category of eight values, an
attribute and a label. Files of a million rows, in row groups of 125,000, are written into a folder,
each from a seed of its own; what is there already is used again. Then, in a process of its own, the
program reads the table in passes from its start to the model's folder, for a linear model and for
hidden layers. Counted are seconds, those of the processors, and the peak of the resident memory.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FILE_ROWS, GROUP_ROWS = 1_000_000, 125_000
MODELS = {"linear": (), "hidden layers 32, 16": ("--hidden", "32,16")}
MAKE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as parquet
seed, path, n, group = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(seed)
sex = rng.integers(0, 2, n)
columns = {
    f"x{j}": (rng.normal(size=n) + 0.3 * sex * (j % 3 == 0)).astype(np.float32) for j in range(14)
}
score = sum(columns[f"x{j}"] for j in range(6)) + 0.4 * sex + rng.logistic(size=n)
columns |= {f"n{j}": rng.integers(0, 100, n).astype(np.int16) for j in range(3)}
def named(codes, names):
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names))
columns["region"] = named(rng.integers(0, 8, n), list("ABCDEFGH"))
columns["sex"] = named(sex, ["F", "M"])
columns["hired"] = named(score > 0.5, ["no", "yes"])
parquet.write_table(pa.table(columns), path, row_group_size=group)
"""


def write_rows(folder: Path, rows: int) -> None:
    """Writes files until there are so many rows; a process each, so that this one stays small."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(rows // FILE_ROWS):
        path = folder / f"part-{seed:04}.parquet"
        if not path.exists():
            beside = path.with_suffix(".tmp")
            sizes = (str(FILE_ROWS), str(GROUP_ROWS))
            subprocess.run([sys.executable, "-c", MAKE, str(seed), str(beside), *sizes], check=True)
            beside.rename(path)


def watched(command: list[str]) -> dict[str, float]:
    """Seconds, seconds of the processors and megabytes of a process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = code
    if code:
        raise SystemExit(f"{command} ended with {code}")
    return {
        "seconds": round(time.perf_counter() - started),
        "CPU seconds": round(used.ru_utime + used.ru_stime),
        "MB": round(used.ru_maxrss / 1024),
    }


def main() -> None:
    """Prints and perhaps writes a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000, 50_000_000])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--folder", default=None)
    parser.add_argument("--out", default=None)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        for rows in sorted(given.rows):
            data = Path(given.folder or place) / "fit_scale"
            write_rows(data, rows)
            chosen = Path(place) / f"{rows}"
            chosen.mkdir()
            for file in sorted(data.glob("*.parquet"))[: rows // FILE_ROWS]:
                (chosen / file.name).hardlink_to(file)
            size = sum(file.stat().st_size for file in chosen.iterdir()) / 2**20
            for model in given.models:
                command = [sys.executable, "-m", "fairgrad", "fit", str(chosen), "--stream"]
                command += ["--target", "hired", "--sensitive", "sex", "--json", "--force"]
                command += ["--epochs", str(given.epochs), "--out", str(Path(place) / "model")]
                known = {"rows": rows, "columns": 20, "MB of files": round(size), "model": model}
                found.append(known | {"epochs": given.epochs} | watched([*command, *MODELS[model]]))
                print(found[-1], flush=True)
                if given.out:
                    with Path(given.out).open("w", newline="") as file:
                        writer = csv.DictWriter(file, list(found[0]))
                        writer.writeheader()
                        writer.writerows(found)


if __name__ == "__main__":
    main()
