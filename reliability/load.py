"""How time and memory grow with rows, groups, columns and labels.

    python -m reliability load [--out results] [--largest]

Fit and predict, audit and report of random tables, along four axes, in processes of their own with
a time limit. Counted are seconds of the processor, one thread, after all is imported, and the peak
of the resident memory above what there was before the step (the table is no part of it). The
exponent is the slope, on logarithmic scales, from the point before: 1 is as the data grows, 2 as
its square. Refused steps, and steps that take longer than the limit, have a reason instead.
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
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BASE = {"rows": 100_000, "columns": 20, "groups": 2, "labels": 2}
AXES: dict[str, tuple[dict[str, int], tuple[int, ...], tuple[int, ...]]] = {
    "rows": (BASE, (10_000, 100_000, 1_000_000), (10_000_000,)),
    "groups": (BASE, (2, 10, 100, 1_000), (10_000,)),
    "columns": ({**BASE, "rows": 20_000}, (10, 100, 500), (2_000,)),
    "labels": (BASE, (2, 10, 100), (1_000,)),
}
"""What the rest of a table is along an axis, its points, and those that take minutes."""

LIMIT = 120
"""Seconds of the processor for the steps of one process; what takes longer has no figures."""

STEPS = (("fit", "predict"), ("audit", "report"))
"""Those of one process; an audit is of predictions that are made up, half of them right."""


def points(*, largest: bool) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Each axis, the place on it, and the table."""
    for axis, (base, usual, large) in AXES.items():
        for size in usual + (large if largest else ()):
            yield axis, size, {**base, axis: size}


def measure(table: dict[str, int], steps: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Name, seconds and megabytes of some steps on a random table, in this process."""
    from fairgrad.audit import Audit  # noqa: PLC0415 - this is the other process
    from fairgrad.report import Report  # noqa: PLC0415 - as above
    from fairgrad.sklearn import FairGradClassifier  # noqa: PLC0415 - as above

    def works(X: Any, y: Any, h: Any, s: Any) -> dict[str, Callable[[], Any]]:
        model = FairGradClassifier("equalized_odds", random_state=0)
        audits: list[Audit] = []

        def audit() -> None:
            audits.append(Audit(y, h, s))
            audits[0].to_json()  # much of an audit is computed when it is asked for

        return {
            "fit": lambda: model.fit(X, y, sensitive_features=s),
            "predict": lambda: model.predict(X),
            "audit": audit,
            "report": lambda: Report(audits[0]).html(),
        }

    rng = np.random.default_rng(0)
    n, labels = table["rows"], table["labels"]
    X = rng.normal(size=(n, table["columns"])).astype(np.float32)
    s = rng.integers(table["groups"], size=n)
    # Labels are what the first two features say, and a little of the group, with noise.
    angle = np.arctan2(X[:, 0] + 0.3 * (s % 2) + rng.normal(scale=0.3, size=n), X[:, 1])
    y = np.floor((angle + math.pi) / (2 * math.pi) * labels).astype(np.int64) % labels
    h = np.where(rng.random(n) < 0.5, y, rng.integers(labels, size=n))
    few = works(X[:200, :2].copy(), y[:200] % 2, h[:200] % 2, s[:200] % 2)
    for name in steps:  # loads what is loaded on first use
        few[name]()
    own = works(X, y, h, s)
    for name in steps:
        before, began = _forget_peak(), time.process_time()
        own[name]()
        yield name, time.process_time() - began, (_memory("VmHWM") - before) / 1e6


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
    for (axis, size, table), steps in product(points(largest=largest), STEPS):
        key = json.dumps([table, steps])
        if key not in known:
            known[key] = _elsewhere(table, steps)
            if records is not None:
                write_whole(records, json.dumps(known, indent=1))
        for step in steps:
            seconds, megabytes = known[key].get(step, (math.nan, math.nan))
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
                    "note": "" if step in known[key] else known[key]["note"],
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
    if last is None or not (value > least and before > least):
        return None
    return round(math.log(value / before) / math.log(size / last[0]), 2)


def _elsewhere(table: dict[str, int], steps: Sequence[str]) -> dict[str, Any]:
    """`measure` in a separate process: seconds and megabytes by step, or the reason for none."""
    command = [sys.executable, "-m", "reliability.load", json.dumps(table), *steps]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(  # noqa: S603 - this file
        command, capture_output=True, text=True, check=False, env=environment
    )
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        name, *figures = json.loads(line)
        found[name] = figures
    if done.returncode == -signal.SIGXCPU:
        found["note"] = f"more than {LIMIT} s"
    elif done.returncode:
        found["note"] = done.stderr.strip().splitlines()[-1]
    return found


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    for figures in measure(json.loads(sys.argv[1]), sys.argv[2:]):
        print(json.dumps(figures), flush=True)  # noqa: T201 - read by `load`
