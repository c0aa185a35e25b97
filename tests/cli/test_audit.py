"""``fairgrad audit`` on predictions of any system, and its exit codes."""

import json
import re

import jsonschema
import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

from fairgrad.audit import audit_schema


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Predictions that favour one group, with truth as numbers and predictions as floats."""
    rng = np.random.default_rng(0)
    n = 4000
    group = rng.choice(["young", "old"], n)
    truth = rng.integers(2, size=n)
    biased = np.where(rng.random(n) < np.where(group == "old", 0.35, 0.05), 1 - truth, truth)
    fair = np.where(rng.random(n) < 0.02, 1 - truth, truth)
    path = tmp_path_factory.mktemp("scored") / "scored.csv"
    table = pd.DataFrame(
        {"truth": truth, "biased": biased.astype(float), "fair": fair, "age group": group}
    )
    table.loc[:4, "age group"] = None
    table.to_csv(path, index=False)
    return path


def test_unfair_predictions_fail_only_when_asked(program, scored):
    named = ["--target", "truth", "--sensitive", "age group"]
    judged = ["--measure", "accuracy_parity"]
    asked = ["--fail-on", "unfair"]
    ran = program("audit", scored, *named, *judged, "--prediction", "biased", *asked).check(1)
    assert "unfair" in ran.out
    program("audit", scored, *named, *judged, "--prediction", "biased").check(0)
    ran = program("audit", scored, *named, *judged, "--prediction", "fair", *asked).check(0)
    assert "judged fair" in " ".join(ran.out.split())


def test_figures_equal_fairlearns(program, scored, tmp_path):
    out, report = tmp_path / "audit.json", tmp_path / "report.html"
    found = program(
        "audit", scored, "--target", "truth", "--prediction", "biased",
        "--sensitive", "age group", "-o", out, "--report", report, "--json",
    ).check().json  # fmt: skip
    table = pd.read_csv(scored).dropna()
    for name, function in {
        "demographic_parity_difference": demographic_parity_difference,
        "equalized_odds_difference": equalized_odds_difference,
    }.items():
        truth = function(
            table["truth"], table["biased"], sensitive_features=table["age group"].astype(str)
        )
        own = next(f["value"] for f in found["audit"]["figures"] if f["figure"] == name)
        assert own == pytest.approx(truth)
    assert found["verdict"] == "unfair"
    assert json.loads(out.read_text(encoding="utf-8")) == found["audit"]
    assert "age group" in report.read_text(encoding="utf-8")
    assert any(w["message"].startswith("5 ") for w in found["audit"]["warnings"])  # set aside


def test_the_80_percent_rule(program, scored):
    found = program(
        "audit", scored, "--target", "truth", "--prediction", "fair", "--sensitive", "age group",
        "--tolerance", "80%", "--json",
    ).check().json  # fmt: skip
    verdicts = {v["measure"]: v for v in found["audit"]["verdicts"]}
    assert verdicts["demographic_parity"]["judged_by"] == "ratio"
    assert verdicts["demographic_parity"]["tolerance"] == 0.8
    assert verdicts["equalized_odds"]["tolerance"] == 0.05


def test_what_is_missing_is_said(program, scored, fitted):
    program("audit", scored, "--target", "truth", "--sensitive", "age group").refused(
        "--prediction is missing"
    )
    program("audit", fitted[0]).refused("is a folder", "table.csv")
    program(
        "audit", scored, "--target", "truth", "--prediction", "fiar", "--sensitive", "age group"
    ).refused("--prediction", "did you mean 'fair'")


def test_three_labels_as_numbers(program, tmp_path):
    """Labels 1, 2, 3 beside predictions 1.0, 2.0, 3.0; no label is desirable unless named."""
    rng = np.random.default_rng(1)
    truth = rng.integers(1, 4, 600)
    guess = np.where(rng.random(600) < 0.2, 1, truth)
    weights = rng.random(600)
    frame = pd.DataFrame(
        {"y": truth, "h": guess.astype(float), "s": rng.choice([0, 1], 600), "w": weights}
    )
    frame.to_csv(tmp_path / "three.csv", index=False)
    named = ["--target", "y", "--prediction", "h", "--sensitive", "s", "--weight", "w", "--json"]
    found = program("audit", tmp_path / "three.csv", *named).check().json["audit"]
    assert found["labels"] == ["1", "2", "3"]
    assert found["weighted"] is True
    assert "equality_of_opportunity" not in {v["measure"] for v in found["verdicts"]}
    accuracy = {r["group"]: r["value"] for r in found["rates"] if r["rate"] == "accuracy"}
    assert accuracy["overall"] == pytest.approx(np.average(truth == guess, weights=weights))


@pytest.mark.parametrize(("low", "high"), [(1, 2), ("no", "yes"), (0, 1)])
def test_the_second_value_is_desirable_unless_another_is_named(program, tmp_path, low, high):
    """The same in fit and audit, in words and JSON, and without an option."""
    rng = np.random.default_rng(2)
    group, skill = rng.choice(["f", "m"], 400), rng.normal(size=400)
    truth = np.where(skill + (group == "m") > 0.5, high, low)
    guess = np.where(rng.random(400) < 0.2, low, truth)
    path = tmp_path / "two.csv"
    pd.DataFrame({"y": truth, "h": guess, "skill": skill, "s": group}).to_csv(path, index=False)
    named = ["--target", "y", "--sensitive", "s"]
    audit = ["audit", path, *named, "--prediction", "h"]
    assert f"selected means y {high}" in program(*audit).check().out
    for options, desirable in (([], high), (["--desirable", low], low)):
        found = program(*audit, *options, "--json").check().json
        assert found["desirable"] == found["audit"]["desirable"] == [str(desirable)]
    fit = ["fit", path, *named, "--drop", "h", "--epochs", 2, "--folds", 0]
    ran = program(*fit, "--out", tmp_path / "model").check()
    assert f"selected means y {high}" in ran.out
    assert f"desirable: {high}\n" in (tmp_path / "model" / "MODEL_CARD.md").read_text()
    found = program(*fit, "--desirable", low, "--json", "--out", tmp_path / "other").check().json
    assert found["desirable"] == found["settings"]["desirable"] == str(low)
    assert found["audit"]["desirable"] == [str(low)]


def test_rows_of_one_person_are_not_independent(program, tmp_path):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(400), 5)
    group = np.where(person % 2, "f", "m")
    chosen = np.where(np.repeat(rng.random(400) < 0.4, 5), "yes", "no")
    frame = pd.DataFrame({"person": person, "s": group, "h": chosen, "caseID": person})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    asked = ["audit", tmp_path / "rows.csv", "--prediction", "h", "--sensitive", "s", "--json"]
    alone = program(*asked).check().json["audit"]["rates"][0]
    assert any("--cluster caseID" in note for note in program(*asked).check().json["notes"])
    clustered = program(*asked, "--cluster", "person").check().json
    assert not any("--cluster" in note for note in clustered["notes"])
    together = clustered["audit"]["rates"][0]
    assert alone["value"] == together["value"]
    assert alone["trials"] == pytest.approx(5 * together["trials"])
    program(*asked, "--cluster", "h2").refused("h2")


def test_decisions_without_a_target(program, scored, tmp_path):
    out = tmp_path / "audit.json"
    named = ["--prediction", "biased", "--sensitive", "age group"]
    found = program("audit", scored, *named, "-o", out, "--json").check().json["audit"]
    jsonschema.validate(json.loads(out.read_text(encoding="utf-8")), audit_schema())
    assert found["has_labels"] is False
    assert {row["measure"] for row in found["verdicts"]} == {
        "demographic_parity",
        "four_fifths_rule",
    }
    table = pd.read_csv(scored)
    old = next(row for row in found["rates"] if row["group"] == "age group=old")
    assert old["value"] == pytest.approx(table["biased"][table["age group"] == "old"].mean())
    ran = program("audit", scored, *named, "--measure", "equalized_odds")
    ran.refused("compares predictions with true labels", "--target")
    program("audit", scored, "--prediction", "biased").refused("--sensitive is missing")
    twice = ("--prediction", "biased", "--target", "biased", "--sensitive", "age group")
    program("audit", scored, *twice).refused("--target and --prediction both name 'biased'")


def test_the_table_of_local_law_144(program, scored, tmp_path):
    table = pd.read_csv(scored)
    table["score"] = np.arange(len(table)) % 97 + 3.0 * (table["age group"] == "old")
    table.loc[7, "score"] = None
    path, out = tmp_path / "people.csv", tmp_path / "impact.csv"
    table.to_csv(path, index=False)
    asked = ["--sensitive", "age group"]
    ran = program("impact", path, "--score", "score", *asked, "-o", out).check()
    assert "3,999 people were assessed. Their median score is" in ran.out
    assert "1 of 4,000 rows is left out for lack of a target (score)" in ran.err + ran.out
    written = pd.read_csv(out).set_index("category")
    known = table.dropna(subset=["score"])
    above = (known["score"] > known["score"].median()).groupby(known["age group"]).mean()
    assert written["rate"]["young"] == pytest.approx(above["young"])
    assert written["number"]["unknown"] == 5
    found = program("impact", path, "--prediction", "fair", *asked, "--json").check().json
    assert found["rate"] == "selection rate"
    assert found["provenance"]["data"][0]["name"] == "people.csv"
    assert max(row["impact_ratio"] or 0 for row in found["categories"]) == 1


def test_impact_ratios_of_scores_and_a_threshold_are_those_of_the_decisions(here, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"score": rng.random(400), "sex": rng.choice(["f", "m"], 400)})
    table["hired"] = np.where(table["score"] >= 0.6, "yes", "no")
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    asked = ("impact", path, "--sensitive", "sex", "--json")
    scored = here(*asked, "--score", "score", "--threshold", "0.6").check().json
    decided = here(*asked, "--prediction", "hired").check().json
    assert scored["rate"] == "selection rate"
    rows = [[{**row, "label": ""} for row in one["categories"]] for one in (scored, decided)]
    assert rows[0] == rows[1]


def test_impact_takes_the_options_that_its_error_suggests(here, tmp_path):
    table = tmp_path / "decisions.csv"
    table.write_text("hired,sex\n" + "yes,f\ny,f\nno,f\nn,m\nyes,m\n" * 40)
    asked = [table, "--prediction", "hired", "--sensitive", "sex", "--json"]
    said = here("impact", *asked).check(2).err
    (suggested,) = re.findall(r'--map "(.+?)"', " ".join(said.split()))
    rows = here("impact", *asked, "--map", suggested).check().json["categories"]
    assert {row["category"]: row["rate"] for row in rows} == {"f": 2 / 3, "m": 0.5}


def test_impact_ratios_set_the_exit_code(here, tmp_path):
    """A ratio of 0.29 on 400 rows is surely below 0.8; one of 0.75 on 40 rows is not."""
    ratios = {"low": ([70, 20], 200, "unfair"), "unclear": ([8, 6], 20, "undecided")}
    for name, (selected, n, verdict) in ratios.items():
        path = tmp_path / f"{name}.csv"
        rows = [(sex, int(i < k)) for sex, k in zip("MF", selected, strict=True) for i in range(n)]
        pd.DataFrame(rows, columns=["sex", "p"]).to_csv(path, index=False)
        asked = ["impact", path, "--prediction", "p", "--sensitive", "sex", "--json"]
        assert here(*asked).check(0).json["verdict"] == verdict
        here(*asked, "--fail-on", "undecided").check(1)
        here(*asked, "--fail-on", "unfair").check(int(verdict == "unfair"))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("impact", ["--search", "age group"]),
        ("sql counts --dialect duckdb", ["--fail-on", "unfair"]),
        ("sql counts --dialect duckdb", ["-o", "query.sql"]),
        ("sql counts --dialect duckdb", ["--report", "page.html"]),
        ("monitor", ["--period", "week"]),
        ("audit", ["--held-out"]),
        ("audit", ["--force"]),
        ("audit", ["--counts", "--search", "other"]),
        ("impact", ["--score", "fair"]),
    ],
)
def test_an_option_without_effect_is_refused(here, scored, command, option):
    named = ["--prediction", "biased", "--sensitive", "age group"]
    refused = "--search" if "--search" in option else option[0]
    here(*command.split(), scored, *named, *option).refused(refused)


def test_an_audit_of_two_groups_fits_one_screen(here, tmp_path):
    """Sentences, the table of groups and the next step; the rest is for --explain."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"y": rng.integers(0, 2, 900), "sex": rng.choice(["f", "m"], 900)})
    table["h"] = np.where(rng.random(900) < 0.8, table["y"], 1 - table["y"])
    table.to_csv(tmp_path / "people.csv", index=False)
    asked = ["audit", tmp_path / "people.csv", "--target", "y", "--prediction", "h"]
    asked += ["--sensitive", "sex"]
    shown = here(*asked).check()
    lines = shown.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "Next:" in shown.out
    assert "Clopper" not in shown.out
    explained = here(*asked, "--explain").check().out
    assert "Clopper" in explained
    here(*asked, "--explain", "--json").refused("--explain")
