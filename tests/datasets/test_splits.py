"""The paper's split and the stratified one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from fairgrad.datasets import load
from fairgrad.datasets.split import (
    paper_indices,
    standardised,
    strata,
    stratified_indices,
)


@given(rows=st.integers(5, 3000), seed=st.integers(0, 2**32 - 1))
def test_paper_split_is_a_partition_with_the_papers_sizes(rows, seed):
    parts = paper_indices(rows, seed)
    assert sorted(np.concatenate(list(parts)).tolist()) == list(range(rows))
    assert len(parts.test) == int(np.ceil(rows / 5))
    assert abs(len(parts.validation) - 0.2 * rows) <= 1


def test_a_seed_means_the_same_rows_for_ever():
    assert paper_indices(10, 10).train.tolist() == [8, 2, 5, 6, 3, 1]
    assert paper_indices(10, 10).test.tolist() == [4, 9]


@given(
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=8).filter(lambda c: sum(c) >= 5),
    seed=st.integers(0, 1000),
    test=st.floats(0.05, 0.5),
    validation=st.floats(0.05, 0.4),
)
def test_every_stratum_has_its_share_to_within_one_row(counts, seed, test, validation):
    strata = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    parts = stratified_indices(strata, seed, test=test, validation=validation)
    assert sorted(np.concatenate(list(parts)).tolist()) == list(range(len(strata)))
    for stratum, count in enumerate(counts):
        in_test = (strata[parts.test] == stratum).sum()
        in_validation = (strata[parts.validation] == stratum).sum()
        assert abs(in_test - test * count) <= 1
        # One row more or less in test moves the share of the rest by less than one row.
        assert abs(in_validation - validation * count) < 2


def test_stratified_rows_differ_by_seed_and_repeat():
    strata = np.repeat([0, 1], 500)
    first, again, other = (stratified_indices(strata, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.test, again.test)
    assert not np.array_equal(first.test, other.test)


def test_every_row_is_about_equally_often_in_the_test_part():
    """Dealing at equal steps must not favour rows by their place in the file."""
    strata = np.repeat([0, 1, 2], [30, 10, 3])
    often = np.zeros(len(strata))
    for seed in range(2000):
        often[stratified_indices(strata, seed).test] += 1
    for stratum in range(3):
        within = often[strata == stratum]
        # Equal chances: only binomial noise (sd under 18 of 2000) inside a stratum.
        assert within.max() - within.min() < 5 * 18


def test_standardised_as_scikit_learn_does_on_the_training_rows_only():
    encoded = load("german").encode()
    for split, parts in (
        (standardised(encoded, paper_indices(1000, 20)), paper_indices(1000, 20)),
        (load("german").split(20), paper_indices(1000, 20)),
    ):
        scaler = StandardScaler().fit(encoded.X[parts.train].astype(np.float64))
        for part, index in zip(split, parts, strict=True):
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
    encoded = load("german").encode()
    encoded.X[:, 0] = 3.0
    train, _, test = standardised(encoded, stratified_indices(strata(encoded)))
    assert not train.X[:, 0].any()
    assert not test.X[:, 0].any()


def test_stratified_data_set_keeps_the_cells_shares():
    data = load("german")
    for part in data.split(seed=30, stratified=True):
        cells = np.bincount(2 * part.y + part.s) / len(part)
        np.testing.assert_allclose(cells, [0.109, 0.191, 0.201, 0.499], atol=0.005)


@pytest.mark.parametrize(("test", "validation"), [(0, 0.2), (0.6, 0.4), (0.2, -0.1), (1.2, 0.1)])
def test_shares_without_room_for_training(test, validation):
    with pytest.raises(ValueError, match="room for training"):
        stratified_indices(np.zeros(50, dtype=int), test=test, validation=validation)


def test_too_few_rows():
    with pytest.raises(ValueError, match="4 rows cannot be split"):
        paper_indices(4)
