"""``--model lightgbm``: fit, predict, audit and frontier with boosted trees."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from fairgrad import fairness_levels
from fairgrad.cli.request import ModelSettings
from fairgrad.cli.training import boosted_trees

FILES = {
    "MODEL_CARD.md", "audit.json", "fairgrad.json", "features.skops", "model.txt",
    "model.txt.fairness.json", "report.html", "test_rows.csv",
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


def test_writes_lightgbms_own_file(boosted, guesses):
    folder, found = boosted
    assert {file.name for file in folder.iterdir()} == FILES
    booster = lightgbm.Booster(model_file=folder / "model.txt")
    assert 0 < booster.num_trees() <= 100  # those that serve new rows best
    assert found["settings"]["model"] == "lightgbm"
    assert "Model: boosted trees" in (folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert ((guesses["probability"] > 0.5) == (guesses["prediction"] == ">50K")).all()


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


def test_the_choice_of_one_from_a_frontier_of_trees(program, adult, tmp_path):
    folder = tmp_path / "chosen"
    options = [*NAMED, "--epochs", 40, "--points", 4, "--min-accuracy", 0.7]
    program("fit", adult, *options, "--out", folder).check()
    assert FILES | {"frontier.csv"} == {file.name for file in folder.iterdir()}
    points = pd.read_csv(folder / "frontier.csv")
    assert points["epsilon"].tolist()[::3] == [0.0, np.inf]
    assert points["validation_unfairness"].iloc[0] < points["validation_unfairness"].iloc[3]


@pytest.mark.parametrize("given", [{"hidden": (8,)}, {"batch_size": 64}, {"paper_grid": True}])
def test_options_of_networks_are_refused(given):
    with pytest.raises(ValueError, match="leave it out with --model lightgbm"):
        ModelSettings(model="lightgbm", **given)


def test_the_same_seed_gives_the_same_trees(people):
    X, y = people[["age", "education-num", "hours-per-week"]].to_numpy(float), people["income"]
    models = [
        boosted_trees(ModelSettings(seed=seed, epochs=30), len(X), "equalized_odds").fit(
            X, y, sensitive_features=people["sex"]
        )
        for seed in (3, 3, 4)
    ]
    first, second, other = (model.predict_proba(X) for model in models)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_folder_that_lost_its_trees(program, adult, boosted, tmp_path):
    folder = tmp_path / "half"
    folder.mkdir()
    for name in FILES - {"model.txt"}:
        (folder / name).write_bytes((boosted[0] / name).read_bytes())
    program("predict", folder, adult).refused("model.txt")
