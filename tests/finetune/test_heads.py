"""The head is found, or an error says why not; replacing it leaves the network as it is."""

import copy

import pytest
import torch
from torch import nn

from fairgrad.finetune.heads import find_head, with_head


def same_state(one, other):
    return all(
        torch.equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_the_last_linear_layer_is_the_head(network):
    assert find_head(network).name == "classifier"
    assert find_head(network).layer is network.classifier


def test_a_name_takes_another_layer(network):
    assert find_head(network, "body.0").layer is network.body[0]


def test_a_name_of_a_larger_part_takes_its_last_linear_layer():
    network = nn.ModuleDict(
        {
            "classifier": nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Dropout()),
            "unused": nn.Linear(3, 3),
        }
    )
    assert find_head(network, "classifier").name == "classifier.2"


def test_a_name_is_not_taken_for_the_beginning_of_another():
    network = nn.ModuleDict({"head": nn.Sequential(nn.Linear(2, 2)), "head2": nn.Linear(3, 3)})
    assert find_head(network, "head").name == "head.0"


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
