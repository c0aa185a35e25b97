"""What duckdb finds about a table is what the whole table says of itself."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairgrad.splitting import hashed_parts, row_key
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.encoding import describe_features, encode_rows, fitted_encoder, read_features
from fairgrad.tables.reading import read_table
from fairgrad.tables.roles import ColumnRoles
from fairgrad.tables.stored import StoredTable
from fairgrad.tables.survey import SurveyedTable, survey

ROLES = ColumnRoles("y", ("s",), prefix="--")
N = 1_500


def columns_of(rng):
    """Columns of every kind, with gaps in some."""

    def gaps(values, share):
        return np.where(rng.random(N) < share, None, values)

    days = pd.date_range("2021-01-01", periods=400)
    return {
        "fraction": rng.normal(size=N),
        "gappy": pd.Series(gaps(rng.gamma(2, 3, N), 0.2), dtype="float64"),
        "count": rng.poisson(3, N),
        "large": rng.integers(0, 10**6, N).astype(np.int32),
        "code": rng.integers(0, 3, N).astype(np.int8),
        "text": rng.choice(["a", "b", " b", "None", "c"], N),
        "holes": gaps(rng.choice(["x", "y"], N), 0.3),
        "numbers in texts": rng.choice(["1", "2.5", "NA", "7"], N),
        "truth": rng.random(N) < 0.4,
        "day": rng.choice(days, N),
        "date in a text": rng.choice(days.strftime("%d.%m.%Y"), N),
        "rare": [f"v{v}" for v in rng.zipf(1.6, N).clip(max=400)],
        "name": [f"person {i}" for i in range(N)],
        "number": np.arange(N) + 5,
        "constant": np.ones(N),
        "nothing": pd.Series([None] * N, dtype="float64"),
        "person_id": rng.permutation(10 * N)[:N],
    }


@pytest.fixture(autouse=True)
def _small_numbers_are_large(monkeypatch):
    """So that few rows suffice for what is done with many values."""
    monkeypatch.setattr("fairgrad.tables.survey.FEW", 300)
    monkeypatch.setattr("fairgrad.tables.survey.MANY_TEXTS", 300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("survey")


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**31 - 1),
    n_files=st.integers(1, 3),
    chosen=st.sets(st.integers(0, 16), min_size=3, max_size=17),
)
def test_a_survey_finds_what_the_table_in_memory_has(folder, seed, n_files, chosen):
    rng = np.random.default_rng(seed)
    made = list(columns_of(rng).items())
    frame = pd.DataFrame(
        {"fraction": rng.normal(size=N)} | {made[i][0]: made[i][1] for i in chosen}
    )
    frame["s"] = np.where(rng.random(N) < 0.1, None, rng.choice(["F", "M"], N))
    frame["y"] = np.where(rng.random(N) < 0.05, None, rng.choice(["no", "yes"], N))
    place = folder / f"{seed}-{n_files}-{len(chosen)}"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    for number, part in enumerate(np.array_split(np.arange(N), n_files)):
        frame.iloc[part].to_parquet(place / f"{number}.parquet", row_group_size=400, index=False)

    whole = read_table(place)
    people = ROLES.apply(whole)
    stored = StoredTable.open(place, seed)
    found = survey(stored, ROLES, ReadingOptions())
    parts = np.concatenate(
        [
            hashed_parts(row_key(f"{i}.parquet", seed), 0, len(own))
            for i, own in enumerate(np.array_split(np.arange(N), n_files))
        ]
    )[people.rows]

    assert found.labels == people.values
    assert found.sizes() == np.bincount(parts, minlength=3).tolist()
    expected = describe_features(people.features, whole, np.flatnonzero(parts < 2), people.dates)
    assert [one.name for one in found.features] == [one.name for one in expected]
    for own, other in zip(found.features, expected, strict=True):
        assert (own.kind, own.values, own.numbers, own.has_gaps, own.date, own.low, own.high) == (
            other.kind,
            other.values,
            other.numbers,
            other.has_gaps,
            other.date,
            other.low,
            other.high,
        ), own.name
        assert own.median == pytest.approx(other.median)

    encoder = fitted_encoder(found.features)
    training = encode_rows(encoder, people.features, np.flatnonzero(parts == 0)).astype(float)
    np.testing.assert_allclose(found.offset, training.mean(0), atol=1e-6)
    spread = training.std(0)
    np.testing.assert_allclose(found.scale, np.where(spread > 1e-5, spread, 1), atol=1e-6)

    groups = found.frequencies(0)
    for (label, group), own in (
        people.label.to_frame()
        .assign(s=people.sensitive["s"].astype(object).where(people.sensitive["s"].notna(), "?"))[
            parts == 0
        ]
        .groupby(["y", "s"], observed=True)
    ):
        place_of = groups.mass[
            groups.labels.tolist().index(label), groups.names.index(f"s={group}")
        ]
        assert place_of == len(own)
    assert _bare(found.notes) == _bare(people.all_notes)


def _bare(notes):
    """Without hints, which rest on a sample, and counts of spellings, here of labelled rows."""
    told = [note for note in notes if "can be told" not in note and "alone" not in note]
    return sorted(re.sub(r"\([\d,]+ rows?\)", "", note) for note in told)


def test_pieces_are_read_as_the_whole_table_is(folder):
    """Every row comes once, with its part, its label, its group and its features."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(columns_of(rng)).assign(
        s=np.where(rng.random(N) < 0.1, None, rng.choice(["F", "M"], N)),
        y=np.where(rng.random(N) < 0.05, None, rng.choice(["no", "yes"], N)),
    )
    place = folder / "pieces"
    place.mkdir()
    for number, part in enumerate(np.array_split(np.arange(N), 5)):
        frame.iloc[part].to_parquet(place / f"{number}.parquet", row_group_size=70, index=False)
    stored = StoredTable.open(place, 3)
    found = survey(stored, ROLES, ReadingOptions())
    found = SurveyedTable.from_dict(found.to_dict(), ROLES)  # as it is kept
    groups = found.frequencies(1)
    read, encoder = found.reader(groups), fitted_encoder(found.features)
    mass, matrices = np.zeros_like(groups.mass), []
    for piece, part in stored.read(stored.groups, found.needed):
        known, label, group = read(piece)
        np.add.at(mass, (label, group), part[known] == 1)
        features, odd = read_features(piece[known].reset_index(drop=True), found.features)
        assert {column for column, _ in odd} <= {"rare"}  # whose rarest values are merged
        matrices.append(encode_rows(encoder, features))
    np.testing.assert_array_equal(mass, groups.mass)
    people = ROLES.apply(read_table(place))
    whole = encode_rows(encoder, people.features)
    got = np.concatenate(matrices)
    assert got.shape == whole.shape
    np.testing.assert_array_equal(got[np.lexsort(got.T)], whole[np.lexsort(whole.T)])
