"""scikit-learn's own checks and its tools: pipelines, searches, routing, cloning."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairgrad.sklearn import FairGradClassifier

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")


@parametrize_with_checks([FairGradClassifier(fairness_measure=None)])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairGradClassifier(
            "demographic_parity", fairness_rate=0.05, max_iter=50, random_state=0
        )
        yield model.set_fit_request(sensitive_features=True)


def test_cross_validation_routes_sensitive_features(routed, hiring):
    scores = cross_val_score(
        routed, hiring.X, hiring.y, cv=3, params={"sensitive_features": hiring.sex}
    )
    assert (scores > 0.5).all()


def test_search_over_a_pipeline_routes_sensitive_features(routed, hiring):
    frame = hiring.X.assign(race=hiring.race)
    encode = make_column_transformer(
        (OneHotEncoder(), ["race"]), (StandardScaler(), ["skill", "years", "grade"])
    )
    search = GridSearchCV(
        make_pipeline(encode, routed), {"fairgradclassifier__epsilon": [0.0, 1.0]}, cv=2
    )
    search.fit(frame, hiring.y, sensitive_features=hiring.sex)
    assert search.best_params_["fairgradclassifier__epsilon"] == 1.0  # fairness costs
    assert search.predict(frame).shape == (1500,)


def test_search_without_routing_fails_loudly(hiring):
    search = GridSearchCV(
        FairGradClassifier(max_iter=2), {"epsilon": [0.0]}, cv=2, error_score="raise"
    )
    with pytest.raises(ValueError, match="sensitive_features: required"):
        search.fit(hiring.X, hiring.y)


def test_pipeline_without_routing_takes_prefixed_arguments(hiring):
    model = make_pipeline(StandardScaler(), FairGradClassifier(max_iter=3, random_state=0))
    model.fit(hiring.X, hiring.y, fairgradclassifier__sensitive_features=hiring.sex)
    assert set(model.predict(hiring.X)) <= {"hired", "refused"}


def test_frames_arrays_and_sparse_matrices_give_the_same_model(hiring):
    arguments = {"max_iter": 3, "random_state": 0, "standardize": False}
    X = np.where(np.abs(hiring.X) > 0.5, hiring.X, 0.0)
    kinds = [pd.DataFrame(X, columns=list(hiring.X)), X, sparse.csr_matrix(X), sparse.csc_array(X)]
    proba = [
        FairGradClassifier(**arguments)
        .fit(kind, hiring.y, sensitive_features=hiring.sex)
        .predict_proba(kind)
        for kind in kinds
    ]
    for other in proba[1:]:
        np.testing.assert_allclose(other, proba[0], atol=1e-6)


def test_clone_keeps_the_parameters_and_nothing_fitted(hiring):
    model = FairGradClassifier("accuracy_parity", epsilon=0.1, max_iter=2).fit(
        hiring.X, hiring.y, sensitive_features=hiring.sex
    )
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "classes_")


def test_feature_names_are_kept_and_checked(hiring):
    model = FairGradClassifier(max_iter=2).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)
    assert list(model.feature_names_in_) == list(hiring.X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(hiring.X.rename(columns={"skill": "talent"}))


def test_single_precision_stays_single_precision(hiring):
    X = hiring.X.to_numpy(dtype=np.float32)
    model = FairGradClassifier(max_iter=2).fit(X, hiring.y, sensitive_features=hiring.sex)
    assert model.state_["network.parameters"].dtype == np.float32


def test_fitted_state_is_arrays(hiring):
    model = FairGradClassifier(max_iter=2, hidden_layer_sizes=(4,)).fit(
        hiring.X, hiring.y, sensitive_features=hiring.sex
    )
    assert all(isinstance(value, np.ndarray) for value in model.state_.values())
    assert all(isinstance(value, np.ndarray) for value in model.history_.values())
