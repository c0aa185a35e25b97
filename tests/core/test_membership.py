"""Probabilities of groups that some rows lack."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from fairgrad.membership import Membership, MembershipModel, spread_rows


def test_known_rows_get_the_probabilities_of_models_that_have_not_learnt_from_them() -> None:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(600, 3)), rng.choice(["a", "b"], 600).astype(object)
    seen = s.copy()
    seen[400:] = None
    found = MembershipModel(DecisionTreeClassifier()).fit_predict(X, seen)
    right = (found["b"] > 0.5) == (s == "b")
    assert 0.4 < right[:400].mean() < 0.6  # a tree remembers all rows it has learnt from


def test_the_usual_model_reads_numbers_texts_gaps_and_labels() -> None:
    rng = np.random.default_rng(1)
    s = rng.choice([3, 7], 500)
    frame = pd.DataFrame(
        {"height": rng.normal(size=500) + 2 * (s == 7), "town": rng.choice(["x", "z"], 500)}
    )
    frame.loc[::50, "height"] = np.nan
    found = MembershipModel().fit_predict(frame, np.where(np.arange(500) < 200, s, -1), s == 3)
    assert list(found.columns) == [3, 7]
    assert np.allclose(found.sum(axis=1), 1)
    assert ((found[7] > 0.5) == (s == 7))[200:].mean() > 0.95


def test_columns_of_a_frame_are_matched_by_name() -> None:
    frame = pd.DataFrame({"M": [0.2, 0.7], "F": [0.8, 0.3]})
    both = Membership(frame, attribute="sex").read({"sex": ["F", "M"]})
    assert both.probability.tolist() == [[0.8, 0.2], [0.3, 0.7]]
    with pytest.raises(ValueError, match=r"a column for each of the values \['F', 'M'\]"):
        Membership(frame.rename(columns={"M": "X"}), "sex").read({"sex": ["F", "M"]})


def test_spread_rows_keep_the_expected_counts() -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), size=50)
    seen = np.where(rng.random(50) < 0.3, rng.integers(3, size=50), -1)
    rows = spread_rows({"s": seen, "t": np.arange(50)}, p)
    expected = np.where((seen >= 0)[:, None], seen[:, None] == np.arange(3), p).sum(axis=0)
    assert np.allclose(np.bincount(rows.columns["s"], rows.share), expected)
    assert np.allclose(np.bincount(rows.source, rows.share), 1)
    assert (rows.columns["t"] == rows.source).all()
    assert (seen[rows.source[: rows.n_known]] >= 0).all()


def test_too_few_known_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="5 known rows each"):
        MembershipModel().fit_predict(np.zeros((9, 1)), ["a"] * 6 + ["b"] * 2 + [None])
