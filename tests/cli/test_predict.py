"""``fairgrad predict`` on tables that are not quite those of the training."""

import json
import shutil

import pandas as pd


def test_keeps_the_table_and_adds_predictions(predicted, adult, read):
    pd.testing.assert_frame_equal(predicted[list(read(adult))], read(adult))
    probability = predicted["probability"].astype(float)
    assert ((probability > 0.5) == (predicted["prediction"] == ">50K")).all()
    assert predicted["prediction"].nunique() == 2


def test_other_order_extra_columns_no_sensitive_column(
    program, fitted, people, predicted, tmp_path
):
    table = people.drop(columns=["sex", "income"])[::-1].assign(shoe_size=43)
    table[sorted(table)].to_parquet(tmp_path / "other.parquet")
    out = tmp_path / "out.parquet"
    out.write_text("of yesterday")
    ran = program(
        "predict", fitted[0], tmp_path / "other.parquet", "-o", out, "--json", "--force"
    ).check()
    found = pd.read_parquet(out)[::-1].reset_index(drop=True)
    assert found["prediction"].tolist() == predicted["prediction"].tolist()
    assert ran.json["rows"] == 3000
    assert ran.json["predicted"] == predicted["prediction"].value_counts().to_dict()
    assert ran.json["notes"] == []


def test_unseen_and_missing_values_are_counted_and_ignored(program, fitted, people, tmp_path):
    """Two pairs of rows that mean the same: an unseen and a missing category; a gap, its fill."""
    odd = people.iloc[[0, 0, 1, 1]].reset_index(drop=True).astype(object)
    odd.loc[0, "occupation"], odd.loc[1, "occupation"] = "Astronaut", None
    known = json.loads((fitted[0] / "fairgrad.json").read_text(encoding="utf-8"))
    median = next(f["median"] for f in known["features"] if f["name"] == "age")
    odd.loc[2, "age"], odd.loc[3, "age"] = None, median
    odd.to_csv(tmp_path / "odd.csv", index=False)
    ran = program("predict", fitted[0], tmp_path / "odd.csv").check()
    said = " ".join(ran.err.split())
    assert "occupation: 1 value never seen in training, taken as none of the known." in said
    assert "occupation: 1 value missing, taken as none of the known." in said
    assert "age: 1 value missing, taken as the median." in said
    probability = [float(line.rsplit(",", 1)[1]) for line in ran.out.splitlines()[1:]]
    assert probability[0] == probability[1] != probability[2]
    assert probability[2] == probability[3]


def test_missing_columns_are_named(program, fitted, people, tmp_path):
    people.drop(columns=["age", "occupation"]).to_csv(tmp_path / "less.csv", index=False)
    program("predict", fitted[0], tmp_path / "less.csv").refused("lacks", "'age'", "'occupation'")


def test_texts_where_numbers_were(program, fitted, people, tmp_path):
    wrong = people.head(3).astype({"age": object})
    wrong.loc[1, "age"] = "forty"
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    out = tmp_path / "out.csv"
    program("predict", fitted[0], tmp_path / "wrong.csv", "-o", out).refused("'age'", "'forty'")
    assert {file.name for file in tmp_path.iterdir()} == {"wrong.csv"}


def test_an_output_is_not_overwritten_unasked(program, fitted, adult, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    program("predict", fitted[0], adult, "-o", out).refused("exists", "--force")
    assert out.read_text() == "mine"


def test_a_model_of_a_newer_version_or_no_model(program, fitted, adult, tmp_path):
    folder = tmp_path / "newer"
    shutil.copytree(fitted[0], folder)
    known = json.loads((folder / "fairgrad.json").read_text(encoding="utf-8"))
    (folder / "fairgrad.json").write_text(json.dumps({**known, "schema_version": 99}))
    program("predict", folder, adult).refused("damaged", "checksum")
    del known["sealed"], known["checksum"]
    (folder / "fairgrad.json").write_text(json.dumps({**known, "schema_version": 99}))
    program("predict", folder, adult).refused("newer", "upgrade")
    program("predict", tmp_path, adult).refused("fairgrad.json", "fairgrad fit")


def test_a_strangers_model_runs_no_code(program, fitted, adult, tmp_path):
    folder = tmp_path / "stranger"
    shutil.copytree(fitted[0], folder)
    proof = tmp_path / "proof"
    evil = f"import os; os.system('touch {proof}')"
    (folder / "model.skops").write_bytes(
        b"cbuiltins\nexec\n(V" + evil.encode("unicode_escape") + b"\ntR."
    )
    program("predict", folder, adult).refused("model")
    assert not proof.exists()
