"""One verdict, never a false green: labels that do not match, gaps in columns, small groups."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fairgrad.cli.options import parse_map
from fairgrad.cli.people import match_labels
from fairgrad.cli.request import FitRequest
from fairgrad.cli.training import in_terms
from fairgrad.measures import On
from fairgrad.tables.roles import ColumnRoles
from fairgrad.usefulness import FEWER, ModelFigures, Suggestions, find_fault


@pytest.fixture(scope="module")
def exam(tmp_path_factory):
    """A column of truth, written in many ways, and predictions that are right in 80 %."""
    rng = np.random.default_rng(0)
    n = 400
    race = rng.choice(["White", "Black"], n).astype(object)
    race[:7] = "Inuit"
    truth = rng.choice(["Passed", "Failed"], n)
    right = rng.random(n) < 0.8
    guess = np.where(right, truth, np.where(truth == "Passed", "Failed", "Passed"))
    is_passed, score = guess == "Passed", rng.random(n) / 2
    table = pd.DataFrame(
        {
            "exam": truth,
            "truth": (truth == "Passed") * 1,
            "race": race,
            "guess": guess,
            "number": is_passed * 1,
            "boolean": is_passed,
            "LOUD": [f" {text.upper()} " for text in guess],
            "score": (score + is_passed / 2).round(4),
            "other": np.where(np.arange(n) == 3, "Withdrawn", guess),
            "gaps": guess,
            "gaps in truth": truth,
        }
    )
    table.loc[[10, 20, 30], "gaps"] = None
    table.loc[[10, 40], "gaps in truth"] = None
    path = tmp_path_factory.mktemp("exam") / "exam.csv"
    table.to_csv(path, index=False)
    return path, table


def asked(path, target, prediction, *more):
    named = ["--target", target, "--prediction", prediction, "--sensitive", "race"]
    return ["audit", path, *named, *more]


def test_labels_that_do_not_match_are_an_error_with_a_way_out(here, exam):
    path, table = exam
    here(*asked(path, "exam", "number")).refused(
        "number (0, 1)", "'exam' (Failed, Passed)", "--map 1=Passed,0=Failed"
    )
    mapped = here(*asked(path, "exam", "number", "--map", "1=Passed,0=Failed", "--json")).check()
    accuracy = (table["exam"] == table["guess"]).mean()
    assert mapped.json["audit"]["accuracy"] == pytest.approx(accuracy)
    here(*asked(path, "exam", "number", "--map", "1=passed")).refused("'passed'", "not a value")
    here(*asked(path, "exam", "number", "--map", "1")).refused("1=Passed,0=Failed")


@pytest.mark.parametrize(
    ("target", "prediction", "said"),
    [
        ("truth", "boolean", "boolean: False was read as 0 and True as 1, as in 'truth'."),
        ("exam", "LOUD", "LOUD: FAILED was read as Failed and PASSED as Passed, as in 'exam'."),
        ("exam", "guess", ""),
    ],
)
def test_what_is_plainly_the_same_is_matched_and_said(here, exam, target, prediction, said):
    path, table = exam
    found = here(*asked(path, target, prediction, "--json")).check().json["audit"]
    assert found["accuracy"] == pytest.approx((table["exam"] == table["guess"]).mean())
    assert [w["message"] for w in found["warnings"] if w["kind"] == "remark"] == [said][
        : bool(said)
    ]


def test_spellings_of_one_value_are_merged_on_request(here, exam, tmp_path):
    path, table = exam
    odd = table.assign(
        race=np.where(np.arange(len(table)) % 2, table["race"].str.upper(), table["race"])
    )
    odd.to_csv(tmp_path / "odd.csv", index=False)
    named = asked(tmp_path / "odd.csv", "exam", "guess")
    here(*named).refused("--ignore-case")
    merged = here(*named, "--ignore-case", "--json").check().json["audit"]
    plain = here(*asked(path, "exam", "guess", "--json")).check().json["audit"]
    assert len(merged["groups"]) == len(plain["groups"])


def test_a_label_that_the_target_lacks_is_named_on_purpose(here, exam):
    path, _ = exam
    here(*asked(path, "exam", "other")).refused("Withdrawn", "--map Withdrawn=Withdrawn")
    found = here(
        *asked(path, "exam", "other", "--map", "Withdrawn=Withdrawn", "--json")
    ).check().json["audit"]  # fmt: skip
    assert found["labels"] == ["Failed", "Passed", "Withdrawn"]


def test_values_are_matched_one_to_one():
    options = {"column": "h", "target": "y"}
    assert match_labels(["yes", "NO"], ["No", "yes"], **options)[0] == {"yes": "yes", "NO": "No"}
    with pytest.raises(ValueError, match="do not match"):  # of two labels alike neither is meant
        match_labels(["A"], ["a", "a "], **options)
    with pytest.raises(ValueError, match=r"\(0, 1, 2, 3, 4, 5, 6, 7 and 12 more\)"):
        match_labels([str(i) for i in range(20)], ["a", "b"], **options)
    assert parse_map("a=b=c") == {"a": "b=c"}
    assert parse_map("1=x, y") == {"1": "x, y"}


def test_a_score_is_told_from_predictions(here, exam):
    path, table = exam
    here(*asked(path, "exam", "score")).refused(
        "'score', which looks like a score", "--score 'score'", "--threshold 0.5"
    )
    named = ["audit", path, "--target", "exam", "--score", "score", "--sensitive", "race"]
    found = here(*named, "--threshold", 0.5, "--json").check().json["audit"]
    accuracy = ((table["score"] >= 0.5) == (table["exam"] == "Passed")).mean()
    assert found["accuracy"] == pytest.approx(accuracy)
    here(*named).refused("--prediction is missing", "--threshold")
    here(*asked(path, "exam", "guess", "--threshold", 0.5)).refused(
        "--threshold has no effect without --score"
    )
    counts = ["sql", "counts", "t", "--dialect", "sqlite", "--target", "y", "--sensitive", "s"]
    here(*counts, "--threshold", 0.5).refused("--threshold has no effect without --score")


def test_another_system_is_told_nothing_of_training(here, exam):
    path, _ = exam
    table = pd.read_csv(path).assign(
        strict=lambda t: np.where(t["score"] > 0.7, "Passed", "Failed")
    )
    moved = path.with_name("moved.csv")
    table.to_csv(moved, index=False)
    ran = here(*asked(moved, "exam", "strict", "--score", "score")).check()
    assert "train" not in ran.out
    ran = here(*asked(moved, "exam", "strict", "--score", "score", "--threshold", 0.5)).check()
    said = r"switch at a score of about 0\.[67]\d+, not at 0\.5"
    assert re.search(said, " ".join(ran.out.split()))


def test_rows_with_gaps_are_counted_and_said(here, exam, tmp_path):
    path, _ = exam
    report = tmp_path / "report.html"
    named = asked(path, "gaps in truth", "gaps", "--report", report)
    said = (
        "4 of 400 rows are left out: 2 without a target (gaps in truth) and 2 without a prediction"
    )
    assert said in " ".join(here(*named).check().out.split())
    assert said in report.read_text(encoding="utf-8")
    found = here(*named, "--force", "--json").check().json
    assert found["left_out"] == {"a target (gaps in truth)": 2, "a prediction (gaps)": 2}
    assert found["audit"]["rows"] == 396
    assert any(said in warning["message"] for warning in found["audit"]["warnings"])


def test_verdict_and_exit_code_are_about_what_was_asked(here, tmp_path):
    """Wrong in a quarter of one group, for both labels alike: fair by one measure alone."""
    step = np.arange(6000)
    truth = np.where(step % 2, "Passed", "Failed")
    race = np.where(step < 3000, "Black", "White")
    wrong = (race == "Black") & (step % 8 < 2)
    biased = np.where(wrong, np.where(truth == "Passed", "Failed", "Passed"), truth)
    large = tmp_path / "large.csv"
    pd.DataFrame({"exam": truth, "race": race, "biased": biased}).to_csv(large, index=False)
    fair = ["--measure", "demographic_parity", "--fail-on", "unfair"]
    ran = here(*asked(large, "exam", "biased", *fair)).check(0)
    assert ran.out.startswith("✓")
    assert "judged fair" in " ".join(ran.out.split())
    explained = here(*asked(large, "exam", "biased", *fair, "--explain")).check(0)
    assert "Also measured, not part of the verdict" in explained.out
    assert "✗ unfair" in explained.out
    both = ["--measure", "demographic_parity", "--measure", "accuracy_parity"]
    ran = here(*asked(large, "exam", "biased", *both, "--fail-on", "unfair", "--json")).check(1)
    assert ran.json["verdict"] == ran.json["audit"]["verdict"] == "unfair"
    assert ran.json["judged_by"] == ["demographic_parity", "accuracy_parity"]
    assert ran.json["conclusion"] == ran.json["audit"]["conclusion"]


def test_an_open_verdict_fails_where_that_was_asked(here, exam):
    path, _ = exam
    here(*asked(path, "exam", "guess", "--fail-on", "unfair")).check(0)
    ran = here(*asked(path, "exam", "guess", "--fail-on", "undecided")).check(1)
    assert ran.out.startswith("?")


def test_small_groups_are_set_aside_unless_they_are_wanted(here, exam):
    path, _ = exam
    small = here(*asked(path, "exam", "guess")).check().out
    assert "Not judged: 7 people" in " ".join(small.split())
    everyone = here(*asked(path, "exam", "guess", "--min-group", 0, "--json")).check().json
    assert "Not judged" not in everyone["conclusion"]
    assert all(row["judged"] for row in everyone["audit"]["groups"])
    share = here(*asked(path, "exam", "guess", "--min-group", 0.02, "--json")).check().json
    assert "Not judged: 7 people in groups by race with fewer than 8 rows" in share["conclusion"]


def test_bad_news_taken_as_desirable_is_told(here, exam, tmp_path):
    _, table = exam
    deny = np.where(table["guess"] == "Passed", "no", "yes")
    table.assign(deny=deny, guessed=deny).to_csv(tmp_path / "deny.csv", index=False)
    named = asked(tmp_path / "deny.csv", "deny", "guessed")
    ran = here(*named).check()
    assert "selected means deny yes" in " ".join(ran.out.split())
    assert "deny=yes was taken as desirable" in ran.out
    assert "was taken as desirable" not in here(*named, "--desirable", "no").check().out


def test_all_measures_that_are_given_are_enforced():
    one, two = ColumnRoles("income", ("sex",)), ColumnRoles("income", ("sex", "race"))
    both = ("equalized_odds", "accuracy_parity")
    assert FitRequest(columns=one, measures=both).measure_on() == [*both]
    apart = FitRequest(columns=two, measures=both, separate=True)
    assert apart.measure_on() == [
        On(name, measure) for measure in apart.measures for name in ("sex", "race")
    ]


def test_a_model_of_two_measures(program, adult, tmp_path):
    """Both are enforced, judged, and remembered by the folder."""
    both = ["--measure", "demographic_parity", "--measure", "accuracy_parity"]
    named = ["--target", "income", "--sensitive", "sex", "--epochs", 8, "--tolerance", 0.02]
    ran = program("fit", adult, *named, *both, "--out", tmp_path / "model").check()
    known = json.loads((tmp_path / "model" / "fairgrad.json").read_text(encoding="utf-8"))
    assert known["settings"]["measures"] == ["demographic_parity", "accuracy_parity"]
    audit = json.loads((tmp_path / "model" / "audit.json").read_text(encoding="utf-8"))
    judged = {row["measure"] for row in audit["verdicts"] if row["asked"]}
    assert judged == {"demographic_parity", "accuracy_parity"}
    plain = {
        r["rate"]: r["before"] - r["after"] for r in audit["changes"] if r["group"] == "sex=Male"
    }
    assert plain["selection_rate"] > 0  # men are selected less often than by the plain model
    conclusion = audit["conclusion"]
    lines = " ".join(ran.out.split())
    assert lines.count(conclusion) == 1
    page = (tmp_path / "model" / "report.html").read_text(encoding="utf-8")
    for sentence in audit["sections"][0]["sentences"]:
        assert sentence.replace(">", "&gt;") in page
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card.count(conclusion.split(" (")[0].replace(">", "&gt;")) == 1
    again = program("audit", tmp_path / "model", adult, "--json").check().json
    assert again["judged_by"] == ["demographic_parity", "accuracy_parity"]


def test_two_columns_of_predictions_are_compared(here, exam, tmp_path):
    path, table = exam
    out, report = tmp_path / "c.json", tmp_path / "c.html"
    named = ["compare", "guess", "exam", path, "--target", "exam", "--sensitive", "race"]
    ran = here(*named, "-o", out, "--report", report).check()
    changed = (table["guess"] != table["exam"]).sum()
    assert f"{changed} of 400 people get a different decision" in " ".join(ran.out.split())
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["changed"] == changed
    assert found["audit"]["accuracy"] == 1.0
    assert sum(row["rows"] for row in found["audit"]["sides"]) == changed
    assert "Who gets a different decision" in report.read_text(encoding="utf-8")
    as_json = here(*named, "--json").check().json
    assert as_json["audit"] == found["audit"]
    here("compare", "guess", "gess", path, "--target", "exam", "--sensitive", "race").refused(
        "'gess' is neither a folder nor a column", "guess"
    )
    here("compare", "guess", "guess", path).refused("two different systems")
    here("compare", "guess", "LOUD", path, "--target", "exam").refused("--sensitive is missing")


def test_a_model_and_a_column_are_compared(program, fitted, adult, predicted, tmp_path):
    """The model against its own predictions turned around in some rows."""
    table = pd.read_csv(adult)
    other = predicted["prediction"].to_numpy().copy()
    other[:50] = np.where(other[:50] == ">50K", "<=50K", ">50K")
    path = tmp_path / "with.csv"
    table.assign(old=other).to_csv(path, index=False)
    found = program("compare", "old", fitted[0], path, "--json").check().json
    assert found["changed"] == 50
    assert found["names"] == ["old", "model"]
    first = found["audit"]["baseline_verdicts"]
    assert {row["measure"] for row in first if row["asked"]} == {"equalized_odds"}


def test_nothing_asked_is_help_and_no_error(here):
    for arguments in ([], ["sql"]):
        ran = here(*arguments).check(0)
        assert "Usage: fairgrad" in ran.out
        assert ran.err == ""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_terminals_that_lack_signs(exam, encoding, tmp_path):
    _, table = exam
    names = {"White": "weiß", "Black": "שלום", "Inuit": "≤ ≥"}
    table.assign(race=table["race"].map(names)).to_csv(tmp_path / "odd.csv", index=False)
    command = [sys.executable, "-m", "fairgrad"]
    command += map(str, asked(tmp_path / "odd.csv", "exam", "guess"))
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "COLUMNS": "60"}
    explained = [*command, "--explain"]
    done = subprocess.run(explained, capture_output=True, env=environment, check=False)
    shown = done.stdout.decode(encoding)
    assert done.returncode == 0, done.stderr
    assert "<= >=" in shown
    assert "\\u05e9" in shown
    assert max(map(len, shown.splitlines())) <= 60
    as_json = subprocess.run([*command, "--json"], capture_output=True, env=environment, check=True)
    assert "race=שלום" in {row["group"] for row in json.loads(as_json.stdout)["audit"]["groups"]}


def test_a_model_no_better_than_a_constant_starts_red_everywhere(here, tmp_path):
    # the best of models on the rows of the fit, and useless on those that judge it
    rng = np.random.default_rng(0)
    n = 400
    hired, sex = rng.random(n) < 0.7, rng.choice(["F", "M"], n)
    table = pd.DataFrame({"skill": hired + rng.normal(0, 0.5, n), "sex": sex})
    table["hired"] = np.where(hired, "yes", "no")
    path, other, out = (tmp_path / name for name in ("people.csv", "other.csv", "model"))
    table.to_csv(path, index=False)
    table.assign(skill=-table["skill"], guess=rng.permutation(table["hired"])).to_csv(other)
    named = ["--target", "hired", "--sensitive", "sex"]
    said = "\N{BALLOT X} By accuracy the model is no better than a constant"

    ran = here("fit", path, *named, "--test", other, "--out", out).check()
    assert said in ran.out.replace("\n", " ")
    assert f"**{said}" in (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert re.search(r'<h1 class="bad"><bdi>. No better than a constant', page)

    ran = here("audit", other, *named, "--prediction", "guess").check()
    assert ran.out.replace("\n", " ").startswith(said)


@pytest.mark.parametrize(
    ("fair", "enough"),
    [
        (ModelFigures(0.7, 0.3, 0.25), 0.3),
        (ModelFigures(0.7, 0.1, 0.0), 0.12),
        (ModelFigures(0.5, 0.1, 0.0), None),
        (ModelFigures(0.8, 0.3, 0.25), 0.1),
    ],
)
def test_faults_on_pages_have_no_options_and_no_symbols(fair, enough):
    constants = [ModelFigures(0.6, 0.0, 0.0, np.zeros(9, dtype=int))]
    suggestions = Suggestions(asked=0.05, enough=enough, fewer=FEWER)
    plain = ModelFigures(0.82, 0.2, 0.2)
    fault = find_fault(fair, constants, plain, ["no", "yes"], suggestions, "validation")
    assert re.search(r"--(tolerance|use-sensitive|min-group)", in_terms(fault))
    assert not re.search(r"--|\||=|_|epsilon", in_terms(fault, on_pages=True))


@pytest.fixture(scope="session")
def unequal(tmp_path_factory):
    """Writes a table whose features tell who is hired, which differs so much between groups."""

    def write(gap):
        rng, n = np.random.default_rng(0), 4_000
        sex = rng.choice(["F", "M"], n)
        hired = rng.random(n) < np.where(sex == "M", 0.5 + gap / 2, 0.5 - gap / 2)
        table = pd.DataFrame({"sex": sex, "skill": hired + rng.normal(0, 0.1, n)})
        table["hired"] = np.where(hired, "yes", "no")
        path = tmp_path_factory.mktemp("unequal") / "people.csv"
        table.to_csv(path, index=False)
        return ["fit", path, "--target", "hired", "--sensitive", "sex", "--json", "--force"]

    return write


PARITY = ("--measure", "demographic_parity")


def test_a_frontier_says_what_is_wrong_with_the_chosen_model(here, unequal):
    named = unequal(0.7)[1:-2]
    shown = here("frontier", *named, *PARITY, "--points", 6).check().out
    assert re.search(r"^! Fairness costs \d+\.\d points", shown, re.MULTILINE)


@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_a_larger_tolerance_is_advised_where_it_helps(here, unequal, tmp_path, exact):
    asked = [*unequal(0.16), "--out", tmp_path / "m", *PARITY]
    (fault,) = here(*asked, *exact).check().json["faults"]
    assert fault.startswith("Fairness costs")
    advised = (
        r"--tolerance instead of --exact \((\S+) would"
        if exact
        else r"larger --tolerance \((\S+) would"
    )
    enough = re.search(advised, fault)
    assert not here(*asked, "--tolerance", enough[1]).check().json["faults"]


@pytest.mark.parametrize(
    ("gap", "options"),
    [(0.7, []), (0.7, ["--exact"]), (0.5, ["--tolerance", "0.2"]), (0.3, ["--tolerance", "80%"])],
)
def test_no_tolerance_is_advised_that_does_not_help(here, unequal, tmp_path, gap, options):
    measure = [] if "80%" in options else PARITY
    ran = here(*unequal(gap), "--out", tmp_path / "m", *measure, *options).check()
    (fault,) = ran.json["faults"]
    assert fault.startswith("Fairness costs")
    assert "Try --use-sensitive" in fault
    assert ("No --tolerance up to 0.2 avoids this" in fault) == (gap == 0.7)
