"""Twitter sentiment: the four arrays, the fixed split and the training skew."""

import numpy as np
import pytest

from fairgrad_bench.datasets import CorruptFileError, DataNotFoundError, load

FILES = ("pos_pos.npy", "pos_neg.npy", "neg_pos.npy", "neg_neg.npy")


@pytest.fixture
def folder(tmp_path):
    """440 vectors per file; the first number tells the file, the second the row."""
    path = tmp_path / "deepmoji"
    path.mkdir()
    for place, name in enumerate(FILES):
        vectors = np.random.default_rng(place).normal(size=(440, 6)).astype(np.float32)
        vectors[:, 0], vectors[:, 1] = place, np.arange(440)
        np.save(path / name, vectors)
    return path


def test_skew_of_training_and_balance_of_the_rest(folder):
    train, validation, test = load("twitter", path=folder).split()
    shares = np.bincount(2 * train.y + train.s) / len(train)
    # sad SAE, sad AAE, happy SAE, happy AAE
    np.testing.assert_allclose(shares, [0.4, 0.1, 0.1, 0.4])
    assert len(train) == 1000
    for part in (validation, test):
        assert np.bincount(2 * part.y + part.s).tolist() == [20, 20, 20, 20]


def test_labels_belong_to_the_files_and_no_row_is_in_two_parts(folder):
    split = load("twitter", path=folder).split()
    seen = set()
    for part in split:
        origin = part.X[:, 0].astype(int)
        assert np.array_equal(part.y, np.array([1, 1, 0, 0])[origin])
        assert np.array_equal(part.s, np.array([1, 0, 1, 0])[origin])
        rows = set(zip(origin.tolist(), part.X[:, 1].tolist(), strict=True))
        assert len(rows) == len(part)
        assert not rows & seen
        seen |= rows


def test_vectors_are_untouched_and_the_seed_changes_nothing(folder):
    data = load("twitter", path=folder)
    first, second = data.split(seed=10), data.split(seed=50)
    stored = np.load(folder / "pos_pos.npy")
    happy_aae = first.train.X[first.train.X[:, 0] == 0]
    assert np.array_equal(happy_aae, stored[happy_aae[:, 1].astype(int)])
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.X, other.X)


def test_full_size_gives_the_papers_counts(tmp_path):
    """44,000 vectors a file, as published (and more rows than that are not used)."""
    for place, name in enumerate(FILES):
        np.save(tmp_path / name, np.full((45_000, 2), place, dtype=np.float32))
    train, validation, test = load("twitter", path=tmp_path).split()
    assert [len(part) for part in (train, validation, test)] == [100_000, 8_000, 8_000]
    assert np.bincount(2 * train.y + train.s).tolist() == [40_000, 10_000, 10_000, 40_000]


def test_found_through_the_environment(folder, monkeypatch):
    monkeypatch.setenv("FAIRGRAD_DATA", str(folder.parent))
    assert len(load("twitter")) == 1160
    monkeypatch.setenv("FAIRGRAD_DATA", str(folder))
    with pytest.raises(DataNotFoundError, match="fetch twitter"):
        load("twitter")


def test_bad_files(folder):
    (folder / "pos_pos.npy.sha256").write_text("0" * 64)
    with pytest.raises(CorruptFileError, match="has changed since it was fetched"):
        load("twitter", path=folder)
    (folder / "pos_pos.npy.sha256").unlink()
    np.save(folder / "pos_neg.npy", np.zeros((440, 5), dtype=np.float32))
    with pytest.raises(ValueError, match="different widths"):
        load("twitter", path=folder)
    np.save(folder / "pos_neg.npy", np.zeros(440, dtype=np.float32))
    with pytest.raises(ValueError, match="at least 22 rows"):
        load("twitter", path=folder)
    (folder / "pos_neg.npy").write_bytes(b"no array")
    with pytest.raises(CorruptFileError, match="not a NumPy array file"):
        load("twitter", path=folder)
    np.save(folder / "pos_neg.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(CorruptFileError, match="not a NumPy array file"):
        load("twitter", path=folder)
    (folder / "pos_neg.npy").unlink()
    with pytest.raises(DataNotFoundError, match="does not exist"):
        load("twitter", path=folder)
