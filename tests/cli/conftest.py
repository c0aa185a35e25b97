"""The program as a person runs it: a process, its output, its exit code, its files."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from fairgrad.cli import main
from fairgrad.datasets import load

_BESIDE = Path(__file__).parents[2].parent / "shared" / "datasets"
STRANGE = 'größe, "quoted" <script>=1'
GROUPS = ("a=b", "<script>alert(1)</script>", "x,y", "\u05e9\u05dc\u05d5\u05dd")


@dataclass(frozen=True)
class Strange:
    path: Path
    column: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    def check(self, code=0):
        assert self.code == code, f"exit code {self.code}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err
        return self

    def refused(self, *words):
        """One error of one paragraph that holds these words, and exit code 2."""
        self.check(2)
        errors = [line for line in self.err.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1
        assert self.err.rstrip().splitlines()[-1] == errors[0]
        for word in words:
            assert word in errors[0]


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Runs the program; an optional folder to run it in. See served.py."""
    elsewhere, outputs = (tmp_path_factory.mktemp(name) for name in ("elsewhere", "outputs"))
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "FAIRGRAD_CACHE": str(tmp_path_factory.mktemp("cache")),
        "PYTHONWARNINGS": "error",
    }
    files = {name: outputs / name for name in ("out", "err")}
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("served.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )

    def run(*arguments, cwd=elsewhere):
        request = {"arguments": [*map(str, arguments)], "cwd": str(cwd)}
        request |= {name: str(path) for name, path in files.items()}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return Ran(code, *(path.read_text(encoding="utf-8") for path in files.values()))

    with server:
        yield run
        server.stdin.close()


@pytest.fixture(scope="session")
def people():
    """Some of the people of Adult, with readable values."""
    data = load("adult")
    table = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    return table.sample(3000, random_state=0).reset_index(drop=True).astype({"sex": object})


@pytest.fixture(scope="session")
def adult(people, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "adult.csv"
    people.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def fitted(program, adult, tmp_path_factory):
    """A model of Adult, and what the program printed of it."""
    folder = tmp_path_factory.mktemp("models") / "model"
    named = ["--target", "income", "--sensitive", "sex", "--epochs", 10]
    return folder, program("fit", adult, *named, "--out", folder).check()


@pytest.fixture(scope="session")
def predicted(program, fitted, adult, tmp_path_factory):
    """What that model predicts for the table it was fitted to."""
    out = tmp_path_factory.mktemp("predicted") / "out.csv"
    program("predict", fitted[0], adult, "-o", out).check()
    return pd.read_csv(out, dtype=str, keep_default_na=False)


@pytest.fixture(scope="session")
def strange(people, tmp_path_factory):
    """A table whose names and values try to be something else."""
    path = tmp_path_factory.mktemp("tables") / "strange names.csv"
    group = [GROUPS[i % len(GROUPS)] for i in range(len(people))]
    table = people[["age", "education-num", "hours-per-week", "occupation"]].assign(
        **{STRANGE: group, "{{ 7 * 7 }}": people["income"].map({"<=50K": "<b>no</b>", ">50K": "|"})}
    )
    table.to_csv(path, index=False)
    return Strange(path, STRANGE, GROUPS)


@pytest.fixture(scope="session")
def compas():
    folder = Path(os.environ.get("FAIRGRAD_DATA") or _BESIDE)
    path = folder / "compas-scores-two-years.csv.gz"
    if not path.is_file():
        pytest.skip(f"needs {path.name}, in FAIRGRAD_DATA or in shared/datasets beside the project")
    return path


@pytest.fixture
def read():
    """A CSV file with its texts unchanged."""
    return lambda path: pd.read_csv(path, dtype=str, keep_default_na=False)


@pytest.fixture
def here(monkeypatch, capsys):
    """Runs the program within this process, which is quicker; nothing is trained this way."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        found = capsys.readouterr()
        return Ran(left.value.code or 0, found.out, found.err)

    return run
