"""``fairgrad fit`` on tables with more rows than are trained on."""

import hashlib
import json
import sqlite3
import sys
from contextlib import contextmanager

import duckdb
import numpy as np
import pandas as pd
import pytest

from fairgrad.datasets import load
from fairgrad.tables import reading
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.roles import ColumnRoles
from fairgrad.tables.sample import draw_sample, large_table

ASK = ("--target", "income", "--sensitive", "sex")
SAMPLED = (*ASK, "--train-rows", "1500", "--epochs", "15")


@pytest.fixture(scope="module")
def people():
    data = load("adult")
    frame = data.frame.assign(sex=data.sensitive["sex"], income=data.label)
    return frame.astype({"sex": object, "income": object}).iloc[:6_000]


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adult") / "people"
    folder.mkdir()
    for place, rows in enumerate(np.array_split(np.arange(len(people)), 4)):
        people.iloc[rows].to_parquet(folder / f"{place}.parquet", index=False)
    return folder


def fitted(here, folder, out, *more):
    ran = here("fit", folder, *SAMPLED, *more, "--json", "-o", out).check()
    found = ran.json
    assert found["notes"][0].startswith("Trained on 1,5") or found["notes"][0].startswith(
        "Trained on 1,4"
    )
    assert "of 6,000 rows" in found["notes"][0]
    return found


def test_held_out_rows_of_a_test_file_are_found_again(here, folder, people, tmp_path):
    test, out = tmp_path / "test.csv", tmp_path / "model"
    people.head(900).to_csv(test, index=False)
    here("fit", folder, *SAMPLED, "--test", test, "-o", out).check()
    audited = here("audit", out, test, "--held-out", "--json").check().json["audit"]
    assert audited["rows"] == 900


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--use-sensitive",),
        ("--model", "lightgbm", "--measure", "demographic_parity"),
    ],
)
def test_every_model_is_audited_on_all_rows_held_out(here, folder, people, tmp_path, more):
    out = tmp_path / "model"
    found = fitted(here, folder, out, *more)
    n_test = found["rows"]["test"]
    assert abs(n_test - 1_200) < 120
    assert found["rows"]["training_and_validation"] < 1_600
    assert found["accuracy"] > 0.75
    names = {file.name for file in out.iterdir()}
    assert "test_rows.csv" not in names
    again = here("audit", out, folder, "--held-out", "--json").check().json
    assert again["audit"]["rows"] == n_test
    assert again["audit"]["accuracy"] == pytest.approx(found["accuracy"])
    # All rows, with those held out among them, are about as well predicted.
    whole = here("audit", out, folder, "--json").check().json
    assert whole["audit"]["rows"] == len(people)
    assert whole["audit"]["accuracy"] == pytest.approx(found["accuracy"], abs=0.03)


def test_a_small_file_of_text_is_sampled_too(here, people, tmp_path):
    amounts = pd.Series(np.arange(len(people)) * 0.25 + 1000).map("{:,.2f}".format)
    people.assign(amount=amounts.to_numpy()).to_csv(tmp_path / "people.csv", index=False)
    fit = fitted(here, tmp_path / "people.csv", tmp_path / "model")
    features = json.loads((tmp_path / "model/fairgrad.json").read_text())["features"]
    assert features["amount"] == "number"  # whatever its many texts look like
    assert fit["rows"]["training_and_validation"] < 1_600


def test_a_file_that_cannot_be_sampled_says_so(here, people, tmp_path):
    few = people.iloc[:800][["age", "hours-per-week", "sex", "income"]]
    few.rename(columns={"hours-per-week": "hours"}).to_stata(tmp_path / "people.dta")
    ask = (*ASK, "--train-rows", "500", "--epochs", "2", "--folds", "0", "--json")
    ran = here("fit", tmp_path / "people.dta", *ask, "-o", tmp_path / "model").check().json
    assert ran["notes"][0].startswith("All 800 rows are used: --train-rows has no effect")


def test_a_table_of_a_database_is_to_be_exported(here, tmp_path):
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS income, 2 AS sex")
    for table in ("people.duckdb::people", "people.duckdb"):
        ran = here("fit", tmp_path / table, *ASK, "-o", tmp_path / "model")
        ran.refused(table, "export it to a Parquet file")


def test_a_frontier_of_a_sample(here, folder):
    ran = here("frontier", folder, *ASK, "--train-rows", "1500", "--points", "6").check()
    assert "of 6,000 rows" in " ".join((ran.out + ran.err).split())


def test_a_large_table_of_text(here, people, tmp_path, monkeypatch):
    """Several CSV files with decimal commas, missing values, dates, and rows without a label."""
    monkeypatch.setattr(reading, "LARGE", 1)
    rng = np.random.default_rng(0)
    frame = people.iloc[:4_000][["age", "education", "hours-per-week", "sex", "income"]].copy()
    frame["wage"] = [
        f"{w:,.2f}".translate(str.maketrans(",.", ".,")) for w in rng.gamma(2, 900, 4_000)
    ]
    frame.loc[rng.random(len(frame)) < 0.1, "wage"] = "NA"
    frame["since"] = pd.Series(rng.choice(pd.date_range("2020-01-01", "2022-12-31"), len(frame)))
    frame["since"] = frame["since"].dt.strftime("%d.%m.%Y")
    frame.loc[frame.index[::50], "income"] = ""
    for place, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_csv(tmp_path / f"{place}.csv", index=False, sep=";")
    out = tmp_path / "model"
    ran = here("fit", tmp_path / "*.csv", *SAMPLED, "--json", "-o", out).check()
    known = json.loads((out / "fairgrad.json").read_text())
    kinds = known["features"]
    assert kinds["wage"] == "number"
    assert kinds["since (month)"] == "category"
    assert any("80 rows left out (no income)" in note for note in ran.json["notes"])
    held_out = here("audit", out, tmp_path / "*.csv", "--held-out", "--json").check().json
    assert held_out["audit"]["accuracy"] == pytest.approx(ran.json["accuracy"])
    assert held_out["audit"]["rows"] == ran.json["rows"]["test"]


def test_files_that_duckdb_cannot_read_are_read_as_a_whole(here, people, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGE", 1)
    path, out = tmp_path / "people.csv", tmp_path / "model"
    people.iloc[:2_500].assign(place="Köln").to_csv(path, index=False, encoding="latin-1")
    ran = here("fit", path, *ASK, "--train-rows", "500", "--epochs", "2", "--json", "-o", out)
    assert ran.check().json["notes"][0].startswith("All rows of people.csv are read")
    assert ran.json["rows"]["training_and_validation"] == 2_000


def broken(people, folder, kind):
    part = people.iloc[:600].copy()
    folder.mkdir()
    if kind == "one label":
        part["income"] = "no"
    part.to_parquet(folder / "a.parquet", index=False)
    if kind == "not Parquet":
        (folder / "b.parquet").write_bytes(b"PAR1 and no more")
    if kind == "infinite":
        odd = np.where(np.arange(600) % 7 == 0, np.inf, np.arange(600.0))
        part.assign(x=odd).to_parquet(folder / "a.parquet", index=False)


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("one label", (), ("'income'", "1 class")),
        ("not Parquet", (), ("b.parquet", "cannot be read as a Parquet file")),
        ("infinite", (), ("'x'", "infinite number")),
        ("folds", ("--folds", "3"), ("--folds", "--train-rows")),
        ("drop", ("--drop", "agee"), ("--drop", "'agee'", "did you mean 'age'")),
        ("key", ("--key", "idd"), ("--key", "'idd'")),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_why(here, people, tmp_path, kind, more, words):
    broken(people, tmp_path / "data", kind)
    ask = (*ASK, "--train-rows", "200", *more)
    here("fit", tmp_path / "data", *ask, "-o", tmp_path / "model").refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_without_duckdb_the_extra_is_named(here, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    ran = here("fit", folder, *SAMPLED, "-o", tmp_path / "model")
    ran.refused("needs duckdb", "pip install 'fairgrad[scale]'")
    assert not list(tmp_path.iterdir())
    here("fit", folder, *ASK, "--epochs", "1", "-o", tmp_path / "model").check()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_database_draws_the_rows_of_fit(here, people, tmp_path, dialect):
    """Counted and drawn by two printed queries, the sample is that of the file."""
    frame = people.assign(id=np.arange(len(people)))
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    ask = (*ASK, "--sensitive", "age", "--bins", "age=30,50")
    drawn = (*ask, "--key", "id", "--train-rows", "1500", "--seed", "4")
    with database(dialect, frame) as run:
        counted = here("sql", "counts", "people", "--dialect", dialect, *ask).check().out
        run(counted).to_csv(tmp_path / "answer.csv", index=False)
        given = ("--counts", tmp_path / "answer.csv")
        sql = here("sql", "sample", "people", "--dialect", dialect, *drawn, *given).check().out
        sampled = run(sql)
    table = large_table(path, ReadingOptions(), tmp_path, seed=4, test=0.2, key=("id",))
    roles = ColumnRoles("income", ("sex", "age"), bins={"age": [30, 50]})
    known, sample = draw_sample(table, roles, 1_500)
    # Rows held out are known only up to chance by the first query, so its shares differ a little.
    rows = [sorted(known["id"][~sample.is_judged]), sorted(sampled["id"])]
    assert abs(len(rows[0]) - len(rows[1])) < 30
    shorter, longer = sorted(rows, key=len)
    assert len(set(shorter) - set(longer)) < 15
    assert sampled["fairgrad_weight"].sum() == pytest.approx(0.8 * len(frame), rel=0.05)


@contextmanager
def database(dialect, frame):
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as connection:
            connection.create_function(
                "MD5", 1, lambda t: hashlib.md5(t.encode(), usedforsecurity=False).hexdigest()
            )
            frame.to_sql("people", connection, index=False)
            yield lambda sql: pd.read_sql_query(sql, connection)
    else:
        with duckdb.connect() as connection:
            connection.register("people", frame)
            yield lambda sql: connection.execute(sql).df()


def test_a_sample_of_a_database_needs_counts_and_a_key(here):
    ask = ("sql", "sample", "people", "--dialect", "postgres", *ASK)
    here(*ask, "--key", "id").refused("--counts")
    here(*ask, "--counts", "answer.csv").refused("--key")
