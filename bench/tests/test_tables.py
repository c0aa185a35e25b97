"""Tables and figures from records, and the commands that write them."""

import io
import re
import struct
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairgrad_bench import (
    BenchResults,
    Unit,
    UnitRecord,
    paper_results,
    read_records,
    summarise,
    write_figures,
)
from fairgrad_bench.records import CountedCells, KeptModel, write_record
from fairgrad_bench.selection import COLUMNS
from fairgrad_bench.tables import markdown_table

CELEBA = ("celeba", "linear")


def record(unit, errors, *, at=0.0, **fields):
    """A record whose candidates err on so many of the 100 rows of each of the four cells."""
    kept = [
        KeptModel(seed, settings, 0, [float(n) for n in wrong], [float(n) for n in wrong])
        for seed in unit.seeds
        for settings, wrong in errors
    ]
    counts = {"validation": [100.0] * 4, "test": [100.0] * 4}
    rows = dict.fromkeys(unit.seeds, counts)
    cells = CountedCells((0, 1), (0, 1))
    return UnitRecord(
        unit, 1, "finished", cells=cells, rows=rows, kept=kept, finished_at=at, **fields
    )


@pytest.fixture
def records():
    fair, unfair = ({"batch_size": 64}, (10, 10, 10, 10)), ({"batch_size": 64}, (0, 0, 0, 40))
    own = {"seeds": (10, 20)}
    batch = Unit("celeba", "linear", "fairgrad", "equalized_odds", varies="batch_size", **own)
    epsilon = Unit(
        "celeba", "linear", "fairgrad_epsilon", "accuracy_parity", varies="epsilon", **own
    )
    return [
        record(Unit("adult", "linear", "fairgrad", "equalized_odds"), [fair], full_grid=True),
        record(Unit("adult", "linear", "unconstrained"), [unfair], full_grid=True),
        record(Unit("adult", "linear", "constant", grid="quick"), [unfair]),
        record(
            Unit("adult", "linear", "threshold", "equalized_odds"), [fair], needs_s_to_predict=True
        ),
        record(batch, [({"batch_size": size}, (size, 0, 0, 0)) for size in (8, 16)]),
        record(epsilon, [({"epsilon": 0.1}, (0, 0, 0, 40)), ({"epsilon": 0.05}, (0, 0, 0, 40))]),
        UnitRecord(Unit("german", "linear", "bifair"), 1, "skipped", "it | cannot"),
        UnitRecord(Unit("german", "linear", "fairret"), 1, "failed", "RuntimeError: no luck"),
    ]


def test_results_have_the_columns_and_names_of_the_papers(records, tmp_path):
    BenchResults.from_records(records).write(tmp_path)
    ours = pd.read_csv(tmp_path / "results.csv")
    paper = paper_results()
    assert list(ours.columns) == list(paper.columns) == list(COLUMNS)
    assert set(ours["measure"]) - {"demographic_parity"} <= set(paper["measure"])
    assert set(ours["model"]) <= set(paper["model"])
    assert set(ours["method"]) - {"threshold"} <= set(paper["method"])
    fairgrad = ours[ours["method"] == "fairgrad"].iloc[0]
    # Ten of a hundred rows of each cell are wrong, for both seeds.
    assert (fairgrad["accuracy"], fairgrad["mean_abs_fairness"]) == (0.9, 0.0)
    assert fairgrad["accuracy_std"] == 0.0


def test_means_and_deviations_are_those_of_the_seeds():
    keys = dict(zip(("dataset", "model", "method", "measure"), "abcd", strict=True))
    rest = {"grid": "paper", "epochs": 50, "seconds": 1.0, "needs_s_to_predict": False}
    rest |= {"expected_accuracy": None, "expected_mean_abs_fairness": None}
    values = [0.81, 0.84, 0.86]
    rows = [
        keys | rest | {"seed": seed} | dict.fromkeys(FIGURES, value)
        for seed, value in enumerate(values)
    ]
    (found,) = summarise(pd.DataFrame(rows)).to_dict(orient="records")
    assert found["accuracy"] == round(np.mean(values), 4)
    assert found["max_fairness_std"] == round(np.std(values), 4)
    assert found["seeds"] == 3


FIGURES = ("accuracy", "mean_abs_fairness", "max_fairness", "min_fairness")


def test_the_page_holds_every_row(records, tmp_path):
    BenchResults.from_records(records).write(tmp_path)
    text = (tmp_path / "tables.md").read_text(encoding="utf-8").replace("\u00a0", " ")
    lines = [line for line in text.splitlines() if line.startswith("| FairGrad ")]
    assert len(lines) == 1
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[:6] == [
        "FairGrad",
        "EOdds",
        "better",
        "0.9000 ± 0.0000",
        "0.8284 ± 0.0040",
        "0.0000 ± 0.0000",
    ]
    assert cells[-1] == "0"  # seconds
    assert "| linear | fairgrad | " in text.partition("<summary>What was run")[2]
    assert "| Threshold † | EOdds |" in text
    assert "| Constant ‡ | AP |" in text
    assert "| Unconstrained | AP |" in text
    assert "it \\| cannot" in text
    assert "RuntimeError: no luck" in text


def test_experiments_stand_beside_the_papers_figures(records):
    results = BenchResults.from_records(records)
    assert results.batch_sizes["batch_size"].tolist() == [8, 16]
    assert results.batch_sizes["accuracy"].tolist() == [0.98, 0.96]
    assert results.batch_sizes["paper_accuracy"].tolist() == [0.8186, 0.8234]
    # 40 of 200 rows of one group wrong: its accuracy is 0.2 below, the levels are +-0.1.
    assert results.epsilons["epsilon"].tolist() == [0.05, 0.1]
    assert results.epsilons["mean_abs_fairness"].tolist() == [0.1, 0.1]
    assert results.epsilons["within_epsilon"].tolist() == [False, True]
    assert results.epsilons["paper_unconstrained_mean_abs_fairness"].tolist() == [0.0204] * 2
    assert "celeba" not in set(results.comparison["dataset"])


def test_tables_of_experiments_show_the_papers_figures_beside_ours(records):
    text = BenchResults.from_records(records).figures_page().replace("\u00a0", " ")
    assert "| CelebA | linear | EOdds | 8 | 0.9800 ± 0.0000 | 0.8186 ± 0.0013 | 0." in text
    assert "| CelebA | linear | AP | 0.05 | 0.9000 ± 0.0000 | 0.1000 ± 0.0000 | no |" in text
    assert "| CelebA | linear | AP | 0.1 | 0.9000 ± 0.0000 | 0.1000 ± 0.0000 | yes |" in text


def test_the_page_names_what_is_missing_of_the_paper(records):
    text = BenchResults.from_records(records).page("figures.md")
    missing = text[text.index("### Never run") :]
    assert re.search(r"\| linear \| FairGrad \| .*German.*", missing)
    # Skipped with a reason is not missing.
    assert not re.search(r"\| linear \| BiFair \| .*German", missing)


def test_a_measure_that_was_not_run_is_missing_although_another_was(records):
    text = BenchResults.from_records(records).page("figures.md")
    ((measures, datasets),) = re.findall(r"\n\| linear \| FairGrad \| (.*) \| (.*) \|", text)
    assert sorted(measures.split(", ")) == ["AP", "EOdds", "EOpp"]
    assert "Adult" in datasets.split(", ")  # by two of the three
    assert "Twitter" not in datasets  # its data cannot be obtained


def test_verdicts_are_a_coloured_grid_and_details_are_collapsed(records):
    results = BenchResults.from_records(records)
    text = results.page("figures.md")
    assert "| data set | linear: EOdds |\n| --- | --- |\n| Adult | 🟩 better |" in text
    assert "](figures.md)" in text
    text += results.figures_page()
    assert text.count("<details>") == text.count("</details>")
    for detail in re.findall(r"<details>.*?</details>", text, re.DOTALL):
        assert not re.search(r"^#", detail, re.MULTILINE)  # headings would break the page
        assert "</summary>\n\n" in detail  # Markdown inside needs the empty line
    assert "<summary>Adult: " in text


def test_experiments_that_are_not_the_papers_have_no_figures_of_it():
    unit = Unit("german", "linear", "fairgrad", "equalized_odds", varies="batch_size")
    records = [record(unit, [({"batch_size": 8}, (8, 0, 0, 0))])]
    text = BenchResults.from_records(records).figures_page().replace("\u00a0", " ")
    assert "| German | linear | EOdds | 8 | 0.9800 ± 0.0000 |  | 0." in text


def test_the_papers_grid_and_the_last_record_count(records):
    unit = records[0].unit
    quick = Unit(unit.dataset, unit.model, unit.method, unit.measure, grid="quick")
    older = record(unit, [({}, (50, 50, 50, 50))], at=1.0, full_grid=True)
    newer = record(unit, [({}, (20, 20, 20, 20))], at=2.0, full_grid=True)
    other = record(quick, [({}, (5, 5, 5, 5))], at=3.0)
    (found,) = BenchResults.from_records([newer, older, other]).summary.to_dict(orient="records")
    assert found["accuracy"] == 0.8


def test_results_kept_without_records_are_merged_with_new_ones(records, tmp_path):
    made = {"environment": {"fairgrad": "1.0", "numpy": "2.0"}}
    before = [replace(own, **made) for own in records]
    anew = Unit("adult", "linear", "unconstrained")
    after = [
        record(Unit("german", "linear", "fairgrad", "equalized_odds"), [({}, (1, 2, 3, 4))]),
        record(anew, [({}, (5, 0, 0, 5))], at=1.0, full_grid=True),
        replace(before[0], status="failed", kept=[], finished_at=-1.0),
    ]
    after = [replace(own, environment={"fairgrad": "1.1", "numpy": "2.0"}) for own in after]
    BenchResults.from_records(before).write(tmp_path / "before")
    kept = BenchResults.from_folder(tmp_path / "before")
    found = BenchResults.from_records(after).merged(kept)
    expected = BenchResults.from_records([*before, *after])
    for name in ("seeds", "comparison", "units", "batch_sizes", "epsilons"):
        one, other = (_sorted(getattr(own, name)) for own in (found, expected))
        pd.testing.assert_frame_equal(one, other, check_dtype=False)
    assert found.settings == expected.settings
    of_unit = found.units.set_index(["dataset", "method"])["environment"]
    assert of_unit["adult", "unconstrained"] == "fairgrad 1.1, numpy 2.0"
    assert of_unit["adult", "constant"] == "fairgrad 1.0, numpy 2.0"


def test_units_of_results_before_they_said_who_made_them(records):
    found = BenchResults.from_records([replace(records[0], environment={"numpy": "2.0"})])
    old = replace(found, units=found.units.drop(columns="environment"))
    new = BenchResults.from_records([record(Unit("german", "linear", "constant"), [({}, [0] * 4)])])
    units = new.merged(old).units
    assert units.set_index("dataset")["environment"].to_dict() == {
        "adult": "numpy 2.0",
        "german": "",
    }


def _sorted(frame):
    """As it would be read again, whatever the order of the rows."""
    read = pd.read_csv(io.StringIO(frame.to_csv(index=False)))
    return read.sort_values(list(read.columns), ignore_index=True)


def test_no_records_are_an_error():
    with pytest.raises(ValueError, match="records: expected at least one"):
        BenchResults.from_records([])


def png_size(path):
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", header[16:24])


def test_figures_are_drawn_with_points_and_error_bars(records, tmp_path):
    written = write_figures(BenchResults.from_records(records), tmp_path, ("png", "svg"))
    names = {path.stem for path in written}
    assert "adult-linear-equalized-odds" in names
    assert "celeba-linear-equalized-odds-batch-size-accuracy" in names
    assert "celeba-linear-accuracy-parity-epsilon-mean-abs-fairness" in names
    for path in written:
        if path.suffix == ".png":
            assert min(png_size(path)) > 400
    svg = (tmp_path / "adult-linear-equalized-odds.svg").read_text(encoding="utf-8")
    # Four methods here, three of which the paper has as well; two bars for each.
    assert svg.count('aria-roledescription="point"') == 7
    assert svg.count('aria-roledescription="rule mark"') == 14
    epsilon = tmp_path / "celeba-linear-accuracy-parity-epsilon-accuracy.svg"
    # Two points with a bar each, and the line of the paper's unconstrained accuracy.
    assert epsilon.read_text(encoding="utf-8").count('aria-roledescription="rule mark"') == 3


def test_markdown_tables_escape_bars():
    assert markdown_table(["a|b"], [["1\n2"]]) == "| a\\|b |\n| --- |\n| 1 2 |"


def test_records_of_a_folder_ignore_half_written_files(records, tmp_path):
    write_record(records[0], tmp_path)
    (tmp_path / ".half.json").write_text("{")
    assert [found.unit for found in read_records(tmp_path)] == [records[0].unit]
