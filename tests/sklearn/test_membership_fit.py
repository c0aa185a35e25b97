"""Estimators and losses trained with groups that are known for only some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fairgrad.membership import MembershipModel, spread_rows
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.torch import CrossEntropyLoss

MODELS: dict[str, Any] = {
    "gradient": lambda: FairGradClassifier("demographic_parity", random_state=0),
    "decision": lambda: FairDecisionClassifier(None, "demographic_parity", random_state=0),
}


def people(n: int = 3000) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    s = rng.choice(["a", "b"], n, p=[0.4, 0.6])
    y = (rng.random(n) < np.where(s == "a", 0.25, 0.6)).astype(int)
    X = rng.normal(size=(n, 4)) + np.outer(s == "b", [1.5, 0, 0, 0]) + np.outer(y, [0, 1.5, 0, 0])
    return X, y, s


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_is_about_as_fair_as_with_all_groups(kind: str) -> None:
    X, y, s = people()
    seen = np.where(np.arange(len(y)) < 300, s, None)
    found = MembershipModel().fit_predict(X, seen, y)
    soft = MODELS[kind]().fit(X, y, sensitive_features=seen, membership=found)
    full = MODELS[kind]().fit(X, y, sensitive_features=s)

    def gap(model: Any, rows: Any) -> float:
        h = model.predict(X[rows])
        return abs(h[s[rows] == "b"].mean() - h[s[rows] == "a"].mean())

    everyone = np.arange(len(y))
    assert gap(soft, everyone) < 1.3 * gap(full, everyone) + 0.02
    # Levels are those of the rows whose group is known; of decisions, by models of other folds.
    rounding = 0.02 if kind == "decision" else 1e-9
    h = soft.predict(X[:300])
    level = h[s[:300] == "a"].mean() - h.mean()
    assert np.abs(soft.levels_).max() >= abs(level) - rounding
    assert np.isclose(np.abs(soft.levels_), abs(level), atol=rounding).any()


@pytest.mark.parametrize("kind", MODELS)
def test_certain_probabilities_are_the_same_as_known_groups(kind: str) -> None:
    X, y, s = people(1200)
    seen = np.where(np.arange(len(y)) < 600, s, None)
    certain = np.column_stack([s == "a", s == "b"]).astype(float)
    soft = MODELS[kind]().fit(X, y, sensitive_features=seen, membership=certain)
    full = MODELS[kind]().fit(X, y, sensitive_features=s, sample_weight=np.ones(len(y)))
    assert (soft.predict(X) == full.predict(X)).mean() > 0.97


def test_held_out_rows_have_a_known_group() -> None:
    X, y, s = people(1200)
    seen = np.where(np.arange(len(y)) < 600, s, None)
    found = np.full((len(y), 2), 0.5)
    model = FairGradClassifier("demographic_parity", validation_fraction=0.2, random_state=0)
    model.fit(X, y, sensitive_features=seen, membership=found)
    assert len(model.levels_) == 4
    # In training everybody counts once: 80 % of the known rows and all others.
    assert model.groups_.mass.sum() == pytest.approx(480 + 600, abs=4)


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_a_loss_takes_probabilities_in_place_of_groups(measure: str) -> None:
    _, y, s = people(400)
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1], 400)
    rows = spread_rows({"s": np.where(rng.random(400) < 0.2, s == "b", -1)}, p)
    train = (y[rows.source], rows.columns["s"], measure)
    first, second = (CrossEntropyLoss(*train, sample_weight_train=rows.share) for _ in range(2))
    scores = torch.randn(64, 2, generator=torch.manual_seed(0), requires_grad=True)
    target, members = torch.from_numpy(y[:64]), torch.from_numpy(p[:64])
    own = torch.rand(64, dtype=torch.float64)
    for weight in (None, own):
        loss = first(scores, target, members, weight)
        repeated = scores.repeat_interleave(2, 0), target.repeat_interleave(2)
        share = members if weight is None else members * weight[:, None]
        expected = second(*repeated, torch.tensor([0, 1]).repeat(64), share.reshape(-1))
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        found, wanted = (torch.autograd.grad(part, scores)[0] for part in (loss, expected))
        assert torch.allclose(found, wanted, atol=1e-6)
    with pytest.raises(ValueError, match=r"probabilities of the shape \(64, 2\)"):
        first(scores, target, members[:, :1])


def test_a_loss_gives_certain_probabilities_the_factors_of_their_groups() -> None:
    _, y, s = people(400)
    group = torch.from_numpy((s == "b").astype(np.int64))
    first, second = (CrossEntropyLoss(y, group, "equalized_odds") for _ in range(2))
    scores, target = torch.randn(400, 2), torch.from_numpy(y)
    certain = torch.nn.functional.one_hot(group).double()
    for _ in range(3):
        loss, expected = first(scores, target, certain), second(scores, target, group)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
