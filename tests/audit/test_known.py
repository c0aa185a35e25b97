"""Audits in which the group is known for only some rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fairgrad.audit import Audit
from fairgrad.audit.verdicts import level_limits
from fairgrad.audit.words import advice
from fairgrad.membership import Membership

RATE = {"a": 0.3, "b": 0.5}


def draw(rng: np.random.Generator, n: int = 2000, n_known: int = 300) -> tuple[Any, ...]:
    """Labels, predictions, groups, known groups and decent probabilities of the groups."""
    s = rng.choice(["a", "b"], n, p=[0.4, 0.6])
    y = rng.integers(2, size=n)
    h = (rng.random(n) < np.where(s == "a", RATE["a"], RATE["b"])).astype(int)
    seen = np.where(rng.permutation(n) < n_known, s, None)
    b = 1 / (1 + np.exp(-(np.where(s == "b", 1.5, -1.5) + rng.normal(size=n))))
    return y, h, s, seen, np.column_stack([1 - b, b])


def parity(y: Any, h: Any, s: Any, membership: Any = None, **options: Any) -> Audit:
    return Audit(y, h, {"s": s}, "demographic_parity", membership=membership, **options)


def test_constant_probabilities_give_the_shares_of_known_rows_by_label_and_prediction() -> None:
    y, h, _, seen, p = draw(np.random.default_rng(0))
    audit = parity(y, h, seen, np.full(p.shape, 0.5))
    members = {}
    for label, predicted in product((0, 1), (0, 1)):
        cell = (y == label) & (h == predicted)
        known = cell & (seen != None)  # noqa: E711 - an array
        members[label, predicted] = cell.sum() * (seen[known] == "a").mean()
    expected = (members[0, 1] + members[1, 1]) / sum(members.values())
    rate = audit.views["s"].rates["selection_rate"].row(1)
    assert rate.value[0] == pytest.approx(expected, abs=1e-12)


def test_rates_are_those_of_the_prediction_powered_estimate_with_tuned_power() -> None:
    y, h, _, seen, p = draw(np.random.default_rng(1))
    audit = parity(np.zeros_like(y), h, seen, p, labels=[0, 1])  # strata by prediction alone
    known, own = seen != None, (seen == "a").astype(float)  # noqa: E711 - an array
    of, m = [h == 0, h == 1], p[:, 0]

    def spread(x: Any, z: Any) -> float:
        return sum(
            np.cov(x[c & known], z[c & known])[0, 1]
            * ((c & known).sum() - 1)
            * (c.sum() / (c & known).sum()) ** 2
            for c in of
        )

    power = spread(own, m) / spread(m, m)
    rows = [
        c.sum() * (own[c & known].mean() + power * (m[c].mean() - m[c & known].mean())) for c in of
    ]
    rate = audit.views["s"].rates["selection_rate"].row(1).value[0]
    assert rate == pytest.approx(rows[1] / sum(rows), abs=1e-12)


def test_overall_rates_rest_on_all_rows() -> None:
    y, h, _, seen, p = draw(np.random.default_rng(2))
    together = parity(y, h, seen, p).views["s"].together().rates["accuracy"]
    assert together.value[0] == pytest.approx((y == h).mean(), abs=1e-12)
    assert together.trials[0] == pytest.approx(len(y), rel=1e-9)


def test_probabilities_change_nothing_if_all_groups_are_known() -> None:
    y, h, s, _, p = draw(np.random.default_rng(3))
    plain = parity(y, h, s).findings[0]
    powered = parity(y, h, s, p).findings[0]
    assert np.allclose(powered.levels, plain.levels, atol=1e-12)
    assert np.allclose(powered.level_intervals, plain.level_intervals, atol=3e-4)


@pytest.mark.parametrize("proxy", ["decent", "of other rows"])
def test_intervals_are_as_wide_as_the_estimates_vary(proxy: str) -> None:
    rng, levels, reach = np.random.default_rng(4), [], []
    truth = RATE["a"] - (0.4 * RATE["a"] + 0.6 * RATE["b"])
    for _ in range(120):
        y, h, _, seen, p = draw(rng, 1500, 250)
        p = p if proxy == "decent" else rng.permutation(p)
        finding = parity(y, h, seen, p, tolerance=1.0).findings[0]
        low, high = level_limits(finding.comparison, 0.025)
        levels.append(finding.levels[2])  # of label 1 in group a
        reach.append((low[2], high[2]))
    low, high = np.array(reach).T
    assert ((low <= truth) & (truth <= high)).mean() > 0.9
    assert np.std(levels) == pytest.approx((high - low).mean() / 3.92, rel=0.2)
    assert np.mean(levels) == pytest.approx(truth, abs=4 * np.std(levels) / np.sqrt(120))


def test_good_probabilities_narrow_the_interval() -> None:
    y, h, _, seen, p = draw(np.random.default_rng(5))
    widths = []
    for membership in (None, np.full(p.shape, 0.5), p):
        low, high = level_limits(parity(y, h, seen, membership).findings[0].comparison, 0.025)
        widths.append(high[2] - low[2])
    assert widths[2] < 0.8 * widths[1] < 0.9 * widths[0]


def test_chances_to_be_known_correct_a_known_selection() -> None:
    rng = np.random.default_rng(6)
    y, h, s, _, p = draw(rng, 20_000)
    chance = np.where(s == "a", 0.05, 0.2) * np.where(h == 1, 1.0, 0.5)
    seen = np.where(rng.random(len(y)) < chance, s, None)
    bad = np.full(p.shape, 0.5)
    off, corrected = (
        parity(y, h, seen, own).findings[0]
        for own in (bad, Membership(bad, known_probability=chance))
    )
    truth = parity(y, h, s).findings[0].levels
    assert np.abs(off.levels - truth).max() > 0.02
    low, high = corrected.level_intervals
    assert ((low <= truth) & (truth <= high)).all()


def test_a_difference_widens_rates_to_their_extremes() -> None:
    y, h, _, seen, p = draw(np.random.default_rng(7))
    d, audit = 0.03, parity(y, h, seen, p)
    rate = parity(y, h, seen, Membership(p, difference=d)).views["s"].rates["selection_rate"].row(1)
    unknown = {value: int(((seen == None) & (h == value)).sum()) for value in (0, 1)}  # noqa: E711
    mass = audit.views["s"].mass.sum(axis=1)  # by group and prediction
    for g in (0, 1):
        every = [
            (mass[g, 1] + up * d * unknown[1])
            / (mass[g].sum() + up * d * unknown[1] + down * d * unknown[0])
            for up, down in product(np.linspace(-1, 1, 21), repeat=2)
        ]
        below, above = rate.below, rate.above
        assert below is not None
        assert above is not None
        assert below[g] == pytest.approx(rate.value[g] - min(every), abs=1e-12)
        assert above[g] == pytest.approx(max(every) - rate.value[g], abs=1e-12)


def test_the_verdict_holds_up_to_the_difference_that_is_said() -> None:
    rng = np.random.default_rng(8)
    y, h, _, seen, p = draw(rng, 20_000, 4000)
    audit = parity(y, h, seen, p)
    most = audit.largest_difference
    assert audit.verdict == "unfair"
    assert 0.001 < most < 0.5
    assert [one.verdict for one in audit.if_different(most)] == ["unfair"]
    assert [one.verdict for one in audit.if_different(most + 0.002)] != ["unfair"]
    with pytest.raises(ValueError, match="the groups of all rows are known"):
        parity(y, h, np.where(h, "a", "b")).if_different(0.1)


def test_the_report_says_how_many_groups_are_known_and_what_is_assumed() -> None:
    y, h, _, seen, p = draw(np.random.default_rng(9))
    audit = parity(y, h, seen, p, baseline=y, tolerance={"demographic_parity": "80%"})
    text = audit.to_markdown()
    assert "is known for 300 of 2,000 rows" in text
    assert "random sample" in text
    moved = audit.moves
    assert moved is not None
    assert moved[0].rows.sum() == pytest.approx((y != h).sum(), rel=0.02)
    weights = Membership(p, known_probability=np.full(len(y), 0.15))
    assert "how likely each was to be known" in parity(y, h, seen, weights).to_markdown()
    wide = parity(y, h, seen, Membership(p, difference=0.07)).to_markdown()
    assert "intervals hold as long as" in wide
    assert "differs by at most 7 points" in wide


def test_advice_asks_for_rows_of_known_group_and_more_of_them_settle_the_verdict() -> None:
    rng = np.random.default_rng(2)
    y, _, s, seen, p = draw(rng, 20_000, 400)
    fair = (rng.random(len(y)) < np.where(s == "a", 0.45, 0.48)).astype(int)
    undecided = parity(y, fair, seen, p).findings[0]
    assert undecided.verdict == "undecided"
    assert undecided.rows_needed is not None
    assert sum(undecided.rows_needed.more.values()) > 100
    assert "whose group is known would settle it" in advice(undecided)
    more = np.where(rng.permutation(len(y)) < 6000, s, None)
    assert parity(y, fair, more, p).verdict == "fair within tolerance"
    few = parity(y[:400], fair[:400], np.where(np.arange(400) < 200, s[:400], None), p[:400])
    assert few.findings[0].rows_needed is None  # 400 rows are too few, whatever is known of them
    assert "Knowing the group of every row would not settle it" in advice(few.findings[0])


def test_an_attribute_known_for_all_rows_stays_exact_beside_one_that_is_not() -> None:
    rng = np.random.default_rng(10)
    y, h, s, seen, p = draw(rng)
    town = rng.choice(["x", "z"], len(y))
    columns = {"s": seen, "town": town}
    both = Audit(y, h, columns, "demographic_parity", membership=p)
    alone = Audit(y, h, {"town": town}, "demographic_parity")
    found = next(one for one in both.findings if one.attribute == "town")
    assert np.allclose(found.levels, alone.findings[0].levels, atol=1e-12)
    assert np.allclose(found.level_intervals, alone.findings[0].level_intervals, atol=1e-9)
    true = Audit(y, h, {"s": s, "town": town}, "demographic_parity").findings
    for own, exact in zip(both.findings, true, strict=True):
        low, high = own.level_intervals
        assert own.attribute == exact.attribute
        assert ((low <= exact.levels) & (exact.levels <= high)).all()


@pytest.mark.parametrize("measure", ["four_fifths_rule", "equalized_odds", "accuracy_parity"])
def test_all_measures_and_a_reference_group_work(measure: str) -> None:
    y, h, s, seen, p = draw(np.random.default_rng(11))
    for options in ({}, {"reference": "b"}):
        exact = Audit(y, h, {"s": s}, measure, **options).findings[0]
        found = Audit(y, h, {"s": seen}, measure, membership=p, **options).findings[0]
        low, high = level_limits(found.comparison, 0.005)
        assert ((low <= exact.levels + 1e-9) & (exact.levels <= high + 1e-9)).all()
        assert found.judgement.low <= exact.judgement.value <= found.judgement.high


def test_what_does_not_fit_is_refused() -> None:
    y, h, s, seen, p = draw(np.random.default_rng(12))
    with pytest.raises(ValueError, match="one sensitive attribute with missing values, got none"):
        Audit(y, h, {"s": s, "t": s}, membership=p)
    with pytest.raises(ValueError, match="expected 2000 rows and a column for each of the values"):
        parity(y, h, seen, p[:, :1])
    with pytest.raises(ValueError, match="must sum to 1"):
        parity(y, h, seen, 2 * p)
    with pytest.raises(ValueError, match="known_probability"):
        parity(y, h, seen, Membership(p, known_probability=np.zeros(len(y))))
    with pytest.raises(ValueError, match="combined with cluster"):
        parity(y, h, seen, p, cluster=y)
