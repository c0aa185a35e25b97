"""ACSIncome: the threshold, and the table that the folktables package delivers."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from fairgrad.files import write_whole
from fairgrad_bench.datasets import DataNotFoundError, FetchError, load
from fairgrad_bench.datasets.fetch import ACS_COLUMNS, california_income, income_table
from fairgrad_bench.datasets.places import record_hash


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRGRAD_CACHE", str(tmp_path))
    monkeypatch.delenv("FAIRGRAD_DATA", raising=False)
    return tmp_path


@pytest.fixture
def survey():
    """A survey with people that the ACSIncome task leaves out."""
    chance = np.random.default_rng(1)
    columns = {name: chance.integers(1, 9, 300) for name in ACS_COLUMNS}
    columns |= {
        "AGEP": chance.integers(10, 80, 300),
        "PINCP": chance.integers(0, 90_000, 300).astype(float),
        "WKHP": np.where(chance.random(300) < 0.2, np.nan, chance.integers(0, 60, 300)),
        "SEX": chance.integers(1, 3, 300),
        "PWGTP": chance.integers(0, 5, 300),
        "SERIALNO": np.arange(300),
    }
    return pd.DataFrame(columns)


def test_income_table_agrees_with_folktables_own_task(survey):
    folktables = pytest.importorskip("folktables")
    table = pd.read_csv(pd.io.common.BytesIO(income_table(survey)))
    features, label, _ = folktables.ACSIncome.df_to_numpy(survey)
    assert np.array_equal(table[list(ACS_COLUMNS[:-1])], features)
    assert np.array_equal(table["PINCP"] > 50_000, label)


def test_full_table_takes_any_threshold(cache, survey):
    content = survey[list(ACS_COLUMNS)].fillna(0).astype(int).to_csv(index=False).encode()
    path = cache / "acs_income_ca_2018.csv"
    write_whole(path, content)
    record_hash(path, hashlib.sha256(content).hexdigest())
    for threshold in (25_000, 50_000):
        data = load("folktables", threshold=threshold)
        assert np.array_equal(data.y, survey["PINCP"] > threshold)
        assert data.label_names == (f"<={threshold}", f">{threshold}")
        assert np.array_equal(data.s, survey["SEX"] == 2)


def test_subset_has_one_threshold_only(shared):
    if not (shared / "acs_income_ca_2018_subset.csv.gz").is_file():
        pytest.skip("the subset is not at hand")
    assert "40 %" in load("folktables").describe()
    with pytest.raises(DataNotFoundError, match=r"acs_income_ca_2018\.csv not in"):
        load("folktables", threshold=25_000)


def test_survey_of_the_wrong_size_is_refused(monkeypatch, survey):
    folktables = pytest.importorskip("folktables")
    monkeypatch.setattr(folktables.ACSDataSource, "get_data", lambda *_, **__: survey)
    with pytest.raises(FetchError, match="rows instead of 195665"):
        california_income()
