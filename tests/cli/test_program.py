"""The program as a whole: help, versions, the demo, the frontier, Ctrl-C."""

import io
import json
import platform
import re
import signal
import subprocess
import sys
import zipfile
from importlib.metadata import version

import click
import numpy as np
import pandas as pd
import pytest

from fairgrad import progress
from fairgrad.audit import FAIR
from fairgrad.cli import main, output
from fairgrad.cli.options import parse_tolerance
from fairgrad.measures import MEASURES
from fairgrad.tables.reading import pieces


def test_the_version_says_what_a_bug_report_needs(here):
    for asked in (["--version", "--verbose"], ["--verbose", "--version"]):
        said = here(*asked).check().out
        for name in ("numpy", "pandas", "scikit-learn", "torch"):
            assert f"{name}: {version(name)}\n" in said
        assert platform.python_version() in said
        assert "step: compiled" in said or "step: not compiled" in said
    assert here("--verbose", "sql").code == 2


def test_help_loads_nothing_large(program):
    program("--version").check()
    assert version("fairgrad") in program("--version").out

    helped = program("--help").check().out
    for name in ("demo", "fit", "predict", "audit", "frontier", "sql"):
        assert f"  {name} " in helped
    code = (
        "import sys\n"
        "from fairgrad.cli import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'pandas', 'numpy', 'sklearn', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_benchmark_is_another_package():
    """Neither its absence nor a package that was removed stops the program."""
    code = (
        "import importlib.metadata as metadata, sys\n"
        "gone = metadata.EntryPoint('bench', 'no_such_package:bench', 'fairgrad.commands')\n"
        "metadata.entry_points = lambda **_: eval(sys.argv[1])\n"
        "from fairgrad.cli import main\n"
        "main(['bench', 'run', '--plan', 'smoke'])"
    )
    for found in ("()", "(gone,)"):
        command = [sys.executable, "-c", code, found]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == (
            "Error: The benchmark is a separate package; "
            "install it with `pip install fairgrad-bench`.\n"
        )


def test_examples_in_the_help_stand_on_lines_of_their_own(program):
    helped = program("--help").check().out
    assert "\n    fairgrad demo\n" in helped
    assert "\n    fairgrad audit model/ new.csv\n" in program("audit", "--help").check().out


def test_measures_are_those_of_the_library(program):
    helped = program("fit", "--help").check().out
    for name in MEASURES:
        assert name in helped


def test_demo(program, tmp_path):
    ran = program("demo", cwd=tmp_path).check()
    assert max(len(line) for line in ran.out.splitlines() if "→" in line) <= 80
    for words in ("Compared with the", "men", "women", "fairgrad-demo/report.html"):
        assert words in ran.out
    folder = tmp_path / "fairgrad-demo"
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert audit["rows"] == len(pd.read_csv(folder / "people.csv"))
    points = pd.read_csv(folder / "frontier.csv")
    assert points["test_accuracy"].between(0.8, 0.88).all()
    assert "frontier" in (folder / "report.html").read_text(encoding="utf-8")
    again = program("audit", "fairgrad-demo", "fairgrad-demo/people.csv", "--json", cwd=tmp_path)
    assert again.check().json["audit"]["rates"] == audit["rates"]


def test_frontier(program, adult, tmp_path):
    folder = tmp_path / "deep" / "frontier"
    few = ["--points", 6, "--epochs", 4, "--out", folder]
    found = program("frontier", adult, "--target", "income", "--sensitive", "sex", *few, "--json")
    points = found.check().json["points"]
    assert found.json["desirable"] == ">50K"
    assert [point["plain"] for point in points] == [False] * 5 + [True]
    assert {file.name for file in folder.iterdir()} == {
        "MODEL_CARD.md", "audit.json", "fairgrad.json", "frontier.csv", "model.skops",
        "report.html", "test_rows.csv", "training_rows.npz",
    }  # fmt: skip
    program("predict", folder, adult).check()


def test_a_frontier_of_useless_models_says_so_first(program, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["F", "M"], 900), "noise": rng.normal(size=900)})
    table["hired"] = np.where(rng.random(900) < 0.2, "yes", "no")
    table.to_csv(tmp_path / "people.csv", index=False)
    asked = ["--target", "hired", "--sensitive", "sex", "--points", 6, "--epochs", 3]
    shown = program("frontier", tmp_path / "people.csv", *asked, "--out", tmp_path / "m").check()
    first, second = " ".join(shown.out.split()).split("Every validation row is predicted as 'no'.")
    assert first == "! "
    assert "The model is useless: every row is predicted no." in second
    values = program("frontier", tmp_path / "people.csv", *asked, "--json").check().json
    assert "Every validation row is predicted as 'no'." in values["faults"][0]
    assert "useless" in values["conclusion"]


def test_the_chosen_model_is_likely_to_be_fair(program, tmp_path):
    """With many rows: the most accurate of those whose verdict on validation rows is clear."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 12_000)
    skill, luck, noise = rng.normal(size=(3, 12_000))
    skill += 1.5 * (sex == "M")
    hired = np.where(skill + luck + 0.3 * noise > 0.7, "yes", "no")
    table = pd.DataFrame({"sex": sex, "skill": skill, "luck": luck, "hired": hired}).round(3)
    table.to_csv(tmp_path / "people.csv", index=False)
    named = ["--target", "hired", "--sensitive", "sex", "--measure", "demographic_parity"]
    asked = [*named, "--tolerance", 0.1, "--epochs", 10, "--json"]
    found = program("fit", tmp_path / "people.csv", *asked, "--out", tmp_path / "m").check().json
    assert found["verdict"] == FAIR
    assert 0 < found["settings"]["epsilon"] <= 0.1  # neither exact nor the baseline
    exact = program(
        "fit", tmp_path / "people.csv", *asked, "--exact", "--out", tmp_path / "exact"
    ).check()
    assert found["accuracy"] > exact.json["accuracy"]


def test_ctrl_c_leaves_nothing_behind(here, adult, tmp_path, monkeypatch):
    def interrupted(*_):
        raise click.exceptions.Abort  # what click makes of Ctrl-C

    monkeypatch.setattr("fairgrad.cli.training.train", interrupted)
    named = ["--target", "income", "--sensitive", "sex", "--out", tmp_path / "model"]
    stopped = here("fit", adult, *named).check(130)
    assert stopped.err.strip() == "Stopped. Files are written completely or not at all."
    assert not list(tmp_path.iterdir())


def test_progress_is_for_people_at_a_terminal(here, monkeypatch, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("y,h,s\n" + "1,0,a\n0,0,a\n1,1,b\n0,1,b\n" * 30)
    asked = [table, "--target", "y", "--prediction", "h", "--sensitive", "s", "--force"]
    out = ["--out", tmp_path / "audit.json"]
    assert "Written" in here("audit", *asked, *out).check().err
    assert not here("--quiet", "audit", *asked, *out).check().err
    shown = []
    monkeypatch.setattr(output, "inform", shown.append)
    output.progress("Reading")
    assert not shown
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    output.progress("Reading")
    assert shown == ["Reading"]


def test_a_bar_says_what_is_done_and_what_remains(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with output.progress_bar(2, "Reading") as bar:
        bar.update(1)
    assert not capsys.readouterr().err  # nobody is looking
    monkeypatch.setattr(output, "shows_progress", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with output.progress_bar(2, "Reading") as bar:
        bar.update(1)
    shown = capsys.readouterr().err
    assert "Reading" in shown
    assert "0:00:00 left" in shown


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_pieces_know_how_much_of_the_table_is_read(tmp_path, ending):
    frame = pd.DataFrame({"x": np.arange(40_000) * 1.5, "name": "someone"})
    path = tmp_path / f"people.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    done = [piece.attrs["done"] for piece in pieces([path, path], rows=10_000)]
    assert len(done) == 8
    assert sorted(done) == done
    assert 0 < done[0] < 1
    assert done[3] == 0.5
    assert done[-1] == 1.0


def test_a_program_that_calls_it_keeps_its_own_signals():
    code = (
        "import signal\n"
        "from fairgrad.cli import main\n"
        "both = signal.SIGINT, signal.SIGTERM\n"
        "before = [signal.getsignal(one) for one in both]\n"
        "for given in (['--version'], ['no-such-command']):\n"
        "    try: main(given)\n"
        "    except SystemExit: pass\n"
        "    assert [signal.getsignal(one) for one in both] == before, given\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_a_closed_output_is_an_error():
    """The result would be lost, so nothing is computed."""
    command = f"exec {sys.executable} -m fairgrad sql counts t --dialect sqlite >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr


def test_file_reading_options_have_their_own_heading(here):
    for command in ("fit", "audit", "frontier", "certify", "predict"):
        shown = here(command, "--help").check().out.partition("\nOptions:\n")[2]
        others, _, reading = shown.partition("\nFile-reading options:\n")
        assert "--encoding" in reading
        assert "--encoding" not in others
        names = re.findall(r"^  (?:-\w, )?(-\S+|[A-Z.]+)", others, flags=re.MULTILINE)
        assert all(name.startswith("-") for name in names)
        assert len(names) <= 25  # 24 and --help


def test_the_help_shows_values_that_can_be_typed(here):
    """Every word of a choice in the help is accepted as it stands there."""
    shown = re.search(r"--tolerance NUMBER\|(\S+)", here("audit", "--help").check().out)
    assert parse_tolerance(shown[1]) == "80%"


def test_a_stop_while_an_archive_is_written_is_a_stop(capsys):
    @click.command()
    def packs():
        with zipfile.ZipFile(io.BytesIO(), "w") as archive:
            part = archive.open("part", "w")
            signal.raise_signal(signal.SIGTERM)
            part.close()

    with pytest.raises(SystemExit, match="130"):
        main([], packs)
    assert "Error" not in capsys.readouterr().err
