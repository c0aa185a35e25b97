import pytest

from fairgrad.audit import words
from fairgrad.audit.words import in_sentence, listed
from fairgrad.groups import group_rows
from fairgrad.text import END, ISOLATE, printable


def test_plain_names_stay_as_they_are():
    assert in_sentence("sex=Female, race=Black (2)") == "sex=Female, race=Black (2)"
    assert in_sentence("größe ü 👩🏽‍🔬") == "größe ü 👩🏽‍🔬"


def test_right_to_left_names_cannot_turn_the_sentence_around():
    for name in ("\u05e9\u05dc\u05d5\u05dd", "\u202eoverride", "\u0645\u0631\u0623\u0629"):
        assert in_sentence(name) == f"{ISOLATE}{name}{END}"


def test_long_names_are_cut():
    assert len(in_sentence("x" * 300)) == 160
    assert in_sentence("x" * 300).endswith("…")


def test_many_names_are_counted():
    assert listed(["a", "b"]) == "a; b"
    assert listed(list("abcdef"), most=4) == "a; b; c; d; and 2 more"


def test_names_with_commas_are_told_apart_by_semicolons():
    assert words.conjoined(["a", "b", "c"]) == "a, b and c"
    assert words.conjoined(["Black, men", "white, men"]) == "Black, men and white, men"
    crossed = ["Black, men", "white, men", "2 more"]
    assert words.conjoined(crossed) == "Black, men; white, men; and 2 more"


def test_nothing_in_a_name_steers_a_terminal():
    assert printable("a\x1b[2Jb\u202e") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}"
    assert printable(in_sentence("\u05e9\u05dc")) == "\u05e9\u05dc"


def test_groups_whose_values_are_codes_are_named_with_their_column():
    rows = group_rows([0, 1] * 4, {"black": [0, 0, 1, 1] * 2, "sex": ["Female", "Male"] * 4})
    assert words.people_names(rows.groups) == [
        "black 0, women", "black 0, men", "black 1, women", "black 1, men"
    ]  # fmt: skip
    assert words.people_names(rows.groups.marginal("sex")) == ["women", "men"]
    answers = group_rows([0, 1] * 2, {"black": ["no", "no", "yes", "yes"]})
    assert words.people_names(answers.groups) == ["black no", "black yes"]
    regions = group_rows([0, 1] * 2, {"region": ["N", "S", "N", "S"]})
    assert words.people_names(regions.groups) == ["N", "S"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.05, "5"), (0.1234, "12.3"), (0.01, "1.0"), (-0.003, "-0.3"), (-0.0004, "0")],
)
def test_points_are_never_one(value, shown):
    assert words.points(value) == shown


def test_people_of_a_group_are_counted_as_people():
    rows = group_rows([0, 1] * 6, {"race": ["Black", "Native American", "Other", "afam"] * 3})
    told = [words.people_with(rows.groups, g) for g in range(4)]
    assert told == ["Black people", "Native American people", "people (Other)", "people (afam)"]
    sex = group_rows([0, 1] * 2, {"sex": ["Female", "Male"] * 2}).groups
    assert words.people_with(sex, 0, "with y 1") == "women with y 1"
    assert [words.people_with(sex, g, n=1) for g in (0, 1)] == ["woman", "man"]
    codes = group_rows([0, 1] * 2, {"sex": [0, 1] * 2}).groups
    assert words.people_with(codes, 0, "with choice 1") == "people (sex 0, choice 1)"
    assert words.people_with(codes, 1, n=1) == "person (sex 1)"
