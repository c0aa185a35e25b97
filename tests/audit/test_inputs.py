import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fairgrad import audit as audit_room
from fairgrad import fairness_levels
from fairgrad.audit import Audit
from fairgrad.measures import On

Y = np.tile([0, 1], 50)
S = np.repeat(["a", "b"], 50)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"y_pred": Y[:-1]}, r"y_pred: expected one value per row of y_true \(100\), got 99"),
        (
            {"sensitive_features": S[:-1]},
            r"sensitive_features: expected one value per row of y_true \(100\), got 99",
        ),
        ({"baseline": Y[:-1]}, "baseline: expected one value per row"),
        ({"y_pred": np.where(Y == 1, 2, 0)}, r"y_pred: got '2', which was never seen; .* \[0, 1\]"),
        ({"y_true": np.where(np.arange(100) == 7, np.nan, Y)}, "y_true: .* row 7 has none"),
        ({"y_pred": np.where(np.arange(100) == 3, np.nan, Y)}, "y_pred: .* row 3 has none"),
        ({"y_true": Y * 0, "y_pred": Y * 0}, "y_true: expected at least two labels"),
        ({"sensitive_features": ["a"] * 100}, "at least two groups, got the value 'a' alone"),
        ({"sensitive_features": [None] * 100}, "at least two groups, got unknown values alone"),
        ({"sensitive_features": np.linspace(0, 1, 100)}, "bin a continuous column first"),
        ({"y_true": [], "y_pred": [], "sensitive_features": []}, "at least one row, got none"),
        ({"y_score": Y[:-1]}, "y_score: expected the shape"),
        ({"y_score": np.where(Y == 1, np.nan, 0.2)}, "y_score: expected finite scores; row 1"),
        ({"measures": "fairness"}, "measures: got 'fairness'; expected"),
        ({"measures": []}, "measures: expected at least one"),
        ({"measures": [On("age", "accuracy_parity")]}, "measures: got the attribute 'age'"),
        ({"tolerance": -0.1}, "tolerance: expected a number from 0 to 1"),
        (
            {"tolerance": "four_fifths"},
            "tolerance: expected a number from 0 to 1, .*'four_fifths'",
        ),
        ({"tolerance": {"accuracy": 0.1}}, "tolerance: got 'accuracy'; the measures asked are"),
        ({"confidence": 95}, "confidence: expected a finite number above 0 and below 1, got 95"),
        ({"y_desirable": 3}, r"y_desirable: expected labels among \[0, 1\], got \[3\]"),
        ({"y_desirable": [0, 1]}, "y_desirable: expected one of the two labels"),
        ({"sample_weight": -Y}, "sample_weight: expected finite weights"),
        (
            {"sample_weight": np.where(S == "a", 1.0, 0.0)},
            "at least two groups, got the value 'a' alone",
        ),
    ],
)
def test_bad_input_is_named(changed, said):
    given = {"y_true": Y, "y_pred": Y, "sensitive_features": S, **changed}
    with pytest.raises(ValueError, match=said):
        Audit(**given)


def test_ratios_need_desirable_labels():
    y = np.arange(100) % 4
    with pytest.raises(ValueError, match="y_desirable: four_fifths_rule needs"):
        Audit(y, y, S, measures="four_fifths_rule")
    with pytest.raises(ValueError, match="at least one label that is not desirable"):
        Audit(y, y, S, measures="four_fifths_rule", y_desirable=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="serves demographic_parity, not equalized_odds"):
        Audit(y, y, S, measures="equalized_odds", tolerance="80%")


@pytest.mark.parametrize("share", ["5%", "49.9%", "101%"])
def test_points_are_no_ratio(share):
    """Five points are 0.05; rates of at least 5 % of the highest would hardly ever be unfair."""
    with pytest.raises(ValueError, match=f"tolerance: .* from '50%' to '100%' .* got {share!r}"):
        Audit(Y, Y, S, measures="demographic_parity", tolerance=share)


@pytest.mark.parametrize(
    ("labels", "taken"), [((0, 1), 1), ((1, 2), 2), (("no", "yes"), "yes"), ((-1, 1), 1)]
)
def test_of_two_labels_the_second_is_desirable_unless_one_is_named(labels, taken):
    y = np.array(labels, dtype=object)[Y]
    pred = np.array(labels, dtype=object)[(np.arange(100) % 3 == 0) * 1]
    audit = Audit(y, pred, S)
    assert audit.desirable == [taken]
    core = fairness_levels(y, pred, S, "equality_of_opportunity")
    assert core.desirable == (taken,)
    found = next(f for f in audit.findings if f.measure == "equality_of_opportunity")
    np.testing.assert_allclose(found.levels, core.values)
    selected = audit.to_frame().set_index(["group", "rate"])["value"]["overall", "selection_rate"]
    assert selected == np.mean(pred == taken)
    assert Audit(y, pred, S, y_desirable=labels[0]).desirable == [labels[0]]


def test_of_more_labels_one_must_be_named_where_a_measure_needs_it():
    y = np.arange(100) % 3
    audit = Audit(y, y, S)
    assert audit.desirable == []
    assert [f.measure for f in audit.findings] == [
        "demographic_parity",
        "equalized_odds",
        "accuracy_parity",
    ]
    assert audit.warnings[0].kind == "desirable"
    assert "Name the desirable label" in audit.warnings[0].message
    with pytest.raises(ValueError) as here:  # noqa: PT011 - the message is compared
        Audit(y, y, S, measures="equal_opportunity")
    with pytest.raises(ValueError) as core:  # noqa: PT011 - the message is compared
        fairness_levels(y, y, S, "equality_of_opportunity")
    assert str(here.value) == str(core.value)
    named = Audit(y, y, S, y_desirable=2)
    assert "equality_of_opportunity" in {f.measure for f in named.findings}
    assert "desirable" not in {notice.kind for notice in named.warnings}


def test_labels_that_happen_not_to_occur():
    with pytest.raises(ValueError, match="name all labels in labels="):
        Audit(Y, np.where(Y == 1, 2, 0), S)
    audit = Audit(Y, np.where(Y == 1, 2, 0), S, labels=[0, 1, 2])
    assert audit.labels == [0, 1, 2]
    assert audit.to_frame("levels")["level"].isna().sum() == 2  # the recalls of label 2


def test_columns_of_many_kinds_give_the_same_audit():
    torch = pytest.importorskip("torch")
    s = np.where(S == "a", 0, 1)
    expected = Audit(Y, Y, s).to_frame()
    for y, pred, groups in (
        (Y.tolist(), Y.astype(float), s.tolist()),
        (torch.tensor(Y), torch.tensor(Y), torch.tensor(s)),
        (pd.Series(Y), pd.Series(Y, dtype="Int64"), pd.Series(s, name="sensitive_features")),
        (pd.Categorical(Y), pd.array(Y), pd.Index(s, name="sensitive_features")),
        (Y == 1, Y == 1, pd.DataFrame({"sensitive_features": s})),
    ):
        pd.testing.assert_frame_equal(Audit(y, pred, groups).to_frame(), expected)


def test_attributes_alone_and_crossed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], 500), "race": rng.choice(["b", "w"], 500)})
    frame.loc[::50, "race"] = None
    y, pred = rng.integers(2, size=(2, 500))
    audit = Audit(y, pred, frame, measures="equalized_odds")
    assert [f.attribute for f in audit.findings] == ["sex", "race", "sex x race"]
    alone = Audit(y, pred, frame["sex"], measures="equalized_odds").findings[0]
    np.testing.assert_allclose(audit.findings[0].levels, alone.levels)
    known = frame["race"].notna().to_numpy()
    joint = frame["sex"] + frame["race"]
    crossed = Audit(y[known], pred[known], joint[known], measures="equalized_odds").findings[0]
    np.testing.assert_allclose(audit.findings[2].levels, crossed.levels)


def test_a_measure_may_be_asked_of_one_attribute_only():
    frame = pd.DataFrame({"sex": S, "race": np.tile(["u", "v", "w", "x"], 25)})
    audit = Audit(Y, Y, frame, measures=[On("race", "accuracy_parity"), "equalized_odds"])
    assert [f.attribute for f in audit.findings] == ["race", "sex", "race", "sex x race"]


def test_thousands_of_groups_are_no_problem():
    rng = np.random.default_rng(0)
    y, pred = rng.integers(2, size=(2, 60_000))
    audit = Audit(y, pred, rng.integers(20_000, size=60_000))
    assert audit.verdict in {"unfair", "undecided"}


def test_the_audit_needs_no_torch():
    code = "import fairgrad.audit, sys; sys.exit('torch' in sys.modules or 'altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_an_audit_does_not_need_is_loaded_on_first_use():
    code = (
        "import sys, fairgrad.audit as audit\n"
        "print(*[n for n in ('compare', 'impact', 'monitor', 'subgroups', 'known')"
        " if f'fairgrad.audit.{n}' in sys.modules])\n"
        "assert {*audit.__all__} <= {*dir(audit)}\n"
        "from fairgrad.audit import *\n"
        "print(Monitor.__module__, *(name for name in audit.__all__ if name not in globals()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["", "fairgrad.audit.monitor"]
    with pytest.raises(AttributeError, match=r"'fairgrad\.audit' has no attribute 'Moniter'"):
        _ = audit_room.Moniter
