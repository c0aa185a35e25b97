"""Scores by group against scikit-learn, definitions computed pair by pair, and simulations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from fairgrad.audit import Audit
from fairgrad.audit.scores import RankedScores


@pytest.fixture
def scored():
    """Scores that are too low for one group, with ties, an unknown group and weights."""
    rng = np.random.default_rng(3)
    n = 900
    s = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]).astype(object)
    s[:20] = None
    true = 1 / (1 + np.exp(-rng.normal(size=n)))
    y = (rng.random(n) < true).astype(int)
    score = np.round(np.where(s == "b", 0.5 * true, true), 2)
    return pd.DataFrame({"s": s, "y": y, "score": score, "w": rng.uniform(0.5, 2, n)})


def audit_of(frame, **options):
    pred = (frame["score"] >= 0.5).astype(int)
    return Audit(frame["y"], pred, frame["s"], y_score=frame["score"], **options)


def ranked(score, is_positive, weight=None):
    order = np.argsort(score, kind="stable")
    return RankedScores(score[order], is_positive[order], 1.0 if weight is None else weight[order])


def delong_by_pairs(score, is_positive):
    x, y = score[is_positive], score[~is_positive]
    psi = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
    rows, columns = psi.mean(axis=1), psi.mean(axis=0)
    return psi.mean(), rows.var(ddof=1) / len(x) + columns.var(ddof=1) / len(y)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=4, max_size=40).filter(
        lambda rows: 2 <= sum(one for _, one in rows) <= len(rows) - 2
    )
)
def test_auc_and_its_variance_are_those_of_all_pairs(rows):
    score, is_positive = np.array(rows, dtype=float).T
    is_positive = is_positive.astype(bool)
    np.testing.assert_allclose(
        ranked(score, is_positive).auc(), delong_by_pairs(score, is_positive), atol=1e-12
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_auc_by_group_is_scikit_learns(scored, weighted):
    weight = scored["w"] if weighted else None
    found = audit_of(scored, sample_weight=weight).to_frame("scores").set_index("group")
    for name in ("a", "b", "c"):
        own = scored[scored["s"] == name]
        expected = roc_auc_score(
            own["y"], own["score"], sample_weight=own["w"] if weighted else None
        )
        assert found.loc[f"s={name}", "auc"] == pytest.approx(expected, abs=1e-12)
        assert found.loc[f"s={name}", "auc_low"] < expected < found.loc[f"s={name}", "auc_high"]
    known = scored[scored["s"].notna()]
    everyone = roc_auc_score(
        known["y"], known["score"], sample_weight=known["w"] if weighted else None
    )
    assert found.loc["overall", "auc"] == pytest.approx(everyone, abs=1e-12)
    assert found.loc["overall", "rows"] == 880


def test_equal_weights_change_nothing(scored):
    plain, weighted = (audit_of(scored, sample_weight=w) for w in (None, np.full(900, 2.0)))
    for kind in ("scores", "roc", "calibration"):
        pd.testing.assert_frame_equal(plain.to_frame(kind), weighted.to_frame(kind))


def test_the_interval_of_an_auc_is_the_bootstraps(scored):
    own = scored[scored["s"] == "a"]
    rng = np.random.default_rng(0)
    score, is_positive = own["score"].to_numpy(), own["y"].to_numpy() == 1
    parts = [np.flatnonzero(is_positive), np.flatnonzero(~is_positive)]
    drawn = [np.concatenate([rng.choice(p, len(p)) for p in parts]) for _ in range(600)]
    areas = [ranked(score[rows], is_positive[rows]).auc()[0] for rows in drawn]
    low, high = ranked(score, is_positive).auc_interval(0.05)
    np.testing.assert_allclose([low, high], np.quantile(areas, [0.025, 0.975]), atol=0.012)


@pytest.mark.parametrize(
    ("shift", "m", "n"), [(0.0, 10, 10), (1.0, 8, 40), (2.0, 20, 20), (1, 80, 60)]
)
def test_intervals_of_aucs_cover(shift, m, n):
    rng = np.random.default_rng(1)
    truth, covered = norm.cdf(shift / np.sqrt(2)), 0
    is_positive = np.repeat([True, False], [m, n])
    for _ in range(400):
        score = rng.normal(size=m + n) + shift * is_positive
        low, high = ranked(score, is_positive).auc_interval(0.05)
        covered += low <= truth <= high
    assert covered / 400 > 0.93  # three standard errors below 0.96


def test_an_auc_of_one_is_not_certain():
    low, high = ranked(np.arange(10.0), np.arange(10) >= 5).auc_interval(0.05)
    assert 0.4 < low < 0.75
    assert high == 1
    assert [float(end) for end in ranked(np.arange(3.0), np.ones(3, bool)).auc_interval(0.05)] == [
        0,
        1,
    ]


def test_points_of_the_curve_lie_on_scikit_learns(scored):
    curves = audit_of(scored).to_frame("roc")
    for name in ("a", "c"):
        own = scored[scored["s"] == name]
        fpr, tpr, threshold = roc_curve(own["y"], own["score"], drop_intermediate=False)
        found = curves[curves["group"] == f"s={name}"]
        assert len(found) <= 62
        places = [int(np.flatnonzero(threshold == t)[0]) for t in found["threshold"]]
        np.testing.assert_allclose(found["false_positive_rate"], fpr[places])
        np.testing.assert_allclose(found["true_positive_rate"], tpr[places])
        assert places[0] == 0
        assert places[-1] == len(threshold) - 1


def test_calibration_is_the_definition(scored):
    audit = audit_of(scored)
    bins, summary = audit.to_frame("calibration"), audit.to_frame("scores").set_index("group")
    own = scored[scored["s"] == "b"]
    found = bins[bins["group"] == "s=b"]
    assert found["rows"].sum() == len(own)
    for row in found.to_dict(orient="records"):
        last = row["to"] == bins["to"].max()
        inside = own[(own["score"] >= row["from"]) & ((own["score"] < row["to"]) | last)]
        assert row["rows"] == len(inside)
        assert row["mean_score"] == pytest.approx(inside["score"].mean())
        assert row["rate"] == pytest.approx(inside["y"].mean())
        assert row["low"] <= row["rate"] <= row["high"]
    gap = own["y"].mean() - own["score"].mean()
    assert summary.loc["s=b", "calibration_gap"] == pytest.approx(gap)
    assert (
        summary.loc["s=b", "calibration_low"] > 0.05
    )  # its scores are half of what they should be
    assert summary.loc["s=a", "calibration_low"] < 0.02 < summary.loc["s=a", "calibration_high"]


def test_intervals_of_calibration_gaps_cover():
    rng = np.random.default_rng(5)
    score = np.sort(rng.beta(0.5, 0.5, 60))
    ends = [RankedScores(score, rng.random(60) < score).gap(0.05)[-2:] for _ in range(500)]
    assert np.mean([low <= 0 <= high for low, high in ends]) >= 0.95


def test_scores_of_many_labels_are_one_against_the_rest():
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(3), 600)
    y = np.array([rng.choice(3, p=row) for row in score])
    s = rng.choice(["a", "b"], 600)
    audit = Audit(y, score.argmax(axis=1), s, y_score=score)
    found = audit.to_frame("scores").set_index(["group", "label"])
    for label in range(3):
        own = s == "b"
        expected = roc_auc_score(y[own] == label, score[own, label])
        assert found.loc[("sensitive_features=b", label), "auc"] == pytest.approx(expected)


def test_odd_scores():
    rng = np.random.default_rng(0)
    y, s = rng.integers(2, size=200), np.repeat(["a", "b", "c"], [100, 97, 3])
    y[197:] = 1  # no AUC in c
    far = Audit(y, y, s, y_score=rng.normal(0, 10, 200), threshold=None)
    assert far.to_frame("calibration").empty
    scores = far.to_frame("scores").set_index("group")
    assert np.isnan(scores.loc["sensitive_features=c", "auc"])
    assert scores["calibration_gap"].isna().all()
    assert far.to_dict()["scores"][2]["auc"] is None
    same = Audit(y, np.ones(200, int), s, y_score=np.full(200, 0.5), labels=[0, 1])
    assert set(same.to_frame("scores")["auc"].dropna()) == {0.5}
    assert Audit(y, y, s).to_frame("roc").empty
    for bad, said in (
        (np.ones(3), "expected the shape"),
        (np.full(200, np.nan), "expected finite"),
    ):
        with pytest.raises(ValueError, match=f"y_score: {said}"):
            Audit(y, y, s, y_score=bad)


def test_without_true_labels_scores_have_nothing_to_be_compared_with(scored):
    pred = (scored["score"] >= 0.5).astype(int)
    audit = Audit(y_pred=pred, sensitive_features=scored["s"], y_score=scored["score"])
    for kind in ("scores", "confusion"):
        assert audit.to_frame(kind).empty
