"""Reading files: encodings, separators, quotes, decimal marks, kinds of columns."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad.tables import reading
from fairgrad.tables.column import ReadingReport, parse_numbers
from fairgrad.tables.dialect import ReadingOptions, find_dialect
from fairgrad.tables.reading import column_names, pieces, read_table
from fairgrad.tables.roles import ColumnRoles

ROLES = ColumnRoles("y", ("g",))


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def said(frame):
    return " ".join(ReadingReport.of(frame).sentences(frame.columns))


TABLE = pd.DataFrame(
    {"größe": [1.5, 2.25, 1042.5], "stadt": ["Köln", "Nîmes; Gard", 'a "b", c'], "n": [1, 20, 300]}
)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]
)
@pytest.mark.parametrize(("sep", "decimal"), [(",", "."), (";", ","), ("\t", ","), ("|", ".")])
def test_encoding_separator_and_decimal_mark_are_found(tmp_path, encoding, sep, decimal):
    path = tmp_path / "table.csv"
    TABLE.to_csv(path, index=False, encoding=encoding, sep=sep, decimal=decimal)
    frame = read_table(path)
    pd.testing.assert_frame_equal(frame.astype({"stadt": object}), TABLE.astype({"stadt": object}))
    words = said(frame)
    assert ("decimal comma" in words) == (decimal == ",")
    assert ("separated by" in words) == (sep != ",")
    found = {"utf-8": "", "utf-8-sig": "", "latin-1": "cp1252"}.get(encoding, encoding)
    assert f"encoding {found}" in words if found else "encoding" not in words


def test_quotes_that_are_not_the_usual(write):
    single = read_table(write("'a','b'\n'x, y','2'\n'z','3'\n"))
    assert single["a"].tolist() == ["x, y", "z"]
    assert "texts in '" in said(single)
    header = read_table(write("'a'\t'b'\n1\t2\n", "header.csv"))
    assert list(header) == ["a", "b"]
    escaped = read_table(write('a,b\n1,"he said \\"x, y\\""\n2,z\n', "escaped.csv"))
    assert escaped["b"].tolist() == ['he said "x, y"', "z"]
    spaced = read_table(write('age, sex\n39, "m, x"\n40, f\n', "spaced.csv"))
    assert list(spaced) == ["age", "sex"]
    assert spaced["sex"].tolist() == ["m, x", "f"]
    apostrophes = read_table(write("a,b\nit's,1\nthat's,2\n", "apostrophes.csv"))
    assert apostrophes["a"].tolist() == ["it's", "that's"]


@pytest.mark.parametrize(
    ("values", "decimal"),
    [
        (["3,5", "4,25"], ","),
        (["1.042,50", "7,00"], ","),
        (["1,042.50", "7.00"], "."),
        (["1,042,000", "2,500,000"], "."),
        (["31.12.2020", "01.02.2021"], "."),
        (["1,042", "2,500"], ","),  # thousands or decimals: the separator decides, and it is said
        (["192.168.0.1", "10.0.0.12"], "."),
    ],
)
def test_the_decimal_mark_is_what_stands_before_anything_but_thousands(write, values, decimal):
    path = write("a;b\n" + "".join(f"{value};x\n" for value in values))
    assert find_dialect(path).decimal == decimal


WRONG = {
    "separator": ("a;b\n1;2\n", {"sep": ","}, r"single column .*--sep.*semicolons"),
    "encoding": (
        "a,b\né,2\n".encode("cp1252"),
        {"encoding": "utf-8"},
        r"byte 4 is not utf-8.*--enc",
    ),
    "unknown": ("a,b\n1,2\n", {"encoding": "klingon"}, r"--encoding is 'klingon'"),
    "both": ("a,b\n1,2\n", {"sep": ";", "decimal": ";"}, r"--decimal is ';'"),
    "alike": ("a,b\n1,2\n", {"sep": ",", "decimal": ","}, r"must differ"),
    "long": ("a,b\n1,2\n", {"sep": "ab"}, r"--sep is 'ab'; one character"),
    "noise": (bytes(range(128, 256)) * 9, {}, r"name its encoding \(--encoding\)"),
    "open": ('a,b\n"1,2\n', {}, r"a quote opened in row 1 is never closed"),
    "late": ("a,b\n" + "1,2\n" * 300 + "1,2,3\n", {}, r"Expected 2 fields in line 302, saw 3"),
    "ragged": ("a,b\n1,2\n1,2,3\n", {}, r"line 3, saw 3; .* separated by commas, use --sep"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_guess_fails_with_a_sentence(write, name):
    content, given, message = WRONG[name]
    with pytest.raises(ValueError, match=message) as error:
        read_table(write(content), options=ReadingOptions(**given))
    assert "C error" not in str(error.value)


def test_the_wrong_decimal_mark_is_noticed_by_the_columns(write):
    path = write("x;g;y\n" + "".join(f"0.{i};{'uv'[i % 2]};{i % 2}\n" for i in range(1, 60)))
    frame = read_table(path, options=ReadingOptions(decimal=","))
    with pytest.raises(ValueError, match=r"'x' contains 0.1, .* decimal comma; use --decimal"):
        ROLES.apply(frame)


def test_a_field_more_than_the_header(write):
    """Names of rows, as R writes them; a separator at the end; anything else is refused."""
    named = read_table(write('"w","g"\n"a",1.5,NA\n"b",2.5,3\n'))
    assert list(named) == ["Unnamed: 0", "w", "g"]
    assert named["w"].tolist() == [1.5, 2.5]
    ended = read_table(write("w,g\n1.5,7,\n2.5,8,\n", "ended.csv"))
    assert ended["w"].tolist() == [1.5, 2.5]
    assert ended.iloc[:, 2].isna().all()
    with pytest.raises(ValueError, match="Expected 2 fields in line 2, saw 3"):
        read_table(write("w,g\n1,7,3\n1,8,4\n", "wide.csv"))
    assert "Unnamed: 1" in read_table(write(",Unnamed: 0,a\n0,0,1\n1,1,2\n", "twice.csv"))


def test_a_table_without_a_header(write):
    with pytest.raises(ValueError, match="first row must hold the names of the columns"):
        read_table(write("0,1,0\n1,0,0\n"))


def test_texts_stay_texts_and_gaps_are_counted(write):
    rows = [("NA", "None"), ("7", "Jewish"), ("", "Jewish "), ("9", ""), ("null", "NA")]
    frame = read_table(write("age,religion\n" + "".join(f"{a},{r}\n" for a, r in rows)))
    assert frame["age"].isna().tolist() == [True, False, True, False, True]
    religion = frame["religion"].astype(object).tolist()
    assert religion == ["None", "Jewish", "Jewish", np.nan, "NA"]
    report = ReadingReport.of(frame)
    assert report.gaps == {"age": {"": 1, "NA": 1, "null": 1}, "religion": {"": 1}}
    assert "religion: 'NA' (1 row), 'None' (1 row) are read as text" in said(frame)
    told = ReadingReport.of(frame).sentences(frame.columns, gaps=True)
    assert "age: 'NA' (1 row), 'null' (1 row) are taken as missing." in told
    asked = read_table(
        write("age,religion\n" + "".join(f"{a},{r}\n" for a, r in rows), "again.csv"),
        options=ReadingOptions(missing=("None", "9")),
    )
    assert asked["religion"].isna().tolist() == [True, False, False, True, False]
    assert asked["age"].isna().tolist() == [True, False, True, True, True]


def test_a_group_named_none_is_a_group(write):
    lines = [f"{i % 7},{['None', 'x'][i % 2]},{['no', 'yes'][i % 3 == 0]}\n" for i in range(200)]
    data = ROLES.apply(read_table(write("a,g,y\n" + "".join(lines))))
    assert list(data.sensitive["g"].cat.categories) == ["None", "x"]
    assert data.sensitive["g"].notna().all()
    path = write("a,g,y\n" + "".join(lines + ["1,z,no\n"] * 9), "z.csv")
    unknown = ROLES.apply(read_table(path, options=ReadingOptions(missing=("None",))))
    assert unknown.sensitive["g"].isna().sum() == 100
    assert "g is unknown in 100 rows ('None')" in " ".join(unknown.notes)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["93%", "5 %", "", "NA"], [93, 5, np.nan, np.nan]),
        (["1,042", "907", "1,000,000"], [1042, 907, 1e6]),
        (["1 042", "12"], [1042, 12]),
        (["$5", "7.5 €", "-£1,000"], [5, 7.5, -1000]),
        (["1e3", "-2.5", "+4"], [1000, -2.5, 4]),
    ],
)
def test_texts_that_are_numbers(write, texts, numbers):
    frame = read_table(write("a\n" + "".join(f'"{text}"\n' for text in texts)))
    np.testing.assert_array_equal(frame["a"].to_numpy(float), numbers)


@pytest.mark.parametrize("texts", [["93%", "0.5"], ["1,04", "2.5"], ["10-20", "5"], ["1,2,3", "4"]])
def test_texts_that_are_not_all_numbers_of_one_kind(write, texts):
    frame = read_table(write("a,b\n" + "".join(f'"{text}",0.5\n' for text in texts)))
    assert frame["a"].astype(object).tolist() == texts


@given(st.floats(-1e12, 1e12, allow_nan=False), st.sampled_from([".", ","]))
def test_numbers_with_marks_between_thousands(number, decimal):
    """As Python's own formatting writes them."""
    text = f"{number:,.3f}"
    if decimal == ",":
        text = text.translate(str.maketrans(",.", ".,"))
    (found,) = parse_numbers([text], decimal)
    assert found == float(f"{number:.3f}")


VALUES = [
    "1", "2", "1.5", "NA", "", "None", "a", "b ", "True", "FALSE", "93%", "5%", "1,042", "$5",
    "2020-01-01", "2021-05-07", "13/02/2020", "01/02/2020", "99999999999999999999", "007", "nan",
    "inf", "é,ß", 'q"', "l\nm", "0x1A", "1e5", "-0", "Jan 5, 2020", "1 042", "3,5", "?", "#N/A",
    "  ",
]  # fmt: skip


def test_long_integers_are_numbers_in_every_piece(write, monkeypatch):
    long = "99999999999999999999"
    path = write("a,b\n" + f"{long},1\n1.5,1\n" + f"{long},1\n" * 4 + "1.5,1\n" * 2)
    monkeypatch.setattr(pieces, "__defaults__", (None, (), 2, None))
    assert read_table(path)["a"].tolist() == [1e20, 1.5, *[1e20] * 4, 1.5, 1.5]


def test_reading_tells_how_much_is_done(tmp_path):
    path = tmp_path / "long.csv"
    pd.DataFrame({"a": np.arange(200_000)}).to_csv(path, index=False)
    shares = []
    assert len(read_table(path, done=shares.append)) == 200_000
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from(",;\t"),
    st.sampled_from([5, 1000]),
    st.randoms(use_true_random=False),
)
def test_what_can_be_fitted_can_be_predicted(tmp_path_factory, columns, sep, rows, chance):
    """A table gives the same matrix when it is fitted and when its texts are read to predict."""
    drawn = {f"c{i}": [chance.choice(own) for _ in range(24)] for i, own in enumerate(columns)}
    table = pd.DataFrame({**drawn, "g": list("uv") * 12, "y": list("nnyy") * 6}, dtype=str)
    path = tmp_path_factory.mktemp("fuzz") / "table.csv"
    table.to_csv(path, index=False, sep=sep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", rows)
        patch.setattr(pieces, "__defaults__", (None, (), rows, None))
        try:
            frame = read_table(path)
            labelled = ROLES.apply(frame)
        except ValueError as error:
            assert str(error)  # noqa: PT017 - refused in a sentence is fine
            return
    encoder = labelled.encoder
    fitted = encoder.encode(labelled.features)
    parts = [encoder.read(piece) for piece in pieces(path, texts=True, rows=7)]
    later = np.concatenate([encoder.encode(part) for part, _ in parts])
    np.testing.assert_array_equal(later, fitted)
    assert not any(odd for _, odd in parts)
    assert np.isfinite(fitted).all()


def test_several_files_a_pattern_and_a_folder(tmp_path):
    whole = pd.DataFrame({"a": range(30), "b": list("xyz") * 10})
    whole[:10].to_csv(tmp_path / "1.csv", index=False)
    whole[10:20][["b", "a"]].to_csv(tmp_path / "2.csv", index=False, sep=";", encoding="utf-16")
    whole[20:].to_csv(tmp_path / "3.tsv", index=False, sep="\t")
    for source in (
        [tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.tsv"],
        tmp_path,
        [str(tmp_path / "[12].csv"), tmp_path / "3.tsv"],
    ):
        frame = read_table(source)
        assert frame["a"].tolist() == list(range(30))
        assert frame["b"].astype(object).tolist() == list("xyz") * 10
    (tmp_path / "4.csv").write_text("a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"4.csv lacks the column 'b', unlike the files before"):
        read_table(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read_table(tmp_path / "*.parquet")


def test_a_folder_of_parquet_files_with_partitions(tmp_path):
    pytest.importorskip("pyarrow")
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        pd.DataFrame({"a": [year, year + 1], "t": ["NA", "x"]}).to_parquet(folder / "0.parquet")
    frame = read_table(tmp_path)
    assert frame["year"].tolist() == [2023, 2023, 2024, 2024]
    assert frame["a"].tolist() == [2023, 2024, 2024, 2025]
    assert frame["t"].astype(object).tolist() == ["NA", "x"] * 2
    empty = tmp_path / "empty.parquet"
    pd.DataFrame({"a": [1.0]}).head(0).to_parquet(empty)
    assert column_names(empty) == ["a"]
    with pytest.raises(ValueError, match="has no rows"):
        read_table(empty)


def test_excel(tmp_path):
    pytest.importorskip("openpyxl")
    table = TABLE.assign(
        day=pd.to_datetime(["2020-01-01", "2020-05-07", None]), code=["1", "NA", "3"]
    )
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        table.to_excel(book, sheet_name="people", index=False)
        table.to_excel(book, sheet_name="other", index=False)
    frame = read_table(tmp_path / "book.xlsx")
    assert frame["größe"].tolist() == TABLE["größe"].tolist()
    assert frame["day"].dt.year.tolist()[:2] == [2020, 2020]
    assert frame["code"].isna().tolist() == [False, True, False]
    assert "the sheet 'people' is read; it has people, other" in said(frame)


def test_standard_input(monkeypatch, tmp_path):
    TABLE.to_csv(tmp_path / "table.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    content = (tmp_path / "table.csv").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    reading._spooled.cache_clear()  # noqa: SLF001 - a program reads its input once
    assert column_names("-") == list(TABLE)
    frame = read_table("-")
    assert frame["größe"].tolist() == TABLE["größe"].tolist()
    assert said(frame).startswith("standard input is read with")
    reading._spooled.cache_clear()  # noqa: SLF001 - as above
