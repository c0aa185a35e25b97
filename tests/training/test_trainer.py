"""Determinism, divergence, interruption, averaging, fine-tuning."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fairgrad.training import Member, Stack, TrainingPlan, TrainingTable, train, trainer

FAIR = {"fairness_rate": 0.05, "learning_rate": 0.3}


def asked(**settings):
    return TrainingPlan(fairness_measure="equalized_odds", **settings)


def last_parameters(training):
    return training.kept[max(training.kept)]["network.parameters"]


@pytest.mark.parametrize("plan", [asked(epochs=3), asked(hidden=(5,), dropout=0.5, epochs=3)])
def test_same_seed_same_model_whatever_the_global_generator(table, plan):
    torch.manual_seed(1)
    first = train(table, [Member(**FAIR)], plan)
    torch.manual_seed(2)
    second = train(table, [Member(**FAIR)], plan)
    assert torch.equal(last_parameters(first), last_parameters(second))
    other = train(table, [Member(**FAIR)], replace(plan, seed=6))
    assert not torch.equal(last_parameters(first), last_parameters(other))


def test_training_leaves_the_global_generator_alone(table):
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    train(table, [Member(**FAIR)], asked(epochs=1, hidden=(3,), dropout=0.1))
    assert torch.equal(torch.rand(1), expected)


def test_fairness_falls_and_the_plain_member_stays_unfair(table):
    stable = {"proportional_rate": 2.0, "error_memory": 0.9}
    members = [Member(**FAIR, **stable), Member(**{**FAIR, "fairness_rate": 0.0}, error_memory=0.9)]
    training = train(table, members, asked(epochs=60, schedule="cosine"))
    fair, plain = training.history.unfairness[-1]
    assert plain > 0.1
    assert fair < plain / 3


@pytest.mark.parametrize("kind", [{}, {"hidden": (6,)}])
def test_divergence_stops_that_member_alone(table, kind):
    members = [Member(**FAIR), Member(weight_decay=1e6, **FAIR)]
    plan = asked(epochs=4, **kind)
    with pytest.warns(RuntimeWarning, match="Member 1 diverged in epoch"):
        training = train(table, members, plan)
    assert training.stopped[0] is None
    assert "learning_rate" in training.stopped[1]
    assert torch.isfinite(last_parameters(training)).all()
    alone = train(table, members[:1], plan)
    torch.testing.assert_close(last_parameters(training)[0], last_parameters(alone)[0])


@pytest.fixture
def single_steps(monkeypatch):
    """Linear models are trained by steps too, as without a compiler."""
    monkeypatch.setattr(trainer, "is_compiled", False)


@pytest.mark.usefixtures("single_steps")
def test_interruption_keeps_the_epochs_that_are_complete(table, monkeypatch):
    plan = asked(epochs=9, keep=2)
    complete = train(table, [Member(**FAIR)], asked(epochs=3, keep=2))
    steps_left = 3 * 5 + 2  # into the fourth epoch
    step = Stack.step

    def interrupted_step(self, *arguments):
        nonlocal steps_left
        if steps_left == 0:
            raise KeyboardInterrupt
        steps_left -= 1
        step(self, *arguments)

    monkeypatch.setattr(Stack, "step", interrupted_step)
    training = train(table, [Member(**FAIR)], plan)
    assert training.interrupted
    assert len(training.history) == 3
    assert list(training.kept) == [1, 2]
    assert torch.equal(last_parameters(training), last_parameters(complete))


@pytest.mark.usefixtures("single_steps")
def test_interruption_of_the_first_epoch_still_gives_a_model(data, table, monkeypatch):
    def interrupted_step(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Stack, "step", interrupted_step)
    training = train(table, [Member(**FAIR)], asked(epochs=3))
    assert training.interrupted
    assert training.state(0)["network.parameters"].shape == (1, data[0].shape[1] + 1)


@pytest.mark.usefixtures("single_steps")
def test_average_is_the_mean_of_the_weights_after_each_step(table, monkeypatch):
    seen = []
    step = Stack.step

    def recording_step(self, *arguments):
        step(self, *arguments)
        seen.append(self.network.parameters.clone())

    monkeypatch.setattr(Stack, "step", recording_step)
    training = train(table, [Member(**FAIR)], asked(epochs=4, average_last=0.5))
    assert len(seen) == 20
    torch.testing.assert_close(last_parameters(training), torch.stack(seen[10:]).mean(0))
    torch.testing.assert_close(training.kept[1]["network.parameters"], seen[9])


def test_learning_rate_falls_to_zero_along_a_cosine():
    plan = TrainingPlan(schedule="cosine")
    assert plan.rate_factor(0.0) == 1.0
    assert plan.rate_factor(0.5) == pytest.approx(0.5)
    assert plan.rate_factor(1.0) == pytest.approx(0.0)
    assert TrainingPlan().rate_factor(0.9) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate: expected a finite number of at least 0"),
        ({"error_memory": 1.0}, "error_memory: .*below 1"),
        ({"clip_norm": 0.0}, "clip_norm: expected a number above 0"),
    ],
)
def test_member_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Member(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "lbfgs"}, "solver: expected one of .*'sgd'"),
        ({"hidden": (0,)}, "hidden: expected a whole number of at least 1"),
        ({"epochs": 0}, "epochs"),
        ({"dropout": 1.0}, "dropout"),
        ({"schedule": "step"}, "schedule"),
        ({"average_last": 1.5}, "average_last"),
    ],
)
def test_plan_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        TrainingPlan(**arguments)


def test_rows_beyond_the_table_are_refused(table):
    with pytest.raises(ValueError, match="rows: expected at least one row number from 0 to 299"):
        train(table, [Member()], rows=np.array([300]))
    with pytest.raises(ValueError, match="members: expected at least one"):
        train(table, [])


def test_sparse_features_are_the_dense_ones(data):
    sparse = pytest.importorskip("scipy.sparse")
    X, y, s = data
    X = np.where(np.abs(X) > 1, X, 0)
    dense, packed = (
        train(TrainingTable.from_data(features, y, s), [Member(**FAIR)], asked(epochs=2))
        for features in (X, sparse.csr_matrix(X))
    )
    torch.testing.assert_close(last_parameters(dense), last_parameters(packed))


def test_bar_is_shown_on_demand(table, capsys):
    train(table, [Member(**FAIR)], asked(epochs=2), progress=True)
    assert "unfairness" in capsys.readouterr().err
    train(table, [Member(**FAIR)], asked(epochs=2), progress=None)
    assert not capsys.readouterr().err
