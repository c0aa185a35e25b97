"""Member i of a stack equals the same member trained alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad.training import Member, TrainingPlan, TrainingTable, train


def assert_each_as_alone(table, members, plan, atol=1e-8):
    together = train(table, members, plan)
    for i, member in enumerate(members):
        alone = train(table, [member], plan)
        for epoch, state in alone.kept.items():
            for name, tensor in state.items():
                if name in {"fairness.rows", "fairness.errors"}:
                    continue  # not estimated at all where no member is to be made fair
                found = together.kept[epoch][name][i]
                torch.testing.assert_close(found, tensor[0], atol=atol, rtol=1e-7)
        np.testing.assert_allclose(
            together.history.accuracy[:, i], alone.history.accuracy[:, 0], atol=1e-12
        )
        n_levels = alone.history.levels.shape[-1]
        np.testing.assert_allclose(
            together.history.levels[:, i, :n_levels], alone.history.levels[:, 0], atol=1e-8
        )
        np.testing.assert_allclose(
            together.history.unfairness[:, i], alone.history.unfairness[:, 0], atol=1e-8
        )


member_settings = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2),
        "learning_rate": st.sampled_from([0.05, 0.3]),
        "weight_decay": st.sampled_from([0.0, 0.01]),
        "clip_norm": st.sampled_from([0.05, float("inf")]),
        "fairness_measure": st.just("equalized_odds"),
        "fairness_rate": st.sampled_from([0.0, 0.01, 0.1]),
        "proportional_rate": st.sampled_from([0.0, 1.0]),
        "error_memory": st.sampled_from([0.0, 0.5, 0.9]),
        "negative_weights": st.booleans(),
    }
)


@settings(max_examples=15, deadline=None)
@given(st.lists(member_settings, min_size=2, max_size=5), st.sampled_from([16, 100, 1000]))
def test_settings_of_members_do_not_touch_others(exact_table, settings_of_members, batch_size):
    members = [Member(**own) for own in settings_of_members]
    assert_each_as_alone(
        exact_table, members, TrainingPlan(epochs=2, batch_size=batch_size, keep=2)
    )


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(40, 200), min_size=2, max_size=4),
    st.sampled_from([(), (5, 3)]),
    st.booleans(),
    st.sampled_from(["sgd", "adam"]),
)
def test_members_of_different_numbers_of_rows(exact_table, sizes, hidden, batch_norm, solver):
    """Shorter members run out of rows before the epoch ends; nothing of them may move then."""
    rng = np.random.default_rng(sum(sizes))
    members = [
        Member(
            rows=rng.permutation(240)[:size],
            validation=rng.permutation(240)[: 30 + size // 4],
            seed=i,
            learning_rate=0.01,
            fairness_measure="demographic_parity",
            fairness_rate=0.1,
        )
        for i, size in enumerate(sizes)
    ]
    plan = TrainingPlan(
        hidden=hidden, batch_norm=batch_norm, epochs=2, batch_size=32, solver=solver
    )
    assert_each_as_alone(exact_table, members, plan)


def test_epsilon_zero_and_above_train_together(exact_table):
    fair = {"fairness_measure": "equalized_odds", "fairness_rate": 0.1, "learning_rate": 0.3}
    members = [Member(epsilon=epsilon, **fair) for epsilon in (0.0, 0.01, 0.1)]
    together = train(exact_table, members, TrainingPlan(epochs=3))
    for i, member in enumerate(members):
        alone = train(exact_table, [member], TrainingPlan(epochs=3))
        np.testing.assert_allclose(
            together.kept[2]["network.parameters"][i],
            alone.kept[2]["network.parameters"][0],
            atol=1e-10,
        )
        np.testing.assert_allclose(
            together.history.multipliers[:, i], alone.history.multipliers[:, 0], atol=1e-10
        )


def test_measures_with_and_without_labels_train_together(exact_table):
    measures = ["accuracy_parity", "equalized_odds", None, "demographic_parity"]
    members = [
        Member(fairness_measure=m, fairness_rate=0.1, learning_rate=0.3, seed=i % 2)
        for i, m in enumerate(measures)
    ]
    together = train(exact_table, members, TrainingPlan(epochs=3))
    for i, member in enumerate(members):
        alone = train(exact_table, [member], TrainingPlan(epochs=3))
        np.testing.assert_allclose(
            together.kept[2]["network.parameters"][i],
            alone.kept[2]["network.parameters"][0],
            atol=1e-10,
        )
        np.testing.assert_allclose(
            together.history.unfairness[:, i], alone.history.unfairness[:, 0], atol=1e-10
        )


@pytest.mark.parametrize("hidden", [(), (6,)])
def test_dropout_masks_belong_to_the_seed(exact_table, hidden):
    members = [Member(seed=seed, learning_rate=rate) for seed in (0, 1) for rate in (0.1, 0.2)]
    plan = TrainingPlan(hidden=hidden, dropout=0.3, epochs=2, batch_size=50)
    assert_each_as_alone(exact_table, members, plan)


def test_several_labels_and_groups_without_rows(make_data):
    X, y, s = make_data(200, n_labels=3)
    table = TrainingTable.from_data(X, y, s, dtype=torch.float64)
    without = np.flatnonzero(~((y == 2) & (s == 1)))
    members = [
        Member(rows=rows, seed=0, fairness_measure="equalized_odds", learning_rate=0.2)
        for rows in (np.arange(200), without)
    ]
    with pytest.warns(UserWarning, match="y=2, s=1"):
        assert_each_as_alone(table, members, TrainingPlan(epochs=2))


def test_many_cells_count_one_by_one_with_the_same_result():
    """Seventy groups: beyond the products with membership matrices."""
    rng = np.random.default_rng(0)
    n = 2000
    s, X = rng.integers(0, 35, n), rng.normal(size=(n, 3))
    y = (X.sum(1) + rng.normal(size=n) > 0).astype(int)
    table = TrainingTable.from_data(X, y, s, dtype=torch.float64)
    members = [
        Member(fairness_measure=measure, fairness_rate=0.01, learning_rate=0.3)
        for measure in ("equalized_odds", "demographic_parity")
    ]
    assert_each_as_alone(table, members, TrainingPlan(epochs=2, batch_size=500))
