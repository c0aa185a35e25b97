"""A frontier of fair decisions: the model below is fitted once."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad import FairnessWarning, fairness_levels
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairDecisionClassifier


class CountedRegression(LogisticRegression):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        """Fits and counts."""
        CountedRegression.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("aware", [False, True])
def test_one_fit_for_all_epsilons(aware, hiring):
    CountedRegression.fits = 0
    template = FairDecisionClassifier(
        CountedRegression(), "demographic_parity", use_sensitive=aware
    )
    frontier = Frontier(
        make_pipeline(StandardScaler(), template), epsilons=[0.0, 0.05, np.inf], random_state=0
    ).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    # Labels and the groups of each in three folds, and the labels once more from all rows.
    assert CountedRegression.fits == 3 * (3 + aware) + 1 + aware
    unfairness = frontier.points_["validation_unfairness"]
    assert unfairness.iloc[0] < 0.5 * unfairness.iloc[-1]
    np.testing.assert_array_equal(frontier.estimators_[-1][-1].cell_weights_, 1.0)


def test_points_are_those_of_the_models(hiring):
    held = np.arange(len(hiring.y)) % 4 == 0
    rows = (hiring.X[held], hiring.y[held], hiring.sex[held])
    model = FairDecisionClassifier(LogisticRegression(), "equalized_odds")
    frontier = Frontier(model, epsilons=[0.0, 0.1], random_state=0).fit(
        hiring.X[~held], hiring.y[~held], sensitive_features=hiring.sex[~held], validation=rows
    )
    for own, point in zip(frontier.estimators_, frontier.points_.to_dict("records"), strict=True):
        levels = fairness_levels(rows[1], own.predict(rows[0]), rows[2], "equalized_odds")
        assert point["validation_unfairness"] == pytest.approx(levels.unfairness)
        assert own.violation_ < 0.005


def test_each_model_is_what_its_own_fit_gives(hiring):
    model = FairDecisionClassifier(LogisticRegression(), "equalized_odds")
    rows = (hiring.X, hiring.y, hiring.sex)
    epsilons = [0.0, 0.01, 0.02, 0.05]
    frontier = Frontier(model, epsilons=epsilons, random_state=0).fit(
        hiring.X, hiring.y, sensitive_features=hiring.sex, validation=rows
    )
    for epsilon, own in zip(epsilons, frontier.estimators_, strict=True):
        alone = clone(model).set_params(epsilon=epsilon, random_state=frontier.seed_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            alone.fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
        np.testing.assert_array_equal(alone.multipliers_, own.multipliers_)
