"""``fairgrad certify``: a model that is certified, or none."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same people: many of them, and few."""
    rng = np.random.default_rng(0)
    n = 9_000
    sex = rng.choice(["F", "M"], n)
    skill, luck = rng.normal(size=n) + 0.4 * (sex == "M"), rng.normal(size=n)
    hired = np.where(skill + luck > 0.4, "yes", "no")
    table = pd.DataFrame({"sex": sex, "skill": skill, "grade": rng.normal(size=n), "hired": hired})
    folder = tmp_path_factory.mktemp("certify")
    for name, part in {"many": table, "few": table[:1200]}.items():
        part.to_csv(folder / f"{name}.csv", index=False)
    return folder


def asked(tables, name, out, *more):
    named = ["--target", "hired", "--sensitive", "sex", "--measure", "demographic_parity"]
    return ["certify", str(tables / f"{name}.csv"), *named, "--points", "6", "-o", str(out), *more]


def test_a_certified_model_is_written_and_everything_says_so(program, tables, tmp_path):
    out = tmp_path / "model"
    found = program(*asked(tables, "many", out, "--tolerance", "0.12", "--json")).check()
    certificate = found.json["certificate"]
    assert certificate["certified"]
    assert certificate["fresh_rows"] == found.json["rows"]["test"] == pytest.approx(1800, abs=2)
    assert certificate["chosen_from"] == 6
    assert certificate["tolerance"] == {"demographic_parity": 0.12}
    sentence = certificate["sentence"]
    assert sentence.startswith("Certified with 95 % confidence: fair by demographic parity")
    assert (out / "model.skops").exists()
    assert json.loads((out / "audit.json").read_text("utf-8"))["certificate"] == certificate
    saved = json.loads((out / "fairgrad.json").read_text("utf-8"))
    assert saved["settings"]["certificate"] == certificate
    card = (out / "MODEL_CARD.md").read_text("utf-8")
    assert "## Certificate" in card
    assert "it needs new rows" in card.replace("\n", " ")
    assert "stated to be new" in (out / "report.html").read_text("utf-8")
    points = pd.read_csv(out / "frontier.csv")
    assert not [name for name in points if name.startswith("test")]  # they were looked at once


def test_without_a_certificate_there_is_no_model(program, tables, tmp_path):
    out = tmp_path / "none"
    found = program(*asked(tables, "few", out, "--tolerance", "0.03")).check(1)
    said = " ".join(found.out.split())
    assert said.count("Not certified with 95 % confidence") == 1
    assert "No model is written." in said
    assert "it could have been a tolerance of" in said
    assert not list(out.glob("model*"))
    assert "Not certified" in (out / "report.html").read_text("utf-8")
    program("predict", str(out), str(tables / "few.csv")).refused("none")


def test_rows_of_a_file_of_their_own_decide(program, tables, tmp_path):
    test = ["--test", str(tables / "few.csv"), "--tolerance", "0.3", "--json"]
    found = program(*asked(tables, "many", tmp_path / "own", *test)).check()
    assert found.json["certificate"]["fresh_rows"] == 1200
    assert found.json["certificate"]["chosen_from"] == 6


def test_known_rows_certify_nothing(here, tables, tmp_path):
    same = ["--test", str(tables / "few.csv")]
    here(*asked(tables, "few", tmp_path / "x", *same)).refused("--test", "training table")
    assert not (tmp_path / "x").exists()


def test_a_certificate_that_costs_much_says_so_first(program, tmp_path):
    """Features tell the groups apart: a blind model is fair if it tells hardly anybody apart."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 9_000)
    skill, luck = rng.normal(size=(2, 9_000))
    skill += 4 * (sex == "M")
    hired = np.where(skill + luck + rng.normal(size=9_000) > 2, "yes", "no")
    table = pd.DataFrame({"sex": sex, "skill": skill, "luck": luck, "hired": hired})
    table.to_csv(tmp_path / "many.csv", index=False)
    out = tmp_path / "model"
    found = program(*asked(tmp_path, "many", out, "--tolerance", "0.12")).check()
    verdict, rest = " ".join(found.out.split()).split("Fairness costs ", maxsplit=1)
    assert "Compared with" not in verdict  # it is among the first lines
    assert "Try a larger --tolerance" in rest
    assert "--use-sensitive" in rest.split("Compared with")[0]
    assert "Fairness costs" in (out / "MODEL_CARD.md").read_text("utf-8")
    assert "Fairness costs" in (out / "report.html").read_text("utf-8")
