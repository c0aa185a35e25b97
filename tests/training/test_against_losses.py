"""A stack of one is a plain PyTorch loop with the fair loss and the same batches."""

import numpy as np
import pytest
import torch
from torch import nn

from fairgrad import AtMost
from fairgrad.torch import CrossEntropyLoss
from fairgrad.training import Member, TrainingPlan, TrainingTable, fairness, train
from fairgrad.training.plan import Shape
from fairgrad.training.table import Streams

EPOCHS, BATCH = 3, 64

FAIRNESS = {
    "accuracy_parity": {"fairness_measure": "accuracy_parity"},
    "equalized_odds": {"fairness_measure": "equalized_odds", "fairness_rate": 0.1},
    "epsilon": {"fairness_measure": "equalized_odds", "epsilon": 0.05, "fairness_rate": 0.1},
    "opportunity": {"fairness_measure": "equality_of_opportunity", "fairness_rate": 0.1},
    "parity": {"fairness_measure": "demographic_parity", "fairness_rate": 0.1},
    "stable": {
        "fairness_measure": "equalized_odds",
        "fairness_rate": 0.05,
        "proportional_rate": 2.0,
        "error_memory": 0.9,
    },
    "one-sided": {"fairness_measure": "four_fifths_rule", "fairness_rate": 0.2},
    "clipped weights": {"fairness_measure": "parity", "negative_weights": False},
}
FAIRNESS["clipped weights"]["fairness_measure"] = "demographic_parity"


def split_margin(layer, weight, bias):
    """Two outputs whose difference is the margin's."""
    with torch.no_grad():
        layer.weight.copy_(torch.cat([-weight / 2, weight / 2]))
        layer.bias.copy_(torch.cat([-bias / 2, bias / 2]))


def plain_network(shape, flat, n_labels):
    """The same network, written with PyTorch's own layers."""
    names = list(shape.pieces)
    parts = [p.view(s) for p, s in zip(flat.split(shape.sizes), shape.pieces.values(), strict=True)]
    pieces = dict(zip(names, parts, strict=True))
    layers, inputs = [], shape.n_features
    for layer, units in enumerate(shape.hidden):
        linear = nn.Linear(inputs, units)
        linear.load_state_dict({"weight": pieces[f"weight{layer}"], "bias": pieces[f"bias{layer}"]})
        layers += [linear, *([nn.BatchNorm1d(units)] if shape.batch_norm else []), nn.ReLU()]
        inputs = units
    last, output = len(shape.hidden), nn.Linear(inputs, n_labels)
    if shape.n_outputs == 1:
        split_margin(output, pieces[f"weight{last}"], pieces[f"bias{last}"])
    else:
        output.load_state_dict({"weight": pieces[f"weight{last}"], "bias": pieces[f"bias{last}"]})
    return nn.Sequential(*layers, output)


def plain_loop(table, member, plan, sample_weight=None, s=None):
    """Trains as a reader of the paper would, and gives the logits of all rows."""
    shape = Shape(
        table.X.shape[1],
        plan.hidden,
        1 if table.n_labels == 2 else table.n_labels,
        plan.batch_norm,
    )
    network = plain_network(shape, shape.initial(member.seed), table.n_labels)
    fairness = {
        name: getattr(member, name)
        for name in (
            "fairness_measure",
            "epsilon",
            "fairness_rate",
            "proportional_rate",
            "error_memory",
            "negative_weights",
            "cost_matrix",
        )
    }
    s = table.group if s is None else torch.from_numpy(s)
    criterion = CrossEntropyLoss(table.label, s, sample_weight_train=sample_weight, **fairness)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[plan.solver](
        network.parameters(), lr=member.learning_rate, weight_decay=member.weight_decay
    )
    streams = Streams([np.arange(len(table))], [member.seed], plan.batch_size)
    for _ in range(plan.epochs):
        for batch in streams.epoch():
            rows = batch.row[0]
            optimizer.zero_grad()
            weight = None if sample_weight is None else table.weight[rows]
            loss = criterion(network(table.X[rows]), table.label[rows], s[rows], weight)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), member.clip_norm)
            optimizer.step()
    with torch.no_grad():
        return network.eval()(table.X).numpy(), criterion


def stacked(table, member, plan):
    training = train(table, [member], plan)
    choice = training.select("last")
    return training.scores(choice, table.X), training


def assert_same(table, member, plan, sample_weight=None, s=None):
    logits, criterion = plain_loop(table, member, plan, sample_weight, s)
    scores, training = stacked(table, member, plan)
    expected = logits[:, 1:] - logits[:, :1] if scores.shape[1] == 1 else logits
    np.testing.assert_allclose(scores, expected, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(
        training.history.multipliers[-1, 0], criterion.multipliers, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("name", FAIRNESS)
def test_linear_model_equals_plain_loop(table, name):
    member = Member(learning_rate=0.3, weight_decay=0.01, clip_norm=0.05, seed=3, **FAIRNESS[name])
    assert_same(table, member, TrainingPlan(epochs=EPOCHS, batch_size=BATCH))


# Not Adam with batch norm: biases before it have no gradient but rounding, which Adam blows up.
@pytest.mark.parametrize(("solver", "batch_norm"), [("sgd", False), ("sgd", True), ("adam", False)])
def test_perceptron_equals_plain_loop(table, solver, batch_norm):
    plan = TrainingPlan(
        hidden=(8, 5), batch_norm=batch_norm, epochs=EPOCHS, batch_size=BATCH, solver=solver
    )
    member = Member(
        learning_rate={"sgd": 0.1, "adam": 0.005}[solver],
        clip_norm=0.5,
        weight_decay=0.01 if solver == "sgd" else 0.0,
        seed=4,
        **FAIRNESS["equalized_odds"],
    )
    assert_same(table, member, plan)


def test_adam_with_weight_decay_equals_plain_loop(table):
    member = Member(learning_rate=0.003, weight_decay=0.1, **FAIRNESS["equalized_odds"])
    assert_same(table, member, TrainingPlan(epochs=EPOCHS, batch_size=BATCH, solver="adam"))


@pytest.mark.parametrize("hidden", [(), (6,)])
def test_several_labels_equal_plain_loop(make_data, hidden):
    table = TrainingTable.from_data(*make_data(n_labels=3))
    member = Member(learning_rate=0.1, clip_norm=1.0, seed=1, **FAIRNESS["equalized_odds"])
    assert_same(table, member, TrainingPlan(hidden=hidden, epochs=EPOCHS, batch_size=BATCH))


def test_sample_weights_equal_plain_loop(data):
    weight = np.random.default_rng(1).uniform(0.5, 2, len(data[1])).astype(np.float32)
    table = TrainingTable.from_data(*data, sample_weight=weight)
    member = Member(learning_rate=0.3, **FAIRNESS["equalized_odds"])
    assert_same(table, member, TrainingPlan(epochs=EPOCHS, batch_size=BATCH), weight)


def test_unknown_sensitive_values_equal_plain_loop(data):
    X, y, s = data
    s = np.where(np.arange(len(s)) % 5 == 0, -1, s)
    table = TrainingTable.from_data(X, y, s)
    member = Member(learning_rate=0.3, **FAIRNESS["equalized_odds"])
    assert_same(table, member, TrainingPlan(epochs=EPOCHS, batch_size=BATCH), s=s)


def test_many_groups_equal_plain_loop():
    rng = np.random.default_rng(0)
    s, X = rng.integers(0, 35, 1500), rng.normal(size=(1500, 3)).astype(np.float32)
    table = TrainingTable.from_data(X, (X.sum(1) + rng.normal(size=1500) > 0).astype(int), s)
    member = Member(learning_rate=0.3, **FAIRNESS["equalized_odds"])
    assert_same(table, member, TrainingPlan(epochs=2, batch_size=500))


OUTCOMES = {
    "parity": {"fairness_measure": "demographic_parity"},
    "odds": {"fairness_measure": "equalized_odds_all", "epsilon": 0.05},
    "bound": {"fairness_measure": AtMost("selection_rate", 0.3, labels=[0]), "error_memory": 0.9},
    "costs": {
        "fairness_measure": "accuracy_parity",
        "cost_matrix": [[0, 1, 3], [1, 0, 1], [2, 1, 0]],
    },
}


@pytest.mark.parametrize("hidden", [(), (8,)])
@pytest.mark.parametrize("name", OUTCOMES)
def test_measures_of_what_is_predicted(make_data, name, hidden):
    table = TrainingTable.from_data(*make_data(300, n_labels=3))
    member = Member(learning_rate=0.3, seed=3, fairness_rate=0.2, **OUTCOMES[name])
    assert_same(table, member, TrainingPlan(epochs=EPOCHS, batch_size=BATCH, hidden=hidden))


def test_costs_of_two_labels(table):
    costs = [[0, 3], [1, 0]]
    member = Member(learning_rate=0.3, cost_matrix=costs, **FAIRNESS["equalized_odds"])
    assert_same(table, member, TrainingPlan(epochs=EPOCHS, batch_size=BATCH))


@pytest.mark.parametrize("is_dense", [True, False])
def test_members_of_a_stack_are_what_they_are_alone(make_data, monkeypatch, is_dense):
    if not is_dense:  # as with many cells: rows are counted one by one
        defaults = fairness.StackCells.__init__.__kwdefaults__
        monkeypatch.setitem(defaults, "max_dense", 1)
    X, y, s = make_data(300, n_labels=3)
    table = TrainingTable.from_data(X, y, s, np.linspace(0.5, 2, 300), dtype=torch.float64)
    plan = TrainingPlan(epochs=EPOCHS, batch_size=BATCH)
    members = [
        Member(seed=1, fairness_measure="demographic_parity", fairness_rate=rate, epsilon=epsilon)
        for rate, epsilon in ((0.2, 0.0), (0.1, 0.05), (0.0, 0.0))
    ]
    together = train(table, members, plan)
    for place, member in enumerate(members):
        alone = train(table, [member], plan)
        for part in ("accuracy", "unfairness", "levels", "multipliers"):
            own = getattr(alone.history, part)[:, 0]
            np.testing.assert_allclose(getattr(together.history, part)[:, place], own, atol=1e-9)


def test_measures_of_errors_have_a_stack_of_their_own(make_data):
    table = TrainingTable.from_data(*make_data(300, n_labels=3))
    members = [Member(fairness_measure=m) for m in ("accuracy_parity", "demographic_parity")]
    with pytest.raises(ValueError, match="train them in a stack of their own"):
        train(table, members, TrainingPlan(epochs=1))
