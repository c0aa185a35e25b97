"""The wheel fairgrad-audit: audits and reports in an environment that has no PyTorch."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
HERE = ROOT / "packaging" / "fairgrad-audit"
LEFT_OUT = {"joblib", "safetensors", "skops", "torch"}
pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(os.name == "nt", reason="the dependencies are links"),
]


def run(*command, code=0, **options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, **options,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


def requirements(path):
    return set(tomllib.loads(path.read_text())["project"]["dependencies"])


def test_its_dependencies_are_those_of_fairgrad_but_for_what_models_need():
    whole, own = requirements(ROOT / "pyproject.toml"), requirements(HERE / "pyproject.toml")
    assert own <= whole
    assert {re.match(r"[\w-]+", one)[0] for one in whole - own} == LEFT_OUT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made, cwd=HERE)
    (path,) = made.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """Links to all packages of the tests' environment, but for those that are left out."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python, paths = folder / "bin" / "python", {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
        "--no-index", wheel)  # fmt: skip
    home = Path(distribution("numpy").locate_file(""))
    hidden = re.compile(r"_*(fairgrad|torch|skops|safetensors|lightning|__pycache__)|.*\.pth")
    for path in home.iterdir():
        if not hidden.match(path.name.lower()) and not (own / path.name).exists():
            (own / path.name).symlink_to(path)
    return python


def test_it_holds_what_fairgrad_holds_but_nothing_compiled(wheel):
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info" not in name}
    source = ROOT / "src"
    there = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    assert there <= names
    assert not [name for name in names if name.endswith((".so", ".c", ".pyc"))]
    assert wheel.name.endswith("-py3-none-any.whl")


def test_an_audit_runs_there_and_a_fit_says_what_is_missing(environment, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(2, size=500), "h": rng.integers(2, size=500)})
    frame.assign(s=rng.choice(["f", "m"], 500)).to_csv(tmp_path / "t.csv", index=False)
    program, named = environment.parent / "fairgrad", ("--target", "y", "--sensitive", "s")
    run(environment, "-c", "import torch", code=1, cwd=tmp_path)
    ran = run(program, "audit", "t.csv", *named, "--prediction", "h", "-o", "r.html", cwd=tmp_path)
    assert "demographic parity" in ran.stdout
    assert (tmp_path / "r.html").stat().st_size > 10_000
    for command in (("fit", "t.csv", *named, "-o", "model"), ("demo",)):
        said = run(program, *command, code=2, cwd=tmp_path).stderr
        assert "needs PyTorch, which is not installed here" in said
        assert "pip install fairgrad" in said
    code = "import fairgrad; print(fairgrad.__version__, fairgrad.Audit, fairgrad.Frontier); "
    code += "fairgrad.FairGradClassifier().fit([[0], [1]] * 80, [0, 1] * 80, "
    code += "sensitive_features=[0, 0, 1, 1] * 40)"
    assert "ImportError: training needs PyTorch" in run(environment, "-c", code, code=1).stderr
