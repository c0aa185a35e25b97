import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairgrad.audit import Audit
from fairgrad.text import escape

HOSTILE = [
    "<script>alert(1)</script>",
    "[red]markup[/red] | `pipe` \"quotes\" 'too' & *stars*",
    "\x1b[2J\x07line\nbreak",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "emoji 👩🏽‍🔬",
    "x" * 300,
]


@pytest.fixture
def audit():
    rng = np.random.default_rng(0)
    y, pred, before = rng.integers(2, size=(3, 600))
    frame = pd.DataFrame(
        {"kind |<b>": rng.choice(HOSTILE, 600), "sex": rng.choice(["F", "M"], 600)}
    )
    measures = ["demographic_parity", "equalized_odds", "accuracy_parity", "four_fifths_rule"]
    return Audit(y, pred, frame, measures=measures, baseline=before)


@pytest.mark.parametrize("width", [80, 120])
def test_the_summary_fits_the_terminal(audit, width):
    text = audit.summary(width, explain=True)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert "[red]markup" in text
    assert "Equalized odds" in text
    assert "✗ unfair" in text or "? undecided" in text


def test_rich_prints_an_audit(audit, capsys):
    Console(width=80).print(audit)
    assert "Rates by sex" in capsys.readouterr().out


def test_json_is_strict_versioned_and_whole(audit, tmp_path):
    path = tmp_path / "audit.json"
    text = audit.to_json(path)

    def refuse(constant):
        raise AssertionError(constant)

    read = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert text == path.read_text(encoding="utf-8")
    assert read == audit.to_dict()
    assert (read["schema"], read["schema_version"]) == ("fairgrad.audit", 4)
    assert len(read["rates"]) == len(audit.to_frame("rates"))
    assert read["verdict"] == audit.verdict
    assert [p.name for p in tmp_path.iterdir()] == ["audit.json"]


def test_undefined_figures_are_null_in_json():
    y = np.tile([0, 1, 0, 0], 30)  # group b has no positives
    audit = Audit(y, y, np.tile(["a", "a", "b", "b"], 30))
    levels = {row["name"]: row["level"] for row in audit.to_dict()["levels"]}
    assert levels["y=1, sensitive_features=b"] is None


def test_markdown_shows_names_as_text(audit):
    text = audit.to_markdown()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    bars = {line.replace("\\|", "").count("|") for line in tables if "kind" in line}
    assert bars  # rows with hostile names keep their table's number of columns
    header = next(i for i, line in enumerate(text.splitlines()) if line.startswith("| measure"))
    lines = text.splitlines()[header : header + 3]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_escape_leaves_no_markdown():
    assert escape("a|b\n*c* <d>") == "a\\|b \\*c\\* &lt;d&gt;"


def test_frames_have_a_row_per_figure(audit):
    assert set(audit.to_frame("groups")["attribute"]) == {"kind |<b>", "sex", "kind |<b> x sex"}
    assert len(audit.to_frame("verdicts")) == 4 * 3
    assert (
        audit.to_frame("levels").groupby("measure", observed=True).size()["accuracy_parity"] == 20
    )
    with pytest.raises(ValueError, match="kind: expected one of"):
        audit.to_frame("everything")


def test_a_changed_frame_does_not_change_the_audit(audit):
    frame = audit.to_frame("rates")
    frame["value"] = 2.0
    assert audit.to_frame("rates")["value"].max() <= 1


def test_many_labels_have_a_summary_too():
    rng = np.random.default_rng(1)
    y, pred = rng.choice(["low", "mid", "high", "top"], size=(2, 500))
    audit = Audit(y, pred, rng.choice(["a", "b"], 500), y_desirable="top")
    assert "recall" in audit.summary()
    assert max(map(len, audit.summary().splitlines())) <= 80
    assert "| recall top |" in audit.to_markdown()


def test_repr_says_the_verdict(audit):
    assert repr(audit) == f"<Audit of 600 rows by kind |<b>, sex: {audit.verdict}>"


def test_the_desirable_label_is_shown_wherever_results_are():
    rng = np.random.default_rng(2)
    y, pred = rng.choice(["no", "yes"], size=(2, 300))
    audit = Audit(y, pred, rng.choice(["a", "b"], 300))
    assert "selected means y yes" in audit.summary(200)
    assert "selected means y yes" in audit.to_markdown()
    assert audit.to_dict()["desirable"] == ["yes"]


def test_the_summary_of_several_attributes_keeps_names_whole():
    rng = np.random.default_rng(3)
    y, pred, before = rng.integers(2, size=(3, 900))
    frame = pd.DataFrame(
        {"Sex": rng.choice(["F", "M"], 900), "ethnicity": rng.choice(["Inuit", "White"], 900)}
    )
    lines = Audit(y, pred, frame, baseline=before).summary(80, explain=True).splitlines()
    for name in ("Demographic parity", "F", "M, White", "F, Inuit"):
        assert any(line.startswith(f" {name}") for line in lines), name
    assert any("Sex x ethnicity" in line for line in lines)
    assert not any("…" in line for line in lines)
    one = Audit(y, pred, frame["Sex"], baseline=before).summary(80, explain=True)
    assert "Verdict, groups by Sex" in one
    assert "before" in one
