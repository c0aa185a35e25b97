"""What the documentation's build does by itself: code that runs, tables, checks of links."""

import doctest

import altair as alt
import charts
import click
import executed
import gallery_order
import numpy as np
import pandas as pd
import program
import pytest
import repository_pages
import results_charts
import results_tables
import site_check
import tables


@pytest.mark.parametrize(
    "module", [gallery_order, program, repository_pages, results_tables, tables]
)
def test_examples_in_the_extensions(module):
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_code_of_a_page_gives_what_it_prints_and_its_last_value():
    names = {}
    assert executed.run_python("x = 2\nprint('so')\nx + 1", names, "page") == ("so\n", 3)
    assert executed.run_python("x * 5", names, "page") == ("", 10)
    assert executed.run_python("x = 0", names, "page") == ("", None)


def test_code_of_a_page_that_fails_raises():
    with pytest.raises(ZeroDivisionError):
        executed.run_python("1 / 0", {}, "page")


def test_a_chart_without_words_is_refused():
    chart = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q")
    with pytest.raises(ValueError, match="description"):
        charts.alternative_text(charts.as_spec(chart))
    spec = charts.as_spec(chart.properties(description="one\n  point"))
    assert charts.alternative_text(spec) == "one point"
    assert charts.as_spec("no chart") is None


def test_a_chart_becomes_a_picture(tmp_path):
    chart = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q")
    charts.write_svg(charts.as_spec(chart), tmp_path / "new" / "one.svg")
    assert (tmp_path / "new" / "one.svg").read_text().startswith("<svg")


def test_a_frame_becomes_a_table_with_numbers_to_the_right():
    frame = pd.DataFrame({"method_name": ["plain"], "accuracy": [np.float64(0.84671)]})
    table = tables.table_of(frame)
    assert [entry.astext() for entry in table.findall(tables.nodes.entry)] == [
        "method name", "accuracy", "plain", "0.8467",
    ]  # fmt: skip
    sides = [entry["classes"] for entry in table.findall(tables.nodes.entry)]
    assert sides == [[], ["text-right"], [], ["text-right"]]


def test_every_option_of_every_command_is_described():
    found = {one.path: one for one in program.commands(program.program)}
    assert {"fairgrad fit", "fairgrad audit", "fairgrad sql counts"} <= set(found)
    for path, one in found.items():
        command = program.program
        for name in path.split()[1:]:
            command = command.commands[name]
        text = program.section_of(one).astext()
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(name in text for name in option.opts), (path, option.opts)
                assert option.help, (path, option.opts)


def test_figures_of_methods_are_those_of_the_results():
    found = results_tables.read("comparison.csv").set_index(
        ["dataset", "model", "method", "measure"]
    )
    table = results_tables.methods_by_measure("adult", "linear").set_index("method")
    own = found.loc["adult", "linear", "fairgrad", "equalized_odds"]
    accuracy, unfair = table.loc["fairgrad", "equalized odds"].split(" / ")
    assert float(accuracy) == pytest.approx(own.accuracy, abs=6e-4)
    assert float(unfair) == pytest.approx(own.mean_abs_fairness, abs=6e-4)
    assert table.loc["threshold", "accuracy parity"] == "not offered"
    paper = results_tables.beside_the_paper("equalized_odds").set_index("dataset")
    assert paper.loc["adult", "linear"].startswith(f"{accuracy} / {unfair} (.")


def test_every_committed_result_has_a_chart():
    found = results_tables.read("comparison.csv")
    combinations = found[["dataset", "model"]].drop_duplicates()
    assert len(results_charts.accuracy_charts()) == len(combinations)


@pytest.mark.parametrize("chart", results_charts.PAGE_CHARTS)
def test_charts_of_results_have_marks_and_words(chart):
    spec = charts.as_spec(chart())
    assert len(charts.alternative_text(spec)) > 100
    assert any(len(rows) > 3 for rows in spec["datasets"].values())


def test_good_pages_have_no_problems(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a><img src="p.svg" alt="a line">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="https://example.org/x">far</a></p>')
    (tmp_path / "p.svg").write_text("<svg></svg>")
    assert site_check.problems_of(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="missing.html">x</a>', "leads nowhere: missing.html"),
        ('<a href="#nowhere">x</a>', "leads nowhere: #nowhere"),
        ('<img src="a.html" alt=" ">', "without a text: a.html"),
        ('<script src="https://cdn.example.org/x.js"></script>', "loads from elsewhere"),
        ('<img src="missing.png" alt="a picture">', "leads nowhere: missing.png"),
    ],
)
def test_problems_are_found(tmp_path, text, problem):
    (tmp_path / "a.html").write_text(text)
    (found,) = site_check.problems_of(tmp_path)
    assert problem in found
