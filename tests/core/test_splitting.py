"""Rows that are held out: every cell has its share, once or in folds."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairgrad.splitting import folds, hold_out, three_parts

CELLS = st.lists(st.integers(0, 4), min_size=20, max_size=120).map(np.array)


@given(CELLS, st.integers(0, 99))
def test_three_parts_are_two_hold_outs(cell, seed):
    rest, test = hold_out(cell, 0.2, seed, may_be_empty=True)
    train, validation = hold_out(cell[rest], 0.25, seed, may_be_empty=True)
    parts = three_parts(cell, seed, may_be_empty=True)
    np.testing.assert_array_equal(parts.train, rest[train])
    np.testing.assert_array_equal(parts.validation, rest[validation])
    np.testing.assert_array_equal(parts.test, test)
    assert sorted(np.concatenate(parts)) == list(range(len(cell)))


@given(CELLS, st.integers(2, 6), st.integers(0, 99))
def test_every_row_is_tested_once_but_for_cells_of_one(cell, n_folds, seed):
    assume(np.bincount(cell).max() >= 8)  # else there may be no row for validation
    parts = list(folds(cell, n_folds, seed))
    tested = np.concatenate([part.test for part in parts])
    alone = [k for k in np.unique(cell) if (cell == k).sum() == 1]
    assert sorted(tested) == [i for i in range(len(cell)) if cell[i] not in alone]
    for part in parts:
        assert sorted(np.concatenate(part)) == list(range(len(cell)))
        assert set(cell) == set(cell[np.concatenate([part.train, part.validation])])
        for k in np.unique(cell):
            assert abs((cell[part.test] == k).sum() - (cell == k).sum() / n_folds) <= 1


def test_refusals():
    with pytest.raises(ValueError, match="n_folds: expected a whole number of at least 2"):
        list(folds(np.zeros(9, dtype=int), 1))
    with pytest.raises(ValueError, match="the share for the test"):
        three_parts(np.arange(9))
    with pytest.raises(ValueError, match=r"the share for validation: 0.25 of 10 rows holds out"):
        list(folds(np.arange(20) % 5, 2))
