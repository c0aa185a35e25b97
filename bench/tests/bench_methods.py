"""Small methods for tests of the benchmark program, importable in any process."""

import os
import signal
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairgrad_bench.methods import Candidate, Method

STRENGTHS = (0.001, 1.0)


def _models(task):
    found = []
    for seed, split in task.splits.items():
        for settings in task.combinations or _settings(task.model, task.grid):
            model = LogisticRegression(C=settings["strength"], max_iter=500)
            model.fit(split.train.X, split.train.y)
            parts = (split.validation.X, split.test.X)
            found.append(Candidate(seed, settings, 0, *map(model.predict, parts)))
    return found


def _settings(model, grid):
    del model, grid
    return [{"strength": strength} for strength in STRENGTHS]


def _method(name, train, *, uses_measure=False, unsupported=lambda _: None):
    return Method(
        name=name,
        version=1,
        description="For tests.",
        uses_measure=uses_measure,
        needs_s_to_predict=False,
        unsupported=unsupported,
        settings=_settings,
        train=train,
    )


def _tells(task):
    """Leaves a file for every unit it starts; from a certain one on, each waits for a file."""
    folder = Path(os.environ["BENCH_TEST_FOLDER"])
    (folder / f"{task.measure}-{os.getpid()}-{time.monotonic_ns()}.started").touch()
    first_to_wait = int(os.environ.get("BENCH_TEST_WAITS", "1000"))
    if len(list(folder.glob("*.started"))) >= first_to_wait:
        while not (folder / "continue").exists():
            time.sleep(0.01)
    return _models(task)


def _fails(task):
    raise RuntimeError(f"no luck with {task.measure}")


def _dies(task):
    if task.measure == "equalized_odds":
        os.kill(os.getpid(), signal.SIGKILL)
    return _models(task)


def _random(task):
    """Predicts the label 1 with probability 0.25 for everybody."""
    found = []
    for seed, split in task.splits.items():
        sizes = (len(split.validation), len(split.test))
        draws = [np.random.default_rng(seed).random(size) < 0.25 for size in sizes]
        rate = np.full(sizes[1], 0.25)
        found.append(Candidate(seed, {}, 0, *(d.astype(int) for d in draws), rate))
    return found


def _forgets(task):
    """Yields the models of the first seed only."""
    yield from (found for found in _models(task) if found.seed == min(task.splits))


FORGETS = _method("forgets", _forgets)
PLAIN = _method("plain", _models)
TELLS = _method("tells", _tells, uses_measure=True)
FAILS = _method("fails", _fails, uses_measure=True)
DIES = _method("dies", _dies, uses_measure=True)
RANDOM = _method("random", _random)
CANNOT = _method("cannot", _models, unsupported=lambda task: f"it knows no {task.model} models")
