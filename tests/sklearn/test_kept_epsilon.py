"""Epsilon is kept on the training rows, or a warning states that it is not."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairgrad import fairness_levels
from fairgrad.groups import group_rows
from fairgrad.measures import On, among_large, constraints_of
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.sklearn.last_layer import DAMPING, LastLayers, LayerInputs, _damped_step
from fairgrad.usefulness import FairnessWarning, ModelFigures, Suggestions, find_fault

QUICK = {"random_state": 0, "verbose": False, "max_iter": 40}


def make_table(n=2500, n_groups=3, n_labels=2, seed=0):
    """Groups differ in their features, in how many they are, and in their labels."""
    rng = np.random.default_rng(seed)
    s = np.minimum(rng.geometric(0.45, n) - 1, n_groups - 1)
    X = rng.normal(size=(n, 4)) + np.outer(s, [0.8, 0.0, -0.4, 0.0])
    score = X @ [1.0, 0.7, -0.5, 0.2] + 0.4 * s + rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_labels) / n_labels))
    return X, y, np.array([f"g{i}" for i in s])


def fitted(table, measure, epsilon, **changed):
    """The model, by how much its worst level is beyond its slack, and what was warned of."""
    X, y, s = table
    model = FairGradClassifier(measure, epsilon=epsilon, **{**QUICK, **changed})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=s)
    predicted = model.predict(X, **({"sensitive_features": s} if model.use_sensitive else {}))
    levels = fairness_levels(y, predicted, s, measure, y_desirable=model.y_desirable)
    np.testing.assert_allclose(model.levels_, levels.values, atol=1e-9)
    said = [str(one.message) for one in caught if one.category is FairnessWarning]
    rows = group_rows(y, s)
    exact = constraints_of(measure, rows.groups, y_desirable=model.y_desirable)
    beyond = levels.gaps - exact.slacken_for(rows, epsilon).slack
    return model, np.nanmax(beyond), said


@pytest.mark.parametrize("epsilon", [0.0, 0.03])
@pytest.mark.parametrize(
    "measure",
    ["equalized_odds", "equality_of_opportunity", "demographic_parity", "accuracy_parity"],
)
def test_epsilon_is_kept_on_the_rows_of_the_fit(measure, epsilon):
    table = make_table()
    model, beyond, _ = fitted(table, measure, epsilon)
    assert beyond <= 0.005
    most_frequent = np.bincount(table[1]).max() / len(table[1])
    if measure != "accuracy_parity":  # by which one label for everybody is not fair
        assert model.score(table[0], table[1]) > most_frequent


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden_layer_sizes": (8,), "max_iter": 25},
        {"use_sensitive": True},
        {"cost_matrix": [[0, 1], [2, 0]]},
    ],
    ids=["network", "aware", "costs"],
)
def test_epsilon_is_kept_by_all_kinds_of_models(changed):
    _, beyond, _ = fitted(make_table(), "equalized_odds", 0.03, **changed)
    assert beyond <= 0.005


@pytest.mark.parametrize("measure", ["equalized_odds", "demographic_parity"])
def test_epsilon_is_kept_with_several_labels(measure):
    table = make_table(n_labels=3)
    _, beyond, _ = fitted(table, measure, 0.04, y_desirable=(2,))
    assert beyond <= 0.005


@given(seed=st.integers(0, 2**16), data=st.data())
@settings(max_examples=8)
def test_no_miss_is_silent(seed, data):
    n = data.draw(st.sampled_from([300, 1200]))
    table = make_table(n, data.draw(st.integers(2, 6)), seed=seed)
    epsilon = data.draw(st.sampled_from([0.0, 0.02, 0.1]))
    model, beyond, said = fitted(table, "equalized_odds", epsilon, min_group=0)
    if beyond > 0.005 or len(set(model.predict(table[0]))) == 1:
        assert said


def test_a_larger_epsilon_is_not_less_accurate():
    table = make_table()
    accuracy = [fitted(table, "demographic_parity", e)[0].score(*table[:2]) for e in (0, 0.03, 0.2)]
    assert accuracy[0] <= accuracy[1] + 0.003
    assert accuracy[1] <= accuracy[2] + 0.003


def test_the_last_step_finds_a_good_threshold():
    """Of one feature all models are thresholds: the best of them is found by trying all."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 400)
    x = rng.normal(size=400) + 0.7 * s
    y = (x + rng.normal(size=400) > 0.5).astype(int)
    rows = group_rows(y, s)
    bound = 0.08
    constraints = constraints_of("demographic_parity", rows.groups, epsilon=bound)
    most_accurate = 0.0
    cuts = np.sort(x)
    for cut in np.concatenate([[cuts[0] - 1], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1]]):
        predicted = (x > cut).astype(int)
        if fairness_levels(y, predicted, s, "demographic_parity").gaps.max() <= bound:
            most_accurate = max(most_accurate, np.mean(predicted == y))
    start = np.array([[2.0, -1.0]])
    layers = LastLayers(rows, constraints, [LayerInputs(x[:, None])], [start])
    assert layers.problem.widened(bound) is None  # as wide already
    wide = layers.problem.widened(2 * bound)
    np.testing.assert_allclose(wide.lower, -2 * bound)
    np.testing.assert_allclose(wide.upper, 2 * bound)
    found = layers.keep_bounds()
    assert layers.judged[0].figures.worst > 0  # there is something to do
    assert found.figures.worst == 0
    decided = (found.layer[0, 0] * x + found.layer[0, 1] > 0).astype(int)
    assert np.mean(decided == y) == pytest.approx(1 - found.figures.error)
    assert 1 - found.figures.error == pytest.approx(most_accurate, abs=0.02)


def test_small_groups_do_not_steer_and_are_named():
    X, y, s = make_table(2000, 2)
    s = s.astype(object)
    s[:12] = "few"
    settings_ = {**QUICK, "fairness_rate": 0.05}
    model = FairGradClassifier("demographic_parity", **settings_)
    with pytest.warns(UserWarning, match=r"^12 training rows are in groups too small.*s=few"):
        model.fit(X, y, sensitive_features={"s": s})
    assert not any("few" in name for name in model.constraint_names_)
    assert model.set_aside_ == {"s=few": 12}
    few = [i for i, name in enumerate(model.cell_names_) if "few" in name]
    np.testing.assert_array_equal(model.cell_weights_[few], 1.0)
    known = np.where(s == "few", None, s)  # the same as if their values were not known
    unknown = FairGradClassifier("demographic_parity", **settings_)
    unknown.fit(X, y, sensitive_features={"s": known})
    np.testing.assert_allclose(model.coef_, unknown.coef_)
    everyone = FairGradClassifier("demographic_parity", min_group=0, **settings_).fit(
        X, y, sensitive_features={"s": s}
    )
    assert any("few" in name for name in everyone.constraint_names_)
    assert everyone.set_aside_ == {}


def test_groups_are_small_by_the_attributes_of_their_measure():
    rng = np.random.default_rng(0)
    sex, race = rng.choice(["F", "M"], 400), rng.choice(["a", "b"], 400)
    race[:20] = "c"
    rows = group_rows(rng.integers(0, 2, 400), {"sex": sex, "race": race})
    both = [On("sex", "accuracy_parity"), On("race", "accuracy_parity")]
    large = among_large(both, rows, 30)
    assert constraints_of(large, rows.groups).names == ("sex=F", "sex=M", "race=a", "race=b")
    assert large.set_aside == {"race=c": 20}
    assert among_large(both, rows, 20) is both


def test_a_model_of_no_use_is_warned_of():
    rng = np.random.default_rng(0)
    X, s = np.ones((600, 1)), rng.integers(0, 2, 600)  # nothing to be learnt
    y = (rng.random(600) < 0.3).astype(int)
    model = FairGradClassifier("demographic_parity", **QUICK)
    with pytest.warns(FairnessWarning, match=r"^Every training row is predicted as 0\. The plain"):
        model.fit(X, y, sensitive_features=s)


GOOD, PLAIN = ModelFigures(0.8, 0.01, 0.0), ModelFigures(0.82, 0.2, 0.2)
ALL_NO, ALL_YES = np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.int64)
CONSTANTS = [ModelFigures(0.6, 0.0, 0.0, ALL_NO), ModelFigures(0.4, 0.0, 0.0, ALL_YES)]


@pytest.mark.parametrize(
    ("fair", "plain", "expected"),
    [
        (GOOD, PLAIN, None),
        (GOOD, None, None),
        (GOOD._replace(predicted=ALL_YES), PLAIN, "Every training row is predicted as 'yes'."),
        (GOOD._replace(accuracy=0.6), PLAIN, "no better than a constant: predicting 'no'"),
        (GOOD._replace(beyond=0.02, worst=0.04), PLAIN, "epsilon=0.02 is not kept"),
        (ModelFigures(0.8, 0.204, 0.004), PLAIN._replace(worst=0.19), "less fair than the plain"),
        (GOOD._replace(accuracy=0.7), PLAIN, "Fairness costs 12.0 points of accuracy"),
        (GOOD._replace(accuracy=0.7, beyond=0.02), PLAIN, "Fairness costs 12.0 points of accuracy"),
        (GOOD._replace(accuracy=0.5, worst=-1), PLAIN, "and 0.6000 of one label for everybody, on"),
    ],
)
def test_every_fault_has_its_sentence(fair, plain, expected):
    suggestions = Suggestions(asked=0.02, enough=0.0312)
    found = find_fault(fair, CONSTANTS, plain, ["no", "yes"], suggestions)
    if expected is None:
        assert found is None
    else:
        assert expected in found
        assert "larger epsilon (0.032 would be enough)" in found
        assert found.endswith("use_sensitive=True if the law allows it.")


@pytest.mark.parametrize("predicted", [None, ALL_NO])
def test_a_larger_epsilon_is_no_remedy_if_the_plain_model_is_no_better(predicted):
    fair, plain = GOOD._replace(accuracy=0.6, predicted=predicted), PLAIN._replace(accuracy=0.6)
    fault = find_fault(fair, CONSTANTS, plain, ["no", "yes"], Suggestions(asked=0.02))
    assert "The plain model is no better (accuracy 0.6000)" in fault
    assert "epsilon" not in fault


def test_one_label_for_everybody_is_no_better_than_the_same_of_the_plain_model():
    plain = PLAIN._replace(accuracy=0.6, predicted=ALL_NO)
    fault = find_fault(plain, [], plain, ["no", "yes"], Suggestions(asked=0.02))
    assert "so fairness is not the reason" in fault
    assert "epsilon" not in fault


@pytest.mark.parametrize(("seed", "shift", "epsilon"), [(1, 0.3, 0.03), (2, 0.3, 0), (2, 0.45, 0)])
def test_the_slack_that_would_be_enough_is_enough(seed, shift, epsilon):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, 1000)
    X = rng.normal(size=(1000, 3)) + shift * s[:, None]
    y = (X.sum(axis=1) + 2.0 * rng.normal(size=1000) > 1).astype(int)

    def price(slack):
        model = FairGradClassifier("demographic_parity", epsilon=slack, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, sensitive_features=s)
        return " ".join(str(one.message) for one in caught if "costs" in str(one.message))

    enough = re.search(r"a larger epsilon \((\S+) would be enough\)", price(epsilon))
    assert enough
    assert price(float(enough[1])) == ""


@pytest.mark.parametrize("make", [FairGradClassifier, FairDecisionClassifier])
@pytest.mark.parametrize(("shift", "epsilon"), [(0.0, 0.2), (3.0, 0.0)])
def test_a_fair_model_that_changes_nothing_says_so(make, shift, epsilon):
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 1)) + shift * s[:, None]
    y = (X[:, 0] + rng.normal(size=600) > shift / 2).astype(int)
    model = make(fairness_measure="demographic_parity", epsilon=epsilon)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=s)
    said = [str(one.message) for one in caught if one.category is UserWarning]
    is_said = any("the plain one, which already keeps epsilon=0.2" in text for text in said)
    assert is_said == (shift == 0.0)
    # It is no fault: users who turn warnings into errors still get a good fit.
    assert not is_said or not [one for one in caught if one.category is FairnessWarning]


def test_a_model_that_misses_epsilon_and_changes_nothing_says_both():
    decided = np.arange(9) % 2
    fair, plain = PLAIN._replace(predicted=decided), PLAIN._replace(predicted=decided.copy())
    fault = find_fault(fair, CONSTANTS, plain, ["no", "yes"], Suggestions(asked=0.02))
    assert "epsilon=0.02 is not kept" in fault
    assert "The fair model makes the same decisions as the plain one. Try" in fault


@pytest.mark.parametrize(("n_rows", "is_said"), [(400, True), (40_000, False)])
def test_a_loss_that_few_rows_may_hide_is_said(n_rows, is_said):
    plain = np.arange(n_rows) % 2
    fair = np.where(np.arange(n_rows) % 20 == 0, 1 - plain, plain)
    figures = GOOD._replace(accuracy=0.805, predicted=fair), PLAIN._replace(predicted=plain)
    found = find_fault(figures[0], CONSTANTS, figures[1], ["no", "yes"], Suggestions())
    assert (found is not None and "Fairness costs 1.5 points" in found) == is_said


def shifted_groups(n):
    """Three groups, one of them small, that differ in the features and in the label."""
    rng = np.random.default_rng(0)
    s = rng.choice(3, n, p=[0.6, 0.38, 0.02])
    shift = np.array([0.4, 0.0, -0.6])[s]
    X = rng.normal(size=(n, 12)) + np.outer(shift, np.arange(12) % 3 == 0)
    return X, X[:, :6].sum(axis=1) + shift + rng.logistic(size=n) > 1, s


@pytest.mark.filterwarnings("ignore::fairgrad.FairnessWarning")
def test_many_steps_lose_no_accuracy():
    """5,000 steps per epoch, as of millions of rows: at a constant rate they lost 4 points."""
    X, y, s = shifted_groups(40_000)
    few, many = (
        FairGradClassifier("demographic_parity", epsilon=0, random_state=0, batch_size=size)
        .fit(X, y, sensitive_features=s)
        .score(X, y)
        for size in (512, 8)
    )
    assert many > few - 0.01


def test_a_costly_fit_does_not_deny_larger_epsilons():
    """Epsilon 0.15 costs a point here, the fit at 0.02 five: a larger one must be recommended."""
    X, y, s = shifted_groups(20_000)
    with pytest.warns(FairnessWarning, match="Fairness costs") as caught:
        FairGradClassifier("demographic_parity", epsilon=0.02, random_state=0).fit(
            X, y, sensitive_features=s
        )
    said = str(caught[0].message)
    assert "a larger epsilon" in said
    assert "No epsilon up to" not in said


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 4)])
def test_damped_steps_are_those_of_the_singular_values(shape):
    rng = np.random.default_rng(0)
    slopes, change = rng.normal(size=shape), rng.normal(size=shape[0])
    slopes[0] = slopes[1]  # some levels move together
    left, stretch, right = np.linalg.svd(slopes, full_matrices=False)
    shrunk = stretch / (stretch**2 + (DAMPING * stretch[0]) ** 2)
    np.testing.assert_allclose(
        _damped_step(slopes, change), right.T @ (shrunk * (left.T @ change)), atol=1e-8
    )


@pytest.mark.filterwarnings("ignore::fairgrad.FairnessWarning")
def test_a_fair_model_is_more_accurate_than_one_label_if_there_is_such_a_model():
    """Groups can be equally accurate by bad decisions: 44 % right, with 50 % for one label."""
    rng = np.random.default_rng(0)
    s, X = rng.choice(3, 1500, p=[0.8, 0.1, 0.1]), rng.normal(size=(1500, 3))
    X[:, 0] -= 0.7 * (s > 0)
    shift = 0.3 * rng.standard_normal(3)[s] - 2.5 * (s == 1)
    y = 0.3 * X[:, 0] + 0.2 * X[:, 1] + shift + rng.logistic(size=1500) > 0
    model = FairGradClassifier("accuracy_parity", use_sensitive=True, random_state=0)
    model.fit(X, y, sensitive_features=s)
    assert model.score(X, y, sensitive_features=s) > max(y.mean(), 1 - y.mean())
    assert np.abs(model.levels_).max() < 0.055
