"""Linear models trained by whole compiled epochs, against the same by single steps."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fairgrad.measures import MEASURES
from fairgrad.sklearn import FairGradClassifier
from fairgrad.torch import is_compiled
from fairgrad.training import Member, TrainingPlan, TrainingTable, train, trainer

pytestmark = pytest.mark.skipif(not is_compiled, reason="no compiler when it was installed")

FAIR = {"fairness_rate": 0.05, "learning_rate": 0.3}
ODDS = {"fairness_measure": "equalized_odds"}


def by_steps():
    return patch.object(trainer, "is_compiled", new=False)


def assert_same(compiled, expected, atol):
    for name, part in vars(expected.history).items():
        np.testing.assert_allclose(getattr(compiled.history, name), part, atol=atol, err_msg=name)
    assert list(compiled.kept) == list(expected.kept)
    for epoch, state in expected.kept.items():
        assert state.keys() == compiled.kept[epoch].keys()
        for name, tensor in state.items():
            torch.testing.assert_close(compiled.kept[epoch][name], tensor, atol=atol, rtol=atol)


def draw_table(draw, rng):
    n, n_features = draw(st.integers(30, 300)), draw(st.integers(1, 9) | st.integers(30, 70))
    n_labels, n_groups = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    s = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, n_features)) + 0.5 * s[:, None]
    noisy = X.sum(1) + rng.normal(size=n)
    y = np.searchsorted(np.quantile(noisy, np.arange(1, n_labels) / n_labels), noisy)
    y[:n_labels] = np.arange(n_labels)
    weight = rng.random(n) if draw(st.booleans()) else None
    return TrainingTable.from_data(X, y, s, weight, dtype=torch.float64), n, n_labels


def draw_member(draw, is_auto):
    rate = "auto" if is_auto else draw(st.sampled_from([0.0, 0.05]))
    return Member(
        learning_rate=draw(st.sampled_from([0.05, 0.3])),  # beyond, rounding grows without end
        weight_decay=draw(st.sampled_from([0.0, 0.1])),
        clip_norm=draw(st.sampled_from([0.05, float("inf")])),
        epsilon=draw(st.sampled_from([0.0, 0.02])),
        fairness_rate=rate,
        proportional_rate=0.0 if is_auto else draw(st.sampled_from([0.0, 2.0])),
        error_memory=0.0 if is_auto else draw(st.sampled_from([0.0, 0.9])),
        steady_share=0.0 if is_auto else draw(st.sampled_from([0.0, 0.4])),
    )


TWO_LABELS = {
    "demographic_parity",
    "equalized_odds_all",
    "four_fifths_rule",
    "equality_of_opportunity",
}
"""With more labels these have another loss, or need to be told the desirable ones."""


@pytest.mark.filterwarnings("ignore:Constraints left out")
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_compiled_epochs_are_those_of_single_steps(data, seed):
    rng = np.random.default_rng(seed)
    table, n, n_labels = draw_table(data.draw, rng)
    n_members = data.draw(st.integers(1, 11))  # many are side by side, few one after the other
    is_auto = data.draw(st.booleans())
    members = [draw_member(data.draw, is_auto) for _ in range(n_members)]
    names = [name for name in MEASURES if n_labels == 2 or name not in TWO_LABELS]
    rows = {
        name: rng.permutation(n)[: rng.integers(20, n + 1)] if data.draw(st.booleans()) else None
        for name in ("rows", "validation")
    }
    plan = TrainingPlan(
        fairness_measure=data.draw(st.sampled_from([None, *names])),
        negative_weights=data.draw(st.booleans()),
        seed=data.draw(st.integers(0, 2)),
        epochs=data.draw(st.integers(1, 5)),
        batch_size=data.draw(st.sampled_from([23, 64, 1000])),
        schedule=data.draw(st.sampled_from(["constant", "cosine"])),
        average_last=data.draw(st.sampled_from([0.0, 0.4, 1.0])),
        keep=data.draw(st.integers(1, 3)),
    )
    compiled = train(table, members, plan, **rows)
    with by_steps():
        expected = train(table, members, plan, **rows)
    assert_same(compiled, expected, atol=1e-8)


def test_features_in_single_precision(data):
    table = TrainingTable.from_data(*data)
    plan = TrainingPlan(epochs=5, average_last=0.5, **ODDS)
    compiled = train(table, [Member(**FAIR)], plan)
    with by_steps():
        expected = train(table, [Member(**FAIR)], plan)
    assert compiled.kept[4]["network.parameters"].dtype == torch.float32
    assert_same(compiled, expected, atol=1e-4)


@pytest.mark.parametrize("n_members", [1, 3, 19])  # many are side by side
@pytest.mark.parametrize("n_features", [1, 3, 8, 21, 47])
def test_single_precision_is_double_precision_rounded(n_features, n_members):
    rng = np.random.default_rng(n_features)
    s = rng.integers(0, 2, 203)
    X = (rng.normal(size=(203, n_features)) + 0.5 * s[:, None]).astype(np.float32)
    y = (X[:, :3].sum(1) + rng.normal(size=203) > 0.5).astype(int)
    members = [Member(weight_decay=0.001 * m, **FAIR) for m in range(n_members)]
    trained = []
    for dtype in (torch.float32, torch.float64):
        table = TrainingTable.from_data(X, y, s, dtype=dtype)
        plan = TrainingPlan(epochs=4, average_last=0.5, batch_size=50, **ODDS)
        trained.append(train(table, members, plan).kept[3]["network.parameters"])
    assert trained[0].dtype == torch.float32
    torch.testing.assert_close(trained[0].double(), trained[1], atol=2e-5, rtol=0)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_it_is_used_by_the_estimator(data, offset):
    X, y, s = data
    X = X.astype(np.float64) * 3 + offset
    model = FairGradClassifier("demographic_parity", fairness_rate=0.05, random_state=0)
    with patch.object(trainer.Stack, "step", side_effect=AssertionError("a single step")):
        compiled = model.fit(X, y, sensitive_features=s).coef_
    with by_steps():
        expected = model.fit(X, y, sensitive_features=s).coef_
    np.testing.assert_allclose(compiled, expected, rtol=1e-4)  # trained in single precision


def test_plain_model_is_logistic_regression(data):
    """With large batches and many epochs it ends where the likelihood is the largest."""
    X, y, _ = data
    model = FairGradClassifier(None, max_iter=3000, batch_size=1000, learning_rate=1.0).fit(X, y)
    exact = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, rtol=1e-3, atol=1e-3)


def test_features_are_neither_copied_nor_changed(data):
    X, y, s = data
    X, before = X.copy(), X
    X.setflags(write=False)  # as joblib's memory maps are
    model = FairGradClassifier("demographic_parity", fairness_rate=0.05)
    model.fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(X, before)


def test_interruption_keeps_the_epochs_that_are_complete(table):
    plan, short = (TrainingPlan(epochs=epochs, keep=2, **ODDS) for epochs in (9, 3))
    members = [Member(**FAIR), Member(weight_decay=0.1, **FAIR)]
    complete = train(table, members, short)
    run_epoch, calls = trainer.compiled_code.epoch, iter(range(100))

    def interrupted(*arguments):
        if next(calls) == 3:  # the fourth epoch
            raise KeyboardInterrupt
        return run_epoch(*arguments)

    with patch.object(trainer.compiled_code, "epoch", interrupted):
        training = train(table, members, plan)
    assert training.interrupted
    assert_same(training, complete, atol=1e-12)


def test_interruption_of_the_first_epoch_still_gives_a_model(data, table):
    with patch.object(trainer.compiled_code, "epoch", side_effect=KeyboardInterrupt):
        training = train(table, [Member(**FAIR)], TrainingPlan(epochs=3, **ODDS))
    assert training.interrupted
    assert training.state(0)["network.parameters"].shape == (1, data[0].shape[1] + 1)
