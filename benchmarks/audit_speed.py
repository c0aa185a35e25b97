"""Auditing a million predictions against fairlearn's MetricFrame, timed in turns in one run.

Both compare the same groups by demographic parity and equalized odds. MetricFrame gives rates and
their differences; the audit gives these and levels, exact intervals and verdicts besides.

    python benchmarks/audit_speed.py [--rows 1000000] [--groups 50] [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from fairlearn.metrics import (
    MetricFrame,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from rich.console import Console
from rich.table import Table

from fairgrad.audit import Audit

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = {
    "selection rate": selection_rate,
    "true positive rate": true_positive_rate,
    "false positive rate": false_positive_rate,
}
MEASURES = ["demographic_parity", "equalized_odds"]


def make_data(rows: int, groups: int) -> dict[str, Any]:
    """Predictions that are right four times out of five, in groups named by words."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=rows)
    pred = np.where(rng.random(rows) < 0.8, y, 1 - y)
    code = rng.integers(groups, size=rows)
    names = np.array([f"group {i}" for i in range(groups)], dtype=object)
    return {"y": y, "pred": pred, "integers": code, "words": pd.Series(names[code], name="group")}


def metric_frame(y: Any, pred: Any, s: Any) -> None:
    """Rates per group and the two differences."""
    frame = MetricFrame(metrics=METRICS, y_true=y, y_pred=pred, sensitive_features=s)
    frame.difference()


def audit(y: Any, pred: Any, s: Any) -> None:
    """Levels, verdicts with intervals, and the named differences."""
    found = Audit(y, pred, s, measures=MEASURES)
    _ = found.verdict, found.figures, [finding.level_intervals for finding in found.findings]


def audit_in_full(y: Any, pred: Any, s: Any) -> None:
    """All that and every table, the advice on sample sizes included."""
    Audit(y, pred, s, measures=MEASURES).to_dict()


def seconds(run: Callable[..., None], *arguments: Any) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def main() -> None:
    """Prints medians and the ratio to MetricFrame."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("--rows", 1_000_000), ("--groups", 50), ("--repeats", 5)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    data = make_data(options.rows, options.groups)
    table = Table("groups are", "MetricFrame, s", "audit, s", "ratio", "all tables, s", "ratio")
    for kind in ("integers", "words"):
        columns = data["y"], data["pred"], data[kind]
        times: dict[str, list[float]] = {"frame": [], "audit": [], "full": []}
        for _ in range(options.repeats):
            times["frame"].append(seconds(metric_frame, *columns))
            times["audit"].append(seconds(audit, *columns))
            times["full"].append(seconds(audit_in_full, *columns))
        frame, plain, full = (statistics.median(runs) for runs in times.values())
        figures = [frame, plain, plain / frame, full, full / frame]
        table.add_row(kind, *(f"{figure:.3f}" for figure in figures))
    console = Console()
    console.print(
        f"{options.rows:,} predictions, {options.groups} groups, {len(MEASURES)} measures"
    )
    console.print(table)


if __name__ == "__main__":
    main()
