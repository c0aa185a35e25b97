"""Dominance, area, grids and choices against their definitions."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad.frontier import choose, epsilon_grid, non_dominated

shares = st.integers(0, 20).map(lambda i: i / 20)
points = st.lists(st.tuples(shares, shares), min_size=1, max_size=12)


@given(points)
def test_non_dominated_by_definition(pairs):
    accuracy, unfairness = np.array(pairs).T
    expected = [
        not any((b >= a and v <= u) and (b > a or v < u) for b, v in pairs) for a, u in pairs
    ]
    assert non_dominated(accuracy, unfairness).tolist() == expected


@given(points, shares)
def test_choice_by_definition(pairs, bound):
    frame = pd.DataFrame(pairs, columns=["validation_accuracy", "validation_unfairness"])
    frame["epsilon"] = 0.0
    fair = [(a, -u) for a, u in pairs if u <= bound]
    if fair:
        a, u = pairs[choose(frame, bound, None)]
        assert (a, -u) == max(fair)
    else:
        with pytest.raises(ValueError, match="max_unfairness: no model"):
            choose(frame, bound, None)
    accurate = [(-u, a) for a, u in pairs if a >= bound]
    if accurate:
        a, u = pairs[choose(frame, None, bound)]
        assert (-u, a) == max(accurate)
    else:
        with pytest.raises(ValueError, match="min_accuracy: no model"):
            choose(frame, None, bound)


@pytest.mark.parametrize("bounds", [(None, None), (0.1, 0.8)])
def test_exactly_one_bound(bounds):
    with pytest.raises(ValueError, match="exactly one"):
        choose(pd.DataFrame(), *bounds)


def test_nothing_qualifies_names_the_best():
    frame = pd.DataFrame(
        {
            "epsilon": [0.0, 0.1],
            "validation_accuracy": [0.8, 0.9],
            "validation_unfairness": [0.02, 0.05],
        }
    )
    with pytest.raises(ValueError, match="epsilon 0 with accuracy 0.8000 and unfairness 0.0200"):
        choose(frame, 0.001, None)
    with pytest.raises(ValueError, match="epsilon 0.1 with accuracy 0.9000"):
        choose(frame, None, 0.95)


def test_grid_of_epsilons():
    found = epsilon_grid(32, with_plain=True)
    assert len(found) == 32
    assert found[0] == 0
    assert np.isinf(found[-1])
    ratios = found[2:-1] / found[1:-2]
    np.testing.assert_allclose(ratios, ratios[0])
    assert np.isfinite(epsilon_grid(8, with_plain=False)).all()
    np.testing.assert_array_equal(epsilon_grid([0.1, 0, 0.1], with_plain=True), [0, 0.1])


@pytest.mark.parametrize("bad", [0, 1, True, [], [-0.1], [float("nan")], "many", [[0.1]]])
def test_bad_epsilons(bad):
    with pytest.raises(ValueError, match="epsilons"):
        epsilon_grid(bad, with_plain=True)
