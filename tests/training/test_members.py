"""Member i of a stack equals the same member trained alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad.training import Member, TrainingPlan, TrainingTable, train

PLAN = TrainingPlan(epochs=3, fairness_measure="equalized_odds")


def assert_each_as_alone(table, members, plan, **rows):
    together = train(table, members, plan, **rows)
    for i, member in enumerate(members):
        alone = train(table, [member], plan, **rows)
        for epoch, state in alone.kept.items():
            for name in ("network.parameters", "fairness.weights"):
                found = together.kept[epoch][name][i]
                torch.testing.assert_close(found, state[name][0], atol=1e-8, rtol=1e-7)
        for part in ("accuracy", "levels", "unfairness", "multipliers"):
            found, own = (getattr(one.history, part) for one in (together, alone))
            np.testing.assert_allclose(found[:, i], own[:, 0], atol=1e-8)


member_settings = st.fixed_dictionaries(
    {
        "learning_rate": st.sampled_from([0.05, 0.3]),
        "weight_decay": st.sampled_from([0.0, 0.01]),
        "clip_norm": st.sampled_from([0.05, float("inf")]),
        "epsilon": st.sampled_from([0.0, 0.01, 0.1]),
        "fairness_rate": st.sampled_from([0.0, 0.01, 0.1]),
        "proportional_rate": st.sampled_from([0.0, 1.0]),
        "error_memory": st.sampled_from([0.0, 0.5, 0.9]),
    }
)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(member_settings, min_size=2, max_size=5),
    st.sampled_from([16, 100, 1000]),
    st.booleans(),
)
def test_settings_of_members_do_not_touch_others(exact_table, own, batch_size, negative_weights):
    plan = replace(PLAN, batch_size=batch_size, keep=2, negative_weights=negative_weights)
    assert_each_as_alone(exact_table, [Member(**one) for one in own], plan)


@pytest.mark.parametrize("measure", ["accuracy_parity", "demographic_parity"])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_networks_on_some_of_the_rows(exact_table, measure, solver):
    rng = np.random.default_rng(0)
    rows, validation = rng.permutation(240)[:150], rng.permutation(240)[:40]
    plan = replace(PLAN, hidden=(5, 3), dropout=0.3, solver=solver, fairness_measure=measure)
    members = [Member(learning_rate=0.01, fairness_rate=rate) for rate in (0.0, 0.1)]
    assert_each_as_alone(exact_table, members, plan, rows=rows, validation=validation)


def test_the_automatic_rate(exact_table):
    members = [Member(fairness_rate="auto", epsilon=epsilon) for epsilon in (0.0, 0.05, np.inf)]
    assert_each_as_alone(exact_table, members, PLAN)


def test_several_labels_and_groups_without_rows(make_data):
    X, y, s = make_data(200, n_labels=3)
    table = TrainingTable.from_data(X, y, s, dtype=torch.float64)
    without = np.flatnonzero(~((y == 2) & (s == 1)))
    with pytest.warns(UserWarning, match="y=2, s=1"):
        assert_each_as_alone(
            table, [Member(fairness_rate=0.01), Member(fairness_rate=0.1)], PLAN, rows=without
        )


def test_measures_of_what_is_predicted(make_data):
    X, y, s = make_data(300, n_labels=3)
    table = TrainingTable.from_data(X, y, s, np.linspace(0.5, 2, 300), dtype=torch.float64)
    members = [
        Member(fairness_rate=rate, epsilon=epsilon)
        for rate, epsilon in ((0.2, 0.0), (0.1, 0.05), (0.0, 0.0))
    ]
    assert_each_as_alone(table, members, replace(PLAN, fairness_measure="demographic_parity"))
