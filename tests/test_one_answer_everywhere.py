"""One question, one answer: the rooms agree on the desirable label and on how unfair a model is."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from sklearn.base import clone

from fairgrad import Audit, FairGradClassifier, Frontier, Report, fairness_levels
from fairgrad.boosting import BoostingObjective
from fairgrad.cli.app import app
from fairgrad.finetune import finetune
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.sklearn import FairDecisionClassifier, make_fairness_scorer
from fairgrad.torch import CrossEntropyLoss
from fairgrad.training import Member, TrainingPlan, TrainingTable, train

RNG = np.random.default_rng(0)
SEX = RNG.choice(["F", "M"], 800)
X = RNG.normal(size=(800, 3)) + np.outer(SEX == "M", [1.0, 0.0, 0.0])
Y = (X.sum(1) + RNG.normal(size=800) > 0.8).astype(int)
NAMED = {"0, 1": [0, 1], "1, 2": [1, 2], "no, yes": ["no", "yes"]}
MEASURE = "equality_of_opportunity"


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
class TestDesirableLabel:
    """Of two labels the second in sorted order, everywhere."""

    @pytest.fixture
    def y(self, names):
        return np.array(names)[Y]

    @pytest.fixture
    def expected(self):
        """Levels of the constant prediction 1 with labels 0 and 1: those of label 0 are empty."""
        return fairness_levels(Y, Y * (SEX == "M"), SEX, MEASURE, y_desirable=1).values

    def test_levels_and_audit(self, y, names, expected):
        predicted = np.array(names)[Y * (SEX == "M")]
        np.testing.assert_allclose(fairness_levels(y, predicted, SEX, MEASURE).values, expected)
        audit = Audit(y, predicted, {"sex": SEX}, measures=[MEASURE])
        np.testing.assert_allclose(audit.findings[0].levels, expected, atol=1e-12)
        for shown in (audit.summary(), audit.to_markdown(), Report(audit).html()):
            assert str(names[1]) in shown
            assert "selected means" in " ".join(shown.split())

    def test_estimators(self, y, names):
        settings = {"max_iter": 2, "fairness_rate": 0.05, "random_state": 0}
        model = FairGradClassifier(MEASURE, **settings).fit(X, y, sensitive_features=SEX)
        assert list(model.desirable_) == [names[1]]
        frontier = Frontier(FairGradClassifier(**settings), MEASURE, epsilons=2, random_state=0)
        assert list(frontier.fit(X, y, sensitive_features=SEX).desirable_) == [names[1]]
        scorer = make_fairness_scorer(MEASURE)
        levels = fairness_levels(y, model.predict(X), SEX, MEASURE)
        assert scorer(model, X, y, sensitive_features=SEX) == pytest.approx(-levels.unfairness)
        settings = {"n_estimators": 2, "epsilon": 0.0, "verbose": -1}
        trees = FairGradLGBMClassifier(fairness_measure=MEASURE, **settings)
        trees.fit(X, y, sensitive_features=SEX)
        assert trees.desirable_ == (names[1],)
        rows = TrainingTable.from_data(X, y, SEX)
        trained = train(rows, [Member()], TrainingPlan(epochs=1, fairness_measure=MEASURE))
        assert trained.history.unfairness.shape == (1, 1)

    def test_boosting_takes_it_for_its_constraints(self, y, expected):
        objective = BoostingObjective(y, SEX, MEASURE)
        objective.gradients(np.where(Y * (SEX == "M"), 1.0, -1.0))
        np.testing.assert_allclose(objective.levels, expected, atol=1e-6)

    def test_losses(self, y, names, expected):
        if names[0] == "no":
            pytest.skip("losses take integers")
        target, s = torch.from_numpy(y), torch.from_numpy((SEX == "M").astype(int))
        criterion = CrossEntropyLoss(target, s, MEASURE)
        scores = torch.nn.functional.one_hot(torch.from_numpy(Y * (SEX == "M")) + names[0], 3)
        criterion(scores.float().requires_grad_(), target, s)
        np.testing.assert_allclose(criterion.levels, expected, atol=1e-6)
        assert f"y_desirable=[{names[1]}]" in repr(criterion)

    def test_fine_tuning(self, y):
        network = torch.nn.Linear(3, 2)
        rows = torch.from_numpy(X).float()
        settings = {"fairness_measure": MEASURE, "max_iter": 1, "random_state": 0}
        tuned = finetune(network, rows, y, SEX, validation=(rows, y, SEX), **settings)
        with torch.no_grad():
            predicted = tuned.classes[tuned.module(rows).argmax(1).numpy()]
        levels = fairness_levels(y, predicted, SEX, MEASURE)
        assert tuned.history[-1]["unfairness"] == pytest.approx(levels.unfairness)

    def test_program(self, y, names, tmp_path):
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "sex": SEX, "hired": y})
        frame["prediction"] = np.array(names)[Y * (SEX == "M")]
        frame.to_csv(tmp_path / "people.csv", index=False)
        columns = ["--target", "hired", "--prediction", "prediction", "--sensitive", "sex"]
        found = CliRunner().invoke(app, ["audit", str(tmp_path / "people.csv"), *columns, "--json"])
        assert found.exit_code == 0, found.output
        assert str(names[1]) in json.dumps(json.loads(found.output)["desirable"])


def test_more_than_two_labels_must_be_named_where_a_measure_needs_it():
    y = np.digitize(X.sum(1), [-0.5, 1.0])
    message = "y_desirable: equality_of_opportunity needs"
    s = torch.from_numpy((SEX == "M").astype(int))
    for ask in (
        lambda: fairness_levels(y, y, SEX, MEASURE),
        lambda: Audit(y, y, SEX, measures=[MEASURE]),
        lambda: FairGradClassifier(MEASURE).fit(X, y, sensitive_features=SEX),
        lambda: BoostingObjective(y, SEX, MEASURE),
        lambda: CrossEntropyLoss(torch.from_numpy(y), s, MEASURE),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_parity_breaks_no_rule_of_four_fifths_anywhere():
    """Selection rates of one half in both groups: the unfairness is the violation, which is 0."""
    y = np.tile([0, 1], 400)
    s = np.repeat(["F", "M"], 400)
    features = y[:, None] * 2.0 - 1.0
    rule = "four_fifths_rule"
    assert fairness_levels(y, y, s, rule).unfairness == 0
    finding = Audit(y, y, s, measures=[rule]).findings[0]
    assert finding.unfairness == 0
    assert finding.unfairness_interval.low == 0
    model = FairGradClassifier(rule, max_iter=5, fairness_rate=0.01, random_state=0)
    model.fit(features, y, sensitive_features=s)
    assert model.history_["unfairness"][-1] == 0
    assert make_fairness_scorer(rule)(model, features, y, sensitive_features=s) == 0
    frontier = Frontier(model, rule, epsilons=2, random_state=0)
    points = frontier.fit(features, y, sensitive_features=s).points_
    assert (points["validation_unfairness"] == 0).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (X[:, 0], "y: Unknown label type: continuous values such as "),
        (np.array(["a", 1] * 400, dtype=object), "y: "),
        (np.full(800, "yes"), r"y: expected at least two classes, got one class: \['yes'\]"),
        (np.where(Y == 1, 1.0, np.nan), "NaN|every row needs a label"),
    ],
    ids=["continuous", "mixed", "one class", "missing"],
)
@pytest.mark.parametrize(
    "model",
    [FairGradClassifier(), FairDecisionClassifier(), FairGradLGBMClassifier(verbose=-1)],
    ids=["gradient", "decision", "boosting"],
)
def test_labels_that_cannot_be_learnt_are_refused_alike(model, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        clone(model).fit(X, y, sensitive_features=SEX)
