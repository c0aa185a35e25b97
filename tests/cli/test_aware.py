"""Models that look at sensitive columns to predict: --use-sensitive."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module", params=["network", "lightgbm"])
def fitted(request, program, people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("aware")
    table = people.assign(older=people["age"])
    table.loc[:40, "sex"] = None  # unknown for some
    table.to_csv(folder / "people.csv", index=False)
    ran = program(
        "fit", folder / "people.csv", "--target", "income", "--sensitive", "sex",
        "--sensitive", "older", "--bins", "older=40", "--separate", "--use-sensitive",
        "--model", request.param, "--epochs", 20, "--measure", "demographic_parity",
        "-o", folder / "model",
    ).check()  # fmt: skip
    return folder, table, ran


def test_people_are_told_what_the_model_looks_at(fitted):
    folder, _, ran = fitted
    assert "uses sex and older to predict" in " ".join((ran.out + ran.err).split())
    card = (folder / "model" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "sex, older; the model uses them to predict" in card
    known = json.loads((folder / "model" / "fairgrad.json").read_text(encoding="utf-8"))
    if known["settings"]["model"] == "network":  # decisions do not say it
        assert "If no value were known" in card
    assert [one["name"] for one in known["groups"]] == ["sex", "older"]
    names = list(known["features"])
    assert "sex" not in names
    assert "older" in names  # a number that is cut into groups is a feature as well


def test_predictions_depend_on_the_value_and_unknown_ones_do_not_fail(program, fitted):
    folder, table, _ = fitted
    people = [table[:200].assign(sex=sex) for sex in ("Female", "Male", "X", None)]
    pd.concat(people).to_csv(folder / "new.csv", index=False)
    ran = program("predict", folder / "model", folder / "new.csv", "-o", folder / "out.csv").check()
    assert "sex: 200 values never seen in training" in " ".join(ran.err.split())
    found = pd.read_csv(folder / "out.csv")["probability"].to_numpy().reshape(4, 200)
    assert np.abs(found[0] - found[1]).max() > 0.01
    np.testing.assert_array_equal(found[2], found[3])  # new is unknown


def test_a_missing_column_is_an_error(program, fitted, tmp_path):
    folder, table, _ = fitted
    table.drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)
    ran = program("predict", folder / "model", tmp_path / "new.csv")
    ran.refused("the table lacks the column 'sex', which the model needs to predict")


def test_it_can_be_audited_by_another_column(program, fitted):
    folder, *_ = fitted
    table = folder / "people.csv"
    ran = program("audit", folder / "model", table, "--sensitive", "relationship").check()
    assert "relationship" in ran.out


def test_a_frontier_of_aware_models(program, people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    ran = program(
        "frontier", tmp_path / "people.csv", "--target", "income", "--sensitive", "sex",
        "--use-sensitive", "--points", 6, "--epochs", 5, "--json",
    ).check()  # fmt: skip
    assert all(point["use_sensitive"] for point in ran.json["points"])
