"""Fair decisions around any classifier."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairgrad import FairnessWarning, fairness_levels, persistence
from fairgrad.datasets import load
from fairgrad.groups import group_rows
from fairgrad.measures import MEASURES, On, constraints_of
from fairgrad.sklearn import FairDecisionClassifier
from fairgrad.sklearn.cell_models import FoldMean, given_groups
from fairgrad.sklearn.decision import draw_lots

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")


@parametrize_with_checks(
    [
        FairDecisionClassifier(
            LogisticRegression(solver="newton-cholesky", tol=1e-12), fairness_measure=None
        )
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def regression():
    return make_pipeline(StandardScaler(), LogisticRegression())


def tuned(model, X, y, s, weight=None):
    """Fits a model and finds its multipliers on the same rows, where bounds then hold exactly."""
    rows = (X, y, s) if weight is None else (X, y, s, weight)
    return model.fit(X, y, sensitive_features=s, sample_weight=weight, validation=rows)


def unfairness(model, hiring, s, measure, **aware):
    levels = fairness_levels(hiring.y, model.predict(hiring.X, **aware), s, measure)
    return np.nanmax(levels.gaps)


@pytest.mark.parametrize("measure", sorted(MEASURES))
def test_it_is_fair_on_the_rows_it_was_tuned_on(measure, hiring):
    model = FairDecisionClassifier(regression(), measure, 0.04)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    assert model.violation_ == 0
    assert model.classes_.dtype == np.unique(hiring.y).dtype
    assert unfairness(model, hiring, hiring.sex, measure) <= 0.04 + 1e-9
    assert model.score(hiring.X, hiring.y) > 0.6
    assert len(model.levels_) == len(model.multipliers_) == len(model.constraint_names_)
    assert len(model.cell_weights_) == len(model.cell_names_)


@pytest.mark.parametrize(
    "estimator",
    [None, GaussianNB(), RandomForestClassifier(10, min_samples_leaf=20, random_state=0)],
)
def test_any_classifier_becomes_fairer(estimator, hiring):
    arguments = {"fairness_measure": "demographic_parity", "random_state": 0}
    gaps = [
        unfairness(
            FairDecisionClassifier(estimator, epsilon=epsilon, **arguments).fit(
                hiring.X, hiring.y, sensitive_features=hiring.sex
            ),
            hiring,
            hiring.sex,
            "demographic_parity",
        )
        for epsilon in (0.0, np.inf)
    ]
    assert gaps[0] < 0.5 * gaps[1]


@pytest.mark.parametrize(
    ("estimator", "argument", "expected"),
    [
        (HistGradientBoostingClassifier(max_iter=8), "max_iter", 2),
        (RandomForestClassifier(8), "n_estimators", 4),
        (RandomForestClassifier(1), "n_estimators", 1),
    ],
)
def test_models_of_the_groups_have_fewer_trees(estimator, argument, expected, hiring):
    model = FairDecisionClassifier(estimator, epsilon=0.1)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    assert getattr(model.label_model_, argument) == getattr(estimator, argument)
    assert [getattr(own, argument) for own in model.cell_models_[0]] == [expected, expected]


def test_the_default_regression_is_the_same_of_dense_and_of_sparse_features(hiring):
    X = np.where(np.abs(hiring.X) > 0.5, hiring.X, 0.0)
    kinds = [X, csr_matrix(X), pd.DataFrame.sparse.from_spmatrix(csr_matrix(X))]
    found = []
    for kind in kinds:
        model = FairDecisionClassifier(fairness_measure="demographic_parity")
        tuned(model, kind, hiring.y, hiring.sex)
        found.append(model.predict_proba(kind))
    np.testing.assert_allclose(found[1], found[0], atol=0.02)
    np.testing.assert_allclose(found[2], found[1], atol=1e-12)


def test_with_room_enough_it_is_the_plain_model(hiring):
    model = FairDecisionClassifier(regression(), epsilon=np.inf)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    plain = regression().fit(hiring.X, hiring.y)
    np.testing.assert_array_equal(model.predict(hiring.X), plain.predict(hiring.X))
    np.testing.assert_array_equal(model.cell_weights_, 1.0)


def test_a_fitted_model_is_kept_as_it_is(hiring):
    plain = regression().fit(hiring.X, hiring.y)
    before = pickle.dumps(plain)
    model = FairDecisionClassifier(plain, "demographic_parity", 0.0, prefit=True)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    assert model.label_model_ is plain
    assert pickle.dumps(plain) == before
    assert unfairness(model, hiring, hiring.sex, "demographic_parity") <= 0.002  # a row


def test_it_decides_by_the_formula(hiring):
    model = FairDecisionClassifier(regression(), "equalized_odds")
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    ((first, second),) = model.cell_models_
    within = np.stack([own.predict_proba(hiring.X) for own in (first, second)], axis=1)
    cells = model.label_model_.predict_proba(hiring.X)[:, :, None] * within
    scores = (cells * model.cell_weights_.reshape(2, 2)).sum(2)
    np.testing.assert_array_equal(model.predict(hiring.X), model.classes_[scores.argmax(1)])
    np.testing.assert_allclose(
        model.decision_function(hiring.X), scores[:, 1] - scores[:, 0], atol=1e-12
    )


def test_probabilities_are_those_of_the_estimator(hiring):
    model = FairDecisionClassifier(regression(), "demographic_parity", 0.0)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    proba = model.predict_proba(hiring.X)
    plain = regression().fit(hiring.X, hiring.y).predict_proba(hiring.X)
    np.testing.assert_allclose(proba.sum(1), 1.0)
    np.testing.assert_allclose(proba, plain, atol=1e-12)
    assert (model.classes_[proba.argmax(1)] != model.predict(hiring.X)).any()


@pytest.mark.parametrize("estimator", [regression(), HistGradientBoostingClassifier(max_iter=8)])
@pytest.mark.parametrize("use_sensitive", [False, True])
def test_trees_are_the_mean_of_the_folds_models(estimator, use_sensitive, hiring):
    """Their labels only: other models learn them from all rows; the groups are always a mean."""
    model = FairDecisionClassifier(
        estimator, "demographic_parity", use_sensitive=use_sensitive, n_folds=4, random_state=0
    )
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    has_trees = isinstance(estimator, HistGradientBoostingClassifier)
    label_models = [model.label_model_] + [model.aware_model_] * use_sensitive
    assert [isinstance(one, FoldMean) for one in label_models] == [has_trees] * len(label_models)
    for mean in [*model.cell_models_[0], *([model.label_model_] if has_trees else [])]:
        assert len(mean) == 4
        expected = np.mean([own.predict_proba(hiring.X) for own in mean], axis=0)
        np.testing.assert_allclose(mean.predict_proba(hiring.X), expected)


def test_the_label_is_learnt_from_all_rows(hiring):
    model = FairDecisionClassifier(regression(), "demographic_parity", random_state=0)
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    plain = regression().fit(hiring.X, hiring.y)
    np.testing.assert_allclose(model.predict_proba(hiring.X), plain.predict_proba(hiring.X))


def test_a_label_of_a_single_group_needs_no_model():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y, s = np.repeat([0, 1], 200), np.where(np.arange(400) < 300, "a", "b")
    model = FairDecisionClassifier(LogisticRegression(), "demographic_parity", random_state=0)
    model.fit(X, y, sensitive_features=s)
    cells = model._probabilities(X, None)[0]  # noqa: SLF001 - what `predict` starts from
    np.testing.assert_array_equal(cells[0, 1], 0.0)
    np.testing.assert_allclose(cells.sum((0, 1)), 1.0)


@pytest.mark.parametrize("use_sensitive", [False, True])
@pytest.mark.parametrize("name", ["LogisticRegression", "XGBClassifier"])
def test_a_label_of_a_single_row_is_known_to_the_models_of_all_folds(name, use_sensitive):
    estimator = LogisticRegression()
    if name == "XGBClassifier":
        estimator = pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, n_jobs=1)
    X = np.random.default_rng(0).normal(size=(120, 2))
    s, y = np.tile(["a", "b"], 60), np.repeat([0, 1], 60)
    for only in (0, 60, 119):
        y[only] = 2
        model = FairDecisionClassifier(
            estimator, "demographic_parity", use_sensitive=use_sensitive, random_state=0
        )
        model.fit(X, y, sensitive_features=s)
        aware = {"sensitive_features": s} if use_sensitive else {}
        assert model.predict_proba(X, **aware).shape == (120, 3)
        y[only] = 0 if only < 60 else 1


def test_a_fold_without_a_class_counts_as_none():
    one, two = (
        GaussianNB().fit([[0.0], [1.0], [2.0], [3.0]], y) for y in ([0, 0, 2, 2], [0, 0, 1, 1])
    )
    mean = FoldMean([one, two])
    np.testing.assert_array_equal(mean.classes_, [0, 1, 2])
    (first, last), (_, middle) = (own.predict_proba([[0.5]])[0] / 2 for own in (one, two))
    np.testing.assert_allclose(mean.predict_proba([[0.5]])[0], [2 * first, middle, last])


def test_levels_are_those_of_new_rows_though_rare_groups_are_memorized():
    """Weights of 10 and more on groups of 100 rows: on training rows the level is .25 to .35."""

    def table(n, seed):
        rng = np.random.default_rng(seed)
        s = rng.choice(8, n, p=[0.4, 0.4, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025])
        X = rng.normal(size=(n, 6))
        X[:, 0] += 0.8 * (s % 2)
        y = (X[:, 0] + X[:, 1] + 0.3 * rng.logistic(size=n) > 0.5).astype(int)
        return X, y, s

    X, y, s = table(4000, 0)
    trees = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0)
    model = FairDecisionClassifier(trees, "demographic_parity", 0.0, random_state=0)
    model.fit(X, y, sensitive_features=s)
    X, y, s = table(60_000, 1)
    new = fairness_levels(y, model.predict(X), s, "demographic_parity").gaps.max()
    assert abs(np.abs(model.levels_).max() - new) < 0.03


def test_trees_keep_exact_odds_on_new_rows_about_as_well_as_they_say():
    """A refitted model had .18 on new rows where the folds had said .005."""
    lightgbm = pytest.importorskip("lightgbm")
    rows = load("adult").split(10).train
    order = np.random.default_rng(0).permutation(len(rows.y))
    own, new = order[:6000], order[6000:]
    trees = lightgbm.LGBMClassifier(
        n_estimators=100,
        num_leaves=15,
        min_child_samples=50,
        colsample_bytree=0.3,
        n_jobs=1,
        verbose=-1,
    )
    model = FairDecisionClassifier(trees, "equalized_odds", 0.0, random_state=0)
    model.fit(rows.X[own], rows.y[own], sensitive_features=rows.s[own])
    levels = fairness_levels(rows.y[new], model.predict(rows.X[new]), rows.s[new], "equalized_odds")
    assert levels.gaps.max() < np.abs(model.levels_).max() + 0.03


def test_a_forest_that_has_memorized_its_rows_is_fair_on_new_rows(hiring):
    forest = RandomForestClassifier(20, random_state=0)
    model = FairDecisionClassifier(forest, "demographic_parity", 0.0, random_state=0)
    X, y, s = (part[:1000] for part in (hiring.X, hiring.y, hiring.sex))
    model.fit(X, y, sensitive_features=s)
    plain = forest.fit(X, y)
    X, y, s = (part[1000:] for part in (hiring.X, hiring.y, hiring.sex))
    fair, before = (
        fairness_levels(y, own.predict(X), s, "demographic_parity").gaps.max()
        for own in (model, plain)
    )
    assert np.abs(model.levels_).max() < 0.01
    assert fair < 0.5 * before


def test_decisions_that_change_nothing_are_a_warning():
    """One feature that tells the label: no weight changes what is decided."""
    rng = np.random.default_rng(0)
    s, y = rng.integers(0, 2, 900), np.zeros(900, dtype=int)
    y[rng.random(900) < 0.2 + 0.5 * s] = 1
    X = np.stack([y, rng.normal(size=900)], axis=1)
    tree = RandomForestClassifier(5, max_features=None, random_state=0)
    model = FairDecisionClassifier(tree, "demographic_parity", 0.01, random_state=0)
    with pytest.warns(FairnessWarning):
        model.fit(X, y, sensitive_features=s)


class TestLottery:
    @pytest.fixture
    def model(self, hiring):
        model = FairDecisionClassifier(
            regression(),
            "equalized_odds",
            0.0,
            use_sensitive=True,
            lottery=True,
            random_state=0,
        )
        return tuned(model, hiring.X, hiring.y, hiring.sex)

    def test_a_lottery_that_keeps_the_bounds_is_no_warning(self, model, hiring):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FairnessWarning)
            tuned(clone(model), hiring.X, hiring.y, hiring.sex)

    def test_the_same_row_gets_the_same_answer(self, model, hiring):
        assert model.lottery_
        order = np.random.default_rng(0).permutation(1500)
        shuffled = model.predict(hiring.X.iloc[order], sensitive_features=hiring.sex.iloc[order])
        again = model.predict(hiring.X, sensitive_features=hiring.sex)
        np.testing.assert_array_equal(shuffled, again[order])

    def test_expected_levels_are_within_the_bounds(self, model, hiring):
        assert model.violation_ == pytest.approx(0)
        rates = model.predict_proba(hiring.X, sensitive_features=hiring.sex)
        hired = pd.Series(rates[:, list(model.classes_).index("hired")], index=hiring.y.index)
        for _, own in hired.groupby(hiring.y):
            assert np.ptp(own.groupby(hiring.sex).mean()) < 0.01
        drawn = model.predict(hiring.X, sensitive_features=hiring.sex) == "hired"
        assert drawn.mean() == pytest.approx(hired.mean(), abs=0.03)

    def test_files(self, model, hiring, tmp_path):
        same = persistence.load(persistence.save(model, tmp_path / "model.skops"))
        aware = {"sensitive_features": hiring.sex}
        np.testing.assert_array_equal(
            same.predict(hiring.X, **aware), model.predict(hiring.X, **aware)
        )

    def test_lots_are_even_and_the_same_in_every_form(self):
        X = np.random.default_rng(0).normal(size=(4000, 3)).round(1)
        lots = draw_lots(X, "ab")
        assert ((lots >= 0) & (lots < 1)).all()
        distinct = np.unique(lots)
        np.testing.assert_allclose(
            np.quantile(distinct, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.03
        )
        np.testing.assert_array_equal(draw_lots(csr_matrix(X), "ab"), lots)
        np.testing.assert_array_equal(draw_lots(pd.DataFrame(X), "ab"), lots)
        assert (draw_lots(X, "cd") != lots).any()
        frame = pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 1, 1]})
        one, two, three = draw_lots(frame, "ab")
        assert one == three != two


def test_three_labels_and_three_groups(hiring):
    X = hiring.X.assign(club=(hiring.race == "a") + np.random.default_rng(1).normal(size=1500))
    y = pd.qcut(X["years"] + 5 * (hiring.race == "a"), 3, labels=["low", "mid", "high"])
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.3, "mid", np.asarray(y))
    model = tuned(FairDecisionClassifier(regression(), epsilon=0.08), X, y, hiring.race)
    assert model.violation_ == 0
    levels = fairness_levels(y, model.predict(X), hiring.race, "equalized_odds")
    assert levels.gaps.max() <= 0.08 + 1e-9
    assert model.predict_proba(X).shape == (1500, 3)
    assert model.decision_function(X).shape == (1500, 3)


def test_attributes_apart_need_no_crossing(hiring):
    s = pd.DataFrame({"sex": hiring.sex, "race": hiring.race})
    both = [On("sex", "demographic_parity"), On("race", "demographic_parity", 0.02)]
    model = tuned(FairDecisionClassifier(regression(), both, 0.04), hiring.X, hiring.y, s)
    assert model.violation_ == 0
    predicted = model.predict(hiring.X)
    for column, allowed in {"sex": 0.04, "race": 0.06}.items():
        levels = fairness_levels(hiring.y, predicted, s[column], "demographic_parity")
        assert levels.gaps.max() <= allowed + 1e-9
    assert [groups.n_groups for groups in model.cell_groups_] == [2, 3]
    assert len(model.cell_weights_) == 2 * 6


def test_levels_of_few_rows_may_be_a_standard_error_away(hiring):
    model = FairDecisionClassifier(regression(), "demographic_parity", 0.001)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    rows = group_rows(hiring.y, hiring.sex)
    parity = constraints_of("demographic_parity", rows.groups)
    allowed = parity.slacken_for(rows, 0.001).slack
    assert (np.abs(model.levels_) <= allowed + 1e-9).all()
    assert np.abs(model.levels_).max() > 0.001


def test_a_slack_for_each_constraint(hiring):
    epsilon = [0.0, 0.0, np.inf, np.inf]
    model = FairDecisionClassifier(regression(), "equalized_odds", epsilon).fit(
        hiring.X, hiring.y, sensitive_features=hiring.sex
    )
    assert np.abs(model.levels_[:2]).max() <= 0.01
    np.testing.assert_array_equal(model.multipliers_[2:], 0.0)


def test_own_matrices(hiring):
    C = [[0.0, 0.0, 1.0, -1.0]]
    model = FairDecisionClassifier(regression(), ([0.0], C), 0.05)
    tuned(model, hiring.X, hiring.y, hiring.sex)
    wrong = model.predict(hiring.X) != hiring.y
    rates = wrong[hiring.y == "refused"].groupby(hiring.sex).mean()
    assert abs(rates["F"] - rates["M"]) <= 0.05 + 1e-9
    assert model.levels_ == pytest.approx([rates["F"] - rates["M"]])


def test_unknown_values_are_in_no_constraint(hiring):
    sex = hiring.sex.mask(np.arange(1500) % 5 == 0)
    model = FairDecisionClassifier(regression(), "demographic_parity", 0.04)
    tuned(model, hiring.X, hiring.y, sex)
    weights = dict(zip(model.cell_names_, model.cell_weights_, strict=True))
    assert weights["decision=hired, sex=?"] == weights["decision=refused, sex=?"] == 1
    assert unfairness(model, hiring, sex, "demographic_parity") <= 0.04 + 1e-9


def test_sample_weights_are_used(hiring):
    weight = np.where(hiring.sex == "F", 5.0, 1.0)
    model = FairDecisionClassifier(regression(), "demographic_parity")
    tuned(model, hiring.X, hiring.y, hiring.sex, weight)
    levels = fairness_levels(
        hiring.y,
        model.predict(hiring.X),
        hiring.sex,
        "demographic_parity",
        sample_weight=weight,
    )
    np.testing.assert_allclose(levels.values, model.levels_, atol=1e-12)
    with pytest.raises(ValueError, match="sample_weight: KNeighborsClassifier takes none"):
        FairDecisionClassifier(KNeighborsClassifier()).fit(
            hiring.X, hiring.y, sensitive_features=hiring.sex, sample_weight=weight
        )


class TestAware:
    @pytest.fixture
    def model(self, hiring):
        model = FairDecisionClassifier(regression(), "equalized_odds", 0.02, use_sensitive=True)
        return tuned(model, hiring.X, hiring.y, hiring.sex)

    def test_it_is_fair_and_more_accurate(self, model, hiring):
        aware = {"sensitive_features": hiring.sex}
        assert unfairness(model, hiring, hiring.sex, "equalized_odds", **aware) <= 0.02 + 1e-9
        blind = FairDecisionClassifier(regression(), "equalized_odds", 0.02)
        tuned(blind, hiring.X, hiring.y, hiring.sex)
        assert model.score(hiring.X, hiring.y, **aware) > blind.score(hiring.X, hiring.y)

    def test_small_groups_learn_from_all_rows(self, tmp_path):
        """Slopes are the same everywhere: a model of each group's own rows would learn noise."""
        rng = np.random.default_rng(0)
        s = rng.choice(["a", "b", "c"], 900, p=[0.88, 0.06, 0.06])
        X = rng.normal(size=(900, 20))
        y = (X[:, :3].sum(1) + (s != "a") + rng.logistic(size=900) > 0.5).astype(int)
        frame, values = pd.DataFrame(X).add_prefix("x"), {"sensitive_features": s}
        model = FairDecisionClassifier(
            regression(), "demographic_parity", 0.05, use_sensitive=True, random_state=0
        ).fit(frame, y, **values)
        told = model.aware_model_.predict_proba(
            frame.assign(**{f"s={v}": (s == v).astype(float) for v in "abc"})
        )
        codes = np.searchsorted(["a", "b", "c"], s)
        cells = model._probabilities(frame, s)[0][:, codes, np.arange(900)]  # noqa: SLF001
        np.testing.assert_allclose(cells.T, told, atol=0.011)  # a hundredth breaks ties
        same = persistence.load(persistence.save(model, tmp_path / "model.skops"))
        np.testing.assert_array_equal(same.predict(frame, **values), model.predict(frame, **values))
        with pytest.warns(UserWarning, match="every value counts as unknown"):
            model.predict(frame)

    def test_unknown_values_never_fail(self, model, hiring):
        sex = hiring.sex.mask(np.arange(1500) % 2 == 0)
        mixed = model.predict(hiring.X, sensitive_features=sex)
        known = model.predict(hiring.X, sensitive_features=hiring.sex)
        np.testing.assert_array_equal(mixed[1::2], known[1::2])
        with pytest.warns(UserWarning, match="not passed"):
            nothing = model.predict(hiring.X)
        np.testing.assert_array_equal(mixed[::2], nothing[::2])
        with pytest.warns(UserWarning, match="never seen, such as 'X'"):
            strange = model.predict(hiring.X, sensitive_features=np.full(1500, "X"))
        np.testing.assert_array_equal(strange, nothing)

    def test_a_blind_model_refuses_them(self, hiring):
        model = FairDecisionClassifier(regression()).fit(
            hiring.X, hiring.y, sensitive_features=hiring.sex
        )
        with pytest.raises(ValueError, match="does not use them"):
            model.predict(hiring.X, sensitive_features=hiring.sex)

    def test_probabilities_are_those_given_the_group(self):
        rng = np.random.default_rng(0)
        probability = rng.dirichlet(np.ones(6), 50).T.reshape(2, 3, 50)
        group = rng.integers(-1, 3, 50)
        found = given_groups(probability, group)
        np.testing.assert_allclose(found.sum((0, 1)), 1.0)
        for i, r in enumerate(group):
            if r < 0:
                np.testing.assert_array_equal(found[:, :, i], probability[:, :, i])
                continue
            exact = np.zeros((2, 3))
            exact[:, r] = probability[:, r, i] / probability[:, r, i].sum()
            np.testing.assert_allclose(found[:, :, i], 0.99 * exact + 0.01 * probability[:, :, i])


class TestConventions:
    @pytest.fixture
    def model(self, hiring):
        return FairDecisionClassifier(regression(), "demographic_parity").fit(
            hiring.X, hiring.y, sensitive_features=hiring.sex
        )

    def test_clone_and_pickle(self, model, hiring):
        assert clone(model).get_params()["epsilon"] == model.epsilon
        assert not hasattr(clone(model), "classes_")
        same = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
        np.testing.assert_array_equal(same.predict(hiring.X), model.predict(hiring.X))

    def test_files(self, hiring, tmp_path):
        model = FairDecisionClassifier(regression(), "demographic_parity", use_sensitive=True).fit(
            hiring.X, hiring.y, sensitive_features=hiring.sex
        )
        same = persistence.load(persistence.save(model, tmp_path / "model.skops"))
        aware = {"sensitive_features": hiring.sex}
        np.testing.assert_array_equal(
            same.predict_proba(hiring.X, **aware), model.predict_proba(hiring.X, **aware)
        )
        assert same.groups_.names == model.groups_.names

    def test_pipelines_of_frames(self, hiring):
        frame = hiring.X.assign(race=hiring.race)
        encode = make_column_transformer(
            (OneHotEncoder(), ["race"]), (StandardScaler(), ["skill", "years", "grade"])
        )
        model = FairDecisionClassifier(
            make_pipeline(encode, LogisticRegression()), "demographic_parity"
        ).fit(frame, hiring.y, sensitive_features=hiring.sex)
        assert list(model.feature_names_in_) == list(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"skill": "talent"}))

    def test_routing(self, hiring):
        with sklearn.config_context(enable_metadata_routing=True):
            model = FairDecisionClassifier(
                LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True),
                "demographic_parity",
                use_sensitive=True,
                random_state=0,
            ).set_fit_request(sensitive_features=True, sample_weight=True)
            model.set_score_request(sample_weight=True, sensitive_features=True)
            given = {"sensitive_features": hiring.sex, "sample_weight": np.ones(1500)}
            scores = cross_val_score(model, hiring.X, hiring.y, cv=2, params=given)
            assert (scores > 0.5).all()
            search = GridSearchCV(model, {"epsilon": [0.0, 1.0]}, cv=2)
            search.fit(hiring.X, hiring.y, **given)
            assert search.best_params_ == {"epsilon": 1.0}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"fairness_measure": "fairness"}, "fairness_measure: got 'fairness'"),
            ({"epsilon": -1.0}, "epsilon: expected at least 0"),
            ({"epsilon": [0.1, 0.2]}, "epsilon: expected a number or one per constraint"),
            ({"n_folds": 1}, "n_folds"),
        ],
    )
    def test_errors_name_the_argument(self, arguments, message, hiring):
        model = FairDecisionClassifier(LogisticRegression(), **arguments)
        with pytest.raises(ValueError, match=message):
            model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
        assert not hasattr(model, "classes_")

    def test_it_needs_probabilities_and_sensitive_values(self, hiring):
        with pytest.raises(TypeError, match="estimator: expected a classifier with predict_proba"):
            FairDecisionClassifier(RidgeClassifier()).fit(
                hiring.X, hiring.y, sensitive_features=hiring.sex
            )
        with pytest.raises(ValueError, match="sensitive_features: required"):
            FairDecisionClassifier().fit(hiring.X, hiring.y)

    def test_what_is_not_kept_is_a_warning(self):
        s = np.repeat([0, 1], 200)  # of group 0 all is known, of group 1 nothing
        y = np.where(s == 0, 1, np.tile([0, 1], 200))
        model = FairDecisionClassifier(LogisticRegression(C=1e6), "accuracy_parity", 0.1)
        with pytest.warns(UserWarning, match=r"Every validation row is predicted as 1\."):
            tuned(model, s[:, None].astype(float), y, s)
        assert model.violation_ == pytest.approx(0.15)

    def test_rows_given_to_tune_on(self, hiring):
        rows = [part[:1000] for part in (hiring.X, hiring.y, hiring.sex)]
        held = [part[1000:] for part in (hiring.X, hiring.y, hiring.sex)]
        model = FairDecisionClassifier(regression(), "demographic_parity").fit(
            *rows[:2], sensitive_features=rows[2], validation=held
        )
        levels = fairness_levels(held[1], model.predict(held[0]), held[2], "demographic_parity")
        np.testing.assert_allclose(model.levels_, levels.values, atol=1e-12)


def test_a_bar_of_the_folds_says_how_long_it_will_take(hiring, capsys):
    model = FairDecisionClassifier(regression(), verbose=True)
    model.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    shown = capsys.readouterr().err
    assert "folds" in shown
    assert "0:00:00 left" in shown
    clone(model).set_params(verbose="auto").fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    assert not capsys.readouterr().err
