"""Samples of large tables: which rows are drawn, how much they weigh, in every database."""

import hashlib
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.roles import ColumnRoles
from fairgrad.tables.sample import cell_query, draw_sample, large_table, sample_rates
from fairgrad.tables.sql import SAMPLE_WEIGHT

ROLES = ColumnRoles("hired", ("sex", "age"), bins={"age": [30, 50]}, drop=("id",))


def people(n=6_000, seed=0):
    """Two groups by sex, one of them of a hundredth of the rows, and some missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "sex": rng.choice(["F", "M"], n, p=[0.01, 0.99]),
            "age": rng.integers(18, 80, n),
            "wage": rng.normal(size=n),
            "hired": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
        }
    )
    frame.loc[rng.random(n) < 0.02, "hired"] = None
    frame.loc[rng.random(n) < 0.01, "sex"] = None
    return frame


def in_folder(frame, folder, n_files=3):
    folder.mkdir()
    for place, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(folder / f"{place}.parquet", index=False)
    return folder


def md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def cells_of(frame):
    age = pd.cut(frame["age"], [0, 29, 49, 200], labels=["young", "middle", "old"])
    return pd.Series(
        list(zip(frame["hired"], frame["sex"].astype(object).fillna("?"), age, strict=True))
    )


@given(
    sizes=st.lists(st.integers(0, 10_000_000), min_size=1, max_size=40).filter(any),
    wanted=st.integers(100, 100_000),
)
def test_shares_of_cells(sizes, wanted):
    sizes = np.array(sizes)
    rates, base = sample_rates(sizes, wanted)
    drawn = (sizes * rates).sum()
    assert drawn <= max(wanted, 1) * (1 + 1e-9)
    if sizes.sum() > wanted:
        assert drawn >= wanted * (1 - 1e-6)
    else:
        assert (rates == 1).all()
    assert (rates >= base).all()
    assert (rates <= 1).all()
    enough = np.minimum(sizes, 0.125 * wanted / len(sizes))
    assert (sizes * rates >= enough * (1 - 1e-9)).all()


@pytest.mark.parametrize("key", [(), ("id",)])
def test_rows_are_drawn_by_their_digests_and_weights_restore_the_cells(tmp_path, key):
    frame = people()
    folder = in_folder(frame, tmp_path / "people")
    table = large_table(folder, ReadingOptions(), tmp_path, seed=7, test=0.2, key=key)
    roles = ColumnRoles("hired", ("sex", "age"), bins=ROLES.bins)
    rows, sample = draw_sample(table, roles, 1_000)
    pieces = list(table.held_out(["id"]))
    assert pieces[-1].attrs["done"] == pytest.approx(1.0, abs=0.1)  # of the expected number
    held_out = pd.concat(pieces)["id"]

    names = [f"7/{one}" for one in frame["id"]]
    if not key:
        sizes = [len(part) for part in np.array_split(np.arange(len(frame)), 3)]
        names = [f"7/{file}.parquet/{i}" for file, n in enumerate(sizes) for i in range(n)]
    digests = np.array([md5(name)[:8] for name in names], dtype=object)
    limit = f"{round(0.2 * 16**8):08x}"
    assert set(held_out) == set(frame["id"][digests < limit])
    judged = rows[sample.is_judged]
    rows = rows[~sample.is_judged].reset_index(drop=True)
    assert not set(held_out) & set(rows["id"])
    known = frame.set_index("id")["hired"].notna()
    wanted = sorted(zip(digests[digests < limit], frame["id"][digests < limit], strict=True))
    first = [one for _, one in wanted if known[one]]
    assert set(judged["id"]) == set(first[: len(judged)])  # those of the lowest digests
    assert 200 < len(judged) < 300

    rest = frame[(digests >= limit) & frame["hired"].notna()].reset_index(drop=True)
    drawn = rest["id"].isin(set(rows["id"])).to_numpy()
    assert drawn.sum() == len(rows)
    assert 900 < len(rows) < 1_100
    cells, own = cells_of(rest), digests[(digests >= limit) & frame["hired"].notna()]
    for cell in cells.unique():  # of each cell, those of the lowest digests
        inside = (cells == cell).to_numpy()
        if drawn[inside].any() and not drawn[inside].all():
            assert own[inside & drawn].max() < own[inside & ~drawn].min()
    rare = cells.map(cells.value_counts()) <= 0.25 * 1_000 / (cells.nunique() + 1)
    assert drawn[rare].all()
    assert sample.n_rows == len(frame)
    assert sample.n_unlabelled == frame["hired"].isna().sum()

    labelled = ROLES.apply(rows)
    weight = sample.weights(labelled.label, labelled.sensitive)
    found = pd.Series(weight).groupby(cells_of(rows)).sum()
    expected = cells.value_counts()[found.index]
    assert weight.mean() == pytest.approx(1)
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum())


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_every_database_draws_the_same_rows(tmp_path, engine):
    """The query of Postgres runs in duckdb, whose SQL is Postgres's."""
    frame = people(seed=1)
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    table = large_table(path, ReadingOptions(), tmp_path, seed=3, test=0.25, key=("id",))
    rows, sample = draw_sample(table, ROLES, 800)
    rows = rows[~sample.is_judged]
    query = sample.query
    sql = query.sql("people", engine)
    if engine == "sqlite":
        with sqlite3.connect(":memory:") as connection:
            connection.create_function("MD5", 1, md5)
            frame.to_sql("people", connection, index=False)
            found = pd.read_sql_query(sql, connection)
    else:
        with duckdb.connect() as connection:
            connection.register("people", frame)
            found = connection.execute(sql).df()
    assert len(rows) == len(found)
    assert found["wage"].sort_values().tolist() == rows["wage"].sort_values().tolist()
    n_known = frame["hired"].notna().sum()
    assert found[SAMPLE_WEIGHT].sum() == pytest.approx(0.75 * n_known, rel=0.1)


def test_a_key_keeps_rows_together(tmp_path):
    frame = people()
    frame["id"] = np.repeat([f"h{i}" for i in range(len(frame) // 3)], 3)
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    table = large_table(path, ReadingOptions(), tmp_path, test=0.5, key=("id",))
    held_out = pd.concat(table.held_out(["id"]))["id"]
    assert set(held_out.value_counts()) == {3}


def test_cells_are_labels_and_cut_sensitive_values():
    query = cell_query(ROLES)
    assert query.keys == ("hired", "sex")
    assert query.bins == {"age": [30, 50]}
