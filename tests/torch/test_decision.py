"""Fair decisions as the last layer of a network."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from fairgrad import fairness_levels
from fairgrad.decisions import DecisionProblem, solve, weighted_scores
from fairgrad.groups import group_rows
from fairgrad.measures import On, constraints_of
from fairgrad.torch import FairDecision


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 3)) + np.outer(s, [1.0, 0.0, 0.0])
    y = (X.sum(1) + rng.normal(size=2000) > 0.5).astype(int)
    return X, y, s


def network_of(model):
    """A linear layer with a regression's logits."""
    layer = nn.Linear(model.coef_.shape[1], len(model.coef_)).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(model.coef_))
        layer.bias.copy_(torch.from_numpy(model.intercept_))
    return layer


@pytest.mark.parametrize("measure", ["equalized_odds", "accuracy_parity"])
def test_it_decides_as_the_classifier_does(measure, table):
    X, y, s = table
    cells = LogisticRegression().fit(X, 2 * y + s)
    network, rows = network_of(cells), torch.from_numpy(X)
    head = FairDecision.tuned(network(rows), y, s, measure, epsilon=0.04)
    predicted = nn.Sequential(network, head)(rows).argmax(1).numpy()
    joint = cells.predict_proba(X).T.reshape(2, 2, -1)
    grouped = group_rows(y, s)
    constraints = constraints_of(measure, grouped.groups, epsilon=0.04)
    decision = solve(DecisionProblem([(constraints, grouped)], [joint]))
    expected = weighted_scores([joint], decision.pulls).argmax(0)
    assert (predicted == expected).mean() > 0.999
    assert fairness_levels(y, predicted, s, measure).gaps.max() <= 0.04 + 1e-9


def test_it_is_exported_and_saved_with_the_network(table):
    X, y, s = table
    rows = torch.tensor(X, dtype=torch.float32)
    network = nn.Linear(3, 4)
    fair = nn.Sequential(network, FairDecision.tuned(network(rows), y, s, epsilon=0.1))
    exported = torch.export.export(fair, (rows[:8],)).module()
    torch.testing.assert_close(exported(rows[:8]), fair(rows[:8]))
    copy = nn.Sequential(nn.Linear(3, 4), FairDecision(np.ones((2, 2))))
    copy.load_state_dict(fair.state_dict())
    torch.testing.assert_close(copy(rows), fair(rows))
    assert not [name for name, _ in fair[1].named_parameters()]


def test_errors(table):
    _, y, s = table
    with pytest.raises(ValueError, match=r"logits: expected \(rows, 4\)"):
        FairDecision.tuned(torch.zeros(2000, 3), y, s)
    with pytest.raises(ValueError, match="weights: expected"):
        FairDecision(np.ones(4))
    both = {"a": s, "b": np.tile([0, 1], 1000)}
    with pytest.raises(ValueError, match="For single attributes"):
        FairDecision.tuned(torch.zeros(2000, 8), y, both, On("a", "equalized_odds"))
