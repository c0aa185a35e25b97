"""The paper's split and the stratified one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from fairgrad.datasets import Dataset, load


def dataset(cells):
    """A data set with these numbers as labels, in one group."""
    label = pd.Series(pd.Categorical([f"c{cell}" for cell in cells]))
    group = pd.DataFrame({"g": pd.Categorical(["a"] * len(cells))})
    return Dataset("cells", pd.DataFrame({"x": np.arange(len(cells))}), label, group)


@given(rows=st.integers(5, 3000), seed=st.integers(0, 2**32 - 1))
def test_paper_split_is_a_partition_with_the_papers_sizes(rows, seed):
    parts = dataset(np.zeros(rows)).indices(seed)
    assert sorted(np.concatenate(list(parts)).tolist()) == list(range(rows))
    assert len(parts.test) == int(np.ceil(rows / 5))
    assert abs(len(parts.validation) - 0.2 * rows) <= 1


def test_a_seed_means_the_same_rows_for_ever():
    assert dataset(np.zeros(10)).indices(10).train.tolist() == [8, 2, 5, 6, 3, 1]
    assert dataset(np.zeros(10)).indices(10).test.tolist() == [4, 9]


@given(
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=8).filter(lambda c: sum(c) >= 5),
    seed=st.integers(0, 1000),
)
def test_every_stratum_has_its_share_to_within_one_row(counts, seed):
    strata = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    parts = dataset(strata).indices(seed, stratified=True)
    assert sorted(np.concatenate(list(parts)).tolist()) == list(range(len(strata)))
    for stratum, count in enumerate(counts):
        in_test = (strata[parts.test] == stratum).sum()
        in_validation = (strata[parts.validation] == stratum).sum()
        assert abs(in_test - 0.2 * count) <= 1
        # One row more or less in test moves the share of the rest by less than one row.
        assert abs(in_validation - 0.2 * count) < 2


def test_stratified_rows_differ_by_seed_and_repeat():
    data = dataset(np.repeat([0, 1], 500))
    first, again, other = (data.indices(seed, stratified=True) for seed in (1, 1, 2))
    assert np.array_equal(first.test, again.test)
    assert not np.array_equal(first.test, other.test)


def test_standardised_as_scikit_learn_does_on_the_training_rows_only():
    data = load("german")
    encoded, parts = data.encode(), data.indices(20)
    scaler = StandardScaler().fit(encoded.X[parts.train].astype(np.float64))
    for part, index in zip(data.split(20), parts, strict=True):
        np.testing.assert_allclose(part.X, scaler.transform(encoded.X[index]), atol=2e-5)
        assert np.array_equal(part.y, encoded.y[index])
        assert np.array_equal(part.s, encoded.s[index])


def test_rows_may_be_chosen_by_numbers_mask_or_slice():
    encoded = load("german").encode()
    mask = encoded.s == 1
    assert np.array_equal(encoded.rows(mask).X, encoded.X[mask])
    assert np.array_equal(encoded.rows(np.flatnonzero(mask)).y, encoded.y[mask])
    assert np.array_equal(encoded.rows(slice(3, 9)).attributes, encoded.attributes[3:9])


def test_constant_feature_is_centred_without_dividing_by_zero():
    german = load("german")
    train, _, test = replace(german, frame=german.frame.assign(month=3)).split(stratified=True)
    place = train.feature_names.index("month")
    assert not train.X[:, place].any()
    assert not test.X[:, place].any()


def test_stratified_data_set_keeps_the_cells_shares():
    data = load("german")
    for part in data.split(seed=30, stratified=True):
        cells = np.bincount(2 * part.y + part.s) / len(part)
        np.testing.assert_allclose(cells, [0.109, 0.191, 0.201, 0.499], atol=0.005)


def test_too_few_rows():
    with pytest.raises(ValueError, match="4 rows cannot be split"):
        dataset(np.zeros(4)).indices()
