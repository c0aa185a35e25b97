"""What nobody would want of a chosen model is said, with what to try."""

import pytest

from fairgrad.frontier import Frontier
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
