"""What runs inside FairGBM's own environment: fits, and leaves the test predictions beside.

    python -I fairgbm_worker.py FOLDER

Each ``*.npz`` in the folder holds train_X, train_y, train_s and test_X; the answer is written to
``*.out.npz``. NumPy and FairGBM alone.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from fairgbm import FairGBMClassifier, LGBMClassifier


def run(path: Path, trees: dict[str, Any]) -> None:
    """Fits FairGBM's plain and fair trees in turn."""
    rows = np.load(path)
    X, y, s = (rows[f"train_{name}"] for name in "Xys")
    started = time.process_time()
    LGBMClassifier(**trees).fit(X, y)
    between = time.process_time()
    # Its default measure is equalized odds: both the false positive and the false negative rate.
    model = FairGBMClassifier(**trees).fit(X, y, constraint_group=s)
    ended = time.process_time()
    np.savez(
        path.with_suffix(".out.npz"),
        predicted=model.predict(rows["test_X"]),
        plain_seconds=between - started,
        fair_seconds=ended - between,
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for given in sorted(folder.glob("*.npz")):
        run(given, json.loads((folder / "trees.json").read_text()))
