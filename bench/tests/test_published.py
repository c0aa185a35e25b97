"""Published tables: protocols, records that are kept, fronts and baselines."""

import json
import re
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairgrad_bench.program import SOURCES
from fairgrad_bench.published import (
    abcfair,
    differing,
    ffb,
    large,
    linearpost,
    oxonfair,
    running,
    tables,
    with_tables,
)
from fairgrad_bench.published.fairprojection import SOURCE as COMPAS
from fairgrad_bench.published.fairprojection import gaps as compas_gaps
from fairgrad_bench.published.loops import epochs, train_network
from fairgrad_bench.published.running import PublishedUnit, read_published, run_published
from fairgrad_bench.published.source import (
    BASELINE,
    THEIRS,
    Method,
    Rows,
    Split,
    split_test_first,
    split_train_first,
)

TEST = Rows(np.zeros((8, 1)), np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1] * 2))
PREDICTED = np.array([0, 0, 0, 1, 1, 1, 0, 1])


def small_split(_cell, seed):
    rng = np.random.default_rng(seed)
    s = rng.integers(2, size=300)
    X = (rng.normal(size=(300, 3)) + s[:, None]).astype(np.float32)
    rows = Rows(X, (X.sum(1) + rng.normal(size=300) > 1.5).astype(np.int64), s)
    return Split(rows.take(np.arange(200)), None, rows.take(np.arange(200, 300)))


def majority(split, _measure, _seed):
    return np.full(len(split.test.y), np.bincount(split.train.y).argmax())


@pytest.fixture
def source(monkeypatch):
    """A source of small random tables; its calls are counted."""
    calls = []

    def told(split, measure, seed):
        calls.append((measure, seed))
        return majority(split, measure, seed)

    found = replace(
        COMPAS,
        seeds=3,
        split=small_split,
        methods={
            "logistic regression": Method(told, BASELINE, uses_measure=False),
            "fair": Method(told, is_default=True),
        },
    )
    monkeypatch.setattr(running, "source_named", lambda _: found)
    monkeypatch.setattr(tables, "source_named", lambda _: found)
    running.forget_split()
    yield found, calls
    running.forget_split()


def test_units_with_a_record_are_kept(tmp_path, source):
    _, calls = source
    run_published(["fairprojection"], tmp_path, seeds=1)
    assert calls == [("", 0), ("equalized_odds", 0), ("demographic_parity", 0)]
    run_published(["fairprojection"], tmp_path, seeds=2)
    assert [seed for _, seed in calls] == [0] * 3 + [1] * 3
    run_published(["fairprojection"], tmp_path, seeds=2)
    assert len(calls) == 6
    run_published(["fairprojection"], tmp_path, only="* / fair / demographic* / *")
    assert calls[6:] == [("demographic_parity", 2)]
    assert len(read_published(tmp_path)) == 7


def test_a_failure_stops_nothing_and_is_tried_again(tmp_path, source, monkeypatch):
    found, calls = source

    def fails(*_):
        raise ValueError("no")

    methods = {**found.methods, "broken": Method(fails)}
    other = replace(found, methods=methods)
    monkeypatch.setattr(running, "source_named", lambda _: other)
    new = run_published(["fairprojection"], tmp_path, seeds=1)
    assert [record.reason for record in new if record.status == "failed"] == ["ValueError: no"] * 2
    assert len(calls) == 3
    assert len(run_published(["fairprojection"], tmp_path, seeds=1)) == 2


@pytest.mark.usefixtures("source")
def test_tables_have_their_rows_and_ours(tmp_path):
    run_published(["fairprojection"], tmp_path / "records")
    written = tables.write_published(tmp_path / "records", tmp_path / "out")
    assert {path.name for path in written} == {
        "published_fairprojection.csv",
        "published_baselines.csv",
        "published_summary.csv",
    }
    found = pd.read_csv(tmp_path / "out" / "published_fairprojection.csv")
    assert set(found["whose"]) == {"baseline", "theirs", "ours"}
    ours = found[found["whose"] == "ours"]
    assert list(ours["seeds"]) == [3, 3]
    assert (ours["gap"] == 0).all()  # one label for everybody
    assert set(pd.read_csv(tmp_path / "out" / "published_baselines.csv")["check"]) == {
        "differs",
        "not checked",
    }
    (line,) = differing(tmp_path / "out")
    assert line.startswith("fairprojection, COMPAS, race, equalized odds: ")
    assert "published .6741 / .2710, here ." in line
    assert differing(tmp_path) == []


@pytest.mark.usefixtures("source")
def test_rows_of_earlier_tables_are_kept_if_they_have_more_seeds(tmp_path):
    run_published(["fairprojection"], tmp_path / "before", seeds=2)
    tables.write_published(tmp_path / "before", tmp_path / "out")
    run_published(["fairprojection"], tmp_path / "after", only="* / fair / demographic* / *")
    run_published(["fairprojection"], tmp_path / "after", only="* / fair / equalized* / 0")
    tables.write_published(tmp_path / "after", tmp_path / "out", tmp_path / "out")
    found = pd.read_csv(tmp_path / "out" / "published_fairprojection.csv")
    here = found[found["made"] == "run here"].set_index(["method", "measure"])["seeds"]
    assert here.to_dict() == {
        ("logistic regression", "demographic_parity"): 2,
        ("logistic regression", "equalized_odds"): 2,
        ("fair", "demographic_parity"): 3,
        ("fair", "equalized_odds"): 2,
    }


def test_a_row_is_off_the_front_if_one_of_theirs_beats_it():
    row = {"source": "ffb", "cell": "Adult, sex", "measure": "demographic_parity"}
    ours = pd.DataFrame(
        [
            {**row, "method": "a", "whose": "ours", "accuracy": 0.8, "gap": 0.02, "seeds": 1},
            {**row, "method": "b", "whose": "ours", "accuracy": 0.83, "gap": 0.03, "seeds": 1},
            {**row, "method": "c", "whose": THEIRS, "accuracy": 0.82, "gap": 0.01, "seeds": 1},
        ]
    ).assign(made="run here", default=[True, False, False], seconds=1.0)
    found = tables.joined(ours)
    beaten = found[found["whose"] == "ours"].set_index("method")["beaten by"]
    assert beaten.to_dict() == {"a": "c", "b": ""}
    summary = tables.summary(found).iloc[0]
    assert (summary["cells"], summary["on the front"], summary["by defaults"]) == (1, 1, 0)
    assert tables.summary(found[found["whose"] == THEIRS]).empty
    assert tables.summary(found[found["whose"] != THEIRS]).empty  # nobody to compare with


@pytest.mark.parametrize(("gap", "is_as_fair"), [(0.01, 1), (0.02, 0)])
def test_default_rows_on_the_front_may_be_less_fair_than_all_rivals(gap, is_as_fair):
    row = {"source": "ffb", "cell": "Adult, sex", "measure": "demographic_parity", "seeds": 1}
    figures = pd.DataFrame(
        [
            {**row, "whose": "ours", "default": True, "accuracy": 0.9, "gap": 0.02},
            {**row, "whose": "ours", "default": True, "accuracy": 0.85, "gap": gap},
            {**row, "whose": THEIRS, "default": False, "accuracy": 0.8, "gap": 0.015},
        ]
    ).assign(seconds=1.0, **{"beaten by": ""})
    summary = tables.summary(figures).iloc[0]
    assert summary["by defaults"] == 1
    assert summary["by defaults, as fair as a rival"] == is_as_fair


def test_gaps_are_those_of_the_protocols():
    assert compas_gaps(TEST, PREDICTED) == {"equalized_odds": 0.5, "demographic_parity": 0.0}
    found = ffb.gaps(TEST, PREDICTED)
    assert found == pytest.approx(
        {"demographic_parity": 0.0, "equalized_odds": 1.0, "equality_of_opportunity": 0.5}
    )
    found = abcfair.gaps(TEST, PREDICTED)
    assert found["equality_of_opportunity"] == pytest.approx(1 / 3)
    three = Rows(TEST.X, TEST.y, np.array([0, 0, 1, 1, 2, 2, 2, 2]))
    assert oxonfair.gaps(three, PREDICTED)["demographic_parity"] == pytest.approx(0.5)
    assert linearpost.gaps(three, PREDICTED)["demographic_parity"] == pytest.approx(0.75)


@pytest.mark.parametrize("loss", ["plain", "ours", partial(ffb.penalty, 1.0)])
def test_the_loop_of_ffb_trains_with_any_loss(loss, monkeypatch):
    monkeypatch.setattr(ffb, "STEPS", 60)
    loop = ffb.ffb_loop(lambda inputs: torch.nn.Linear(inputs, 1), rate=0.05, batch=1024)
    split = small_split("", 0)
    predicted = train_network(loop, loss, split, "equalized_odds", 0)
    assert (predicted == split.test.y).mean() > 0.6


def test_batches_are_those_of_the_loops():
    assert [len(rows) for rows in epochs(5, size=2, count=2)] == [2, 2, 1, 2, 2, 1]
    assert sorted(torch.cat(list(epochs(5, size=2, count=1))).tolist()) == [0, 1, 2, 3, 4]
    first = list(islice(ffb.whole_batches(5, 2), 4))
    assert [len(rows) for rows in first] == [2, 2, 2, 2]
    assert len(set(torch.cat(first[:2]).tolist())) == 4


def test_rows_are_split_as_the_protocols_have_it():
    rows = Rows(np.arange(200)[:, None], np.arange(200) % 2, np.arange(200) % 4)
    sizes = {
        (140, 0, 60): split_test_first(rows, 0, 0.3, 0),
        (128, 32, 40): split_test_first(rows, 0, 0.2, 0.2),
        (80, 60, 60): split_train_first(rows, 0, 0.6, rows.s),
    }
    for expected, found in sizes.items():
        parts = [part for part in found if part is not None]
        assert [len(part.y) for part in parts] == [size for size in expected if size]
        assert sorted(np.concatenate([part.X[:, 0] for part in parts])) == list(range(200))
    assert np.bincount(found.test.s).tolist() == [15] * 4


def test_every_source_has_published_figures_and_known_cells():
    figures = tables.published_figures()
    assert set(figures["source"]) == set(SOURCES)
    for name in SOURCES:
        own = figures[figures["source"] == name]
        source = running.source_named(name)
        assert set(own["cell"]) <= set(source.cells)
        assert set(own["measure"]) <= set(source.measures)
        baselines = {key for key, method in source.methods.items() if method.whose == BASELINE}
        assert set(own.loc[own["whose"] == BASELINE, "method"]) <= baselines


@pytest.mark.parametrize(
    ("gap", "seeds", "check"),
    [
        (0.11, 3, "agrees"),
        (0.14, 3, tables.WITH_THEIRS),
        (0.16, 3, "differs"),
        (0.10, 1, "not checked"),
    ],
)
def test_baselines_are_compared_with_both_errors(gap, seeds, check):
    """Ours has a standard error of 0.01, the published one of 0.02."""
    model = {"source": "ffb", "cell": "a", "measure": "b", "method": "net", "whose": BASELINE}
    both = pd.DataFrame(
        {**model, "made": made, "accuracy": 0.8, "accuracy_se": 0.01, **figures}
        for made, figures in {
            tables.RUN_HERE: {"gap": gap, "gap_se": 0.01, "seeds": seeds},
            "published": {"gap": 0.10, "gap_se": 0.02},
        }.items()
    )
    assert tables.baselines(both)["check"].tolist() == [check]


def test_the_committed_page_shows_the_committed_tables():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "results" / "published.md").read_text(encoding="utf-8")
    assert with_tables(page, root / "results") == page
    shown = set(re.findall(r"<!-- table: (\S+) -->", page))
    assert {path.name for path in (root / "results").glob("published_*.csv")} <= shown


def test_the_pictures_have_a_point_per_row_of_the_tables():
    """`draw_charts` of scripts/pictures.py draws them again."""
    root = Path(__file__).parents[2]
    for name in SOURCES:
        path = root / "results" / f"published_{name}.csv"
        if not path.is_file():
            continue
        cells = pd.read_csv(path).groupby(["cell", "measure"])
        rows = sum(len(part) for _, part in cells if (part["whose"] == "ours").any())
        picture = (root / "docs" / "pictures" / f"published_{name}.svg").read_text(encoding="utf-8")
        assert picture.count('aria-roledescription="point"') == rows, name


@pytest.mark.usefixtures("source")
def test_tables_on_the_page_have_a_column_per_measure(tmp_path):
    run_published(["fairprojection"], tmp_path, seeds=2)
    tables.write_published(tmp_path, tmp_path)
    text = with_tables("a\n<!-- table: published_fairprojection.csv -->\n<!-- end -->\nb", tmp_path)
    head, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "| demographic parity | equalized odds | seeds | seconds |" in head
    (own,) = [row for row in rows if row.startswith("| fair | ours, defaults | run here |")]
    assert own.count("**.") == 2  # fair by one label for everybody: no row of theirs beats it
    assert with_tables(text, tmp_path) == text


@pytest.mark.parametrize("task", large.TASKS)
def test_tasks_of_the_large_table_run(task, monkeypatch):
    train, _, test = small_split("", 0)
    parts = [Rows(part.X, part.y, part.s * 10) for part in (train, test)]  # two sexes and races
    monkeypatch.setattr(large, "halves", lambda: parts)
    found = json.loads(large.run_task(task))
    assert found["task"] == task
    assert found["rows"] == (300 if task.startswith("Audit") else 200)
    assert found["peak_mb"] >= found["data_mb"] > 0


def test_names_of_records_differ():
    units = [unit for name in SOURCES for unit in running.units(running.source_named(name), 2)]
    assert len({unit.name for unit in units}) == len(units)
    again = PublishedUnit("ffb", "Adult, sex", "network", "", 0, 1)
    assert again.name == "ffb-Adult__sex-network--0-1"
