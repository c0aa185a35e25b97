"""Gradients, rounds and objective against hand-computed examples and definitions."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad.boosting import BoostingObjective
from fairgrad.boosting.objective import log_loss_gradients, weigh
from fairgrad.evaluate import fairness_levels

MEASURES = ["accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity"]


def log_loss(scores, label):
    if scores.ndim == 1:
        return np.logaddexp(0, np.where(label == 1, -scores, scores))
    return np.log(np.exp(scores).sum(1)) - scores[np.arange(len(label)), label]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradients_and_hessians_are_derivatives_of_the_log_loss(n_classes):
    rng = np.random.default_rng(n_classes)
    label = rng.integers(n_classes, size=40)
    scores = rng.normal(size=40 if n_classes == 2 else (40, n_classes))
    gradient, hessian = log_loss_gradients(scores, label)
    step = 1e-4
    for column in range(1 if n_classes == 2 else n_classes):
        move = np.zeros(n_classes)
        move[column] = step
        move = step if n_classes == 2 else move
        up, here, down = (log_loss(scores + sign * move, label) for sign in (1, 0, -1))
        pick = slice(None) if n_classes == 2 else (slice(None), column)
        np.testing.assert_allclose(gradient[pick], (up - down) / (2 * step), atol=1e-6)
        factor = 1 if n_classes == 2 else n_classes / (n_classes - 1)
        second = factor * (up - 2 * here + down) / step**2
        np.testing.assert_allclose(hessian[pick], second, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_row_of_negative_weight_is_to_get_another_label(n_classes):
    """Derivatives of ``|w| * -log(1 - p_y)`` where w < 0, against finite differences."""
    rng = np.random.default_rng(n_classes)
    label = rng.integers(n_classes, size=40)
    scores = rng.normal(size=40 if n_classes == 2 else (40, n_classes))
    weight = rng.normal(size=40) * 2

    def weighted(at):
        own = np.exp(-log_loss(at, label))
        return np.where(weight < 0, weight * np.log(1 - own), -weight * np.log(own))

    found, hessian = weigh(*log_loss_gradients(scores, label, weight < 0), weight)
    assert (hessian > 0).all()
    step = 1e-5
    for column in range(1 if n_classes == 2 else n_classes):
        move = np.zeros(n_classes)
        move[column] = step
        move = step if n_classes == 2 else move
        expected = (weighted(scores + move) - weighted(scores - move)) / (2 * step)
        pick = slice(None) if n_classes == 2 else (slice(None), column)
        np.testing.assert_allclose(found[pick], expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_opposed_rows_that_are_certain_have_finite_gradients(dtype):
    scores = np.array([[500.0, 0.0, 0.0], [-500.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=dtype)
    gradient, _ = log_loss_gradients(scores, np.zeros(3, dtype=int), np.ones(3, dtype=bool))
    assert np.isfinite(gradient).all()
    assert (gradient[:, 0] >= 0).all()
    np.testing.assert_allclose(gradient[2], [1 / 3, -1 / 6, -1 / 6], rtol=1e-6)


def test_one_round_by_hand():
    # Two groups of 4; group 0 has 1 wrong of 4, group 1 has 3 of 4: F = (.25, -.25).
    y, s = np.array([0, 0, 1, 1] * 2), np.repeat([0, 1], 4)
    scores = np.array([-1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    objective = BoostingObjective(y, s, "accuracy_parity", fairness_rate=2.0)
    gradient, hessian = objective.gradients(scores)
    np.testing.assert_allclose(objective.levels, [0.25, -0.25])
    np.testing.assert_allclose(objective.net_multipliers, [0.5, -0.5])
    # C' lam = (-.5, .5), over the shares of .5: weights 1 - 1 and 1 + 1.
    np.testing.assert_allclose(objective.weights, [0.0, 2.0], atol=1e-12)
    p = 1 / (1 + np.exp(-scores))
    weights = np.repeat([0.0, 2.0], 4)
    np.testing.assert_allclose(gradient, weights * (p - y), atol=1e-12)
    np.testing.assert_allclose(hessian, np.repeat([1.0, 2.0], 4) * p * (1 - p), atol=1e-12)
    # The same errors once more: multipliers twice as large, and group 0 is to be wrong.
    gradient, _ = objective.gradients(scores)
    np.testing.assert_allclose(objective.weights, [-1.0, 3.0], atol=1e-12)
    wanted = np.where(s == 0, 1 - y, y)
    np.testing.assert_allclose(gradient, np.repeat([1.0, 3.0], 4) * (p - wanted), atol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(MEASURES), st.booleans(), st.sampled_from([0, 0.05]))
def test_levels_and_multipliers_follow_the_definitions(seed, measure, weighted, epsilon):
    rng = np.random.default_rng(seed)
    n = 120
    y, s = rng.integers(2, size=n), rng.integers(3, size=n)
    y[:6], s[:6] = [0, 1] * 3, [0, 0, 1, 1, 2, 2]  # no cell is empty
    weight = rng.uniform(0.5, 2, size=n) if weighted else None
    objective = BoostingObjective(
        y,
        s,
        measure,
        epsilon=epsilon,
        fairness_rate=0.3,
        sample_weight=weight,
    )
    multipliers = [0.0, 0.0]
    for _ in range(3):
        scores = rng.normal(size=n)
        gradient, _ = objective.gradients(scores)
        level = fairness_levels(
            y, (scores > 0).astype(int), s, measure, sample_weight=weight
        ).values
        np.testing.assert_allclose(objective.levels, level, atol=1e-7)
        upper, lower = multipliers
        if epsilon:
            upper = np.maximum(0, upper + 0.3 * (level - epsilon))
            lower = np.maximum(0, lower + 0.3 * (-epsilon - level))
        else:
            upper = upper + 0.3 * level
        multipliers = [upper, lower]
        np.testing.assert_allclose(objective.net_multipliers, upper - lower, atol=1e-7)
    cell = y * 3 + s if objective.constraints.by_label else s
    mass = np.bincount(cell, weight) / (n if weight is None else weight.sum())
    C = objective.constraints.C
    expected = 1 + (C.T @ (multipliers[0] - multipliers[1])) / mass
    np.testing.assert_allclose(objective.weights, expected, atol=1e-6)
    p = 1 / (1 + np.exp(-scores))
    wanted = np.where(expected[cell] < 0, 1 - y, y)
    rows = np.abs(expected[cell]) * (1 if weight is None else weight)
    np.testing.assert_allclose(gradient, rows * (p - wanted), atol=1e-6)


def test_rows_of_unknown_groups_have_weight_one_and_are_in_no_level():
    rng = np.random.default_rng(0)
    y, s = rng.integers(2, size=300), rng.integers(-1, 2, size=300)
    scores = rng.normal(size=300) + 2 * s
    objective = BoostingObjective(y, s, "equalized_odds", fairness_rate=1.0)
    gradient, _ = objective.gradients(scores)
    p = 1 / (1 + np.exp(-scores))
    unknown = s == -1
    np.testing.assert_allclose(gradient[unknown], (p - y)[unknown], atol=1e-12)
    assert not np.allclose(gradient[~unknown], (p - y)[~unknown], atol=1e-2)
    known = fairness_levels(
        y[~unknown], (scores[~unknown] > 0).astype(int), s[~unknown], "equalized_odds"
    )
    np.testing.assert_allclose(objective.levels, known.values, atol=1e-7)


@pytest.mark.parametrize("labels", [(1, 2), ("no", "yes")])
@pytest.mark.parametrize("measure", ["equality_of_opportunity", "four_fifths_rule"])
def test_the_desirable_label_is_the_second_of_two(measure, labels):
    rng = np.random.default_rng(0)
    y, s, scores = rng.integers(2, size=400), rng.integers(2, size=400), rng.normal(size=400)
    scores += 2 * s
    named, numbered = (BoostingObjective(label, s, measure) for label in (np.array(labels)[y], y))
    np.testing.assert_array_equal(named.gradients(scores), numbered.gradients(scores))
    given = BoostingObjective(y, s, measure, y_desirable=[0])
    assert not np.allclose(given.gradients(scores), numbered.gradients(scores))


def test_state_goes_through_json_and_training_goes_on():
    rng = np.random.default_rng(2)
    y, s = rng.integers(2, size=200), rng.integers(2, size=200)
    scores = rng.normal(size=(4, 200))

    def make():
        return BoostingObjective(y, s, "equalized_odds", fairness_rate=0.5)

    whole, first, second = make(), make(), make()
    for row in scores:
        expected = whole.gradients(row)
    for row in scores[:2]:
        first.gradients(row)
    second.load_state(json.loads(json.dumps(first.state())))
    for row in scores[2:]:
        found = second.gradients(row)
    np.testing.assert_array_equal(found, expected)
    assert second.n_rounds == 4
    other = BoostingObjective(y, s, "accuracy_parity")
    with pytest.raises(ValueError, match="state: expected multipliers of the constraints"):
        other.load_state(first.state())


def test_ten_thousand_groups():
    """Costs grow with the number of groups, not with its square, which would be gigabytes here."""
    rng = np.random.default_rng(4)
    s = np.tile(np.arange(10_000), 4)
    y, scores = np.repeat([0, 1], 20_000), rng.normal(size=40_000)
    objective = BoostingObjective(y, s, "equalized_odds", fairness_rate=0.5)
    objective.gradients(scores)
    found = fairness_levels(y, (scores > 0).astype(int), s, "equalized_odds").values
    np.testing.assert_allclose(objective.levels, found, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fairness_rate": -1}, "fairness_rate: expected a finite number of at least 0, got -1"),
        ({"fairness_rate": "fast"}, "fairness_rate: expected a number or 'auto'"),
        ({"epsilon": -0.1}, "epsilon: expected at least 0"),
        (
            {"sensitive_features": [0, 0, 0, 0]},
            "sensitive_features: fairness compares at least two groups",
        ),
        ({"sensitive_features": [0, 1]}, "sensitive_features: expected one value per row of y"),
        ({"fairness_measure": "karma"}, "fairness_measure"),
        ({"sample_weight": [1, 1, 1, -1]}, "sample_weight: expected finite weights"),
    ],
)
def test_bad_arguments(arguments, message):
    good = {"y": [0, 1, 0, 1], "sensitive_features": [0, 0, 1, 1]}
    good |= {"fairness_measure": "accuracy_parity"}
    with pytest.raises(ValueError, match=message):
        BoostingObjective(**{**good, **arguments})


@pytest.mark.parametrize("scores", [np.zeros(3), np.zeros((4, 2)), np.zeros((4, 1))])
def test_scores_of_another_shape(scores):
    objective = BoostingObjective([0, 1, 0, 1], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"scores: expected shape \(4,\)"):
        objective.gradients(scores)
    assert objective.n_rounds == 0


@given(st.integers(0, 1000))
def test_no_row_moves_its_leaf_further_than_in_plain_boosting(seed):
    rng = np.random.default_rng(seed)
    gradient, hessian = rng.normal(size=50), rng.uniform(0.01, 0.25, size=50)
    weight = rng.normal(size=50) * 3
    weighted, kept = weigh(gradient, hessian, weight)
    np.testing.assert_allclose(weighted, np.abs(weight) * gradient)
    # |w g| / (max(|w|, 1) h) <= |g| / h
    assert (np.abs(weighted) / kept <= np.abs(gradient) / hessian + 1e-9).all()
    assert (kept > 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_single_precision_stays_single_and_agrees_with_double(n_classes):
    rng = np.random.default_rng(0)
    y, s = rng.integers(n_classes, size=500), rng.integers(2, size=500)
    scores = rng.normal(size=500 if n_classes == 2 else (500, n_classes))
    single = BoostingObjective(y, s).gradients(scores.astype(np.float32))
    for found, expected in zip(single, BoostingObjective(y, s).gradients(scores), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)
