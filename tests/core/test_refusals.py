"""Inputs that random tries have found: each is refused by a sentence that names the argument."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from fairgrad.audit import Audit, ImpactTable
from fairgrad.frontier import Frontier
from fairgrad.groups import Groups
from fairgrad.measures import On
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.torch import CrossEntropyLoss, MultiMarginLoss

Y, S = np.array([0, 1] * 20), np.array([0, 0, 1, 1] * 10)
X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize("weight", [np.full(40, 1j), np.full(40, 1e308)])
def test_weights_that_cannot_be_summed(weight):
    with pytest.raises(ValueError, match="^sample_weight: expected"):
        Groups.from_data(Y, S, sample_weight=weight)


def test_a_measure_of_no_attribute():
    with pytest.raises(ValueError, match="^attributes: On expected at least one"):
        On((), "accuracy_parity")


def test_more_combinations_than_can_be_numbered():
    values = np.arange(5000)
    with pytest.raises(ValueError, match="^sensitive_features: 6 attributes with .* combinations"):
        Groups.from_data(values % 2, {f"a{i}": values for i in range(6)})


@pytest.mark.parametrize(
    ("argument", "value"),
    [("prediction", ["s", "y"]), ("prediction", None), ("sensitive_features", 3), ("count", None)],
)
def test_counts_whose_columns_are_not_named(argument, value):
    counts = pd.DataFrame({"y": [0, 1], "h": [0, 1], "s": ["a", "b"], "count": [5, 5]})
    names = {"target": "y", "prediction": "h", "sensitive_features": "s", argument: value}
    with pytest.raises(ValueError, match=f"^{argument}: got .* not a column of counts"):
        Audit.from_counts(counts, **names)


@pytest.mark.parametrize("score", [[], ["a"] * 40, [None] * 40])
def test_scores_that_are_none(score):
    with pytest.raises(ValueError, match="^y_score: expected"):
        ImpactTable.from_scores(score, S[: len(score)])


@pytest.mark.parametrize(
    "use",
    [
        lambda y, s, measure: CrossEntropyLoss(torch.as_tensor(y), torch.as_tensor(s), measure),
        lambda y, s, measure: FairGradClassifier(measure).fit(X, y, sensitive_features=s),
        lambda y, s, measure: Audit(y, y, s, measures=measure),
    ],
    ids=["loss", "estimator", "audit"],
)
def test_opportunity_with_three_labels_needs_to_know_which_is_desirable(use):
    with pytest.raises(ValueError, match=r"^y_desirable: .* labels are \[0, 1, 2\]"):
        use(np.arange(40) % 3, S, "equality_of_opportunity")


@pytest.mark.parametrize("kind", [CrossEntropyLoss, MultiMarginLoss])
def test_a_network_with_too_few_outputs(kind):
    criterion = kind(torch.as_tensor(Y), torch.as_tensor(S), "accuracy_parity")
    logits = torch.zeros(40, 1, requires_grad=True)
    with pytest.raises(ValueError, match="^input: expected one column per label"):
        criterion(logits, torch.as_tensor(Y), torch.as_tensor(S))


@pytest.mark.parametrize("features", [X[:, 0], X[:, :0], X.astype("S4"), X * np.nan])
def test_what_the_estimator_inside_refuses_is_named(features):
    model = FairDecisionClassifier(LogisticRegression(), "accuracy_parity")
    with pytest.raises(ValueError, match=r"\bX\b"):
        model.fit(features, Y, sensitive_features=S)


@pytest.mark.parametrize("features", [X[:, 0], X[:0], X * np.nan])
@pytest.mark.parametrize("measure", ["accuracy_parity", None])
def test_what_it_refuses_to_predict_is_named_too(features, measure):
    model = FairDecisionClassifier(LogisticRegression(), measure).fit(X, Y, sensitive_features=S)
    quick = FairGradClassifier(measure, max_iter=1, fairness_rate=0.1)
    for one in (model, quick.fit(X, Y, sensitive_features=S)):
        with pytest.raises(ValueError, match=r"\bX\b"):
            one.predict(features)


def quick():
    return FairGradClassifier(max_iter=2, fairness_rate=0.05)


def boosted(**options):
    module = pytest.importorskip("fairgrad.lightgbm")
    return module.FairGradLGBMClassifier(n_estimators=2, verbose=-1, **options)


MODELS = {
    "trees": boosted,
    "aware trees": lambda: boosted(use_sensitive=True),
    "estimator": quick,
    "decisions": lambda: FairDecisionClassifier(LogisticRegression()),
    "frontier": lambda: Frontier(quick(), epsilons=3),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("odd", [3, "m", csr_matrix(np.ones((40, 1))), None])
def test_an_attribute_that_is_no_column(make, odd):
    with pytest.raises(ValueError, match="^sensitive_features: expected one value per .* 'sex'"):
        make().fit(X, Y, sensitive_features={"sex": odd, "age": S})


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_labels_of_several_kinds(make):
    labels = np.array(["a", b"b", 1, "a"] * 10, dtype=object)
    with pytest.raises(TypeError, match="^y: values of one column must be of one kind; got bytes"):
        make().fit(X, labels, sensitive_features=S)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("argument", ["X", "y"])
@pytest.mark.parametrize("odd", [None, 3, "text", np.zeros((40, 2, 2)), np.full(40, 1j)])
def test_rows_that_are_none(make, argument, odd):
    rows = {"X": X, "y": Y, argument: odd}
    with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b"):
        make().fit(**rows, sensitive_features=S)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_rows_without_a_label(make):
    y = np.array(["no", "yes"], dtype=object)[Y]
    y[7] = None
    with pytest.raises(ValueError, match="^y: every row needs a label; row 7 has none"):
        make().fit(X, y, sensitive_features=S)


def test_trees_of_features_with_one_name():
    with pytest.raises(ValueError, match="^X: expected columns of different names, got '1' twice"):
        boosted().fit(pd.DataFrame(X, columns=[1, "a", "1"]), Y, sensitive_features=S)


@pytest.mark.parametrize("measure", ["accuracy_parity", None])
def test_what_trees_refuse_is_named(measure):
    words = np.array([[b"a", b"b"]] * 40, dtype=object)
    with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
        boosted().set_params(fairness_measure=measure).fit(words, Y, sensitive_features=S)
