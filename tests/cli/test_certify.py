"""``fairgrad certify``: a model is judged on new rows, and each look is recorded."""

import shutil

import numpy as np
import pandas as pd
import pytest

from fairgrad.files import read_sealed


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Rows to train on, and others."""
    folder = tmp_path_factory.mktemp("certify")
    table, new = drawn(0, 9_000), drawn(1, 2_400)
    parts = {"many": table, "new": new[:1200], "newer": new[1200:]}
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


def test_what_certify_needs(here, tables, model):
    here("certify", model).refused("TABLE")
    here("certify", tables / "new.csv", tables / "newer.csv").refused("folder of a model")
    (model / "looks.json").write_text("{")
    here("certify", model, tables / "new.csv").refused("looks.json is damaged")
