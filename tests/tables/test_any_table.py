"""Random tables in random files, compared with readers that know nothing of this library."""

import csv
import datetime as dt
import math

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgrad.tables import reading
from fairgrad.tables.reading import pieces, read_table

N = 25
WORDS = st.text("abcdefgh XYZäß;|'", min_size=1, max_size=8).map(str.strip)
FRACTIONS = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
DAYS = st.dates(dt.date(1990, 1, 1), dt.date(2030, 12, 31))


def column(values, missing):
    return st.lists(st.one_of(values, st.just(None)) if missing else values, min_size=N, max_size=N)


KINDS = {
    "whole": st.integers(-(10**9), 10**9),
    "fraction": FRACTIONS,
    "word": WORDS.filter(lambda word: word and not word.isdigit()),
    "truth": st.booleans(),
    "day": DAYS,
}


@st.composite
def tables(draw):
    """Columns of known kinds, some with missing values."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=5))
    gaps = [draw(st.booleans()) for _ in kinds]
    found = {
        f"c{i} {kind}": draw(column(KINDS[kind], missing))
        for i, (kind, missing) in enumerate(zip(kinds, gaps, strict=True))
    }
    # A last row with gaps may be a footer.
    for name, values in found.items():
        values[-1] = draw(KINDS[name.split()[1]])
    return found


@st.composite
def dialects(draw):
    """How to write a CSV file."""
    sep = draw(st.sampled_from([",", ";", "\t", "|"]))
    return {
        "sep": sep,
        "decimal": draw(st.sampled_from([".", ","])) if sep != "," else ".",
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])),
        "ends": draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    }


def written(value, decimal):
    if value is None:
        return ""
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return text.replace(".", decimal) if isinstance(value, float) else text


def write(path, table, how):
    with path.open("w", encoding=how["encoding"], newline="") as file:
        writer = csv.writer(
            file, delimiter=how["sep"], lineterminator=how["ends"], quoting=how["quoting"]
        )
        writer.writerow(table)
        for row in zip(*table.values(), strict=True):
            writer.writerow([written(value, how["decimal"]) for value in row])


def same(found, value):
    if value is None:
        return bool(pd.isna(found))
    if isinstance(value, bool | str):
        return str(found) == str(value).strip()
    if isinstance(value, dt.date):
        return pd.Timestamp(found).date() == value
    return math.isclose(float(found), value, rel_tol=1e-12)


@given(table=tables(), how=dialects(), rows=st.sampled_from([4, 10, 50_000]))
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_files_hold_what_was_written(tmp_path_factory, table, how, rows):
    """Each value comes back as what it was, whatever the dialect and the size of pieces."""
    path = tmp_path_factory.mktemp("any") / "table.csv"
    write(path, table, how)
    with path.open(encoding=how["encoding"], newline="") as file:  # the module's own reader
        assert len(list(csv.reader(file, delimiter=how["sep"]))) == N + 1
    options = reading.ReadingOptions(sep=how["sep"], decimal=how["decimal"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "__defaults__", (None, (), rows, None))
        found = read_table(path, options=options)
    assert list(found) == list(table)
    for name, values in table.items():
        for place, value in enumerate(values):
            assert same(found[name].iloc[place], value), (name, place, value)


@given(table=tables())
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_the_dialect_and_the_kinds_are_those_of_duckdb(tmp_path_factory, table):
    """In plain files duckdb's own reader finds the same numbers, dates and missing values."""
    path = tmp_path_factory.mktemp("any") / "table.csv"
    how = {"sep": ",", "decimal": ".", "encoding": "utf-8", "ends": "\n", "quoting": csv.QUOTE_ALL}
    write(path, table, how)
    found = read_table(path)
    with duckdb.connect() as connection:
        other = connection.execute(
            "SELECT * FROM read_csv(?, delim=',', header=true, sample_size=-1)", [str(path)]
        ).df()
    for name in table:
        assert found[name].isna().tolist() == other[name].isna().tolist()
        if pd.api.types.is_numeric_dtype(found[name].dtype):
            np.testing.assert_allclose(
                found[name].astype(float), other[name].astype(float), rtol=1e-12
            )
        elif pd.api.types.is_datetime64_any_dtype(found[name].dtype):
            assert (
                (found[name] == other[name].astype("datetime64[ns]")).eq(found[name].notna()).all()
            )


def test_many_different_texts_are_numbers(tmp_path):
    """Thousands of texts such as 1,027.25 are a column of numbers, however many there are."""
    path = tmp_path / "table.csv"
    numbers = np.random.default_rng(0).permutation(150_000) / 4 + 1_000
    texts = [f'"{number:,.2f}"' for number in numbers]
    path.write_text("x;y\n" + "".join(f"{text};{i % 3}\n" for i, text in enumerate(texts)))
    found = read_table(path)
    np.testing.assert_array_equal(found["x"], numbers)
