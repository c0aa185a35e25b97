"""Ten thousand groups: costs grow with their number, not with its square (1.6 GB as a matrix)."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch

from fairgrad import Audit, FairGradClassifier, On, fairness_levels
from fairgrad.sklearn import FairDecisionClassifier
from fairgrad.torch import CrossEntropyLoss

N_GROUPS = 10_000
RNG = np.random.default_rng(0)
S = np.tile(np.arange(N_GROUPS), 4)
Y = np.repeat([0, 1], 2 * N_GROUPS)
X = RNG.normal(size=(len(Y), 2)) + Y[:, None]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity", "accuracy_parity"])
def test_losses(measure, compiled):
    y, s = torch.from_numpy(Y), torch.from_numpy(S)
    criterion = CrossEntropyLoss(y, s, measure, fairness_rate=0.1)
    criterion.state.is_compiled &= compiled
    scores = torch.from_numpy(X).float().requires_grad_()
    criterion(scores, y, s).backward()
    found = fairness_levels(Y, X.astype(np.float32).argmax(1), S, measure)
    np.testing.assert_allclose(criterion.levels, found.values, atol=1e-6)
    size = sum(buffer.nbytes for buffer in criterion.buffers())
    assert size < 20_000 * 200  # bytes of a cell, of which there are at most 20,000


def test_copies_and_files():
    criterion = CrossEntropyLoss(torch.from_numpy(Y), torch.from_numpy(S), "equalized_odds")
    assert len(pickle.dumps(criterion)) < 20_000 * 1000
    assert copy.deepcopy(criterion).constraints.n_cells == 20_000


def test_two_attributes_apart():
    y, s = torch.from_numpy(Y), torch.from_numpy(np.stack([S, S % 7], axis=1))
    measure = [On("s0", "equalized_odds"), On("s1", "demographic_parity", epsilon=0.01)]
    criterion = CrossEntropyLoss(y, s, measure, fairness_rate=0.1)
    criterion(torch.from_numpy(X).float().requires_grad_(), y, s)
    found = fairness_levels(Y, X.astype(np.float32).argmax(1), s.numpy(), measure)
    np.testing.assert_allclose(criterion.levels, found.values, atol=1e-6)


def test_estimator_and_audit():
    model = FairGradClassifier("demographic_parity", max_iter=2, random_state=0)
    predicted = model.fit(X, Y, sensitive_features=S).predict(X)
    found = fairness_levels(Y, predicted, S, "demographic_parity")
    np.testing.assert_allclose(model.levels_, found.values, atol=1e-9)
    audit = Audit(Y, predicted, S, measures=["demographic_parity"])
    assert audit.findings[0].unfairness == pytest.approx(found.unfairness)


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
@pytest.mark.parametrize("make", [FairGradClassifier, partial(FairDecisionClassifier, None)])
def test_groups_that_differ_by_chance_alone_cost_next_to_nothing(make, measure):
    """40 groups of 75 rows: some are far from the mean by chance, which is not to be fitted."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(6000, 4)), rng.integers(40, size=6000)
    y = (X[:, 0] + X[:, 1] + rng.normal(size=6000) > 0.5).astype(int)
    model = make(measure, random_state=0).fit(X[:3000], y[:3000], sensitive_features=s[:3000])
    plain = FairGradClassifier(None, random_state=0).fit(X[:3000], y[:3000])
    fair, best = (np.mean(one.predict(X[3000:]) == y[3000:]) for one in (model, plain))
    assert fair > best - 0.01
