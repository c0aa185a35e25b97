"""Tables of unknown users: what is read and refused, and that `predict` reads the same."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from fairgrad.tables.reading import pieces, read_table
from fairgrad.tables.roles import ColumnRoles

ROLES = ColumnRoles("y", ("sex",))


@pytest.fixture
def table():
    chance = np.random.default_rng(0)
    n = 200
    return pd.DataFrame(
        {
            "age": chance.integers(18, 80, n),
            "score": chance.normal(size=n).round(3),
            "city": chance.choice(["Lyon", "Lil;le\nNord", "Pa,ris"], n),
            "sex": chance.choice(["f", "m"], n),
            "y": chance.choice(["no", "yes"], n),
        }
    )


def matrices(path):
    """The matrix of a table as it is fitted, and as `fairgrad predict` reads the same file."""
    frame = read_table(path)
    labelled = ROLES.apply(frame)
    encoder = labelled.encoder
    read = [encoder.read(piece) for piece in pieces(path, texts=True, rows=70)]
    assert not any(odd for _, odd in read)
    later = np.concatenate([encoder.encode(part) for part, _ in read])
    return encoder.encode(labelled.features), later, encoder.features_


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"encoding": "utf-8-sig"},
        {"sep": ";"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t", "decimal": ","},
        {"sep": "|"},
        {"lineterminator": "\r\n"},
    ],
)
def test_a_csv_file_gives_the_same_however_it_is_written(table, tmp_path, written):
    table.to_csv(tmp_path / "plain.csv", index=False)
    table.to_csv(tmp_path / "other.csv", index=False, **written)
    expected, _, _ = matrices(tmp_path / "plain.csv")
    fitted, predicted, features = matrices(tmp_path / "other.csv")
    np.testing.assert_array_equal(fitted, expected)
    np.testing.assert_array_equal(predicted, expected)
    assert [feature.kind for feature in features] == ["number", "number", "category"]


def test_a_file_of_one_column_stays_one(tmp_path):
    (tmp_path / "one.csv").write_text("name\na\nb\n")
    assert list(read_table(tmp_path / "one.csv")) == ["name"]


def test_spaces_around_values_make_no_groups(table, tmp_path):
    spaced = table.assign(sex=["f ", " f", "m", "  "] * 50, y=[" no", "yes"] * 100)
    spaced.to_csv(tmp_path / "spaced.csv", index=False)
    labelled = ROLES.apply(read_table(tmp_path / "spaced.csv"))
    assert list(labelled.sensitive["sex"].cat.categories) == ["f", "m"]
    assert labelled.sensitive["sex"].isna().sum() == 50
    assert labelled.values == ["no", "yes"]


def test_blank_targets(table, tmp_path, labelled):
    """They are missing, as an empty field is."""
    table.assign(y=["no", "yes", " ", "yes"] * 50).to_csv(tmp_path / "blank.csv", index=False)
    data = labelled(tmp_path / "blank.csv", target="y")
    assert len(data) == 150
    assert "50 rows left out (no y)." in data.notes


def test_columns_that_number_the_rows_are_no_features(table, tmp_path):
    table.assign(id=range(5001, 5201)).to_csv(tmp_path / "numbered.csv")
    labelled = ROLES.apply(read_table(tmp_path / "numbered.csv"))
    assert list(labelled.features) == ["age", "score", "city"]
    assert labelled.notes == (
        "Left out as features: Unnamed: 0 (no name in the file); id (it numbers the rows).",
    )


def test_decimals_and_dates_of_parquet_are_numbers(table, tmp_path):
    pytest.importorskip("pyarrow")
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i % 90) for i in range(200)]
    prices = [Decimal(i * 37 % 100) / 10 for i in range(200)]
    zoned = pd.to_datetime(days).tz_localize("Europe/Paris")
    table.assign(day=days, price=prices, zoned=zoned).to_parquet(tmp_path / "odd.parquet")
    fitted, predicted, features = matrices(tmp_path / "odd.parquet")
    kinds = {feature.name: feature.kind for feature in features}
    parts = {"year", "month", "weekday", "age in days"}
    assert {f"day ({part})" for part in parts - {"year"}} <= set(kinds)  # all of one year
    assert kinds["day (month)"] == "category"
    assert (kinds["day (age in days)"], kinds["price"]) == ("number", "number")
    assert next(feature.high for feature in features if feature.name == "price") == 9.9
    np.testing.assert_array_equal(fitted, predicted)


def test_truths_in_capitals_and_constant_columns(table, tmp_path):
    odd = table.assign(member=["TRUE", "FALSE"] * 100, empty=None, same=7, word="x")
    odd.to_csv(tmp_path / "odd.csv", index=False)
    fitted, predicted, features = matrices(tmp_path / "odd.csv")
    assert next(f.values for f in features if f.name == "member") == ("False", "True")
    assert "empty" not in [feature.name for feature in features]
    assert np.isfinite(fitted).all()
    np.testing.assert_array_equal(fitted, predicted)


def test_a_column_declared_categorical_may_play_any_part(table, labelled):
    """Codes that look like a quantity, as a sensitive column; mixed values, as the target."""
    coded = table.assign(zip=np.arange(200) % 30, grade=["1", 2, "x", 3] * 50)
    data = labelled(coded, target="grade", sensitive="zip", categorical=["zip", "grade"])
    assert len(data.sensitive["zip"].cat.categories) == 30
    assert data.values == ["1", "2", "3", "x"]


@pytest.mark.parametrize(("groups", "in_test"), [([100, 100], 40), ([190, 9, 1], 40)])
def test_split_is_stratified_and_disjoint(table, groups, in_test):
    names = np.repeat(["a", "b", "c"][: len(groups)], groups)
    labelled = ROLES.apply(table.assign(sex=names))
    train, validation, test = labelled.split(3)
    assert sorted([*train, *validation, *test]) == list(range(200))
    assert abs(len(test) - in_test) <= 2
    assert abs(len(validation) - in_test) <= 2
    assert set(names) == set(names[train])
