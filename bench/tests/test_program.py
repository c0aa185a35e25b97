"""The commands: run, resume, tabulate, draw; errors are sentences."""

import json
import os
import subprocess
import sys

import pandas as pd
from click.testing import CliRunner

from fairgrad_bench.program import bench


def test_commands_run_resume_and_write(tmp_path):
    records, out = str(tmp_path / "records"), str(tmp_path / "out")
    command = ["run", "--plan", "smoke", "--methods", "constant,bench_methods:PLAIN"]
    command += ["--datasets", "german", "--models", "linear", "--records", records]
    first = CliRunner().invoke(bench, command)
    assert first.exit_code == 0, first.output
    assert "2 units: 2 finished, 0 skipped, 0 failed, 0 were there already" in first.output
    assert "1/2 german linear constant: finished" in first.output
    assert "left" in first.output
    again = CliRunner().invoke(bench, command)
    assert "0 finished, 0 skipped, 0 failed, 2 were there already" in again.output
    tables = CliRunner().invoke(bench, ["tables", "--records", records, "--out", out])
    assert tables.exit_code == 0, tables.output
    assert set(pd.read_csv(f"{out}/results.csv")["method"]) == {"constant", "bench_methods:PLAIN"}
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert settings["seeds"] == [10, 20]
    drawn = CliRunner().invoke(
        bench, ["figures", "--records", records, "--out", out, "--formats", "svg"]
    )
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "out" / "german-linear-equalized-odds.svg").is_file()


def test_a_failure_is_an_exit_code_and_a_sentence(tmp_path):
    command = ["run", "--methods", "bench_methods:FAILS", "--datasets", "german", "--models"]
    command += ["linear", "--measures", "equalized_odds", "--records", str(tmp_path)]
    found = CliRunner().invoke(bench, command, standalone_mode=False)
    assert found.return_value == 2
    assert "failed: german linear bench_methods:FAILS equalized_odds: RuntimeError" in found.output


def test_the_program_knows_the_command():
    program = [sys.executable, "-m", "fairgrad.cli", "bench", "run", "--models", "cubic"]
    found = subprocess.run(program, capture_output=True, text=True, env=os.environ, check=False)
    assert found.returncode == 2
    assert "['linear', 'nonlinear', 'lightgbm'], got ['cubic']" in found.stderr
