"""What nobody wants of fair trees is said, and small groups are set aside."""

import numpy as np
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

from fairgrad.evaluate import fairness_levels

from .conftest import fitted

SETTINGS = {"n_estimators": 20, "epsilon": 0.0}
"""Of the models that `make` makes here."""


def test_small_groups_are_in_no_constraint(make, hiring, tmp_path):
    s = hiring.sex.astype(object)
    s[:29] = "X"
    model, said = fitted(make(epsilon=0.5), hiring.X, hiring.y, s)
    assert model.set_aside_ == {"s=X": 29}
    assert not any("s=X" in name for name in model.constraint_names_)
    assert said[0].startswith("29 people are in groups of too few rows")
    path = make.library.save(model, tmp_path / "model")
    assert make.library.load(path).set_aside_ == {"s=X": 29}
    everybody, said = fitted(make(epsilon=0.5, min_group=0), hiring.X, hiring.y, s)
    assert everybody.set_aside_ == {} == fitted(make(None), hiring.X, hiring.y, s)[0].set_aside_
    assert any("s=X" in name for name in everybody.constraint_names_)
    assert not said
    with pytest.raises(ValueError, match="min_group"):
        make(min_group=-1).fit(hiring.X, hiring.y, sensitive_features=s)


def test_eval_sets_are_judged_by_the_same_groups(make, hiring):
    """Also where they lack a value, so that others are numbered differently."""
    s = hiring.sex.astype(object)
    s[:10] = "A"  # first in order
    rows, others = slice(0, 2000), slice(2000, 3000)
    given = {"eval_set": [(hiring.X[others], hiring.y[others])]}
    model = make(
        epsilon=0.5, **({"eval_metric": "unfairness"} if "xgb" in str(make.library) else {})
    )
    if "xgb" not in str(make.library):
        given["eval_metric"] = "unfairness"
    model.fit(
        hiring.X[rows],
        hiring.y[rows],
        sensitive_features=s[rows],
        eval_sensitive_features=[s[others]],
        **given,
    )
    shown = model.evals_result_ if hasattr(model, "booster_") else model.evals_result()
    last = next(iter(shown.values()))["unfairness"][-1]
    predicted = model.predict(hiring.X[others])
    levels = fairness_levels(hiring.y[others], predicted, s[others], "demographic_parity")
    assert last == pytest.approx(levels.unfairness, abs=1e-6)


def test_missed_bounds_are_said_with_what_was_reached(make, hiring):
    model = make("equalized_odds", n_estimators=3)
    model, said = fitted(model, hiring.X, hiring.y, hiring.sex)
    worst = np.abs(model.levels_).max()
    assert worst > 0.005
    assert (
        f"epsilon=0 is not kept: on the training rows the worst level of fairness is {worst:.4f}"
        in said[0]
    )
    wide = make("equalized_odds", n_estimators=3, epsilon=1.0)
    assert fitted(wide, hiring.X, hiring.y, hiring.sex)[1] == []


def test_trees_that_say_nothing_are_said_to_be_of_no_use(make):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    y = (rng.random(2000) < 0.05).astype(int)
    _, said = fitted(make(n_estimators=2, max_depth=1), X, y, s)
    assert said[0].startswith("Every training row is predicted as 0.")
