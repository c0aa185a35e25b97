"""An environment with the lowest versions of the dependencies that pyproject.toml allows.

    python scripts/lowest_versions.py ENVIRONMENT [--newest] [tests ...]

Makes the environment, installs this tree with every dependency at its lowest version (or, with
--newest, at the newest there is), and runs the program's demo and tests there. PyTorch is what
constraints.txt pins in both: older builds without the libraries of a GPU are in no index that pip
searches by itself.
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/core", "tests/audit/test_inputs.py", "tests/audit/test_output.py", "tests/persistence",
    "tests/torch/test_cells.py",
)  # fmt: skip
TOOLS = ("pytest", "hypothesis", "jsonschema", "hatchling", "setuptools")


def lowest(requirements: list[str]) -> list[str]:
    """``name==version`` of each requirement ``name>=version``, PyTorch excepted."""
    matches = [re.fullmatch(r"([\w-]+)>=([\w.]+)", text) for text in requirements]
    missing = [text for text, match in zip(requirements, matches, strict=True) if match is None]
    if missing:
        raise SystemExit(f"{missing[0]}: expected a lowest version, name>=version.")
    return [f"{match[1]}=={match[2]}" for match in matches if match and match[1] != "torch"]


def main() -> int:
    """Makes the environment and runs the tests; the exit code is theirs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("tests", nargs="*", default=TESTS)
    parser.add_argument("--newest", action="store_true")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["report"], *extras["torch"]]
    pins = (
        []
        if options.newest
        else lowest([text for text in asked if not text.startswith("fairgrad")])
    )
    python = options.environment / "bin" / "python"
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    environment["OMP_NUM_THREADS"] = "1"
    install = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", *TOOLS, *pins]
    demo = str(options.environment / "demo")
    commands = [
        [sys.executable, "-m", "venv", str(options.environment)],
        [*install, "--editable", f"{ROOT}[torch]"],
        [str(python), "-m", "pip", "check"],
        [str(python), "-m", "fairgrad", "demo", "--force", "--out", demo],
        [str(python), "-m", "pytest", "-q", *options.tests],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603 - our own
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
