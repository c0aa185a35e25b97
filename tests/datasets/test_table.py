"""Users' own tables: what is guessed, what is said about it, and that nothing is lost."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fairgrad.datasets import from_table, load


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


def test_guesses_and_summary(people):
    data = from_table(people, target="hired", sensitive=["sex"], categorical=["zip"])
    kinds = {name: str(dtype) for name, dtype in data.frame.dtypes.items()}
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
        f"sex is unknown in {unknown} rows; they are kept, in no group.",
        "record (its texts differ in most rows); empty (no values).",
        f"median, and are marked: income {int(people['income'].isna().sum())}.",
        f"a category of their own: city {int(people['city'].isna().sum())}.",
    ):
        assert fact in text
    assert (data.s == -1).sum() == unknown
    assert data.sensitive["sex"].isna().sum() == unknown


def test_codes_match_the_values(people):
    data = from_table(people, target="hired", sensitive="sex")
    assert np.array_equal(data.y, people["hired"] == "yes")
    known = people["sex"].notna()
    assert np.array_equal(data.s[known], people["sex"][known] == "m")
    swapped = from_table(people, target="hired", sensitive="sex", y_desirable="no")
    assert np.array_equal(swapped.y, people["hired"] == "no")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_a_file_gives_the_same_as_the_frame(people, tmp_path, ending):
    path = tmp_path / f"people.{ending}"
    table = people.drop(columns="since")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    read = from_table(path, target="hired", sensitive="sex")
    direct = from_table(table, target="hired", sensitive="sex")
    pd.testing.assert_frame_equal(read.frame, direct.frame, check_categorical=False)
    assert np.array_equal(read.y, direct.y)
    assert np.array_equal(read.s, direct.s)
    np.testing.assert_allclose(read.encode().X, direct.encode().X)


def test_encoding_of_missing_values_is_explicit(people):
    encoded = from_table(people, target="hired", sensitive="sex").encode()
    columns = dict(zip(encoded.feature_names, encoded.X.T, strict=True))
    assert np.isfinite(encoded.X).all()
    assert np.array_equal(columns["city_(missing)"] == 1, people["city"].isna())
    assert np.array_equal(columns["missingindicator_income"] == 1, people["income"].isna())
    low, high = people["income"].min(), people["income"].max()
    median = 2 * (people["income"].median() - low) / (high - low) - 1
    np.testing.assert_allclose(columns["income"][people["income"].isna()], median, atol=1e-6)


def test_encoder_serves_a_pipeline_and_new_values(people):
    data = from_table(people, target="hired", sensitive="sex")
    pipeline = make_pipeline(data.encoder(), LogisticRegression(max_iter=500))
    pipeline.fit(data.frame, data.y)
    new = data.frame.head(2).copy()
    new["city"] = ["Paris", None]
    assert pipeline.predict(new).shape == (2,)


def test_several_sensitive_columns_and_bins(people):
    data = from_table(
        people, target="hired", sensitive=["sex", "age"], bins={"age": [30, 60]}, drop=["zip"]
    )
    assert data.attribute_names["age"] == ("under 30", "30 to under 60", "60 and over")
    expected = np.digitize(people["age"], [30, 60])
    assert np.array_equal(data.attributes[:, 1], expected)
    assert data.group_names[4] == "sex=m, age=30 to under 60"
    known = people["sex"].notna().to_numpy()
    joint = 3 * (people["sex"] == "m").to_numpy() + expected
    assert np.array_equal(data.s, np.where(known, joint, -1))
    assert "zip" not in data.frame


def test_many_values_are_merged_into_one():
    places = [f"place {number % 80 if number < 160 else number % 7}" for number in range(2000)]
    table = pd.DataFrame({"place": places, "g": list("uv") * 1000, "y": [0, 1, 1, 0] * 500})
    data = from_table(table, target="y", sensitive="g")
    categories = data.frame["place"].cat.categories
    assert len(categories) == 50
    assert categories[-1] == "(other)"
    assert {f"place {number}" for number in range(7)} <= set(categories)
    kept = data.frame["place"] != "(other)"
    assert (data.frame["place"][kept] == table["place"][kept]).all()
    assert "place: 80 different values, the rarest merged into (other)." in data.notes


@pytest.mark.parametrize("desirable", [0, 0.0, "0"])
def test_the_desirable_value_may_be_given_in_any_spelling(desirable):
    table = pd.DataFrame({"x": [1.5, 2, 3, 4], "g": list("uuvv"), "y": [0.0, 1.0, 1.0, 0.0]})
    data = from_table(table, target="y", sensitive="g", y_desirable=desirable)
    assert data.label_names == ("1", "0")


def test_rows_without_a_label_are_left_out_and_counted(people):
    people.loc[:9, "hired"] = None
    data = from_table(people, target="hired", sensitive="sex")
    assert len(data) == 390
    assert data.left_out == {"no hired": 10}
    assert data.frame["age"].tolist() == people["age"].iloc[10:].tolist()


def test_the_users_frame_is_left_alone(people):
    before = people.copy(deep=True)
    from_table(people, target="hired", sensitive="sex").encode()
    pd.testing.assert_frame_equal(people, before)


def test_adult_as_a_users_csv_gives_the_same_labels_and_groups(tmp_path):
    """The bundled data, written out and read back as a stranger's table."""
    adult = load("adult")
    path = tmp_path / "adult.csv"
    adult.frame.assign(sex=adult.sensitive["sex"], income=adult.label).to_csv(path, index=False)
    data = from_table(path, target="income", sensitive="sex")
    assert np.array_equal(data.y, adult.y)
    assert np.array_equal(data.s, adult.s)
    assert data.encode().X.shape == (45_222, 52)


@given(
    labels=st.lists(st.sampled_from(["a", "b", "c"]), min_size=6, max_size=60).filter(
        lambda values: len(set(values)) > 1
    ),
    data=st.data(),
)
def test_any_table_round_trips(labels, data):
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
    made = from_table(table, target="y", sensitive="g")
    assert [made.label_names[code] for code in made.y] == labels
    names = {0: "u", 1: "v", -1: None}
    assert [names[code] for code in made.s] == groups
    encoded = made.encode()
    assert np.isfinite(encoded.X).all()
    assert len(encoded) == n
