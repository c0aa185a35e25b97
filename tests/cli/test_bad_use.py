"""Mistakes are answered by one sentence and exit code 2, and leave nothing behind."""

import shutil
import subprocess
import sys

import pytest

from fairgrad.files import read_sealed, sealed_json

BROKEN = {
    "ragged.csv": ("a,b,c\n1,2,3\n1,2,3,4\n", "Expected 3 fields in line 3, saw 4"),
    "twice.csv": ("a,a,c\n1,2,3\n", "two columns called 'a'"),
    "empty.csv": ("", "is empty"),
    "headed.csv": ("a,b,c\n", "has no rows"),
    "notes.docx": ("a,b,c\n1,2,3\n", "expected a file ending in"),
    "packed.csv.gz": ("not packed", "cannot be read as a table"),
    "binary.csv": (b"a,b,c\n\0\xff\xfe,1,2\n", "name its encoding (--encoding)"),
    "nul.csv": (b"a,b,c\n1,2\0,3\n", "contains NUL bytes"),
    "false.parquet": ("a,b,c\n", "Parquet"),
    "open.csv": ('a,b,c\n"1,2,3\n', "a quote opened in row 1 is never closed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(program, tmp_path, name):
    content, reason = BROKEN[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    named = ["--target", "c", "--sensitive", "b"]
    program("fit", path, *named, "--out", tmp_path / "model").refused(name, reason)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_nul_bytes_in_names(here):
    said = here("audit", "a\0b.csv", "--target", "c", "--prediction", "b", "--sensitive", "a")
    said.refused("NUL byte")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGPIPE")
@pytest.mark.parametrize("flags", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_reader_that_closes_the_pipe_early(tmp_path, monkeypatch, flags):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    rows = [f"{i % 2},{i // 2 % 2},group {i % 40}" for i in range(8000)]
    (tmp_path / "t.csv").write_text("\n".join(["y,h,s", *rows]))
    asked = ["audit", "t.csv", "--target", "y", "--prediction", "h", "--sensitive", "s", "--json"]
    code = f"from fairgrad.cli import main; main({asked!r})"
    command = [sys.executable, *flags, "-c", code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as running:
        assert running.stdout.read(1) == b"{"  # more than a pipe holds is yet to come
        running.stdout.close()
        said = running.stderr.read()
        assert running.wait() == 141
    assert said == b""


COLUMN_MISTAKES = {
    "tolerance 0": (
        ["--target", "income", "--sensitive", "sex", "--tolerance", "0"],
        "'0' is neither a number above 0 and up to 1, such as 0.05 for 5 points",
    ),
    "points as a ratio": (
        ["--target", "income", "--sensitive", "sex", "--tolerance", "5%"],
        "nor a ratio of selection rates from 50% to 100%",
    ),
    "misspelt": (["--target", "incom", "--sensitive", "sex"], "did you mean 'income'?"),
    "both": (["--target", "sex", "--sensitive", "sex"], "--target and --sensitive both name"),
    "dropped": (["--target", "income", "--sensitive", "sex", "--drop", "sex"], "--drop"),
    "dropped and kept": (
        ["--target", "income", "--sensitive", "sex", "--drop", "age", "--keep", "age"],
        "--drop and --keep both name 'age'",
    ),
    "dropped and categorical": (
        ["--target", "income", "--sensitive", "sex", "--drop", "age", "--categorical", "age"],
        "--drop and --categorical both name 'age'",
    ),
    "categorical": (
        ["--target", "income", "--sensitive", "sex", "--categorical", "workclass"],
        "--categorical has no effect: 'workclass' holds texts",
    ),
    "missing": (
        ["--target", "income", "--sensitive", "sex", "--missing", "Refused"],
        "--missing names 'Refused', which is not a value of the table",
    ),
    "two bounds": (
        ["--target", "income", "--sensitive", "sex", "--test", __file__, "--test-size", "0.3"],
        "exclude each other",
    ),
    "desirable": (
        ["--target", "income", "--sensitive", "sex", "--desirable", "rich"],
        "--desirable is 'rich'; the values of 'income' are <=50K, >50K",
    ),
    "no target": (["--sensitive", "sex"], "--target"),
    "measure": (["--target", "income", "--sensitive", "sex", "--measure", "justice"], "justice"),
    "layers": (["--target", "income", "--sensitive", "sex", "--layers", "8,x"], "8,x"),
    "bins": (["--target", "income", "--sensitive", "age", "--bins", "age"], "column=25,60"),
}


@pytest.mark.parametrize("name", COLUMN_MISTAKES)
def test_mistakes_in_options(program, adult, tmp_path, name):
    options, reason = COLUMN_MISTAKES[name]
    program("fit", adult, *options, "--out", tmp_path / "model").refused(reason)
    assert not list(tmp_path.iterdir())


def test_columns_that_cannot_play_their_part(program, adult, tmp_path):
    fit = ["fit", adult, "--out", tmp_path / "model"]
    program(*fit, "--target", "income", "--sensitive", "age").refused('--bins "age=')
    program(*fit, "--target", "age", "--sensitive", "sex").refused("continuous")


@pytest.mark.parametrize("option", [("--sep", ";"), ("--decimal", ","), ("--encoding", "cp1252")])
@pytest.mark.parametrize("command", ["fit", "audit", "predict"])
def test_options_of_text_files_have_no_effect_on_others(
    here, people, fitted, tmp_path, command, option
):
    path = tmp_path / "people.parquet"
    people.head(100).to_parquet(path)
    named = ["--target", "income", "--sensitive", "sex"]
    asked = {
        "fit": ["fit", path, *named, "--out", tmp_path / "model"],
        "audit": ["audit", path, *named, "--prediction", "income"],
        "predict": ["predict", fitted[0], path],
    }
    here(*asked[command], *option).refused(f"{option[0]} has no effect", "without a text file")


def test_a_key_without_a_sample_has_no_effect(here, adult, tmp_path):
    named = ["--target", "income", "--sensitive", "sex", "--out", tmp_path / "model"]
    here("fit", adult, *named, "--key", "age").refused("--key has no effect")


def test_what_others_wrote_is_never_replaced(program, adult, fitted, tmp_path):
    named = ["--target", "income", "--sensitive", "sex"]
    program("fit", adult, *named, "--out", fitted[0]).refused("exists", "--force")
    (tmp_path / "diary.txt").write_text("mine")
    program("fit", adult, *named, "--out", tmp_path, "--force").refused("diary.txt", "lost")
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_unknown_commands_suggest_the_nearest(program):
    program("fti").refused("fti", "Did you mean 'fit'?")
    program("sql", "count").refused("count", "Did you mean 'counts'?")


def test_spellings_of_one_value(program, tmp_path):
    path = tmp_path / "hired.csv"
    rows = [
        f"{'FM'[i % 2]},{('Yes', 'yes', 'no')[i % 3]},{('yes', 'no')[i % 2]}" for i in range(300)
    ]
    path.write_text("Hiring in 2024\n\nsex,hired,p\n" + "\n".join(rows) + "\n")
    named = ["--target", "hired", "--sensitive", "sex"]
    fit = ["fit", path, *named, "--out", tmp_path / "model"]
    program(*fit).refused("'Yes' (100 rows), 'yes' (100 rows)", '--map "yes=Yes"', "--ignore-case")
    program(*fit, "--map", "maybe=yes").refused("--map names 'maybe'", "hired, sex")
    audit = ["audit", path, *named, "--prediction", "p", "--json"]
    program(*audit).refused("differ in spelling alone")
    for way in (["--ignore-case"], ["--map", "Yes=yes"]):
        found = program(*audit, *way).check().json
        assert len(found["audit"]["labels"]) == 2
        assert "using row 3 as the header" in " ".join(found["notes"])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("settings", "separate"), None), (("settings", "within"), "sex"),
        (("settings", "measures"), ["justice"]), (("settings", "desirable"), 3),
        (("provenance", "data"), {}), (("provenance", "data"), [{"name": "x"}]),
        (("bins",), {"age": "25"}),
    ],
)  # fmt: skip
def test_a_forged_description_is_refused(here, fitted, adult, tmp_path, place, value):
    folder = shutil.copytree(fitted[0], tmp_path / "model")
    known = changed = read_sealed((folder / "fairgrad.json").read_text("utf-8"))
    for name in place[:-1]:
        changed = changed[name]
    changed[place[-1]] = value
    (folder / "fairgrad.json").write_text(sealed_json(known), "utf-8")
    here("audit", folder, adult).refused("fairgrad.json is damaged", ".".join(place))
