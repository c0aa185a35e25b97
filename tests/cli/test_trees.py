"""``--model lightgbm|xgboost``: fit, predict, audit and frontier with boosted trees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from fairgrad import fairness_levels, persistence
from fairgrad.cli.request import FitRequest
from fairgrad.cli.training import boosted_trees
from fairgrad.tables.roles import ColumnRoles

FILES = {
    "MODEL_CARD.md", "audit.json", "fairgrad.json", "model.skops", "report.html",
    "test_rows.csv", "training_rows.npz",
}  # fmt: skip
NAMED = ["--target", "income", "--sensitive", "sex", "--model", "lightgbm"]


@pytest.fixture(scope="module")
def boosted(program, adult, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    options = [*NAMED, "--measure", "demographic_parity", "--epochs", 100]
    return folder, program("fit", adult, *options, "--out", folder, "--json").check().json


@pytest.fixture(scope="module")
def guesses(program, boosted, adult, tmp_path_factory):
    out = tmp_path_factory.mktemp("predicted") / "out.csv"
    program("predict", boosted[0], adult, "-o", out).check()
    return pd.read_csv(out, dtype={"prediction": str})


def test_the_model_holds_the_trees(boosted, guesses):
    folder, found = boosted
    assert {file.name for file in folder.iterdir()} == FILES
    trees = persistence.load(folder / "model.skops")[-1].label_model_[0]
    assert 0 < trees.booster_.num_trees() <= 100
    assert found["settings"]["model"] == "lightgbm"
    assert "boosted trees" in (folder / "MODEL_CARD.md").read_text("utf-8")
    assert guesses["probability"].between(0, 1).all()


def test_it_is_fairer_than_the_plain_trees(boosted):
    _, found = boosted
    rates = [
        row
        for row in found["audit"]["changes"]
        if row["rate"] == "selection_rate" and row["group"].startswith("sex=")
    ]
    before, after = (abs(rates[0][when] - rates[1][when]) for when in ("before", "after"))
    assert after < 0.5 * before
    assert found["accuracy"] > 0.75


def test_an_audit_of_the_folder_is_one_of_its_predictions(program, boosted, guesses, adult, people):
    found = program("audit", boosted[0], adult, "--json").check().json
    predicted = guesses["prediction"]
    rates = {(row["group"], row["rate"]): row["value"] for row in found["audit"]["rates"]}
    assert rates["overall", "accuracy"] == pytest.approx(
        accuracy_score(people["income"], predicted)
    )
    levels = fairness_levels(people["income"], predicted, people["sex"], "demographic_parity")
    parity = {row["measure"]: row for row in found["audit"]["verdicts"]}["demographic_parity"]
    assert parity["unfairness"] == pytest.approx(levels.unfairness)


def test_a_frontier_of_trees(program, adult, tmp_path):
    folder = tmp_path / "chosen"
    options = [*NAMED, "--epochs", 40, "--points", 6, "--min-accuracy", 0.7]
    program("frontier", adult, *options, "--out", folder).check()
    assert FILES | {"frontier.csv"} == {file.name for file in folder.iterdir()}
    points = pd.read_csv(folder / "frontier.csv")
    assert points["epsilon"].tolist()[::5] == [0.0, np.inf]
    assert points["validation_unfairness"].iloc[0] < points["validation_unfairness"].iloc[5]


def test_layers_are_for_networks(here, adult, tmp_path):
    named = ["--target", "income", "--sensitive", "sex", "--out", tmp_path / "model"]
    asked = ["fit", adult, *named, "--model", "lightgbm", "--layers", "8"]
    here(*asked).refused("--layers has no effect with --model lightgbm")


def test_the_same_seed_gives_the_same_trees(people):
    X, y = people[["age", "education-num", "hours-per-week"]].to_numpy(float), people["income"]
    asked = {"columns": ColumnRoles("income", ("sex",)), "model": "lightgbm", "epochs": 30}
    models = [boosted_trees(FitRequest(**asked, seed=seed), len(X)).fit(X, y) for seed in (3, 3, 4)]
    first, second, other = (model.predict_proba(X) for model in models)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_trees_of_xgboost(program, adult, tmp_path):
    """XGBoost takes codes for labels; the program has texts."""
    pytest.importorskip("xgboost")
    folder = tmp_path / "model"
    named = ["--target", "income", "--sensitive", "sex", "--model", "xgboost", "--epochs", 20]
    found = program("fit", adult, *named, "--out", folder, "--json").check().json
    assert found["accuracy"] > 0.75
    again = program("audit", folder, adult, "--held-out", "--json").check().json
    assert again["audit"]["rates"] == found["audit"]["rates"]
