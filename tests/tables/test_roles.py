"""Users' tables: what is guessed, how it is reported, and that nothing is lost."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad.datasets import load
from fairgrad.tables.column import why_left_out


@pytest.fixture
def people():
    """400 people, with everything that real tables have."""
    chance = np.random.default_rng(0)
    days = pd.to_timedelta(chance.integers(0, 900, 400), "D")
    return pd.DataFrame(
        {
            "record": [f"R-{number:05d}" for number in chance.permutation(400)],
            "age": chance.integers(18, 80, 400),
            "income": np.where(chance.random(400) < 0.1, np.nan, chance.normal(3e4, 1e4, 400)),
            "city": chance.choice(["Lyon", "Lille", None], 400, p=[0.6, 0.3, 0.1]),
            "zip": chance.choice([69001, 59000, 75002], 400),
            "since": pd.Timestamp("2020-01-01") + days,
            "member": chance.random(400) < 0.5,
            "empty": np.nan,
            "sex": chance.choice(["f", "m", None], 400, p=[0.45, 0.45, 0.1]),
            "hired": chance.choice(["yes", "no"], 400),
        }
    )


def test_guesses_and_summary(people, labelled):
    data = labelled(people, categorical=["zip"])
    kinds = {name: str(dtype) for name, dtype in data.features.dtypes.items()}
    assert kinds == {
        "age": "int64",
        "income": "float64",
        "city": "category",
        "zip": "category",
        "since (year)": "float64",
        "since (month)": "category",
        "since (weekday)": "category",
        "since (age in days)": "float64",
        "member": "category",
    }
    text = " ".join(data.notes)
    unknown = int(people["sex"].isna().sum())
    for fact in (
        f"sex is unknown in {unknown} rows; they are kept.",
        "record (its texts differ in most rows); empty (no values).",
        f"median and marked: income {int(people['income'].isna().sum())}.",
        f"a separate category: city {int(people['city'].isna().sum())}.",
    ):
        assert fact in text
    assert data.sensitive["sex"].isna().sum() == unknown


def test_codes_match_the_values(people, labelled):
    data = labelled(people)
    assert np.array_equal(data.label, people["hired"])
    assert data.values == ["no", "yes"]
    known = people["sex"].notna()
    assert np.array_equal(data.sensitive["sex"][known], people["sex"][known])
    swapped = labelled(people, y_desirable="no")
    assert swapped.values == ["yes", "no"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_a_file_gives_the_same_as_the_frame(people, tmp_path, ending, labelled):
    path = tmp_path / f"people.{ending}"
    table = people.drop(columns="since")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    read = labelled(path)
    direct = labelled(table)
    pd.testing.assert_frame_equal(read.features, direct.features, check_categorical=False)
    pd.testing.assert_frame_equal(read.sensitive, direct.sensitive)
    pd.testing.assert_series_equal(read.label, direct.label)


def test_encoding_of_missing_values_is_explicit(people, labelled):
    data = labelled(people)
    matrix = data.encoder.encode(data.features)
    columns = dict(zip(data.encoder.get_feature_names_out(), matrix.T, strict=True))
    assert np.isfinite(matrix).all()
    assert np.array_equal(columns["city_(missing)"] == 1, people["city"].isna())
    assert np.array_equal(columns["missingindicator_income"] == 1, people["income"].isna())
    low, high = people["income"].min(), people["income"].max()
    median = 2 * (people["income"].median() - low) / (high - low) - 1
    np.testing.assert_allclose(columns["income"][people["income"].isna()], median, atol=1e-6)


def test_several_sensitive_columns_and_bins(people, labelled):
    data = labelled(people, sensitive=["sex", "age"], bins={"age": [30, 60]}, drop=["zip"])
    age = data.sensitive["age"].cat
    assert list(age.categories) == ["under 30", "30 to under 60", "60 and over"]
    assert np.array_equal(age.codes, np.digitize(people["age"], [30, 60]))
    assert "zip" not in data.features


def test_many_values_are_merged_into_one(labelled):
    places = [f"place {number % 80 if number < 160 else number % 7}" for number in range(2000)]
    table = pd.DataFrame({"place": places, "g": list("uv") * 1000, "y": [0, 1, 1, 0] * 500})
    data = labelled(table, target="y", sensitive="g")
    categories = data.features["place"].cat.categories
    assert len(categories) == 50
    assert categories[-1] == "(other)"
    assert {f"place {number}" for number in range(7)} <= set(categories)
    kept = data.features["place"] != "(other)"
    assert (data.features["place"][kept] == table["place"][kept]).all()
    assert "place: 80 different values, the rarest merged into (other)." in data.notes


def test_rows_without_a_label_are_left_out_and_counted(people, labelled):
    people.loc[:9, "hired"] = None
    data = labelled(people)
    assert len(data) == 390
    assert data.notes[0] == "10 rows left out (no hired)."
    assert data.features["age"].tolist() == people["age"].iloc[10:].tolist()


def test_adult_as_a_users_csv_gives_the_same_labels_and_groups(tmp_path, labelled):
    """The bundled data, written and read back as a user's table."""
    adult = load("adult")
    path = tmp_path / "adult.csv"
    adult.frame.assign(sex=adult.sensitive["sex"], income=adult.label).to_csv(path, index=False)
    data = labelled(path, target="income", sensitive="sex")
    assert np.array_equal(data.label.cat.codes, adult.y)
    assert np.array_equal(data.sensitive["sex"].cat.codes, adult.s)
    assert data.encoder.encode(data.features).shape == (45_222, 52)


@given(
    labels=st.lists(st.sampled_from(["a", "b", "c"]), min_size=6, max_size=60).filter(
        lambda values: len(set(values)) > 1
    ),
    data=st.data(),
)
def test_any_table_round_trips(labelled, labels, data):
    """Codes point back to the values that came in, whatever is missing."""
    n = len(labels)
    values = st.sampled_from(["u", "v", None])
    groups = data.draw(
        st.lists(values, min_size=n, max_size=n).filter(
            lambda g: len({*g} - {None}) == 2 and len(g) - g.count(None) > 2
        )
    )
    numbers = data.draw(
        st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=n, max_size=n).filter(
            lambda x: any(v is not None for v in x)
        )
    )
    table = pd.DataFrame({"x": pd.Series(numbers, dtype=float), "g": groups, "y": labels})
    keep = ["x"] if why_left_out(table["x"]) else []
    made = labelled(table, target="y", sensitive="g", keep=keep)
    assert made.label.tolist() == labels
    assert (
        made.sensitive["g"].astype(object).where(made.sensitive["g"].notna(), None).tolist()
        == groups
    )
    encoded = made.encoder.encode(made.features)
    assert np.isfinite(encoded).all()
    assert len(encoded) == n
