"""Certificates of a frontier: the fresh rows decide once, for one model, and choose nothing."""

import numpy as np
import pytest

from fairgrad.audit import Audit
from fairgrad.frontier import Frontier
from fairgrad.usefulness import FairnessWarning, Suggestions

from .conftest import make_hiring


@pytest.fixture(scope="module")
def people():
    return make_hiring(12_000, seed=5, gap=0.7)


@pytest.fixture(scope="module")
def fresh():
    return make_hiring(8_000, seed=6, gap=0.7)


def fitted(people, **parameters):
    asked = {"fairness_measure": "demographic_parity", "epsilons": 6, "random_state": 0}
    return Frontier(**{**asked, **parameters}).fit(
        people.X, people.y, sensitive_features=people.sex
    )


@pytest.fixture(scope="module")
def frontier(people):
    return fitted(people)


def rows(people):
    return people.X, people.y, people.sex


def test_the_verdict_is_the_audits_on_the_fresh_rows(frontier, fresh):
    certificate = frontier.certify(0.1, fresh=rows(fresh))
    assert certificate.is_certified
    predicted = certificate.model.predict(fresh.X)
    direct = Audit(
        fresh.y, predicted, fresh.sex, measures="demographic_parity", tolerance=0.1, confidence=0.95
    )
    assert direct.verdict == certificate.audit.verdict
    assert direct.findings[0].judgement == certificate.audit.findings[0].judgement
    assert frontier.certificate_ is certificate
    assert certificate.candidacy.n_models == 6
    assert frontier.estimators_[certificate.candidacy.position].epsilon == certificate.model.epsilon


def test_the_fresh_rows_have_no_part_in_the_choice(frontier, fresh):
    turned = make_hiring(8_000, seed=7, gap=-3.0)
    positions = {
        frontier.certify(0.1, fresh=rows(one)).candidacy.position for one in (fresh, turned)
    }
    assert len(positions) == 1


def test_of_those_that_are_likely_to_pass_the_most_accurate_is_taken(frontier, fresh):
    points = frontier.points_
    strict, lenient = (
        frontier.certify(tolerance, fresh=rows(fresh)).candidacy.position
        for tolerance in (0.08, 0.3)
    )
    assert points["validation_accuracy"][lenient] == points["validation_accuracy"].max()
    assert points["validation_accuracy"][strict] < points["validation_accuracy"][lenient]
    assert points["validation_unfairness"][strict] < points["validation_unfairness"][lenient]


def test_rows_that_are_held_out_serve_once(people):
    frontier = fitted(people, certify_fraction=0.3)
    others = frontier.audits_["validation"][0].table.n_rows
    certificate = frontier.certify(0.1)
    assert certificate.audit.table.n_rows == pytest.approx(0.3 * len(people.y), abs=4)
    assert others == pytest.approx(0.2 * 0.7 * len(people.y), abs=4)
    with pytest.raises(ValueError, match="those of certify_fraction have served"):
        frontier.certify(0.2)
    assert frontier.certificate_ is certificate


def test_groups_that_are_too_small_are_named(frontier, fresh):
    sex = fresh.sex.to_numpy(dtype=object).copy()
    sex[:20], sex[20:25] = "X", None
    certificate = frontier.certify(0.1, fresh=(fresh.X, fresh.y, sex))
    assert len(certificate.not_covered) == 2
    assert "X (20 rows)" in certificate.not_covered[0]
    assert "not known (5 rows)" in certificate.not_covered[1]


def test_other_attributes_are_refused(frontier, fresh):
    both = {"sex": fresh.sex, "race": fresh.race}
    with pytest.raises(ValueError, match=r"fresh: expected the sensitive attributes \['sex'\]"):
        frontier.certify(0.1, fresh=(fresh.X, fresh.y, both))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tolerance": 0.1}, "certify: needs rows that nothing has looked at, once: pass fresh="),
        ({"tolerance": 0.1, "confidence": 1.5}, "confidence"),
        ({"tolerance": 7, "confidence": 0.9, "fresh": True}, "tolerance: expected a number"),
    ],
)
def test_what_cannot_be_certified_is_refused(frontier, fresh, asked, message):
    if asked.get("fresh"):
        asked = {**asked, "fresh": rows(fresh)}
    with pytest.raises(ValueError, match=message):
        frontier.certify(**asked)


def test_a_fraction_that_leaves_nothing_is_refused(people):
    with pytest.raises(ValueError, match="certify_fraction"):
        fitted(people, certify_fraction=1.0)
    assert np.isfinite(fitted(people, certify_fraction=0.0).points_["validation_accuracy"]).all()


@pytest.fixture(scope="module")
def costly():
    """Features tell the groups apart: a blind model is fair if it tells hardly anybody apart."""
    return fitted(make_hiring(12_000, seed=8, gap=4.0))


def test_what_is_certified_at_a_high_price_is_said(costly):
    with pytest.warns(FairnessWarning, match=r"Fairness costs .* Try a larger tolerance.*use_sens"):
        certificate = costly.certify(0.1, fresh=rows(make_hiring(8_000, seed=9, gap=4.0)))
    assert certificate.is_certified


def test_what_is_chosen_at_a_high_price_is_said(costly):
    with pytest.warns(FairnessWarning, match="Fairness costs") as caught:
        position = costly.choose(max_unfairness=0.02)
    points = costly.points_
    accuracy = points["validation_accuracy"]
    plain = accuracy[points["epsilon"].argmax()]
    said = str(caught[0].message)
    assert f"{accuracy[position]:.4f}, against {plain:.4f} of the plain model" in said
    # Models that lose at most 5 points are far from fair, so none of them is recommended.
    assert points["validation_unfairness"][accuracy >= plain - 0.05].min() > 0.2
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
