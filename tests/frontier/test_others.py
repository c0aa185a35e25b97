"""Other estimators, one fit per epsilon; and post-processing beside the frontier."""

import numpy as np
import pytest
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad import fairness_levels
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairGradClassifier

# Fairlearn's reductions write into series in ways that pandas will refuse one day.
pytestmark = pytest.mark.filterwarnings("ignore:Setting a")
QUICK = FairGradClassifier(max_iter=8, batch_size=128)


class Reduction(ClassifierMixin, BaseEstimator):
    """Fairlearn's reduction with the slack as a parameter."""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon

    def fit(self, X, y, sensitive_features):
        bound = DemographicParity(difference_bound=max(self.epsilon, 1e-3))
        self.reduction_ = ExponentiatedGradient(LogisticRegression(), bound, max_iter=5)
        self.reduction_.fit(X, y, sensitive_features=sensitive_features)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.reduction_.predict(X, random_state=0)


@pytest.mark.parametrize(
    "wrap", [lambda model: model, lambda m: make_pipeline(StandardScaler(), m)]
)
def test_any_estimator_with_an_epsilon(hiring, wrap):
    y = (hiring.y == "hired").astype(int)
    frontier = Frontier(wrap(Reduction()), "demographic_parity", [0.0, 0.4], random_state=0)
    held_out = (hiring.X, y, hiring.sex)
    frontier.fit(hiring.X, y, sensitive_features=hiring.sex, validation=held_out)
    points = frontier.points_
    assert points["validation_unfairness"].iloc[0] < points["validation_unfairness"].iloc[1]
    for model, unfairness in zip(
        frontier.estimators_, points["validation_unfairness"], strict=True
    ):
        levels = fairness_levels(y, model.predict(hiring.X), hiring.sex, "demographic_parity")
        assert unfairness == pytest.approx(levels.unfairness)
