"""Which rows train, which choose and which judge: 60, 20 and 20 % of every label of every group."""

import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from fairgrad import fairness_levels
from fairgrad.cli.request import FitRequest
from fairgrad.cli.training import fit_prepared, prepare, train
from fairgrad.tables.roles import ColumnRoles

COLUMNS = ColumnRoles("income", ("sex",))
FEATURES = ["age", "education-num", "hours-per-week", "sex", "income"]


@pytest.fixture(scope="module")
def table(people):
    return people[FEATURES].head(1500)


def trained(table, **settings):
    request = FitRequest(columns=COLUMNS, **{"epochs": 8, "seed": 3, "points": 6, **settings})
    prepared = prepare(table, request)
    return prepared, train(prepared, request)


def cells(rows):
    return pd.Series(list(zip(rows.y, rows.s["sex"], strict=True))).value_counts()


def test_every_cell_has_its_share_in_every_part(table):
    prepared = prepare(table, FitRequest(columns=COLUMNS, seed=3))
    whole = table.value_counts(["income", "sex"])
    parts = {0.6: prepared.training, 0.2: prepared.validation, 0.2 + 1e-9: prepared.test}
    for share, part in parts.items():
        found = cells(part)
        assert all(abs(found[cell] - share * n) <= 1.5 for cell, n in whole.items())
    assert sum(len(part.y) for part in parts.values()) == len(table)


@pytest.mark.parametrize("model", ["network", "lightgbm"])
def test_frontiers_are_chosen_on_the_validation_rows(table, model):
    prepared, models = trained(table, model=model, min_accuracy=0.5)
    validation, point = prepared.validation, models.frontier.points_.iloc[models.chosen]
    predicted = models.fair.predict(validation.X)
    assert point["validation_accuracy"] == pytest.approx(accuracy_score(validation.y, predicted))
    levels = fairness_levels(validation.y, predicted, validation.s, "equalized_odds")
    assert point["validation_unfairness"] == pytest.approx(levels.unfairness)


def test_the_audit_is_of_the_test_rows(table):
    request = FitRequest(columns=COLUMNS, epochs=8)
    prepared = prepare(table, request)
    outcome = fit_prepared(prepared, request)
    predicted = outcome.trained.fair.predict(prepared.test.X)
    levels = fairness_levels(prepared.test.y, predicted, prepared.test.s, "equalized_odds")
    finding = next(f for f in outcome.audit.findings if f.measure == "equalized_odds")
    assert finding.unfairness == pytest.approx(levels.unfairness)
    pd.testing.assert_series_equal(
        prepared.test.y, table["income"].iloc[prepared.test_rows].astype(object),
        check_index=False,
    )  # fmt: skip
