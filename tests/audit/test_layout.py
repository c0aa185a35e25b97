"""Tables on any terminal: no name is cut, and no sign that it cannot show."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairgrad.audit import Audit
from fairgrad.signs import HANDLER, STAND_INS
from fairgrad.text import Block, as_plain_text

LONG = ["Native Hawaiian or Other Pacific Islander", "Two or more races (not Hispanic)", "F"]


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    y = pd.Series(rng.choice([f"grade {c}" for c in "ABCDEFGHIJKLMNO"], 3000), name="grade")
    frame = pd.DataFrame(
        {"ethnicity": rng.choice(LONG, 3000), "parental education": rng.choice(["low", "hi"], 3000)}
    )
    return Audit(y, rng.permutation(y), frame, baseline=rng.permutation(y))


def words_of(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_names_are_never_cut(audit, width):
    shown = audit.summary(width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    letters = re.sub(r"[^\w]", "", shown)
    for name in LONG:  # a name may wrap, but all of it is there
        assert re.sub(r"[^\w]", "", name) in letters or all(w in shown for w in name.split())
    assert "grade L" in words_of(shown)
    assert "... 3 more labels" in words_of(shown)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_every_encoding_gets_signs_it_can_show(audit, encoding):
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding=encoding), width=80, color_system=None)
    # An encoding that cannot hold a sign would raise here.
    console.print(audit.on_terminal(explain=True))
    console.file.flush()
    shown = raw.getvalue().decode(encoding)
    assert max(map(len, shown.splitlines())) <= 80
    assert ("<= 0.05" in shown) == (encoding != "utf-8")
    assert ("->" in shown) == (encoding != "utf-8")


def test_stand_ins_are_ascii_and_names_are_spelt_out():
    assert all(stand_in.isascii() for stand_in in STAND_INS.values())
    shown = {
        encoding: "✓ größe → \u05e9".encode(encoding, errors=HANDLER).decode(encoding)
        for encoding in ("ascii", "cp1252", "utf-8")
    }
    assert shown == {
        "ascii": "ok gr\\xf6\\xdfe -> \\u05e9",
        "cp1252": "ok größe -> \\u05e9",
        "utf-8": "✓ größe → \u05e9",
    }


def test_a_table_wraps_its_texts_and_then_becomes_records():
    table = Block(
        "Title", ["Group", "rows", "rate"], [["a name of several words", "10", "50.0±3.0"]]
    )
    assert "a name of several words   " in as_plain_text(table, 60) or (
        " a name of several words  " in as_plain_text(table, 60)
    )
    wrapped = as_plain_text(table, 38).splitlines()
    assert any(line.strip() == "words" for line in wrapped)
    assert any("50.0±3.0" in line and "a name of" in line for line in wrapped)
    records = [line.rstrip() for line in as_plain_text(table, 24).splitlines()]
    assert "   rows  10" in records
    assert "   rate  50.0±3.0" in records
