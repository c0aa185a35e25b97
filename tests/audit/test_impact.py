"""Impact tables: against the definitions, scipy's tests, and a worked example."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact

from fairgrad.audit import Audit, ImpactTable
from fairgrad.report import Report


def applicants(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "sex": rng.choice(["female", "male"], n),
            "race": rng.choice(["Asian", "Black", "White", "Other"], n, p=[0.2, 0.3, 0.49, 0.01]),
        }
    )
    people.loc[::60, "race"] = None
    return people, rng.normal(size=n) + 0.3 * (people["sex"] == "male")


def test_every_figure_follows_its_definition():
    people, score = applicants()
    selected = score > 0.8
    table = ImpactTable.from_decisions(np.where(selected, "yes", "no"), people)
    frame = table.frame.set_index(["attribute", "category"])
    by_race = selected.groupby(people["race"])
    rate = by_race.mean()
    small = people["race"].value_counts() < 0.02 * people["race"].notna().sum()
    best = rate[~small].idxmax()
    for race in rate.index:
        row = frame.loc["race", race]
        assert row["number"] == (people["race"] == race).sum()
        assert row["selected"] == by_race.sum()[race]
        assert row["rate"] == pytest.approx(rate[race])
        assert row["share"] == pytest.approx(row["number"] / people["race"].notna().sum())
        if small[race]:
            assert "less than 2 %" in row["set_aside"]
            assert np.isnan(row["impact_ratio"])
            continue
        assert row["impact_ratio"] == pytest.approx(rate[race] / rate[best])
        if race != best:
            cells = pd.crosstab(people["race"], selected).reindex(
                index=[race, best], columns=[True, False]
            )
            n_tests = 3 * 3  # pairs of three races, in three ways of grouping
            expected = min(n_tests * fisher_exact(cells).pvalue, 1)
            assert row["fisher_p"] == pytest.approx(expected)
            squared = chi2_contingency(cells, correction=False).statistic
            assert row["standard_deviations"] ** 2 == pytest.approx(squared)
            assert row["ratio_low"] < row["impact_ratio"] < row["ratio_high"]
    assert small["Other"]
    assert frame.loc["race", "unknown"]["number"] == people["race"].isna().sum()
    both = frame.loc["sex x race", "female, Black"]
    own = (people["sex"] == "female") & (people["race"] == "Black")
    assert (both["number"], both["selected"]) == (own.sum(), selected[own].sum())


def test_scoring_rates_are_shares_above_the_median_of_everyone():
    people, score = applicants()
    table = ImpactTable.from_scores(score, people)
    assert table.median == pytest.approx(score.median())
    rates = table.frame.set_index(["attribute", "category"])["rate"]
    expected = (score > score.median()).groupby(people["sex"]).mean()
    assert rates["sex", "female"] == pytest.approx(expected["female"])
    assert table.rate == "scoring rate"
    assert "scoring rate" in table.summary()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 80), st.floats(0, 1)), min_size=2, max_size=5))
def test_any_counts_make_a_table(groups):
    size = [n for n, _ in groups]
    hits = [round(n * share) for n, share in groups]
    pred = np.concatenate([np.arange(n) < k for n, k in zip(size, hits, strict=True)]).astype(int)
    audit = Audit(
        y_pred=pred,
        sensitive_features=np.repeat(np.arange(len(size)), size),
        labels=[0, 1],
        min_group=0,
    )
    table = ImpactTable.from_audit(audit)
    ratio = table.frame["impact_ratio"].astype(float)
    if max(hits) == 0:
        assert ratio.isna().all()
    else:
        assert ratio.max() == 1.0
        assert ((ratio < 0.8) == table.frame["below_four_fifths"]).all()
    assert table.summary()
    assert pd.read_csv(io.StringIO(table.to_csv()))["number"].tolist() == size


def test_the_interval_of_a_ratio_holds_as_often_as_promised():
    rng = np.random.default_rng(5)
    held = []
    for _ in range(300):
        hits = rng.binomial([80, 300], [0.24, 0.4])
        pred = np.r_[np.arange(80) < hits[0], np.arange(300) < hits[1]] * 1
        s = np.repeat(["a", "b"], [80, 300])
        row = ImpactTable.from_decisions(pred, s).frame.iloc[0]
        held.append(row["ratio_low"] <= 0.6 <= row["ratio_high"])
    assert 0.92 <= np.mean(held) <= 1


@pytest.mark.parametrize("rates", [np.full(7, 0.3), np.array([0.2, 0.25, 0.3, 0.4, 0.4, 0.45])])
def test_intervals_of_ratios_hold_though_the_best_is_not_known(rates):
    """The most selected category is not known; among identical ones it is so by chance."""
    rng, held, misses, low_p = np.random.default_rng(6), [], [], []
    s = np.repeat(np.arange(len(rates)), 400)
    for _ in range(60):
        table = ImpactTable.from_decisions(rng.binomial(1, rates[s]), s)
        ratio, found = rates / rates.max(), table.frame
        held.append(found["ratio_low"] <= ratio)
        misses.append((found["ratio_high"] < ratio).any())
        low_p.append(table.p_value < 0.05)
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    assert np.mean(misses) <= most
    assert np.mean(held, axis=0).min() >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 60)
    assert (np.mean(low_p) <= most) == (len(set(rates)) == 1)


def test_one_p_value_is_printed():
    people, score = applicants()
    table = ImpactTable.from_decisions(score > 0.8, people)
    assert table.p_value == table.frame["fisher_p"].min() < 0.001
    assert "Global p-value <0.001" in " ".join(table.summary().split())
    assert table.to_dict()["p_value"] == table.p_value
    assert "the most selected one" in " ".join(table.notes)
    by_women = ImpactTable.from_decisions(score > 0.8, people["sex"], reference="female")
    assert "differs from that of female" in " ".join(by_women.notes)
    assert "most selected one if" not in " ".join(by_women.notes)


def test_the_table_is_in_json_and_report_where_ratios_are_judged():
    people, score = applicants()
    audit = Audit(y_pred=np.where(score > 0, "yes", "no"), sensitive_features=people)
    assert audit.impact_table is not None
    assert len(audit.to_dict()["impact"]["categories"]) == len(audit.impact_table.frame)
    page = Report(audit).html()
    assert "Impact ratios" in page
    assert "people assessed of unknown category" in page
    y = np.where(score > 0, "yes", "no")
    plain = Audit(y, y, people)
    assert plain.to_dict()["impact"] is None
    assert "Impact ratios" not in Report(plain).html()


def test_a_group_has_one_impact_ratio():
    """A third group of 50 of 10,000 people is below 2 % and above 30 people."""
    size, hits = [6000, 3950, 50], [3000, 1773, 40]
    pred = np.concatenate([np.arange(n) < k for n, k in zip(size, hits, strict=True)]) * 1
    audit = Audit(y_pred=pred, sensitive_features=np.repeat(["a", "b", "c"], size))
    judged = next(f for f in audit.findings if f.measure == "four_fifths_rule")
    named = audit.to_frame("figures").set_index("figure")["value"]
    ratios = audit.impact_table.frame.set_index("category")["impact_ratio"]
    truth = (hits[1] / size[1]) / (hits[2] / size[2])
    assert ratios["b"] == pytest.approx(truth)
    assert judged.judgement.value == pytest.approx(truth)
    assert named["demographic_parity_ratio"] == pytest.approx(truth)
    by_share = Audit(
        y_pred=pred, sensitive_features=np.repeat(["a", "b", "c"], size), min_group=0.02
    )
    ratio = by_share.findings[1].judgement.value
    assert ratio == pytest.approx(by_share.impact_table.frame["impact_ratio"].min())
    assert ratio == pytest.approx((hits[1] / size[1]) / 0.5)


def test_what_cannot_be_tabled_is_refused():
    people, score = applicants(100)
    with pytest.raises(ValueError, match="^y_score: expected one finite score per person"):
        ImpactTable.from_scores(score.where(score > 0), people)
    with pytest.raises(ValueError, match="^y_score: no score is above the median, 1"):
        ImpactTable.from_scores(np.ones(100), people)
    weighted = Audit(
        y_pred=score > 0, sensitive_features=people["sex"], sample_weight=np.arange(100) + 1
    )
    assert weighted.impact_table is None
    with pytest.raises(ValueError, match="^sample_weight, cluster: an impact table counts"):
        ImpactTable.from_audit(weighted)


def test_written_whole_and_read_again(tmp_path):
    people, score = applicants(400)
    table = ImpactTable.from_scores(score, people["sex"])
    table.to_csv(tmp_path / "table.csv")
    again = pd.read_csv(tmp_path / "table.csv")
    np.testing.assert_allclose(again["rate"], table.frame["rate"])
    assert list(again.columns) == list(table.frame.columns)


def test_of_billions_of_decisions_the_exact_test_is_right():
    """With so many, Fisher's exact test is the chi-squared test."""
    counts = pd.DataFrame(
        {
            "sex": ["F", "F", "M", "M"],
            "hired": [1, 0, 1, 0],
            "count": [4_000_000_000, 4_000_000_000, 4_000_100_000, 3_999_900_000],
        }
    )
    audit = Audit.from_counts(counts, None, "hired", "sex")
    rows = audit.impact_table.frame
    row = rows[rows["impact_ratio"] < 1].iloc[0]
    cells = counts["count"].to_numpy().reshape(2, 2)
    truth = chi2_contingency(cells, correction=False).pvalue
    assert row["fisher_p"] == pytest.approx(truth, rel=1e-3)
