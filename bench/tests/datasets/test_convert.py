"""Raw files into tables: the bytes are exact, and damaged files are refused."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad_bench.datasets.convert import table_from_arff, table_with_header, table_without_header

FIELD = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")))


@given(st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1))
def test_any_text_survives_dropping_a_column(rows):
    raw = io.StringIO(newline="")
    csv.writer(raw, lineterminator="\r\n").writerows([("a", "name", "b"), *rows])
    made = table_with_header([raw.getvalue().encode()], drop=("name",))
    assert b"\r" not in made
    back = list(csv.reader(io.StringIO(made.decode(), newline="")))
    assert back == [["a", "b"], *([first, last] for first, _, last in rows)]


def test_columns_kept_renamed_and_repeated():
    raw = [b"filename,x,x,y\na,1,2,3\n"]
    assert table_with_header(raw, keep=("x", "y")) == b"x,x.1,y\n1,2,3\n"
    assert table_with_header(raw, rename={"filename": "id"}) == b"id,x,x.1,y\na,1,2,3\n"


def test_unexpected_files_are_refused():
    with pytest.raises(ValueError, match="no column name"):
        table_with_header([b"a,b\n1,2\n"], drop=("name",))
    with pytest.raises(ValueError, match="row 1 of the file has 1 fields instead of 2"):
        table_with_header([b"a,b\n1,2\n3\n"])
    with pytest.raises(ValueError, match="row 0 of the file has 3 fields instead of 2"):
        table_without_header([b"1,2,3\n"], columns=("a", "b"))
    with pytest.raises(ValueError, match="is not in list"):
        table_from_arff([b"<html>"], rename={})
