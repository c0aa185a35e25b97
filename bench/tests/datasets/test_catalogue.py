"""Every data set of the catalogue: what all share, and the paper's counts of each."""

import numpy as np
import pandas as pd
import pytest

from fairgrad import datasets as bundled
from fairgrad_bench.datasets import DataNotFoundError, describe, load, names, overview
from fairgrad_bench.datasets.loading import find_schema

#: Rows, columns of the matrix, and rows of each cell (label by label, group by group).
COUNTS = {
    "celeba": (202_599, 38, [50_636, 54_294, 33_798, 63_871]),
    "compas": (6_172, 13, [2_082, 1_281, 1_987, 822]),
    "crime": (1_994, 97, [231, 1_084, 519, 160]),
    "dutch": (60_420, 42, [18_860, 9_903, 11_287, 20_370]),
    "folktables": (78_266, 9, [22_001, 24_144, 19_373, 12_748]),
    "gaussian": (100_000, 2, [25_000, 25_000, 25_000, 25_000]),
}
CATALOGUE = [name for name in names() if name not in bundled.names()]


def loaded(name):
    try:
        return load(name)
    except DataNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts(name):
    data = loaded(name)
    X, y, s = data.encode()
    rows, columns, cells = COUNTS[name]
    assert X.shape == (rows, columns)
    assert np.bincount(y * len(data.group_names) + s).tolist() == cells


def _raw(shared, name):
    path = shared / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not at hand")
    return pd.read_csv(path, keep_default_na=False, na_values=["", "?"])


def test_labels_and_groups_against_the_raw_tables(shared):
    """Y and s computed here directly from each raw file."""
    raw = _raw(shared, "celeba_attributes")
    assert np.array_equal(load("celeba").y, raw["Smiling"] == 1)
    assert np.array_equal(load("celeba").s, raw["Male"] == -1)
    raw = _raw(shared, "dutch_census_2001")
    assert np.array_equal(load("dutch").y, raw["occupation"] == "5_4_9")
    assert np.array_equal(load("dutch").s, raw["sex"] == 2)
    raw = _raw(shared, "communities_crime")
    assert np.array_equal(load("crime").y, raw["ViolentCrimesPerPop"] > 0.24)
    assert np.array_equal(load("crime").s, raw["racePctWhite"] > 0.75)
    raw = _raw(shared, "acs_income_ca_2018_subset")
    assert np.array_equal(load("folktables").y, raw["PINCP_gt_50000"])
    raw = _raw(shared, "compas-scores-two-years")
    kept = raw[
        raw["days_b_screening_arrest"].between(-30, 30)
        & (raw["is_recid"] != -1)
        & (raw["c_charge_degree"] != "O")
        & raw["score_text"].notna()
    ]
    assert np.array_equal(load("compas").y, kept["two_year_recid"])
    assert np.array_equal(load("compas").s, kept["race"] == "Caucasian")


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_matrix_against_pandas(name):
    """One-hot columns and scaled numbers, computed with pandas alone, in any column order."""
    data = loaded(name)
    numbers = data.frame.select_dtypes("number").astype(float)
    scaled = 2 * (numbers - numbers.min()) / (numbers.max() - numbers.min()) - 1
    categories = data.frame.select_dtypes("category")
    expected = (
        scaled.join(pd.get_dummies(categories, dtype=float)) if len(categories.columns) else scaled
    )
    encoded = data.encode()
    assert sorted(expected.columns) == sorted(encoded.feature_names)
    np.testing.assert_allclose(encoded.X, expected[list(encoded.feature_names)], atol=1e-6)
    assert encoded.X.dtype == np.float32


@pytest.mark.parametrize("name", CATALOGUE)
def test_schema_is_complete(name):
    schema = find_schema(name)
    assert schema.name == name
    assert schema.licence
    assert schema.source
    assert schema.citation
    assert all(attribute.meaning for attribute in (schema.label, *schema.sensitive))
    assert all(feature.meaning for feature in schema.features)
    made = {carrier.makes for carrier in schema.carriers}
    assert made <= {file.name for file in schema.files}


@pytest.mark.parametrize("name", CATALOGUE)
def test_described_with_or_without_its_data(name):
    text = describe(name)
    schema = find_schema(name)
    assert text.startswith(schema.title)
    assert f"Licence: {schema.licence}"[:60] in text


def test_overview_lists_every_data_set():
    entries = {entry.name: entry for entry in overview()}
    assert tuple(entries) == names()
    assert entries["german"].place == "fairgrad"
    assert entries["gaussian"].place == "generated"
    assert not entries["utkface"].fetchable


def test_describe_says_what_an_analyst_needs():
    text = load("adult_multigroup").describe()
    for fact in ("45,222 rows", "3,620 left out", "24.8 %", "sex=Female, race=Not white", "214"):
        assert fact in text


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="name is 'adlut'; the data sets are adult, "):
        load("adlut")


def test_unknown_option():
    with pytest.raises(TypeError, match="takes no options"):
        load("adult", rows=3)


def test_compas_has_no_personal_column():
    personal = {"name", "first", "last", "dob", "c_case_number", "r_case_number"}
    assert not personal & set(loaded("compas").frame)


def test_gaussian_is_reproducible_and_has_the_described_clouds():
    data = load("gaussian", rows=80_001, seed=3)
    assert data.frame.equals(load("gaussian", rows=80_001, seed=3).frame)
    assert not data.frame.equals(load("gaussian", rows=80_001, seed=4).frame)
    assert len(data) == 80_001
    means = data.frame.groupby([data.y, data.s]).mean().to_numpy()
    # The label +1 of the first group is an even mixture of two clouds.
    expected = [[2, -2], [4.5, -1.5], [(3 + 1) / 2, (-1 + 4) / 2], [2.5, 2.5]]
    np.testing.assert_allclose(means, expected, atol=0.05)
    with pytest.raises(ValueError, match="rows is 2"):
        load("gaussian", rows=2)
