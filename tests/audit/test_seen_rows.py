"""Digests of the rows that a model was trained on: small, bounded, and enough to recognize them."""

import numpy as np
import pytest

from fairgrad.audit.seen_rows import MOST_DIGESTS, SeenRows, row_digests


def rows(seed, n, columns=4, values=None):
    rng = np.random.default_rng(seed)
    if values is not None:
        return rng.integers(values, size=(n, columns)).astype(np.float32)
    return rng.normal(size=(n, columns)).astype(np.float32)


def test_digests_are_short_and_do_not_depend_on_the_other_rows():
    X = rows(0, 50)
    digests = row_digests(X)
    assert digests.dtype == np.uint32
    assert (row_digests(X[::-1]) == digests[::-1]).all()
    assert len(set(digests.tolist())) == 50


@pytest.mark.parametrize("n", [500, 3 * MOST_DIGESTS])
def test_training_rows_are_recognized_whatever_the_size_of_the_table(n, tmp_path):
    X = rows(0, n, columns=2)
    seen = SeenRows.of(X)
    assert len(seen.digests) <= MOST_DIGESTS
    seen.save(tmp_path / "rows.npz")
    assert (tmp_path / "rows.npz").stat().st_size < 8 * MOST_DIGESTS + 2000
    again = SeenRows.load(tmp_path / "rows.npz")
    # A tenth of the rows may be people who came again: no, they are training rows.
    mixed = np.concatenate([X[:100], rows(1, 900, columns=2)])
    with pytest.raises(ValueError, match=r"of 1,000 rows equal a row .* by chance about 0 would"):
        again.overlap(row_digests(mixed))
    assert again.overlap(row_digests(rows(2, 1000, columns=2))) == (0, 0)


def test_one_row_many_times_is_one_digest():
    seen = SeenRows.of(np.zeros((2 * MOST_DIGESTS, 1)))
    assert len(seen.digests) == 1
    assert seen.overlap(row_digests(np.zeros((10, 1)))) == (10, 10)


def test_new_rows_of_few_values_are_rarely_refused():
    for seed in range(40):
        train, fresh = rows(seed, 800, 5, 3), rows(1000 + seed, 300, 5, 3)
        equal, expected = SeenRows.of(train).overlap(row_digests(fresh))
        assert abs(equal - expected) < 40


@pytest.mark.parametrize("content", [b"", b"PK nonsense", None])
def test_a_damaged_file_is_named(content, tmp_path):
    path = tmp_path / "rows.npz"
    SeenRows.of(rows(0, 50)).save(path)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 3] ^= 255
    path.write_bytes(bytes(whole) if content is None else content)
    with pytest.raises(ValueError, match=r"rows\.npz is damaged"):
        SeenRows.load(path)
