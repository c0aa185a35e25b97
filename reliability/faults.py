"""Processes that are killed, stopped, or find no room to write: nothing is lost or half-written.

Every trial starts the real program in a process of its own and disturbs it. Afterwards its output
is either not there at all or whole: it is read back. What was there before is as it was.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad.cli.folder import MARK, OURS, load_model
from fairgrad.persistence import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

STOPPED, FAILED = 130, 2
SAVING = """
import sys
from fairgrad.persistence import save
from fairgrad.sklearn import FairGradClassifier
import numpy as np
rng = np.random.default_rng(0)
X, y, s = rng.normal(size=(300, 200)), rng.integers(2, size=300), rng.integers(2, size=300)
model = FairGradClassifier(max_iter=1, fairness_rate=0.05, compare_plain=False)
model.fit(X, y, sensitive_features=s)
print("ready", flush=True)
while True:
    save(model, sys.argv[1])
"""


@dataclass
class Trials:
    """What became of the processes of one kind."""

    trials: int = 0
    written: int = 0
    faults: list[str] = field(default_factory=list)

    def check(self, what: str, is_whole: Callable[[], bool | None]) -> None:
        """Counts a trial: `is_whole` says whether the output is whole, None if there is none."""
        self.trials += 1
        try:
            found = is_whole()
        except Exception as error:  # noqa: BLE001 - whatever reading it ends in
            self.faults.append(f"{what}: {type(error).__name__}: {error}"[:300])
            return
        self.written += found is True
        if found is False:
            self.faults.append(f"{what}: the output is not whole")


def people(folder: Path, n: int = 2_000) -> Path:
    """A table to train on."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=list("abcd"))
    table["sex"] = rng.choice(["f", "m"], n)
    table["hired"] = np.where(table["a"] + (table["sex"] == "m") + rng.normal(size=n) > 0, "y", "n")
    table.to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def program(*arguments: object) -> list[str]:
    """The command line of the program."""
    return [sys.executable, "-m", "fairgrad.cli", *map(str, arguments)]


def start(command: Sequence[str], most_bytes: int | None = None) -> subprocess.Popen[str]:
    """Starts a process in a session of its own; files beyond `most_bytes` have no room."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        preexec_fn=limit,  # noqa: PLW1509 - nothing else runs here
    )


def whole_model(folder: Path) -> bool | None:
    """Whether a model's folder is there with all its files, and can be used."""
    if not folder.exists():
        return None
    model = load_model(folder, ["a", "b", "c", "d"])
    scores, _ = model.scores(pd.DataFrame(np.zeros((3, 4)), columns=list("abcd")))
    return bool(np.isfinite(scores).all()) and {file.name for file in folder.iterdir()} <= OURS


def whole_frontier(folder: Path) -> bool | None:
    """Whether a frontier's folder is there with all its files."""
    if not folder.exists():
        return None
    found = {file.name for file in folder.iterdir()}
    points = pd.read_csv(folder / "frontier.csv")
    return {MARK, "report.html", "audit.json"} <= found and len(points) > 1


def whole_file(path: Path) -> bool | None:
    """Whether a saved model can be loaded."""
    if not path.exists():
        return None
    return bool(np.isfinite(load(path).predict_proba(np.zeros((2, 200)))).all())


def no_debris(folder: Path, known: set[str]) -> bool:
    """Whether nothing is there that was not before, hidden files of killed processes excepted."""
    return {file.name for file in folder.iterdir() if not file.name.startswith(".")} <= known


def killed(folder: Path, n: int, *, number: int = signal.SIGKILL) -> dict[str, Trials]:
    """`fit`, `frontier` and `save`, each killed at n moments spread over its run."""
    table = people(folder)
    named = ("--target", "hired", "--sensitive", "sex")
    kinds: dict[str, tuple[list[str], Callable[[Path], bool | None]]] = {
        "fit": (program("fit", table, *named, "--force", "--out"), whole_model),
        "frontier": (program("frontier", table, *named, "--force", "--out"), whole_frontier),
        "save": ([sys.executable, "-c", SAVING], whole_file),
    }
    chance = random.Random(0)  # noqa: S311 - moments, not secrets
    results = {}
    for kind, (command, is_whole) in kinds.items():
        out, found = folder / kind, Trials()
        took = _seconds([*command, str(out)]) if kind != "save" else 1.0
        for _ in range(n):
            running = start([*command, str(out)])
            if kind == "save" and running.stdout is not None:
                running.stdout.readline()
            time.sleep(chance.uniform(0, took))
            os.killpg(running.pid, number)
            running.communicate()
            found.check(kind, lambda out=out, is_whole=is_whole: is_whole(out))
        if not no_debris(folder, {table.name, *kinds}):
            found.faults.append(f"{kind}: something was left behind")
        results[f"{kind}, kill -{number}"] = found
    return results


def stopped(folder: Path, n: int) -> dict[str, Trials]:
    """SIGTERM and Ctrl-C at n moments each: exit code 130 and nothing written, or all of it."""
    table, results = people(folder), {}
    chance = random.Random(1)  # noqa: S311 - moments, not secrets
    for number in (signal.SIGINT, signal.SIGTERM):
        found, out = Trials(), folder / f"stopped {number}"
        command = program("fit", table, "--target", "hired", "--sensitive", "sex", "--out", out)
        took = _seconds([*command, "--force"])
        _remove(out)
        for _ in range(n):
            running = start(command)
            # Before Python runs our first line, a signal ends it as any program.
            time.sleep(chance.uniform(0.3 * took, took))
            running.send_signal(number)
            _, said = running.communicate()
            ends = {0: out.exists(), STOPPED: not out.exists() and "Traceback" not in said}
            whole = ends.get(running.returncode, False)
            found.check(f"signal {number}", lambda whole=whole: whole)
            _remove(out)
        if any(entry.name.startswith(".") for entry in folder.iterdir()):
            found.faults.append(f"signal {number}: something was left behind")
        results[f"fit, signal {number}"] = found
    return results


def no_room(folder: Path, n: int) -> dict[str, Trials]:
    """`fit` and `predict` where files cannot grow beyond n sizes: a sentence, and nothing left."""
    table, results = people(folder), {}
    model, predictions = folder / "model", folder / "p.csv"
    named = ("--target", "hired", "--sensitive", "sex")
    subprocess.run(program("fit", table, *named, "--out", model), check=True, capture_output=True)  # noqa: S603 - our own program
    kinds = {
        "fit": (program("fit", table, *named, "--out", folder / "new"), folder / "new"),
        "predict": (program("predict", model, table, "--out", predictions), predictions),
    }
    for kind, (command, out) in kinds.items():
        found = Trials()
        for size in np.geomspace(10, 30_000, n).astype(int).tolist():
            running = start(command, most_bytes=size)
            _, said = running.communicate()
            sentence = said.strip().splitlines()[-1] if said.strip() else ""
            refused = running.returncode == FAILED and sentence.startswith("Error: ")
            whole = (refused and not out.exists()) or (running.returncode == 0 and out.exists())
            found.check(f"{kind} with {size} bytes: {sentence}", lambda whole=whole: whole)
            _remove(out)
        if any(entry.name.startswith(".") for entry in folder.iterdir()):
            found.faults.append(f"{kind}: something was left behind")
        results[f"{kind}, disk full"] = found
    return results


def at_once(folder: Path, n: int) -> dict[str, Trials]:
    """Two processes that write the same folder: it is whole, and of one of them."""
    table, found = people(folder), Trials()
    out = folder / "shared"
    for _ in range(n):
        commands = [
            program("fit", table, "--target", "hired", "--sensitive", "sex", "--force",
                    "--epsilon", epsilon, "--out", out)
            for epsilon in (0, 0.1)
        ]  # fmt: skip
        running = [start(command) for command in commands]
        said = [process.communicate()[1] for process in running]
        codes = {process.returncode for process in running}
        is_clear = codes <= {0, FAILED} and not any("Traceback" in text for text in said)
        found.check("two at once", lambda clear=is_clear: clear and whole_model(out) is True)
    return {"two fits, one folder": found}


def _seconds(command: Sequence[str]) -> float:
    """How long a command takes when nothing disturbs it."""
    begin = time.monotonic()
    running = start(command)
    _, said = running.communicate()
    if running.returncode:
        raise RuntimeError(f"{command}: {said}")
    return time.monotonic() - begin


def _remove(path: Path) -> None:
    if path.is_dir():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
