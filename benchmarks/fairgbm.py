"""FairGBM on the same splits as `boosting.py`, in a separate environment.

FairGBM 0.9.14, the last of its releases, does not import beside current scikit-learn, so this
script makes a virtual environment in a temporary folder (it needs a network or a package index) and
hands the rows over as files. Needs benchmarks/boosting.py beside it; not part of the tests.

    python benchmarks/fairgbm.py [--data adult compas dutch folktables] [--seeds 5]

FairGBM knows equalized odds, not demographic parity. Times are those of FairGBM in times of its own
plain trees. Rows are added to results/boosting.csv.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from boosting import COMMON, KEYS, RESULTS, SMOOTH, TREES, keep, summary

from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from boosting import Row

    from fairgrad.datasets import Split

NEEDS = ("fairgbm==0.9.14", "scikit-learn==1.7.2")
MEASURE = "equalized_odds"
WORKER = Path(__file__).with_name("fairgbm_worker.py")
KINDS = {"FairGBM": TREES, "FairGBM, smooth trees": SMOOTH}


def make_environment(folder: Path) -> Path:
    """The Python of a new environment with FairGBM in it."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *NEEDS], check=True)
    return python


def fits(python: Path, splits: dict[int, Split], trees: dict[str, object]) -> list[tuple[Row, Row]]:
    """Figures of FairGBM and of its plain trees for each split."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "trees.json").write_text(json.dumps(trees))
        for seed, (train, _, test) in splits.items():
            rows = {f"train_{part}": getattr(train, part) for part in "Xys"}
            np.savez(folder / f"{seed}.npz", **rows, test_X=test.X)
        subprocess.run([python, "-I", "-W", "ignore", WORKER, folder], check=True)
        return [_judged(split, folder / f"{seed}.out.npz") for seed, split in splits.items()]


def _judged(split: Split, path: Path) -> tuple[Row, Row]:
    found = np.load(path)
    y, s, predicted = split.test.y, split.test.s, found["predicted"].astype(int)
    levels = fairness_levels(y, predicted, s, MEASURE)
    fair = float(np.mean(predicted == y)), levels.unfairness, float(found["fair_seconds"])
    return fair, (0.0, 0.0, float(found["plain_seconds"]))  # of the plain ones only the time counts


def main() -> None:
    """Makes the environment and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["adult", "compas", "dutch", "folktables"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    quiet = {name: value for name, value in COMMON.items() if name != "verbose"}
    with tempfile.TemporaryDirectory() as folder:
        python = make_environment(Path(folder) / "environment")
        for data in arguments.data:
            dataset = load(data)
            splits = {seed: dataset.split(seed=seed) for seed in PAPER_SEEDS[: arguments.seeds]}
            print(f"\n{data}, {MEASURE}: test accuracy / mean |F|, {len(splits)} seeds")
            found = []
            for name, trees in KINDS.items():
                both = fits(python, splits, {**trees, **quiet})
                own, plain = zip(*both, strict=True)
                found.append(summary(data, MEASURE, name, list(own), list(plain)))
            keep(found, arguments.out / "boosting.csv", KEYS)


if __name__ == "__main__":
    main()
