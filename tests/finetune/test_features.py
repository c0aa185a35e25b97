"""The head is found or refused; features are what reaches it, computed once."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fairgrad.finetune import compute_features, find_head, with_head


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
        (lambda head, x: head(x[:, None])[:, 0], ValueError, r"shape \(20, 1, 6\) for 20 rows"),
        (lambda head, x: (head(x), x), TypeError, "got tuple; wrap it"),
        (lambda head, x: {"scores": head(x)}, TypeError, "got dict; wrap it"),
    ],
)
def test_a_head_that_is_not_the_last_step_is_refused(make_rows, returned, error, message):
    with pytest.raises(error, match=message):
        compute_features(Wrapped(returned), make_rows(20, seed=0)[0])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((0, 6), dtype=np.float32), ValueError, "X: expected at least one row"),
        (3.0, TypeError, "X: expected a tensor, .* got float"),
        ("a text", TypeError, "got str"),
        (DataLoader(np.zeros((3, 6))), TypeError, "X: expected a tensor, .* got DataLoader"),
        (
            TensorDataset(torch.zeros(3, 6), torch.zeros(3)),
            TypeError,
            "X: expected examples that are inputs alone, got 2 parts in each; .* transform=",
        ),
        ({"x": np.zeros((3, 6)), "z": np.zeros((2, 6))}, ValueError, "{'x': 3, 'z': 2}"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(network, X, error, message):
    with pytest.raises(error, match=message):
        compute_features(network, X)


def test_precision_follows_the_network(network, make_rows):
    """Arrays and frames have double precision unless somebody sees to it."""
    X = make_rows(20, seed=0)[0]
    expected = compute_features(network, X)
    for rows in (
        X.astype(np.float64),
        pd.DataFrame(X.astype(np.float64)),
        torch.tensor(X).double(),
    ):
        np.testing.assert_array_equal(compute_features(network, rows), expected)
    np.testing.assert_allclose(compute_features(network.double(), X), expected, atol=1e-6)


def test_what_is_no_network_is_refused():
    for module in (None, torch.nn.Linear):
        with pytest.raises(TypeError, match="module: expected a torch.nn.Module, got"):
            compute_features(module, np.zeros((3, 6), dtype=np.float32))


def same_state(one, other):
    return all(
        torch.equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_the_last_linear_layer_is_the_head(network):
    assert find_head(network)[0] == "classifier"
    assert find_head(network)[1] is network.classifier


def test_a_name_takes_another_layer(network):
    assert find_head(network, "body.0")[1] is network.body[0]


def test_a_name_of_a_larger_part_takes_its_last_linear_layer():
    network = nn.ModuleDict(
        {
            "classifier": nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Dropout()),
            "unused": nn.Linear(3, 3),
        }
    )
    assert find_head(network, "classifier")[0] == "classifier.2"


def test_a_name_is_not_taken_for_the_beginning_of_another():
    network = nn.ModuleDict({"head": nn.Sequential(nn.Linear(2, 2)), "head2": nn.Linear(3, 3)})
    assert find_head(network, "head")[0] == "head.0"


def test_an_unknown_name_is_refused_with_the_names_there_are(network):
    with pytest.raises(ValueError, match=r"head: .*got 'fc'; .*'body.0', 'classifier'"):
        find_head(network, "fc")


def test_a_network_without_linear_layers_is_refused():
    with pytest.raises(ValueError, match="head: expected a linear layer"):
        find_head(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()))


def test_a_part_without_linear_layers_is_refused():
    network = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    with pytest.raises(ValueError, match="in 1, a Sequential, which has none"):
        find_head(network, "1")


def test_the_network_is_its_own_head_if_it_is_one_layer():
    layer = nn.Linear(3, 2)
    assert find_head(layer) == ("", layer)
    other = nn.Linear(3, 4)
    assert with_head(layer, "", other) is other


def test_another_head_is_put_into_a_copy(network):
    before = copy.deepcopy(network)
    layer = nn.Linear(8, 5)
    changed = with_head(network, "classifier", layer)
    assert changed.classifier is layer
    assert changed.body[0].weight is not network.body[0].weight
    assert same_state(network, before)


def test_a_head_inside_a_sequence_keeps_its_place():
    network = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 2), nn.Identity()))
    changed = with_head(network, "1.0", nn.Linear(3, 7))
    assert changed(torch.zeros(1, 4)).shape == (1, 7)
