"""Where mistakes have costs, models are trained, compared and chosen by them, in every place."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from torch import nn

from fairgrad import Audit, Frontier
from fairgrad.audit import likeliest
from fairgrad.cli.app import app
from fairgrad.finetune import finetune
from fairgrad.frontier import non_dominated
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier, make_fairness_scorer
from fairgrad.torch import CrossEntropyLoss
from fairgrad.usefulness import cost_shares

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
RNG = np.random.default_rng(0)
N = 900
SEX = RNG.choice(["F", "M"], N)
X = RNG.normal(size=(N, 4)) + np.outer(SEX == "M", [0.8, 0.0, 0.0, 0.0])
SCORE = X @ [1.0, 0.5, -0.5, 0.2] + RNG.normal(size=N)
Y = np.array(["low", "mid", "top"])[np.digitize(SCORE, np.quantile(SCORE, [0.4, 0.75]))]
CODES = np.searchsorted(["low", "mid", "top"], Y)
COSTS = np.array([[0, 1, 2], [1, 0, 1], [8, 2, 0]])
SHARES = COSTS / 8
MEASURE, ASKED = "demographic_parity", {"y_desirable": "top", "cost_matrix": COSTS}
OWN, OTHERS = slice(0, 600), slice(600, None)
pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
QUICK = {"fairness_rate": 0.05, "max_iter": 10, "random_state": 0}


def merit(predicted, rows=OTHERS):
    """One less the mean cost of predicted labels, as a share of the most expensive mistake's."""
    index = np.searchsorted(["low", "mid", "top"], predicted)
    return 1 - SHARES[CODES[rows], index].mean()


def test_equal_costs_are_the_accuracy_and_what_right_predictions_cost_does_not_matter():
    np.testing.assert_array_equal(cost_shares(None, 3), 1 - np.eye(3))
    np.testing.assert_array_equal(cost_shares(COSTS, 3), SHARES)
    np.testing.assert_allclose(cost_shares(COSTS + np.array([[5], [0], [-2]]), 3), SHARES)


@pytest.mark.parametrize("measure", [None, MEASURE, "accuracy_parity"])
def test_epochs_are_chosen_by_cost(measure):
    rows = {"sensitive_features": SEX[OWN], "validation": (X[OTHERS], Y[OTHERS], SEX[OTHERS])}
    model = FairGradClassifier(measure, epsilon=1.0, **ASKED, **QUICK).fit(X[OWN], Y[OWN], **rows)
    kept = model.history_["merit"][-5:]
    assert kept.max() == pytest.approx(merit(model.predict(X[OTHERS])))
    right = np.mean(model.predict(X[OTHERS]) == Y[OTHERS])
    assert model.history_["accuracy"][-5:][kept.argmax()] == pytest.approx(right)


@pytest.mark.parametrize("way", ["gradient", "decision"])
@pytest.mark.filterwarnings("ignore:The bounds are not kept")
def test_the_frontier_is_one_of_costs(way):
    make = {
        "gradient": FairGradClassifier(**ASKED, **QUICK),
        "decision": FairDecisionClassifier(None, **ASKED),
    }
    frontier = Frontier(make[way], MEASURE, epsilons=5, random_state=0)
    frontier.fit(
        X[OWN], Y[OWN], sensitive_features=SEX[OWN], validation=(X[OTHERS], Y[OTHERS], SEX[OTHERS])
    )
    points = frontier.points_
    paid = [COSTS[CODES[OTHERS], np.searchsorted(["low", "mid", "top"], model.predict(X[OTHERS]))]
            for model in frontier.estimators_]  # fmt: skip
    np.testing.assert_allclose(points["validation_cost"], np.mean(paid, axis=1))
    unfair = points["validation_unfairness"]
    expected = non_dominated(-points["validation_cost"], unfair)
    np.testing.assert_array_equal(points["on_frontier"], expected)
    bound = float(unfair.median())
    chosen = frontier.choose(max_unfairness=bound)
    assert points["validation_cost"][chosen] == points["validation_cost"][unfair <= bound].min()
    assert "by the mean cost" in frontier.report_data().note


def test_certificates_go_to_the_cheapest_that_is_likely_to_pass():
    dear = np.where(CODES == 2, 0, CODES)  # never wrong except for the most expensive mistake
    cheap = np.where(CODES == 1, 0, CODES)
    audits = [
        Audit(CODES, one, SEX, measures=MEASURE, tolerance=0.9, y_desirable=2)
        for one in (dear, cheap)
    ]
    right = [np.mean(one == CODES) for one in (dear, cheap)]
    order = COSTS if right[0] > right[1] else COSTS[::-1, ::-1]
    assert likeliest(audits, 500).position == int(np.argmax(right))
    paid = [order[CODES, one].mean() for one in (dear, cheap)]
    assert likeliest(audits, 500, order).position == int(np.argmin(paid))
    with pytest.raises(ValueError, match="cheaper than predicting 2 for everybody"):
        likeliest(audits[:1], 500, [[0, 1, 0.001], [0.001, 0, 0.001], [1, 1, 0]])


def test_fine_tuning_knows_costs():
    torch.manual_seed(0)
    rows = torch.tensor(X, dtype=torch.float32)
    settings = {"max_iter": 4, "learning_rate": 0.05, "random_state": 0, "cost_matrix": COSTS}
    found, dear = [], np.array([[0, 1, 1], [1, 0, 1], [5, 5, 0]])
    start = nn.Linear(4, 3)
    for costs in (dear, None):  # costs alone, without groups
        more = {**settings, "cost_matrix": costs}
        alone = finetune(start, rows, Y, fairness_measure=None, **more)
        found.append(dear[CODES, alone.module(rows).argmax(1).numpy()].mean())
    assert found[0] < 0.8 * found[1]
    two = finetune(nn.Linear(4, 1), rows[OWN], CODES[OWN] == 2, SEX[OWN], fairness_measure=MEASURE,
                   **{**settings, "cost_matrix": [[0, 1], [5, 0]]})  # fmt: skip
    assert two.module(rows).shape == (N, 2)
    with pytest.raises(ValueError, match="cost_matrix: expected finite numbers"):
        finetune(nn.Linear(4, 3), rows, Y, SEX, cost_matrix=[[0, 1], [1, 0]])


def test_the_scorer_counts_costs():
    model = FairGradClassifier(MEASURE, **ASKED, **QUICK).fit(X, Y, sensitive_features=SEX)
    scorer = make_fairness_scorer(MEASURE, max_unfairness=1.0, **ASKED)
    weight = RNG.random(N)
    score = scorer(model, X, Y, sensitive_features=SEX, sample_weight=weight)
    paid = SHARES[CODES, np.searchsorted(["low", "mid", "top"], model.predict(X))]
    assert score == pytest.approx(1 - np.average(paid, weights=weight))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    place = tmp_path_factory.mktemp("costs") / "people.csv"
    frame = pd.DataFrame(X, columns=list("abcd")).assign(rank=Y, sex=SEX)
    frame.to_csv(place, index=False)
    return place


OPTIONS = ["--target", "rank", "--sensitive", "sex", "--desirable", "top", "--epochs", "3",
           "--measure", MEASURE, "--test-size", "0.4"]  # fmt: skip


@pytest.mark.parametrize("more", [[], ["--model", "lightgbm"], ["--exact"]])
def test_the_program_says_what_predictions_cost(table, tmp_path, more):
    out = tmp_path / "out"
    costs = ["--cost", "top:low=8", "--cost", "top : mid=2", "--cost", "low:top=2"]
    arguments = ["fit", str(table), *OPTIONS, *costs, "--out", str(out), *more]
    ran = CliRunner().invoke(app, [*arguments, "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["settings"]["costs"] == {"top:low": 8, "top : mid": 2, "low:top": 2}
    tested = pd.read_csv(out / "test_rows.csv")
    true = CODES[tested["row"] - 1]
    for name, column in {"fair": "prediction", "plain": "prediction of the plain model"}.items():
        predicted = np.searchsorted(["low", "mid", "top"], tested[column])
        assert found["mean_costs"][name] == pytest.approx(COSTS[true, predicted].mean())
    assert "top:low 8, top : mid 2, low:top 2; other mistakes 1" in (
        (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    )


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("top:low", "does not have the form TRUE:PREDICTED=5"),
        ("top:low=-1", "a number of at least 0"),
        ("top:lowest=2", "--cost is top:lowest=2; expected TRUE:PREDICTED=COST with two different"),
        ("top:top=2", "two different values of the target: low, mid, top"),
    ],
)
def test_the_program_refuses_costs_that_mean_nothing(table, tmp_path, cost, message):
    arguments = ["fit", str(table), *OPTIONS, "--out", str(tmp_path / "out"), "--cost", cost]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code != 0
    said = " ".join(ran.output.split()) + str(ran.exception)
    assert message in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda costs: FairGradClassifier(MEASURE, y_desirable="top", cost_matrix=costs, **QUICK),
        lambda costs: FairDecisionClassifier(
            None, MEASURE, y_desirable="top", cost_matrix=costs, random_state=0
        ),
        lambda costs: FairGradLGBMClassifier(
            MEASURE, y_desirable="top", cost_matrix=costs, n_estimators=20, n_jobs=1, verbose=-1
        ),
    ],
)
def test_the_currency_of_costs_changes_nothing(make):
    predicted = []
    for unit in (1.0, 0.001, 1000.0):
        paid_if_right = np.array([[3.0], [0.0], [-1.0]])  # only differences matter
        model = make(unit * (COSTS + paid_if_right)).fit(X, Y, sensitive_features=SEX)
        predicted.append(model.predict(X))
    differ = [np.mean(one != predicted[0]) for one in predicted[1:]]
    assert max(differ) < 0.005  # rounding may move a row at a border


def test_the_currency_of_costs_does_not_change_a_loss():
    weights = []
    for unit in (1.0, 1000.0):
        loss = CrossEntropyLoss(CODES, SEX, MEASURE, cost_matrix=unit * COSTS)
        loss(torch.zeros(N, 3), torch.tensor(CODES), torch.as_tensor(loss.groups.encode(SEX)))
        weights.append(loss.cell_weights.numpy())
    np.testing.assert_allclose(*weights, rtol=1e-6)
