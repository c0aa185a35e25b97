"""Groups from every kind of column, against counting by hand or by pandas."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import results

from fairgrad import Groups
from fairgrad.groups import judged_groups, least_rows

Y, S = [0, 1, 1, 0, 1, 1], [5, 2, 5, 5, 2, -1]
KINDS = {
    "list": list,
    "array": np.array,
    "tensor": torch.tensor,
    "series": pd.Series,
    "float array": lambda v: np.array(v, dtype=float),
    "int8 tensor": lambda v: torch.tensor(v, dtype=torch.int8),
    "nullable series": lambda v: pd.Series(v, dtype="Int64").replace(-1, pd.NA),
    "list with None": lambda v: [None if x == -1 else x for x in v],
    "array with NaN": lambda v: np.where(np.array(v) == -1, np.nan, v),
}


@pytest.mark.parametrize("kind", KINDS)
def test_integers_from_any_container(kind):
    groups = Groups.from_data(Y, KINDS[kind](S))
    np.testing.assert_array_equal(groups.mass, [[0, 2, 0], [2, 1, 1]])
    assert groups.names == ("s=2", "s=5", "s=?")
    assert groups.ids[:, 0].tolist() == [2, 5, -1]


@pytest.mark.parametrize("kind", ["list", "array", "tensor", "series"])
def test_labels_from_any_container(kind):
    groups = Groups.from_data(KINDS[kind](Y), S)
    np.testing.assert_array_equal(groups.mass, [[0, 2, 0], [2, 1, 1]])


def test_minus_one_is_a_label_like_any_other():
    groups = Groups.from_data([-1.0, 1.0, 1.0], [0, 0, 1])
    assert groups.labels.tolist() == [-1, 1]


STRINGS = ["F", "M", None, "F"]


@pytest.mark.parametrize(
    "column",
    [
        STRINGS,
        np.array(STRINGS, dtype=object),
        pd.Series(STRINGS, name="sex"),
        pd.Series(STRINGS, dtype="category", name="sex"),
        pd.Series(["F", "M", np.nan, "F"]),
        pd.Categorical(STRINGS),
        pd.Index(STRINGS),
        pd.array(STRINGS),
        pd.DataFrame({"sex": STRINGS}),
        {"sex": STRINGS},
    ],
)
def test_strings_from_any_container(column):
    groups = Groups.from_data([0, 1, 1, 1], column)
    np.testing.assert_array_equal(groups.mass, [[1, 0, 0], [1, 1, 1]])
    name = groups.attributes[0]
    assert groups.names == (f"{name}=F", f"{name}=M", f"{name}=?")
    assert groups.encode(column).tolist() == [0, 1, -1, 0]


def test_readable_names_of_several_columns():
    frame = pd.DataFrame({"sex": ["Female", "Male"], "race": ["White", "Black"]})
    groups = Groups.from_data(pd.Series([1, 0], name="income"), frame)
    assert groups.names == ("sex=Female, race=White", "sex=Male, race=Black")
    assert groups.cell_names(by_label=True)[0] == "income=0, sex=Female, race=White"


def test_many_groups_cost_little():
    n = 30_000
    groups = Groups.from_data(np.arange(n) % 2, {"a": np.arange(n), "b": np.arange(n) % 7})
    assert groups.marginal("b").mass.sum() == n  # a matrix of n x n would not fit


def test_unknown_is_per_attribute():
    frame = pd.DataFrame({"sex": ["F", "F", None, None], "race": ["W", None, "W", None]})
    groups = Groups.from_data([0, 0, 0, 0], frame)
    assert groups.names == ("sex=F, race=W", "sex=F, race=?", "sex=?, race=W", "sex=?, race=?")
    assert groups.known().names == ("sex=F, race=W",)
    assert groups.marginal("sex").mass.tolist() == [[2, 2]]
    assert groups.encode(frame).tolist() == [0, 1, 2, -1]


@given(problem=results(n_attributes=2, unknown=True, weights=True))
def test_mass_equals_a_pandas_pivot(problem):
    y, _, s, weight = problem
    groups = Groups.from_data(y, s, weight)
    frame = pd.DataFrame({"y": y, "a": s[:, 0], "b": s[:, 1], "w": weight})
    table = frame.groupby(["y", "a", "b"])["w"].sum()
    for label_row, label in zip(groups.mass, groups.labels, strict=True):
        for mass, (a, b) in zip(label_row, groups.ids, strict=True):
            assert mass == pytest.approx(table.get((label, a, b), 0.0))


@given(problem=results(n_attributes=2, unknown=True))
def test_group_index_finds_every_row(problem):
    y, _, s, _ = problem
    groups = Groups.from_data(y, s)
    np.testing.assert_array_equal(groups.ids[groups.group_index(s)], s)
    np.testing.assert_array_equal(groups.encode(s), s)
    np.testing.assert_array_equal(groups.labels[groups.label_index(y)], y)


@given(problem=results(n_attributes=2, unknown=True))
def test_marginal_is_as_if_the_other_attribute_did_not_exist(problem):
    y, _, s, _ = problem
    marginal, alone = Groups.from_data(y, s).marginal("s1"), Groups.from_data(y, s[:, 1])
    np.testing.assert_array_equal(marginal.mass, alone.mass)
    np.testing.assert_array_equal(marginal.ids, alone.ids)


@given(problem=results(n_attributes=2, unknown=True, weights=True))
def test_counts_are_as_good_as_the_data(problem):
    y, _, s, weight = problem
    frame = pd.DataFrame({"y": y, "s0": s[:, 0], "s1": s[:, 1], "w": weight})
    series = frame.groupby(["y", "s0", "s1"])["w"].sum()
    data = Groups.from_data(y, s, weight)
    for counts in (series, series.to_dict()):
        groups = Groups.from_counts(counts)
        np.testing.assert_allclose(groups.mass, data.mass)
        assert groups.names == data.names


def test_a_pandas_count_keeps_its_names():
    frame = pd.DataFrame({"income": [0, 1, 1], "sex": ["F", "M", "F"]})
    groups = Groups.from_counts(frame.groupby(["income", "sex"]).size())
    assert groups.cell_names(by_label=True)[0] == "income=0, sex=F"


class TestBadInput:
    @pytest.mark.parametrize(
        ("y", "s", "message"),
        [
            ([0, 1], [0], r"s: expected one value per row of y \(2\), got 1"),
            ([], [], "y: expected at least one row"),
            ([0, None], [0, 1], "y: every row needs a label; row 1"),
            ([0, 1], [0.5, 1.0], "s: expected categories or whole numbers, got values such as 0.5"),
            ([0.2, 1], [0, 1], "y: expected categories or whole numbers"),
            ([[0, 1], [1, 0]], [0, 1], "y: expected one label per row, got 2 columns"),
            ([0, 1], np.zeros((2, 2, 2)), "s: expected one value per row, or a table"),
        ],
    )
    def test_columns(self, y, s, message):
        with pytest.raises(ValueError, match=message):
            Groups.from_data(y, s)

    def test_mixed_kinds(self):
        with pytest.raises(
            TypeError, match="s: values of one column must be of one kind.*int, str"
        ):
            Groups.from_data([0, 1], ["a", 1])

    def test_mixed_kinds_in_a_series(self):
        with pytest.raises(TypeError, match="values of one column must be of one kind.*int, str"):
            Groups.from_data([0, 1], pd.Series(["a", 1]))

    @pytest.mark.parametrize("weight", [[1], [1, -1], [1, np.nan], [0, 0], [[1, 1]]])
    def test_weights(self, weight):
        with pytest.raises(ValueError, match="sample_weight: expected"):
            Groups.from_data([0, 1], [0, 1], weight)

    def test_never_seen(self):
        groups = Groups.from_data([0, 1], {"sex": ["F", "M"], "race": ["W", "B"]})
        with pytest.raises(ValueError, match="s .sex.: got 'X', which was never seen"):
            groups.encode({"sex": ["X"], "race": ["W"]})
        with pytest.raises(ValueError, match="s: row 0 .*combination of values"):
            groups.encode({"sex": ["F"], "race": ["B"]})
        with pytest.raises(ValueError, match=r"expected the attributes \['sex', 'race'\]"):
            groups.encode(["F"])
        with pytest.raises(ValueError, match="y: got .*7.*never seen"):
            groups.label_index([7])

    @pytest.mark.parametrize("counts", [{}, {(0,): 1}, {(0, 1): 2, (0, 1, 2): 3}, [1, 2]])
    def test_counts(self, counts):
        with pytest.raises(ValueError, match="counts: expected a mapping"):
            Groups.from_counts(counts)

    def test_unknown_attribute(self):
        with pytest.raises(ValueError, match="attribute: got 'age'"):
            Groups.from_data([0, 1], [0, 1]).marginal("age")


def test_groups_with_few_rows_are_not_judged():
    size = [400, 30, 29, 7, 0]
    np.testing.assert_array_equal(judged_groups(size), [True, True, False, False, False])
    np.testing.assert_array_equal(judged_groups(size, 0), [True] * 5)
    # A share: 2 % of 466 rows are 9.3, so 10 rows are needed.
    assert least_rows(466, 0.02) == 10
    np.testing.assert_array_equal(judged_groups(size, 0.02), [True, True, True, False, False])
    for wrong in (-1, float("nan"), "30", None, True):
        with pytest.raises(ValueError, match="min_group: expected a finite number of at least 0"):
            judged_groups(size, wrong)


@given(st.lists(st.integers(0, 80), min_size=2, max_size=8), st.integers(0, 60))
def test_at_least_two_groups_are_left_to_compare(size, least):
    enough = judged_groups(size, least)
    if sum(n >= max(least, 1) for n in size) > 1:
        np.testing.assert_array_equal(enough, np.array(size) >= least)
    else:
        assert enough.all()
