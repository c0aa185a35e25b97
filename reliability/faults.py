"""Processes that are killed, stopped, or find no room to write: nothing is lost or half-written.

Every trial runs the real program in a separate process and disturbs it. Afterwards its output is
whole: it is read back; what was there before is as it was, and nothing else is left behind. The
processes are forked from this one after the imports, so that moments fall into the work.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import resource
import signal
import stat
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.cli import main
from fairgrad.cli.folder import MARK, OURS, load_model
from fairgrad.persistence import load, save
from fairgrad.sklearn import FairGradClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STOPPED, FAILED, NOBODY = 130, 2, 65534
NAMED = ("--target", "hired", "--sensitive", "sex")
USED = (
    "fairgrad.cli.training", "fairgrad.cli.counted", "fairgrad.cli.people",
    "fairgrad.cli.fit", "fairgrad.cli.predict", "fairgrad.report",
    "fairgrad.frontier", "fairgrad.audit", "fairgrad.tables.roles", "duckdb",
    "skops.io", "vl_convert",
)  # fmt: skip
"""What the program imports when it is needed."""


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
            result = is_whole()
        except Exception as error:  # noqa: BLE001 - whatever reading it ends in
            self.faults.append(f"{what}: {type(error).__name__}: {error}"[:300])
            return
        self.written += result is True
        if result is False:
            self.faults.append(f"{what}: the output is not whole")

    def leaves_nothing(self, folder: Path, known: set[str], *, hidden: bool) -> None:
        """Notes what lies in a folder that does not belong there; hidden remains if allowed."""
        left = {file.name for file in folder.iterdir()} - known
        left = {name for name in left if not (hidden and name.startswith("."))}
        if left:
            self.faults.append(f"left behind: {sorted(left)}")


@dataclass
class Forked:
    """A running process, and what it has said on its standard error."""

    pid: int
    errors: Any

    def end(self, number: int = 0, *, everyone: bool = False) -> tuple[int, str]:
        """Sends a signal, if one is given, and waits: exit code (minus a signal's number), text.

        Args:
            number: of the signal.
            everyone: whether the processes that it has started get it, too.
        """
        if number:
            (os.killpg if everyone else os.kill)(self.pid, number)
        with self.errors:
            text = self.errors.read()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), text


def start(
    work: Callable[[], Any], *, most_bytes: int | None = None, user: int | None = None
) -> Forked:
    """Runs something in a separate process; files beyond `most_bytes` have no room."""
    for name in USED:
        importlib.import_module(name)
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Forked(pid, os.fdopen(reading, errors="replace"))
    code: Any = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for own, number in ((nothing, 0), (nothing, 1), (writing, 2)):
            os.dup2(own, number)
        os.close(writing)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        if user is not None:
            os.setuid(user)
        work()
        code = 0
    except SystemExit as left:
        code = left.code or 0
    except BaseException:  # noqa: BLE001 - nothing may get back into the code of the other process
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)


def program(*arguments: object) -> Callable[[], Any]:
    """The program with these arguments, as a shell starts it: its handlers of signals stay."""

    def work() -> None:
        sys.argv[1:] = map(str, arguments)
        main()

    return work


def people(folder: Path, n: int = 2_000) -> Path:
    """A table to train on."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 4)).round(3), columns=list("abcd"))
    table["sex"] = rng.choice(["f", "m"], n)
    table["hired"] = np.where(table["a"] + (table["sex"] == "m") + rng.normal(size=n) > 0, "y", "n")
    table.to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def whole_model(folder: Path) -> bool | None:
    """Whether a model's folder is there with all its files, and can be used."""
    if not folder.exists():
        return None
    model = load_model(folder, ["a", "b", "c", "d"])
    _, scores, _ = model.predict(pd.DataFrame(np.zeros((3, 4)), columns=list("abcd")))
    names = {file.name for file in folder.iterdir()}
    return bool(np.isfinite(scores).all()) and names <= OURS and "report.html" in names


def whole_frontier(folder: Path) -> bool | None:
    """Whether a frontier's folder is there with all its files."""
    if not folder.exists():
        return None
    names = {file.name for file in folder.iterdir()}
    points = pd.read_csv(folder / "frontier.csv")
    return {MARK, "report.html", "audit.json"} <= names and len(points) > 1


def whole_file(path: Path) -> bool | None:
    """Whether a saved model can be loaded."""
    if not path.exists():
        return None
    return bool(np.isfinite(load(path).predict_proba(np.zeros((2, 200)))).all())


def whole_json(path: Path) -> bool | None:
    """Whether a file of JSON is there, and its end."""
    return bool(json.loads(path.read_text("utf-8"))) if path.exists() else None


def whole_table(path: Path) -> bool | None:
    """Whether all rows of a table are predicted."""
    return len(pd.read_csv(path)) == len(pd.read_csv(path.parent / "people.csv"))


def _saving(path: Path) -> Callable[[], Any]:
    """Saves a model for two seconds, over and over."""
    rng = np.random.default_rng(0)
    X, y, s = rng.normal(size=(300, 200)), rng.integers(2, size=300), rng.integers(2, size=300)
    model = FairGradClassifier(max_iter=1, fairness_rate=0.05)
    model.fit(X, y, sensitive_features=s)

    def work() -> None:
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            save(model, path)

    return work


def killed(folder: Path, n: int) -> dict[str, Trials]:
    """Every command that writes, and `save`, over what is there, killed at n moments of its run.

    Training is short, so that many of the moments fall into the writing.
    """
    table = people(folder, 1_000)
    short = (table, *NAMED, "--epochs", 20)

    def writing(kind: str, *arguments: object) -> Callable[[], Any]:
        return program(*arguments, "--force", "--out", folder / kind)

    def watching() -> None:
        """Counts a batch of other rows."""
        rows, batch = folder / ".rows.csv", time.time_ns()
        pd.read_csv(table).sample(500, random_state=batch % 2**32).to_csv(rows, index=False)
        named = ("--prediction", "hired", "--sensitive", "sex", "--batch", batch)
        program("monitor", rows, *named, "--state", folder / "monitor")()

    def certifying() -> None:
        """Judges the model on new rows, and records the look; not certified is an answer, too."""
        rows = folder / ".new.csv"
        rng = np.random.default_rng(time.time_ns())
        values = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
        values.assign(sex=rng.choice(["f", "m"], 300), hired=rng.choice(["y", "n"], 300)).to_csv(
            rows, index=False
        )
        with suppress(SystemExit):
            program("certify", folder / "fit", rows)()

    decided = (table, "--sensitive", "sex", "--prediction", "hired")
    kinds: dict[str, tuple[Callable[[], Any], Callable[[Path], bool | None]]] = {
        "fit": (writing("fit", "fit", *short), whole_model),
        "frontier": (writing("frontier", "frontier", *short), whole_frontier),
        "demo": (writing("demo", "demo"), whole_frontier),
        "predict": (writing("predict.csv", "predict", folder / "fit", table), whole_table),
        "audit": (writing("audit", "audit", *decided), whole_json),
        "impact": (writing("impact", "impact", *decided), whole_json),
        "compare": (writing("compare", "compare", folder / "fit", "hired", table), whole_json),
        "monitor": (watching, whole_json),
        "certify": (certifying, whole_json),
        "save": (_saving(folder / "save"), whole_file),
    }
    chance = random.Random(0)  # noqa: S311 - moments, not secrets
    results = {}
    for kind, (work, is_whole) in kinds.items():
        out = folder / {"predict": "predict.csv", "certify": "fit/looks.json"}.get(kind, kind)
        found, took = Trials(), _seconds(work)
        for _ in range(n):
            running = start(work)
            time.sleep(chance.uniform(0, took))
            running.end(signal.SIGKILL)
            _put_back(out)
            # It existed before, so it exists now: the old version or the new.
            found.check(kind, lambda is_whole=is_whole, out=out: is_whole(out) is True)
        code, said = start(work).end()  # the next run starts clean
        found.check(f"{kind}, the last run: {said[-200:]}", lambda code=code: code == 0)
        found.leaves_nothing(folder, {table.name, "predict.csv", *kinds}, hidden=True)
        results[f"{kind}, kill -9"] = found
    return results


def _put_back(out: Path) -> None:
    """What a user does after a kill between two renames: the old folder lies beside, hidden."""
    old = list(out.parent.glob(f".{out.name}.*/*/{out.name}"))
    if old and not out.exists():
        old[0].rename(out)


def stopped(folder: Path, n: int) -> dict[str, Trials]:
    """SIGTERM and Ctrl-C at n moments each: code 130, and a whole model or none."""
    table, results = people(folder), {}
    chance = random.Random(1)  # noqa: S311 - moments, not secrets
    for name, number in {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}.items():
        found, out = Trials(), folder / "out"
        work = program("fit", table, *NAMED, "--out", out)
        took = _seconds(work)
        remove(out)
        for _ in range(n):
            running = start(work)
            while not _handles(running.pid, signal.SIGTERM):
                time.sleep(0.005)  # before our first line has run, a signal ends any process
            time.sleep(chance.uniform(0, took))
            code, said = running.end(number)
            is_stopped = code == STOPPED and "Stopped" in said and "Traceback" not in said
            whole = whole_model(out) if code == 0 or is_stopped else False
            found.check(f"{name}: {code} {said[-200:]}", lambda whole=whole: whole)
            remove(out)
        found.leaves_nothing(folder, {table.name}, hidden=False)
        results[f"fit, {name}"] = found
    return results


def _handles(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal; the program's are its first act."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    handled = re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
    has_ended = re.search(r"^State:\s*Z", status, re.MULTILINE)
    return bool(has_ended or (handled and int(handled[1], 16) >> (number - 1) & 1))


def no_room(folder: Path, n: int) -> dict[str, Trials]:
    """`fit` and `predict` where files cannot grow beyond n sizes: a sentence, and nothing left."""
    table, results = people(folder), {}
    model = folder / "model"
    _seconds(program("fit", table, *NAMED, "--out", model))
    out = folder / "out.csv"
    kinds = {
        "fit": program("fit", table, *NAMED, "--out", out),
        "predict": program("predict", model, table, "--out", out),
    }
    for kind, work in kinds.items():
        found = Trials()
        for size in np.geomspace(10, 30_000, n).astype(int).tolist():
            code, said = start(work, most_bytes=size).end()
            _judge(found, f"{kind} with {size} bytes", code, said, out)
            if code == FAILED and out.name not in said:
                found.faults.append(f"disk full: no file is named: {said[-200:]}")
        found.leaves_nothing(folder, {table.name, model.name}, hidden=False)
        results[f"{kind}, disk full"] = found
    return results


def not_allowed(folder: Path, n: int) -> dict[str, Trials]:
    """`fit` into a folder that only its owner may write to: refused at once, by name."""
    table, results = people(folder), Trials()
    folder.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    closed = folder / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    user = NOBODY if os.getuid() == 0 else None
    for _ in range(n):
        out = closed / "out"
        code, output = start(program("fit", table, *NAMED, "--out", out), user=user).end()
        _judge(results, "read-only", code, output, out)
        if code == FAILED and str(out) not in output:
            results.faults.append(f"read-only: the folder is not named: {output[-200:]}")
    return {"fit, read-only folder": results}


def at_once(folder: Path, n: int) -> dict[str, Trials]:
    """Two processes that write the same folder: it is whole, and from one process."""
    table, results = people(folder), Trials()
    out = folder / "shared"
    for _ in range(n):
        named = ("fit", table, *NAMED, "--force", "--out", out, "--tolerance")
        running = [start(program(*named, tolerance)) for tolerance in (0, 0.1)]
        ends = [process.end() for process in running]
        is_clear = all(code in {0, FAILED} and "Traceback" not in output for code, output in ends)
        results.check(f"two at once: {ends}", lambda ok=is_clear: ok and whole_model(out) is True)
    results.leaves_nothing(folder, {table.name, out.name}, hidden=False)
    return {"two fits, one folder": results}


def _judge(results: Trials, what: str, code: int, output: str, out: Path) -> None:
    """Refused in one sentence with nothing written, or done."""
    sentence = output.strip().splitlines()[-1] if output.strip() else ""
    refused = code == FAILED and sentence.startswith("Error: ") and not out.exists()
    done = code == 0 and out.exists()
    results.check(f"{what}: {code} {sentence}", lambda: True if done else refused and None)
    remove(out)


def _seconds(work: Callable[[], Any]) -> float:
    """How long something takes when nothing disturbs it."""
    begin = time.monotonic()
    code, output = start(work).end()
    if code:
        raise RuntimeError(output)
    return time.monotonic() - begin


def remove(path: Path) -> None:
    """A file or a folder of files."""
    if path.is_dir():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


KINDS: Sequence[tuple[Callable[[Path, int], dict[str, Trials]], float]] = (
    (killed, 1.0),
    (stopped, 0.4),
    (no_room, 0.4),
    (at_once, 0.2),
    (not_allowed, 0.1),
)
"""What is tried, and how often compared with what is killed."""
