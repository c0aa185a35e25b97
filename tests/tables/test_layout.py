"""Titles, merged headers, footers, sheets, packed files, pipes, files of other programs."""

import os
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest

from fairgrad.tables import TableEncoder
from fairgrad.tables.column import ReadingReport
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.reading import column_names, pieces, read_table

TABLE = pd.DataFrame(
    {"age": [31, 45, 28, 52], "city": ["Rome", "Bonn", "Lyon", "Rome"], "paid": [1.5, 2.5, 3.5, 4]}
)
CSV = TABLE.to_csv(index=False)


def said(frame):
    return " ".join(ReadingReport.of(frame).sentences(frame.columns))


def same(frame, table=TABLE):
    pd.testing.assert_frame_equal(
        frame.astype({"city": object}), table.astype({"city": object}), check_dtype=False
    )


LAYOUTS = {
    "plain": (CSV, 0, ""),
    "title": ("Pay of all people\n\n" + CSV, 3, ""),
    "padded title": ("Pay of all people,,\n,,\n" + CSV, 3, ""),
    "two titles": ("Pay,,\nSource:,census,\n" + CSV.replace("Bonn", '"Bo, nn"'), 0, None),
    "quoted title": ('"Pay of\nall, people"\n' + CSV, 2, ""),
    "wide title": ("Report of 2024, all departments, draft\n" + CSV, 0, None),
    "total": (CSV + "Total,,11.5\n", 0, "'Total'"),
    "notes": (
        CSV + "\n,,\nSource: census of 2020\n* preliminary\n",
        0,
        "'Source: census of 2020', '* preliminary'",
    ),
    "empty rows": (CSV + ",,\n,,\n,,\n", 0, ""),
    "both": ("Pay\n" + CSV + "Total,,11.5\n\nSource: us\n", 2, "'Total', 'Source: us'"),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("rows", [2, 50_000])
def test_titles_and_footers_of_text(tmp_path, monkeypatch, name, rows):
    content, header, footer = LAYOUTS[name]
    path = tmp_path / "pay.csv"
    path.write_text(content)
    monkeypatch.setattr(pieces, "__defaults__", (None, (), rows, None))
    if footer is None:  # nothing tells the titles from a header: never read silently
        try:
            frame = read_table(path)
        except ValueError:
            return
        assert list(frame) != list(TABLE) or "using row" in said(frame)
        return
    frame = read_table(path)
    same(frame)
    assert (f"using row {header} as the header" in said(frame)) == bool(header)
    assert (f"left out as a footer ({footer})" in said(frame)) == bool(footer)


def test_what_only_looks_like_titles_or_footers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",a\n0,5\n1,6\n")
    assert list(read_table(path)) == ["Unnamed: 0", "a"]
    path.write_text("plan,n,m\nTotal,1,2\nBasic,3,4\nTotal,5,6\n")
    assert len(read_table(path)) == 3
    path.write_text("id,a,b\np1,1,2\np2,,\n")
    assert len(read_table(path)) == 2
    path.write_text("text\nfirst row\nlast row\n")
    assert len(read_table(path)) == 2


def test_names_in_two_rows(tmp_path):
    path = tmp_path / "merged.csv"
    path.write_text("age,Home,,paid\n,city,zip,\n31,Rome,1,1.5\n45,Bonn,2,2.5\n28,Lyon,3,3.5\n")
    assert list(read_table(path)) == ["age", "city", "zip", "paid"]
    path.write_text("Person,,Outcome,\nage,city,paid,late\n31,Rome,1.5,0\n45,Bonn,2.5,1\n")
    frame = read_table(path)
    assert list(frame) == ["age", "city", "paid", "late"]
    assert "using row 2 as the header" in said(frame)


def test_rows_to_skip_are_the_users(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("a,b,c\n1,2,3\n" + CSV)
    same(read_table(path, options=ReadingOptions(skip_rows=2)))
    with pytest.raises(ValueError, match="no rows below --skip-rows"):
        read_table(path, options=ReadingOptions(skip_rows=20))


def test_sheets_titles_and_footers_of_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    cover = book.active
    cover.title = "cover"
    cover.append(["About this file"])
    sheet = book.create_sheet("pay")
    sheet.append([None, "Pay of all people"])
    sheet.append([])
    sheet.append([None, *TABLE])
    for row in TABLE.itertuples(index=False):
        sheet.append([None, *row])
    sheet.append([])
    sheet.append([None, "Total", None, 11.5])
    book.save(tmp_path / "pay.xlsx")
    frame = read_table(tmp_path / "pay.xlsx", options=ReadingOptions(sheet="pay"))
    same(frame)
    assert "using row 3 as the header" in said(frame)
    assert "the last row is left out as a footer ('Total')" in said(frame)
    behind_cover = read_table(tmp_path / "pay.xlsx")
    same(behind_cover)
    assert "the sheet 'pay' is read" in said(behind_cover)
    with pytest.raises(ValueError, match=r"--sheet is 'pya'; it has cover, pay"):
        read_table(tmp_path / "pay.xlsx", options=ReadingOptions(sheet="pya"))


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.xz", ".csv.bz2", ".csv.zst", ".zip"])
def test_packed_files(tmp_path, ending):
    path = tmp_path / f"pay{ending}"
    if ending == ".csv.zst":
        arrow = pytest.importorskip("pyarrow")
        with arrow.output_stream(str(path), compression="zstd") as file:
            file.write(CSV.encode())
    elif ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("folder/pay.csv", CSV)
            archive.writestr("__MACOSX/folder/._pay.csv", "x")
    else:
        TABLE.to_csv(path, index=False)
    same(read_table(path))
    damaged = tmp_path / f"half{ending}"
    damaged.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
    with pytest.raises(ValueError, match="cannot be"):
        read_table(damaged)


def test_a_zip_of_several_files(tmp_path):
    path = tmp_path / "pay.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    with pytest.raises(ValueError, match="contains 2 files"):
        read_table(path)


def test_pipes_are_read_like_the_standard_input(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("Pay\n" + CSV,))
    writer.start()
    assert column_names(path) == list(TABLE)
    same(read_table(path))
    writer.join()


def test_files_of_statistics_programs(tmp_path):
    labelled = TABLE.assign(city=TABLE["city"].astype("category"))
    labelled.to_stata(tmp_path / "pay.dta", write_index=False)
    same(read_table(tmp_path / "pay.dta"))
    for name, program in (("pay.sas7bdat", "a SAS"), ("pay.xpt", "a SAS"), ("bad.dta", "a Stata")):
        (tmp_path / name).write_bytes(b"x" * 2_000)
        with pytest.raises(ValueError, match=f"{name} cannot be read as {program} file"):
            read_table(tmp_path / name)
    (tmp_path / "pay.sav").write_bytes(b"x")
    with pytest.raises((ImportError, ValueError), match="SPSS"):
        read_table(tmp_path / "pay.sav")


@pytest.mark.parametrize("name", ["people.sav", "people.zsav", "people.xpt"])
def test_real_files_of_spss_and_sas(name, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    people = pd.DataFrame(
        {"age": [30.5, np.nan, 41.0], "city": ["Rome", "São Paulo", ""], "sex": [1.0, 2.0, 1.0]}
    )
    if name.endswith("xpt"):
        pyreadstat.write_xport(people, tmp_path / name, file_format_version=5)
    else:
        labels = {"sex": {1: "male", 2: "female"}}
        compress = name.endswith("zsav")
        pyreadstat.write_sav(
            people, tmp_path / name, variable_value_labels=labels, compress=compress
        )
        people["sex"] = people["sex"].map(labels["sex"])
    found = read_table(tmp_path / name)
    np.testing.assert_array_equal(found["age"], people["age"])
    assert found["city"].astype(object).fillna("").tolist() == people["city"].tolist()
    assert found["sex"].tolist() == people["sex"].tolist()


def test_texts_of_old_sas_files_that_are_not_utf_8(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "people.xpt"
    people = pd.DataFrame({"age": [30.0, 41.0], "city": ["Köln", "Rome"]})
    pyreadstat.write_xport(people, path, file_format_version=5)
    path.write_bytes(path.read_bytes().replace("Köln".encode(), "Köln ".encode("cp1252")))
    assert read_table(path)["city"].tolist() == ["Köln", "Rome"]


def test_a_footer_does_not_turn_numbers_into_texts(tmp_path):
    path = tmp_path / "long.csv"
    numbers = np.arange(120_000)
    lines = "".join(f"{n},{n % 7},x\n" for n in numbers)
    path.write_text("a,b,c\n" + lines + "Source: somewhere\n")
    frame = read_table(path)
    np.testing.assert_array_equal(frame["a"], numbers)
    np.testing.assert_array_equal(frame["b"], numbers % 7)


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_a_day_that_means_missing(tmp_path, kind):
    """Dates of text files are read as texts first, those of other files are dates already."""
    table = TABLE.assign(born=pd.to_datetime(["1980-05-01", "1900-01-01", "1991-02-03", None]))
    path = tmp_path / f"people.{kind}"
    write = {"csv": table.to_csv, "parquet": table.to_parquet, "xlsx": table.to_excel}[kind]
    write(path, index=False)
    options = ReadingOptions(missing=("1900-01-01",))
    frame = read_table(path, options=options)
    assert frame["born"].isna().tolist() == [False, True, False, True]
    assert ReadingReport.of(frame).gaps["born"] == {"": 1, "1900-01-01": 1}
    encoder = TableEncoder(missing=options.missing).fit(table)
    marked = encoder.transform(table)["missingindicator_born (year)"]
    assert (marked > 0).tolist() == [False, True, False, True]
