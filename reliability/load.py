"""How time and memory grow with rows, groups, columns and labels.

    python -m reliability load [--out results] [--largest]

Fit, predict, audit and report of random tables, along four axes, each point in a process of its
own with a time limit. Counted are seconds of the processor, one thread, and the peak of the
resident memory above what there was before the step (the table is no part of it). The exponent is
the slope, on logarithmic scales, from the point before: 1 is as the data grows, 2 as its square.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BASE = {"rows": 100_000, "columns": 20, "groups": 2, "labels": 2}
AXES: dict[str, tuple[dict[str, int], tuple[int, ...], tuple[int, ...]]] = {
    "rows": (BASE, (10_000, 100_000, 1_000_000), (10_000_000,)),
    "groups": (BASE, (2, 10, 100, 1_000), (10_000,)),
    "columns": ({**BASE, "rows": 20_000}, (10, 100, 500), (2_000,)),
    "labels": (BASE, (2, 10, 100), (1_000,)),
}
"""What the rest of a table is along an axis, its points, and those that take minutes."""

LIMIT = 120
"""Seconds of the processor for one point; what takes longer has no figures."""

STEPS = ("fit", "predict", "audit", "report")


def points(*, largest: bool) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Each axis, the place on it, and the table."""
    for axis, (base, usual, large) in AXES.items():
        for size in usual + (large if largest else ()):
            yield axis, size, {**base, axis: size}


def measure(table: dict[str, int]) -> dict[str, tuple[float, float]]:
    """Seconds and megabytes of each step on a random table, in this process."""
    from fairgrad.audit import Audit  # noqa: PLC0415 - this is the other process
    from fairgrad.report import Report  # noqa: PLC0415 - as above
    from fairgrad.sklearn import FairGradClassifier  # noqa: PLC0415 - as above

    rng = np.random.default_rng(0)
    n = table["rows"]
    X = rng.normal(size=(n, table["columns"])).astype(np.float32)
    s = rng.integers(table["groups"], size=n)
    # Labels are what the first two features say, and a little of the group, with noise.
    angle = np.arctan2(X[:, 0] + 0.3 * (s % 2) + rng.normal(scale=0.3, size=n), X[:, 1])
    y = np.floor((angle + math.pi) / (2 * math.pi) * table["labels"]).astype(np.int64)
    y %= table["labels"]
    kept: dict[str, Any] = {}
    model = FairGradClassifier("equalized_odds", random_state=0, compare_plain=False)
    steps: dict[str, Callable[[], Any]] = {
        "fit": lambda: model.fit(X, y, sensitive_features=s),
        "predict": lambda: model.predict(X),
        "audit": lambda: Audit(y, kept["predict"], s),
        "report": lambda: Report(kept["audit"]).html(),
    }
    found = {}
    for name in STEPS:
        before, began = _forget_peak(), time.process_time()
        kept[name] = steps[name]()
        found[name] = (time.process_time() - began, (_memory("VmHWM") - before) / 1e6)
    return found


def _memory(field: str) -> int:
    """Bytes of this process, as Linux counts them."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if field in line))


def _forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory("VmRSS")


def load(*, largest: bool, records: Path | None = None) -> pd.DataFrame:
    """Every point of every axis.

    Args:
        largest: also those that take minutes.
        records: a file in which finished points are kept, and found again.
    """
    known: dict[str, Any] = {}
    if records is not None and records.exists():
        known = json.loads(records.read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = []
    before: dict[tuple[str, str], tuple[int, float, float]] = {}
    for axis, size, table in points(largest=largest):
        key = json.dumps(table)
        if key not in known:
            known[key] = _elsewhere(table)
            if records is not None:
                records.write_text(json.dumps(known, indent=1), encoding="utf-8")
        for step in STEPS:
            seconds, megabytes = known[key].get(step, (math.inf, math.nan))
            last = before.get((axis, step))
            rows.append(
                {
                    "axis": axis,
                    "size": size,
                    "step": step,
                    "seconds": round(seconds, 3),
                    "peak_mb": round(megabytes, 1),
                    "exponent": _slope(last, size, seconds, 1),
                    "exponent_mb": _slope(last, size, megabytes, 2),
                }
            )
            before[axis, step] = (size, seconds, megabytes)
    return pd.DataFrame(rows)


def _slope(
    last: tuple[int, float, float] | None, size: int, value: float, place: int
) -> float | None:
    """The exponent of growth; None where there is too little to tell from noise."""
    least = 0.05 if place == 1 else 5.0
    before = math.nan if last is None else last[place]
    if last is None or not (least < value < math.inf and least < before < math.inf):
        return None
    return round(math.log(value / before) / math.log(size / last[0]), 2)


def _elsewhere(table: dict[str, int]) -> dict[str, Any]:
    """`measure` in a process of its own; what did not end in time is not there."""
    command = [sys.executable, "-m", "reliability.load", json.dumps(table)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(  # noqa: S603 - this file
        command, stdout=subprocess.PIPE, text=True, check=False, env=environment
    )
    if done.returncode == -signal.SIGXCPU:
        return {}
    done.check_returncode()
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    print(json.dumps(measure(json.loads(sys.argv[1]))))  # noqa: T201 - read by `load`
