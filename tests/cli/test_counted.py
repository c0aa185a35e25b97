"""Tables that are counted where they lie give the answers of tables that are read, to the digit."""

import itertools
import sqlite3
import subprocess
import sys

import click
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairgrad.audit import Monitor
from fairgrad.cli import audit as audits
from fairgrad.cli.app import audit as audit_command
from fairgrad.cli.app import counts
from fairgrad.cli.app import monitor as monitor_command
from fairgrad.cli.audit import add_batches, decided_people
from fairgrad.cli.options import SQL_DIALECTS
from fairgrad.cli.request import AuditRequest
from fairgrad.progress import ProgressBar
from fairgrad.tables import reading, scan
from fairgrad.tables.sql import DIALECTS, quoted_name

duckdb = pytest.importorskip("duckdb")

N = 600


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "order": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(18, 90, n).astype(float),
            "y": rng.choice(["no", "yes"], n),
            "p": rng.random(n).round(3),
            # Quarters: their sums are exact in any order.
            "w": rng.integers(0, 9, n) / 4,
            "day": pd.Timestamp("2024-01-15") + pd.to_timedelta(rng.integers(0, 80, n), unit="D"),
        }
    ).astype({"sex": object, "order": object, "y": object})
    frame["h"] = np.where(rng.random(n) < 0.7, frame["y"], rng.choice(["no", "yes"], n))
    frame["b"] = np.where(rng.random(n) < 0.8, frame["h"], rng.choice(["no", "yes"], n))
    for name, empty in (("sex", None), ("age", np.nan), ("y", None), ("w", np.nan), ("p", np.nan)):
        frame.loc[rng.random(n) < 0.03, name] = empty
    return frame


def asked_by(*arguments, command=audit_command):
    words = [str(one) for one in arguments]
    return AuditRequest.from_options(command.make_context("it", words).params)


def monitored(*arguments):
    """The batches of a table with dates, and the people."""
    request, watched = asked_by(*arguments, command=monitor_command), Monitor("accuracy_parity")
    people = decided_people(request)
    add_batches(watched, people, request)
    return [(one.name, one.counts) for one in watched.batches], people


def audited(*arguments):
    """The audit of a table, and its people."""
    request = asked_by(*arguments)
    people = decided_people(request)
    return people.audit(request), people


def decide(monkeypatch, is_scanned):
    """Which tables are counted by duckdb, whatever their size."""
    monkeypatch.setattr(audits, "is_scanned", is_scanned)


def answers(monkeypatch, *arguments):
    """Audit, notes and remarks of the rows, and of their counts; or the errors."""
    found = []
    for is_scanned in (False, True):
        decide(monkeypatch, lambda _, own=is_scanned: own)
        try:
            audit, people = audited(*arguments)
        except ValueError as error:
            found.append(("error", str(error)))
        else:
            assert (people.counts is not None) is is_scanned, people.notes
            found.append((countable(audit), people.notes, people.left_out))
    return found


OF_SCORES = (
    "scores", "roc", "calibration",
)  # fmt: skip


def countable(audit):
    """What an audit says, but for what it knows of the scores of single rows."""
    known = {name: said for name, said in audit.to_dict().items() if name not in OF_SCORES}
    known["sections"] = [part for part in known["sections"] if part["key"] != "details"]
    return known


PLAIN = ("--target", "y", "--prediction", "h", "--sensitive", "sex")
QUESTIONS = {
    "one attribute": PLAIN,
    "two, one of numbers": (*PLAIN, "--sensitive", "age", "--bins", "age=25,60"),
    "three, crossed": (*PLAIN, "--sensitive", "age", "--bins", "age=40", "--sensitive", "order"),
    "weights": (*PLAIN, "--weight", "w"),
    "scores": ("--target", "y", "--score", "p", "--threshold", "0.4", "--sensitive", "sex"),
    "desirable, measures": (*PLAIN, "--desirable", "no", "--measure", "four_fifths_rule"),
}


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_counts_and_rows_have_one_answer(monkeypatch, tmp_path, kind, asked):
    frame, path = table(), tmp_path / f"people.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    rows, counts = answers(monkeypatch, path, *QUESTIONS[asked])
    assert rows[0] != "error"
    assert counts == rows


def test_folders_patterns_and_partitions(monkeypatch, tmp_path):
    frame = table().drop(columns="day")
    whole = tmp_path / "whole.parquet"
    frame.to_parquet(whole)
    (truth, *_), _ = answers(monkeypatch, whole, *PLAIN, "--sensitive", "order")
    flat, hive, texts = (tmp_path / name for name in ("flat", "hive", "texts"))
    for folder in (flat, texts):
        folder.mkdir()
    for place in range(3):
        frame.iloc[place::3].to_parquet(flat / f"{place}.parquet")
        part = frame.iloc[place::3]
        part[list(part.columns[:: 1 if place else -1])].to_csv(texts / f"{place}.csv", index=False)
    (flat / "_SUCCESS").write_text("")
    for key, part in frame.groupby("order"):
        (hive / f"order={key}").mkdir(parents=True)
        part.drop(columns="order").to_parquet(hive / f"order={key}" / "part.parquet")
    for source in (flat, flat / "*.parquet", hive, texts, texts / "*.csv"):
        rows, counts = answers(monkeypatch, source, *PLAIN, "--sensitive", "order")
        assert rows == counts
        assert counts[0] == truth


def test_a_table_of_a_database(monkeypatch, tmp_path):
    frame, base = table(), tmp_path / "people.duckdb"
    frame.to_parquet(tmp_path / "people.parquet")
    with duckdb.connect(str(base)) as connection:
        connection.execute(f"CREATE TABLE loans AS FROM '{tmp_path}/people.parquet'")
    (truth, *_), _ = answers(monkeypatch, tmp_path / "people.parquet", *PLAIN)
    decide(monkeypatch, reading.is_scanned)
    for name in (f"{base}::loans", base):
        assert countable(audited(name, *PLAIN)[0]) == truth
    with duckdb.connect(str(base)) as connection:
        connection.execute("CREATE VIEW others AS FROM loans")
    assert countable(audited(f"{base}::others", *PLAIN)[0]) == truth
    with pytest.raises(ValueError, match="several tables; name one .* loans, others"):
        audited(base, *PLAIN)
    with pytest.raises(ValueError, match="has no table 'lones'; name one .* loans, others"):
        audited(f"{base}::lones", *PLAIN)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        audited(tmp_path / "none.duckdb", *PLAIN)


CELLS = {
    "sex": ["F", "M", " F", "", "NA", "f"],
    "y": ["0", "1", "1.0", "true", "FALSE", "NA", ""],
    "h": ["0", "1", "true", "1.0", "NA", "", "x"],
    "age": ["20", "31.5", "60", "NA", "", "-9", "1,042", " 44 ", "$5", "9e1"],
}


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pools=st.fixed_dictionaries(
        {
            name: st.lists(st.sampled_from(cells), min_size=2, max_size=4, unique=True)
            for name, cells in CELLS.items()
        }
    ),
    seed=st.integers(0, 100),
    missing=st.sampled_from([(), ("--missing", "-9"), ("--missing", "NA")]),
)
@example(
    pools={"sex": ["F", "M"], "y": ["0", "1"], "h": ["0", "1"], "age": ["NA", ""]},
    seed=0,
    missing=(),
)  # no number at all: texts
def test_odd_texts_are_read_alike(monkeypatch, tmp_path, pools, seed, missing):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice(pool, 80) for name, pool in pools.items()})
    path = tmp_path / "odd.csv"
    frame.to_csv(path, index=False)
    asked = (*PLAIN, "--sensitive", "age", "--bins", "age=25,60", *missing)
    found = []
    for is_scanned in (False, True):
        decide(monkeypatch, lambda _, own=is_scanned: own)
        try:
            audit, people = audited(path, *asked)
        except ValueError as error:
            found.append(str(error))
        else:
            notes = sorted(note for note in people.notes if "row by row" not in note)
            found.append((audit.to_dict(), notes))
    assert found[0] == found[1]


def test_what_duckdb_would_read_otherwise_is_read_row_by_row(monkeypatch, tmp_path):
    frame, path = table().drop(columns="day"), tmp_path / "german.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-16")
    decide(monkeypatch, lambda _: True)
    audit, people = audited(path, *PLAIN)
    assert people.counts is None
    assert any("german.csv is read row by row" in note for note in people.notes)
    frame.to_csv(path, index=False, sep=";", decimal=",")
    plain, people = audited(path, *PLAIN, "--sensitive", "age", "--bins", "age=40")
    assert people.counts is not None
    assert plain.to_dict()["rows"] == audit.to_dict()["rows"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_names_that_are_one_name_for_duckdb(monkeypatch, tmp_path, kind):
    frame, path = table().assign(Sex=lambda own: own["order"]), tmp_path / f"people.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    decide(monkeypatch, lambda _: True)
    asked = ("--target", "y", "--prediction", "h", "--sensitive", "Sex")
    audit, people = audited(path, *asked)
    assert people.counts is None
    assert len(audit.views["Sex"].size) == 3


def test_mistakes_are_told_in_the_same_words(monkeypatch, tmp_path):
    frame, path = table(), tmp_path / "people.parquet"
    frame.assign(id=np.arange(N).astype(str), inf=np.inf).to_parquet(path)
    plain = ("--target", "y", "--prediction", "h")
    for asked in (
        (*plain, "--sensitive", "sx"),
        (*plain, "--sensitive", "id"),
        (*plain, "--sensitive", "p"),
        ("--target", "y", "--prediction", "p", "--sensitive", "sex"),
        ("--target", "p", "--prediction", "h", "--sensitive", "sex"),
        (*PLAIN, "--weight", "order"),
        (*plain, "--sensitive", "age", "--bins", "age=300"),
    ):
        rows, counts = answers(monkeypatch, path, *asked)
        assert rows[0] == "error"
        assert rows == counts
    rows, counts = answers(
        monkeypatch, path, *plain, "--sensitive", "inf", "--bins", "inf=3", "--weight", "age"
    )
    for said in (rows, counts):
        assert "the column 'inf' holds" in said[1]
        assert "infinite numbers" in said[1]
    frame.assign(w=-1.0).to_parquet(path)
    rows, counts = answers(monkeypatch, path, *PLAIN, "--weight", "w")
    assert "minimum of -1.0" in rows[1]
    assert "minimum of -1.0" in counts[1]


def test_far_too_many_values_are_told(monkeypatch, tmp_path):
    path = tmp_path / "people.parquet"
    table(n=5000).assign(id=[f"p{i}" for i in range(5000)]).to_parquet(path)
    decide(monkeypatch, lambda _: True)
    with pytest.raises(ValueError, match=r"'id' has 4,\d\d\d different values in 4,"):
        audited(path, "--target", "y", "--prediction", "h", "--sensitive", "id")
    monkeypatch.setattr(scan, "MOST_COMBINATIONS", 5)
    with pytest.raises(ValueError, match="more than 5 combinations of the values of y, sex, order"):
        audited(path, *PLAIN, "--sensitive", "order")


def answer_of(dialect, frame, sql):
    """What a database of this dialect says."""
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as connection:
            frame.assign(day=frame["day"].astype(str)).to_sql("people", connection, index=False)
            return pd.read_sql_query(sql, connection)
    with duckdb.connect() as connection:
        connection.register("people", frame)
        found = connection.execute(sql)
        return pd.DataFrame(found.fetchall(), columns=[name for name, *_ in found.description])


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        *(("sqlite", asked) for asked in ("three, crossed", "scores")),
        *(("duckdb", asked) for asked in ("two, one of numbers", "scores")),
        ("postgres", "weights"),
    ],
)
def test_the_printed_query_and_its_answer(monkeypatch, tmp_path, capsys, dialect, asked):
    frame, path = table(1), tmp_path / "people.parquet"
    frame.to_parquet(path)
    (truth, _, left_out), _ = answers(monkeypatch, path, *QUESTIONS[asked])
    query = ["people", "--dialect", dialect, *QUESTIONS[asked]]
    assert counts.main(query, standalone_mode=False) == 0
    answer = answer_of(dialect, frame, capsys.readouterr().out)
    answer.to_csv(tmp_path / "counts.csv", index=False)
    audit, people = audited("--counts", tmp_path / "counts.csv", *QUESTIONS[asked])
    assert countable(audit) == truth
    assert people.left_out == left_out


def test_names_are_in_quotes():
    assert tuple(DIALECTS) == SQL_DIALECTS
    assert quoted_name('a "b"') == '"a ""b"""'


def test_scores_of_single_rows_cannot_be_counted():
    with pytest.raises(ValueError, match="--score with --prediction needs"):
        counts.main(
            ["people", "--dialect", "duckdb", *PLAIN, "--score", "p"], standalone_mode=False
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"n_rows": None},
            "no column 'n_rows'; expected the answer to the query",
        ),
        ({"n_rows": -1}, "n_rows of counts.csv is '-1' in a row; a number of at least 0"),
        ({"n_rows": 0.5}, "n_rows contains fractions"),
        ({"squared_weight": None}, "no column 'squared_weight'"),
    ],
)
def test_wrong_tables_of_counts_are_refused(tmp_path, change, message):
    grid = list(itertools.product(["F", "M"], ["no", "yes"], ["no", "yes"]))
    counts = pd.DataFrame(grid, columns=["sex", "y", "h"]).assign(
        n_rows=100, w=1.0, squared_weight=1.0, least_weight=1.0
    )
    counts = counts.assign(**change)
    counts[[n for n in counts if counts[n].notna().any()]].to_csv(
        tmp_path / "counts.csv", index=False
    )
    with pytest.raises(ValueError, match=message):
        audited("--counts", tmp_path / "counts.csv", *PLAIN, "--weight", "w")


def test_without_duckdb_the_way_to_it_is_said(monkeypatch, tmp_path):
    path = tmp_path / "people.parquet"
    table().to_parquet(path)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(reading, "find_spec", lambda _: None)
    monkeypatch.setattr(audits, "LARGE", 1)
    with pytest.raises(ImportError, match=r"needs duckdb: pip install 'fairgrad\[scale\]'"):
        audited("people.duckdb::loans", *PLAIN)
    _, people = audited(path, *PLAIN)
    assert people.counts is None
    assert any("is read into memory; to have it counted" in note for note in people.notes)


@pytest.mark.parametrize("by", ["day", "week", "month"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_periods_are_the_same_for_counts_and_rows(monkeypatch, tmp_path, kind, by):
    frame, path = table(2, 900), tmp_path / f"people.{kind}"
    frame["day"] = pd.Timestamp("2024-02-24") + pd.to_timedelta(np.arange(900) // 90, unit="D")
    frame["day"] += pd.to_timedelta(np.arange(900) % 24, unit="h")
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    asked = (*PLAIN, "--time", "day", "--period", by)
    found = []
    for is_scanned in (False, True):
        decide(monkeypatch, lambda _, own=is_scanned: own)
        batches, people = monitored(path, *asked)
        assert (people.counts is not None) is is_scanned
        found.append(batches)
    assert found[0] == found[1]
    names = [name for name, _ in found[0]]
    days = [str(day.date()) for day in pd.date_range("2024-02-24", periods=10)]
    weeks = ["2024-02-19", "2024-02-26", "2024-03-04"]
    assert names == {"day": days, "week": weeks, "month": ["2024-02-01", "2024-03-01"]}[by]
    known = frame[frame["y"].notna()]
    starts = known["day"].dt.to_period({"day": "D", "week": "W", "month": "M"}[by]).dt.start_time
    rows = [sum(line[-1] for line in counted) for _, counted in found[0]]
    assert rows == starts.value_counts().sort_index().tolist()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_periods_of_a_printed_query(tmp_path, capsys, dialect):
    frame, path = table(3), tmp_path / "people.parquet"
    frame.to_parquet(path)
    for by in ("week", "month"):
        asked = (*PLAIN, "--time", "day", "--period", by)
        truth = monitored(path, *asked)[0]
        counts.main(["people", "--dialect", dialect, *asked], standalone_mode=False)
        answer = answer_of(dialect, frame, capsys.readouterr().out)
        answer.to_csv(tmp_path / "counts.csv", index=False)
        assert monitored("--counts", tmp_path / "counts.csv", *asked)[0] == truth


def test_what_is_no_date_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "people.parquet"
    table().to_parquet(path)
    for column in ("age", "sex"):
        for is_scanned in (False, True):
            decide(monkeypatch, lambda _, own=is_scanned: own)
            with pytest.raises(ValueError, match="--time names .* whose values are not dates"):
                monitored(path, "--target", "y", "--prediction", "h", "--sensitive", "order",
                          "--time", column)  # fmt: skip


def test_a_stopped_query_writes_nothing(here, monkeypatch, tmp_path):
    """The signal arrives while the query runs; the query would run for hours."""
    base = tmp_path / "people.duckdb"
    with duckdb.connect(str(base)) as connection:
        connection.execute(
            "CREATE VIEW slow AS SELECT a.range % 2 AS y, b.range % 2 AS h, "
            "(a.range % 3)::VARCHAR AS sex FROM range(10000000) a, range(10000000) b"
        )

    def stop(*_):
        raise click.exceptions.Abort  # what click makes of Ctrl-C

    monkeypatch.setattr(ProgressBar, "update", stop)
    out = tmp_path / "out.json"
    stopped = here("audit", f"{base}::slow", *PLAIN, "--out", out).check(130)
    assert "Stopped. Files are written completely or not at all." in stopped.err
    assert not out.exists()


def test_a_query_ends_without_complaints(tmp_path):
    """As a shell starts it: the database's bindings print what they take for leaks at the end."""
    base = tmp_path / "people.duckdb"
    with duckdb.connect(str(base)) as connection:
        connection.register("rows", table())
        connection.execute("CREATE TABLE people AS SELECT * FROM rows")
    command = [sys.executable, "-m", "fairgrad", "audit", f"{base}::people", *PLAIN, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "leaked" not in done.stderr
