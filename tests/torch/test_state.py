"""The state is kept: saved, resumed, copied, moved, in float32."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from fairgrad.torch import CrossEntropyLoss

N = 200
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()
S = (X[:, 1] > 0.3).long()


def trainer(seed=0, **arguments):
    torch.manual_seed(seed)
    model = nn.Linear(5, 2)
    arguments = {"fairness_rate": 0.1, "error_memory": 0.5, "epsilon": 0.02, **arguments}
    criterion = CrossEntropyLoss(Y, S, "equalized_odds", **arguments)
    return model, criterion, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def train(model, criterion, optimizer, batches):
    for seed in batches:
        rows = torch.randperm(N, generator=torch.Generator().manual_seed(seed))[:16]
        optimizer.zero_grad()
        criterion(model(X[rows]), Y[rows], S[rows]).backward()
        optimizer.step()


def equal(first, second):
    states = first.state_dict(), second.state_dict()
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][name], states[1][name]) for name in states[0]
    )


def test_an_interrupted_run_resumes_bit_for_bit():
    whole = trainer()
    train(*whole, range(100))

    first = trainer()
    train(*first, range(40))
    file = io.BytesIO()
    torch.save([part.state_dict() for part in first], file)
    file.seek(0)
    resumed = trainer(seed=1)
    for part, state in zip(resumed, torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    train(*resumed, range(40, 100))

    assert equal(whole[0], resumed[0])
    assert equal(whole[1], resumed[1])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])  # noqa: S301 - our own
def test_copies_go_on_alone(copier):
    original = trainer()
    train(*original, range(10))
    twin = copier(original[1])
    assert equal(original[1], twin)
    train(*original, range(10, 20))
    assert not equal(original[1], twin)
    before = copier(twin)
    train(original[0], twin, original[2], range(3))
    assert not equal(before, twin)


@pytest.mark.parametrize("cast", [nn.Module.bfloat16, nn.Module.half, nn.Module.double])
def test_the_precision_of_a_parent_is_not_ours(cast):
    criterion = trainer()[1]
    train(nn.Linear(5, 2), criterion, torch.optim.SGD([torch.zeros(1, requires_grad=True)]), [1])
    before = copy.deepcopy(criterion)
    parent = nn.Module()
    parent.layer, parent.criterion = nn.Linear(5, 2), criterion
    cast(parent)
    assert parent.layer.weight.dtype != torch.float32
    assert equal(before, criterion)
    assert criterion.multipliers.dtype == torch.float32


def test_the_loss_moves_with_its_parent():
    criterion = trainer()[1].to("meta")
    assert all(buffer.device.type == "meta" for buffer in criterion.buffers())


def test_class_weights_follow_the_precision_of_the_model():
    criterion = CrossEntropyLoss(Y, S, "equalized_odds", weight=torch.tensor([1.0, 2.0]))
    loss = criterion.bfloat16()(torch.zeros(N, 2, dtype=torch.bfloat16, requires_grad=True), Y, S)
    assert loss.dtype == torch.bfloat16


@pytest.mark.parametrize(
    "other",
    [
        lambda: CrossEntropyLoss(Y, 1 - S, "equalized_odds", epsilon=0.02),
        lambda: CrossEntropyLoss(Y, S, "demographic_parity", epsilon=0.02),
        lambda: CrossEntropyLoss(Y, S, "equalized_odds", epsilon=0.03),
        lambda: CrossEntropyLoss(Y, S + 1, "equalized_odds", epsilon=0.02),
    ],
    ids=["data", "measure", "bounds", "ids"],
)
def test_the_state_of_another_problem_is_refused(other):
    criterion = trainer()[1]
    before = copy.deepcopy(criterion)
    with pytest.raises(ValueError, match="trained on another problem"):
        criterion.load_state_dict(other().state_dict())
    assert equal(before, criterion)


def test_the_state_of_the_same_problem_with_other_rates_is_taken():
    criterion = trainer(fairness_rate=0.5)[1]
    criterion.load_state_dict(trainer()[1].state_dict())
