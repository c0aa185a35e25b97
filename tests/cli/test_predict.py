"""``fairgrad predict`` on tables that are not quite those of the training."""

import json
import shutil

import pandas as pd

from fairgrad import persistence


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
    encoder = persistence.load(fitted[0] / "model.skops")[0]
    median = next(one.median for one in encoder.features_ if one.name == "age")
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


def test_columns_that_an_audit_of_the_model_lacks_are_not_said_to_be_options(
    here, fitted, people, tmp_path
):
    for column, holds in {"income": "true values", "sex": "groups"}.items():
        people.drop(columns=column).to_csv(tmp_path / "less.csv", index=False)
        ran = here("audit", fitted[0], tmp_path / "less.csv")
        ran.refused(f"the table lacks '{column}', the model's column of {holds}")
        assert "--" not in ran.err


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


def test_a_folder_in_a_folder_out(here, fitted, people, predicted, tmp_path):
    """One file for each file, in folders as theirs; types and texts as they were."""
    flat, hive = tmp_path / "flat", tmp_path / "hive"
    flat.mkdir()
    people.iloc[:1000].to_csv(flat / "a.csv", index=False)
    people.iloc[1000:].to_csv(flat / "b.csv.gz", index=False)
    for key, part in people.groupby("workclass"):
        (hive / f"workclass={key}").mkdir(parents=True)
        part.drop(columns="workclass").to_parquet(hive / f"workclass={key}" / "part.parquet")
    out = tmp_path / "out"
    ran = here("predict", fitted[0], flat, "-o", f"{out}/", "--json").check()
    assert ran.json["rows"] == 3000
    assert sorted(file.name for file in out.iterdir()) == ["_fairgrad.json", "a.csv", "b.csv.gz"]
    both = pd.concat([pd.read_csv(out / "a.csv"), pd.read_csv(out / "b.csv.gz")])
    assert both["prediction"].tolist() == predicted["prediction"].tolist()
    here("predict", fitted[0], hive, "-o", f"{out}/").refused("exists; use --force to replace it")
    here("predict", fitted[0], hive, "-o", out, "--force").check()
    found = pd.read_parquet(out, partitioning="hive")
    assert (out / f"workclass={people['workclass'].iloc[0]}" / "part.parquet").is_file()
    wanted = people.assign(prediction=predicted["prediction"].to_numpy()).groupby("workclass")
    for key, part in wanted:
        own = found[found["workclass"].astype(str) == str(key)]
        assert own["prediction"].tolist() == part["prediction"].tolist()
        pd.testing.assert_frame_equal(
            own[["age", "occupation"]].reset_index(drop=True),
            part[["age", "occupation"]].reset_index(drop=True),
            check_dtype=False,
        )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    here("predict", fitted[0], flat, "-o", tmp_path / "mine").refused("fairgrad did not write")


def test_many_files_in_one_file_out(here, fitted, people, predicted, tmp_path):
    for place in range(2):
        own = people.iloc[place * 1500 : (place + 1) * 1500]
        own[list(own)[:: 1 if place else -1]].to_parquet(tmp_path / f"{place}.parquet")
    for name in ("out.parquet", "out.csv", "out.csv.gz"):
        out = tmp_path / "one" / name
        here("predict", fitted[0], tmp_path / "*.parquet", "-o", out).check()
        found = pd.read_parquet(out) if name == "out.parquet" else pd.read_csv(out)
        assert found["prediction"].tolist() == predicted["prediction"].tolist()
        assert found["age"].tolist() == people["age"].tolist()
    people.drop(columns="sex").to_parquet(tmp_path / "2.parquet")
    here("predict", fitted[0], tmp_path / "*.parquet", "-o", out, "--force").refused(
        "2.parquet lacks the column 'sex', unlike the files before it"
    )


def test_a_stopped_folder_is_not_there(here, fitted, people, tmp_path):
    people.iloc[:50].to_csv(tmp_path / "a.csv", index=False)
    people.iloc[:50].drop(columns="age").to_csv(tmp_path / "b.csv", index=False)
    here(
        *("predict", fitted[0], tmp_path / "a.csv", tmp_path / "b.csv", "-o", f"{tmp_path}/out/")
    ).refused("age")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.csv", "b.csv"]
    here(
        *("predict", fitted[0], tmp_path / "a.csv", tmp_path / "a.csv", "-o", f"{tmp_path}/out/")
    ).refused("two files of the table are called 'a.csv'")
