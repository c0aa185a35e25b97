"""The paper's networks, and the trainer's places for other parts."""

import pytest
import torch
from torch import nn

from fairgrad.training import Member, StackParts, TrainingPlan, TrainingTable, train
from fairgrad_bench.methods.models import NormalisedPerceptrons, normalise, paper_network


def _trained(make_task, parts, **plan):
    X, y, s = make_task(rows=300).splits[1].train
    table = TrainingTable.from_data(X, y, s, dtype=torch.float64)
    plan = TrainingPlan(epochs=4, seed=1, fairness_measure="equalized_odds", **plan)
    members = [Member(weight_decay=decay, fairness_rate=0.05) for decay in (0, 0.1)]
    return train(table, members, plan, parts=parts)


@pytest.mark.parametrize("part", ["objective", "batches", "network"])
def test_the_stacks_own_parts_change_nothing(make_task, part):
    own = {"objective": "fair_objective", "batches": "batches", "network": "network"}[part]
    plain = _trained(make_task, None)
    if part == "network":
        networks = []
        _trained(make_task, StackParts(objective=lambda s: networks.append(s) or s.fair_objective))
        found = _trained(
            make_task,
            StackParts(
                network=lambda _: type(networks[0].network)(
                    networks[0].sizes, 2, 1, dtype=torch.float64
                )
            ),
        )
    else:
        found = _trained(make_task, StackParts(**{part: lambda stack: getattr(stack, own)}))
    for name in ("network.parameters", "fairness.multipliers"):
        torch.testing.assert_close(plain.kept[3][name], found.kept[3][name], atol=1e-9, rtol=0)


def test_the_state_of_an_objective_is_kept(make_task):
    class Counting:
        def __init__(self, stack):
            self.stack, self.state = stack, {"steps": torch.zeros(2)}

        def __call__(self, scores, rows):
            self.state["steps"] = self.state["steps"] + 1
            return self.stack.fair_objective(scores, rows)

    training = _trained(make_task, StackParts(objective=Counting), batch_size=100)
    assert [state["objective.steps"][0].item() for state in training.kept.values()] == [3, 6, 9, 12]


def test_batch_norm_is_pytorchs():
    a = torch.randn(3, 4, 7, dtype=torch.float64)
    scale, shift = torch.randn(2, 3, 4, dtype=torch.float64)
    buffers = NormalisedPerceptrons((1, 4, 1), 3, dtype=torch.float64).buffers
    found = normalise(a, scale, shift, buffers, 0, training=True)
    for m in range(3):
        layer = nn.BatchNorm1d(4).double()
        layer.weight.data, layer.bias.data = scale[m], shift[m]
        torch.testing.assert_close(found[m].T, layer(a[m].T))
        torch.testing.assert_close(buffers["mean0"][m], layer.running_mean)
        torch.testing.assert_close(buffers["variance0"][m], layer.running_var)


def test_the_papers_network_takes_a_batch_of_one_row(make_task):
    parts = StackParts(network=paper_network)
    training = _trained(make_task, parts, hidden=(8, 4), dropout=0.2, batch_size=299)
    assert torch.isfinite(training.kept[3]["network.parameters"]).all()
    assert (training.kept[3]["buffers.mean0"] != 0).any()
