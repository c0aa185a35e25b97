"""Measures of what is predicted, bounds and strata work wherever a measure works."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from fairlearn.metrics import MetricFrame, selection_rate
from torch import nn

from fairgrad import AtLeast, AtMost, Audit, Frontier, On, Report, fairness_levels, persistence
from fairgrad.cli.app import app
from fairgrad.finetune import finetune
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.measures import measure_name
from fairgrad.onnx import to_onnx
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier, make_fairness_scorer
from fairgrad.xgboost import FairGradXGBClassifier

RNG = np.random.default_rng(0)
N = 1200
PEOPLE = pd.DataFrame({"sex": RNG.choice(["F", "M"], N), "place": RNG.choice(["x", "y"], N)})
X = RNG.normal(size=(N, 4)) + np.outer(PEOPLE["sex"] == "M", [0.8, 0.0, 0.0, 0.0])
SCORE = X @ [1.0, 0.5, -0.5, 0.2] + RNG.normal(size=N)
Y = np.array(["low", "mid", "top"])[np.digitize(SCORE, np.quantile(SCORE, [0.4, 0.75]))]
COSTS = [[0, 1, 2], [1, 0, 1], [4, 2, 0]]
MEASURES = [
    On("sex", "demographic_parity"),
    On("sex", "equalized_odds_all"),
    On("sex", "four_fifths_rule"),
    On("sex", "demographic_parity", within="place"),
    On("sex", AtMost("selection_rate", 0.2)),
    [On("sex", "demographic_parity", 0.05), On("sex", AtLeast("recall", 0.8, "top"))],
]
ASKED = {"y_desirable": "top"}
CASES = pytest.mark.parametrize("measure", MEASURES, ids=measure_name)


def unfairness(model, measure):
    return fairness_levels(Y, model.predict(X), PEOPLE, measure, **ASKED).unfairness


def fitted(kind, measure, *arguments, **settings):
    model = kind(*arguments, fairness_measure=measure, **ASKED, **settings)
    return model.fit(X, Y, sensitive_features=PEOPLE)


@pytest.fixture(scope="module")
def plain():
    return FairGradClassifier(None, random_state=0).fit(X, Y)


@CASES
def test_the_estimator(measure, plain, tmp_path):
    settings = {"epsilon": 0.0, "fairness_rate": 0.05, "random_state": 0}
    model = fitted(FairGradClassifier, measure, **settings)
    levels = fairness_levels(Y, model.predict(X), PEOPLE, measure, **ASKED)
    np.testing.assert_allclose(model.levels_, levels.values, atol=1e-9)
    assert model.constraint_names_ == levels.names
    assert len(model.cell_names_) == len(model.cell_weights_)
    assert (model.cell_weights_ >= 0).all()
    assert levels.unfairness < 0.5 * unfairness(plain, measure)
    score = make_fairness_scorer(measure, **ASKED)(model, X, Y, sensitive_features=PEOPLE)
    assert score == pytest.approx(-levels.unfairness)
    persistence.save(model, tmp_path / "model.fairgrad")
    again = persistence.load(tmp_path / "model.fairgrad")
    assert again.fairness_measure == measure
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@CASES
@pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
def test_decisions(measure, plain):
    model = FairDecisionClassifier(None, measure, 0.01, **ASKED)
    model.fit(X, Y, sensitive_features=PEOPLE, validation=(X, Y, PEOPLE))
    levels = fairness_levels(Y, model.predict(X), PEOPLE, measure, **ASKED)
    np.testing.assert_allclose(model.levels_, levels.values, atol=1e-9)
    assert len(model.cell_names_) == len(model.cell_weights_)
    assert levels.unfairness < 0.5 * unfairness(plain, measure) + 0.01
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    label, probabilities = session.run(["label", "probabilities"], {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kind", [FairGradLGBMClassifier, FairGradXGBClassifier])
@pytest.mark.parametrize("measure", MEASURES[:3], ids=measure_name)
def test_boosted_trees(kind, measure, plain):
    quiet = {"verbose": -1} if kind is FairGradLGBMClassifier else {"verbosity": 0}
    quiet["n_jobs"] = 1
    codes = np.searchsorted(["low", "mid", "top"], Y)
    model = kind(measure, y_desirable=2, max_depth=2, **quiet)
    model.fit(X, codes, sensitive_features=PEOPLE)
    assert len(model.cell_names_) == len(model.cell_weights_)
    levels = fairness_levels(codes, model.predict(X), PEOPLE, measure, y_desirable=2)
    assert levels.unfairness < 0.8 * unfairness(plain, measure)


@pytest.mark.parametrize("measure", [MEASURES[0], MEASURES[3]], ids=measure_name)
def test_the_frontier_and_its_report(measure):
    model = FairGradClassifier(measure, **ASKED, max_iter=20)
    frontier = Frontier(model, measure, [0.0, 0.1, np.inf], random_state=0)
    frontier.fit(X, Y, sensitive_features=PEOPLE)
    points = frontier.points_
    for place, audit in enumerate(frontier.audits_["validation"]):
        found = audit.findings[0].unfairness
        assert points["validation_unfairness"].iloc[place] == pytest.approx(found)
    assert points["validation_unfairness"].iloc[0] < points["validation_unfairness"].iloc[-1]
    assert "demographic parity" in Report(frontier.audits_["validation"][0]).html().lower()


def test_fine_tuning():
    torch.manual_seed(0)
    y, s = np.searchsorted(["low", "mid", "top"], Y), PEOPLE["sex"]
    network = nn.Linear(4, 3)
    x = torch.from_numpy(X).float()
    result = finetune(
        network, x, y, s, fairness_measure="demographic_parity", learning_rate=0.05,
        fairness_rate=0.05, max_iter=10, random_state=0,
    )  # fmt: skip
    with torch.no_grad():
        predicted = result.module(x).argmax(1).numpy()
    assert fairness_levels(y, predicted, s, "demographic_parity").unfairness < 0.05


@pytest.mark.parametrize("kind", ["gradient", "decision", "lightgbm"])
def test_costs_are_followed(kind):
    make = {
        "gradient": lambda **more: FairGradClassifier(
            "demographic_parity", epsilon=0.1, random_state=0,
            fairness_rate=0.05, **more,
        ),
        "decision": lambda **more: FairDecisionClassifier(
            None, "demographic_parity", 0.1, **more
        ),
        "lightgbm": lambda **more: FairGradLGBMClassifier(
            "demographic_parity", epsilon=0.1, n_estimators=30, verbose=-1, n_jobs=1,
            **more,
        ),
    }[kind]  # fmt: skip
    codes = np.searchsorted(["low", "mid", "top"], Y)
    paid = {}
    for name, more in {"errors": {}, "costs": {"cost_matrix": COSTS}}.items():
        model = make(**more).fit(X[::2], codes[::2], sensitive_features=PEOPLE["sex"][::2])
        # New rows, because trees memorize their training rows.
        paid[name] = np.array(COSTS)[codes[1::2], model.predict(X[1::2])].mean()
    assert paid["costs"] < paid["errors"]


def test_the_audit_agrees_with_fairlearn(plain):
    h = plain.predict(X)
    frame = MetricFrame(
        metrics=lambda y, pred: selection_rate(y, pred, pos_label="top"),
        y_true=Y, y_pred=h, sensitive_features=PEOPLE["sex"], control_features=PEOPLE["place"],
    )  # fmt: skip
    within = On("sex", "demographic_parity", within="place")
    (finding,) = Audit(Y, h, PEOPLE, measures=within, **ASKED).findings
    level = dict(zip(finding.comparison.names, finding.levels, strict=True))
    for place in "xy":
        rate = frame.by_group.loc[place]
        own = level[f"y=top, sex=F in place={place}"] - level[f"y=top, sex=M in place={place}"]
        assert own == pytest.approx(rate["F"] - rate["M"])
    bound = Audit(Y, h, PEOPLE["sex"], measures="selection_rate<=0.1", **ASKED)
    assert bound.verdict == "unfair"
    assert "above the bound of 10.0 %" in bound.conclusion


def test_the_program(tmp_path):
    table = tmp_path / "people.csv"
    frame = pd.DataFrame(X, columns=list("abcd")).assign(rank=Y, **PEOPLE)
    frame.to_csv(table, index=False)
    out = tmp_path / "out"
    options = ["--target", "rank", "--sensitive", "sex", "--sensitive", "place"]
    asked = ["--measure", "demographic_parity", "--measure", "recall>=0.5", "--within", "place"]
    quick = ["--epochs", "3", "--folds", "0", "--desirable", "top", "--out", str(out)]
    arguments = ["fit", str(table), *options, *asked, *quick]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    audit = json.loads((out / "audit.json").read_text())
    assert {"sex given place"} <= {one["attribute"] for one in audit["verdicts"]}
    again = CliRunner().invoke(app, ["audit", str(out), str(table), "--json"])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["judged_by"] == ["demographic_parity", "recall at least 0.5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measure", "precision>=0.8"], "'precision>=0.8' is none of"),
        (["--within", "town"], "--within is 'town'"),
        (["--within", "sex"], "none is left to compare"),
        (["--measure", "four_fifths_rule"], "needs the desirable value of 'rank'"),
    ],
)
def test_the_program_refuses(tmp_path, options, message):
    table = tmp_path / "people.csv"
    frame = pd.DataFrame(X, columns=list("abcd")).assign(rank=Y, **PEOPLE)
    frame.to_csv(table, index=False)
    out = ["--out", str(tmp_path / "out")]
    arguments = ["fit", str(table), "--target", "rank", "--sensitive", "sex", *out, *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert message in " ".join(f"{result.output} {result.exception}".split())
