"""The program, called with odd tables: exit code 2 and one sentence, or it works."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairgrad.cli import main
from reliability import odd
from reliability.fuzz import REFUSED

UNSEEN = set("\x1b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
"""What must not reach a terminal: escapes, and what turns the direction of the text around."""


def run_program(*arguments: object) -> tuple[int, str]:
    """Runs the program in this process: exit code and output. A fault is an AssertionError."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
    output = err.getvalue()
    if code not in {0, 1, 2} or "Traceback" in output or "Unexpected error" in output:
        raise AssertionError(f"exit code {code}: {output[-300:]}")
    if code == 2 and sum(line.startswith("Error: ") for line in output.splitlines()) != 1:
        raise AssertionError(f"not one sentence: {output[-300:]}")
    shown = UNSEEN & set(output + out.getvalue())
    if shown:
        raise AssertionError(f"{sorted(shown)} of a name reached the terminal")
    return int(code), out.getvalue() or output


def use_program_audit(data: Any) -> list[Any]:
    """`fairgrad audit` of a table with predictions."""
    with tempfile.TemporaryDirectory() as folder:
        path = odd.table_file(data, Path(folder))
        named = ["--target", "y", "--prediction", "h", "--sensitive", "s", "--min-group", "0"]
        ways = [[], ["--json"], ["--weight", "x"], ["--score", "x"],
                ["--measure", "recall>=0.5"], ["--within", "z"],
                ["--search", "x"]]  # fmt: skip
        code, output = run_program("audit", path, *named, *odd.pick(data, ways))
        if code == 2:
            raise ValueError(f"{REFUSED}: {output}")
        if output.startswith("{"):
            json.loads(output)
    return []


def use_program_fit(data: Any) -> list[Any]:
    """`fairgrad fit`, then `fairgrad predict` of the same table, which has to work."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = odd.table_file(data, Path(folder)), Path(folder) / "model"
        named = [
            "--target",
            "y",
            "--sensitive",
            "s",
            "--epochs",
            "2",
            "--out",
            out,
        ]
        code, output = run_program("fit", path, *named)
        if code == 2:
            if out.exists():
                raise AssertionError("refused, and yet a model was written")
            raise ValueError(f"{REFUSED}: {output}")
        if run_program("predict", out, path, "--out", Path(folder) / "p.csv")[0]:
            raise AssertionError("the model does not predict its own table")
        scores = pd.read_csv(Path(folder) / "p.csv").filter(like="probability")
        return [scores.to_numpy(dtype=np.float64)]


def use_program_predict(data: Any) -> list[Any]:
    """`fairgrad predict` of an odd table, with a model of an ordinary table."""
    with tempfile.TemporaryDirectory() as folder:
        path = odd.table_file(data, Path(folder))
        code, output = run_program("predict", _model(), path, "--out", Path(folder) / "p.csv")
        if code == 2:
            if (Path(folder) / "p.csv").exists():
                raise AssertionError("refused, and yet predictions were written")
            raise ValueError(f"{REFUSED}: {output}")
        scores = pd.read_csv(Path(folder) / "p.csv").filter(like="probability")
        return [scores.to_numpy(dtype=np.float64)]


MADE: list[tempfile.TemporaryDirectory[str]] = []


def _model() -> Path:
    """The folder of a model of one number and one text, made once."""
    if not MADE:
        MADE.append(tempfile.TemporaryDirectory())
        rng = np.random.default_rng(0)
        table = pd.DataFrame(
            {
                "y": rng.choice(["no", "yes"], 300),
                "s": rng.choice(["f", "m"], 300),
                "x": rng.normal(size=300).round(3),
                "h": rng.choice(["no", "yes"], 300),
            }
        )
        place = Path(MADE[0].name)
        table.to_csv(place / "t.csv", index=False)
        named = ["--target", "y", "--sensitive", "s", "--epochs", "2"]
        run_program("fit", place / "t.csv", *named, "--out", place / "model")
    return Path(MADE[0].name) / "model"
