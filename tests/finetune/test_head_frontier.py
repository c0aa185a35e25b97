"""A frontier of heads is what training on the features by hand gives, as ordinary modules."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fairgrad import FairGradClassifier, Frontier, fairness_levels
from fairgrad.finetune import compute_features, finetune_head
from fairgrad.sklearn import FairDecisionClassifier

EPSILONS = [0.0, 0.05, np.inf]


def tune(network, rows, **options):
    X, y, s = rows
    settings = {"fairness_measure": "demographic_parity", "epsilons": EPSILONS, "random_state": 0}
    return finetune_head(network, X, y, s, **settings | options)


def logits(module, X):
    with torch.no_grad():
        return module.eval()(torch.from_numpy(X)).numpy()


def test_heads_are_those_of_a_frontier_on_the_features(network, rows, make_rows):
    validation = make_rows(500, seed=1)
    found = tune(network, rows, validation=validation)
    X, y, s = rows
    own = [compute_features(network, part) for part in (X, validation[0])]
    by_hand = Frontier(FairGradClassifier(), "demographic_parity", EPSILONS, random_state=0).fit(
        own[0], y, sensitive_features=s, validation=(own[1], *validation[1:])
    )
    assert found.points.equals(by_hand.points_)
    for position, model in enumerate(by_hand.estimators_):
        margin = logits(found.module(position), validation[0]) @ [-1, 1]
        np.testing.assert_allclose(margin, model.decision_function(own[1]), atol=1e-5)


def test_a_head_equals_one_fitted_alone(network, rows):
    """Independent of the frontier: the estimator itself, on the body's outputs."""
    X, y, s = rows
    found = tune(network, rows, validation=rows)
    with torch.no_grad():
        features = copy.deepcopy(network.body).eval()(torch.from_numpy(X)).numpy()
    seed = found.frontier.seed_
    alone = FairGradClassifier(
        "demographic_parity", epsilon=0.05, random_state=seed,
    ).fit(features, y, sensitive_features=s)  # fmt: skip
    margin = logits(found.module(1), X) @ [-1, 1]
    np.testing.assert_allclose(margin, alone.decision_function(features), atol=1e-4)


def test_logits_are_features_times_head(network, rows):
    X, _, _ = rows
    found = tune(network, rows)
    module = found.module(0)
    features = compute_features(network, X)
    expected = features @ module.classifier.weight.detach().numpy().T
    expected += module.classifier.bias.detach().numpy()
    np.testing.assert_allclose(logits(module, X), expected, atol=1e-5)
    assert module.classifier.weight.shape == (2, 8)


def test_the_given_network_is_left_as_it_is(network, rows):
    before = copy.deepcopy(network.state_dict())
    found = tune(network, rows)
    module = found.select(max_unfairness=1.0)
    with torch.no_grad():
        module.body[0].weight.zero_()
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_the_fair_head_is_fairer_on_new_rows(network, make_rows):
    found = tune(network, make_rows(4000, seed=0))
    X, y, s = make_rows(4000, seed=1)
    unfair = [
        fairness_levels(
            y, found.classes[logits(found.module(i), X).argmax(1)], s, "demographic_parity"
        ).unfairness
        for i in (0, 2)
    ]
    assert unfair[1] > 0.1
    assert unfair[0] < 0.4 * unfair[1]


def test_several_classes_of_any_kind(make_network, make_rows):
    X, y, s = make_rows(1500, seed=0, n_labels=3)
    names = np.array(["high", "low", "middle"])[y]
    network = make_network(n_outputs=10)
    found = finetune_head(
        network, X, names, s, fairness_measure="equalized_odds", epsilons=EPSILONS, random_state=0
    )
    module = found.module(1)
    assert found.classes.tolist() == ["high", "low", "middle"]
    model = found.frontier.estimators_[1]
    features = compute_features(network, X)
    np.testing.assert_allclose(logits(module, X), model.decision_function(features), atol=1e-5)
    predicted = found.classes[logits(module, X).argmax(1)]
    assert (predicted == names).mean() > 0.6


def test_one_output_stays_one_output(make_network, rows):
    network = make_network(n_outputs=1)
    found = tune(network, rows)
    X, _, _ = rows
    module, model = found.module(0), found.frontier.estimators_[0]
    assert module.classifier.out_features == 1
    expected = model.decision_function(compute_features(network, X))
    np.testing.assert_allclose(logits(module, X)[:, 0], expected, atol=1e-5)


def test_precision_and_mode_are_the_networks(rows):
    X, y, s = rows
    network = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3)).double()
    found = finetune_head(network, X.astype(np.float64), y, s, epsilons=EPSILONS, random_state=0)
    assert found.module(0)[1].weight.dtype == torch.float64


def test_heads_on_features_computed_before(network, rows):
    X, y, s = rows
    features = compute_features(network, X)
    again = tune(network.classifier, (features, y, s))
    assert again.points.equals(tune(network, rows).points)


@pytest.mark.parametrize(
    "estimator",
    [
        FairGradClassifier(hidden_layer_sizes=(4,)),
        FairDecisionClassifier(),
        3,
    ],
)
def test_an_estimator_that_is_not_linear_is_refused(network, rows, estimator):
    with pytest.raises(ValueError, match="estimator: expected a linear FairGradClassifier"):
        tune(network, rows, estimator=estimator)


def test_missing_sensitive_values_are_refused(network, rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="sensitive_features: required"):
        finetune_head(network, X, y, None)
