"""Weights and clusters: variances by their definition, and intervals that hold."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad.audit import Audit, ImpactTable


def variance(hit, could, weight, cluster):
    """``sum_c (sum_i w_i (h_i - x))^2 / (sum w)^2`` over the rows that could have the property."""
    x = (weight * hit)[could].sum() / weight[could].sum()
    sums = pd.Series((weight * (hit - x))[could]).groupby(cluster[could]).sum()
    return x, float((sums**2).sum() / weight[could].sum() ** 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_effective_number_of_rows_follows_from_the_variance(seed, weighted, clustered):
    rng = np.random.default_rng(seed)
    n = 120
    y, pred = rng.integers(2, size=(2, n))
    s = {"sex": rng.choice(["F", "M"], n), "age": rng.choice(["old", "young"], n)}
    weight = rng.choice([0.5, 1.0, 7.0], n) if weighted else np.ones(n)
    cluster = rng.integers(30, size=n) if clustered else np.arange(n)
    audit = Audit(
        y,
        pred,
        s,
        sample_weight=weight if weighted else None,
        cluster=cluster if clustered else None,
        min_group=0,
    )
    rates = audit.to_frame("rates").set_index(["group", "rate"])
    for group in ("sex=F", "age=old", "sex=M, age=young", "overall"):
        own = np.ones(n, dtype=bool)
        for part in group.split(", ") if group != "overall" else []:
            name, value = part.split("=")
            own &= s[name] == value
        for rate, hit, could in (
            ("selection_rate", pred == 1, own),
            ("true_positive_rate", pred == 1, own & (y == 1)),
            ("accuracy", pred == y, own),
        ):
            row = rates.loc[[(group, rate)]].iloc[0]
            if not could.any():
                continue
            x, V = variance(hit.astype(float), could, weight, cluster)
            assert row["value"] == pytest.approx(x)
            if 0 < x < 1 and V > 0:
                assert row["trials"] == pytest.approx(x * (1 - x) / V)


def coverage(draw, truth, n_draws, **options):
    held = []
    for _ in range(n_draws):
        pred, s, more = draw()
        audit = Audit(
            y_pred=pred, sensitive_features=s, measures="demographic_parity", **options, **more
        )
        low, high = audit.findings[0].level_intervals
        held.append(((low <= truth + 1e-12) & (truth - 1e-12 <= high)).all())
    return np.mean(held)


def test_intervals_hold_with_weights_that_depend_on_outcomes():
    """1 % of the rows weigh 20, and these are selected more often."""
    rng = np.random.default_rng(1)

    def draw():
        n = 2000
        s, heavy = rng.integers(2, size=n), rng.random(n) < 0.01
        chance = np.where(heavy, 0.8, 0.4)
        return (rng.random(n) < chance) * 1, s, {"sample_weight": np.where(heavy, 20.0, 1.0)}

    assert coverage(draw, np.zeros(4), 120) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 120)


def test_intervals_hold_with_several_rows_per_person():
    rng = np.random.default_rng(2)

    def draw():
        person = np.repeat(np.arange(400), 5)
        s = np.repeat(rng.integers(2, size=400), 5)
        likes = np.repeat(rng.random(400) < 0.4, 5)
        pred = np.where(rng.random(2000) < 0.2, 1 - likes, likes) * 1
        return pred, s, {"cluster": person}

    assert coverage(draw, np.zeros(4), 120) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 120)


def test_what_clusters_cannot_be():
    y, s = [0, 1] * 50, ["a", "b"] * 50
    with pytest.raises(ValueError, match=r"cluster: expected one value per row \(100\), got 99"):
        Audit(y, y, s, cluster=range(99))
    alone = Audit(y, y, s, cluster=[None] * 100)  # no person's other rows are known
    assert alone.verdict == Audit(y, y, s).verdict


def test_intervals_of_clusters_are_not_called_exact():
    y, s = [0, 1] * 100, ["a", "a", "b", "b"] * 50
    exact = Audit(y, y, s, tolerance={"demographic_parity": "80%"})
    audit = Audit(y, y, s, cluster=np.arange(200) // 4, tolerance={"demographic_parity": "80%"})
    assert "are exact" in exact.to_dict()["conventions"]["intervals"][0]
    assert "are approximate" in audit.to_dict()["conventions"]["intervals"][0]
    assert any("50 clusters" in notice.message for notice in audit.warnings)
    assert exact.impact_table is not None
    assert audit.impact_table is None  # its tests count independent people
    with pytest.raises(ValueError, match="cluster: an impact table"):
        ImpactTable.from_audit(audit)
