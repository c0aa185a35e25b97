"""How a model becomes fair: --method."""

import json
from zipfile import ZIP_DEFLATED, ZipFile

import pandas as pd
import pytest

from fairgrad.evaluate import fairness_levels
from fairgrad.persistence import MAX_UNPACKED


@pytest.fixture(scope="module")
def table(people, tmp_path_factory):
    path = tmp_path_factory.mktemp("method") / "people.csv"
    people.to_csv(path, index=False)
    return path


def fit(here, table, folder, *further):
    return here(
        "fit", table, "--target", "income", "--sensitive", "sex", "--measure",
        "demographic_parity", "--folds", 0, "-o", folder, *further,
    )  # fmt: skip


@pytest.mark.parametrize(
    "further",
    [
        (),
        ("--hidden", 4, "--epochs", 5),
        ("--use-sensitive",),
        ("--model", "lightgbm", "--epochs", 20),
    ],
)
def test_fair_decisions_on_a_plain_model(here, table, tmp_path, further):
    ran = fit(here, table, tmp_path / "model", "--method", "decision", *further).check()
    assert "fair decisions on a plain model" in (tmp_path / "model/MODEL_CARD.md").read_text()
    here("predict", tmp_path / "model", table, "-o", tmp_path / "predicted.csv").check()
    found = pd.read_csv(tmp_path / "predicted.csv")
    levels = fairness_levels(
        found["income"], found["prediction"], found["sex"], "demographic_parity"
    )
    assert levels.unfairness < 0.03
    assert "Undecided" in ran.out or "Fair" in ran.out
    audit = here("audit", tmp_path / "model", table, "--held-out", "--json").check().json
    saved = json.loads((tmp_path / "model/audit.json").read_text())
    assert audit["audit"]["rows"] == saved["rows"]
    assert audit["conclusion"].startswith(("Fair", "Undecided"))


def test_the_better_method_is_taken_and_the_reason_is_said(here, table, tmp_path):
    ran = fit(here, table, tmp_path / "model", "--method", "auto").check()
    said = " ".join((ran.out + ran.err).split())
    assert "Of the two methods, the model is" in said
    assert "on the validation rows it has an accuracy of" in said


def test_trees_by_the_better_method_and_a_folder_that_lost_a_file(here, table, tmp_path):
    model = tmp_path / "model"
    trees = ("--model", "lightgbm", "--epochs", 20)
    ran = fit(here, table, model, "--method", "auto", *trees).check()
    assert "Of the two methods, the model is" in " ".join((ran.out + ran.err).split())
    here("predict", model, table, "-o", tmp_path / "predicted.csv").check()
    fit(here, table, model, "--method", "decision", "--force", *trees).check()
    groups = model / "groups.zip"
    content = groups.read_bytes()
    with ZipFile(groups, "w", ZIP_DEFLATED) as bomb:
        bomb.writestr("0-0.txt", bytes(MAX_UNPACKED + 1))
    here("predict", model, table).refused("groups.zip was refused", "bytes unpack to")
    with ZipFile(groups, "w") as empty:
        empty.writestr("../outside", "")
    here("predict", model, table).refused("groups.zip is damaged", "is missing")
    groups.write_bytes(content[: len(content) // 2])
    here("predict", model, table).refused("groups.zip was refused")
    (model / "decisions.skops").unlink()
    here("predict", model, table).refused("decisions.skops is missing")


def test_what_does_not_go_together_is_refused(here, table, tmp_path):
    ran = fit(here, table, tmp_path / "m", "--method", "auto", "--max-unfairness", 0.1)
    ran.refused("--method auto")
    assert not (tmp_path / "m").exists()
