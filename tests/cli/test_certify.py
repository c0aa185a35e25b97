"""``fairgrad certify``: a model that is certified, or none."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from fairgrad.files import read_sealed


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same people: many of them, and few; and others."""
    folder = tmp_path_factory.mktemp("certify")
    table, new = drawn(0, 9_000), drawn(1, 2_400)
    parts = {"many": table, "few": table[:1200], "new": new[:1200], "newer": new[1200:]}
    for name, part in parts.items():
        part.to_csv(folder / f"{name}.csv", index=False)
    # Training rows, as another program would write them.
    table[:3000][::-1].to_csv(folder / "copy.csv", index=False, sep=";", quoting=1)
    return folder


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    skill, luck = rng.normal(size=n) + 0.4 * (sex == "M"), rng.normal(size=n)
    hired = np.where(skill + luck > 0.4, "yes", "no")
    return pd.DataFrame({"sex": sex, "skill": skill, "grade": rng.normal(size=n), "hired": hired})


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
    assert "It would have passed at a tolerance of" in said
    assert not list(out.glob("model*"))
    assert "Not certified" in (out / "report.html").read_text("utf-8")
    program("predict", str(out), str(tables / "few.csv")).refused("none")


def test_rows_of_a_file_of_their_own_decide(program, tables, tmp_path):
    test = ["--test", str(tables / "new.csv"), "--tolerance", "0.3", "--json"]
    found = program(*asked(tables, "many", tmp_path / "own", *test)).check()
    assert found.json["certificate"]["fresh_rows"] == 1200
    assert found.json["certificate"]["chosen_from"] == 6
    assert found.json["certificate"]["overlap"] == [0, 0]


def test_known_rows_certify_nothing(here, tables, tmp_path):
    same = ["--test", str(tables / "few.csv")]
    here(*asked(tables, "few", tmp_path / "x", *same)).refused("--test", "training table")
    # Another file, with rows of the training table.
    here(*asked(tables, "many", tmp_path / "x", *same)).refused("1,200 of 1,200 rows equal a row")
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


@pytest.fixture
def model(fitted, tmp_path):
    """A copy of a fitted model's folder."""
    return shutil.copytree(fitted, tmp_path / "model")


@pytest.fixture(scope="module")
def fitted(program, tables):
    folder = tables / "fitted"
    named = ["--target", "hired", "--sensitive", "sex", "--measure", "demographic_parity"]
    program("fit", tables / "many.csv", *named, "-o", folder).check()
    return folder


def test_looks_at_a_model_are_recorded_and_share_one_error(here, tables, model):
    first = here("certify", model, tables / "new.csv", "--tolerance", "0.2", "--json").check().json
    assert first["certificate"]["certified"]
    assert first["certificate"]["overlap"] == [0, 0]
    assert first["certificate"]["look"] == 1
    assert first["certificate"]["confidence"] == pytest.approx(0.95)
    assert first["audit"]["confidence"] == pytest.approx(0.96)
    second = here("certify", model, tables / "newer.csv", "--tolerance", "0.2").check()
    said = " ".join(second.out.split())
    assert "Certified with 95 % confidence" in said
    assert "1,200 rows stated to be new (look 2 at this model" in said
    assert "0 rows equal a training row" in said
    # The same question again tells nothing new.
    again = here("certify", model, tables / "new.csv", "--tolerance", "0.2", "--json").check().json
    assert again["certificate"] == first["certificate"]
    stricter = here("certify", model, tables / "new.csv", "--tolerance", "0.01").check(1)
    assert "Not certified" in stricter.out
    looks = read_sealed((model / "looks.json").read_text("utf-8"))["looks"]
    assert [one["certificate"]["look"] for one in looks] == [1, 2, 3]
    assert [one["table"] for one in looks] == ["new.csv", "newer.csv", "new.csv"]
    # The folder is still one that may be replaced, and a model that predicts.
    here("predict", model, tables / "new.csv", "-o", model.parent / "p.csv").check()


def test_training_rows_do_not_certify_a_model(here, tables, model):
    here("certify", model, tables / "many.csv").refused("many.csv", "trained on", "new rows")
    here("certify", model, tables / "copy.csv").refused("3,000 rows equal a row", "trained on")
    assert not (model / "looks.json").exists()
    assert (model / "training_rows.npz").stat().st_mode & 0o077 == 0
    (model / "training_rows.npz").unlink()  # as before publishing the model
    said = here("certify", model, tables / "new.csv", "--tolerance", "0.2").check().err
    assert "not compared with the training rows" in " ".join(said.split())


def test_a_model_is_not_trained_again(here, tables, model):
    here("certify", model).refused("add a table of new rows")
    here("certify", model, tables / "new.csv", "--seed", "3").refused("--seed has no effect")
    here("certify", model, tables / "new.csv", "-o", "x").refused("--out has no effect")
    here("certify", tables / "new.csv", "-o", model / "x").refused("--target")
    (model / "looks.json").write_text("{")
    here("certify", model, tables / "new.csv").refused("looks.json is damaged")
