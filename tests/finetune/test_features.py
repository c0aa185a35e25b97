"""Features are what reaches the head, computed once, kept on disk where asked."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fairgrad.finetune import compute_features


def by_hand(network, X):
    body = copy.deepcopy(network.body).eval()
    with torch.no_grad():
        return body(torch.from_numpy(X)).numpy()


def test_features_are_what_reaches_the_head_in_evaluation_mode(network, rows):
    X, _, _ = rows
    network.train()
    features = compute_features(network, X, batch_size=100)
    np.testing.assert_array_equal(features, by_hand(network, X))


def test_the_network_is_left_as_it_is(network, rows):
    network.train()
    network.body[2].eval()  # one layer of another mode
    before = copy.deepcopy(network.state_dict())
    compute_features(network, rows[0])
    modes = [layer.training for layer in network.modules()]
    assert modes == [True, True, True, True, False, True]
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    calls = []
    hook = network.classifier.register_forward_pre_hook(lambda *_: calls.append(1))
    assert list(hook.hooks_dict_ref()) == [hook.id]  # ours is the only one left


def test_large_features_are_read_from_a_file_and_equal_those_in_memory(network, rows):
    X, _, _ = rows
    mapped = compute_features(network, X, batch_size=100, large=0)
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, compute_features(network, X, batch_size=100))


def test_a_passing_file_goes_with_its_features(network, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mapped = compute_features(network, rows[0], large=0)
    assert len(list(tmp_path.rglob("*.npy"))) == 1
    del mapped
    assert not list(tmp_path.rglob("*.npy"))


def test_cached_features_are_not_computed_again(network, rows, tmp_path):
    X, _, _ = rows
    first = compute_features(network, X, batch_size=100, cache=tmp_path)
    calls = network.calls
    again = compute_features(network, X, batch_size=100, cache=tmp_path)
    assert network.calls == calls + 1  # the look at the head, on a few rows
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, by_hand(network, X))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("change", ["weights", "buffers", "data", "transform", "head"])
def test_whatever_changes_features_changes_their_place(make_rows, tmp_path, change):
    X, _, _ = make_rows(200, seed=0)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    options = {"cache": tmp_path}
    compute_features(network, X, **options)
    with torch.no_grad():
        if change == "weights":
            network[0].bias += 1
        elif change == "buffers":
            network[1].running_mean += 1
    if change == "data":
        X = X.copy()
        X[150, 3] += 1
    if change == "transform":
        options["transform"] = lambda x: 2 * x
    if change == "head":
        network = nn.Sequential(nn.Linear(6, 8), nn.Identity(), nn.Linear(8, 2))
    found = compute_features(network, X, **options)
    np.testing.assert_array_equal(found, compute_features(network, X, **options | {"cache": None}))
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_is_left_of_features_that_failed(network, tmp_path):
    class Broken:
        def __len__(self):
            return 30

        def batch(self, index):
            if index[-1] >= 20 and (tmp_path / "ready").exists():
                raise OSError("unreadable")
            return np.zeros((len(index), 6), dtype=np.float32)

    class Later(type(network)):
        def forward(self, x):
            (tmp_path / "ready").touch()  # after the hash of the data is made
            return super().forward(x)

    later = Later()
    with pytest.raises(OSError, match="unreadable"):
        compute_features(later, Broken(), batch_size=10, cache=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["ready"]


def test_named_inputs_texts_and_examples_are_read(make_rows):
    X, _, _ = make_rows(30, seed=0)

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(6, 2)

        def forward(self, x, scale):
            return {"logits": self.head(x * scale)}

    scale = np.arange(30, dtype=np.float32)[:, None]
    network = Named()
    expected = X * scale
    found = compute_features(network, {"x": X, "scale": torch.from_numpy(scale)}, batch_size=7)
    np.testing.assert_array_equal(found, expected)

    examples = [{"x": X[i], "scale": scale[i]} for i in range(30)]
    np.testing.assert_array_equal(compute_features(network, examples, batch_size=7), expected)

    texts = [" ".join(map(repr, row.tolist())) for row in X]

    def numbers(batch):
        return torch.tensor([[float(word) for word in text.split()] for text in batch])

    linear = nn.Linear(6, 2)
    for given in (texts, np.array(texts), np.array(texts, dtype=object)):
        found = compute_features(linear, given, transform=numbers, batch_size=7)
        np.testing.assert_array_equal(found, X)


class Wrapped(nn.Module):
    """A network that does something with its head's outputs."""

    def __init__(self, returned):
        super().__init__()
        self.head = nn.Linear(6, 2)
        self.returned = returned

    def forward(self, x):
        return self.returned(self.head, x)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (lambda head, x: head(x).softmax(1), ValueError, "not the logits that the network returns"),
        (lambda head, x: head(head(x) @ torch.ones(2, 6)), ValueError, "used 2 times per batch"),
        (lambda _, x: x, ValueError, "used 0 times"),
        (lambda head, x: head(x[:, None])[:, 0], ValueError, r"shape \(4, 1, 6\) for 4 rows"),
        (lambda head, x: (head(x), x), TypeError, "got tuple of 2; give output="),
        (lambda head, x: {"scores": head(x)}, TypeError, r"got dict with \['scores'\]"),
    ],
)
def test_a_head_that_is_not_the_last_step_is_refused(make_rows, returned, error, message):
    with pytest.raises(error, match=message):
        compute_features(Wrapped(returned), make_rows(20, seed=0)[0])


def test_a_function_reads_what_else_may_come(make_rows):
    X, _, _ = make_rows(20, seed=0)
    network = Wrapped(lambda head, x: (x, head(x)))
    found = compute_features(network, X, output=lambda returned: returned[1])
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((0, 6), dtype=np.float32), ValueError, "X: expected at least one row"),
        (3.0, TypeError, "X: expected a tensor, .* got float"),
        ("a text", TypeError, "got str"),
        ({"x": np.zeros((3, 6)), "z": np.zeros((2, 6))}, ValueError, "{'x': 3, 'z': 2}"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(network, X, error, message):
    with pytest.raises(error, match=message):
        compute_features(network, X)
