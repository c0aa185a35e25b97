"""The commands: run, resume, tabulate, draw; errors are sentences."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_data_sets_are_listed_and_described():
    listed = CliRunner().invoke(bench, ["data", "list"]).output
    assert "\ncompas: " in listed
    described = CliRunner().invoke(bench, ["data", "describe", "adult"]).output
    assert "45,222 rows; 3,620 left out (an unknown feature)" in described


def test_a_failure_is_an_exit_code_and_a_sentence(tmp_path):
    command = ["run", "--methods", "bench_methods:FAILS", "--datasets", "german", "--models"]
    command += ["linear", "--measures", "equalized_odds", "--records", str(tmp_path)]
    found = CliRunner().invoke(bench, command, standalone_mode=False)
    assert found.return_value == 2
    assert "failed: german linear bench_methods:FAILS equalized_odds: RuntimeError" in found.output


def program(*arguments, module="fairgrad_bench", path=""):
    """Runs a program, with one more folder of packages before all others."""
    folders = [str(path), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))},
        check=False,
    )


def test_the_program_says_errors_in_a_sentence():
    found = program("run", "--models", "cubic")
    assert found.returncode == 2
    assert "['linear', 'nonlinear', 'lightgbm'], got ['cubic']" in found.stderr
    assert "Usage: fairgrad-bench [OPTIONS]" in program("--help").stdout


def test_help_fits_a_narrow_terminal_and_loads_nothing_large():
    helped = program("--help").stdout
    assert max(map(len, helped.splitlines())) <= 80
    assert "..." not in helped.partition("Commands:")[2]
    code = (
        "import sys, fairgrad_bench.program\n"
        "print(sorted({'torch', 'pandas', 'numpy', 'altair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fairgrad_finds_the_command_by_its_entry_point(tmp_path):
    entry = 'bench = "fairgrad_bench.program:bench"'
    declared = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points."fairgrad.commands"]\n{entry}\n' in declared
    info = tmp_path / "fairgrad_bench-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fairgrad-bench\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[fairgrad.commands]\n{entry.replace(chr(34), '')}\n")
    found = program("bench", "run", "--models", "cubic", module="fairgrad", path=tmp_path)
    assert found.returncode == 2
    assert "['linear', 'nonlinear', 'lightgbm'], got ['cubic']" in found.stderr


def test_the_page_is_written_again_from_the_tables(tmp_path):
    records, out = str(tmp_path / "records"), tmp_path / "out"
    command = ["run", "--plan", "smoke", "--methods", "constant", "--datasets", "german"]
    CliRunner().invoke(bench, [*command, "--records", records])
    CliRunner().invoke(bench, ["tables", "--records", records, "--out", str(out)])
    again = tmp_path / "again.md"
    found = CliRunner().invoke(bench, ["page", "--results", str(out), "--out", str(again)])
    assert found.exit_code == 0, found.output
    assert "(again_figures.md)" in again.read_text(encoding="utf-8")
    assert (tmp_path / "again_figures.md").read_bytes() == (out / "tables.md").read_bytes()
