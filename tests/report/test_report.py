"""The page as text: complete, safe whatever the names, no reference to anything outside."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from fairgrad import Constraints
from fairgrad.audit import Audit
from fairgrad.report import Report, save_figures
from fairgrad.report import report as html_page
from fairgrad.report.report import json_for_html


class Reader(HTMLParser):
    """The page's tags, its ids, its visible text and the text of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.text, self.scripts, self.urls = [], [], [], [], []
        self._inside = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = tag
        values = dict(attrs)
        self.ids += [values["id"]] if "id" in values else []
        self.urls += [values[name] for name in ("src", "href", "action") if values.get(name)]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None if tag in {"script", "style"} else self._inside

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text.append(data)


@pytest.fixture(scope="module")
def page(report):
    return Reader(report.html())


def test_the_page_holds_every_chart_with_words_and_data(report, page):
    text = " ".join(page.text)
    charts = json.loads(page.scripts[0])["specs"]
    assert list(charts) == [figure.id for figure in report.figures]
    assert len(set(page.ids)) == len(page.ids)
    for figure in report.figures:
        assert figure.id in page.ids
        assert figure.title in text
        assert len(figure.alternative) > 20
        assert all(len(row) == len(figure.columns) for row in figure.rows)
        assert figure.rows[0][-1] in text
    assert page.tags.count("details") > len(report.figures)


def test_the_page_refers_to_nothing_outside(page):
    assert all(url.startswith("#") for url in page.urls)
    assert page.tags.count("link") == page.tags.count("img") == page.tags.count("iframe") == 0
    assert page.tags.count("script") == 3


def test_the_page_says_what_the_audit_says(report, page):
    text = " ".join(page.text)
    for finding in report.audit.findings:
        assert finding.verdict.split()[0] in text
        assert f"{finding.unfairness:.4f}" in text
        assert f"{finding.judgement.value:.3f}" in text
    for sentence in report.audit.sections[0].sentences:
        assert sentence in text
    assert "made up" in text
    assert "Kish" not in text
    assert "Clopper-Pearson" in text


@pytest.mark.parametrize("column", ["<b>sex</b>", "a\"b'c", "x" * 300])
def test_hostile_names_stay_text(samples, column):
    report = samples.hostile_report(column)
    page = Reader(report.html())
    assert page.tags.count("script") == 3
    assert page.tags.count("img") == page.tags.count("b") == 0
    text = "".join(page.text)
    for name in [*samples.HOSTILE, column]:
        assert name in text
    assert "49" not in re.findall(r"and (\S+) \$", text)  # the template did not compute 7 * 7
    drawn = json.dumps(json.loads(page.scripts[0]), ensure_ascii=False)
    assert "right to left" in drawn


def test_json_cannot_end_its_element():
    text = json_for_html({"</script><!--": "&\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script><!--": "&\u2028"}


def test_the_policy_allows_the_two_scripts_and_nothing_else(report):
    html = report.html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == 2
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy


def test_the_file_is_whole_and_about_a_megabyte(report, tmp_path):
    path = report.save(tmp_path / "report.html")
    assert 0.8e6 < path.stat().st_size < 1.3e6
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_names_that_utf8_cannot_hold_are_replaced(samples, tmp_path):
    report = Report(samples.make_audit(baseline=False), title="half \ud800 a sign")
    assert "half ? a sign" in report.save(tmp_path / "r.html").read_text(encoding="utf-8")


def test_charts_become_pictures(report, tmp_path):
    files = save_figures(report.figures, tmp_path / "charts")
    assert len(files) == 2 * len(report.figures)
    svg = (tmp_path / "charts" / "frontier.svg").read_text(encoding="utf-8")
    assert "<svg" in svg
    assert "var(--" not in svg
    assert (tmp_path / "charts" / "level-0.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="formats: expected some of"):
        save_figures(report.figures, tmp_path, ["bmp"])


def test_many_groups_and_labels_make_a_page():
    rng = np.random.default_rng(0)
    y, pred = rng.integers(4, size=(2, 5000))
    audit = Audit(y, pred, rng.integers(120, size=5000), measures=["equalized_odds"])
    report = Report(audit)
    page = Reader(report.html())
    assert all(f"group {group}" in page.text for group in range(120))
    assert len(report.sections) <= 6


def test_several_attributes_and_undefined_levels_make_a_page():
    rng = np.random.default_rng(0)
    y, pred = rng.integers(2, size=(2, 300))
    frame = pd.DataFrame({"a": rng.choice(["x", "y"], 300), "b": rng.choice(["u", "v", "w"], 300)})
    y[(frame["b"] == "w").to_numpy()] = 0
    text = Report(Audit(y, pred, frame)).html()
    assert "not defined: no rows" in text


def test_audits_do_not_load_reports():
    code = "import fairgrad.report, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_no_frontier_is_named(samples):
    with pytest.raises(ValueError, match="from 0 to 5, got 6"):
        Report(samples.make_audit(), frontier=samples.make_frontier(), chosen=6)
    with pytest.raises(TypeError, match="frontier: expected a fitted Frontier, got list"):
        Report(samples.make_audit(), frontier=[1, 2])


def test_the_page_says_which_label_was_taken_as_desirable():
    rng = np.random.default_rng(0)
    y, pred = rng.choice(["no", "yes"], size=(2, 300))
    html = Report(Audit(y, pred, rng.choice(["a", "b"], 300))).html()
    assert "selected means y yes" in html
    assert "Desirable label" in html


def test_a_plain_model_of_a_frontier_is_called_so(samples):
    frontier = samples.make_frontier()
    points = frontier.points.assign(epsilon=[0, 0.1, 0.2, 0.3, 0.4, np.inf])
    report = Report(samples.make_audit(), frontier=replace(frontier, points=points), chosen=5)
    assert report.frontier.names[5].startswith("accuracy 82.2 %, unfairness")
    assert "trained for no constraint" in report.frontier.names[5]
    assert "trained for a gap of at most 0.4" in report.frontier.names[4]


def test_measures_of_ones_own_make_a_page():
    rng = np.random.default_rng(0)
    y, pred = rng.integers(2, size=(2, 300))
    gap = Constraints(c0=[0.0], C=[[1.0, -1.0]], by_label=False, names=["<gap> of errors"])
    audit = Audit(y, pred, rng.choice(["a", "b"], 300), measures=[gap, "four_fifths_rule"])
    html = Report(audit).html()
    assert "&lt;gap&gt; of errors" in html
    assert "A measure of your own" in html


def test_a_chart_stands_by_itself(report):
    chart = report.figures[0].standalone(width=300).to_dict()
    assert chart["width"] == 300
    assert "var(--" not in json.dumps(chart)


def test_the_javascript_is_bundled_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRGRAD_CACHE", str(tmp_path / "cache"))
    bundle = html_page.vega_bundle.__wrapped__()
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.read_text(encoding="utf-8") in bundle
    kept.write_text("window.vegaEmbed = 1;", encoding="utf-8")
    assert html_page.vega_bundle.__wrapped__().endswith("window.vegaEmbed = 1;")
    monkeypatch.setenv("FAIRGRAD_CACHE", str(kept / "no folder"))
    assert html_page.vega_bundle.__wrapped__() == bundle


NUMBER = re.compile(r"(?<![\w.#-])[-+]?\d[\d,]*(?:\.\d+)?(?![\w]|\.\d)")


def numbers_in(value):
    """All numbers of plain values, also those within texts."""
    if isinstance(value, dict):
        return [n for part in value.items() for one in part for n in numbers_in(one)]
    if isinstance(value, list):
        return [n for one in value for n in numbers_in(one)]
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, str):
        return [float(found.replace(",", "")) for found in NUMBER.findall(value)]
    return [float(value)]


def known_at(digits, numbers):
    """The numbers as they look with so many digits: as they are, in percent, and without signs."""
    found = np.array([n for n in numbers if abs(n) < 1e12])
    forms = np.concatenate([found, 100 * found])
    return {f"{abs(n):.{digits}f}" for n in forms}


@pytest.mark.parametrize("name", ["plain", "baseline", "scored", "labels", "many"])
def test_every_number_of_the_page_is_in_the_json(samples, name):
    audit = {
        "plain": lambda: samples.make_audit(baseline=False),
        "baseline": samples.make_audit,
        "scored": samples.scored_audit,
        "labels": lambda: samples.scored_audit(3, n_labels=3),
        "many": lambda: samples.scored_audit(30, n=2500),
    }[name]()
    page = Reader(Report(audit).html())
    numbers = numbers_in(audit.to_dict())
    known = {digits: known_at(digits, numbers) for digits in range(7)}
    # What the page's own words count: the edition, the date, four fifths, ten bins.
    shown = [n for text in page.text if not text.startswith("Made ") for n in NUMBER.findall(text)]
    assert len(shown) > 100
    unexplained = []
    for text in shown:
        plain = text.replace(",", "").lstrip("+-")
        digits = len(plain.partition(".")[2])
        if plain not in known[digits]:
            unexplained.append(text)
    assert unexplained == []


def test_all_data_of_the_charts_are_in_the_json(samples):
    audit = samples.scored_audit()
    known = set(numbers_in(audit.to_dict())) | {0.0, 1.0}
    for figure in Report(audit).figures:
        for record in figure.spec().get("datasets", {}).values():
            drawn = [n for row in record for n in row.values() if isinstance(n, float)]
            assert all(n in known or -n in known for n in drawn), figure.id


def test_charts_are_valid_though_nobody_checks_them_on_the_way(samples):
    for figure in Report(samples.scored_audit()).figures:
        checked = figure.chart.to_dict(format="vega-lite")
        expected = {key: part for key, part in checked.items() if key not in {"config", "$schema"}}
        assert figure.spec() == {**expected, "description": figure.alternative}


def test_what_cannot_be_reported_is_refused_at_once():
    with pytest.raises(ValueError, match="subject: expected an Audit, .* got 'audit.json'"):
        Report("audit.json")
