"""What the classifier learns, keeps and refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from fairgrad import FairnessWarning, On, fairness_levels
from fairgrad.datasets import PAPER_SEEDS, load
from fairgrad.sklearn import FairGradClassifier, fit_variants
from fairgrad.training import trainer
from fairgrad.training.stack import Stack

EXACT = {"epsilon": 0.0, "fairness_rate": 0.05, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")


def unfairness(model, data, measure="demographic_parity"):
    predicted = model.predict(data.X)
    return fairness_levels(
        data.y, predicted, data.sex, measure, y_desirable=("refused",)
    ).unfairness


@pytest.fixture(scope="module")
def adult_splits():
    data = load("adult")
    return {seed: data.split(seed=seed) for seed in PAPER_SEEDS}


@pytest.fixture(scope="module")
def plain(hiring):
    return FairGradClassifier(None, random_state=0).fit(hiring.X, hiring.y)


def test_plain_model_is_a_logistic_regression(hiring, plain):
    scaled = (hiring.X - hiring.X.mean()) / hiring.X.std()
    expected = LogisticRegression(C=np.inf).fit(scaled, hiring.y)
    long = FairGradClassifier(None, max_iter=1500, batch_size=1500, learning_rate=1.0)
    long.fit(hiring.X, hiring.y)
    np.testing.assert_allclose(
        long.predict_proba(hiring.X), expected.predict_proba(scaled), atol=0.01
    )
    margin = hiring.X.to_numpy() @ long.coef_[0] + long.intercept_
    np.testing.assert_allclose(margin, long.decision_function(hiring.X), atol=1e-9)
    np.testing.assert_allclose(
        plain.predict_proba(hiring.X), expected.predict_proba(scaled), atol=0.01
    )


@pytest.mark.parametrize("n_labels", [2, 3])
def test_plain_models_are_trained_to_the_end(n_labels):
    """Classes that are nearly separable, for which gradient steps take long."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(1500, 8)), rng.integers(0, 2, 1500)
    score = X @ np.linspace(2, 16, 8) + rng.logistic(size=1500)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_labels + 1)[1:-1]))
    best = log_loss(y, LogisticRegression(C=np.inf, max_iter=5000).fit(X, y).predict_proba(X))
    plain = FairGradClassifier(None, random_state=0).fit(X, y)
    limit = FairGradClassifier("accuracy_parity", epsilon=np.inf, random_state=0)
    limit.fit(X, y, sensitive_features=s)
    for model in (plain, limit):
        assert log_loss(y, model.predict_proba(X)) < 1.2 * best
    few = FairGradClassifier(None, max_iter=300, random_state=0).fit(X, y)  # as requested
    assert log_loss(y, few.predict_proba(X)) > 2 * best


@pytest.mark.parametrize("measure", ["demographic_parity", "equalized_odds"])
def test_fair_model_is_fair_and_the_plain_one_is_not(hiring, plain, measure):
    model = FairGradClassifier(measure, **EXACT).fit(
        hiring.X, hiring.y, sensitive_features=hiring.sex
    )
    assert unfairness(model, hiring, measure) < unfairness(plain, hiring, measure) / 3
    expected = fairness_levels(
        hiring.y, model.predict(hiring.X), hiring.sex, measure, y_desirable=("refused",)
    )
    np.testing.assert_allclose(model.levels_, expected.values, atol=1e-9)
    assert model.constraint_names_[0] == "decision=hired, sex=F"


@pytest.mark.parametrize("seed", [10, 40])
def test_networks_do_not_collapse_under_negative_weights(adult_splits, seed):
    """Accuracy parity on Adult weights women negatively, whose loss has no lower bound."""
    train, validation, _ = adult_splits[seed]
    model = FairGradClassifier(
        "accuracy_parity", epsilon=0.0, hidden_layer_sizes=(128, 64, 32), random_state=seed
    ).fit(train.X, train.y, sensitive_features=train.s)
    assert model.cell_weights_.min() < 0.1
    predicted = model.predict(validation.X)
    assert (predicted == validation.y).mean() > 0.79
    found = fairness_levels(validation.y, predicted, validation.s, "accuracy_parity")
    assert found.unfairness < 0.03


def test_larger_epsilon_leaves_more_unfairness(hiring):
    found = [
        unfairness(
            FairGradClassifier("demographic_parity", **{**EXACT, "epsilon": epsilon}).fit(
                hiring.X, hiring.y, sensitive_features=hiring.sex
            ),
            hiring,
        )
        for epsilon in (0.0, 0.06, 1.0)
    ]
    assert found == sorted(found)
    assert found[1] == pytest.approx(0.06, abs=0.02)


def test_nonlinear_model_learns_what_a_linear_one_cannot():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 2))
    s = rng.integers(0, 2, 1000)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = FairGradClassifier(
        "equalized_odds",
        hidden_layer_sizes=(32, 16),
        learning_rate=0.01,
        batch_size=64,
        max_iter=40,
        random_state=0,
    ).fit(X, y, sensitive_features=s)
    assert model.score(X, y) > 0.9
    with pytest.raises(AttributeError, match="linear"):
        _ = model.coef_


def test_several_classes(hiring):
    y = np.where(hiring.X["skill"] > 1, "c", np.where(hiring.X["grade"] > 0, "b", "a"))
    model = FairGradClassifier("equalized_odds", max_iter=20, random_state=0).fit(
        hiring.X, y, sensitive_features=hiring.sex
    )
    proba = model.predict_proba(hiring.X)
    np.testing.assert_allclose(proba.sum(1), 1)
    assert model.decision_function(hiring.X).shape == (1500, 3)
    assert (model.classes_[proba.argmax(1)] == model.predict(hiring.X)).all()
    assert model.levels_.shape == (6,)


def test_one_group_is_an_error(hiring):
    with pytest.raises(ValueError, match="sensitive_features: fairness compares at least two"):
        FairGradClassifier().fit(hiring.X, hiring.y, sensitive_features=["A"] * len(hiring.y))


def test_forgetting_sensitive_features_is_an_error(hiring):
    with pytest.raises(ValueError, match="sensitive_features: required"):
        FairGradClassifier().fit(hiring.X, hiring.y)


def test_several_sensitive_attributes(hiring):
    both = pd.concat([hiring.sex, hiring.race], axis=1)
    joint = FairGradClassifier("demographic_parity", max_iter=3).fit(
        hiring.X, hiring.y, sensitive_features=both
    )
    assert len(joint.levels_) == 2 * 6
    apart = FairGradClassifier(
        [On("sex", "demographic_parity"), On("race", "demographic_parity")], max_iter=3
    ).fit(hiring.X, hiring.y, sensitive_features=both)
    assert len(apart.levels_) == 2 * 2 + 2 * 3


def test_unknown_sensitive_values_train_and_predict(hiring):
    s = hiring.sex.where(np.arange(1500) % 4 != 0)
    model = FairGradClassifier("demographic_parity", **EXACT).fit(
        hiring.X, hiring.y, sensitive_features=s
    )
    assert model.groups_.names == ("sex=F", "sex=M", "sex=?")
    assert unfairness(model, hiring) < 0.06
    weight_of = dict(zip(model.cell_names_, model.cell_weights_, strict=True))
    assert weight_of["decision=hired, sex=?"] == 1.0


def test_sample_weights_are_repetitions(hiring):
    rng = np.random.default_rng(0)
    X, y, s = (np.asarray(part)[:200] for part in (hiring.X, hiring.y, hiring.sex))
    weight = rng.integers(0, 3, 200)
    fair = {"epsilon": 0.0, "fairness_rate": 0.02, "max_iter": 50, "random_state": 0}
    weighted = FairGradClassifier(**fair).fit(X, y, sensitive_features=s, sample_weight=weight)
    again = np.repeat(np.arange(200), weight)
    repeated = FairGradClassifier(**fair).fit(X[again], y[again], sensitive_features=s[again])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(weighted.levels_, repeated.levels_, atol=1e-9)


def test_same_random_state_same_model(hiring):
    def fitted(seed):
        model = FairGradClassifier(max_iter=3, hidden_layer_sizes=(5,), random_state=seed)
        model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
        return model.predict_proba(hiring.X)

    np.testing.assert_array_equal(fitted(1), fitted(1))
    assert not np.array_equal(fitted(1), fitted(2))


def test_loss_of_accuracy_is_warned_of():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 1000)
    X = np.column_stack([s + 0.1 * rng.normal(size=1000), rng.normal(size=1000)])
    y = (3 * (s - 0.5) + X[:, 1] > 0).astype(int)  # most of what there is to know is the group
    model = FairGradClassifier("demographic_parity", random_state=0)
    with pytest.warns(FairnessWarning, match=r"^Fairness costs \d+\.\d points of accuracy"):
        model.fit(X, y, sensitive_features=s)


def test_validation_rows_choose_the_epoch(hiring):
    model = FairGradClassifier(
        epsilon=1.0, max_iter=6, validation_fraction=0.2, fairness_rate=0.05, random_state=0
    ).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    kept = model.history_["accuracy"][-5:]
    best = 5 - int(kept[::-1].argmax())
    np.testing.assert_array_equal(model.levels_, model.history_["levels"][best])


def test_held_out_rows_have_the_same_share_of_every_cell(hiring):
    """Three groups, one of them small: by chance alone its cells would lose other shares."""
    race = hiring.race.where(np.arange(1500) % 40 != 0, "d")
    model = FairGradClassifier(max_iter=1, validation_fraction=0.25, fairness_rate=0.05).fit(
        hiring.X, hiring.y, sensitive_features=race
    )
    rows = pd.crosstab(hiring.y, race)
    np.testing.assert_array_equal(model.groups_.mass, rows - np.rint(rows / 4))


def test_given_validation_rows_are_the_ones_judged_on(hiring):
    X, y, sex = hiring.X, hiring.y, hiring.sex
    weight = np.random.default_rng(0).random(500)
    given = (X[1000:], y[1000:], sex[1000:], weight)
    settings = {"max_iter": 7, **EXACT}
    model = FairGradClassifier("demographic_parity", **settings)
    model.fit(X[:1000], y[:1000], sensitive_features=sex[:1000], validation=given)
    predicted = model.predict(X[1000:])
    expected = fairness_levels(
        y[1000:], predicted, sex[1000:], "demographic_parity", sample_weight=weight
    )
    np.testing.assert_allclose(model.levels_, expected.values, atol=1e-6)
    epoch = np.flatnonzero((model.history_["levels"] == model.levels_).all(1))[0]
    right = np.average(predicted == y[1000:], weights=weight)
    assert model.history_["accuracy"][epoch] == pytest.approx(right, abs=1e-6)
    assert np.abs(model.levels_).max() == np.abs(model.history_["levels"][-5:]).max(1).min()
    assert model.groups_.mass.sum() == 1000
    alone = FairGradClassifier("demographic_parity", **settings)
    alone.fit(X[:1000], y[:1000], sensitive_features=sex[:1000])
    np.testing.assert_allclose(
        model.history_["multipliers"], alone.history_["multipliers"], atol=1e-9
    )


def test_a_plain_model_takes_validation_rows_without_sensitive_values(hiring):
    X, y = hiring.X, hiring.y
    model = FairGradClassifier(None, max_iter=3, random_state=0)
    model.fit(X[:1000], y[:1000], validation=(X[1000:], y[1000:], None))
    assert model.score(X[1000:], y[1000:]) == pytest.approx(model.history_["accuracy"].max())


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({"validation_fraction": 0.2}, {}, "validation: cannot be combined"),
        ({}, {"sex": None}, "validation: .*sensitive_features"),
        ({}, {"y": ["fired"] * 500}, "validation: .*'fired'"),
        ({}, {"sex": ["F"] * 10}, r"validation: .* one value per row of X \(500\), got 10"),
    ],
)
def test_validation_rows_that_do_not_fit(hiring, settings, change, message):
    given = {"X": hiring.X[1000:], "y": hiring.y[1000:], "sex": hiring.sex[1000:], **change}
    with pytest.raises(ValueError, match=message):
        FairGradClassifier(**settings).fit(
            hiring.X, hiring.y, sensitive_features=hiring.sex, validation=tuple(given.values())
        )
    with pytest.raises(ValueError, match="validation: expected"):
        FairGradClassifier().fit(
            hiring.X, hiring.y, sensitive_features=hiring.sex, validation=(hiring.X, hiring.y)
        )


def test_validation_rows_of_a_group_without_training_rows(hiring):
    """As in a random split of many small groups: judged, and in no constraint."""
    X, y = hiring.X, hiring.y
    s = hiring.sex.where(hiring.sex.index != 1200, "X")
    model = FairGradClassifier(max_iter=2, **EXACT)
    given = (X[1000:], y[1000:], s[1000:])
    with pytest.warns(UserWarning, match="left out because they have no rows: decision=hired, s"):
        model.fit(X[:1000], y[:1000], sensitive_features=s[:1000], validation=given)
    assert model.groups_.names == ("sex=F", "sex=M", "sex=X")
    assert model.groups_.mass.sum() == 1000


def test_the_desirable_label_taken_is_shown(hiring):
    def taken(measure, **settings):
        model = FairGradClassifier(measure, max_iter=1, **EXACT, **settings)
        return model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex).desirable_

    assert taken("equality_of_opportunity") == ("refused",)
    assert taken("equality_of_opportunity", y_desirable="hired") == ("hired",)
    assert taken("equalized_odds") == ()


def make_variants():
    common = {"max_iter": 6, "batch_size": 64, "validation_fraction": 0.2, **EXACT}
    return [
        FairGradClassifier("demographic_parity", **{**common, "epsilon": e, "weight_decay": decay})
        for e, decay in [(0.0, 0.0), (0.05, 0.01), (0.0, 0.01)]
    ]


def test_variants_are_fitted_together_as_each_by_itself(hiring):
    models = fit_variants(make_variants(), hiring.X, hiring.y, sensitive_features=hiring.sex)
    for together, alone in zip(models, make_variants(), strict=True):
        alone.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
        np.testing.assert_allclose(together.coef_, alone.coef_, atol=1e-9)
        np.testing.assert_allclose(together.levels_, alone.levels_, atol=1e-9)
        assert list(together.feature_names_in_) == list(hiring.X)


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_interruption_leaves_a_model(hiring, monkeypatch, hidden):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Stack, "step", interrupted)
    monkeypatch.setattr(trainer.compiled_code, "epoch", interrupted)
    model = FairGradClassifier(fairness_rate=0.05, hidden_layer_sizes=hidden)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    assert len(model.predict(hiring.X)) == 1500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fairness_measure": "parity"}, "fairness_measure: got 'parity'"),
        ({"fairness_rate": "fast"}, "fairness_rate: expected a number or 'auto'"),
        ({"max_iter": "many"}, "max_iter: expected a whole number or 'auto'"),
        ({"max_iter": 0}, "max_iter: expected a whole number of at least 1, got 0"),
        ({"hidden_layer_sizes": (8, 0)}, "hidden_layer_sizes: expected a whole number of at least"),
        ({"epsilon": -1.0}, "epsilon: expected at least 0 .*; got -1"),
        ({"learning_rate": "fast"}, "learning_rate: expected a finite number"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"learning_rate": -0.1}, "learning_rate: expected a finite number"),
    ],
)
def test_refuses(hiring, arguments, message):
    with pytest.raises(ValueError, match=message):
        FairGradClassifier(**arguments).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)


def test_lengths_must_agree(hiring):
    with pytest.raises(ValueError, match=r"sensitive_features: expected .* \(1500\), got 10"):
        FairGradClassifier().fit(hiring.X, hiring.y, sensitive_features=hiring.sex[:10])


@pytest.mark.parametrize(
    ("measure", "least_accuracy", "most_unfair"),
    [
        ("equalized_odds", 0.829, 0.009),
        ("demographic_parity", 0.824, 0.006),
        ("equality_of_opportunity", 0.842, 0.009),
    ],
)
def test_adult_with_exact_fairness(adult_splits, measure, least_accuracy, most_unfair):
    """One exactly fair fit per seed of the paper's splits; means on the test sets."""
    figures = []
    for seed, (train, _, test) in adult_splits.items():
        model = FairGradClassifier(measure, epsilon=0.0, random_state=seed)
        predicted = model.fit(train.X, train.y, sensitive_features=train.s).predict(test.X)
        levels = fairness_levels(test.y, predicted, test.s, measure)
        figures.append((np.mean(predicted == test.y), levels.unfairness))
    accuracy, unfair = np.mean(figures, axis=0)
    assert accuracy >= least_accuracy
    assert unfair <= most_unfair


@pytest.mark.parametrize("kind", ["linear", "hidden layers", "plain"])
def test_another_default_device_of_pytorch_changes_nothing(hiring, kind):
    """Scripts for a GPU set it once and for all; the estimator trains on the CPU."""
    settings = {
        "linear": {},
        "hidden layers": {"hidden_layer_sizes": (4,)},
        "plain": {"fairness_measure": None},
    }[kind]
    settings = {"fairness_measure": "demographic_parity", "random_state": 0, **settings}

    def scores():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            model = FairGradClassifier(max_iter=3, **settings)
            model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
        return model.decision_function(hiring.X)

    expected = scores()
    with torch.device("meta"):
        assert scores().tolist() == expected.tolist()
