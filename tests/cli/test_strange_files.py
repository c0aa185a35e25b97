"""The program on files as people have them, and what it says of where its figures come from."""

import hashlib
import json
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from fairgrad import fairness_levels
from fairgrad.cli import main

N = 420
NAMED = ["--target", "y", "--sensitive", "sex", "--epochs", 3]


@pytest.fixture(scope="module")
def table():
    """Everything a German spreadsheet has, in 420 rows; a row without a label among them."""
    chance = np.random.default_rng(0)
    sex = chance.choice(["f", "f ", "m"], N)
    x = chance.normal(size=N) + 0.7 * (sex == "m")
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(chance.integers(0, 900, N), "D")
    frame = pd.DataFrame(
        {
            "": range(N),
            "kunden_id": chance.permutation(10**6)[:N],
            "x": x.round(3),
            "lohn": [f"{int(v):,}".replace(",", ".") for v in chance.normal(4e4, 9e3, N)],
            "quote": [f"{v}%" for v in chance.integers(0, 100, N)],
            "seit": days.strftime("%d.%m.%Y"),
            "religion": chance.choice(["None", "katholisch", "jüdisch"], N),
            "alter": np.where(chance.random(N) < 0.1, "NA", chance.integers(18, 80, N).astype(str)),
            "land": "DE",
            "sex": sex,
            "y": np.where(x + chance.normal(size=N) > 0.3, "ja", "nein"),
        }
    )
    frame.loc[3, "y"] = ""
    return frame


@pytest.fixture(scope="module")
def german(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "leute.csv"
    table.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    return path


@pytest.fixture
def run(capsys):
    """The program in this process: quicker, and warnings are errors."""

    def run(*arguments, code=0):
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with pytest.raises(SystemExit) as left:
                main([str(argument) for argument in arguments])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        out, err = capsys.readouterr()
        assert left.value.code == code, err
        return out, " ".join(err.split())

    return run


@pytest.fixture
def model(german, run):
    """Fitted once, whatever test comes first."""
    folder = german.parent / "model"
    if not folder.exists():
        _, err = run("fit", german, *NAMED, "--desirable", "ja", "--out", folder)
        (german.parent / "said.txt").write_text(err, encoding="utf-8")
    return folder


def test_what_was_found_is_said(model):
    said = (model.parent / "said.txt").read_text(encoding="utf-8")
    for words in (
        "leute.csv is read with fields separated by semicolons, numbers with a decimal comma, enc",
        "religion: 'None'",
        "Unnamed: 0 (no name in the file); kunden_id (it looks like an identifier); land (one v",
        "Dates become year, month, weekday and age in days before the latest date: seit.",
        "marked: alter",
        "1 row left out (no y).",
        "The audit is a cross-validation: 419 rows, each predicted by one of 5 models",
    ):
        assert words in said


def test_the_audit_can_be_computed_from_the_rows_that_are_written(model, table):
    rows = pd.read_csv(model / "test_rows.csv")
    assert rows["row"].tolist() == [n for n in range(1, N + 1) if n != 4]
    assert sorted(rows["fold"].unique()) == [1, 2, 3, 4, 5]
    own = table.iloc[rows["row"] - 1]
    audit = json.loads((model / "audit.json").read_text(encoding="utf-8"))
    accuracy = next(
        r["value"] for r in audit["rates"] if r["rate"] == "accuracy" and r["group"] == "overall"
    )
    assert accuracy == pytest.approx(accuracy_score(own["y"], rows["prediction"]))
    levels = fairness_levels(own["y"], rows["prediction"], own["sex"].str.strip(), "equalized_odds")
    odds = next(v for v in audit["verdicts"] if v["measure"] == "equalized_odds")
    assert odds["unfairness"] == pytest.approx(levels.unfairness)
    better = rows["probability of ja"] > 0.5
    assert (better == (rows["prediction"] == "ja")).all()


def test_every_result_says_what_it_rests_on(model, german):
    digest = hashlib.sha256(german.read_bytes()).hexdigest()
    source = json.loads((model / "audit.json").read_text(encoding="utf-8"))["provenance"]
    assert source["data"] == [
        {"name": "leute.csv", "bytes": german.stat().st_size, "sha256": digest}
    ]
    assert source["command"].startswith("fairgrad fit ")
    assert "--desirable ja" in source["command"]
    assert source["versions"]["pandas"] == pd.__version__
    assert pd.Timestamp(source["date"]).tzinfo is not None
    for name in ("MODEL_CARD.md", "report.html"):
        page = (model / name).read_text(encoding="utf-8")
        assert digest in page
        assert source["date"] in page


def test_auditing_the_training_rows_is_warned_of(model, german, run):
    out, err = run("audit", model, german, "--json")
    assert "leute.csv is the table that this model was trained on" in err
    assert any("--held-out" in note for note in json.loads(out)["notes"])
    out, err = run("audit", model, german, "--held-out", "--json")
    assert "trained on" not in err
    audit = json.loads((model / "audit.json").read_text(encoding="utf-8"))
    assert json.loads(out)["audit"]["rates"] == audit["rates"]


def test_held_out_rows_of_another_table(model, table, tmp_path, run):
    table.to_csv(tmp_path / "other.csv", index=False)
    _, err = run("audit", model, tmp_path / "other.csv", "--held-out", code=2)
    assert "other.csv is not the table this model was judged on" in err
    _, err = run("audit", tmp_path / "other.csv", "--held-out", *NAMED[:4], code=2)
    assert "--held-out has no effect" in err


def test_a_model_predicts_its_own_table_and_a_header_alone(model, german, table, tmp_path, run):
    _, err = run("predict", model, german, "-o", tmp_path / "out.csv")
    assert "420 rows predicted" in err
    assert "Note" not in err
    (tmp_path / "header.csv").write_text(";".join(["nr", *table.columns[1:]]) + "\n")
    out, err = run("predict", model, tmp_path / "header.csv")
    assert out.strip().endswith(",sex,y,prediction,probability")
    assert len(out.splitlines()) == 1
    _, err = run("predict", model, tmp_path / "header.csv", "-o", tmp_path / "none.csv")
    assert f"0rowspredicted;writtento{tmp_path / 'none.csv'}" in "".join(err.split())  # it wraps
    assert len((tmp_path / "none.csv").read_text().splitlines()) == 1
    own = table.rename(columns={"": "nr"})
    own.assign(
        lohn=own["lohn"].str.replace(".", "").astype(int), quote=own["quote"].str[:-1].astype(int)
    ).to_csv(tmp_path / "plain.csv", index=False)
    run("predict", model, tmp_path / "plain.csv", "-o", tmp_path / "plain_out.csv")
    outs = [pd.read_csv(tmp_path / name) for name in ("out.csv", "plain_out.csv")]
    np.testing.assert_allclose(*(out["probability"] for out in outs))


def test_a_test_file_of_ones_own(table, tmp_path, run):
    table[:200].to_csv(tmp_path / "train.csv", index=False)
    table[200:].to_csv(tmp_path / "test.csv", index=False, sep="\t", encoding="utf-16")
    folder = tmp_path / "model"
    out, _ = run(
        "fit", tmp_path / "train.csv", *NAMED, "--test", tmp_path / "test.csv",
        "--out", folder, "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert found["rows"] == {"training_and_validation": 199, "test": 220, "folds": 0}
    run("predict", folder, tmp_path / "test.csv", "-o", tmp_path / "out.csv")
    predicted = pd.read_csv(tmp_path / "out.csv")
    assert found["accuracy"] == pytest.approx(
        accuracy_score(predicted["y"], predicted["prediction"])
    )
    rows = pd.read_csv(folder / "test_rows.csv")
    assert rows["row"].tolist() == list(range(1, 221))
    assert rows["prediction"].tolist() == predicted["prediction"].tolist()
    again, _ = run("audit", folder, tmp_path / "test.csv", "--held-out", "--json")
    assert json.loads(again)["audit"]["rates"] == found["audit"]["rates"]
    table[200:].assign(y="vielleicht").to_csv(tmp_path / "test.csv", index=False)
    _, err = run(
        "fit", tmp_path / "train.csv", *NAMED, "--test", tmp_path / "test.csv",
        "--out", tmp_path / "other", code=2,
    )  # fmt: skip
    assert "'vielleicht' as a value of 'y', which the training table lacks" in err


def assert_refuses_older(folder, table, run):
    """A folder of an earlier version is refused with one sentence."""
    known = json.loads((folder / "fairgrad.json").read_text(encoding="utf-8"))
    del known["sealed"], known["checksum"]
    (folder / "fairgrad.json").write_text(json.dumps({**known, "schema_version": 1}))
    _, err = run("predict", folder, table, code=2)
    assert "earlier version" in err


def test_the_share_for_the_test_and_options_that_exclude_each_other(german, tmp_path, run):
    some = ["--test-size", 0.5, "--drop", "seit"]
    out, _ = run("fit", german, *NAMED, *some, "--out", tmp_path / "m", "--json")
    assert json.loads(out)["rows"] == {"training_and_validation": 209, "test": 210, "folds": 0}
    rows = pd.read_csv(tmp_path / "m" / "test_rows.csv")
    assert "fold" not in rows
    again, err = run("audit", tmp_path / "m", german, "--held-out", "--json")
    assert json.loads(again)["audit"]["rates"] == json.loads(out)["audit"]["rates"]
    assert_refuses_older(tmp_path / "m", german, run)
    both = ["--folds", 3, "--test", german, "--out", tmp_path / "n"]
    _, err = run("fit", german, *NAMED, *both, code=2)
    assert "--test and --folds exclude each other" in err
    _, err = run("fit", german, *NAMED, "--folds", 1, "--out", tmp_path / "n", code=2)
    assert "at least 2" in err


def test_a_full_disk_names_what_could_not_be_written(monkeypatch, model, german, tmp_path, run):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    out = tmp_path / "out.csv"
    _, err = run("predict", model, german, "-o", out, code=2)
    assert err == f"Error: {out} cannot be written: No space left on device."
    _, err = run("predict", model, german, code=2)
    assert err == "Error: the standard output cannot be written: No space left on device."
    assert not list(tmp_path.iterdir())
