"""Columns and weights that cannot be used are named in the error."""

import numpy as np
import pandas as pd
import pytest

from fairgrad.columns import encode, with_formulas, without_formulas
from fairgrad.constraints import Constraints
from fairgrad.groups import Groups, check_weights

Y, S = [0, 1, 0, 1], ["a", "a", "b", "b"]


@pytest.mark.parametrize("weights", [list("abcd"), [b"a"] * 4, [None, [], {}, 1], "abcd"])
def test_weights_that_are_not_numbers(weights):
    with pytest.raises(ValueError, match="^sample_weight: "):
        Groups.from_data(Y, S, weights)
    assert check_weights(["1", "2"], 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("count", ["many", b"x", None, float("nan"), -1, 10**400])
def test_counts_that_are_not_numbers(count):
    with pytest.raises(ValueError, match="^counts: "):
        Groups.from_counts({(0, "a"): 1, (0, "b"): count})


@pytest.mark.parametrize("make", [pd.Series, lambda x: np.asarray(x, dtype=object), list])
def test_values_of_several_kinds_have_no_order(make):
    with pytest.raises(
        TypeError, match="^s: values of one column must be of one kind; got bytes, "
    ):
        encode(make([b"a", 1.5, b"b"]), "s")


@pytest.mark.parametrize(
    "values", [np.array([2**63, 1], dtype=np.uint64), [2**70, 1], pd.Series([-(2**64), 0])]
)
def test_numbers_too_long_for_integers(values):
    with pytest.raises(ValueError, match="^s: expected whole numbers of 64 bits, got .* as texts"):
        encode(values, "s")
    assert encode([2**63 - 1, -(2**63)], "s", unknown=None).values.tolist() == [-(2**63), 2**63 - 1]


def test_the_order_of_categories_stays():
    column = pd.Series(["low", "high", None], dtype=pd.CategoricalDtype(["low", "high"]))
    assert encode(column, "s").values.tolist() == ["low", "high"]


@pytest.mark.parametrize("C", [[[np.nan, 1.0]], [[np.inf, 1.0]], [["x", 1.0]], None])
def test_coefficients_that_are_not_numbers(C):
    with pytest.raises((TypeError, ValueError), match="^C: "):
        Constraints([0.0], C, by_label=False)


def test_formulas_are_marked_and_come_back():
    texts = ["=1+1", "+a", "@x", "-", "-1", "+1e5", "", "'quoted", "\tb", None, 3, "plain"]
    frame = pd.DataFrame({"=name": texts, "number": range(12)})
    marked = without_formulas(frame)
    assert marked.columns.tolist() == ["'=name", "number"]
    changed = [
        after for before, after in zip(texts, marked["'=name"], strict=True) if before != after
    ]
    assert changed == ["'=1+1", "'+a", "'@x", "'-", "'\tb"]
    strings = frame["=name"].dropna().astype(str)
    assert with_formulas(without_formulas(strings.to_frame("a"))["a"]).tolist() == strings.tolist()
