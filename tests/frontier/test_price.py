"""Warnings about problems of a chosen model, with what to try."""

import numpy as np
import pytest

from fairgrad.frontier import Frontier
from fairgrad.frontier.models import FrontierRows, ModelAudits
from fairgrad.usefulness import FairnessWarning, Suggestions

from .conftest import make_hiring


def fitted(people, **parameters):
    asked = {"fairness_measure": "demographic_parity", "epsilons": 6, "random_state": 0}
    return Frontier(**{**asked, **parameters}).fit(
        people.X, people.y, sensitive_features=people.sex
    )


@pytest.fixture(scope="module")
def costly():
    """Features tell the groups apart: a blind model is fair if it tells hardly anybody apart."""
    return fitted(make_hiring(12_000, seed=8, gap=4.0))


def test_what_is_chosen_at_a_high_price_is_said(costly):
    with pytest.warns(FairnessWarning, match="Fairness costs") as caught:
        position = costly.choose(max_unfairness=0.02)
    points = costly.points_
    accuracy = points["validation_accuracy"]
    plain = accuracy[points["epsilon"].argmax()]
    said = str(caught[0].message)
    assert f"{accuracy[position]:.4f}, against {plain:.4f} of the plain model" in said
    # Models that lose at most 2 points are far from fair, so none of them is recommended.
    assert points["validation_unfairness"][accuracy >= plain - 0.02].min() > 0.2
    assert "No max_unfairness up to 0.2" in said


@pytest.mark.parametrize(
    ("asked", "enough", "words", "absent"),
    [
        (0.02, 0.0312, "larger epsilon (0.032 would be enough)", "No epsilon"),
        (0.02, 0.0098, "use_sensitive", "larger"),  # it would be kept as it is
        (0.05, 0.51, "No epsilon up to 0.2", "larger"),
        (0.05, None, "larger epsilon", "enough"),
    ],
)
def test_advice_is_larger_than_what_was_asked_and_at_most_a_fifth(asked, enough, words, absent):
    advice = str(Suggestions(asked=asked, enough=enough))
    assert words in advice
    assert absent not in advice


def test_who_names_an_accuracy_knows_the_price(costly):
    costly.choose(min_accuracy=0.5)


@pytest.mark.parametrize(("asked", "is_fault"), [(None, True), (0.02, True), (0.05, False)])
def test_a_model_within_the_tolerance_may_be_less_fair_than_the_plain_one(asked, is_fault):
    y, s = np.tile([0, 1], 2_000), np.repeat(["a", "b"], 2_000)
    plain, chosen = y.copy(), y.copy()
    plain[[*range(400), *range(2_000, 2_400)]] ^= 1  # as many mistakes in both groups
    chosen[:160] ^= 1  # 8 % mistakes in one group only: levels of 0.04
    rows, labels = FrontierRows(None, y, {"group": s}), np.array([0, 1])
    audits = ModelAudits(rows, [chosen, plain], "accuracy_parity", labels)
    fault = audits.fault(0, 1, Suggestions(name="tolerance", asked=asked))
    assert (fault is not None and "less fair than the plain one" in fault) == is_fault


@pytest.mark.parametrize(("copies", "is_fault"), [(1, False), (30, True)])
def test_what_chance_explains_is_no_fault(copies, is_fault):
    """Three of 60 rows more are wrong, all in one group: too few to tell it from chance."""
    y, s = np.tile([0, 1], 30 * copies), np.repeat(["a", "b"], 30 * copies)
    plain, chosen = y.copy(), y.copy()
    plain[: 2 * copies] ^= 1
    chosen[: 5 * copies] ^= 1
    rows, labels = FrontierRows(None, y, {"group": s}), np.array([0, 1])
    audits = ModelAudits(rows, [chosen, plain], "accuracy_parity", labels)
    fault = audits.fault(0, 1, Suggestions(name="tolerance", asked=0.01)) or ""
    assert ("less fair than the plain one" in fault) == is_fault
    assert ("Fairness costs 5.0 points" in fault) == is_fault
