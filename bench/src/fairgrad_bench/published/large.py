"""Time and memory on a large table: ACSIncome of the United States, by sex and race.

665,800 rows, 10 features, 18 groups. Every task runs in a separate process, on one thread, and
learns from four fifths of the rows: `seconds` is the processor time of the task itself, and
`peak_mb` the most memory that its process held, of which `data_mb` were there before it began.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad import fairness_levels
from fairgrad.files import write_whole
from fairgrad.splitting import hold_out
from fairgrad_bench.published.ours import our_estimator
from fairgrad_bench.published.source import Rows, read_table
from fairgrad_bench.running import one_thread

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURE = "equalized_odds"
NUMBERS = ("AGEP", "SCHL", "WKHP")
CATEGORIES = {"COW": 1, "MAR": 1, "RELP": 1, "OCCP": 1000, "POBP": 50}
"""Columns of codes, each with the width of the ranges that are one category."""


def halves() -> tuple[Rows, Rows]:
    """Rows to learn from and test rows; occupation and birthplace are ranges of their codes."""
    people = read_table("acs_income_us_2018_subset.parquet")
    parts = [people[list(NUMBERS)].to_numpy(np.float32)]
    for name, width in CATEGORIES.items():
        values = people[name].to_numpy() // width
        parts.append((values[:, None] == np.unique(values)).astype(np.float32))
    X = np.concatenate(parts, axis=1)
    y = people["PINCP_gt_50000"].to_numpy().astype(np.int64)
    s = ((people["SEX"] - 1) * 9 + people["RAC1P"] - 1).to_numpy().astype(np.int64)
    rest, test = hold_out(y * 18 + s, 0.2, 0)
    rows = Rows(X, y, s)
    return rows.take(rest), rows.take(test)


def _fair(kind: str, train: Rows, test: Rows) -> Any:
    model = our_estimator(kind, MEASURE, 0)
    return model.fit(train.X, train.y, sensitive_features=train.s).predict(test.X)


def _frontier(train: Rows, test: Rows) -> Any:
    from fairgrad.frontier import Frontier  # noqa: PLC0415 - as above
    from fairgrad.sklearn import FairGradClassifier  # noqa: PLC0415 - as above

    model = Frontier(FairGradClassifier(verbose=False), MEASURE, 16, random_state=0)
    model.fit(train.X, train.y, sensitive_features=train.s)
    return model.estimators_[0].predict(test.X)  # the one of exact fairness


def _plain_trees(train: Rows, test: Rows) -> Any:
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - as above

    return LGBMClassifier(n_jobs=1, verbose=-1).fit(train.X, train.y).predict(test.X)


def _logistic(train: Rows, test: Rows) -> Any:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - as above
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415 - as above
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415 - as above

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(train.X, train.y).predict(test.X)


def _audit(train: Rows, test: Rows) -> Any:
    from fairgrad.audit import Audit  # noqa: PLC0415 - as above

    every = Rows(*(np.concatenate(parts) for parts in zip(train, test, strict=True)))
    guess = (every.X[:, 1] > 20).astype(np.int64)  # a bachelor's degree or more
    people = {"sex": every.s // 9, "race": every.s % 9}
    Audit(every.y, guess, people, measures=[MEASURE], tolerance=0.05).summary()
    return guess[-len(test.y) :]


TASKS: dict[str, Callable[[Rows, Rows], Any]] = {
    "logistic regression": _logistic,
    "FairGradClassifier": partial(_fair, "linear"),
    "Frontier of 16 models": _frontier,
    "LightGBM": _plain_trees,
    "FairGradLGBMClassifier": partial(_fair, "trees"),
    "FairDecisionClassifier (LightGBM)": partial(_fair, "tree decisions"),
    "Audit of all rows, by sex and race": _audit,
}


def run_task(name: str) -> str:
    """Runs a task and returns its figures as JSON."""
    train, test = halves()
    before = _peak_mb()
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always", UserWarning)
        start = time.process_time()
        predicted = np.asarray(TASKS[name](train, test))
        seconds = time.process_time() - start
    levels = fairness_levels(test.y, predicted, test.s, MEASURE)
    result = {
        "task": name,
        "rows": len(train.y) + (len(test.y) if name.startswith("Audit") else 0),
        "seconds": round(seconds, 1),
        "peak_mb": round(_peak_mb()),
        "data_mb": round(before),
        "accuracy": round(float((predicted == test.y).mean()), 4),
        "mean_abs_level": round(float(levels.unfairness), 4),
        "warned": "; ".join(sorted({str(warning.message)[:200] for warning in caught})),
    }
    return json.dumps(result)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_large(out: str | Path) -> Path:
    """Runs all tasks that the table does not have yet, and writes the table after each."""
    path = Path(out) / "published_large.csv"
    rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
    for name in TASKS:
        if any(row["task"] == name for row in rows):
            continue
        command = [sys.executable, "-m", "fairgrad_bench", "large", "--task", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own program
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, pd.DataFrame(rows).to_csv(index=False))
    return path
