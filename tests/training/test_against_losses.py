"""A stack of one is a plain PyTorch loop with the fair loss and the same batches."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fairgrad import AtMost
from fairgrad.torch import CrossEntropyLoss
from fairgrad.training import Batches, Member, Perceptrons, TrainingPlan, TrainingTable, train
from fairgrad.training.stack import network_outputs

EPOCHS, BATCH = 3, 64
PLAN = TrainingPlan(epochs=EPOCHS, batch_size=BATCH, fairness_measure="equalized_odds")

FAIRNESS = {
    "accuracy_parity": ({"fairness_measure": "accuracy_parity"}, {}),
    "equalized_odds": ({}, {"fairness_rate": 0.1}),
    "epsilon": ({}, {"epsilon": 0.05, "fairness_rate": 0.1}),
    "opportunity": ({"fairness_measure": "equality_of_opportunity"}, {"fairness_rate": 0.1}),
    "parity": ({"fairness_measure": "demographic_parity"}, {"fairness_rate": 0.1}),
    "stable": ({}, {"fairness_rate": 0.05, "proportional_rate": 2.0, "error_memory": 0.9}),
    "one-sided": ({"fairness_measure": "four_fifths_rule"}, {"fairness_rate": 0.2}),
    "clipped weights": (
        {"fairness_measure": "demographic_parity", "negative_weights": False},
        {},
    ),
    "automatic": ({}, {"fairness_rate": "auto"}),
    "automatic, of groups": ({"fairness_measure": "accuracy_parity"}, {"fairness_rate": "auto"}),
}


def split_margin(layer, weight, bias):
    """Two outputs whose difference is the margin's."""
    with torch.no_grad():
        layer.weight.copy_(torch.cat([-weight / 2, weight / 2]))
        layer.bias.copy_(torch.cat([-bias / 2, bias / 2]))


def plain_network(sizes, seed, n_labels):
    """The same network, written with PyTorch's own layers."""
    stack = Perceptrons(sizes, 1, seed)
    pieces = {name: part[0] for name, part in stack.views(stack.parameters).items()}
    layers = []
    last = len(sizes) - 2
    for layer, units in enumerate(sizes[1:-1]):
        linear = nn.Linear(sizes[layer], units)
        linear.load_state_dict({"weight": pieces[f"weight{layer}"], "bias": pieces[f"bias{layer}"]})
        layers += [linear, nn.ReLU()]
    output = nn.Linear(sizes[-2], n_labels)
    weight, bias = pieces[f"weight{last}"], pieces[f"bias{last}"]
    if sizes[-1] == 1:
        split_margin(output, weight, bias)
    else:
        output.load_state_dict({"weight": weight, "bias": bias})
    return nn.Sequential(*layers, output)


def plain_loop(table, member, plan, sizes, sample_weight=None, s=None):
    """Trains as a reader of the paper would, and gives the logits of all rows."""
    network = plain_network(sizes, plan.seed, table.n_labels)
    of_members = ("epsilon", "fairness_rate", "proportional_rate", "error_memory")
    fairness = {name: getattr(member, name) for name in of_members}
    for name in ("fairness_measure", "negative_weights", "cost_matrix"):
        fairness[name] = getattr(plan, name)
    s = table.group if s is None else torch.from_numpy(s)
    criterion = CrossEntropyLoss(table.label, s, sample_weight_train=sample_weight, **fairness)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[plan.solver](
        network.parameters(), lr=member.learning_rate, weight_decay=member.weight_decay
    )
    batches = Batches(torch.arange(len(table)), plan.seed, plan.batch_size)
    for _ in range(plan.epochs):
        for rows in batches.epoch():
            optimizer.zero_grad()
            weight = None if sample_weight is None else table.weight[rows]
            loss = criterion(network(table.X[rows]), table.label[rows], s[rows], weight)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), member.clip_norm)
            optimizer.step()
    with torch.no_grad():
        return network.eval()(table.X).numpy(), criterion


def assert_same(table, member, plan, sample_weight=None, s=None):
    sizes = (table.X.shape[1], *plan.hidden, 1 if table.n_labels == 2 else table.n_labels)
    logits, criterion = plain_loop(table, member, plan, sizes, sample_weight, s)
    training = train(table, [member], plan)
    scores = network_outputs(sizes, training.state(0), table.X)
    expected = logits[:, 1:] - logits[:, :1] if scores.shape[1] == 1 else logits
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(
        training.history.multipliers[-1, 0], criterion.multipliers, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("hidden", [(), (6,)])
@pytest.mark.parametrize("name", FAIRNESS)
def test_a_stack_of_one_equals_a_plain_loop(table, name, hidden):
    asked, own = FAIRNESS[name]
    member = Member(learning_rate=0.3, weight_decay=0.01, clip_norm=0.05, **own)
    assert_same(table, member, replace(PLAN, seed=3, hidden=hidden, **asked))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_equals_a_plain_loop(table, decay):
    member = Member(learning_rate=0.003, weight_decay=decay, clip_norm=0.5, fairness_rate=0.1)
    hidden = () if decay else (8, 5)  # the two outputs of a margin decay in their own way
    assert_same(table, member, replace(PLAN, solver="adam", hidden=hidden))


@pytest.mark.parametrize("hidden", [(), (6,)])
def test_several_labels_equal_plain_loop(make_data, hidden):
    table = TrainingTable.from_data(*make_data(n_labels=3))
    member = Member(learning_rate=0.1, clip_norm=1.0, fairness_rate=0.1)
    assert_same(table, member, replace(PLAN, hidden=hidden, seed=1))


def test_sample_weights_equal_plain_loop(data):
    weight = np.random.default_rng(1).uniform(0.5, 2, len(data[1])).astype(np.float32)
    table = TrainingTable.from_data(*data, sample_weight=weight)
    assert_same(table, Member(learning_rate=0.3, fairness_rate=0.1), PLAN, weight)


def test_unknown_sensitive_values_equal_plain_loop(data):
    X, y, s = data
    s = np.where(np.arange(len(s)) % 5 == 0, -1, s)
    table = TrainingTable.from_data(X, y, s)
    assert_same(table, Member(learning_rate=0.3, fairness_rate=0.1), PLAN, s=s)


def test_many_groups_equal_plain_loop():
    rng = np.random.default_rng(0)
    s, X = rng.integers(0, 35, 1500), rng.normal(size=(1500, 3)).astype(np.float32)
    table = TrainingTable.from_data(X, (X.sum(1) + rng.normal(size=1500) > 0).astype(int), s)
    member = Member(learning_rate=0.3, fairness_rate=0.1)
    assert_same(table, member, replace(PLAN, epochs=2, batch_size=500))


OUTCOMES = {
    "parity": ({"fairness_measure": "demographic_parity"}, {}),
    "odds": ({"fairness_measure": "equalized_odds_all"}, {"epsilon": 0.05}),
    "bound": (
        {"fairness_measure": AtMost("selection_rate", 0.3, labels=[0])},
        {"error_memory": 0.9},
    ),
    "costs": (
        {"fairness_measure": "accuracy_parity", "cost_matrix": [[0, 1, 3], [1, 0, 1], [2, 1, 0]]},
        {},
    ),
}


@pytest.mark.parametrize("hidden", [(), (8,)])
@pytest.mark.parametrize("name", OUTCOMES)
def test_measures_of_what_is_predicted(make_data, name, hidden):
    table = TrainingTable.from_data(*make_data(300, n_labels=3))
    asked, own = OUTCOMES[name]
    member = Member(learning_rate=0.3, fairness_rate=0.2, **own)
    assert_same(table, member, replace(PLAN, seed=3, hidden=hidden, **asked))


def test_costs_of_two_labels(table):
    member = Member(learning_rate=0.3, fairness_rate=0.1)
    assert_same(table, member, replace(PLAN, cost_matrix=[[0, 3], [1, 0]]))
