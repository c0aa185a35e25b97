"""Tables that cannot be used: each a clear error that names the column and the way out."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def table():
    n = 120
    return pd.DataFrame(
        {
            "Age": np.arange(n) % 60 + 18,
            "sex": ["f", "m"] * (n // 2),
            "name": [f"person {i}" for i in range(n)],
            "salary": np.linspace(1e4, 9e4, n),
            "hired": [0, 1, 1] * (n // 3),
        }
    )


@pytest.fixture(scope="session")
def refused(labelled):
    def check(table, message, error=ValueError, **arguments):
        with pytest.raises(error, match=message):
            labelled(table, **arguments)

    return check


def test_missing_file(tmp_path, refused):
    refused(tmp_path / "absent.csv", "there is no such file", FileNotFoundError)


def test_empty_files(tmp_path, refused):
    path = tmp_path / "empty.csv"
    path.write_text("")
    refused(path, r"empty\.csv is empty")
    path.write_text("hired,sex\n")
    refused(path, r"empty\.csv has no rows")


def test_files_that_are_no_tables(tmp_path, refused):
    path = tmp_path / "ragged.csv"
    path.write_text("a,b\n1,2\n3,4,5,6\n")
    refused(path, r"ragged\.csv cannot be read as a table")
    path = tmp_path / "noise.csv"
    path.write_bytes(bytes(range(128, 256)) * 20)
    refused(path, r"noise\.csv cannot be read as a table")
    path = tmp_path / "half.csv.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00 not really")
    refused(path, r"half\.csv\.gz cannot be read as a table")
    path = tmp_path / "table.docx"
    path.write_bytes(b"x")
    refused(path, r"'table\.docx'; expected a file ending in \.csv")
    path = tmp_path / "table.xlsx"
    path.write_bytes(b"x")
    refused(path, r"table\.xlsx cannot be read as an Excel file")


def test_parquet_that_is_none(tmp_path, refused):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1 no")
    refused(path, "cannot be read as a Parquet file")


def test_missing_columns_suggest_near_ones(table, refused):
    refused(table, "--target names the column 'hire', .*did you mean 'hired'", target="hire")
    refused(table, "--sensitive names .* 'age', .*did you mean 'Age'\\?$", sensitive=["age"])
    refused(table, "--drop names the column 'nmae', .*'name'", drop=["nmae"])
    refused(table, "its columns are Age, sex, name", sensitive=["zzzz"])


def test_a_column_that_is_used_anyway_need_not_be_kept(table, refused):
    refused(table, "--keep has no effect: 'Age' is used anyway", keep=["Age"])


def test_arguments_of_the_wrong_kind(table, refused):
    refused(table, "--sensitive is empty", sensitive=[])
    refused(table, "different columns", sensitive=["hired"])
    refused(table, "different columns", drop=["sex"])
    refused(table, "bins names 'Age', which is not among --sensitive", bins={"Age": [30]})
    refused(table, "--desirable is 'maybe'; the values of 'hired' are 0, 1", y_desirable="maybe")


def test_target_with_one_class(table, refused):
    refused(table.assign(hired=1), "--target names 'hired', which has 1 class in 120 rows")
    refused(table.assign(hired=None), "--target names 'hired', which has no classes")


@pytest.mark.parametrize("target", ["salary", "Age", "name"])
def test_continuous_target(table, target, refused):
    refused(table, f"target '{target}' has .* looks continuous", target=target)


def test_fractions_as_target(table, refused, labelled):
    refused(table.assign(hired=[0.1, 0.5, 0.9] * 40), "looks continuous")
    data = labelled(table.assign(hired=[0.0, 1.0, 1.0] * 40))
    assert data.values == ["0", "1"]


def test_sensitive_column_with_a_value_per_row(table, refused):
    refused(table, "'name' has 120 different values in 120 rows", sensitive=["name"])


def test_numeric_sensitive_column_needs_bins(table, refused):
    refused(table, "'Age' has 60 different numbers; .* --bins \"Age=", sensitive=["Age"])
    refused(table, "must increase", sensitive=["Age"], bins={"Age": [50, 30]})
    refused(table, "into one group", sensitive=["Age"], bins={"Age": [500]})
    refused(table, "not numbers", bins={"sex": [1]})


def test_sensitive_column_without_groups(table, refused):
    refused(table.assign(sex="f"), "one value only, 'f'")
    refused(table.assign(sex=7), "one value only, 7:")
    refused(table.assign(sex=None), "'sex' has no values")


def test_missing_sensitive_values_are_in_no_group(table, labelled):
    table.loc[:4, "sex"] = None
    assert labelled(table).sensitive["sex"].isna().sum() == 5


@pytest.mark.parametrize("column", ["salary", "sex", "hired"])
def test_mixed_types(table, column, tmp_path, refused):
    mixed = table.astype({column: object})
    mixed[column] = [1.5, 2, 3, "some"] * 30
    refused(mixed, f"'{column}' mixes numbers and texts such as 'some'")
    path = tmp_path / "mixed.csv"
    mixed[column] = [*map(str, range(119)), "unclear"]
    mixed.to_csv(path, index=False)
    refused(path, f"'{column}' mixes numbers and texts such as 'unclear'")


def test_mixed_column_may_be_declared_categorical(table, refused, labelled):
    mixed = table.assign(code=[1, 2, "x", "y"] * 30)
    refused(mixed, "'code' mixes")
    data = labelled(mixed, categorical=["code"])
    assert list(data.features["code"].cat.categories) == ["1", "2", "x", "y"]


def test_all_mixed_columns_are_named_at_once(table, refused):
    mixed = table.assign(code=[1, 2, "x", "y"] * 30, grade=["9", "10", "11", "other"] * 30)
    refused(mixed, "'code' mixes .* The same is true of 'grade'")


def test_infinite_numbers(table, refused):
    table.loc[3, "salary"] = np.inf
    refused(table, "'salary' holds 1 infinite number")


def test_no_features_left(table, refused):
    refused(table[["sex", "hired", "name"]], "no column is left")
