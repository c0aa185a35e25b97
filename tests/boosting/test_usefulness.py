"""Fair trees warn about problems and set small groups aside."""

import warnings

import numpy as np
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")


from .conftest import fitted

SETTINGS = {"n_estimators": 20, "epsilon": 0.0}
"""Of the models that `make` makes here."""


def test_small_groups_are_in_no_constraint(make, hiring):
    s = hiring.sex.astype(object)
    s[:29] = "X"
    with pytest.warns(UserWarning, match="^29 training rows are in groups too small"):
        model = make(epsilon=0.5).fit(hiring.X, hiring.y, sensitive_features=s)
    assert model.set_aside_ == {"s=X": 29}
    assert not any("s=X" in name for name in model.constraint_names_)
    everybody, said = fitted(make(epsilon=0.5, min_group=0), hiring.X, hiring.y, s)
    assert everybody.set_aside_ == {} == fitted(make(None), hiring.X, hiring.y, s)[0].set_aside_
    assert any("s=X" in name for name in everybody.constraint_names_)
    assert not said
    with pytest.raises(ValueError, match="min_group"):
        make(min_group=-1).fit(hiring.X, hiring.y, sensitive_features=s)


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


def test_the_price_of_fairness_is_stated_where_it_is_high(make):
    rng = np.random.default_rng(0)
    s, X = rng.integers(0, 2, 3000), rng.normal(size=(3000, 3))
    X[:, 0] += 1.5 * s
    y = (X[:, 0] + 0.5 * rng.normal(size=3000) > 0.75).astype(int)
    _, said = fitted(make(epsilon=0.05), X, y, s)
    (price,) = [one for one in said if one.startswith("Fairness costs")]
    assert "of the plain model, on the held-out rows. Try a larger epsilon" in price
    options = {"eval_set": [(X[:99], y[:99])]}  # may stop the fit, which trials would not
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(epsilon=0.05).fit(X, y, sensitive_features=s, **options)
    assert not [one for one in caught if "Fairness costs" in str(one.message)]


def test_a_fair_model_that_costs_nothing_is_no_warning(make):
    rng = np.random.default_rng(1)
    s, X = rng.integers(0, 2, 3000), rng.normal(size=(3000, 3))
    y = (X.sum(1) + 0.5 * rng.normal(size=3000) > 0.0).astype(int)
    assert fitted(make(epsilon=0.05), X, y, s)[1] == []


@pytest.mark.parametrize(
    ("epsilon", "rounds", "expected"),
    [(1.0, 100, [100]), (0.0, 100, [100, 50, 50]), (0, 20, [20] * 3)],
)
def test_trials_are_short_and_only_where_weights_have_moved(
    make, hiring, monkeypatch, epsilon, rounds, expected
):
    model = make(epsilon=epsilon, n_estimators=rounds)
    seen, fit = [], type(model).fit

    def counted(self, *args, **kwargs):
        seen.append(self.n_estimators)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(type(model), "fit", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    assert seen == expected
    assert model.n_estimators == rounds


@pytest.mark.parametrize("use_sensitive", [False, True])
def test_trials_leave_the_model_as_it_is(make, hiring, monkeypatch, use_sensitive):
    X, y, s = hiring.X, hiring.grade, hiring.sex.astype(object)
    s[::9] = None
    weight = np.random.default_rng(0).random(len(y))
    models = []
    for is_trial in (False, True):
        model = make("equalized_odds", n_estimators=5, use_sensitive=use_sensitive)
        monkeypatch.setattr(type(model), "_is_trial", is_trial)
        models.append(model.fit(X, y, sensitive_features=s, sample_weight=weight))
    first, second = (
        model.predict_proba(X, sensitive_features=s if use_sensitive else None) for model in models
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(models[0].levels_, models[1].levels_)


def test_trees_that_say_nothing_are_said_to_be_of_no_use(make):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    y = (rng.random(2000) < 0.05).astype(int)
    _, said = fitted(make(n_estimators=2, max_depth=1), X, y, s)
    assert said[0].startswith("Every training row is predicted as 0.")
