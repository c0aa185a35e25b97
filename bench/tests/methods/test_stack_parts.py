"""The trainer's places for other parts: putting in what the stack has itself changes nothing."""

import numpy as np
import torch

from fairgrad.training import (
    LinearStack,
    Member,
    Shape,
    StackParts,
    TrainingPlan,
    TrainingTable,
    build,
    train,
)


def _trained(make_task, parts, **plan):
    X, y, s = make_task(rows=300).splits[1].train
    fair = {"fairness_measure": "equalized_odds", "fairness_rate": 0.05}
    members = [
        Member(seed=seed, weight_decay=decay, **fair) for seed in (1, 2) for decay in (0, 0.1)
    ]
    table = TrainingTable.from_data(X, y, s, dtype=torch.float64)
    return train(table, members, TrainingPlan(epochs=4, **plan), parts=parts)


def _same(one, other):
    for epoch in one.kept:
        for name, tensor in one.kept[epoch].items():
            assert torch.allclose(tensor, other.kept[epoch][name], atol=1e-9), name
    assert np.allclose(one.history.unfairness, other.history.unfairness)


def test_the_stacks_own_objective(make_task):
    own = StackParts(objective=lambda stack: stack.fair_objective)
    _same(_trained(make_task, None), _trained(make_task, own))


def test_the_stacks_own_batches_with_a_stream_for_every_member(make_task):
    apart = StackParts(batches=lambda stack: stack.streams)
    _same(_trained(make_task, None), _trained(make_task, apart))
    deep = {"hidden": (8,), "batch_norm": True, "dropout": 0.2}
    _same(_trained(make_task, None, **deep), _trained(make_task, apart, **deep))


def test_the_stacks_own_network(make_task):
    plain = _trained(make_task, None)

    def network(stack):
        seeds = [member.seed for member in stack.members]
        return build(plain.shape, stack.n_streams, seeds, torch.float64)

    _same(plain, _trained(make_task, StackParts(network=network)))


def test_the_state_of_an_objective_is_kept(make_task):
    class Counting:
        def __init__(self, stack):
            self.stack, self.state = stack, {"steps": torch.zeros(4)}

        def __call__(self, scores, indices):
            self.state["steps"] = self.state["steps"] + 1
            return self.stack.fair_objective(scores, indices)

    training = _trained(make_task, StackParts(objective=Counting), batch_size=100)
    assert [state["objective.steps"][0].item() for state in training.kept.values()] == [3, 6, 9, 12]


def test_scores_of_other_parameters_are_those_of_a_network_with_them():
    source = torch.Generator().manual_seed(1)
    for outputs in (1, 3):
        network = build(Shape(4, (), outputs), 1, [1, 2], torch.float32)
        assert isinstance(network, LinearStack)
        others, x = torch.randn(network.parameters.shape, generator=source), torch.randn(1, 9, 4)
        found = network.scores_with(others, x)
        network.parameters.copy_(others)
        assert torch.allclose(found, network.scores(x), atol=1e-6)
